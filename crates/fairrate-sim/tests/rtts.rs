//! Round-trip times that senders measure and report to a sink.

use crate::common::{TCP, algorithm, config, flow};
use fairrate_sim::topology::Star;
use fairrate_sim::{
    FlowId, MptcpConfig, Observation, RttSample, SimConfig, Simulation, Sink, TcpConfig, Transport, Wants,
};
use fairrate_units::{Rate, Time};

const US: Time = Time::from_us(1);

/// A sink that keeps only round-trip times.
#[derive(Default)]
struct Rtts(Vec<RttSample>);

impl Sink for Rtts {
    fn wants(&self) -> Wants {
        Wants { rtts: true, ..Wants::default() }
    }
    fn observe(&mut self, observation: &Observation) {
        if let Observation::Rtt(sample) = observation {
            self.0.push(*sample);
        }
    }
}

fn rtts(config: SimConfig) -> Vec<RttSample> {
    let mut rtts = Rtts::default();
    Simulation::new(config).run(&mut rtts).expect("the run does not stall");
    rtts.0
}

/// Four links of a microsecond; 1,048 bytes take 335.36 ns at 25 Gb/s, 60 bytes 19.2 ns, each twice.
const ALONE: Time = Time::from_ps(4_709_120);

#[test]
fn a_lone_packet_takes_the_base_round_trip_time_with_rdma_and_tcp() {
    let tcp = TcpConfig { prr: false, idle_restart: false, ..TCP };
    let subflows = TcpConfig { multipath: MptcpConfig { subflows: 2, ..MptcpConfig::SINGLE }, ..tcp };
    for kind in [Transport::Rdma, Transport::Tcp(tcp), Transport::Tcp(subflows)] {
        let topology = Star { hosts: 2, rate: Rate::from_gbps(25), delay: US }.build();
        let mut c = config(topology, algorithm("newreno"), vec![flow(0, 1, 1_000, US)]);
        c.transport.kind = kind;
        // For a subflow, the sample names the connection.
        assert_eq!(rtts(c), [RttSample { t: US + ALONE, flow: FlowId(0), rtt: ALONE }], "{kind:?}");
    }
}

#[test]
fn every_packet_has_one_and_those_that_wait_a_longer_one() {
    // Two senders at line rate, one receiver: queues grow.
    let topology = Star { hosts: 3, rate: Rate::from_gbps(25), delay: US }.build();
    let samples = rtts(config(topology, algorithm("line-rate"), vec![flow(0, 2, 50_000, US), flow(1, 2, 50_000, US)]));
    assert_eq!(samples.len(), 100);
    assert!(samples.iter().all(|s| ALONE <= s.rtt) && samples.iter().any(|s| ALONE + US < s.rtt));
}
