//! The fluid reference: against hand calculations, against a brute-force integration, and for single flows.

use crate::common::{algorithm, config, flow, probe, run};
use fairrate_allocate::{Flow, Link, LinkId, Network, max_min};
use fairrate_control::{Parameters, RawValue};
use fairrate_sim::topology::{ParkingLot, Star, Topology};
use fairrate_sim::workload::Permutation;
use fairrate_sim::{FaultConfig, FlowId, FlowSpec, NodeId, ProbeSpec, SimConfig, StopRule, Trigger};
use fairrate_units::{Bytes, Rate, Time};
use proptest::prelude::*;

const G25: Rate = Rate::from_gbps(25);
const US: Time = Time::from_us(1);

fn star(hosts: u32) -> Topology {
    Star { hosts, rate: G25, delay: US }.build()
}

fn ideal(topology: Topology, flows: Vec<FlowSpec>) -> SimConfig {
    config(topology, algorithm("ideal"), flows)
}

/// Returns the wire bits of a flow of full packets.
fn bits(packets: u64) -> u64 {
    packets * 1_048 * 8
}

/// A packet takes 335.36 ns at 25 Gb/s. The time after a flow's last bit is the second link's packet and two delays.
/// Two flows of 1,000 and 3,000 packets start at 1 us into one link: both have half of it until the first has sent its
/// 1,000, for 2,000 packet times; then the second has 2,000 left and all of the link.
#[test]
fn two_flows_share_a_link_and_the_rest_is_the_longer_ones() {
    let flows = vec![flow(1, 0, 1_000_000, US), flow(2, 0, 3_000_000, US)];
    let (recorder, totals) = run(ideal(star(3), flows));
    let (packet_ps, tail_ps) = (335_360, 335_360 + 2_000_000);
    let fct_ps: Vec<u64> = recorder.flows.iter().map(|f| f.fct.expect("done").as_ps()).collect();
    assert_eq!(fct_ps, [2_000 * packet_ps + tail_ps, 4_000 * packet_ps + tail_ps]);
    // The acknowledgment of 60 bytes takes 19.2 ns on each of two links.
    for outcome in &recorder.flows {
        let way_back = outcome.fct_ack.expect("done") - outcome.fct.expect("done");
        assert_eq!(way_back, Time::from_ps(2 * 19_200 + 2_000_000));
    }
    let sent = bits(4_000) / 8;
    assert_eq!((totals.sent_bytes, totals.delivered_bytes, totals.in_flight_bytes), (sent, sent, 0));
    assert_eq!((totals.flows_done, totals.packet_hops), (2, 0));
}

/// A link with a quarter of its rate from the beginning: a flow alone takes as long as packets at line rate do, in
/// either direction.
#[test]
fn a_slow_link_has_its_share() {
    for slow in [(0, 4), (4, 1)] {
        let of = |cc: &str| {
            let mut c = config(star(4), algorithm(cc), vec![flow(0, 1, 1_000_000, US)]);
            let port = c.topology.port(NodeId(slow.0), NodeId(slow.1)).expect("a link");
            c.faults = vec![FaultConfig { ports: vec![port], rate: 0.25, ..FaultConfig::NONE }];
            run(c).0.flows[0].fct.expect("done")
        };
        assert_eq!(of("ideal"), of("line-rate"));
    }
}

/// Two flows of 1,000 packets into one link, which has half of its rate from 100 us after their start for 200 us: 1,000
/// packets are sent a 335.36 ns, half as fast for 200 us.
#[test]
fn a_link_that_slows_down_and_recovers_takes_its_flows_along() {
    for (rates, n) in [("max-min", 2), ("alone", 1)] {
        let flows = (1..=n).map(|from| flow(from, 0, 1_000_000, US)).collect();
        let mut cc = algorithm("ideal");
        cc.set("rates", RawValue::Text(rates)).expect("`ideal` has rates");
        let mut c = config(star(4), cc, flows);
        let port = c.topology.port(NodeId(4), NodeId(0)).expect("a link");
        let (start, stop) = (US + Time::from_us(100), US + Time::from_us(300));
        c.faults = vec![FaultConfig { ports: vec![port], rate: 0.5, start, stop, ..FaultConfig::NONE }];
        let (packet_ps, tail_ps) = (335_360, 335_360 + 2_000_000);
        for outcome in run(c).0.flows {
            let expected = u64::from(n) * 1_000 * packet_ps + 100_000_000 + tail_ps;
            let fct = outcome.fct.expect("done").as_ps();
            assert!(fct.abs_diff(expected) <= 1, "{fct} and {expected}");
            // What it takes alone is what it takes where nothing is slow.
            assert_eq!(outcome.ideal_fct.as_ps(), 1_000 * packet_ps + tail_ps);
        }
    }
}

