//! The results of a run do not depend on the number of threads, to the last bit.

use std::path::Path;

use fairrate_control::ALGORITHMS;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{FlowOutcome, Observation, Recorder, RttSample, RunTotals, SimConfig, Simulation, Sink, Wants};

/// Numbers of threads: one, as many as pods or fewer, and more than there are pods.
const THREADS: [usize; 4] = [1, 2, 3, 8];

/// Pods of four hosts, a fabric with PFC and marks, and difficult traffic: an incast, flows that stop, flows that wait
/// for others, short flows at random, and samples of all of them.
const MIXED: &str = r#"
duration = "400us"
[topology]
kind = "fat-tree-k"
k = 4
[switch]
buffer = "400KB"
[[traffic]]
kind = "poisson"
sizes = "websearch"
load = 0.5
stop = "200us"
[[traffic]]
kind = "incast"
receiver = 0
senders = [2, 5, 7, 9, 12, 15]
bytes = "60KB"
[[traffic]]
kind = "closed-loop"
sizes = "fb-web"
load = 0.2
senders = [1, 6, 11]
receivers = [3, 14]
stop = "300us"
[[traffic]]
kind = "incast"
receiver = 13
senders = [4, 8]
bytes = "endless"
stop = "150us"
[[probe]]
queues = "all-switch-links"
every = "7us"
[[probe]]
flows = "all"
every = "11us"
"#;

/// A sink that keeps all samples, round-trip times too.
#[derive(Default, PartialEq)]
struct Everything {
    recorder: Recorder,
    rtts: Vec<RttSample>,
}

impl Sink for Everything {
    fn wants(&self) -> Wants {
        Wants { rtts: true, ..Wants::default() }
    }
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.recorder.flow(outcome);
    }
    fn observe(&mut self, observation: &Observation) {
        match observation {
            Observation::Rtt(sample) => self.rtts.push(*sample),
            other => self.recorder.observe(other),
        }
    }
}

fn read(text: &str, sets: &[(&str, &str)], cc: Option<&str>) -> Option<SimConfig> {
    let sets = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let overrides = Overrides { sets, cc: cc.map(str::to_owned), ..Overrides::default() };
    Scenario::from_toml(text, "case.toml", Path::new("."), &overrides).ok().map(Scenario::into_sim_config)
}

fn run(config: &SimConfig, threads: usize) -> (Everything, RunTotals, Vec<FlowOutcome>, usize) {
    let mut simulation = Simulation::with_threads(config.clone(), threads);
    let mut everything = Everything::default();
    // In pieces, which must not change the results either.
    while !simulation.advance(10_000, &mut everything).expect("nothing gets stuck").finished {}
    (everything, simulation.totals(), simulation.unfinished(), simulation.threads())
}

/// Runs a scenario on all numbers of threads and compares the results. Returns the largest number of threads it used.
fn check(name: &str, config: &SimConfig) -> usize {
    let (everything, totals, unfinished, threads) = run(config, 1);
    assert_eq!(threads, 1);
    assert!(0 < totals.events && !everything.recorder.flows.is_empty(), "{name}: nothing happened");
    let mut most = 1;
    for n in &THREADS[1..] {
        let (everything_n, totals_n, unfinished_n, threads) = run(config, *n);
        assert_eq!(totals, totals_n, "{name} on {n} threads");
        assert_eq!(unfinished, unfinished_n, "{name} on {n} threads");
        assert!(everything == everything_n, "{name} on {n} threads tells something else");
        most = most.max(threads);
    }
    most
}

#[test]
fn every_algorithm_gives_the_same_bits_on_any_number_of_threads() {
    let mut n_checked = 0;
    for algorithm in ALGORITHMS {
        for kind in ["rdma", "tcp", "uet"] {
            let Some(config) = read(MIXED, &[("transport.kind", kind)], Some(algorithm.name)) else { continue };
            let threads = check(&format!("{} over {kind}", algorithm.name), &config);
            let expected = if config.cc.needs().feedback.oracle.is_some() { 1 } else { 8 };
            assert_eq!(threads, expected, "{}", algorithm.name);
            n_checked += 1;
        }
    }
    assert!(ALGORITHMS.len() < n_checked, "most algorithms run over both transports");
}

#[test]
fn subflows_faults_disciplines_and_lossy_fabrics_do_too() {
    for (cc, sets) in [
        (
            "ratemp",
            &[("transport.kind", "tcp"), ("transport.tcp.subflows", "3"), ("transport.tcp.paths", "disjoint")][..],
        ),
        ("dctcp", &[("switch.pfc", "false"), ("switch.queue_limit", "30KB")]),
        ("dctcp", &[("transport.kind", "tcp"), ("switch.pfc", "false"), ("switch.queue", "red")]),
        ("pfabric", &[("transport.kind", "tcp"), ("switch.pfc", "false"), ("switch.queue_limit", "30KB")]),
        ("cubic", &[("transport.kind", "tcp"), ("switch.pfc", "false"), ("switch.queue", "sfq-codel")]),
        ("flowtune", &[("transport.kind", "tcp"), ("allocator.intermediaries", "2")]),
        ("homa", &[("switch.pfc", "false"), ("switch.buffer", "60KB"), ("transport.rto", "50us")]),
        ("powertcp", &[("switch.buffer", "60KB"), ("stop", "all-flows-done"), ("duration", "20ms")]),
    ] {
        let config = read(MIXED, sets, Some(cc)).unwrap_or_else(|| panic!("{cc} {sets:?}"));
        assert_eq!(check(&format!("{cc} {sets:?}"), &config), 8);
    }
    let faults = format!(
        "{MIXED}[[fault]]\nlinks = \"host-links\"\nloss = 0.002\nreorder = 0.01\nreorder_delay = \"2us\"\n\
         [[fault]]\nlinks = [\"h0->tor0\", \"agg2->tor3\"]\ndown_at = \"50us\"\nup_at = \"90us\"\n"
    );
    let config = read(&faults, &[("transport.rto", "100us")], Some("hpcc")).unwrap();
    assert!(1 < check("faults", &config));
}

#[test]
fn pauses_cross_the_borders_of_parts() {
    let sets = [("switch.buffer", "60KB"), ("switch.pfc", "true")];
    let config = read(MIXED, &sets, Some("dcqcn")).expect("it reads");
    let (everything, totals, ..) = run(&config, 8);
    assert!(100 < totals.counts.pfc_pauses && 100 < everything.recorder.pfc.len(), "{}", totals.counts.pfc_pauses);
    check("pauses", &config);
}

#[test]
fn what_knows_of_the_whole_network_stays_on_one_thread() {
    let convergence = format!("{MIXED}[[probe]]\nconvergence = true\n");
    let config = read(&convergence, &[], Some("perc")).expect("it reads");
    assert_eq!(check("convergence", &config), 1);
    let config = read(MIXED, &[("profile", "ns3")], Some("hpcc")).expect("it reads");
    assert_eq!(check("ns3", &config), 1);
}
