//! `fairrate allocate`: its output, and its messages about bad files.

use std::path::Path;
use std::process::Output;

use crate::common::{fairrate, fresh_dir, stderr, stdout};

const LINKS: &str = "link,capacity_gbps\nl1,60\nl2,30\nl3,10\n";
const FLOWS: &str = "flow,links\nA,l1\nB,l1 l2\nC,l2 l3\nD,l3\n";

/// Writes the two files into a directory for this test, and runs the command on them.
fn allocate(name: &str, links: &str, flows: &str, more: &[&str]) -> Output {
    let dir = fresh_dir(&format!("allocate_{name}"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("links.csv"), links).unwrap();
    std::fs::write(dir.join("flows.csv"), flows).unwrap();
    let args = ["allocate", "--links", "links.csv", "--flows", "flows.csv", "--objective", "max-min"];
    fairrate().args(args).args(more).current_dir(dir).output().unwrap()
}

#[test]
fn the_chain_of_percs_figure_7() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let file = |name: &str| examples.join(name).to_str().unwrap().to_owned();
    let (links, flows) = (file("chain-links.csv"), file("chain-flows.csv"));
    let output = crate::common::run(&["allocate", "--links", &links, "--flows", &flows, "--objective", "max-min"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "flow,rate_gbps\nA,35\nB,25\nC,5\nD,5\n");
    assert_eq!(stderr(&output), "");
}

#[test]
fn json_has_bottlenecks_and_loads() {
    let output = allocate("json", LINKS, FLOWS, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&json["schema"], &json["objective"]), (&"fairrate.allocate/1".into(), &"max-min".into()));
    assert_eq!(json["flows"][1], serde_json::json!({ "flow": "B", "rate_gbps": 25.0, "bottleneck": "l2" }));
    assert_eq!(json["links"][0], serde_json::json!({ "link": "l1", "capacity_gbps": 60.0, "load_gbps": 60.0 }));
    assert_eq!((json["flows"].as_array().unwrap().len(), json["links"].as_array().unwrap().len()), (4, 3));
}

