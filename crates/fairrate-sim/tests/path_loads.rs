//! Schemes that know how wide or how loaded paths are: WCMP, CONGA, and the measures of adaptive routing; and hashes
//! that are the same at all switches.

use crate::common::{SPINES, algorithm, config, flow, four_spines, paths, run, sent_by_uplinks, uplinks};
use fairrate_sim::topology::{FatTreeK, Topology, parse_topology_file};
use fairrate_sim::{
    Adaptive, Balance, Conga, DropCause, EcmpHash, FaultConfig, Flap, FlowSpec, Pfc, PortId, Recovery, Rehash, Reroute,
    Signal, SimConfig, Simulation,
};
use fairrate_units::{Bytes, Rate, Time};

const US: Time = Time::from_us(1);
const CONGA: Balance =
    Balance::Conga(Conga { gap: Time::from_us(100), memory: Time::from_us(160), age: Time::from_ms(10) });

fn adaptive(signals: [Option<Signal>; 3]) -> Adaptive {
    Adaptive { signals, refresh: Time::ZERO, sticky: None }
}

/// Returns a run in which receivers wait for what is late.
fn balanced(topology: Topology, cc: &str, flows: Vec<FlowSpec>, balance: Balance) -> SimConfig {
    let mut c = config(topology, algorithm(cc), flows);
    (c.fabric.balance, c.transport.recovery) = (balance, Recovery::SelectiveRepeat);
    c.transport.reorder_window = Time::from_us(200);
    c
}

/// Returns flows of the hosts of one leaf to those of the next one, `every` so often.
fn many_flows(n: u32, bytes: u64, every: Time) -> Vec<FlowSpec> {
    let of = |i: u32| FlowSpec { sport: i as u16, ..flow(i % 4, 4 + i / 4 % 4, bytes, every * u64::from(i)) };
    (0..n).map(of).collect()
}

fn port(topology: &Topology, from: &str, to: &str) -> PortId {
    let node = |name| topology.node(name).expect("it is there");
    let ends = (node(from), node(to));
    let mut ports = (0..topology.n_ports() as u32).map(PortId);
    ports.find(|&port| (topology.from(port), topology.to(port)) == ends).expect("they are linked")
}

/// Returns `topology` with the link of `port` at `rate`.
fn with_rate(mut topology: Topology, port: PortId, rate: Rate) -> Topology {
    topology.links[port.index() / 2].rate = rate;
    topology
}

/// Returns, for each uplink of the first leaf, the number of flows whose data it carries.
fn flows_by_uplink(c: &SimConfig) -> Vec<usize> {
    let paths = paths(c);
    uplinks(&c.topology).iter().map(|port| paths.iter().filter(|path| path.contains(&port.0)).count()).collect()
}

/// One of four uplinks has a quarter of the rate, or the link beyond it has: weights are 4, 4, 4 and 1, so a flow takes
/// it with probability 1/13. The number of flows is binomial, within five standard deviations.
#[test]
fn wcmp_has_shares_in_proportion_to_capacity() {
    let n = 5_200;
    let slow = Rate::from_bps(6_250_000_000);
    for ends in [("tor0", "spine0"), ("spine0", "tor1")] {
        let whole = four_spines(2);
        let topology = with_rate(whole.clone(), port(&whole, ends.0, ends.1), slow);
        let c = |balance| balanced(topology.clone(), "line-rate", many_flows(n, 1_000, US), balance);
        let shares = flows_by_uplink(&c(Balance::Wcmp));
        assert_eq!(shares.iter().sum::<usize>(), n as usize);
        for (&share, weight) in shares.iter().zip([1.0, 4.0, 4.0, 4.0]) {
            let (mean, p) = (f64::from(n) * weight / 13.0, weight / 13.0);
            assert!((share as f64 - mean).abs() < 5.0 * (mean * (1.0 - p)).sqrt(), "{shares:?} at {ends:?}");
        }
        let even = flows_by_uplink(&c(Balance::Ecmp));
        assert!(even.iter().all(|&share| 1_100 < share && share < 1_500), "{even:?}");
    }
}

#[test]
fn wcmp_is_ecmp_where_paths_are_equal() {
    let print = |balance| {
        let c = balanced(four_spines(4), "dctcp", many_flows(200, 20_000, US), balance);
        run(c).1.fingerprint
    };
    assert_eq!(print(Balance::Wcmp), print(Balance::Ecmp));
}

