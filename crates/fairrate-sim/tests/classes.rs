//! Priority classes: strict priority, and pauses of single classes.

mod common;

use common::{algorithm, config, flow, run};
use fairrate_sim::topology::Star;
use fairrate_sim::{FlowSpec, SimConfig};
use fairrate_units::{Rate, Time};

fn star(flows: Vec<FlowSpec>) -> SimConfig {
    let topology = Star { hosts: 5, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
    config(topology, algorithm("line-rate"), flows)
}

/// Three senders to one receiver, one of them in a higher class: it is served as if it were alone, except for the
/// packet that is being sent when one of its own arrives, and the others share the rest.
#[test]
fn a_higher_class_goes_first() {
    let high = FlowSpec { class: Some(2), ..flow(1, 0, 1_000_000, Time::from_us(50)) };
    let flows = vec![flow(2, 0, 1_000_000, Time::ZERO), flow(3, 0, 1_000_000, Time::ZERO), high];
    let (recorder, totals) = run(star(flows));
    let fct = |id: usize| recorder.flows[id].fct.expect("finished").as_us_f64();
    let ideal = recorder.flows[2].ideal_fct.as_us_f64();
    assert!(fct(2) < ideal + 1.0, "{} for {ideal}", fct(2));
    assert!(fct(0) > 2.8 * ideal && fct(1) > 2.8 * ideal, "the low class waits: {} {}", fct(0), fct(1));
    assert_eq!(totals.drops.total(), 0);
}

/// A pause affects one class: pauses of the low class do not hold the high class.
#[test]
fn a_pause_holds_its_class_only() {
    let high = FlowSpec { class: Some(2), ..flow(4, 0, 200_000, Time::from_us(300)) };
    let flows = vec![flow(1, 0, 2_000_000, Time::ZERO), flow(4, 0, 2_000_000, Time::ZERO), high];
    let mut c = star(flows);
    c.fabric.buffer = fairrate_units::Bytes::new(100_000);
    let (recorder, totals) = run(c);
    assert!(totals.pfc_pauses > 0 && recorder.pfc.iter().all(|event| event.class == 3));
    let (fct, ideal) = (recorder.flows[2].fct.expect("finished"), recorder.flows[2].ideal_fct);
    assert!(fct.as_us_f64() < ideal.as_us_f64() + 1.0, "{fct} for {ideal}");
}

/// Acknowledgments in a class above the data overtake queued data, so that senders receive them sooner.
#[test]
fn acknowledgments_may_have_a_class_of_their_own() {
    let last_ack = |ack_class| {
        // Data from 1 and 2 queue at the port to host 0, by which the acknowledgments from 3 come back.
        let flows = vec![
            flow(1, 0, 400_000, Time::ZERO),
            flow(2, 0, 400_000, Time::ZERO),
            flow(0, 3, 20_000, Time::from_us(100)),
        ];
        let mut c = star(flows);
        c.transport.ack_class = ack_class;
        let recorder = run(c).0;
        recorder.flows[2].fct_ack.expect("finished") - recorder.flows[2].fct.expect("finished")
    };
    let (own, shared) = (last_ack(1), last_ack(3));
    assert!(own < Time::from_us(3), "{own}");
    assert!(Time::from_us(30) < shared, "{shared}");
}
