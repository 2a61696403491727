//! Flows of a pair of hosts over one connection: rates carry over from one flow to the next, and other flows are not
//! affected.

use crate::common::{algorithm, config, flow, plug_in, run};
use fairrate_control::{Ack, AlgorithmConfig, Allowance, Controller, Loss, Needs};
use fairrate_sim::topology::{Dumbbell, LeafSpine, Star, Topology};
use fairrate_sim::workload::{ClosedLoop, Sampling, SizeDistribution, Sleep, share_connections};
use fairrate_sim::{Connection, FlowSpec, ProbeSpec, Recorder, Simulation, StopRule, Trigger};
use fairrate_units::{Bytes, Rate, Time};

const US: Time = Time::from_us(1);

/// A controller with 10 Gb/s at the start, half of the rate with every acknowledgment, and, from 1 us after that on,
/// twice the rate every 10 us.
#[derive(Clone)]
struct Halving {
    rate: Rate,
    timer: Time,
}

impl Halving {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::MAX, rate: self.rate, timer: self.timer }
    }
}

impl Controller for Halving {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        (self.rate, self.timer) = (Rate::from_bps(self.rate.as_bps() / 2), ack.now + Time::from_us(10));
        self.allowance()
    }
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.allowance()
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        (self.rate, self.timer) = (Rate::from_bps(self.rate.as_bps() * 2), now + Time::from_us(10));
        self.allowance()
    }
}

fn halving() -> AlgorithmConfig {
    plug_in(&Needs::NOTHING, |_| Halving { rate: Rate::from_gbps(10), timer: Time::MAX })
}

fn star() -> Topology {
    Star { hosts: 4, rate: Rate::from_gbps(10), delay: US }.build()
}

/// Runs flows and returns the start and completion time of each.
fn times(cc: AlgorithmConfig, flows: Vec<FlowSpec>) -> Vec<(Time, Time)> {
    let mut outcomes = run(config(star(), cc, flows)).0.flows;
    outcomes.sort_by_key(|o| o.flow);
    outcomes.into_iter().map(|o| (o.start, o.fct.expect("all flows finish"))).collect()
}

/// Returns a flow that starts some time after another one has ended.
fn after(spec: &FlowSpec, before: u32, pause: Time) -> FlowSpec {
    FlowSpec { trigger: Trigger::After(fairrate_sim::FlowId(before), pause), start: spec.start + pause, ..spec.clone() }
}

fn shared(mut flows: Vec<FlowSpec>) -> Vec<FlowSpec> {
    share_connections(&mut flows);
    flows
}

/// Packets of 1,048 bytes last 838.4 ns at 10 Gb/s; the first flow is one of them, so its acknowledgment halves the
/// rate once. Doubling it takes 10 us. The second flow has two packets, which leave one gap apart at the rate that it
/// begins with.
#[test]
fn a_transfer_begins_with_the_rate_at_which_the_one_before_ended() {
    let gap_of = |pause_us, flows: fn(Vec<FlowSpec>) -> Vec<FlowSpec>| {
        let pause = Time::from_us(pause_us);
        let two = |bytes| {
            let flows = flows(vec![flow(0, 1, 1_000, US), after(&flow(0, 1, bytes, US), 0, pause)]);
            times(halving(), flows)[1].1
        };
        // The completion time of two packets less that of one.
        two(2_000).as_ps() - two(1_000).as_ps()
    };
    let packet = 838_400;
    assert_eq!(gap_of(3, |flows| flows), packet, "a connection of its own begins at 10 Gb/s");
    assert_eq!(gap_of(3, shared), 2 * packet, "5 Gb/s");
    assert_eq!(gap_of(12, shared), packet, "10 us after the acknowledgment the rate has doubled");
}

