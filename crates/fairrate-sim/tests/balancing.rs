//! Schemes that choose a port for each packet: what each of them must do on a leaf-spine, with links that differ and
//! links that fail, and with any number of threads.

use crate::common::{SPINES, algorithm, config, flow, four_spines, run, sent_by_uplinks, uplinks};
use fairrate_sim::topology::FatTreeK;
use fairrate_sim::workload::Permutation;
use fairrate_sim::{
    Adaptive, Balance, Conga, Disorder, DropCause, FaultConfig, Flap, ProbeSpec, Recovery, Rehash, Reroute, Signal,
    SimConfig, Simulation, Switching,
};
use fairrate_units::{Bytes, Rate, Time};

const GAP: Time = Time::from_us(100);
/// Returns adaptive routing by one measure that is read at once.
const fn by(signal: Signal) -> Balance {
    Balance::Adaptive(Adaptive { signals: [Some(signal), None, None], refresh: Time::ZERO, sticky: None })
}

const LEVELS: Balance = by(Signal::Levels { full: Bytes::new(750_000) });
const EXACT: Balance = by(Signal::Exact);
const CONGA: Balance = Balance::Conga(Conga { gap: GAP, memory: Time::from_us(160), age: Time::from_ms(10) });
const SCHEMES: [Balance; 7] = [
    Balance::Spray,
    Balance::RoundRobin,
    Balance::Flowlet { gap: GAP },
    CONGA,
    LEVELS,
    EXACT,
    Balance::Drill { samples: 2, memory: 1 },
];

fn balanced(mut c: SimConfig, balance: Balance) -> SimConfig {
    (c.fabric.balance, c.transport.recovery) = (balance, Recovery::SelectiveRepeat);
    c.transport.reorder_window = Time::from_us(200);
    c
}

/// Each of the four links upward carries a quarter of a flow's packets: a binomial number, within five standard
/// deviations.
#[test]
fn spraying_is_even() {
    let n = 10_000_u64;
    let c = config(four_spines(2), algorithm("line-rate"), vec![flow(0, 4, n * 1_000, Time::ZERO)]);
    let sent = sent_by_uplinks(balanced(c, Balance::Spray));
    assert_eq!(sent.iter().sum::<u64>(), n);
    let (mean, deviation) = (n as f64 / 4.0, (n as f64 * 0.25 * 0.75).sqrt());
    assert!(sent.iter().all(|&k| (k as f64 - mean).abs() < 5.0 * deviation), "{sent:?}");
}

#[test]
fn round_robin_is_even_to_a_packet() {
    let c = config(four_spines(2), algorithm("line-rate"), vec![flow(0, 4, 10_001 * 1_000, Time::ZERO)]);
    let mut sent = sent_by_uplinks(balanced(c, Balance::RoundRobin));
    sent.sort_unstable();
    assert_eq!(sent, [2_500, 2_500, 2_500, 2_501]);
}

/// A paced flow leaves no gap, so it is one flowlet and takes one path; without a gap to wait for, it takes all.
#[test]
fn a_paced_flow_is_one_flowlet() {
    let c = || config(four_spines(2), algorithm("line-rate"), vec![flow(0, 4, 4_000_000, Time::ZERO)]);
    let used = |gap| sent_by_uplinks(balanced(c(), Balance::Flowlet { gap })).iter().filter(|&&n| 0 < n).count();
    assert_eq!(used(GAP), 1);
    assert_eq!(used(Time::ZERO), SPINES as usize);
}

/// Four senders fill four uplinks exactly. Where each packet sees the queues, none of them waits for long; at random,
/// they grow like a random walk.
#[test]
fn schemes_that_see_queues_keep_them_short() {
    let flows = (0..4).map(|host| flow(host, 4 + host, 5_000_000, Time::ZERO)).collect::<Vec<_>>();
    let longest = |balance| {
        let mut c = balanced(config(four_spines(2), algorithm("line-rate"), flows.clone()), balance);
        c.probes = vec![ProbeSpec::Ports { ports: uplinks(&c.topology), every: Time::from_us(10) }];
        let (told, totals) = run(c);
        assert_eq!(totals.flows_unfinished, 0);
        told.ports.iter().map(|sample| sample.qlen_bytes).max().expect("samples") / 1_048
    };
    let [spray, adaptive, drill] = [Balance::Spray, EXACT, Balance::Drill { samples: 2, memory: 1 }].map(longest);
    assert!(adaptive <= 4 && drill <= 8 && 8 < spray, "adaptive {adaptive}, drill {drill}, spray {spray} packets");
}

