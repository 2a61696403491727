//! `fairrate import` writes scenarios that run.

mod common;

use self::common::{fresh_dir, run, stderr, stdout};

const MATRIX: &str = "Nodes 16\nConnections 2\n0->13 start 0 size 200000\n3->13 start 4 size 100000\n";

#[test]
fn a_job_of_htsim_runs() {
    let dir = fresh_dir("import_htsim");
    std::fs::create_dir_all(&dir).unwrap();
    let (job, out, results) = (dir.join("job.cm"), dir.join("deeper/made"), dir.join("results"));
    std::fs::write(&job, MATRIX).unwrap();
    let import = |more: &[&str]| {
        run(&[&["import", "htsim", job.to_str().unwrap(), "--out", out.to_str().unwrap()], more].concat())
    };
    // Starts at several times need a unit, and nothing is written without it.
    let refused = import(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--start-unit") && !out.exists(), "{}", stderr(&refused));
    let made = import(&["--start-unit", "us"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert!(stdout(&made).contains("2 flows between 16 hosts") && stdout(&made).contains("Not carried over"));
    let scenario = out.join("scenario.toml");
    let ran = run(&["run", scenario.to_str().unwrap(), "--out", results.to_str().unwrap(), "--json", "-q"]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let summary = std::fs::read_to_string(results.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!((&summary["finished_flows"], &summary["unfinished_flows"]), (&2.into(), &0.into()), "{summary}");
    let again = import(&["--start-unit", "us"]);
    assert!(again.status.code() == Some(2) && stderr(&again).contains("exists"), "{}", stderr(&again));
}

#[test]
fn an_error_shows_the_line() {
    let dir = fresh_dir("import_wrong");
    std::fs::create_dir_all(&dir).unwrap();
    let (job, out) = (dir.join("job.cm"), dir.join("made"));
    std::fs::write(&job, MATRIX.replace("size 100000", "trigger 1 size 100000")).unwrap();
    let refused = run(&["import", "htsim", job.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    let text = stderr(&refused);
    let huge = MATRIX.replace("start 4", "start 18446744073709551615");
    std::fs::write(dir.join("huge.cm"), huge).unwrap();
    let path = dir.join("huge.cm");
    let late = run(&["import", "htsim", path.to_str().unwrap(), "--start-unit", "us", "--out", out.to_str().unwrap()]);
    assert!(late.status.code() == Some(2) && !out.exists(), "{}", stderr(&late));
    assert!(text.contains("wait for each other") && text.contains("job.cm:4") && !out.exists(), "{text}");
}
