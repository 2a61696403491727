//! Hosts that choose paths by entropy values: what switches make of the values, and what each scheme comes to where
//! paths differ.

use crate::common::{algorithm, config, flow, four_spines, run, sent_by_uplinks, uplinks};
use fairrate_sim::topology::FatTreeK;
use fairrate_sim::workload::Permutation;
use fairrate_sim::{Balance, Entropy, EntropyScheme, FaultConfig, Flap, Recovery, SimConfig, Simulation, Switching};
use fairrate_units::{Bytes, Rate, Time};

const SCHEMES: [EntropyScheme; 6] = [
    EntropyScheme::Oblivious,
    EntropyScheme::Bitmap,
    EntropyScheme::Reps,
    EntropyScheme::RepsLegacy,
    EntropyScheme::Mixed,
    EntropyScheme::Plb,
];
/// Those that spread the packets of a flow from the beginning.
const SPRAYING: &[EntropyScheme] = SCHEMES.split_at(5).0;

fn chosen(mut c: SimConfig, scheme: EntropyScheme) -> SimConfig {
    (c.fabric.balance, c.transport.recovery) = (Balance::Host, Recovery::SelectiveRepeat);
    c.transport.entropy = Some(Entropy { scheme, values: 64 });
    c.transport.reorder_window = Time::from_us(200);
    c
}

/// 64 values, each used equally often, are hashed onto four links: each link has the same share as of 64 balls. With
/// one value all packets take one path, and so they do under PLB without congestion.
#[test]
fn values_are_hashed_onto_links() {
    let c = || config(four_spines(2), algorithm("line-rate"), vec![flow(0, 4, 6_400_000, Time::ZERO)]);
    let sent = sent_by_uplinks(chosen(c(), EntropyScheme::Oblivious));
    assert_eq!(sent.iter().sum::<u64>(), 6_400);
    // Balls on one of four links: a mean of 16 and a standard deviation of 3.5, each ball 100 packets.
    assert!(sent.iter().all(|&n| n % 100 == 0 && n.abs_diff(1_600) < 4 * 350), "{sent:?}");
    let mut one_value = chosen(c(), EntropyScheme::Oblivious);
    one_value.transport.entropy = Some(Entropy { scheme: EntropyScheme::Oblivious, values: 1 });
    for c in [one_value, chosen(c(), EntropyScheme::Plb)] {
        assert_eq!(sent_by_uplinks(c).iter().filter(|&&n| 0 < n).count(), 1);
    }
}

/// One of four uplinks has a quarter of the rate, and marks. Oblivious spraying ends at four times that link's rate, k
/// phi = 25 Gb/s. A picker that learns from marks comes nearer to the rate of all links, k - 1 + phi = 81.25 Gb/s.
#[test]
fn learning_avoids_a_slow_link() {
    let gbps = |scheme| {
        let mut topology = four_spines(2);
        let slow = uplinks(&topology)[0];
        topology.links[slow.index() / 2].rate = Rate::from_bps(6_250_000_000);
        let flows: Vec<_> = (0..3).map(|host| flow(host, 4 + host, 20_000_000, Time::ZERO)).collect();
        let (told, totals) = run(chosen(config(topology, algorithm("dctcp"), flows), scheme));
        assert_eq!(totals.flows_unfinished, 0);
        let end_ps = told.flows.iter().filter_map(|flow| flow.fct).map(Time::as_ps).max().expect("flows") as f64;
        3.0 * 20e6 * 8.0 * 1.048 / end_ps * 1e3
    };
    let [oblivious, legacy, mixed] =
        [EntropyScheme::Oblivious, EntropyScheme::RepsLegacy, EntropyScheme::Mixed].map(gbps);
    // The share of the slow link is that of 3 * 64 balls: a quarter, with a standard deviation of an eighth of that.
    assert!(oblivious < 1.0 / (1.0 - 3.0 / 8.0) * 25.0, "oblivious: {oblivious} Gb/s");
    assert!(2.0 * oblivious < legacy && 2.0 * oblivious < mixed, "{oblivious} {legacy} {mixed} Gb/s");
    // The window ends at the first byte that is missing, which is on the slow link. When it comes, a window is sent at
    // once: REPS has eight good values for it, and takes random ones for the rest.
    assert!(gbps(EntropyScheme::Reps) < oblivious);
}