/// One of four uplinks has a quarter of the rate. Even shares end at four times the slow link's rate, shares by queues
/// at the sum of all: k phi against k - 1 + phi of a link's rate, 25 against 81.25 Gb/s. Levels of queues do as well
/// for as long as queues are short enough to have different levels, so with three senders of 25 Gb/s.
#[test]
fn a_slow_uplink_holds_up_even_shares_only() {
    let gbps = |senders, balance| {
        let mut topology = four_spines(2);
        let slow = uplinks(&topology)[0];
        topology.links[slow.index() / 2].rate = Rate::from_bps(6_250_000_000);
        let flows: Vec<_> = (0..senders).map(|host| flow(host, 4 + host, 20_000_000, Time::ZERO)).collect();
        let (told, totals) = run(balanced(config(topology, algorithm("line-rate"), flows), balance));
        assert_eq!(totals.flows_unfinished, 0);
        let end_ps = told.flows.iter().filter_map(|flow| flow.fct).map(Time::as_ps).max().expect("flows") as f64;
        f64::from(senders) * 20e6 * 8.0 * 1.048 / end_ps * 1e3
    };
    let [even, exact, levels] = [(4, Balance::RoundRobin), (4, EXACT), (3, LEVELS)].map(|(n, b)| gbps(n, b));
    assert!(even < 1.02 * 25.0, "even shares: {even} Gb/s");
    assert!(0.9 * 81.25 < exact && exact < 81.25, "exact: {exact} Gb/s");
    assert!(0.97 * 75.0 < levels && levels < 75.0, "levels: {levels} Gb/s");
}

/// One of a switch's uplinks is down for a while: whatever the scheme, no packet is put onto it, and only the packets
/// that were on it are lost.
#[test]
fn links_that_are_down_are_not_taken() {
    for balance in SCHEMES {
        let c = config(four_spines(2), algorithm("line-rate"), vec![flow(0, 4, 5_000_000, Time::ZERO)]);
        let mut c = balanced(c, balance);
        c.fabric.reroute = Some(Reroute { delay: Time::ZERO, convergence: Time::MAX, rehash: Rehash::Modulo });
        let flap = Some(Flap { down_at: Time::from_us(100), up_at: Time::from_ms(1), period: None });
        c.faults = vec![FaultConfig { ports: vec![uplinks(&c.topology)[0]], flap, ..FaultConfig::NONE }];
        let (told, totals) = run(c);
        // A link of 1 us at 25 Gb/s has up to 3 packets of 1,048 B on it, and one more is being sent.
        assert!(totals.drops.of(DropCause::Fault) <= 4, "{balance:?}: {}", totals.drops.of(DropCause::Fault));
        let fct = told.flows[0].fct.expect("it is done");
        assert!(fct < told.flows[0].ideal_fct * 2, "{balance:?}: {fct}");
    }
}

/// A packet passes the number of links of a shortest path.
#[test]
fn paths_are_the_shortest() {
    let topology = FatTreeK {
        k: 4,
        hosts_per_edge: None,
        host_rate: Rate::from_gbps(25),
        fabric_rate: Rate::from_gbps(100),
        delay: Time::from_us(1),
        core_delay: Time::from_us(1),
    }
    .build();
    let permutation = Permutation { bytes: Bytes::new(50_000), start: Time::ZERO, hosts: None };
    let flows = permutation.generate(&topology, 3, 0).expect("enough hosts");
    let c = config(topology, algorithm("swift"), flows);
    let (plain, by_flow) = run(c.clone());
    for balance in SCHEMES {
        let (told, by_packet) = run(balanced(c.clone(), balance));
        assert_eq!(by_packet.packet_hops, by_flow.packet_hops, "{balance:?}");
        assert_eq!((told.flows.len(), by_packet.flows_unfinished), (plain.flows.len(), 0), "{balance:?}");
    }
}

