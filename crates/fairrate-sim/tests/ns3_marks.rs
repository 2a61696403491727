//! Runs of the PowerTCP artifact that depend on random marks, compared number for number.

use crate::common::{config, flow, run};
use fairrate_control::{AlgorithmConfig, Profile};
use fairrate_sim::topology::Star;
use fairrate_sim::{
    BaseRttRule, ClockRule, EcmpHash, Headroom, MarkAt, MarkDraws, RunTotals, SimConfig, TieRule, WindowRule,
};
use fairrate_units::{Bytes, Rate, Time};

/// Hosts 1 to `n` of an 11-host star send 1 MB to host 0 at 1 ms, as in the artifact.
fn star(n: u32, cc: &str) -> SimConfig {
    let topology = Star { hosts: 11, rate: Rate::from_gbps(25), delay: Time::from_ns(1_840) }.build();
    let cc = AlgorithmConfig::by_name(cc, Profile::Ns3).expect("the algorithm is registered");
    let flows = (1..=n).map(|src| flow(src, 0, 1_000_000, Time::from_ms(1))).collect();
    let mut c = config(topology, cc, flows);
    c.fabric.clock = ClockRule::WholeNanoseconds;
    c.fabric.ecmp = EcmpHash::Murmur3;
    c.fabric.ties = TieRule::Insertion;
    c.fabric.headroom = Headroom::TripleDelay;
    c.fabric.pfc_frame = Bytes::new(43);
    let ecn = c.fabric.ecn.as_mut().expect("the algorithm reads marks");
    (ecn.at, ecn.draws) = (MarkAt::Dequeue, MarkDraws::LikeNs3);
    c.transport.base_rtt = BaseRttRule::PayloadOnly;
    c.transport.rto = None;
    c.transport.window_overshoot = true;
    c
}

/// Returns the completion times at the senders in ns, by flow, and the totals.
fn fcts(c: SimConfig) -> (Vec<u64>, RunTotals) {
    let (recorder, totals) = run(c);
    (recorder.flows.iter().map(|f| f.fct_ack.expect("the flow is done").as_ns()).collect(), totals)
}

#[test]
fn two_dcqcn_flows_finish_when_they_do_in_ns3() {
    let (fcts, totals) = fcts(star(2, "dcqcn"));
    assert_eq!(fcts, [1_430_527, 1_359_322]);
    assert_eq!(totals.counts.ecn_marks, 11);
}

/// Marks on a crowded port, acknowledgments that share no port with data, and pause frames, which use random streams
/// too.
#[test]
fn ten_dcqcn_flows_finish_when_they_do_in_ns3() {
    let (fcts, totals) = fcts(star(10, "dcqcn"));
    let ns3 =
        [5_093_596, 6_362_099, 6_297_484, 6_219_036, 6_381_391, 6_346_291, 6_268_928, 6_411_608, 6_554_493, 6_322_872];
    assert_eq!(fcts, ns3);
    assert_eq!((totals.counts.ecn_marks, totals.counts.pfc_pauses + totals.counts.pfc_resumes), (3_795, 4));
}

/// Windows proportional to rates, which open when a timer raises a rate: ns-3 sends at the next acknowledgment.
#[test]
fn ten_windowed_dcqcn_flows_finish_when_they_do_in_ns3() {
    let mut c = star(10, "dcqcn");
    c.transport.window = WindowRule::RateScaled;
    let (fcts, totals) = fcts(c);
    let ns3 =
        [3_223_398, 3_210_668, 3_363_176, 3_350_391, 3_150_033, 2_798_618, 2_809_338, 2_846_858, 3_257_233, 3_234_118];
    assert_eq!(fcts, ns3);
    assert_eq!(totals.counts.ecn_marks, 137);
}

#[test]
fn ten_dctcp_flows_finish_when_they_do_in_ns3() {
    let (fcts, totals) = fcts(star(10, "dctcp"));
    let ns3 =
        [3_353_043, 2_668_303, 2_807_998, 3_297_098, 3_338_973, 3_057_908, 2_977_173, 3_159_413, 3_323_898, 3_357_733];
    assert_eq!(fcts, ns3);
    assert_eq!(totals.counts.ecn_marks, 106);
}

#[test]
fn another_run_number_is_another_run() {
    let mut c = star(2, "dcqcn");
    c.seed = 2;
    assert_ne!(fcts(c).0, [1_430_527, 1_359_322]);
}