/// A spine goes down for good while a flow is under way. Switches do not react. A flow whose values are remembered good
/// ones comes through, and so does a flow that takes another path after a timeout.
#[test]
fn hosts_find_a_way_around_a_dead_link() {
    for scheme in [EntropyScheme::Reps, EntropyScheme::Plb] {
        for seed in 1..=4 {
            let flows: Vec<_> = (0..4).map(|host| flow(host, 4 + host, 5_000_000, Time::ZERO)).collect();
            let mut c = chosen(config(four_spines(2), algorithm("dctcp"), flows), scheme);
            (c.seed, c.transport.rto) = (seed, Some(Time::from_us(300)));
            let down_at = Time::from_us(200);
            let port = uplinks(&c.topology)[1];
            let flap = Some(Flap { down_at, up_at: Time::MAX, period: None });
            c.faults = vec![FaultConfig { ports: vec![port, port.reverse()], flap, ..FaultConfig::NONE }];
            let totals = run(c).1;
            assert_eq!(totals.flows_unfinished, 0, "{scheme:?}, seed {seed}");
        }
    }
}

/// A permutation on a fat-tree has the same fingerprint on any number of threads, and the same results with and without
/// spans.
#[test]
fn threads_and_spans_do_not_change_choices() {
    let topology = FatTreeK {
        k: 4,
        hosts_per_edge: None,
        host_rate: Rate::from_gbps(25),
        fabric_rate: Rate::from_gbps(25),
        delay: Time::from_us(1),
        core_delay: Time::from_us(1),
    }
    .build();
    let permutation = Permutation { bytes: Bytes::new(300_000), start: Time::ZERO, hosts: None };
    let flows = permutation.generate(&topology, 5, 0).expect("enough hosts");
    for scheme in SCHEMES {
        let c = chosen(config(topology.clone(), algorithm("dctcp"), flows.clone()), scheme);
        let print = |threads, switching| {
            let mut simulation = Simulation::with_switching(c.clone(), threads, switching);
            simulation.run(&mut ()).expect("the run does not stall");
            simulation.totals().fingerprint
        };
        let prints = [1, 2, 3].map(|threads| print(threads, Switching::Spans));
        assert!(prints.iter().all(|&one| one == print(1, Switching::Events)), "{scheme:?}: {prints:x?}");
    }
}

/// A permutation on 128 hosts of 100 Gb/s: by hashing it comes to less than half of the links, by each scheme that
/// sprays to more than 0.8.
#[test]
fn spraying_by_hosts_fills_a_fat_tree() {
    let topology = FatTreeK {
        k: 8,
        hosts_per_edge: None,
        host_rate: Rate::from_gbps(100),
        fabric_rate: Rate::from_gbps(100),
        delay: Time::from_us(1),
        core_delay: Time::from_us(1),
    }
    .build();
    let permutation = Permutation { bytes: Bytes::new(1_000_000), start: Time::ZERO, hosts: None };
    let flows = permutation.generate(&topology, 5, 0).expect("enough hosts");
    let slowdown = |c: SimConfig| {
        let told = run(c).0;
        let of = |flow: &fairrate_sim::FlowOutcome| {
            flow.fct.expect("it is done").as_ps() as f64 / flow.ideal_fct.as_ps() as f64
        };
        told.flows.iter().map(of).sum::<f64>() / told.flows.len() as f64
    };
    let c = || config(topology.clone(), algorithm("line-rate"), flows.clone());
    let mut hashed = chosen(c(), EntropyScheme::Oblivious);
    (hashed.fabric.balance, hashed.transport.entropy) = (Balance::Ecmp, None);
    assert!(2.0 < slowdown(hashed));
    for &scheme in SPRAYING {
        let mean = slowdown(chosen(c(), scheme));
        assert!(mean < 1.25, "{scheme:?}: {mean}");
    }
}