/// A flow alone never overtakes itself under round robin, as each later packet leaves later and waits nowhere. Of four
/// flows that share uplinks at random, packets come late; no further ahead than the longest queue and what the other
/// links carry meanwhile. On one path there is no disorder.
#[test]
fn disorder_is_recorded_as_it_is() {
    let disorder = |n: u32, balance| {
        let flows = (0..n).map(|host| flow(host, 4 + host, 1_000_000, Time::ZERO)).collect();
        run(balanced(config(four_spines(2), algorithm("line-rate"), flows), balance)).0.flows[0].disorder
    };
    assert_eq!(disorder(1, Balance::RoundRobin).late_packets, 0);
    assert_eq!(disorder(4, Balance::Ecmp), Disorder::default());
    let spray = disorder(4, Balance::Spray);
    assert!(100 < spray.late_packets && spray.late_packets < 1_000, "{spray:?}");
    assert!(1_000 <= spray.extent_bytes && spray.extent_bytes < spray.span_bytes, "{spray:?}");
    assert!(spray.span_bytes < 100_000, "{spray:?}");
}

/// Receivers that wait take no disorder for a loss, so nothing is sent twice; those that do not wait do.
#[test]
fn waiting_receivers_tell_disorder_from_loss() {
    let flows = (0..4).map(|host| flow(host, 4 + host, 1_000_000, Time::ZERO)).collect::<Vec<_>>();
    let sent_again = |window| {
        let mut c = balanced(config(four_spines(2), algorithm("dctcp"), flows.clone()), Balance::Spray);
        c.transport.reorder_window = window;
        let (told, totals) = run(c);
        assert_eq!((totals.drops.total(), totals.flows_unfinished), (0, 0));
        told.flows.iter().map(|flow| flow.retransmitted_bytes).sum::<u64>()
    };
    assert_eq!(sent_again(Time::from_us(100)), 0);
    assert!(100_000 < sent_again(Time::ZERO));
}

/// Two parallel links, one faster and the other shorter: on either of them, a packet takes no less than the ideal time.
#[test]
fn the_ideal_is_a_lower_bound_where_links_differ() {
    let text = "4 2 4\n2 3\n0 2 25Gbps 1us 0\n2 3 100Gbps 20us 0\n2 3 25Gbps 1us 0\n3 1 25Gbps 1us 0\n";
    let topology = fairrate_sim::topology::parse_topology_file(text).expect("it reads");
    let mut fcts = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut c = config(topology.clone(), algorithm("line-rate"), vec![flow(0, 1, 1_000, Time::ZERO)]);
        (c.fabric.balance, c.seed) = (Balance::Spray, seed);
        let told = run(c).0;
        let (fct, ideal) = (told.flows[0].fct.expect("it is done"), told.flows[0].ideal_fct);
        assert!(ideal <= fct, "{fct} {ideal}");
        fcts.insert(fct);
    }
    assert_eq!(fcts.len(), 2, "some take the one link and some the other");
}

/// A permutation over eight leaves has the same fingerprint on any number of threads.
#[test]
fn threads_do_not_change_choices() {
    for balance in SCHEMES {
        let topology = four_spines(8);
        let permutation = Permutation { bytes: Bytes::new(300_000), start: Time::ZERO, hosts: None };
        let flows = permutation.generate(&topology, 5, 0).expect("enough hosts");
        let c = balanced(config(topology, algorithm("dctcp"), flows), balance);
        let print = |threads| {
            let mut simulation = Simulation::with_switching(c.clone(), threads, Switching::Spans);
            simulation.run(&mut ()).expect("the run does not stall");
            simulation.totals().fingerprint
        };
        let prints = [1, 2, 3].map(print);
        assert!(prints.iter().all(|&print| print == prints[0]), "{balance:?}: {prints:x?}");
    }
}
