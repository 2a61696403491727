//! `fairrate check` describes every example as it will run, and writes nothing.

use std::path::Path;

use serde_json::Value;

use crate::common::{fresh_dir, run, stderr, stdout};

fn described(example: &str, more: &[&str]) -> Value {
    let path = format!("{}/../../examples/{example}.toml", env!("CARGO_MANIFEST_DIR"));
    let output = run(&[&["check", path.as_str(), "--json"], more].concat());
    assert_eq!(output.status.code(), Some(0), "{example}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn every_example_is_described() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let examples = std::fs::read_dir(dir).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        (path.extension()? == "toml").then(|| path.file_stem().unwrap().to_str().unwrap().to_owned())
    });
    let mut n = 0;
    // A scenario with an algorithm of one's own needs its library.
    for example in examples.filter(|example| example != "own-algorithm") {
        let d = described(&example, &[]);
        assert!(d["hosts"].as_u64() >= Some(2) && d["base_rtt_us"].as_f64() > Some(0.0), "{example}: {d}");
        assert!(d["traffic"].as_array().is_some_and(|blocks| !blocks.is_empty()), "{example}");
        n += 1;
    }
    assert!(20 < n, "{n} examples");
}

/// An endless flow shares its receiver's link with those that are there at the time. By hand: 25 Gb/s bring 3.125 MB a
/// millisecond, or 3,125 packets over two links with an acknowledgment each: 12,500. The link is full from 0 to 10 ms.
#[test]
fn endless_flows_share_a_link_while_they_are_there() {
    let block = |senders: &str, times: &str| {
        let kind = "kind = \"incast\"\nreceiver = \"h0\"\nbytes = \"endless\"";
        format!("[[traffic]]\n{kind}\nsenders = {senders}\n{times}\n")
    };
    let short = block("\"h2-h5\"", "start = \"1ms\"\nstop = \"2ms\"");
    let text = format!(
        "duration = \"10ms\"\n[topology]\nkind = \"star\"\nhosts = 6\nrate = \"25Gbps\"\n{}{short}",
        block("[\"h1\"]", "")
    );
    let run = &told_as_json("check_endless", &text, "")["run"];
    let packet_hops = run["packet_hops"].as_f64().expect("they are counted");
    assert!((packet_hops - 125_000.0).abs() < 1.0, "{run}");
}

/// Numbers worked by hand: 32 hosts of 25 Gb/s and two uplinks of 100 Gb/s a ToR. The run of the example sends as many
/// packets over as many links as it says.
#[test]
fn a_fat_tree_is_described() {
    let d = described("websearch", &[]);
    assert_eq!((&d["hosts"], &d["switches"]), (&256.into(), &20.into()));
    let tor = &d["oversubscription"][0];
    assert_eq!(
        (tor["tier"].as_str(), tor["down_bps"].as_u64(), tor["up_bps"].as_u64()),
        (Some("tor"), Some(800_000_000_000), Some(200_000_000_000))
    );
    let load = |links: &str| d["load"].as_array().unwrap().iter().find(|load| load["links"] == links).unwrap().clone();
    let uplinks = load("tor-uplinks");
    // The scenario asks for 60 % of payload; a packet of 1,000 B has 90 more.
    assert!((uplinks["mean"].as_f64().unwrap() - 0.634).abs() < 0.01, "{uplinks}");
    assert!(
        uplinks["most"].as_f64() > uplinks["mean"].as_f64() && uplinks["most_at"].as_str().unwrap().starts_with("tor")
    );
    assert!(d["run"]["packet_hops"].as_f64() > Some(5e7));
}

#[test]
fn changes_and_algorithms_are_those_of_run() {
    let d = described("rocc-star", &["--cc", "dcqcn", "--set", "topology.rate=100Gbps"]);
    assert_eq!(d["cc"], "dcqcn");
    let port = &d["ports"][0];
    assert_eq!((port["rate_bps"].as_u64(), port["pfc_bytes"][0].as_u64()), (Some(100_000_000_000), Some(800_000)));
    // RED at 100 and 400 KB for 25 Gb/s.
    assert_eq!(port["ecn_bytes"], serde_json::json!([400_000.0, 1_600_000.0]));
    assert!(d["warnings"][0].as_str().unwrap().contains("`ai"), "its steps are for 40 Gb/s");
}

