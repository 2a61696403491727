//! `fairrate allocate`: what it prints, and what it says about bad files.

mod common;

use std::path::Path;
use std::process::Output;

use common::{fairrate, fresh_dir, stderr, stdout};

const LINKS: &str = "link,capacity_gbps\nl1,60\nl2,30\nl3,10\n";
const FLOWS: &str = "flow,links\nA,l1\nB,l1 l2\nC,l2 l3\nD,l3\n";

/// Two files in a directory of their own, and what the command says of them.
fn allocate(name: &str, links: &str, flows: &str, more: &[&str]) -> Output {
    let dir = fresh_dir(&format!("allocate_{name}"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("links.csv"), links).unwrap();
    std::fs::write(dir.join("flows.csv"), flows).unwrap();
    let args = ["allocate", "--links", "links.csv", "--flows", "flows.csv", "--objective", "max-min"];
    fairrate().args(args).args(more).current_dir(dir).output().unwrap()
}

#[test]
fn the_chain_of_percs_figure_7() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let file = |name: &str| examples.join(name).to_str().unwrap().to_owned();
    let (links, flows) = (file("chain-links.csv"), file("chain-flows.csv"));
    let output = common::run(&["allocate", "--links", &links, "--flows", &flows, "--objective", "max-min"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "flow,rate_gbps\nA,35\nB,25\nC,5\nD,5\n");
    assert_eq!(stderr(&output), "");
}

#[test]
fn json_has_bottlenecks_and_loads() {
    let output = allocate("json", LINKS, FLOWS, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&json["schema"], &json["objective"]), (&"fairrate.allocate/1".into(), &"max-min".into()));
    assert_eq!(json["flows"][1], serde_json::json!({ "flow": "B", "rate_gbps": 25.0, "bottleneck": "l2" }));
    assert_eq!(json["links"][0], serde_json::json!({ "link": "l1", "capacity_gbps": 60.0, "load_gbps": 60.0 }));
    assert_eq!((json["flows"].as_array().unwrap().len(), json["links"].as_array().unwrap().len()), (4, 3));
}

/// Weights 1, 2 and 4 on 10 Gb/s; names come back as fields that can be read again.
#[test]
fn numbers_have_all_digits_and_names_are_quoted() {
    let flows = "weight,flow,links\n,\"a,1\",x\n2,\"say \"\"hi\"\"\",x\n4,\"#3\",x\n";
    let output = allocate("digits", "link,capacity_gbps\nx,10\n", flows, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let rows: Vec<(&str, f64)> =
        text.lines().skip(1).map(|l| l.rsplit_once(',').unwrap()).map(|(f, r)| (f, r.parse().unwrap())).collect();
    assert_eq!(rows.iter().map(|r| r.0).collect::<Vec<_>>(), ["\"a,1\"", "\"say \"\"hi\"\"\"", "\"#3\""]);
    for ((_, rate_gbps), weight) in rows.iter().zip([1.0, 2.0, 4.0]) {
        assert!((rate_gbps - 10.0 * weight / 7.0).abs() < 1e-14, "{text}");
    }
    assert_eq!(stdout(&allocate("none", LINKS, "flow,links\n", &[])), "flow,rate_gbps\n");
}

#[test]
fn bad_files_are_shown_with_their_line() {
    for (name, links, flows) in [
        ("unknown_link", "link,capacity_gbps\nleaf0->spine1,100\n", "flow,links\na,leaf0->spine1 leaf0->spin1\n"),
        ("bad_capacity", "# ours\nlink,capacity_gbps\nl1,60Gbps\n", FLOWS),
        ("unknown_column", LINKS, "flow,links,wieght\nA,l1,1\n"),
    ] {
        let output = allocate(name, links, flows, &[]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert_eq!(stdout(&output), "", "{name}");
        insta::assert_snapshot!(name, stderr(&output));
    }
}

#[test]
fn every_bad_file_is_exit_code_two_with_nothing_on_stdout() {
    for (i, (links, flows)) in [
        ("", FLOWS),
        (LINKS, ""),
        ("link\nl1\n", FLOWS),
        ("link,capacity_gbps\nl1,0\n", FLOWS),
        ("link,capacity_gbps\nl1,-1\n", FLOWS),
        ("link,capacity_gbps\nl1,1\nl1,2\n", FLOWS),
        (LINKS, "flow,links\nA,\n"),
        (LINKS, "flow,links\nA,l1\nA,l2\n"),
        (LINKS, "flow,links\nA,l1 l1\n"),
        (LINKS, "flow,links,weight\nA,l1,0\n"),
        (LINKS, "flow,links\nA,l1,1\r\n\"\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let output = allocate(&format!("bad_{i}"), links, flows, &["--json"]);
        assert_eq!(output.status.code(), Some(2), "{links}{flows}{}", stderr(&output));
        assert_eq!(stdout(&output), "", "{links}{flows}");
        assert!(stderr(&output).contains(".csv:"), "{}", stderr(&output));
    }
}

#[test]
fn files_that_cannot_be_read_and_bad_usage_are_exit_code_two() {
    let dir = fresh_dir("allocate_unreadable");
    std::fs::create_dir_all(&dir).unwrap();
    for (name, bytes) in [("links.csv", LINKS.as_bytes()), ("flows.csv", FLOWS.as_bytes()), ("binary.csv", &[0xff, 0])]
    {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    let run = |links: &str, flows: &str, objective: &[&str]| {
        let args = ["allocate", "--links", links, "--flows", flows];
        fairrate().args(args).args(objective).current_dir(&dir).output().unwrap()
    };
    let max_min = ["--objective", "max-min"];
    for (output, want) in [
        (run("absent.csv", "flows.csv", &max_min), "there is no such file"),
        (run("links.csv", ".", &max_min), "cannot be read"),
        (run("links.csv", "binary.csv", &max_min), "it is not text"),
        (run("links.csv", "flows.csv", &[]), "--objective <OBJECTIVE>"),
        (run("links.csv", "flows.csv", &["--objective", "fastest"]), "max-min"),
    ] {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains(want), "{want} in {}", stderr(&output));
    }
}
