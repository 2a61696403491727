//! `fairrate explain` accounts for completion times, or says why it cannot.

use std::path::Path;

use serde_json::Value;

use crate::common::{fresh_dir, run, simulated, stderr, stdout};

/// Ten flows into one host, whose switch drops what does not fit, and one flow beside them.
const SCENARIO: &str = r#"
stop = "all-flows-done"
[topology]
kind = "star"
hosts = 14
rate = "25Gbps"
[switch]
pfc = false
buffer = "60KB"
[transport]
cc = "dctcp"
rto = "500us"
[[traffic]]
kind = "incast"
name = "burst"
receiver = "h0"
senders = 10
bytes = "100KB"
[[traffic]]
kind = "incast"
name = "alone"
receiver = "h12"
senders = ["h13"]
bytes = "2KB"
start = "5ms"
"#;

/// Runs `scenario` into a directory of this test, and returns that.
fn results(name: &str, scenario: &str) -> String {
    simulated(name, scenario, &["-q"]).0.join("out").to_str().unwrap().to_owned()
}

fn explained(args: &[&str]) -> Value {
    let output = run(&[&["explain", "-q"], args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// Expects that explaining fails as bad input, with `words` in the message.
fn expect_refused(args: &[&str], words: &str) {
    let output = run(&[&["explain", "-q"], args].concat());
    let message = stderr(&output).replace("\n  │ ", " ");
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(words) && stdout(&output).is_empty(), "{message}");
}

#[test]
fn both_accounts_of_each_flow_add_up_to_its_completion_time() {
    let out = results("explain_sums", SCENARIO);
    let all = explained(&[&out, "--worst", "100"]);
    let flows = all["flows"].as_array().unwrap();
    assert_eq!((all["schema"].as_str(), flows.len()), (Some("fairrate.explain/1"), 11));
    for flow in flows {
        for account in ["chain", "sender"] {
            let parts = flow[account].as_array().unwrap();
            let sum: u64 = parts.iter().map(|part| part["ps"].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), flow["fct_ps"].as_u64(), "{flow:#}");
        }
    }
    let slowdowns: Vec<f64> = flows.iter().map(|flow| flow["slowdown"].as_f64().unwrap()).collect();
    assert!(slowdowns.is_sorted_by(|a, b| a >= b), "{slowdowns:?}");
    let worst = &flows[0];
    let timeout = worst["chain"].as_array().unwrap().iter().find(|part| part["reason"] == "timeout").unwrap();
    assert_eq!((&timeout["loss_port"], &timeout["loss_cause"]), (&"sw0->h0".into(), &"ingress_threshold".into()));
    assert!(
        worst["sentence"].as_str().unwrap().contains("a drop at sw0->h0 (Dynamic Threshold of the ingress)"),
        "{worst:#}"
    );
    let block = explained(&[&out, "--worst", "100", "--block", "alone"]);
    assert_eq!(block["flows"].as_array().unwrap().len(), 1);
}

/// 1,048 bytes take 335.36 ns at 25 Gb/s, and each of the two links a microsecond.
#[test]
fn a_lone_flow_is_shown_as_a_waterfall() {
    let out = results("explain_text", SCENARIO);
    let output = run(&["explain", &out, "--flow", "10", "-q"]);
    insta::assert_snapshot!("waterfall", stdout(&output));
    let two = stdout(&run(&["explain", &out, "--worst", "2", "-q"]));
    assert!(two.contains("together\n") && two.matches("flow ").count() > 2, "{two}");
}

/// Flows are taken by the percentile of their slowdown, for a run or for each run of a comparison.
#[test]
fn a_tail_has_its_parts_by_percentile_and_run() {
    let dir = fresh_dir("explain_tail");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("s.toml"), SCENARIO).unwrap();
    let (scenario, out) = (dir.join("s.toml"), dir.join("out"));
    let (scenario, out) = (scenario.to_str().unwrap(), out.to_str().unwrap());
    let output = run(&["compare", scenario, "--cc", "dctcp,swift", "--out", out, "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let tails = explained(&[out, "--tail"]);
    let parts = tails["parts"].as_array().unwrap();
    // 11 flows: 6 up to the median, then 4, and the last one is p99.
    let of = |part: &Value| (part["run"].clone(), part["part"].clone(), part["flows"].clone());
    let expected = ["dctcp", "swift"].into_iter().flat_map(|cc| {
        [("up to p50", 6), ("p50 to p90", 4), ("p90 to p99", 1)].map(|(part, n)| (cc.into(), part.into(), n.into()))
    });
    assert!(parts.iter().map(of).eq(expected), "{tails:#}");
    for part in parts {
        let sum: u64 = part["ps"].as_array().unwrap().iter().map(|share| share["ps"].as_u64().unwrap()).sum();
        let fct = part["fct_ps_mean"].as_f64().unwrap() * part["explained"].as_f64().unwrap();
        assert!((sum as f64 - fct).abs() < 1.0, "{part:#}");
    }
    let text = stdout(&run(&["explain", "-q", &format!("{out}/swift"), "--tail"]));
    assert!(text.contains("p90 to p99") && text.contains("q queue"), "{text}");
    expect_refused(&[out, "--tail", "--flow", "1"], "cannot be used with");
    let svg = dir.join("tails.svg");
    let svg = svg.to_str().unwrap();
    let output = run(&["explain", out, "--tail", "--svg", svg, "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let drawn = std::fs::read_to_string(svg).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.contains("swift, p90 to p99: "), "{drawn}");
    expect_refused(&[out, "--svg", svg], "--tail");
    std::fs::write(svg, "mine").unwrap();
    expect_refused(&[out, "--tail", "--svg", svg], "exists");
    assert_eq!(std::fs::read_to_string(svg).unwrap(), "mine");
}

/// The burst under HOMA: messages wait for grants, and drops for the timeout of their receiver. Both accounts of each
/// flow add up.
#[test]
fn messages_of_homa_have_accounts() {
    let out = results("explain_homa", &SCENARIO.replace("dctcp", "homa"));
    let all = explained(&[&out, "--worst", "100"]);
    let flows = all["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 11);
    for (flow, account) in flows.iter().flat_map(|flow| [(flow, "chain"), (flow, "sender")]) {
        let parts = flow[account].as_array().unwrap();
        let sum: u64 = parts.iter().map(|part| part["ps"].as_u64().unwrap()).sum();
        assert_eq!(Some(sum), flow["fct_ps"].as_u64(), "{flow:#}");
        assert!(
            !parts.iter().any(|part| ["unknown", "window"].contains(&part["reason"].as_str().unwrap())),
            "{flow:#}"
        );
    }
    let reasons = |account: &str| -> Vec<&str> {
        let parts = flows.iter().flat_map(|flow| flow[account].as_array().unwrap());
        parts.map(|part| part["reason"].as_str().unwrap()).collect()
    };
    let (chain, sender) = (reasons("chain"), reasons("sender"));
    assert!(chain.contains(&"timeout") && sender.contains(&"credit"), "{chain:?} {sender:?}");
}

#[test]
fn what_cannot_be_explained_is_said() {
    let out = results("explain_refused", SCENARIO);
    expect_refused(&[&out, "--flow", "11"], "has no flow 11");
    expect_refused(&[&out, "--class", "long"], "has no such flow that has finished or is under way");
    expect_refused(&[&out, "--class", "long", "--tail"], "has no such flow that has finished");
    expect_refused(&[&out, "--class", "huge"], "size of flows `huge` is not known");
    expect_refused(&[&out, "--flow", "1", "--worst", "2"], "cannot be used with");
    expect_refused(&["no/such/directory"], "holds no results");
    let endless =
        SCENARIO.replace("\"100KB\"", "\"endless\"").replace("stop = \"all-flows-done\"", "duration = \"100us\"");
    let out = results("explain_endless", &endless);
    expect_refused(&[&out, "--flow", "0"], "has flow 0 as an endless one");
    let cut = SCENARIO.replace("stop = \"all-flows-done\"", "duration = \"30us\"");
    let out = results("explain_before", &cut);
    expect_refused(&[&out, "--flow", "10"], "ended before flow 10 started");
    let out = results("explain_ideal", &SCENARIO.replace("dctcp", "ideal").replace("pfc = false\n", ""));
    expect_refused(&[&out], "has no packets");
}

/// The account of a connection of two subflows adds up, as the command checks for each account that it prints.
#[test]
fn connections_of_several_subflows_are_explained() {
    let lossy = "rto = \"500us\"\n";
    let paths = SCENARIO.replace("dctcp", "lia").replace(lossy, "kind = \"tcp\"\n[transport.tcp]\nsubflows = 2\n");
    let out = results("explain_subflows", &paths);
    let text = stdout(&run(&["explain", &out, "-q", "--worst", "3"]));
    assert!(text.contains("transmission at") && !text.contains("not known"), "{text}");
}

/// Ten flows of two blocks meet at a port whose link is down for a while, and has a quarter of its rate from the start.
const FAULTY: &str = r#"
duration = "400us"
[topology]
kind = "star"
hosts = 14
rate = "25Gbps"
[transport]
cc = "line-rate"
[[traffic]]
kind = "incast"
name = "burst"
receiver = "h0"
senders = ["h1", "h2", "h3", "h4"]
bytes = "20KB"
[[traffic]]
kind = "incast"
name = "query"
receiver = "h0"
senders = ["h5", "h6"]
bytes = "20KB"
[[traffic]]
kind = "incast"
name = "late"
receiver = "h0"
senders = ["h7"]
bytes = "500KB"
start = "300us"
[[fault]]
links = ["sw0->h0"]
down_at = "50us"
up_at = "150us"
[[fault]]
links = ["sw0->h0"]
rate = 0.25
"#;

#[test]
fn links_that_are_down_or_slow_and_the_blocks_ahead_are_named() {
    let out = results("explain_faulty", FAULTY);
    let text = stdout(&run(&["explain", &out, "-q", "--flow", "4"]));
    let row = |label: &str| {
        text.lines().find(|line| line.trim_start().starts_with(label)).unwrap_or_else(|| panic!("{text}"))
    };
    assert!(row("link sw0->h0 down").ends_with("from 50.0 µs to 150 µs"), "{text}");
    let queue = row("queue at sw0->h0");
    assert!(
        queue.contains(": block burst ")
            && queue.contains("block query ")
            && queue.ends_with("; at 25.0 % of its rate"),
        "{text}"
    );
    let sentence = text.lines().nth(2).unwrap();
    assert!(
        sentence.contains("5 flows and its own packets (block burst ") && sentence.contains(", at 25.0 % of its rate"),
        "{text}"
    );
    assert!(sentence.contains("while the link sw0->h0 was down (from 50.0 µs to 150 µs)"), "{text}");
    let all = explained(&[&out, "--flow", "4"]);
    let chain = all["flows"][0]["chain"].as_array().unwrap();
    let down = chain.iter().find(|part| part["reason"] == "down").unwrap();
    assert_eq!(down["port"], "sw0->h0");
    assert!((98_000_000..=100_000_000).contains(&down["ps"].as_u64().unwrap()), "{down:#}");
    assert_eq!(down["down_ps"], serde_json::json!([[50_000_000, 150_000_000]]));
    let queue = chain.iter().find(|part| part["reason"] == "queue").unwrap();
    assert_eq!(queue["slow"], serde_json::json!([{ "share": 0.25, "from_ps": 0, "to_ps": null }]));
}

#[test]
fn an_unfinished_flow_is_explained_until_the_end_of_the_run() {
    let out = results("explain_open", FAULTY);
    let all = explained(&[&out, "--flow", "6"]);
    let flow = &all["flows"][0];
    assert_eq!(
        (&flow["finished"], &flow["fct_ps"], &flow["time_ps"]),
        (&false.into(), &Value::Null, &100_000_000.into())
    );
    for account in ["chain", "sender"] {
        let sum: u64 = flow[account].as_array().unwrap().iter().map(|part| part["ps"].as_u64().unwrap()).sum();
        assert_eq!(sum, 100_000_000, "{flow:#}");
    }
    let text = stdout(&run(&["explain", &out, "-q", "--flow", "6"]));
    assert!(text.contains("unfinished after 100 µs with ") && text.contains("\nunfinished: "), "{text}");
    assert!(text.contains("Its time until the end of the run, ") && text.contains("until the run ended"), "{text}");
    // It has the largest slowdown of its block, and counts among the worst.
    assert_eq!(explained(&[&out, "--block", "late"])["flows"][0]["flow"], 6);
}

#[test]
fn runs_that_are_not_repeated_are_refused() {
    let out = results("explain_other", SCENARIO);
    let path = Path::new(&out).join("scenario.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("cc = \"dctcp\"", "cc = \"swift\"")).unwrap();
    expect_refused(&[&out], "its run is another one with this fairrate");
    let compared = fresh_dir("explain_compared");
    let dir = compared.to_str().unwrap();
    let scenario = Path::new(&out).parent().unwrap().join("s.toml");
    let output = run(&["compare", scenario.to_str().unwrap(), "--cc", "dctcp", "--out", dir, "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    expect_refused(&[dir], "has the runs of a comparison");
    assert_eq!(explained(&[&format!("{dir}/dctcp")])["flows"].as_array().unwrap().len(), 1);
}

/// A run in Python has the name of its class in the resolved scenario.
#[test]
fn a_run_under_an_algorithm_in_python_is_refused_as_such() {
    let out = results("explain_python", SCENARIO);
    let path = Path::new(&out).join("scenario.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("cc = \"dctcp\"", "cc = \"Aimd\"")).unwrap();
    let said = "is a run under `Aimd`, an algorithm in Python or in a program of its own";
    expect_refused(&[&out], said);
    expect_refused(&[&out, "--tail"], said);
    let trace = run(&["trace", &out, "--out", path.with_file_name("a.pcapng").to_str().unwrap(), "-q"]);
    let told = stderr(&trace).split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
    assert_eq!((trace.status.code(), told.contains(said)), (Some(2), true), "{told}");
    assert!(!told.contains("did you mean"), "{told}");
}

#[test]
fn a_list_of_flows_that_is_gone_is_named() {
    let dir = fresh_dir("explain_list");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("flows.csv"), "id,src,dst,bytes,start_ns\n7,h1,h0,5000,0\n9,h2,h0,5000,0\n").unwrap();
    let list = "stop = \"all-flows-done\"\n[topology]\nkind = \"star\"\nhosts = 4\n[[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\n";
    std::fs::write(dir.join("s.toml"), list).unwrap();
    let (scenario, out) = (dir.join("s.toml"), dir.join("out"));
    let output = run(&["run", scenario.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let out = out.to_str().unwrap();
    assert_eq!(explained(&[out, "--flow", "9"])["flows"][0]["from"], "h2");
    for entry in std::fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "csv") {
            std::fs::remove_file(path).unwrap();
        }
    }
    expect_refused(&[out, "--flow", "9"], "flows.csv");
}

/// Two servers of two GPUs, and two iterations.
const JOB: &str = r#"
[topology]
kind = "rail"
servers = 2
gpus_per_server = 2
spines = 1
[[traffic]]
kind = "training"
name = "small"
layers = 2
hidden = 64
heads = 4
vocabulary = 64
sequence = 64
tp = 2
dp = 2
tflops = 1.0
iterations = 2
"#;

#[test]
fn the_critical_path_of_an_iteration_adds_up_to_its_time() {
    let out = results("explain_iteration", JOB);
    let rows = fairrate_results::Results::open(Path::new(&out)).unwrap().iterations().unwrap();
    for iteration in [0, 1] {
        let json = explained(&[&out, "--iteration", &iteration.to_string()]);
        let ps = |value: &Value, field: &str| value[field].as_u64().unwrap();
        let stages = json["stages"].as_array().unwrap();
        let sum: u64 = stages.iter().map(|stage| ps(stage, "ps")).sum();
        assert_eq!(sum, ps(&json, "time_ps"), "{json}");
        let ends = rows.iter().filter(|row| u64::from(row.iteration) == iteration).map(|row| row.end_ns);
        let end_ns = (ps(&json, "start_ps") + sum) / 1_000;
        assert!(ends.max().unwrap().abs_diff(end_ns) <= 1, "{json}");
        // The reasons of a message add up to its stage.
        for stage in stages.iter().filter(|stage| stage["message"].is_object()) {
            let reasons = stage["reasons"].as_array().unwrap().iter();
            assert_eq!(reasons.map(|reason| ps(reason, "ps")).sum::<u64>(), ps(stage, "ps"), "{stage}");
        }
        let inside = |is: bool| stages.iter().any(|stage| stage["message"]["is_inside_server"] == Value::Bool(is));
        assert!(inside(true) && inside(false) && stages.iter().any(|stage| stage["doing"] == "computes"), "{json}");
    }
    let text = stdout(&run(&["explain", "-q", &out, "--iteration", "1", "--block", "small"]));
    for words in [
        "iteration 1 of block small",
        "computation",
        "messages inside servers",
        "messages, by reason",
        "longest messages",
        "nvswitch",
    ] {
        assert!(text.contains(words), "{text}");
    }
    expect_refused(&[&out, "--iteration", "2"], "has no complete iteration 2");
    expect_refused(&[&out, "--iteration", "2"], "complete ones have rows in `iterations.parquet`");
    let flows = results("explain_no_iteration", SCENARIO);
    expect_refused(&[&flows, "--iteration", "0"], "has no such training job or collective");
}

/// Two collectives of four ranks each, of which one has two iterations, 30 us apart.
const COLLECTIVES: &str = r#"
[topology]
kind = "star"
hosts = 8
rate = "100Gbps"
[transport]
cc = "line-rate"
[[traffic]]
kind = "collective"
name = "gather"
op = "all-gather"
bytes = "400KB"
hosts = ["h0-h3"]
repeat = 2
compute = "30us"
[[traffic]]
kind = "collective"
op = "all-to-all"
bytes = "400KB"
hosts = ["h4-h7"]
"#;

/// A ring of four passes three parts on, one after the other; so does each iteration, after a computation in the second
/// one.
#[test]
fn the_critical_path_of_a_collective_goes_round_its_ring() {
    let out = results("explain_collective", COLLECTIVES);
    expect_refused(&[&out, "--iteration", "0"], "has several training jobs or collectives");
    let rows = "complete ones have rows in `collectives.parquet`";
    expect_refused(&[&out, "--iteration", "9", "--block", "gather"], rows);
    for (iteration, want) in [("0", &["moves"; 3][..]), ("1", &["computes", "moves", "moves", "moves"][..])] {
        let json = explained(&[&out, "--iteration", iteration, "--block", "gather"]);
        let stages = json["stages"].as_array().unwrap();
        let doing: Vec<&str> = stages.iter().map(|stage| stage["doing"].as_str().unwrap()).collect();
        assert_eq!(doing, want, "{json}");
        let sum: u64 = stages.iter().map(|stage| stage["ps"].as_u64().unwrap()).sum();
        assert_eq!(sum, json["time_ps"].as_u64().unwrap(), "{json}");
        assert_eq!((&stages[0]["operation"], json["block"].as_str()), (&Value::from(""), Some("gather")), "{json}");
    }
    let text = stdout(&run(&["explain", "-q", &out, "--iteration", "0", "--block", "1"]));
    assert!(text.contains("iteration 0 of block 1") && text.contains("all-to-all"), "{text}");
}

/// The report reads the path from tables, whose times are rounded to nanoseconds: its stages are those of a second run.
#[test]
fn a_report_has_the_critical_paths_of_a_second_run() {
    for (name, scenario, blocks) in [("job", JOB, &["small"][..]), ("collectives", COLLECTIVES, &["gather", "1"][..])] {
        let out = results(&format!("explain_report_{name}"), scenario);
        let run = fairrate_report::load::run(Path::new(&out), &fairrate_control::Registry::new()).unwrap();
        assert_eq!(run.critical_paths.len(), blocks.len());
        for (path, block) in run.critical_paths.iter().zip(blocks) {
            assert_eq!(path.iterations.len() as u64, path.planned);
            for iteration in &path.iterations {
                let json = explained(&[&out, "--iteration", &iteration.number.to_string(), "--block", block]);
                let stages = json["stages"].as_array().unwrap();
                assert_eq!(iteration.stages.len(), stages.len(), "{json}");
                for (ours, other) in iteration.stages.iter().zip(stages) {
                    let far = |ns: f64, field: &str| (ns - other[field].as_f64().unwrap() / 1e3).abs();
                    assert!(
                        far(ours.start_ns, "start_ps") <= 1.5 && far(ours.time_ns, "ps") <= 3.0,
                        "{ours:?} {other}"
                    );
                    assert_eq!(u64::from(ours.rank), other["rank"].as_u64().unwrap(), "{ours:?} {other}");
                }
            }
        }
        let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
        assert!(
            page.contains("Iterations and their critical paths") && page.contains("fairrate explain . --iteration N")
        );
        assert!(page.contains("Marked is the critical path"), "{name}");
    }
}
