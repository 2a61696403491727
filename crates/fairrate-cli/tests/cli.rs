//! The command line as scripts use it: help, exit codes, and the files that are written or not.

use crate::common::{fairrate, fresh_dir, run, small_scenario, stderr, stdout};

#[test]
fn help_says_what_there_is() {
    for (name, args) in [
        ("help", vec!["--help"]),
        ("help_run", vec!["run", "--help"]),
        ("help_compare", vec!["compare", "--help"]),
        ("help_allocate", vec!["allocate", "--help"]),
        ("help_bench", vec!["bench", "--help"]),
        ("help_list", vec!["list", "--help"]),
        ("help_report", vec!["report", "--help"]),
    ] {
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        insta::assert_snapshot!(name, stdout(&output));
    }
}

#[test]
fn editors_shells_and_manuals_get_what_they_want() {
    let schema: serde_json::Value = serde_json::from_str(&stdout(&run(&["schema"]))).unwrap();
    assert_eq!(schema["properties"]["seed"]["type"], "integer");
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success() && stdout(&output).contains("compare"), "{shell}");
    }
    assert_eq!(run(&["completions", "dash"]).status.code(), Some(2));
    let dir = fresh_dir("manual");
    assert!(run(&["man", "--out", dir.to_str().unwrap()]).status.success());
    for page in ["fairrate.1", "fairrate-run.1", "fairrate-compare.1"] {
        assert!(std::fs::read_to_string(dir.join(page)).is_ok_and(|text| text.contains(".SH")), "{page}");
    }
}

#[test]
fn a_run_writes_its_directory_and_prints_its_tables() {
    let scenario = small_scenario("run_tables");
    let out = scenario.with_file_name("out");
    let output = run(&["run", scenario.to_str().unwrap(), "--out", out.to_str().unwrap(), "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let text = stdout(&output);
    for want in ["FCT slowdown", "all sizes", "sw0->h0", "goodput", "fingerprint", "report.html"] {
        assert!(text.contains(want), "{want} in\n{text}");
    }
    for file in ["flows.parquet", "ports.parquet", "rates.parquet", "summary.json", "scenario.toml", "report.html"] {
        assert!(out.join(file).is_file(), "{file}");
    }
}

#[test]
fn defaults_for_other_hosts_are_warned_about_once() {
    let scenario = small_scenario("warned");
    let out = scenario.with_file_name("out");
    let common = ["--set", "topology.rate=100Gbps", "--quiet", "--out", out.to_str().unwrap()];
    let of = |command: &[&str]| run(&[command, &common[..]].concat());
    let file = scenario.to_str().unwrap();
    let compared = of(&["compare", file, "--cc", "dcqcn,powertcp", "--seeds", "1..3"]);
    let warnings: Vec<String> = stderr(&compared).lines().map(str::to_owned).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].starts_with("warning: `ai = \"40Mbps\"` of `dcqcn` is the default of DCQCN's paper"),
        "{warnings:?}"
    );
    std::fs::remove_dir_all(&out).unwrap();
    let one = of(&["run", file, "--cc", "dcqcn", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&one)).expect("stdout is JSON");
    assert_eq!(json["warnings"].as_array().map(Vec::len), Some(2));
}