/// Two spines with two links each to a leaf: one link of the first spine down to the receivers dies. Once all have
/// heard, a third of the flows goes by it, and none of their packets is lost.
#[test]
fn wcmp_weighs_what_is_left_after_a_failure() {
    let mut lines = vec!["12 4 16".to_owned(), "0 1 2 3".to_owned()];
    for (leaf, spine) in [(0, 2), (0, 2), (0, 3), (0, 3), (1, 2), (1, 2), (1, 3), (1, 3)] {
        lines.push(format!("{leaf} {spine} 25Gbps 1us 0"));
    }
    lines.extend((0..8).map(|host| format!("{} {} 25Gbps 1us 0", host + 4, host / 4)));
    let topology = parse_topology_file(&lines.join("\n")).expect("it reads");
    let of = |i: u32| FlowSpec {
        sport: i as u16,
        ..flow(4 + i % 4, 8 + i / 4 % 4, 1_000, Time::from_us(500) + US * u64::from(i))
    };
    let sent = |balance| {
        let mut c = balanced(topology.clone(), "line-rate", (0..3_000).map(of).collect(), balance);
        let flap = Some(Flap { down_at: US, up_at: Time::MAX, period: None });
        // The link 4 has the ports 8 and 9, of which 9 leads from the spine down to the leaf.
        c.faults = vec![FaultConfig { ports: vec![PortId(8), PortId(9)], flap, ..FaultConfig::NONE }];
        c.fabric.reroute = Some(Reroute { delay: US * 10, convergence: US * 100, rehash: Rehash::Modulo });
        let upward: Vec<PortId> = (0..4).map(|link| PortId(2 * link)).collect();
        c.probes = vec![fairrate_sim::ProbeSpec::Ports { ports: upward, every: Time::from_ms(10) }];
        (c.stop.at, c.stop.when_flows_done) = (Some(Time::from_ms(10)), false);
        let (told, totals) = run(c);
        assert_eq!((totals.drops.total(), totals.flows_unfinished), (0, 0));
        told.ports.iter().rev().take(4).map(|sample| sample.tx_bytes).collect::<Vec<_>>()
    };
    let share = |sent: &[u64]| {
        // Samples are in the order of ports, here reversed: the first spine's links come last.
        (sent[2] + sent[3]) as f64 / sent.iter().sum::<u64>() as f64
    };
    let (wcmp, ecmp) = (share(&sent(Balance::Wcmp)), share(&sent(Balance::Ecmp)));
    assert!((wcmp - 1.0 / 3.0).abs() < 0.045, "{wcmp}");
    assert!((ecmp - 0.5).abs() < 0.05, "{ecmp}");
}

/// With one salt for all switches, a flow that takes the n-th of two ports at its ToR takes the n-th at the next
/// switch, too. So two of four core switches carry everything between pods.
#[test]
fn one_salt_polarises() {
    let (host_rate, us) = (Rate::from_gbps(25), Time::from_us(1));
    let tree =
        FatTreeK { k: 4, hosts_per_edge: None, host_rate, fabric_rate: host_rate, delay: us, core_delay: us }.build();
    let cores = |hash| {
        let of = |i: u32| FlowSpec { sport: i as u16, ..flow(i % 4, 4 + i % 12, 1_000, Time::ZERO) };
        let mut c = balanced(tree.clone(), "line-rate", (0..400).map(of).collect(), Balance::Ecmp);
        c.fabric.ecmp = hash;
        let passed: std::collections::BTreeSet<String> = (paths(&c).iter().flatten())
            .map(|&port| c.topology.nodes[c.topology.to(PortId(port)).index()].name.clone())
            .filter(|name| name.starts_with("core"))
            .collect();
        passed.len()
    };
    assert_eq!((cores(EcmpHash::Mix), cores(EcmpHash::OneSalt)), (4, 2));
}

/// Two paced flows keep a port each; without stickiness they take all four.
#[test]
fn sticky_flows_stay() {
    let used = |sticky| {
        let flows = (0..2).map(|i| flow(i, 4 + i, 4_000_000, US * u64::from(i))).collect();
        let scheme = Adaptive { sticky, ..adaptive([Some(Signal::Exact), None, None]) };
        let sent = sent_by_uplinks(balanced(four_spines(2), "line-rate", flows, Balance::Adaptive(scheme)));
        sent.iter().filter(|&&n| 0 < n).count()
    };
    assert_eq!(used(Some(Time::from_us(10))), 2);
    assert_eq!(used(None), SPINES as usize);
}

/// The use of links is read over 30 us, so that data of half the links' capacity is even in the long run.
#[test]
fn the_use_of_links_evens_out() {
    let scheme = adaptive([Some(Signal::Utilization), None, None]);
    let flows = (0..2).map(|i| flow(i, 4 + i, 5_000_000, Time::ZERO)).collect();
    let sent = sent_by_uplinks(balanced(four_spines(2), "line-rate", flows, Balance::Adaptive(scheme)));
    let mean = sent.iter().sum::<u64>() as f64 / 4.0;
    assert!(sent.iter().all(|&n| (n as f64 / mean - 1.0).abs() < 0.1), "{sent:?}");
}

