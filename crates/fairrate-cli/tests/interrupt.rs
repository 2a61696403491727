//! Ctrl-C: the results so far are kept, and are valid.
#![cfg(unix)]

use std::process::Stdio;
use std::time::Duration;

use crate::common::{fairrate, interrupt, run, small_scenario, stderr, stdout};

#[test]
fn an_interrupted_run_leaves_valid_results() {
    let scenario = small_scenario("interrupt");
    let out = scenario.with_file_name("out");
    // Endless flows for longer than any test may take.
    let sets = ["stop=duration", "duration=1000s", "traffic.0.bytes=endless", "probe.0.every=1ms", "probe.1.every=1ms"];
    let mut command = fairrate();
    command.args(["run", scenario.to_str().unwrap(), "--quiet", "--out", out.to_str().unwrap()]);
    for set in sets {
        command.args(["--set", set]);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !out.join("scenario.toml").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = interrupt(child);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stdout(&output).contains("(interrupted)"), "{}", stdout(&output));

    let summary = std::fs::read_to_string(out.join("summary.json")).unwrap();
    assert!(summary.contains("interrupted"), "{summary}");
    let again = run(&["report", out.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Partial results"));
}