/// Weights 1, 2 and 4 on 10 Gb/s; names are printed as fields that can be read again.
#[test]
fn numbers_have_all_digits_and_names_are_quoted() {
    let flows = "weight,flow,links\n,\"a,1\",x\n2,\"say \"\"hi\"\"\",x\n4,\"#3\",x\n";
    let output = allocate("digits", "link,capacity_gbps\nx,10\n", flows, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let rows: Vec<(&str, f64)> =
        text.lines().skip(1).map(|l| l.rsplit_once(',').unwrap()).map(|(f, r)| (f, r.parse().unwrap())).collect();
    assert_eq!(rows.iter().map(|r| r.0).collect::<Vec<_>>(), ["\"a,1\"", "\"say \"\"hi\"\"\"", "\"#3\""]);
    for ((_, rate_gbps), weight) in rows.iter().zip([1.0, 2.0, 4.0]) {
        assert!((rate_gbps - 10.0 * weight / 7.0).abs() < 1e-14, "{text}");
    }
    assert_eq!(stdout(&allocate("none", LINKS, "flow,links\n", &[])), "flow,rate_gbps\n");
}

#[test]
fn bad_files_are_shown_with_their_line() {
    for (name, links, flows) in [
        ("unknown_link", "link,capacity_gbps\nleaf0->spine1,100\n", "flow,links\na,leaf0->spine1 leaf0->spin1\n"),
        ("bad_capacity", "# ours\nlink,capacity_gbps\nl1,60Gbps\n", FLOWS),
        ("unknown_column", LINKS, "flow,links,wieght\nA,l1,1\n"),
    ] {
        let output = allocate(name, links, flows, &[]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert_eq!(stdout(&output), "", "{name}");
        insta::assert_snapshot!(name, stderr(&output));
    }
}

#[test]
fn every_bad_file_is_exit_code_two_with_nothing_on_stdout() {
    for (i, (links, flows)) in [
        ("", FLOWS),
        (LINKS, ""),
        ("link\nl1\n", FLOWS),
        ("link,capacity_gbps\nl1,0\n", FLOWS),
        ("link,capacity_gbps\nl1,-1\n", FLOWS),
        ("link,capacity_gbps\nl1,1\nl1,2\n", FLOWS),
        (LINKS, "flow,links\nA,\n"),
        (LINKS, "flow,links\nA,l1\nA,l2\n"),
        (LINKS, "flow,links\nA,l1 l1\n"),
        (LINKS, "flow,links,weight\nA,l1,0\n"),
        (LINKS, "flow,links\nA,l1,1\r\n\"\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let output = allocate(&format!("bad_{i}"), links, flows, &["--json"]);
        assert_eq!(output.status.code(), Some(2), "{links}{flows}{}", stderr(&output));
        assert_eq!(stdout(&output), "", "{links}{flows}");
        let error: serde_json::Value = serde_json::from_str(&stderr(&output)).unwrap();
        let error = &error["error"];
        let has_place = error["path"].as_str().is_some_and(|path| ["links.csv", "flows.csv"].contains(&path))
            && error["line"].is_u64();
        assert!(has_place, "{error}");
    }
}

/// The chain: `1 / A` is the first link's price, and so on; the rates solve `1/B = 1/A + p`, `1/C = p + 1/D` with full
/// links.
const PROPORTIONAL: [f64; 4] = [34.861_425_247, 25.138_574_753, 4.861_425_247, 5.138_574_753];

/// Runs the command on the chain's files.
fn optimise(name: &str, more: &[&str]) -> Output {
    let dir = fresh_dir(&format!("allocate_{name}"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("links.csv"), LINKS).unwrap();
    std::fs::write(dir.join("flows.csv"), FLOWS).unwrap();
    let args = ["allocate", "--links", "links.csv", "--flows", "flows.csv"];
    fairrate().args(args).args(more).current_dir(dir).output().unwrap()
}

fn rates(text: &str) -> Vec<f64> {
    text.lines().skip(1).map(|line| line.rsplit_once(',').unwrap().1.parse().unwrap()).collect()
}

#[test]
fn every_method_finds_the_same_rates() {
    for method in ["ned", "gradient", "fgm", "newton-like", "reference"] {
        let output = optimise(&format!("method_{method}"), &["--objective", "proportional", "--method", method]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        for (rate, want) in rates(&stdout(&output)).iter().zip(PROPORTIONAL) {
            assert!((rate - want).abs() < 1e-6, "{method}: {}", stdout(&output));
        }
    }
    let same = optimise("alpha_one", &["--objective", "alpha=1"]);
    assert_eq!(stdout(&same), stdout(&optimise("proportional", &["--objective", "proportional"])));
}

/// A price is the utility of an additional Gb/s: 1 / 34.86 on the first link.
#[test]
fn json_has_utility_prices_and_proof() {
    let output = optimise("json_optimum", &["--objective", "proportional", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&json["objective"], &json["method"]), (&"proportional".into(), &"ned".into()));
    assert_eq!(json["converged"], true);
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!((number(&json["utility"]) - PROPORTIONAL.iter().map(|x| x.ln()).sum::<f64>()).abs() < 1e-6, "{json}");
    assert!((number(&json["links"][0]["price"]) - 1.0 / PROPORTIONAL[0]).abs() < 1e-8, "{json}");
    for part in ["stationarity", "feasibility", "slackness", "gap"] {
        assert!(number(&json["kkt"][part]) < 1e-6, "{json}");
    }
    assert!(number(&json["residual"]) <= 1e-9 && json["flows"][0].get("bottleneck").is_none(), "{json}");
    // In another unit of rates and for another alpha: with alpha 2 the price is 1 / x^2 per Gb/s.
    let output = optimise("json_alpha", &["--objective", "alpha=2", "--json", "--method", "reference"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let rate = number(&json["flows"][0]["rate_gbps"]);
    assert!((number(&json["links"][0]["price"]) * rate * rate - 1.0).abs() < 1e-6, "{json}");
    assert!(json.get("residual").is_none() && json.get("iterations").is_none());
}

/// The rates so far are printed, and are feasible.
#[test]
fn what_does_not_converge_is_exit_code_one() {
    let output = optimise("unconverged", &["--objective", "proportional", "--iterations", "3"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!("unconverged", stderr(&output));
    let rates = rates(&stdout(&output));
    assert!(rates[0] + rates[1] <= 60.0 && rates[1] + rates[2] <= 30.0 && rates[2] + rates[3] <= 10.0, "{rates:?}");
}

/// A flow over many equal links in a row: any split of one price among them is right, and the steps of
/// Newton-Exact-Diagonal are too large by a factor of their number.
#[test]
fn the_reference_finds_what_ned_gives_up_on() {
    let dir = fresh_dir("allocate_redundant");
    std::fs::create_dir_all(&dir).unwrap();
    let links: Vec<String> = (0..8).map(|i| format!("l{i}")).collect();
    let rows = links.join(",10\n");
    std::fs::write(dir.join("links.csv"), format!("link,capacity_gbps\n{rows},10\n")).unwrap();
    let path = links.join(" ");
    std::fs::write(dir.join("flows.csv"), format!("flow,links,weight\na,{path},1\nb,{path},3\n")).unwrap();
    let args = ["allocate", "--links", "links.csv", "--flows", "flows.csv", "--objective", "proportional"];
    let go = |more: &[&str]| fairrate().args(args).args(more).current_dir(&dir).output().unwrap();
    let output = go(&["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("ned is ") && stderr(&output).contains("--method reference"));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!([&json["method"], &json["fallback_from"]], ["reference", "ned"]);
    assert_eq!(json["converged"], true);
    for (rate, want) in rates(&stdout(&go(&[]))).iter().zip([2.5, 7.5]) {
        assert!((rate - want).abs() < 1e-6, "{rate}");
    }
    // With an explicit number of iterations, the reference does not take over.
    assert_eq!(go(&["--iterations", "1000"]).status.code(), Some(1));
    let smaller = go(&["--gamma", "0.1", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&smaller)).unwrap();
    assert_eq!((&json["method"], json.get("fallback_from")), (&"ned".into(), None));
}

#[test]
fn arguments_without_effect_are_refused() {
    for (i, args) in [
        ["--objective", "max-min", "--gamma", "1"],
        ["--objective", "max-min", "--method", "ned"],
        ["--objective", "alpha=0", "--method", "ned"],
        ["--objective", "alpha=x", "--method", "ned"],
        ["--objective", "proportional", "--gamma", "0"],
        ["--objective", "proportional", "--tolerance", "nan"],
        ["--objective", "proportional", "--iterations", "0"],
        ["--objective", "proportional", "--seed", "1"],
    ]
    .iter()
    .enumerate()
    {
        let output = optimise(&format!("refused_{i}"), args);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{args:?}");
    }
    let reference = ["--objective", "proportional", "--method", "reference", "--gamma", "1"];
    let output = optimise("refused_reference", &reference);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!("step_of_the_reference", stderr(&output));
    let fgm = ["--objective", "proportional", "--method", "fgm", "--gamma", "1"];
    assert_eq!(optimise("refused_fgm", &fgm).status.code(), Some(2));
}

/// Runs the command on flows between hosts.
fn on_topology(name: &str, topology: &str, flows: &str, more: &[&str]) -> Output {
    let dir = fresh_dir(&format!("allocate_{name}"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("flows.csv"), flows).unwrap();
    let scenario = "duration = \"1ms\"\n[topology]\nkind = \"star\"\nhosts = 4\nrate = \"40Gbps\"\n\
                    [[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n";
    std::fs::write(dir.join("star.toml"), scenario).unwrap();
    std::fs::write(dir.join("net.txt"), "3 1 2\n2\n0 2 10Gbps 1us 0\n1 2 30Gbps 1us 0\n").unwrap();
    let args = ["allocate", "--topology", topology, "--flows", "flows.csv"];
    fairrate().args(args).args(more).current_dir(dir).output().unwrap()
}

/// Three senders to one receiver at 25 Gb/s, one of them with a second flow; a scenario's star at 40 Gb/s; a file's
/// links.
#[test]
fn flows_between_hosts_of_a_topology() {
    let max_min = ["--objective", "max-min"];
    let flows = "src,dst,weight\nh0,h3,\nh1,h3,3\nh0,h2,\nh1,h3,1\n";
    let output = on_topology("star", "star", flows, &max_min);
    assert_eq!(stdout(&output), "flow,rate_gbps\nh0->h3,5\nh1->h3,15\nh0->h2,20\nh1->h3#2,5\n", "{}", stderr(&output));
    let output = on_topology("scenario", "star.toml", flows, &["--objective", "max-min", "--seed", "7"]);
    assert_eq!(stdout(&output), "flow,rate_gbps\nh0->h3,8\nh1->h3,24\nh0->h2,32\nh1->h3#2,8\n", "{}", stderr(&output));
    let named = "flow,src,dst,sport,dport\nup,0,1,5,6\ndown,1,0,,\n";
    let output =
        on_topology("file", "net.txt", named, &["--objective", "proportional", "--method", "reference", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&json["flows"][1]["flow"], &json["links"][0]["link"]), (&"down".into(), &"0->2".into()));
    assert!((json["flows"][1]["rate_gbps"].as_f64().unwrap() - 10.0).abs() < 1e-8);
}

/// Eight flows from one rack to another through four spines load the links on the simulator's routes.
#[test]
fn paths_are_those_of_the_simulator() {
    let lines: Vec<String> = (0..8).map(|i| format!("h{i},h{}\n", 16 + i)).collect();
    let flows = format!("src,dst\n{}", lines.concat());
    let output = on_topology("ecmp", "leaf-spine", &flows, &["--objective", "max-min", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let config = fairrate_scenario::Scenario::from_toml(
        "duration = \"1us\"\n[topology]\nkind = \"leaf-spine\"\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n",
        "own",
        Path::new(""),
        &fairrate_scenario::Overrides::default(),
    )
    .unwrap()
    .into_sim_config();
    let routes = fairrate_sim::routing::Routes::new(&config.topology);
    let mut loads = vec![0.0; config.topology.n_ports()];
    for i in 0..8 {
        let ends = (fairrate_sim::NodeId(i), fairrate_sim::NodeId(16 + i));
        let key = fairrate_sim::routing::FlowKey { src: ends.0, dst: ends.1, sport: 10_000, dport: 100 };
        let mut path = Vec::new();
        routes.path(config.fabric.ecmp, config.seed, key, &mut path);
        for port in path {
            loads[port.index()] += json["flows"][i as usize]["rate_gbps"].as_f64().unwrap();
        }
    }
    for (link, load) in json["links"].as_array().unwrap().iter().zip(loads) {
        assert!((link["load_gbps"].as_f64().unwrap() - load).abs() < 1e-9, "{link}");
    }
}

/// Flows between ToRs go over the packet switch or over a circuit, so the uplinks' shares are not their rates. As with
/// `cc = "ideal"`, such a network is refused, by its kind and in a scenario.
#[test]
fn a_network_with_circuits_is_refused() {
    let dir = fresh_dir("allocate_circuits");
    std::fs::create_dir_all(&dir).unwrap();
    let scenario = dir.join("rdcn.toml");
    let traffic = "[[traffic]]\nkind = \"permutation\"\nbytes = \"1KB\"\n";
    std::fs::write(&scenario, format!("duration = \"1ms\"\n[topology]\nkind = \"rdcn\"\n{traffic}")).unwrap();
    for (name, topology) in [("circuits_kind", "rdcn"), ("circuits_scenario", scenario.to_str().unwrap())] {
        let output = on_topology(name, topology, "src,dst\nh0,h10\n", &["--objective", "max-min"]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{topology}");
        let told = stderr(&output);
        assert!(
            told.contains("the one path of each flow, and circuits") && told.contains("another `kind` of network"),
            "{told}"
        );
    }
}

#[test]
fn topologies_and_hosts_that_are_not_there() {
    let flows = "src,dst\nh0,h99\n";
    let output = on_topology("no_host", "star", flows, &["--objective", "max-min"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!("unknown_host", stderr(&output));
    for (i, (topology, flows, want)) in [
        ("leaf-spin", flows, "did you mean `leaf-spine`?"),
        ("absent.txt", flows, "there is no such file"),
        ("absent.toml", flows, "absent.toml"),
        ("flows.csv", flows, "flows.csv:1"),
        ("star", "src,dst\nh0,sw0\n", "is a switch"),
        ("star", "src,dst\nh0,h0\n", "to itself"),
        ("star", "src,dst,weight\nh0,h1,0\n", "is not a weight"),
        ("star", "src,dst,sport\nh0,h1,65536\n", "is not a port"),
        ("star", "flow,src,dst\na,h0,h1\na,h1,h0\n", "a second time"),
    ]
    .into_iter()
    .enumerate()
    {
        let output = on_topology(&format!("bad_topology_{i}"), topology, flows, &["--objective", "max-min"]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{topology}, {flows}");
        assert!(stderr(&output).contains(want), "{want} in {}", stderr(&output));
    }
}

#[test]
fn files_that_cannot_be_read_and_bad_usage_are_exit_code_two() {
    let dir = fresh_dir("allocate_unreadable");
    std::fs::create_dir_all(&dir).unwrap();
    for (name, bytes) in [("links.csv", LINKS.as_bytes()), ("flows.csv", FLOWS.as_bytes()), ("binary.csv", &[0xff, 0])]
    {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    let run = |links: &str, flows: &str, objective: &[&str]| {
        let args = ["allocate", "--links", links, "--flows", flows];
        fairrate().args(args).args(objective).current_dir(&dir).output().unwrap()
    };
    let max_min = ["--objective", "max-min"];
    for (output, want) in [
        (run("absent.csv", "flows.csv", &max_min), "there is no such file"),
        (run("links.csv", ".", &max_min), "cannot be read"),
        (run("links.csv", "binary.csv", &max_min), "it is not text"),
        (run("links.csv", "flows.csv", &[]), "--objective <OBJECTIVE>"),
        (run("links.csv", "flows.csv", &["--objective", "fastest"]), "max-min"),
    ] {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains(want), "{want} in {}", stderr(&output));
    }
}
