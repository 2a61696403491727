//! Comparisons of many runs: grids, seeds, and continuation after an interruption.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use crate::common::{Started, fairrate, run, small_scenario, stderr, stdout};
use serde_json::Value;

/// Runs `compare` of a scenario, with results in `out`.
fn compare(scenario: &Path, out: &Path, more: &[&str]) -> std::process::Output {
    let mut args = vec!["compare", scenario.to_str().unwrap(), "--out", out.to_str().unwrap()];
    args.extend(more);
    run(&args)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).expect("JSON")
}

fn index(out: &Path) -> Value {
    json(&out.join("compare.json"))
}

/// Returns one field of every run of compare.json.
fn of_runs(out: &Path, field: &str) -> Vec<String> {
    let index = index(out);
    index["runs"].as_array().unwrap().iter().map(|r| r[field].as_str().unwrap().to_owned()).collect()
}

/// Returns the words on stderr, without line breaks, whose places depend on the lengths of paths.
fn words(output: &Output) -> String {
    stderr(output).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn a_grid_has_a_column_for_every_point_and_algorithm() {
    let scenario = small_scenario("grid");
    let out = scenario.with_file_name("out");
    let grid = ["--grid", "traffic.0.bytes=50KB,'60KB'", "--grid", "traffic.0.senders=2,3"];
    let output = compare(&scenario, &out, &[&grid[..], &["--cc", "hpcc,dctcp", "--quiet"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let labels = of_runs(&out, "label");
    assert_eq!(labels[..3], ["hpcc bytes=50KB senders=2", "dctcp bytes=50KB senders=2", "hpcc bytes=50KB senders=3"]);
    assert_eq!((labels.len(), labels[7].as_str()), (8, "dctcp bytes=60KB senders=3"));
    let index = index(&out);
    assert_eq!(index["runs"][7]["grid"], serde_json::json!({ "traffic.0.bytes": "'60KB'", "traffic.0.senders": "3" }));
    assert_eq!(index["metrics"].as_array().unwrap().len(), 8);
    assert_eq!(index["metrics"][7]["flows_done"], 3.0);
    let resolved = std::fs::read_to_string(out.join("dctcp-bytes=60KB-senders=2/scenario.toml")).unwrap();
    assert!(resolved.contains("bytes = \"60KB\"") && resolved.contains("senders = 2"), "{resolved}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Comparison over a grid") && page.contains("DCTCP bytes=60KB senders=3"));
}

/// The heading is about all columns: the first one's seed or name is not that of the others.
#[test]
fn a_heading_says_only_what_holds_for_all_columns() {
    let scenario = small_scenario("headings");
    let name = scenario.file_stem().unwrap().to_str().unwrap();
    let heading = |grid: &str| {
        let output = compare(&scenario, &scenario.with_file_name("out"), &["--cc", "hpcc", "--quiet", "--grid", grid]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).lines().next().unwrap().to_owned()
    };
    assert_eq!(heading("seed=1,2"), format!("{name}: columns of different seeds"));
    assert_eq!(heading("name=a,b"), "a, b: seed 1");
    let page = std::fs::read_to_string(scenario.with_file_name("out").join("report.html")).unwrap();
    assert!(page.contains("<title>a, b: "), "the page names both");
}

/// A variant changes keys of the scenario besides the algorithm: on the command line, or as a line of a file.
#[test]
fn variants_are_columns_with_keys_of_their_own() {
    let scenario = small_scenario("variants");
    let out = scenario.with_file_name("out");
    let file = scenario.with_file_name("variants.txt");
    std::fs::write(
        &file,
        "# two more\n\nhpcc:eta=0.9: switch.buffer=1MB\n  dctcp: switch.pfc=false, transport.rto='1ms'\nhpcc, lossy = hpcc: switch.pfc=false\n",
    )
    .unwrap();
    let variants = ["--variant", "hpcc: traffic.0.bytes=60KB", "--variant", &format!("@{}", file.display())];
    let output = compare(&scenario, &out, &[&variants[..], &["--cc", "hpcc", "--quiet"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let labels = ["hpcc", "hpcc bytes=60KB", "hpcc:eta=0.9 buffer=1MB", "dctcp pfc=false rto=1ms", "hpcc, lossy"];
    assert_eq!(of_runs(&out, "label"), labels);
    let resolved = |dir: &str| std::fs::read_to_string(out.join(dir).join("scenario.toml")).unwrap();
    assert!(resolved("hpcc--lossy").contains("pfc = false") && stdout(&output).contains("hpcc, lossy"));
    assert!(resolved("dctcp-pfc=false-rto=1ms").contains("pfc = false"));
    assert!(resolved("hpcc-bytes=60KB").contains("bytes = \"60KB\"") && resolved("hpcc").contains("bytes = \"50KB\""));
}

#[test]
fn wrong_variants_are_bad_input_and_nothing_is_written() {
    let scenario = small_scenario("wrong_variants");
    let out = scenario.with_file_name("out");
    for (variant, says) in [
        ("hpcc switch.pfc=false", "NAME: KEY=VALUE"),
        (": switch.pfc=false", "NAME: KEY=VALUE"),
        ("hpc: switch.pfc=false", "hpcc"),
        ("hpcc: switch.pfc", "changes no key"),
        ("hpcc: switch.pfc=true, switch.pfc=false", "set twice"),
        ("hpcc: switch.bufer=1MB", "did you mean `buffer`"),
        ("hpcc: switch.ecn={ kmin=1KB", "without its end"),
        ("@/no/such/file", "cannot read"),
    ] {
        let output = compare(&scenario, &out, &["--variant", variant]);
        assert!(output.status.code() == Some(2) && words(&output).contains(says), "{variant}: {}", stderr(&output));
        assert!(!out.exists(), "{variant}");
    }
}

#[test]
fn a_grid_alone_is_of_the_scenarios_algorithm() {
    let scenario = small_scenario("grid_alone");
    let out = scenario.with_file_name("out");
    let output = compare(&scenario, &out, &["--grid", "transport.cc=hpcc,swift", "--json", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        (of_runs(&out, "label"), of_runs(&out, "cc")),
        (vec!["cc=hpcc".to_owned(), "cc=swift".to_owned()], vec!["hpcc".to_owned(), "swift".to_owned()],)
    );
    let printed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(printed, index(&out));
}

#[test]
fn a_wrong_point_of_a_grid_is_bad_input_and_nothing_is_written() {
    let scenario = small_scenario("grid_wrong");
    let out = scenario.with_file_name("out");
    for grid in [
        "traffic.0.byte=50KB,60KB",
        "traffic.0.bytes=50KB,60",
        "transport.cc=hpcc,hpc",
        "traffic.0.bytes=[50KB",
        "traffic.0.bytes",
        "traffic.1.bytes=50KB",
    ] {
        let output = compare(&scenario, &out, &["--cc", "hpcc", "--grid", grid]);
        let output = if grid.starts_with("transport") { compare(&scenario, &out, &["--grid", grid]) } else { output };
        assert_eq!(output.status.code(), Some(2), "{grid}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{grid}");
        assert!(!out.exists(), "{grid}");
    }
    let output = compare(&scenario, &out, &["--grid", "traffic.0.byte=50KB,60KB"]);
    insta::assert_snapshot!("grid_unknown_key", stderr(&output));
    let twice = compare(&scenario, &out, &["--grid", "seed=1,2", "--seeds", "1..2"]);
    insta::assert_snapshot!("grid_twice", stderr(&twice));
    assert!(!out.exists());
}

#[test]
fn seeds_give_means_intervals_and_differences() {
    let scenario = small_scenario("seeds_statistics");
    let out = scenario.with_file_name("out");
    let random = ["--set", "traffic.0={kind=\"poisson\",load=0.5,sizes=\"websearch\",stop=\"2ms\"}"];
    let seeds = ["--cc", "hpcc,dctcp", "--seeds", "1..5", "--quiet"];
    let output = compare(&scenario, &out, &[&random[..], &seeds[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let index = index(&out);
    let statistics = &index["statistics"];
    assert_eq!((&statistics["level"], &statistics["resamples"]), (&0.95.into(), &10_000.into()));
    let values = statistics["values"].as_array().unwrap();
    let of = |column: &str| {
        let found = values.iter().find(|v| v["metric"] == "slowdown[all sizes].mean" && v["column"] == column);
        found.unwrap_or_else(|| panic!("{column}"))
    };
    let number = |v: &Value| v.as_f64().unwrap();
    let mean_of = |cc: &str, seed: u64| {
        let summary = json(&out.join(format!("{cc}-seed{seed}/summary.json")));
        let all = summary["fct"].as_array().unwrap().iter().find(|b| b["bucket"] == "all").unwrap().clone();
        number(&all["slowdown"]["mean"])
    };
    let mean = (1..=5).map(|seed| mean_of("hpcc", seed)).sum::<f64>() / 5.0;
    let (hpcc, dctcp) = (of("hpcc"), of("dctcp"));
    assert_eq!((&hpcc["n"], &hpcc["difference"]), (&5.into(), &Value::Null));
    assert!((number(&hpcc["mean"]) - mean).abs() < 1e-9);
    assert!(number(&hpcc["interval"]["low"]) < mean && mean < number(&hpcc["interval"]["high"]));
    let difference = (1..=5).map(|seed| mean_of("dctcp", seed) - mean_of("hpcc", seed)).sum::<f64>() / 5.0;
    assert_eq!(dctcp["difference"]["to"], "hpcc");
    assert!((number(&dctcp["difference"]["mean"]) - difference).abs() < 1e-9);

    let text = stdout(&output);
    assert!(text.contains("seeds 1..5") && text.contains("paired by seed") && text.contains('['), "{text}");
    assert!(!text.contains("Fewer than"), "{text}");
    let again = compare(&scenario, &out, &[&random[..], &seeds[..]].concat());
    let simulated = |text: &str| text.lines().filter(|l| !l.contains("ns per")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(simulated(&stdout(&again)), simulated(&text), "runs that are taken over say the same");
    let few = compare(&scenario, &out, &[&random[..], &["--cc", "hpcc,dctcp", "--seeds", "1..2", "-q"]].concat());
    assert!(stdout(&few).contains("Fewer than 5 seeds") && !stdout(&few).contains("] *"), "{}", stdout(&few));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Differences") && page.contains("Fewer than 5 seeds"));
}

/// Returns the wall-clock time of a run, which differs if it is run again.
fn wall(out: &Path, run: &str) -> Value {
    json(&out.join(run).join("summary.json"))["wall_s"].clone()
}

#[test]
fn complete_runs_of_the_same_scenario_are_taken_over() {
    let scenario = small_scenario("take_over");
    let out = scenario.with_file_name("out");
    let go = |more: &[&str]| {
        let output = compare(&scenario, &out, &[&["--cc", "hpcc,dctcp"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (stderr(&output), wall(&out, "hpcc-seed1"), wall(&out, "hpcc-seed2"))
    };
    let (told, first, second) = go(&["--seeds", "1..2"]);
    assert!(!told.contains("taken over"), "{told}");
    // With more seeds, only these are run.
    let (told, one, two) = go(&["--seeds", "1..3"]);
    assert!(told.contains("4 of 6 runs are complete already and taken over"), "{told}");
    assert_eq!((&one, &two), (&first, &second));
    assert_eq!(of_runs(&out, "state"), ["complete"; 6]);
    // Runs that are not complete, or damaged, are run again.
    let summary = out.join("hpcc-seed1/summary.json");
    let text = std::fs::read_to_string(&summary).unwrap();
    std::fs::write(&summary, text.replace("\"complete\"", "\"interrupted\"")).unwrap();
    std::fs::remove_file(out.join("hpcc-seed2/flows.parquet")).unwrap();
    let (told, one, two) = go(&["--seeds", "1..3"]);
    assert!(told.contains("4 of 6 runs"), "{told}");
    assert!(one != first && two != second);
    // A run of another version is run again.
    let text = std::fs::read_to_string(&summary).unwrap();
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version));
    std::fs::write(&summary, text.replace(&version, "\"version\": \"0.0.1\"")).unwrap();
    assert!(go(&["--seeds", "1..3", "--quiet"]).1 != one);
    // Runs of another scenario are run again, and all runs with --fresh.
    assert!(!go(&["--seeds", "1..2", "--set", "traffic.0.bytes=60KB"]).0.contains("taken over"));
    assert!(go(&["--seeds", "1..2", "--set", "traffic.0.bytes=60KB"]).0.contains("4 of 4"));
    assert!(!go(&["--seeds", "1..2", "--set", "traffic.0.bytes=60KB", "--fresh"]).0.contains("taken over"));
}

#[test]
fn a_run_that_fails_does_not_stop_the_others() {
    let scenario = small_scenario("one_fails");
    let out = scenario.with_file_name("out");
    // Another process holds the lock of the second run's directory.
    std::fs::create_dir_all(out.join("dctcp")).unwrap();
    std::fs::write(out.join(".fairrate.lock"), "").unwrap();
    let lock = std::fs::File::create(out.join("dctcp/.fairrate.lock")).unwrap();
    lock.lock().unwrap();
    let output = compare(&scenario, &out, &["--cc", "hpcc,dctcp,swift", "--jobs", "1"]);
    drop(lock);
    assert_eq!(output.status.code(), Some(1));
    let told = words(&output);
    assert!(
        told.contains("1 of 3 runs failed") && told.contains("dctcp") && told.contains("another fairrate is writing"),
        "{told}"
    );
    assert_eq!(of_runs(&out, "state"), ["complete", "failed", "complete"]);
    assert!(index(&out)["runs"][1]["error"].as_str().unwrap().contains("another fairrate is writing"));
    assert!(stdout(&output).contains("dctcp failed") && out.join("swift/report.html").is_file());
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Partial results: dctcp seed 1 failed, left out"));
}

#[test]
fn a_run_that_hangs_is_a_failure_with_its_cause() {
    let scenario = small_scenario("one_hangs");
    let out = scenario.with_file_name("out");
    // The bottleneck loses all packets; retransmissions never arrive.
    let text = std::fs::read_to_string(&scenario).unwrap();
    std::fs::write(&scenario, text + "[[fault]]\nlinks = [\"sw0->h0\"]\nloss = 0.001\n").unwrap();
    // Half a second without progress has few samples then.
    let sets = ["--set", "probe.0.every=1ms", "--set", "probe.1.every=1ms"];
    let args = [&["--grid", "fault.0.loss=0.001,1.0", "--seeds", "1..2"][..], &sets].concat();
    let output = compare(&scenario, &out, &args);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let told = words(&output);
    assert!(told.contains("2 of 4 runs failed") && told.contains("no progress since"), "{told}");
    assert_eq!(of_runs(&out, "state"), ["complete", "complete", "failed", "failed"]);
    assert_eq!(json(&out.join("loss=1.0-seed1/summary.json"))["state"], "failed");
}

/// Starts a comparison whose first run is short and whose second run has no end. Waits until the first run is recorded
/// as complete and the second one has begun.
fn started(scenario: &Path, out: &Path) -> Started {
    let mut command = fairrate();
    command.args(["compare", scenario.to_str().unwrap(), "--out", out.to_str().unwrap(), "--jobs", "1"]);
    command.args(["--set", "stop=duration", "--set", "traffic.0.bytes=endless", "--grid", "duration=1ms,1000s,1001s"]);
    // Files of an earlier process do not count as signs of this one.
    let written = || std::fs::metadata(out.join("duration=1000s/summary.json")).and_then(|m| m.modified()).ok();
    let before = written();
    let mut child = Started(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()));
    let first_is_noted = || {
        let text = std::fs::read_to_string(out.join("compare.json")).unwrap_or_default();
        let index: Value =
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("never half of it") };
        index["runs"][0]["state"] == "complete"
    };
    let is_running = || written() != before && json(&out.join("duration=1000s/summary.json"))["state"] == "running";
    while !(first_is_noted() && out.join("duration=1000s/scenario.toml").exists() && is_running()) {
        assert_eq!(child.0.as_mut().unwrap().try_wait().unwrap(), None, "it ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn interrupt(mut child: Started) -> Output {
    crate::common::interrupt(child.0.take().unwrap())
}

fn long(name: &str) -> (PathBuf, PathBuf) {
    let scenario = small_scenario(name);
    let text = std::fs::read_to_string(&scenario).unwrap();
    let (without_probes, _) = text.split_once("[[probe]]").unwrap();
    std::fs::write(&scenario, without_probes).unwrap();
    let out = scenario.with_file_name("out");
    (scenario, out)
}

#[cfg(unix)]
#[test]
fn an_interrupted_comparison_goes_on_from_what_is_complete() {
    let (scenario, out) = long("compare_interrupted");
    let output = interrupt(started(&scenario, &out));
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(of_runs(&out, "state"), ["complete", "interrupted", "pending"]);
    assert_eq!(index(&out)["metrics"].as_array().unwrap().len(), 2);
    let text = stdout(&output);
    assert!(text.contains("duration=1000s interrupted") && text.contains("duration=1001s pending"), "{text}");
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("Partial results"));

    let wall_before = wall(&out, "duration=1ms");
    let output = interrupt(started(&scenario, &out));
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 3 runs are complete already and taken over"), "{}", stderr(&output));
    assert_eq!(wall(&out, "duration=1ms"), wall_before);
}

#[cfg(unix)]
#[test]
fn a_killed_comparison_goes_on_from_what_is_complete() {
    let (scenario, out) = long("compare_killed");
    drop(started(&scenario, &out));
    assert_eq!(of_runs(&out, "state"), ["complete", "pending", "pending"]);
    assert_eq!(json(&out.join("duration=1000s/summary.json"))["state"], "running");
    // The results so far can be shown.
    let report = run(&["report", out.to_str().unwrap()]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("duration=1000s seed 1 pending, left out"));

    let wall_before = wall(&out, "duration=1ms");
    let output = interrupt(started(&scenario, &out));
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 3 runs are complete already and taken over"), "{}", stderr(&output));
    assert_eq!(wall(&out, "duration=1ms"), wall_before);
    assert_eq!(of_runs(&out, "state"), ["complete", "interrupted", "pending"]);
}

#[test]
fn going_on_gives_the_same_page_as_never_stopping() {
    let scenario = small_scenario("same_page");
    let (whole, resumed) = (scenario.with_file_name("whole"), scenario.with_file_name("resumed"));
    let args = ["--cc", "hpcc,dctcp", "--seeds", "1..3", "--quiet"];
    assert_eq!(compare(&scenario, &whole, &args).status.code(), Some(0));
    assert_eq!(compare(&scenario, &resumed, &["--cc", "hpcc", "--seeds", "2..3", "--quiet"]).status.code(), Some(0));
    assert_eq!(compare(&scenario, &resumed, &args).status.code(), Some(0));
    let page = |out: &Path| std::fs::read(out.join("report.html")).unwrap();
    assert!(page(&whole) == page(&resumed));
    assert_eq!(of_runs(&whole, "fingerprint"), of_runs(&resumed, "fingerprint"));
}

#[test]
fn refused_columns_are_named_all_at_once_and_can_be_left_out() {
    let scenario = small_scenario("refused");
    let out = scenario.with_file_name("refused-out");
    let spray = ["--set", "routing.balance=spray", "--seeds", "1..2"];
    let with = |more: &[&str]| compare(&scenario, &out, &[&spray[..], more].concat());
    let all = with(&["--cc", "hpcc,dctcp,flowtune"]);
    assert_eq!((all.status.code(), out.exists()), (Some(2), false), "{}", stderr(&all));
    let said = words(&all);
    for part in [
        "2 of 3 columns are refused",
        "hpcc: --set:1:17: `hpcc` compares telemetry of the ports of one path",
        "flowtune: --set:1:17: `flowtune` has to know the one path of each flow",
        "go on without them: --skip-refused",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let none = with(&["--cc", "hpcc,flowtune", "--skip-refused"]);
    assert_eq!((none.status.code(), out.exists()), (Some(2), false), "{}", stdout(&none));
    let rest = with(&["--cc", "hpcc,dctcp,flowtune", "--skip-refused"]);
    assert_eq!(rest.status.code(), Some(0), "{}", stderr(&rest));
    assert!(words(&rest).contains("left out: hpcc: `hpcc` compares telemetry"), "{}", stderr(&rest));
    assert!(stdout(&rest).contains("flowtune refused: `flowtune` has to know"), "{}", stdout(&rest));
    assert_eq!(of_runs(&out, "cc"), ["dctcp", "dctcp"]);
    let labels: Vec<Value> = index(&out)["refused"].as_array().unwrap().iter().map(|r| r["label"].clone()).collect();
    assert_eq!(labels, ["hpcc", "flowtune"]);
    let page = || std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page().contains("Partial results: hpcc refused ("), "the report says so");
    assert!(run(&["report", out.to_str().unwrap()]).status.success() && page().contains("flowtune refused ("));
    // An error that all columns have alike is the scenario's.
    let wrong = with(&["--cc", "dctcp,swift", "--set", "traffic.0.bytez=3", "--skip-refused"]);
    assert!(words(&wrong).contains("has no key `bytez`") && !words(&wrong).contains("refused"), "{}", words(&wrong));
}