/// Returns what `check` prints of a scenario.
fn told(dir: &str, scenario: &str) -> String {
    told_with(dir, scenario, "", &[])
}

/// Returns what `check --json` prints of a scenario beside a flow list, `flows.csv`.
fn told_as_json(dir: &str, scenario: &str, flows: &str) -> Value {
    serde_json::from_str(&told_with(dir, scenario, flows, &["--json"])).unwrap()
}

fn told_with(dir: &str, scenario: &str, flows: &str, more: &[&str]) -> String {
    let dir = fresh_dir(dir);
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("scenario.toml");
    std::fs::write(&file, scenario).unwrap();
    std::fs::write(dir.join("flows.csv"), flows).unwrap();
    let output = run(&[&["check", file.to_str().unwrap()], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn paths_and_their_meaning_for_receivers_are_said() {
    let paths = |more: &str| {
        let text = told(
            "check_paths",
            &format!(
                "{more}\n[topology]\nkind = \"leaf-spine\"\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1MB\"\n"
            ),
        );
        text.lines().find(|line| line.starts_with("paths ")).unwrap().to_owned()
    };
    let spray =
        |transport: &str| paths(&format!("[routing]\nbalance = \"spray\"\n[transport]\ncc = \"dctcp\"\n{transport}"));
    assert!(
        paths("").contains("ecmp: each flow takes one path by a hash, and its packets stay in order"),
        "{}",
        paths("")
    );
    assert!(spray("").contains("overtake each other, and go-back-N discards what is out of order"), "{}", spray(""));
    let selective = spray("recovery = \"selective-repeat\"");
    assert!(selective.contains("report every gap as a loss at once (`reorder_window` is 0)"), "{selective}");
    let patient = spray("recovery = \"selective-repeat\"\nreorder_window = \"100us\"");
    assert!(patient.contains("wait for 100us (`reorder_window`) before they report a gap"), "{patient}");
    assert!(spray("kind = \"tcp\"").contains("TCP tells disorder from loss by time"));
    assert_eq!(described("rocc-star", &[])["routing"]["meaning"], "there is one shortest path between any two hosts");
}

/// Switches that trim drop no data, and hosts that choose paths have a rule.
#[test]
fn the_fate_of_data_and_the_rule_of_hosts_are_said() {
    let of = |transport: &str| {
        let rest = "[topology]\nkind = \"leaf-spine\"\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1MB\"\n";
        told("check_trims", &format!("[routing]\nbalance = \"host\"\n[transport]\n{transport}\n{rest}"))
    };
    let uet = of("cc = \"nscc\"");
    assert!(
        uet.contains("off: data that finds no room is cut to its header, and headers that find none are dropped"),
        "{uet}"
    );
    assert!(uet.contains("by the values that their packets carry (`entropy = \"mixed\"`)"), "{uet}");
    let lossy = of("cc = \"dctcp\"\nkind = \"tcp\"\n[switch]\npfc = false");
    assert!(
        lossy.contains("off: packets that find no room are dropped") && lossy.contains("`entropy = \"plb\"`"),
        "{lossy}"
    );
}

#[test]
fn hosts_that_are_not_ideal_are_listed() {
    let scenario = |rest: &str| {
        format!("[topology]\nkind = \"star\"\nhosts = 6\n[[traffic]]\nkind = \"permutation\"\nbytes = \"1MB\"\n{rest}")
    };
    let text = told(
        "check_hosts",
        &scenario(
            "[[host]]\nhosts = \"h0-h3\"\nprocessing = \"700ns\"\njitter = { distribution = \"exponential\", mean = \"2us\" }\n\
             noise = { period = \"1ms\", length = \"20us\" }\nnic_rate = \"30Gbps\"\n\
             [[host]]\nhosts = \"h4\"\nnic_rate = \"20Gbps\"\nrx_rate = \"10Gbps\"\nrx_full = \"drop\"\n\
             [[host]]\nhosts = \"h5\"\nrx_rate = [{ at = \"0s\", rate = \"30Gbps\" }, { at = \"1ms\", rate = \"5Gbps\" }]\nrx_pause_at = \"500KB\"\n",
        ),
    );
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("hosts ")).collect();
    let want = [
        "4 hosts (h0, h1, h2, ...): act 700ns after arrivals; exponential jitter of 2us on average; stand still for 20us about every 1ms; \
         send at 30Gbps over links of 25Gbps, which is no limit",
        "1 host (h4): send at 20Gbps over links of 25Gbps; drain data into memory at 10Gbps from links of 25Gbps; \
         drop what a buffer of 1MB has no room for",
        "1 host (h5): drain data into memory at 5Gbps to 30Gbps, in 2 steps from links of 25Gbps; \
         pause their switches above 500KB of 1MB, until 497820B",
    ];
    assert_eq!(lines.len(), want.len(), "{text}");
    for (line, want) in lines.iter().zip(want) {
        assert_eq!(line.trim_start_matches("hosts").trim(), want);
    }
    // The fixed delays of both ends.
    let base_us = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("base RTT")).unwrap().to_owned();
        line.split_whitespace().nth(2).unwrap().parse::<f64>().unwrap()
    };
    let ideal = told("check_ideal_hosts", &scenario(""));
    assert!((base_us(&text) - base_us(&ideal) - 1.4).abs() < 0.011, "{text}{ideal}");
}

