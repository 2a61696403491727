//! `fairrate show` names the worst flows and ports of a run.

use serde_json::Value;

use crate::common::{fresh_dir, run, simulated, stderr, stdout};

/// Two blocks over a star: four flows of 50 KB into one host, and one of 1 KB beside them; the endless flow and the one
/// that is cut off are unfinished.
const SCENARIO: &str = r#"
duration = "60us"
[topology]
kind = "star"
hosts = 8
rate = "25Gbps"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = ["h1", "h2", "h3", "h4"]
bytes = "50KB"
[[traffic]]
kind = "incast"
name = "small"
receiver = "h6"
senders = ["h5"]
bytes = "1KB"
[[probe]]
queues = ["sw0->h0", "sw0->h6"]
every = "1us"
"#;

fn results(name: &str) -> String {
    simulated(name, SCENARIO, &["-q"]).0.join("out").to_str().unwrap().to_owned()
}

fn shown(args: &[&str]) -> Value {
    let output = run(&[&["show"], args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn the_worst_flows_come_first_and_unfinished_ones_count() {
    let out = results("show_worst");
    let all = shown(&[&out]);
    let flows = all["flows"].as_array().unwrap();
    let slowdowns: Vec<f64> = flows.iter().map(|flow| flow["slowdown"].as_f64().unwrap()).collect();
    assert!(flows.len() == 5 && slowdowns.is_sorted_by(|a, b| a >= b), "{all}");
    // 200 KB need 64 us of the link, and the run ends before.
    assert_eq!((&flows[0]["finished"], &flows[0]["fct_ns"]), (&false.into(), &Value::Null), "{all}");
    assert_eq!((&flows[0]["to"], &flows[4]["from"], &flows[4]["block"]), (&"h0".into(), &"h5".into(), &1.into()));
    assert_eq!(all["ports"][0]["port"], "sw0->h0");
    let text = stdout(&run(&["show", &out, "--worst", "1"]));
    assert!(text.contains("\u{2265} ") && text.contains("its time so far over its time alone"), "{text}");
}

#[test]
fn flows_are_chosen_by_size_and_block() {
    let out = results("show_chosen");
    let flow_of = |args: &[&str]| shown(&[&[out.as_str()], args].concat())["flows"].as_array().unwrap().len();
    assert_eq!((flow_of(&["--class", "short"]), flow_of(&["--class", "10-100KB"])), (1, 4));
    assert_eq!((flow_of(&["--block", "1"]), flow_of(&["--worst", "2"])), (1, 2));
    assert_eq!(flow_of(&["--block", "small"]), 1);
    let unknown = run(&["show", &out, "--block", "smal"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("small"), "{}", stderr(&unknown));
    let none = stdout(&run(&["show", &out, "--block", "0", "--class", "long"]));
    assert!(none.contains("no flow of size long, block 0 has started"), "{none}");
    for command in [&["show"][..], &["explain", "-q"], &["explain", "-q", "--tail"], &["explain", "--iteration", "0"]] {
        let output = run(&[command, &[&out, "--block", "7"]].concat());
        assert!(output.status.code() == Some(2) && stdout(&output).is_empty(), "{command:?}: {}", stderr(&output));
        let message = stderr(&output);
        assert!(message.contains("traffic block `7` is not known"), "{message}");
        assert!(message.contains("there are 0, 1 (`small`)"), "{message}");
    }
}

/// Groups of a list are blocks too, and blocks without names go by their numbers.
#[test]
fn blocks_without_names_are_listed_by_number() {
    let dir = fresh_dir("show_groups");
    std::fs::create_dir_all(&dir).unwrap();
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\n";
    std::fs::write(dir.join("s.toml"), text).unwrap();
    std::fs::write(dir.join("flows.csv"), "start_ns,src,dst,bytes,group\n0,h0,h1,1000,4\n0,h2,h1,1000,9\n").unwrap();
    let (path, out) = (dir.join("s.toml"), dir.join("out"));
    let (path, out) = (path.to_str().unwrap(), out.to_str().unwrap());
    assert_eq!(run(&["run", "-q", path, "--out", out]).status.code(), Some(0));
    assert_eq!(shown(&[out, "--block", "9"])["flows"].as_array().unwrap().len(), 1);
    for command in ["show", "explain"] {
        let message = stderr(&run(&[command, out, "--block", "nix"]));
        assert!(message.contains("there are 0, 4, 9"), "{message}");
    }
}

#[test]
fn what_is_no_run_is_refused() {
    let out = results("show_refused");
    for (args, help) in [
        (&["/nowhere"][..], "give the directory that a run wrote"),
        (&[out.as_str(), "--class", "shrt"], "did you mean `short`?"),
        (&[out.as_str(), "--worst", "0"], "0 is not in 1.."),
    ] {
        let output = run(&[&["show"], args].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(help), "{}", stderr(&output));
    }
}

#[test]
fn a_comparison_lists_its_runs_with_the_command_for_one() {
    let dir = fresh_dir("show_comparison");
    std::fs::create_dir_all(&dir).unwrap();
    let (scenario, out) = (dir.join("s.toml"), dir.join("out"));
    std::fs::write(&scenario, SCENARIO).unwrap();
    let out = out.to_str().unwrap();
    let compare = ["compare", scenario.to_str().unwrap(), "--cc", "hpcc,dctcp", "--seeds", "1..2", "--out", out, "-q"];
    assert_eq!(run(&compare).status.code(), Some(0));
    let runs = shown(&[out]);
    let dirs: Vec<&str> = runs["runs"].as_array().unwrap().iter().map(|run| run["dir"].as_str().unwrap()).collect();
    assert_eq!(dirs.len(), 4);
    assert!(dirs.iter().all(|dir| run(&["show", dir]).status.success()), "{dirs:?}");
    let text = stdout(&run(&["show", out])).replace(out, "OUT");
    insta::assert_snapshot!("comparison", text);
}

/// A run that is over before the measuring window has no rates, rather than rates of zero.
#[test]
fn nothing_is_measured_after_the_end() {
    let scenario = SCENARIO.replace("60us", "1s\"\nstop = \"all-flows-done");
    let (_, text) = simulated("show_measured_late", &scenario, &["--set", "measure={from=\"500us\"}"]);
    let goodput = text.lines().find(|line| line.trim_start().starts_with("goodput")).unwrap_or_default();
    assert!(goodput.ends_with(" -") && text.contains("Nothing is measured"), "{text}");
}
