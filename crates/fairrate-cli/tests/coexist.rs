//! `fairrate coexist`: its cases, and what two equal algorithms do.

use std::path::PathBuf;
use std::process::Command;

/// Runs a small study below a directory of its own, and returns `compare.json` and what was printed.
fn study(name: &str, args: &[&str]) -> (serde_json::Value, String) {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("coexist").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_fairrate"))
        .arg("coexist")
        .args(args)
        .args(["--rate", "10Gbps", "--classes", "1", "--quiet", "--out", "study"])
        .current_dir(&dir)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let json = std::fs::read_to_string(dir.join("study/compare.json")).unwrap();
    (serde_json::from_str(&json).unwrap(), String::from_utf8(out.stdout).unwrap())
}

fn fingerprints(json: &serde_json::Value, label: &str) -> Vec<String> {
    let runs = json["runs"].as_array().unwrap().iter();
    let of = runs.filter(|run| run["label"].as_str().unwrap().starts_with(label));
    of.map(|run| run["fingerprint"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_case_does_not_depend_on_the_others() {
    let args = ["dctcp", "cubic", "--buffers", "1", "--round-trips", "200", "--seeds", "1", "--short", ""];
    let (alone, _) = study("alone", &[&args[..], &["--flows", "2:1"]].concat());
    let (among, _) = study("among", &[&args[..], &["--flows", "1:3,2:1"]].concat());
    for label in ["2:1, 4 times", "2:1, cubic comes", "2:1, dctcp comes"] {
        let of = fingerprints(&alone, label);
        assert!(of.len() == 1 && of == fingerprints(&among, label), "{label}");
    }
}

/// DCTCP beside DCTCP: 2:2 is fair, one of two groups that goes gives its share back, and short flows are no faster
/// beside either.
#[test]
fn equal_algorithms_share_and_give_back() {
    let args = ["dctcp", "dctcp", "--flows", "2:2", "--buffers", "10", "--round-trips", "1500", "--seeds", "1..2"];
    let (json, text) = study("equal", &args);
    let columns = json["metrics"].as_array().unwrap();
    let of = |label: &str| columns.iter().find(|column| column["label"].as_str().unwrap().starts_with(label)).unwrap();
    let change = &of("2:2, dctcp-2 comes and goes")["groups"][0];
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!((number(&change["came"]["level"]) - 0.95).abs() < 0.05, "{change}");
    assert!(0.9 < number(&change["went"]["level"]) && change["went"]["time_ns"].is_number(), "{change}");
    let short = of("short dctcp-1 beside dctcp-2 (30 %)");
    assert!(short["groups"][1]["fair_share"].is_null() && 0.8 < number(&short["groups"][0]["rest"]), "{short}");
    assert!(text.contains("Short flows of dctcp-1 (30 %) beside long ones of dctcp-2"), "{text}");
    assert!(text.contains("dctcp-1, when dctcp-2 comes: it settles after"), "{text}");
}

#[test]
fn refused_cases_are_not_followed_by_an_option_that_there_is_not() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("coexist/refused");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_fairrate"))
        .args(["coexist", "dctcp", "bfc", "--out", "study", "--quiet"])
        .current_dir(&dir)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{told}");
    assert!(told.contains("columns are refused") && !told.contains("--skip"), "{told}");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn a_scenario_that_was_edited_stays() {
    let args =
        ["dctcp", "dctcp", "--buffers", "1", "--flows", "1:1", "--short", "", "--seeds", "1", "--round-trips", "20"];
    study("edited", &args);
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("coexist/edited");
    let again = |file: &str, text: &str| {
        std::fs::write(dir.join("study-scenario").join(file), text).unwrap();
        let command = ["coexist", "--rate", "10Gbps", "--classes", "1", "--quiet", "--out", "study"];
        let mut program = Command::new(env!("CARGO_BIN_EXE_fairrate"));
        let out = program.args(command).args(args).current_dir(&dir).output().unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("study-scenario").join(file)).unwrap(), text);
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let scenario = std::fs::read_to_string(dir.join("study-scenario/coexist.toml")).unwrap();
    let (code, told) = again("coexist.toml", &(scenario.clone() + "# mine\n"));
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("coexist.toml` exists"), "{told}");
    let (code, told) = again("coexist.toml", &scenario);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = again("near.txt", "mine");
    assert!(code == Some(2) && told.contains("near.txt` exists"), "{told}");
}
