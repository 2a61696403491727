//! `fairrate new` writes a scenario that can be described and run.

use crate::common::{fresh_dir, run, stderr, stdout};

#[test]
fn the_new_scenario_is_what_was_asked_for_and_runs() {
    let dir = fresh_dir("new");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("fabric.toml");
    let file = file.to_str().unwrap();
    let output = run(&["new", file, "--hosts", "32", "--per-leaf", "8", "--rate", "25Gbps", "--oversubscription", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with(file));
    let described: serde_json::Value =
        serde_json::from_str(&stdout(&run(&["check", file, "--json"]))).expect("it is described");
    assert_eq!((&described["hosts"], &described["switches"]), (&32.into(), &5.into()), "{described}");
    let tor = &described["oversubscription"][0];
    assert_eq!((&tor["down_bps"], &tor["up_bps"]), (&200_000_000_000_u64.into(), &100_000_000_000_u64.into()));
    let out = dir.join("out");
    let output = run(&[
        "run",
        file,
        "--set",
        "traffic.0.stop=200us",
        "--set",
        "traffic.1.stop=200us",
        "-q",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // Nothing is overwritten.
    let again = run(&["new", file]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("exists"), "{}", stderr(&again));
}

#[test]
fn wrong_answers_are_refused_and_nothing_is_written() {
    let dir = fresh_dir("new_wrong");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("fabric.toml");
    for (args, said) in [
        (&["--hosts", "30", "--per-leaf", "16"][..], "30 hosts make no two leaves"),
        (&["--oversubscription", "3"], "cannot be oversubscribed 3 to 1"),
        (&["--sizes", "webserch"], "did you mean `websearch`?"),
        (&["--sizes", "no/such.txt"], "`fairrate list workloads` has the names"),
        (&["--rate", "fast"], "fast"),
    ] {
        let output = run(&[&["new", file.to_str().unwrap()], args].concat());
        assert_eq!((output.status.code(), file.exists()), (Some(2), false), "{args:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}
