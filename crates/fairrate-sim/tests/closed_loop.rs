//! Closed loops on packets: flows wait for one another, and a slow network is offered less.

use crate::common::{algorithm, config, run};
use fairrate_sim::topology::{Dumbbell, Topology};
use fairrate_sim::workload::{ClosedLoop, Sampling, SizeDistribution, Sleep};
use fairrate_sim::{FlowOutcome, FlowSpec, NodeId, Trigger};
use fairrate_units::{Bytes, Rate, Time};

const STOP: Time = Time::from_ms(20);

/// Two senders of 40 Gb/s and two receivers, with a link between them.
fn network(bottleneck: Rate) -> Topology {
    Dumbbell {
        left: 2,
        right: 2,
        host_rate: Rate::from_gbps(40),
        host_delay: Time::from_us(1),
        bottleneck_rate: bottleneck,
        bottleneck_delay: Time::from_us(1),
    }
    .build()
}

/// Returns the flows of a load of 50 %, and the outcomes of those that started.
fn outcomes(bottleneck: Rate) -> (Vec<FlowSpec>, Vec<FlowOutcome>) {
    let topology = network(bottleneck);
    let loops = ClosedLoop {
        sizes: SizeDistribution::fixed(Bytes::new(100_000)),
        sampling: Sampling::Step,
        load: 0.5,
        sleep: Sleep::RestOfGap,
        senders: Some(vec![NodeId(0), NodeId(1)]),
        receivers: Some(vec![NodeId(2), NodeId(3)]),
        start: Time::ZERO,
        stop: STOP,
    };
    let flows = loops.generate(&topology, 1, 0).expect("hosts and a load");
    let mut outcomes = run(config(topology, algorithm("powertcp"), flows.clone())).0.flows;
    outcomes.sort_by_key(|o| o.flow);
    (flows, outcomes)
}

#[test]
fn flows_start_when_the_one_before_is_acknowledged_and_the_pause_over() {
    let (flows, outcomes) = outcomes(Rate::from_gbps(100));
    let of = |id| outcomes.iter().find(|o| o.flow == id).copied();
    let mut waited = 0;
    for outcome in &outcomes {
        assert!(outcome.start < STOP);
        let flow = &flows[outcome.flow.index()];
        match flow.trigger {
            Trigger::After(before, pause) => {
                let before = of(before).expect("what a flow waited for has started");
                assert_eq!(outcome.start, before.start + before.fct_ack.expect("it finished") + pause);
                assert!(flow.start <= outcome.start, "the start time of a flow is the earliest possible");
                waited += 1;
            }
            _ => assert_eq!(outcome.start, flow.start),
        }
    }
    assert!(300 < waited);
    // A flow that has not started would have started too late.
    for (id, flow) in (0..).map(fairrate_sim::FlowId).zip(&flows).filter(|(id, _)| of(*id).is_none()) {
        let Trigger::After(before, pause) = flow.trigger else { panic!("{id:?} had its time") };
        assert!(of(before).is_none_or(|b| STOP <= b.start + b.fct_ack.expect("it finished") + pause));
    }
}

#[test]
fn a_slow_network_is_offered_less() {
    let bytes = |gbps| outcomes(Rate::from_gbps(gbps)).1.len() as f64 * 100_000.0;
    let (fast, slow) = (bytes(100), bytes(10));
    // 50 % of 80 Gb/s for 20 ms are 100 MB, less the time of round trips; some 1000 flows have a standard error of 2 %.
    assert!((0.75..1.05).contains(&(fast / 100e6)), "{fast}");
    // 10 Gb/s are full, except for headers and flows that are still active after the end.
    assert!((0.85..1.0).contains(&(slow / 25e6)), "{slow}");
}
