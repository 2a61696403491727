//! Every example runs, cut short, and shows what it is there to show.

mod common;

use std::path::{Path, PathBuf};

use common::{fresh_dir, run, stderr, stdout};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs an example with changes, and gives its JSON.
fn run_example(name: &str, sets: &[&str]) -> serde_json::Value {
    let (file, out) = (examples().join(format!("{name}.toml")), fresh_dir(&format!("example_{name}")));
    let mut args = vec!["run", file.to_str().unwrap(), "--quiet", "--json", "--out", out.to_str().unwrap()];
    for set in sets {
        args.extend(["--set", set]);
    }
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn number(json: &serde_json::Value, pointer: &str) -> f64 {
    json.pointer(pointer).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {json}"))
}

#[test]
fn every_example_has_a_test_here() {
    let mut names: Vec<String> = std::fs::read_dir(examples())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .map(|p| p.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["fairness", "incast10", "incast255", "websearch", "websearch20"]);
}

#[test]
fn incast10_fills_the_port_of_the_receiver() {
    let json = run_example("incast10", &["duration=1200us"]);
    assert!(0.9 < number(&json, "/metrics/ports/0/utilisation"));
    assert!(20e3 < number(&json, "/metrics/ports/0/qlen_peak_bytes"));
    assert_eq!(number(&json, "/metrics/drops"), 0.0);
}

#[test]
fn incast255_answers_arrive() {
    let json = run_example("incast255", &["duration=1500us"]);
    assert_eq!(number(&json, "/metrics/slowdown/0/n"), 255.0);
    assert_eq!(number(&json, "/metrics/flows_unfinished"), 0.0);
}

#[test]
fn fairness_has_four_flows_that_come_and_go() {
    // A tenth of the time: arrivals every 1 ms, 4 ms each.
    let sets = ["duration=7200us", "traffic.0.start=100us", "traffic.0.interval=1ms", "traffic.0.hold=4ms"];
    let json = run_example("fairness", &[&sets[..], &["probe.1.every=10us", "probe.0.every=1us"]].concat());
    assert!(0.9 < number(&json, "/metrics/jain"), "{}", json["metrics"]["jain"]);
    assert!(0.9 < number(&json, "/metrics/ports/0/utilisation"));
}

#[test]
fn websearch_offers_its_load_to_every_uplink() {
    for name in ["websearch", "websearch20"] {
        let json = run_example(name, &["traffic.0.stop=300us", "duration=500us", "stop=duration"]);
        assert_eq!(json["metrics"]["ports"].as_array().unwrap().len(), 16, "{name}");
        assert!(0.0 < number(&json, "/metrics/all_ports/utilisation"), "{name}");
        assert!(0.0 < number(&json, "/metrics/flows_done"), "{name}");
    }
}