/// The alpha-beta model: flows into one link take the time that each would take alone, and one with a demand that of
/// its demand.
#[test]
fn flows_that_have_the_rates_of_lone_flows_do_not_meet() {
    let mut flows = vec![flow(1, 0, 1_000_000, US), flow(2, 0, 3_000_000, US), flow(3, 0, 1_000_000, US)];
    flows[2].demand = Rate::from_gbps(5);
    let mut cc = algorithm("ideal");
    cc.set("rates", RawValue::Text("alone")).expect("`ideal` has rates");
    let (recorder, _) = run(config(star(4), cc, flows));
    let (packet_ps, tail_ps) = (335_360, 335_360 + 2_000_000);
    let fct_ps: Vec<u64> = recorder.flows.iter().map(|f| f.fct.expect("done").as_ps()).collect();
    assert_eq!(fct_ps, [1_000 * packet_ps + tail_ps, 3_000 * packet_ps + tail_ps, 5_000 * packet_ps + tail_ps]);
}

/// Weights 1 and 3, and a third flow with a demand of 5 Gb/s: 5, 15 and 5.
#[test]
fn weights_and_demands_are_respected() {
    let endless = |src| flow(src, 0, u64::MAX, Time::ZERO);
    let flows =
        vec![endless(1), FlowSpec { weight: 3.0, ..endless(2) }, FlowSpec { demand: Rate::from_gbps(5), ..endless(3) }];
    let mut c = ideal(star(4), flows);
    c.stop = StopRule { at: Some(Time::from_us(100)), when_flows_done: false };
    c.probes.push(ProbeSpec::Flows { flows: None, every: Time::from_us(50) });
    probe(&mut c, 4, 0, Time::from_us(50));
    let (recorder, totals) = run(c);
    let rates: Vec<u64> = recorder.rates.iter().filter(|r| r.t == Time::from_us(50)).map(|r| r.rate_bps).collect();
    assert_eq!(rates, [5_000_000_000, 15_000_000_000, 5_000_000_000]);
    let port = recorder.ports.last().expect("sampled");
    assert_eq!((port.t, port.qlen_bytes, port.drops), (Time::from_us(100), 0, 0));
    // Whole bytes of each flow; 312,500 in all.
    assert!((312_497..=312_500).contains(&port.tx_bytes), "{}", port.tx_bytes);
    assert_eq!(port.tx_bytes, totals.sent_bytes);
    assert_eq!(totals.end, Time::from_us(100));
    // 15 Gb/s for 100 us are 187,500 bytes: 178 packets and 956 bytes, less a header.
    assert_eq!(recorder.flows[1].delivered_bytes, 178_908);
}

/// PERC's Figure 7: 60, 30 and 10 Gb/s in a row; A on the first, B on the first two, C on the last two, D on the last.
#[test]
fn the_chain_of_percs_figure_7() {
    let gbps = Rate::from_gbps;
    let lot = ParkingLot {
        switches: 4,
        hosts_per_switch: 2,
        host_rate: gbps(100),
        host_delay: US,
        link_rate: gbps(100),
        link_rates: Some(vec![gbps(60), gbps(30), gbps(10)]),
        link_delay: US,
    };
    // Hosts 2i and 2i + 1 are at switch i.
    let pairs = [(0, 2), (1, 4), (3, 6), (5, 7)];
    let flows = pairs.map(|(src, dst)| flow(src, dst, u64::MAX, Time::ZERO)).to_vec();
    let mut c = ideal(lot.build(), flows);
    c.stop = StopRule { at: Some(Time::from_us(10)), when_flows_done: false };
    c.probes.push(ProbeSpec::Flows { flows: None, every: Time::from_us(5) });
    let rates = run(c).0.rates;
    let late: Vec<u64> =
        rates.iter().filter(|r| r.t == Time::from_us(10)).map(|r| r.rate_bps / 1_000_000_000).collect();
    assert_eq!(late, [35, 25, 5, 5]);
}

/// A successor starts when its predecessor's last acknowledgment has arrived and its delay has passed, not before.
#[test]
fn successors_wait_and_stops_stop() {
    let first = flow(1, 0, 100_000, US);
    let second = FlowSpec { trigger: Trigger::After(FlowId(0), Time::from_us(7)), ..flow(1, 0, 50_000, US) };
    let third = FlowSpec { stop: Time::from_us(20), ..flow(2, 3, u64::MAX, US) };
    let (recorder, totals) = run(ideal(star(4), vec![first, second, third]));
    let [first, second, third] = &recorder.flows[..] else { panic!("three flows") };
    assert_eq!(second.start, US + first.fct_ack.expect("done") + Time::from_us(7));
    assert_eq!(second.fct, Some(second.ideal_fct));
    // 19 us at 25 Gb/s: 59,375 bytes, 56 packets of 1,048 and 687 bytes.
    assert_eq!((third.delivered_bytes, third.fct), (56_639, None));
    assert_eq!(totals.flows_done, 2);
}