#[test]
fn faults_are_listed_with_the_links_they_found() {
    let text = told(
        "check_faults",
        "duration = \"9ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n\
         [[traffic]]\nname = \"ring\"\nkind = \"permutation\"\nbytes = \"1MB\"\n\
         [[fault]]\nlinks = \"tor-uplinks\"\nloss = 0.0001\nstop = \"5ms\"\n\
         [[fault]]\nlinks = [\"tor0->*\"]\ndown_at = \"1ms\"\nup_at = \"1.2ms\"\nperiod = \"3ms\"\n\
         [[fault]]\nlinks = [\"spine1->tor1\"]\npackets = \"acks\"\nreorder = 0.01\nreorder_delay = \"5us\"\n",
    );
    let line = |head: &str| text.lines().find_map(|line| line.strip_prefix(head)).unwrap_or(&text).trim().to_owned();
    let want =
        "4 links one way (tor0->spine0, tor0->spine1, tor1->spine0, ...): packets 0.01 % lost, from 0s until 5ms";
    assert_eq!(line("fault 0"), want);
    // Two links up and two to hosts.
    assert!(line("fault 1").starts_with("4 links both ways (h0->tor0, h1->tor0, tor0->spine0, ...): "), "{text}");
    assert!(line("fault 1").ends_with("down from 1 ms until 1.2 ms, again every 3 ms"), "{text}");
    assert_eq!(line("fault 2"), "1 link one way (spine1->tor1): acks 1 % late by 5us");
    assert!(line("traffic 0").starts_with("ring: 4 flows"), "{text}");
}

/// A dumbbell of two hosts a side: each switch has two links of 1 Mb/s down and one to the other switch. The three
/// switches of an asymmetric network have 300 Gb/s each, of which the one between the others has 200 Gb/s to these.
#[test]
fn links_between_switches_of_a_tier_are_in_the_sum() {
    let switches = |dir: &str, topology: &str| {
        let rest = "[[traffic]]\nkind = \"permutation\"\nbytes = \"1MB\"\n";
        let text = told(dir, &format!("[topology]\n{topology}\n{rest}"));
        let lines = text.lines().filter_map(|line| line.strip_prefix("switches"));
        lines.map(|line| line.split(';').next().unwrap().trim().to_owned()).collect::<Vec<_>>()
    };
    let dumbbell = "kind = \"dumbbell\"\nleft = 2\nright = 2\nhost_rate = \"1Mbps\"\nbottleneck_rate = \"1Mbps\"";
    assert_eq!(switches("check_dumbbell", dumbbell), ["2 x tor: 2Mbps down, 3Mbps in all"]);
    let star = "kind = \"star\"\nhosts = 4\nrate = \"1Mbps\"";
    assert_eq!(switches("check_star", star), ["1 x tor: 4Mbps in all"]);
    let asymmetric = ["1 x tor: 100Gbps down, 300Gbps in all", "2 x tor: 200Gbps down, 300Gbps in all"];
    assert_eq!(switches("check_asymmetric", "kind = \"asymmetric\""), asymmetric);
}

