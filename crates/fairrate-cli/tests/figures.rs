//! Figures drawn by the command line: numbers over a grid, and figures as files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::common::{run, small_scenario, stderr, stdout};
use serde_json::Value;

/// Arguments for random flows at a load, in place of the scenario's burst.
const RANDOM: [&str; 2] = ["--set", "traffic.0={kind=\"poisson\",load=0.5,sizes=\"websearch\",stop=\"5ms\"}"];
const LOADS: [&str; 2] = ["--grid", "traffic.0.load=0.2,0.4,0.6,0.8"];

fn compare(scenario: &Path, more: &[&[&str]]) -> (PathBuf, std::process::Output) {
    let out = scenario.with_file_name("out");
    let first = ["compare", scenario.to_str().unwrap(), "--quiet", "--out", out.to_str().unwrap()];
    let output = run(&[&first, &more.concat()[..]].concat());
    (out, output)
}

fn files(dir: &Path) -> HashSet<String> {
    let entries = std::fs::read_dir(dir.join("figures")).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

fn figure(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join("figures").join(name)).unwrap_or_else(|e| panic!("{name}: {e}: {:?}", files(dir)))
}

#[test]
fn a_load_sweep_is_one_command() {
    let scenario = small_scenario("load_sweep");
    let sweep = ["--cc", "hpcc,dctcp", "--seeds", "1..2", "--metric", "slowdown-p99.9:short", "--metric", "goodput"];
    let (out, output) = compare(&scenario, &[&RANDOM, &LOADS, &sweep]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(table.lines().nth(2).is_some_and(|line| line.starts_with("Measured from ")), "{table}");
    let head: Vec<&str> = table.lines().nth(3).unwrap_or_default().split_whitespace().collect();
    assert_eq!(head, ["load=0.2", "load=0.4", "load=0.6", "load=0.8"], "{table}");
    assert!(table.contains("short flows (up to 10 KB)") && !table.contains("queue peak"), "{table}");
    let name = "over-load-fct-slowdown-99.9th-percentile-short-flows-up-to-10-kb";
    let points = figure(&out, &format!("{name}.csv"));
    let lines: Vec<&str> = points.lines().collect();
    assert_eq!(lines[0], "series,load,FCT / ideal FCT,low: FCT / ideal FCT,high: FCT / ideal FCT");
    let places: Vec<String> = lines[1..].iter().map(|l| l.split(',').take(2).collect::<Vec<_>>().join(" ")).collect();
    let want = ["HPCC", "DCTCP"].iter().flat_map(|cc| ["0.2", "0.4", "0.6", "0.8"].map(|load| format!("{cc} {load}")));
    assert_eq!(places, want.collect::<Vec<_>>());
    let index: Value = serde_json::from_str(&std::fs::read_to_string(out.join("compare.json")).unwrap()).unwrap();
    let values = index["statistics"]["values"].as_array().unwrap();
    let is_it = |v: &&Value| v["metric"] == "slowdown[<= 10 KB].p999" && v["column"] == "dctcp load=0.8";
    let told = values.iter().find(is_it).unwrap();
    let drawn: Vec<f64> = lines[8].split(',').skip(2).map(|x| x.parse().unwrap()).collect();
    let number = |v: &Value| v.as_f64().unwrap();
    let interval = [&told["mean"], &told["interval"]["low"], &told["interval"]["high"]].map(number);
    assert_eq!(drawn, interval);
    let svg = figure(&out, &format!("{name}.svg"));
    assert!(svg.starts_with("<svg") && svg.contains("opacity=\"0.16\"") && svg.contains(">0.8</text>"), "{svg}");

    // Other metrics are drawn without any run, and the files of the old ones are removed.
    let report = run(&["report", out.to_str().unwrap(), "--metric", "queue-p99"]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let now = files(&out);
    assert!(now.contains("over-load-99th-percentile-of-the-queue-of-the-probed-ports.svg"), "{now:?}");
    assert!(!now.contains(&format!("{name}.svg")), "{now:?}");
    // Without `--metric`, the metrics of the comparison are drawn.
    assert_eq!(run(&["report", out.to_str().unwrap()]).status.code(), Some(0));
    assert!(files(&out).contains(&format!("{name}.svg")));
}

#[test]
fn report_prints_metrics_of_runs_without_a_grid() {
    let scenario = small_scenario("metric_report");
    let more = [&RANDOM[..], &["--cc", "hpcc,dctcp"]].concat();
    let (out, output) = compare(&scenario, &[&more, &["--metric", "slowdown-p95:short"]]);
    let page = || std::fs::read_to_string(out.join("report.html")).unwrap();
    let before = page();
    let report = |dir: &Path| run(&["report", dir.to_str().unwrap(), "--metric", "slowdown-p95:short"]);
    let all = report(&out);
    let rows = |text: &str| text.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let printed = stdout(&output);
    let table = printed.split_once("\n\n").unwrap().1;
    assert_eq!((rows(&stdout(&all)), page()), (rows(table), before));
    let alone = stdout(&report(&out.join("hpcc")));
    assert!(
        alone.contains("FCT slowdown, 95th percentile, short flows") && alone.ends_with("report.html\n"),
        "{alone}"
    );
}

#[test]
fn every_figure_has_a_picture_and_points_with_a_name_of_their_own() {
    let scenario = small_scenario("figure_files");
    let (out, output) = compare(&scenario, &[&["--cc", "powertcp,theta-powertcp"]]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let list = figure(&out, "figures.csv");
    let named: Vec<&str> = list.lines().skip(1).filter_map(|l| l.split(',').next()).collect();
    assert_eq!(named.iter().collect::<HashSet<_>>().len(), named.len(), "{list}");
    let want = named.iter().flat_map(|svg| [(*svg).to_owned(), svg.replace(".svg", ".csv")]);
    assert_eq!(files(&out), want.chain(["figures.csv".to_owned()]).collect());
    assert!(files(&out).contains("flow-by-flow-theta-powertcp.svg"), "{list}");
    // A figure against time and a distribution both show this queue.
    assert_eq!(named.iter().filter(|name| name.contains("queue-of-sw0-h0")).count(), 2, "{list}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(named.iter().all(|svg| page.contains(svg.trim_end_matches(".svg"))));
}

#[test]
fn metrics_of_traffic_blocks_go_by_name() {
    let scenario = small_scenario("metric_of_block");
    let background = "{name=\"background\",kind=\"poisson\",load=0.5,sizes=\"websearch\",stop=\"5ms\"}";
    let incast = "{name=\"incast\",kind=\"incast\",receiver=\"h0\",senders=[\"h1\",\"h2\"],bytes=\"20KB\"}";
    let traffic = format!("traffic=[{background},{incast}]");
    let more = ["--set", &traffic];
    let metric = ["--metric", "slowdown-p99:incast"];
    let (out, output) = compare(&scenario, &[&more, &LOADS, &metric]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(table.contains("FCT slowdown, 99th percentile, flows of incast †  load=0.2"), "{table}");
    let (_, by_number) = compare(&scenario, &[&more, &LOADS, &["--metric", "slowdown-p99:block1"]]);
    assert_eq!(table, stdout(&by_number));
    assert!(files(&out).iter().any(|name| name.contains("flows-of-incast")), "{:?}", files(&out));
    let report = |name: &str| run(&["report", out.to_str().unwrap(), "--metric", name]);
    assert!(report("unfinished-share:incast").status.success());
    assert!(files(&out).iter().any(|name| name.contains("did-not-finish-flows-of-incast")), "{:?}", files(&out));
    let completion = stdout(&report("completion:incast"));
    assert!(
        completion.contains("Completion, flows of incast (µs)") && !completion.contains("did not finish"),
        "{completion}"
    );
    assert!(stdout(&report("query-max:incast")).contains("Completion of queries, largest, flows of incast (µs)"));
    let wrong = report("slowdown-p99:incst");
    assert_eq!((wrong.status.code(), stdout(&wrong)), (Some(2), String::new()));
    insta::assert_snapshot!("unknown_block_in_metric", stderr(&wrong));
}

#[test]
fn a_wrong_metric_is_bad_input_and_nothing_is_written() {
    let scenario = small_scenario("metric_wrong");
    let grid = [&RANDOM[..], &LOADS].concat();
    let (out, output) = compare(&scenario, &[&grid, &["--metric", "slowdown-p98:short"]]);
    assert_eq!((output.status.code(), out.exists()), (Some(2), false));
    insta::assert_snapshot!("unknown_metric", stderr(&output));
    for wrong in
        [&["--cc", "hpcc", "--metric", "good-put"][..], &["--grid", "traffic.0.bytes=50KB,60KB", "--metric", ""]]
    {
        let (out, output) = compare(&scenario, &[wrong]);
        assert_eq!((output.status.code(), out.exists()), (Some(2), false), "{wrong:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn without_a_grid_the_table_has_the_metrics_alone() {
    let scenario = small_scenario("metric_alone");
    let (out, output) = compare(&scenario, &[&["--cc", "hpcc,dctcp", "--metric", "goodput", "--metric", "pfc-pauses"]]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).map(str::trim).collect();
    assert_eq!(rows[0].split_whitespace().collect::<Vec<_>>(), ["hpcc", "dctcp"], "{text}");
    assert!(rows.len() == 3 && rows[1].starts_with("Goodput of all flows (Gb/s)") && rows[2].starts_with("PFC pauses"));
    assert!(out.join("report.html").exists());
}

#[test]
fn slowdowns_of_cut_off_flows_are_lower_bounds() {
    let scenario = small_scenario("unfinished");
    let text = std::fs::read_to_string(&scenario).unwrap();
    let cut_short = "duration = \"2ms\"\n[topology]".to_owned();
    let more = "[[traffic]]\nkind = \"incast\"\nreceiver = \"h1\"\nsenders = [\"h2\", \"h3\"]\nbytes = \"50MB\"\n[[probe]]\nqueue";
    // Two large flows that are cut off by the end of the run.
    let text =
        text.replacen("stop = \"all-flows-done\"\n[topology]", &cut_short, 1).replacen("[[probe]]\nqueue", more, 1);
    std::fs::write(&scenario, text).unwrap();
    let (out, output) = compare(&scenario, &[&["--cc", "hpcc,dctcp"]]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = stdout(&output);
    let mut rows = table.lines().skip_while(|l| !l.starts_with("FCT slowdown, all")).skip(1).take(6);
    let bounds: Vec<usize> = rows.by_ref().take(5).map(|row| row.matches('\u{2265}').count()).collect();
    // Two of five flows were cut off before they could have finished even alone: all values are lower bounds.
    assert_eq!(bounds, [2; 5], "{table}");
    assert!(rows.next().is_some_and(|row| row.matches("40.0 %").count() == 2), "{table}");
    let index: Value = serde_json::from_str(&std::fs::read_to_string(out.join("compare.json")).unwrap()).unwrap();
    let all = &index["metrics"][0]["slowdown"][0];
    assert_eq!((&all["n"], &all["n_bounds"]), (&5.into(), &2.into()));
    let mut told = index["statistics"]["values"].as_array().unwrap().iter();
    let p99 = told.find(|v| v["metric"] == "slowdown[all sizes].p99").unwrap();
    assert_eq!((&p99["bound"]["finished"], &p99["bound"]["flows"]), (&3.into(), &5.into()));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    // Bounds are marked in the cards and the table, and below the figure of the distribution.
    assert!(page.matches('\u{2265}').count() >= 10 && page.contains("Finished: 3 of 5 under HPCC"));
    let one = run(&["run", scenario.to_str().unwrap(), "-q", "--out", out.with_file_name("one").to_str().unwrap()]);
    let of_one = stdout(&one);
    let all_sizes = of_one.lines().find(|line| line.starts_with("  all sizes")).unwrap_or_default();
    let words: Vec<&str> = all_sizes.split_whitespace().collect();
    assert_eq!((&words[2..5], words.contains(&"\u{2265}")), (&["5", "2", "\u{2265}"][..], true), "{of_one}");
}