/// Probes and slices of any size do not change the run; it ends at its time.
#[test]
fn slices_and_probes_do_not_change_a_run() {
    let make = |probed: bool| {
        let permutation = Permutation { bytes: Bytes::new(300_000), start: US, hosts: None };
        let mut flows = permutation.generate(&star(20), 1, 0).expect("hosts");
        flows.extend((1..20).map(|src| flow(src, 0, 70_000, Time::from_us(10 + u64::from(src)))));
        let mut c = ideal(star(20), flows);
        if probed {
            c.probes.push(ProbeSpec::Flows { flows: None, every: Time::from_ns(700) });
        }
        c
    };
    let (plain, totals) = run(make(false));
    assert_eq!(plain.flows, run(make(true)).0.flows);
    let mut sliced = fairrate_sim::Simulation::new(make(false));
    while !sliced.advance(1, &mut crate::common::Recorder::default()).expect("no stall").finished {
        sliced.totals();
    }
    assert_eq!(sliced.totals(), totals);
}

/// Integrates the fluid model in small steps: rates from the solver whenever the set of flows may have changed, which
/// is every step. Returns completion times in seconds, of the last bit at the sender.
fn brute_force(flows: &[FlowSpec], hosts: u32, step_s: f64) -> Vec<f64> {
    let n = flows.len();
    let mut left: Vec<f64> = flows.iter().map(|f| bits(f.bytes.as_u64() / 1_000) as f64).collect();
    let mut done = vec![0.0; n];
    let links = (0..2 * hosts).map(|_| Link::new("", G25)).collect::<Vec<_>>();
    let (mut t, mut unfinished) = (0.0, n);
    while 0 < unfinished {
        let start_s = |f: &FlowSpec| f.start.as_us_f64() * 1e-6;
        let active: Vec<usize> = (0..n).filter(|&i| start_s(&flows[i]) <= t + 1e-12 && 0.0 < left[i]).collect();
        let flow = |&i: &usize| {
            let f = &flows[i];
            let demand = if f.demand == Rate::MAX { f64::INFINITY } else { f.demand.as_bps_f64() };
            Flow::new("", [LinkId(f.src.0), LinkId(hosts + f.dst.0)]).weight(f.weight).demand_bps(demand)
        };
        let network = Network { links: links.clone(), flows: active.iter().map(flow).collect() };
        for (&i, rate) in active.iter().zip(max_min(&network).expect("an allocation").rates_bps) {
            left[i] -= rate * step_s;
            if left[i] <= 0.0 {
                (done[i], unfinished) = (t + step_s + left[i] / rate, unfinished - 1);
            }
        }
        t += step_s;
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn completion_times_are_those_of_small_steps(
        flows in prop::collection::vec((0_u32..5, 1_u32..5, 1_u64..60, 0_u64..40, 1_u32..4, 0_u32..3), 1..12)
    ) {
        const HOSTS: u32 = 5;
        // A packet is 0.34 us; a step of 10 ns moves each of up to 24 changes by a step at most.
        const STEP_S: f64 = 1e-8;
        let mut flows: Vec<FlowSpec> = flows
            .into_iter()
            .map(|(src, hop, packets, start, weight, demand)| FlowSpec {
                weight: f64::from(weight),
                demand: if demand == 0 { Rate::from_gbps(3) } else { Rate::MAX },
                ..flow(src, (src + hop) % HOSTS, packets * 1_000, Time::from_us(start))
            })
            .collect();
        flows.sort_by_key(|f| f.start);
        let (recorder, _) = run(ideal(star(HOSTS), flows.clone()));
        let tail_s = 2.335_36e-6;
        for (outcome, (want, spec)) in recorder.flows.iter().zip(brute_force(&flows, HOSTS, STEP_S).iter().zip(&flows)) {
            let fct_s = outcome.fct.expect("done").as_us_f64() * 1e-6;
            let want_s = want - spec.start.as_us_f64() * 1e-6 + tail_s;
            let most = STEP_S * 2.0 * flows.len() as f64;
            prop_assert!((fct_s - want_s).abs() < most, "{fct_s} or {want_s} of {flows:?}");
        }
    }
}

/// Two probes of 1 and 3 us watch one port and one flow: each moment has one sample, with packets and with fluids.
#[test]
fn what_two_probes_watch_is_sampled_once() {
    for cc in ["dctcp", "ideal"] {
        let mut c = config(star(3), algorithm(cc), vec![flow(1, 0, 300_000, US)]);
        for every in [US, Time::from_us(3)] {
            probe(&mut c, 3, 0, every);
            c.probes.push(ProbeSpec::Flows { flows: Some(vec![FlowId(0)]), every });
            c.probes.push(ProbeSpec::Flows { flows: None, every });
        }
        let recorder = run(c).0;
        let (ports, rates): (Vec<Time>, Vec<Time>) =
            (recorder.ports.iter().map(|s| s.t).collect(), recorder.rates.iter().map(|s| s.t).collect());
        for times in [ports, rates] {
            assert!(10 < times.len() && times.is_sorted_by(|a, b| a < b), "{cc}: {times:?}");
        }
    }
}