#[test]
fn json_parses_and_the_same_seed_gives_the_same_run() {
    let scenario = small_scenario("run_json");
    let json = |out: &str, seed: &str| {
        let out = scenario.with_file_name(out);
        let output =
            run(&["run", scenario.to_str().unwrap(), "--seed", seed, "--json", "--out", out.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_str::<serde_json::Value>(&stdout(&output)).expect("stdout is JSON")
    };
    let (one, again) = (json("one", "7"), json("again", "7"));
    assert_eq!(one["schema"], "fairrate.run/1");
    assert_eq!((&one["state"], &one["seed"]), (&"complete".into(), &7.into()));
    assert_eq!(one["metrics"]["slowdown"][0]["n"], 3);
    assert_eq!(one["fingerprint"], again["fingerprint"]);
    let report = |out: &str| std::fs::read(scenario.with_file_name(out).join("report.html")).unwrap();
    assert!(report("one") == report("again"), "the same run gives the same page");
}

#[test]
fn an_algorithm_can_be_named_on_the_command_line() {
    let scenario = small_scenario("run_cc");
    let go = |out: &str, args: &[&str]| {
        let out = scenario.with_file_name(out);
        let head = ["run", scenario.to_str().unwrap(), "--json", "--out", out.to_str().unwrap()];
        let output = run(&[&head[..], args].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        (json["summary"]["cc"].clone(), json["fingerprint"].clone(), json["summary"]["scenario_hash"].clone())
    };
    let named = go("named", &["--cc", "hpcc"]);
    assert_eq!((&named.0, &named), (&"hpcc".into(), &go("set", &["--set", "transport.cc=hpcc"])));
    let set = ["--cc", "powertcp", "--set", "transport.powertcp.gamma=0.5"];
    assert_eq!(go("variant", &["--cc", "powertcp:gamma=0.5"]), go("variant_set", &set));
}

#[test]
fn threads_change_nothing_that_is_written() {
    let scenario = small_scenario("run_threads");
    let text = "duration = \"200us\"\n[topology]\nkind = \"fat-tree-k\"\nk = 4\n[[traffic]]\nkind = \"poisson\"\n\
                sizes = \"websearch\"\nload = 0.6\n[[probe]]\nqueues = \"all-switch-links\"\nevery = \"5us\"\n";
    std::fs::write(&scenario, text).unwrap();
    let files = |threads: &str, more: &[&str]| {
        let out = scenario.with_file_name(threads);
        let mut args = vec!["run", scenario.to_str().unwrap(), "--threads", threads, "--out", out.to_str().unwrap()];
        args.extend(more);
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let mut summary: serde_json::Value =
            serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
        summary.as_object_mut().unwrap().remove("wall_s").expect("it has one");
        let table = |name: &str| std::fs::read(out.join(name)).unwrap();
        (table("flows.parquet"), table("ports.parquet"), summary, stderr(&output))
    };
    let (flows, ports, summary, _) = files("1", &["--quiet"]);
    for threads in ["2", "3", "8"] {
        let (flows_n, ports_n, summary_n, said) = files(threads, &["--quiet"]);
        assert!(flows == flows_n && ports == ports_n, "{threads} threads");
        assert_eq!((summary.clone(), said), (summary_n, String::new()));
    }
    let (.., said) = files("4", &["--set", "profile=ns3"]);
    assert!(said.contains("1 thread"), "{said}");
}

#[test]
fn the_resolved_scenario_gives_the_same_run() {
    let scenario = small_scenario("run_resolved");
    let first = scenario.with_file_name("first");
    let second = scenario.with_file_name("second");
    let run_json = |file: &std::path::Path, out: &std::path::Path| {
        let output = run(&["run", file.to_str().unwrap(), "--json", "--out", out.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_str::<serde_json::Value>(&stdout(&output)).unwrap()["fingerprint"].clone()
    };
    assert_eq!(run_json(&scenario, &first), run_json(&first.join("scenario.toml"), &second));
}

#[test]
fn a_comparison_has_one_table_and_one_report() {
    let scenario = small_scenario("compare");
    let out = scenario.with_file_name("out");
    let (scenario, out_text) = (scenario.to_str().unwrap(), out.to_str().unwrap());
    let ccs = "powertcp,hpcc,powertcp:gamma=0.5";
    let output = run(&["compare", scenario, "--cc", ccs, "--seeds", "1..2", "--out", out_text, "--json", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(json["schema"], "fairrate.compare/2");
    let column = |i: usize, key: &str| json["metrics"][i][key].clone();
    assert_eq!(
        [column(0, "label"), column(1, "label"), column(2, "label")],
        ["powertcp", "hpcc", "powertcp:gamma=0.5"]
    );
    assert_eq!(column(0, "seeds"), serde_json::json!([1, 2]));
    assert_eq!(json["runs"].as_array().unwrap().len(), 6);
    assert!(out.join("powertcp-seed1/summary.json").is_file() && out.join("hpcc-seed2/report.html").is_file());
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Comparison, "));

    // `report` writes the same page again.
    std::fs::remove_file(out.join("report.html")).unwrap();
    let output = run(&["report", out_text]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap() == page);
}

#[test]
fn one_seed_gives_directories_without_a_seed_in_their_names() {
    let scenario = small_scenario("compare_one_seed");
    let out = scenario.with_file_name("out");
    let output = run(&[
        "compare",
        scenario.to_str().unwrap(),
        "--cc",
        "hpcc,dctcp",
        "--jobs",
        "1",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(out.join("hpcc/summary.json").is_file() && out.join("dctcp/summary.json").is_file());
    assert!(stdout(&output).contains("hpcc") && stdout(&output).contains("ns per packet-hop"));
}

#[test]
fn an_unknown_algorithm_is_bad_input_and_writes_nothing() {
    let scenario = small_scenario("compare_unknown");
    let out = scenario.with_file_name("out");
    let output = run(&["compare", scenario.to_str().unwrap(), "--cc", "powertcp,hpc", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!out.exists());
    assert_eq!(stdout(&output), "");
    insta::assert_snapshot!("unknown_algorithm", stderr(&output));
}

#[test]
fn bad_usage_is_exit_code_two() {
    let scenario = small_scenario("usage");
    let scenario = scenario.to_str().unwrap();
    for args in [
        vec![],
        vec!["run"],
        vec!["run", scenario, "--set", "novalue"],
        vec!["run", scenario, "--seed", "x"],
        vec!["compare", scenario],
        vec!["compare", scenario, "--cc", "hpcc", "--seeds", "5..1"],
        vec!["compare", scenario, "--cc", "hpcc", "--jobs", "0"],
        vec!["list", "everything"],
        vec!["report", "no-such-directory"],
        vec!["run", "no-such-file.toml"],
        vec!["run", scenario, "--set", "transport.cc=hpc"],
        vec!["no-such-command"],
    ] {
        let output = run(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{args:?}");
        assert!(!stderr(&output).is_empty(), "{args:?}");
    }
}

#[test]
fn what_is_not_ours_is_not_overwritten() {
    let scenario = small_scenario("foreign");
    let out = scenario.with_file_name("photos");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("summer.png"), "x").unwrap();
    let output = run(&["run", scenario.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn broken_scenarios_are_exit_code_two_and_write_nothing() {
    let broken = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fairrate-scenario/tests/broken");
    let out = fresh_dir("broken_out");
    let mut n = 0;
    for entry in std::fs::read_dir(broken).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let output = run(&["run", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2), "{}", path.display());
        assert_eq!(stdout(&output), "", "{}", path.display());
        assert!(!out.exists(), "{}", path.display());
        n += 1;
    }
    assert!(40 <= n, "{n} broken scenarios");
}

#[test]
fn lists_are_tables_or_json() {
    for what in ["cc", "topologies", "workloads", "queues", "balancing", "entropy"] {
        let text = stdout(&run(&["list", what]));
        let json: serde_json::Value = serde_json::from_str(&stdout(&run(&["list", what, "--json"]))).unwrap();
        let entries = json.as_array().unwrap();
        assert_eq!(text.lines().count(), entries.len() + 1, "{text}");
        for entry in entries {
            let name = entry["name"].as_str().unwrap();
            assert!(text.lines().any(|l| l.starts_with(name)), "{name} in\n{text}");
        }
    }
}

/// Parameters with a suggested range have `tune`, written as `default` is; the others lack it.
#[test]
fn the_list_of_algorithms_suggests_ranges() {
    let json: serde_json::Value = serde_json::from_str(&stdout(&run(&["list", "cc", "--json"]))).unwrap();
    let dcqcn = json.as_array().unwrap().iter().find(|a| a["name"] == "dcqcn").unwrap();
    let tune = |name: &str| {
        let parameters = dcqcn["parameters"].as_array().unwrap();
        parameters.iter().find(|p| p["name"] == name).unwrap().get("tune").cloned()
    };
    assert_eq!(tune("ai"), Some(serde_json::json!({"low": "\"4Mbps\"", "high": "\"4Gbps\"", "scale": "log"})));
    assert_eq!(tune("initial_alpha"), Some(serde_json::json!({"low": "0.0", "high": "1.0", "scale": "linear"})));
    assert_eq!(tune("notification"), None);
}

/// Writes a program that prints its name and its arguments, and exits with 7.
#[cfg(unix)]
fn put_program(dir: &std::path::Path, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(dir).unwrap();
    let program = dir.join(name);
    std::fs::write(&program, "#!/bin/sh\necho ${0##*/} \"$@\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(unix)]
#[test]
fn other_commands_come_from_the_path() {
    let dir = fresh_dir("plugins");
    put_program(&dir, "fairrate-hello");
    let path = std::env::join_paths([dir].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())));
    let output =
        crate::common::fairrate().args(["hello", "--you", "there"]).env("PATH", path.unwrap()).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(7), "fairrate-hello --you there\n"));
}

#[cfg(unix)]
#[test]
fn other_commands_come_from_beside_the_program_and_three_are_one() {
    let dir = fresh_dir("beside");
    put_program(&dir, "fairrate-hello");
    put_program(&dir, "fairrate-kernel");
    let this = dir.join("fairrate");
    std::fs::hard_link(env!("CARGO_BIN_EXE_fairrate"), &this).unwrap();
    for (asked, expected) in [
        (vec!["hello", "there"], "fairrate-hello there\n"),
        (vec!["attach", "theta-powertcp"], "fairrate-kernel attach theta-powertcp\n"),
        (vec!["status"], "fairrate-kernel status\n"),
    ] {
        let output = std::process::Command::new(&this).args(&asked).output().unwrap();
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(7), expected));
    }
}

#[test]
fn timing_says_why_a_run_is_not_simulated_in_a_faster_way() {
    let scenario = small_scenario("timing");
    let out = scenario.with_file_name("out");
    let timing = |more: &[&str]| {
        let args = ["run", scenario.to_str().unwrap(), "--quiet", "--timing", "--out", out.to_str().unwrap()];
        stdout(&run(&[&args, more].concat()))
    };
    let fast = timing(&[]);
    assert!(
        fast.contains("switches    in spans of time\n") && fast.contains("hosts       in spans of time\n"),
        "{fast}"
    );
    assert!(
        fast.contains(" packet-hops in ") && fast.contains("threads     1, of at most one for each rack or pod\n"),
        "{fast}"
    );
    let asked_for_many = timing(&["--threads", "64"]);
    assert!(asked_for_many.contains("threads     1, of at most one"), "one rack: {asked_for_many}");
    let agents = timing(&["--cc", "rocc"]);
    assert!(agents.contains("switches    event by event, as the algorithm has agents at ports\n"), "{agents}");
}

#[test]
fn tune_without_the_python_package_says_where_it_comes_from() {
    let output = fairrate().args(["tune", "s.toml"]).env("PATH", "").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    // Lines are as long as the terminal is wide.
    let words: Vec<&str> = said.split_whitespace().collect();
    let expected =
        "it comes with the Python package, a release's wheel: `pip install 'fairrate[tune] @ file:///PATH/WHEEL'`";
    assert!(words.join(" ").contains(expected), "{said}");
}