/// A spine's link down to the receivers has a tenth of the rate, and PFC pauses what leads to the spine. A switch that
/// looks at pauses sends three hosts' data by the other spines; at random, all data comes at four times the slow rate.
#[test]
fn paused_ports_are_avoided() {
    let whole = four_spines(2);
    let slow = with_rate(whole.clone(), port(&whole, "spine0", "tor1"), Rate::from_bps(2_500_000_000));
    let gbps = |balance| {
        let flows = (0..3).map(|i| flow(i, 4 + i, 10_000_000, Time::ZERO)).collect();
        let mut c = balanced(slow.clone(), "line-rate", flows, balance);
        (c.fabric.pfc, c.fabric.buffer) = (Pfc::Ingress, Bytes::new(1 << 20));
        c.transport.reorder_window = Time::from_ms(2);
        let (told, totals) = run(c);
        assert_eq!((totals.drops.of(DropCause::Fault), totals.flows_unfinished), (0, 0));
        let end_ps = told.flows.iter().filter_map(|flow| flow.fct).map(Time::as_ps).max().expect("flows") as f64;
        3.0 * 10e6 * 8.0 / end_ps * 1e3
    };
    let pauses = gbps(Balance::Adaptive(adaptive([Some(Signal::Pauses), None, None])));
    let spray = gbps(Balance::Spray);
    assert!(spray < 12.0 && 3.0 * spray < pauses, "{spray} {pauses}");
}

/// A level that was read holds for `refresh`: until then, all packets take the port that was best.
#[test]
fn readings_hold_for_a_while() {
    let scheme = |refresh| Balance::Adaptive(Adaptive { refresh, ..adaptive([Some(Signal::Exact), None, None]) });
    let longest = |refresh| {
        let flows = (0..4).map(|host| flow(host, 4 + host, 2_000_000, Time::ZERO)).collect();
        let mut c = balanced(four_spines(2), "line-rate", flows, scheme(refresh));
        c.probes = vec![fairrate_sim::ProbeSpec::Ports { ports: uplinks(&c.topology), every: Time::from_us(1) }];
        run(c).0.ports.iter().map(|sample| sample.qlen_bytes).max().expect("samples")
    };
    assert!(2 * longest(Time::ZERO) < longest(Time::from_us(20)));
}

/// A spine's link down to the receivers has a tenth of the rate. No queue of the first leaf shows it; CONGA's leaf
/// learns it from what comes back, and sends few of the flows that way.
#[test]
fn conga_learns_of_a_slow_link_beyond_its_uplinks() {
    let whole = four_spines(2);
    let slow = with_rate(whole.clone(), port(&whole, "spine0", "tor1"), Rate::from_bps(2_500_000_000));
    let (share, fct): (Vec<f64>, Vec<f64>) = [CONGA, Balance::Flowlet { gap: Time::from_us(100) }]
        .map(|balance| {
            let mut c = balanced(slow.clone(), "dctcp", many_flows(800, 50_000, US * 8), balance);
            (c.fabric.pfc, c.fabric.buffer) = (Pfc::Off, Bytes::new(100 << 20));
            let (told, totals) = run(c.clone());
            assert_eq!(totals.flows_unfinished, 0);
            let fcts = told.flows.iter().filter_map(|flow| flow.fct).map(|fct| fct.as_ps() as f64 * 1e-6);
            // Without counting those that are at work when the probe ends.
            let sent = sent_by_uplinks(c);
            // Uplinks are in the order of ports and samples reversed: the first spine comes last.
            (sent[3] as f64 / sent.iter().sum::<u64>() as f64, fcts.sum::<f64>() / 800.0)
        })
        .into_iter()
        .unzip();
    assert!(share[0] < 0.6 * share[1] && 0.2 < share[1], "{share:?}");
    assert!(2.0 * fct[0] < fct[1], "{fct:?} us");
}

/// All have the same fingerprint on any number of threads.
#[test]
fn threads_do_not_change_choices() {
    let full = Signal::Levels { full: Bytes::new(20_000) };
    let all = Adaptive {
        signals: [Some(Signal::Pauses), Some(full), Some(Signal::Utilization)],
        refresh: Time::from_ns(100),
        sticky: Some(Time::from_us(2)),
    };
    for balance in [Balance::Wcmp, CONGA, Balance::Adaptive(all)] {
        let whole = four_spines(8);
        let slow = with_rate(whole.clone(), port(&whole, "spine0", "tor1"), Rate::from_bps(6_250_000_000));
        let of = |i: u32| FlowSpec { sport: i as u16, ..flow(i % 32, (i * 7 + 5) % 32, 60_000, US * u64::from(i / 8)) };
        let c = balanced(slow, "dctcp", (0..600).filter(|i| i % 32 != (i * 7 + 5) % 32).map(of).collect(), balance);
        let print = |threads| {
            let mut simulation = Simulation::with_threads(c.clone(), threads);
            simulation.run(&mut ()).expect("the run does not stall");
            simulation.totals().fingerprint
        };
        let prints = [1, 2, 3].map(print);
        assert!(prints.iter().all(|&print| print == prints[0]), "{balance:?}: {prints:x?}");
    }
}