#[test]
fn a_transfer_that_comes_early_waits_for_the_one_before() {
    let flows = |shared: bool| {
        let mut flows =
            vec![flow(0, 1, 50_000, US), flow(0, 1, 1_000, Time::from_us(2)), flow(0, 2, 1_000, Time::from_us(2))];
        if shared {
            share_connections(&mut flows);
        }
        times(algorithm("line-rate"), flows)
    };
    let (own, pair) = (flows(false), flows(true));
    // With connections of their own all share the NIC. Over one the second begins with the last acknowledgment of the
    // first: 50 packets of 838.4 ns, one of the flow to h2 between them, and the last once more at the switch; two
    // links of 1 us each way; and the acknowledgment of 60 bytes twice.
    let first = 52 * 838_400 + 2_000_000;
    let acknowledged = first + 2_000_000 + 2 * 48_000;
    let alone = 2 * 838_400 + 2_000_000;
    assert_eq!(pair[0].1.as_ps(), first);
    assert_eq!(pair[1].0, Time::from_us(2), "its time counts from when it comes");
    assert_eq!(pair[1].1.as_ps(), acknowledged - 1_000_000 + alone);
    assert!(own[1].1 < pair[1].1);
    // The flow to h2 has another connection: it takes turns with the first flow and waits for none of its packets
    // twice.
    assert!(pair[2].1 <= own[2].1 && pair[2].1.as_ps() <= 4 * 838_400 + 2_000_000);
}

/// RoCC's limits are set by notices, some of which arrive after the last acknowledgment.
#[test]
fn limits_live_on_between_transfers() {
    let topology = Dumbbell {
        left: 8,
        right: 1,
        host_rate: Rate::from_gbps(40),
        host_delay: US,
        bottleneck_rate: Rate::from_gbps(40),
        bottleneck_delay: US,
    }
    .build();
    let flows = |connection| {
        let flow = |i: u32| FlowSpec { connection, ..flow(i, 8, 1_000_000, US) };
        let next = |i: u32| after(&flow(i), i, Time::from_us(5));
        (0..8).map(flow).chain((0..8).map(next)).collect::<Vec<_>>()
    };
    // Returns the run's peak buffer in bytes.
    let peak = |connection| {
        let mut c = config(topology.clone(), algorithm("rocc"), flows(connection));
        c.transport.reaction_delay = Time::from_us(15);
        c.fabric.ingress_alpha = None;
        let (recorder, totals) = run(c);
        let seconds = recorder.flows.iter().filter(|o| 8 <= o.flow.0).count();
        assert_eq!((seconds, totals.flows_done), (8, 16));
        totals.peak_buffer_bytes
    };
    // Eight sources at line rate meet the first time in any case. They meet again only if the limits are forgotten.
    assert!(peak(Connection::PerPair) <= peak(Connection::PerFlow));
}

fn loops(topology: &Topology) -> Vec<FlowSpec> {
    let loops = ClosedLoop {
        sizes: SizeDistribution::fixed(Bytes::new(60_000)),
        sampling: Sampling::Step,
        load: 0.9,
        sleep: Sleep::WholeGap,
        senders: None,
        receivers: None,
        start: Time::ZERO,
        stop: Time::from_us(400),
    };
    shared(loops.generate(topology, 1, 0).expect("hosts and a load"))
}

#[test]
fn threads_change_nothing() {
    let topology = LeafSpine {
        leaves: 4,
        spines: 2,
        hosts_per_leaf: 3,
        host_rate: Rate::from_gbps(40),
        host_delay: US,
        uplink_rate: Rate::from_gbps(40),
        uplink_delay: US,
    }
    .build();
    for cc in ["rocc", "dcqcn", "hpcc", "timely", "bfc"] {
        let run = |threads| {
            let mut c = config(topology.clone(), algorithm(cc), loops(&topology));
            c.stop = StopRule { at: Some(Time::from_us(600)), when_flows_done: false };
            c.transport.reaction_delay = Time::from_us(2);
            c.probes = vec![ProbeSpec::Flows { flows: None, every: Time::from_us(20) }];
            let mut simulation = Simulation::with_threads(c, threads);
            let mut recorder = Recorder::default();
            simulation.run(&mut recorder).expect("no stall");
            (recorder, simulation.totals())
        };
        let one = run(1);
        assert!(50 < one.1.flows_done, "{cc}: {}", one.1.flows_done);
        assert_eq!(one, run(2), "{cc}");
        assert_eq!(one, run(3), "{cc}");
    }
}