#[test]
fn loads_say_what_they_count() {
    let output = run(&["check", concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/websearch.toml")]);
    let text = stdout(&output);
    let note = "with headers (9.0 % of payload), without acknowledgments; tables of runs count payload alone";
    assert!(text.contains(note), "{text}");
}

/// Each packet has a header of 48 B: 100 B are 148 on the wire, and 0.6 of payload are 0.888. In the list 100 B are one
/// packet and 1,500 two: 3 · 48 of 1,600 B are 9 %. Each host link of 25 Gb/s can carry 3,125 B in the microsecond
/// between the starts, and the two links carry 1,744 of 6,250.
#[test]
fn headers_of_small_flows_count() {
    let star = |hosts, rest: &str| {
        format!("[topology]\nkind = \"star\"\nhosts = {hosts}\n[transport]\ncc = \"dctcp\"\n[[traffic]]\n{rest}")
    };
    let small = star(4, "kind = \"poisson\"\nsizes = \"fixed\"\nsize = \"100B\"\nload = 0.6\nstop = \"100us\"\n");
    let d = told_as_json("check_small", &small, "");
    let mean = d["load"][0]["mean"].as_f64().unwrap();
    assert!((mean - 0.888).abs() < 0.03 && (d["load_headers"].as_f64().unwrap() - 0.48).abs() < 1e-9, "{d}");
    let text = told("check_small_text", &small);
    assert!(text.contains("with headers (48.0 % of payload)"), "{text}");

    let list = "start_ns,src,dst,bytes\n0,h0,h1,100\n1000,h0,h1,1500\n";
    let d = told_as_json("check_list", &star(2, "kind = \"list\"\npath = \"flows.csv\"\n"), list);
    let mean = d["load"][0]["mean"].as_f64().unwrap();
    assert!(
        (mean - 1_744.0 / 6_250.0).abs() < 1e-9 && (d["load_headers"].as_f64().unwrap() - 0.09).abs() < 1e-9,
        "{d}"
    );
}

/// A flow of 1 MB crosses one uplink. On two paths each uplink has a half of it, and a list's second flow has 1 KB.
#[test]
fn subflows_have_paths_of_their_own_in_the_load() {
    let of = |name: &str, subflows: &str| {
        let network = "[topology]\nkind = \"leaf-spine\"\n[transport]\nkind = \"tcp\"\ncc = \"lia\"\n[transport.tcp]\n";
        let text = format!("{network}{subflows}\n[[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\n");
        let flows = "start_ns,src,dst,bytes\n0,h0,h99,1000000\n1000000,h0,h99,1000\n";
        let d = told_as_json(name, &text, flows);
        let uplinks = d["load"].as_array().unwrap().iter().find(|load| load["links"] == "tor-uplinks").unwrap().clone();
        (uplinks["most"].as_f64().unwrap(), d["routing"]["meaning"].as_str().unwrap().to_owned())
    };
    let (one, two) = (of("check_flows", ""), of("check_subflows", "subflows = 2\npaths = \"disjoint\""));
    assert!(one.1.starts_with("each flow takes one path by a hash"), "{}", one.1);
    assert!(
        two.1.starts_with("each subflow takes one path of its own by a hash with ports for few shared"),
        "{}",
        two.1
    );
    assert!((two.0 / one.0 - 0.5).abs() < 0.01, "{one:?}, {two:?}");
}

/// Circuits carry what their days allow, and only the rest crosses the packet switch.
#[test]
fn loads_of_links_beside_circuits_are_left_out() {
    let network = "duration = \"1ms\"\n[topology]\nkind = \"rdcn\"\n";
    let text = format!("{network}[[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.3\n");
    let d = told_as_json("check_circuits", &text, "");
    let sets: Vec<&str> = d["load"].as_array().unwrap().iter().map(|load| load["links"].as_str().unwrap()).collect();
    assert_eq!((sets, &d["load_beside_circuits"][0]), (vec!["host-links", "tor-downlinks"], &"tor-uplinks".into()));
    let told = told("check_circuits_text", &text);
    assert!(told.contains("\n           not known of tor-uplinks: circuits carry a part of it\n"), "{told}");
}

/// One of four listed flows waits, and so do those of a closed loop and of a ring. The three others are 3,144 B with
/// headers, in 2 us on the two links of 25 Gb/s.
#[test]
fn flows_that_wait_are_left_out_of_the_load_and_named() {
    let network = "[topology]\nkind = \"star\"\nhosts = 2\n[transport]\ncc = \"dctcp\"\n";
    let list = "[[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\n";
    let others = "[[traffic]]\nkind = \"closed-loop\"\nsizes = \"fixed\"\nsize = \"1KB\"\nload = 0.5\nstop = \"1ms\"\n\
        [[traffic]]\nkind = \"collective\"\nop = \"all-reduce\"\nbytes = \"1MB\"\n";
    let flows =
        "id,start_ns,src,dst,bytes,after\n1,0,h0,h1,1000,\n2,0,h1,h0,1000,1\n3,1000,h0,h1,1000,\n4,2000,h0,h1,1000,\n";
    let d = told_as_json("check_waits", &format!("{network}{list}{others}"), flows);
    let mean = d["load"][0]["mean"].as_f64().unwrap();
    assert!((mean - 3.0 * 1_048.0 / 12_500.0).abs() < 1e-9, "{d}");
    let (all, text) = (&d["load_without"], told_with("check_waits", &format!("{network}{list}{others}"), flows, &[]));
    assert_eq!((&all[0]["flows"], &all[0]["of"], &all[1]["group"]), (&1.into(), &4.into(), &1.into()), "{all}");
    for line in [
        "           not known of 1 of the 4 flows of traffic 0: they start as others end\n",
        "           not known of traffic 1: its flows start as others end\n",
        "           not known of traffic 2: its flows start as others end\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let alone = told("check_waits", &format!("{network}{others}"));
    assert!(alone.contains("\nload       not known of traffic 0: its flows start as others end\n"), "{alone}");
}

/// The number of a loop's flows depends on how long each takes.
#[test]
fn flows_of_a_closed_loop_are_the_most_that_can_come() {
    let network = "duration = \"1ms\"\n[topology]\nkind = \"star\"\nhosts = 2\n";
    let loops = "[[traffic]]\nname = \"cl\"\nkind = \"closed-loop\"\nsizes = \"fixed\"\nsize = \"50KB\"\nload = 0.5\n";
    let burst = "[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsenders = [\"h1\"]\nbytes = \"1KB\"\n";
    let text = told("check_loops", &format!("{network}{loops}{burst}"));
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("traffic 0  cl: at most ").contains(" flows, 50 KB each, at most "), "{text}");
    assert!(line("traffic 1  1 flow, 1 KB each, 1 KB in all").contains("starts: 0 us"), "{text}");
}

#[test]
fn wrong_files_are_errors_and_nothing_is_written() {
    let dir = fresh_dir("check_wrong");
    let file = dir.join("wrong.toml");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(&file, "[topology]\nkind = \"star\"\nhost = 3\n").unwrap();
    let output = run(&["check", file.to_str().unwrap()]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("hosts"), "{}", stderr(&output));
    let left: Vec<_> = std::fs::read_dir(Path::new(&dir)).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
