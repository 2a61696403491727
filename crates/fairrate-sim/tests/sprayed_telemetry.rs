//! HPCC and PowerTCP over packets that take several paths: they keep the telemetry of each path apart.

use crate::common::{algorithm, algorithm_with, config, four_spines, run};
use fairrate_control::{AlgorithmConfig, RawValue};
use fairrate_sim::workload::Permutation;
use fairrate_sim::{Balance, Entropy, EntropyScheme, Recovery, SimConfig};
use fairrate_units::{Bytes, Time};

fn per_path(name: &str) -> AlgorithmConfig {
    algorithm_with(name, &[("per_path", RawValue::Bool(true))])
}

/// Returns a permutation of 16 hosts under four leaves.
fn permutation(cc: AlgorithmConfig, balance: Balance, seed: u64) -> SimConfig {
    let topology = four_spines(4);
    let permutation = Permutation { bytes: Bytes::new(2_000_000), start: Time::ZERO, hosts: None };
    let flows = permutation.generate(&topology, seed, 0).expect("enough hosts");
    let mut c = config(topology, cc, flows);
    (c.fabric.balance, c.seed) = (balance, seed);
    (c.transport.recovery, c.transport.reorder_window) = (Recovery::SelectiveRepeat, Time::from_us(200));
    if balance == Balance::Host {
        c.transport.entropy = Some(Entropy { scheme: EntropyScheme::Oblivious, values: 16 });
    }
    c
}

/// Returns the mean slowdown of the flows.
fn slowdown(c: SimConfig) -> f64 {
    let (recorder, totals) = run(c);
    assert_eq!((totals.flows_done, totals.drops.total()), (16, 0));
    let slowdown =
        |f: &fairrate_sim::FlowOutcome| f.fct.expect("it is done").as_ps() as f64 / f.ideal_fct.as_ps() as f64;
    recorder.flows.iter().map(slowdown).sum::<f64>() / 16.0
}

/// Packets of a flow take all paths, and each is compared with the one before on its own path.
#[test]
fn with_histories_by_path_spraying_beats_hashing() {
    for name in ["hpcc", "powertcp"] {
        let mean = |cc: fn(&str) -> AlgorithmConfig, balance| {
            (1..=3).map(|seed| slowdown(permutation(cc(name), balance, seed))).sum::<f64>() / 3.0
        };
        let (hashed, sprayed) = (mean(algorithm, Balance::Ecmp), mean(per_path, Balance::RoundRobin));
        let by_hosts = mean(per_path, Balance::Host);
        println!("{name}: {hashed:.3} by hash, {sprayed:.3} in turn, {by_hosts:.3} by hosts");
        assert!(sprayed < 0.8 * hashed && sprayed < 1.35, "{name}: {sprayed} in turn, {hashed} by hash");
        assert!(by_hosts < 0.9 * hashed, "{name}: {by_hosts} by hosts, {hashed} by hash");
    }
}

/// On fixed paths there is one history in any case.
#[test]
fn on_fixed_paths_the_option_changes_nothing() {
    for name in ["hpcc", "powertcp"] {
        let times = |cc| run(permutation(cc, Balance::Ecmp, 1)).0.flows;
        assert_eq!(times(algorithm(name)), times(per_path(name)));
    }
}
