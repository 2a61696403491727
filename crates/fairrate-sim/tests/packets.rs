//! The steps of packets, as an observer sees them.

use crate::common::{algorithm, config, flow};
use fairrate_sim::topology::Star;
use fairrate_sim::{
    DropCause, PacketEvent, PacketHeader, PacketKind, PacketStep, Pfc, PortId, RunTotals, SimConfig, Simulation, Sink,
    Wants,
};
use fairrate_units::{Bytes, Rate, Time};

const US: Time = Time::from_us(1);

/// A sink that keeps only the steps of packets.
#[derive(Default)]
struct Steps(Vec<PacketEvent>);

impl Sink for Steps {
    fn wants(&self) -> Wants {
        Wants { packets: true, ..Wants::default() }
    }
    fn packet(&mut self, event: &PacketEvent, _: Option<&PacketHeader<'_>>) {
        self.0.push(*event);
    }
}

fn star(hosts: u32) -> fairrate_sim::topology::Topology {
    Star { hosts, rate: Rate::from_gbps(25), delay: US }.build()
}

fn observed(config: SimConfig) -> (Vec<PacketEvent>, RunTotals) {
    let (mut steps, mut simulation) = (Steps::default(), Simulation::new(config));
    simulation.run(&mut steps).expect("the run does not stall");
    (steps.0, simulation.totals())
}

#[test]
fn a_lone_packet_joins_and_leaves_each_port_on_its_way_and_its_acknowledgment_the_ports_back() {
    let c = config(star(2), algorithm("newreno"), vec![flow(0, 1, 1_000, US)]);
    let ports = (0..c.topology.n_ports() as u32).map(PortId);
    let ports: Vec<PortId> = ports.filter(|&port| c.topology.is_host(c.topology.from(port))).collect();
    let &[from_sender, from_receiver] = &ports[..] else { panic!("two hosts have two ports") };
    let steps = observed(c).0;
    // 1,048 bytes take 335.36 ns at 25 Gb/s, 60 bytes 19.2 ns, and each link a microsecond.
    let (data, ack) = (Time::from_ps(1_335_360), Time::from_ps(1_019_200));
    let way = [
        (US, from_sender, PacketKind::Data, 1_048),
        (US + data, from_receiver.reverse(), PacketKind::Data, 1_048),
        (US + data + data, from_receiver, PacketKind::Ack, 60),
        (US + data + data + ack, from_sender.reverse(), PacketKind::Ack, 60),
    ];
    let expected = way.iter().flat_map(|&(t, port, kind, bytes)| {
        [(t, port, kind, PacketStep::Queued, bytes), (t, port, kind, PacketStep::Sent, 0)]
    });
    assert!(steps.iter().map(|s| (s.t, s.port, s.kind, s.step, s.queued_bytes)).eq(expected), "{steps:#?}");
    assert!(steps.iter().all(|s| s.flow.0 == 0 && !s.marked));
}

#[test]
fn an_observer_sees_each_drop_with_its_cause_and_the_queue_that_caused_it() {
    let mut c = config(star(3), algorithm("line-rate"), vec![flow(0, 2, 50_000, US), flow(1, 2, 50_000, US)]);
    (c.fabric.pfc, c.fabric.ingress_alpha) = (Pfc::Off, None);
    c.fabric.buffer = Bytes::new(10_000);
    let (steps, totals) = observed(c);
    let drops: Vec<_> = steps.iter().filter(|s| matches!(s.step, PacketStep::Dropped(_))).collect();
    assert!(!drops.is_empty() && drops.len() as u64 == totals.drops.total());
    for drop in drops {
        let PacketStep::Dropped(cause) = drop.step else { unreachable!("filtered above") };
        assert_eq!(cause, DropCause::BufferFull, "{drop:?}");
        // The packet would not have fitted, and is not in the queue.
        assert!((10_000 - 1_048 + 1..=10_000).contains(&drop.queued_bytes), "{drop:?}");
    }
}

#[test]
fn a_run_without_an_observer_is_the_same_run() {
    let c = || config(star(3), algorithm("newreno"), vec![flow(0, 2, 50_000, US), flow(1, 2, 50_000, US)]);
    let mut unobserved = Simulation::new(c());
    unobserved.run(&mut ()).expect("the run does not stall");
    assert_eq!(observed(c()).1, unobserved.totals());
}
