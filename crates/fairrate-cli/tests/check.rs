//! `fairrate check` describes every example as it will run, and writes nothing.

mod common;

use std::path::Path;

use serde_json::Value;

use self::common::{fresh_dir, run, stderr, stdout};

fn described(example: &str, more: &[&str]) -> Value {
    let path = format!("{}/../../examples/{example}.toml", env!("CARGO_MANIFEST_DIR"));
    let output = run(&[&["check", path.as_str(), "--json"], more].concat());
    assert_eq!(output.status.code(), Some(0), "{example}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn every_example_is_described() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let examples = std::fs::read_dir(dir).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        (path.extension()? == "toml").then(|| path.file_stem().unwrap().to_str().unwrap().to_owned())
    });
    let mut n = 0;
    // A scenario with an algorithm of one's own needs its library.
    for example in examples.filter(|example| example != "own-algorithm") {
        let d = described(&example, &[]);
        assert!(d["hosts"].as_u64() >= Some(2) && d["base_rtt_us"].as_f64() > Some(0.0), "{example}: {d}");
        assert!(d["traffic"].as_array().is_some_and(|blocks| !blocks.is_empty()), "{example}");
        n += 1;
    }
    assert!(20 < n, "{n} examples");
}

/// Numbers worked by hand: 32 hosts of 25 Gb/s and two uplinks of 100 Gb/s a ToR. The run of the example sends as many
/// packets over as many links as it says.
#[test]
fn a_fat_tree_is_described() {
    let d = described("websearch", &[]);
    assert_eq!((&d["hosts"], &d["switches"]), (&256.into(), &20.into()));
    let tor = &d["oversubscription"][0];
    assert_eq!(
        (tor["tier"].as_str(), tor["down_bps"].as_u64(), tor["up_bps"].as_u64()),
        (Some("tor"), Some(800_000_000_000), Some(200_000_000_000))
    );
    let load = |links: &str| d["load"].as_array().unwrap().iter().find(|load| load["links"] == links).unwrap().clone();
    let uplinks = load("tor-uplinks");
    // The scenario asks for 60 % of payload; a packet of 1,000 B has 90 more.
    assert!((uplinks["mean"].as_f64().unwrap() - 0.634).abs() < 0.01, "{uplinks}");
    assert!(
        uplinks["most"].as_f64() > uplinks["mean"].as_f64() && uplinks["most_at"].as_str().unwrap().starts_with("tor")
    );
    assert!(d["run"]["packet_hops"].as_f64() > Some(5e7));
}

#[test]
fn changes_and_algorithms_are_those_of_run() {
    let d = described("rocc-star", &["--cc", "dcqcn", "--set", "topology.rate=100Gbps"]);
    assert_eq!(d["cc"], "dcqcn");
    let port = &d["ports"][0];
    assert_eq!((port["rate_bps"].as_u64(), port["pfc_bytes"][0].as_u64()), (Some(100_000_000_000), Some(800_000)));
    // RED at 100 and 400 KB for 25 Gb/s.
    assert_eq!(port["ecn_bytes"], serde_json::json!([400_000.0, 1_600_000.0]));
    assert!(d["warnings"][0].as_str().unwrap().contains("`ai"), "its steps are for 40 Gb/s");
}

#[test]
fn wrong_files_are_errors_and_nothing_is_written() {
    let dir = fresh_dir("check_wrong");
    let file = dir.join("wrong.toml");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(&file, "[topology]\nkind = \"star\"\nhost = 3\n").unwrap();
    let output = run(&["check", file.to_str().unwrap()]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("hosts"), "{}", stderr(&output));
    let left: Vec<_> = std::fs::read_dir(Path::new(&dir)).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
