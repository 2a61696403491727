//! Weights: flows share in proportion to them, or the scenario is refused.

use std::path::Path;

use fairrate_control::{ALGORITHMS, AlgorithmConfig, Profile};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{Recorder, Simulation};
use fairrate_units::Time;

/// Returns the text of a scenario with two flows of weights 1 and 3 through one link.
fn scenario(cc: &str) -> String {
    let kind = match cc {
        "flowtune" => "tcp",
        "nscc" | "rccc" | "eqds" | "ndp" => "uet",
        _ => "rdma",
    };
    format!(
        r#"
duration = "60001us"
[topology]
kind = "dumbbell"
left = 2
right = 2
host_rate = "25Gbps"
bottleneck_rate = "25Gbps"
[transport]
cc = "{cc}"
kind = "{kind}"
[[traffic]]
kind = "incast"
receiver = "h2"
senders = ["h0"]
bytes = "endless"
[[traffic]]
kind = "incast"
receiver = "h3"
senders = ["h1"]
bytes = "endless"
weight = 3.0
[[probe]]
flows = "all"
every = "30ms"
"#
    )
}

/// Returns the ratio of the second flow's bytes to those of the first from 30 to 60 ms; HPCC needs 30 ms to converge.
fn share(scenario: Scenario) -> f64 {
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut recorder).expect("the run does not stall");
    let at = |flow: u32, ms: u64| {
        let sample = recorder.rates.iter().find(|s| s.flow.0 == flow && s.t == Time::from_ms(ms));
        sample.expect("a sample").delivered_bytes as f64
    };
    (at(1, 60) - at(1, 30)) / (at(0, 60) - at(0, 30))
}

/// HPCC's shares are those of its additive increase in a network without queues; the rest of the difference to 3 is the
/// share of a packet in a window.
#[test]
fn weights_hold_or_are_refused() {
    let mut with_weights = Vec::new();
    for info in ALGORITHMS {
        let has_weights =
            AlgorithmConfig::by_name(info.name, Profile::Paper).expect("registered").needs().feedback.weights;
        match Scenario::from_toml(&scenario(info.name), "weights.toml", Path::new("."), &Overrides::default()) {
            Ok(scenario) => {
                assert!(has_weights, "{} takes weights", info.name);
                let share = share(scenario);
                assert!((share / 3.0 - 1.0).abs() < 0.05, "{}: {share}", info.name);
                with_weights.push(info.name);
            }
            Err(error) => assert!(!has_weights && error.to_string().contains("knows no weights"), "{error}"),
        }
    }
    assert_eq!(with_weights, ["ideal", "hpcc", "flowtune"]);
}
