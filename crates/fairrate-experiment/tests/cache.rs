//! Results that were computed before: when they are taken over, and where runs are put.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairrate_experiment::cache::{Cache, Key, complete_run_of, keep, kept, seconds_before};
use fairrate_experiment::{Watch, drive, drive_and_report};
use fairrate_results::{Results, ResultsDir, RunState};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{Progress, Recorder};

fn scenario(bytes: &str) -> Scenario {
    let text = format!(
        "stop = \"all-flows-done\"\n[topology]\nkind = \"star\"\nhosts = 3\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsenders = 2\nbytes = \"{bytes}\"\n"
    );
    Scenario::from_toml(&text, "small.toml", Path::new("."), &Overrides::default()).expect("it reads")
}

/// Returns an empty directory for this test.
fn fresh(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

fn run(scenario: &Scenario, dir: &Path, watch: &mut dyn Watch) -> RunState {
    let dir = Arc::new(ResultsDir::claim(dir).expect("it is free"));
    drive(scenario, &dir, &[], 1, watch).expect("it can be written")
}

/// An observer that stops a run at once.
struct Stop;

impl Watch for Stop {
    fn look(&mut self, _: &Progress) -> ControlFlow<RunState> {
        ControlFlow::Break(RunState::Interrupted)
    }
}

#[test]
fn a_run_is_taken_over_if_it_is_whole_and_of_the_same_scenario() {
    let (dir, small, large) = (fresh("cache_run"), scenario("10KB"), scenario("20KB"));
    assert!(complete_run_of(&dir, &small).is_none() && seconds_before(&dir).is_infinite());
    assert_eq!(run(&small, &dir, &mut Stop), RunState::Interrupted);
    assert!(complete_run_of(&dir, &small).is_none() && seconds_before(&dir).is_infinite());
    assert_eq!(run(&small, &dir, &mut ()), RunState::Complete);
    assert!(complete_run_of(&dir, &small).is_some() && seconds_before(&dir).is_finite());
    assert!(complete_run_of(&dir, &large).is_none());
    std::fs::remove_file(dir.join("flows.parquet")).unwrap();
    assert!(complete_run_of(&dir, &small).is_none());
}

#[test]
fn a_run_belongs_to_its_comparison_and_is_found_wherever_it_is() {
    let (root, small, large) = (fresh("cache_places"), scenario("10KB"), scenario("20KB"));
    let comparison = root.join("small-compare");
    let place = |name: &str, scenario: &Scenario| {
        Cache::open(&root, "small").and_then(|mut cache| cache.place(name, scenario)).expect("it has a place")
    };
    assert_eq!(place("hpcc", &small), (comparison.join("hpcc"), None));
    run(&small, &root.join("elsewhere"), &mut ());
    assert_eq!(place("hpcc", &small), (comparison.join("hpcc"), Some(root.join("elsewhere"))));
    // A run of another scenario has the name, and stays.
    run(&large, &comparison.join("hpcc"), &mut ());
    let other = comparison.join(format!("hpcc-{}", &format!("{:016x}", small.hash())[..8]));
    assert_eq!(place("hpcc", &small), (other, Some(root.join("elsewhere"))));
    // A damaged summary still says whose place it is.
    let summary = comparison.join("hpcc/summary.json");
    std::fs::write(&summary, std::fs::read_to_string(&summary).unwrap().replace("complete", "interrupted")).unwrap();
    assert_eq!(place("hpcc", &large), (comparison.join("hpcc"), None));
    std::fs::create_dir_all(root.join("full-compare")).unwrap();
    std::fs::write(root.join("full-compare/notes.txt"), "mine").unwrap();
    assert!(Cache::open(&root, "full").is_err());
}

#[test]
fn a_value_is_kept_with_its_key() {
    let (file, key) = (fresh("cache_value").join("runs/value.json"), Key::of_inputs("x = 1"));
    assert_eq!(kept::<f64>(&file, &key), None);
    keep(&file, &key, &0.1).expect("it can be written");
    assert_eq!(kept(&file, &key), Some((0.1, true)));
    for other in [Key::of_inputs("x = 2"), key.read_by("more"), Key::of(&scenario("10KB")).expect("it is built in")] {
        assert_eq!(kept(&file, &other), Some((0.1, false)));
    }
    std::fs::write(&file, "{").unwrap();
    assert_eq!(kept::<f64>(&file, &Key::of_inputs("x = 1")), None);
}

/// A second sink receives the same flows as the tables.
#[test]
fn a_run_into_a_directory_is_reported_too() {
    let (path, scenario, mut recorder) = (fresh("cache_both"), scenario("10KB"), Recorder::default());
    let dir = Arc::new(ResultsDir::claim(&path).expect("it is free"));
    let ended = drive_and_report(&scenario, &dir, &[], 1, &mut recorder, &mut ()).expect("it can be written");
    let (results, flows) = (Results::open(&path).expect("it opens"), recorder.flows);
    assert_eq!((ended.state, ended.unfinished.len(), flows.len()), (RunState::Complete, 0, 2));
    assert_eq!(results.summary.fingerprint, format!("{:016x}", ended.totals.fingerprint));
    let written: Vec<u32> = results.flows().expect("they are read").iter().map(|flow| flow.id).collect();
    assert_eq!(written, flows.iter().map(|flow| flow.flow.0).collect::<Vec<_>>());
    assert!(complete_run_of(&path, &scenario).is_some());
}
