//! `fairrate compare --fidelity`: packets, fluids and the alpha-beta model side by side.

use crate::common::{fresh_dir, run, stderr, stdout};

/// Two rings of four ranks whose messages share a link: as fluids they take what the shares say, alone half of that.
const RINGS: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 4
host_rate = "100Gbps"
uplink_rate = "200Gbps"
[transport]
cc = "hpcc"
mtu = "4KB"
[[traffic]]
kind = "collective"
name = "first"
op = "all-reduce"
bytes = "4MB"
hosts = ["h0", "h4", "h1", "h5"]
[[traffic]]
kind = "collective"
op = "all-reduce"
bytes = "4MB"
hosts = ["h2", "h6", "h3", "h7"]
"#;

#[test]
fn fidelities_stand_side_by_side_and_part_where_messages_meet() {
    let dir = fresh_dir("fidelity");
    std::fs::create_dir_all(&dir).expect("the target directory can be written");
    let (path, out) = (dir.join("rings.toml"), dir.join("out"));
    std::fs::write(&path, RINGS).expect("the target directory can be written");
    let (path, out) = (path.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    let args = ["compare", path, "--fidelity", "packets,fluid,alpha-beta", "--out", out];
    let output = run(&[&args[..], &["--quiet"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let table = text.split("Mean time from the moment all ranks are ready").nth(1).expect("there is a table");
    let of = |name: &str| -> Vec<f64> {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {table}"));
        let changes = line.split_whitespace().filter(|word| word.starts_with(['+', '-']));
        changes.map(|word| word.parse().expect("a number of per cent")).collect()
    };
    for name in ["first all-reduce", "all-reduce"] {
        let [fluid, alone] = of(name)[..] else { panic!("{table}") };
        // HPCC leaves a twentieth of the link free, and alone no message waits for one of the other ring.
        assert!(fluid.abs() < 15.0 && (-65.0..-40.0).contains(&alone), "{name}: {fluid} and {alone}\n{text}");
    }
    let json = std::fs::read_to_string(std::path::Path::new(out).join("compare.json")).expect("it is written");
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let labels: Vec<&str> = json["runs"].as_array().unwrap().iter().filter_map(|run| run["label"].as_str()).collect();
    assert_eq!(labels, ["packets", "fluid", "alpha-beta"]);
}

#[test]
fn a_scenario_without_packets_and_two_lists_are_refused() {
    let dir = fresh_dir("fidelity-refused");
    std::fs::create_dir_all(&dir).expect("the target directory can be written");
    let path = dir.join("rings.toml");
    std::fs::write(&path, RINGS.replace("hpcc", "ideal")).expect("the target directory can be written");
    let path = path.to_str().expect("UTF-8");
    let out = dir.join("out");
    let said = |more: &[&str]| {
        let output = run(&[&["compare", path, "--out", out.to_str().expect("UTF-8")], more].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(!out.exists(), "nothing is written");
        stderr(&output)
    };
    let none = said(&["--fidelity", "packets,fluid"]);
    assert!(none.contains("this scenario has no packets") && none.contains("--set transport.cc=dcqcn"), "{none}");
    assert!(said(&["--fidelity", "fluid", "--cc", "dcqcn"]).contains("cannot be used with"));
    assert!(said(&["--fidelity", "fluids"]).contains("possible values: packets, fluid, alpha-beta"));
}
