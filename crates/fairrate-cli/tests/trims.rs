//! Packets that switches cut to their headers: in the summary, in tables, in the report, and as a metric.

use serde_json::Value;

use crate::common::{run, simulated, stdout};

/// Eight hosts send at once into a queue of 40 KB.
const INCAST: &str = r#"
duration = "2ms"
stop = "all-flows-done"
[topology]
kind = "star"
hosts = 9
[switch]
trim_limit = "40KB"
[transport]
cc = "nscc"
kind = "uet"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 8
bytes = "100KB"
[[probe]]
queue = "sw0->h0"
"#;

fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn trims_are_shown_where_there_are_any() {
    let (dir, told) = simulated("trims", INCAST, &[]);
    let (scenario, out) = (dir.join("s.toml"), dir.join("out"));
    let (scenario, out) = (scenario.to_str().unwrap(), out.to_str().unwrap());
    let summary: Value = serde_json::from_str(&read(&dir.join("out/summary.json"))).unwrap();
    let of = |name: &str| summary[name].as_u64().unwrap();
    let trims = of("trims");
    assert!(0 < trims && trims < 1_000);
    let parts: u64 =
        ["delivered", "dropped", "trimmed", "in_flight"].iter().map(|part| of(&format!("bytes_{part}"))).sum();
    assert_eq!(of("bytes_sent"), parts);
    let row = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")))?;
        line.split_whitespace().last().map(str::to_owned)
    };
    assert_eq!(row(&told, "trims"), Some(trims.to_string()), "{told}");
    assert!(row(&told, "trimmed").is_some());
    let page = read(&dir.join("out/report.html"));
    assert!(page.contains(&format!("Cut to their headers: {trims} packets")), "the chapter on switches says so");
    let metric = stdout(&run(&["report", out, "--metric", "trims"]));
    let told = row(&metric, "Packets").and_then(|text| text.parse::<f64>().ok());
    assert_eq!(told, Some(trims as f64), "{metric}");
    // Nothing is cut with plenty of room, and then there is no row.
    let without = run(&["run", scenario, "--out", &format!("{out}-0"), "--set", "switch.trim_limit=\"buffer\""]);
    assert_eq!((without.status.code(), row(&stdout(&without), "trims")), (Some(0), None), "{}", stdout(&without));
}

/// Headers of 1,500 B fill the room for them, and go back: the counter, the tables, the report and a flow's account
/// have them.
#[test]
fn headers_that_go_back_are_shown() {
    let keys = "trim_limit = \"10KB\"\ntrim_size = \"1500B\"\ntrim_return = true";
    let (dir, told) = simulated("returns", &INCAST.replace("trim_limit = \"40KB\"", keys), &[]);
    let out = dir.join("out");
    let out = out.to_str().unwrap();
    let summary: Value = serde_json::from_str(&read(&dir.join("out/summary.json"))).unwrap();
    let returns = summary["returns"].as_u64().unwrap();
    assert!(0 < returns && returns < summary["trims"].as_u64().unwrap());
    assert_eq!(summary["drops"].as_u64(), Some(0));
    let row = told.lines().find(|line| line.trim_start().starts_with("returns ")).expect("there is a row");
    assert!(row.ends_with(&returns.to_string()), "{row}");
    let page = read(&dir.join("out/report.html"));
    assert!(page.contains(&format!(" ({returns} headers sent back)")), "the chapter on switches says so");
    let causes = |flow: u32| {
        let told = stdout(&run(&["explain", out, "--flow", &flow.to_string(), "--json"]));
        ["\"returned\"", "\"trimmed\""].map(|cause| told.contains(cause))
    };
    assert!((0..8).any(|flow| causes(flow)[0]), "some flow waited for a header that came back");
    let text = stdout(&run(&["explain", out, "--worst", "8"]));
    assert!(text.contains("a header sent back at "), "{text}");
}
