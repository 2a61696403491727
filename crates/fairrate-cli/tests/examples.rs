//! Every example runs, cut short, and shows its intended effect.

use std::path::{Path, PathBuf};

use crate::common::{fresh_dir, run, stderr, stdout};
use fairrate_results::{FlowRow, Results};
use fairrate_scenario::{Overrides, Scenario};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs an example with changes, and returns its JSON.
fn run_example(name: &str, sets: &[&str]) -> serde_json::Value {
    let (file, out) =
        (examples().join(format!("{name}.toml")), fresh_dir(&format!("example_{}", name.replace('/', "_"))));
    let mut args = vec!["run", file.to_str().unwrap(), "--quiet", "--json", "--out", out.to_str().unwrap()];
    for set in sets {
        args.extend(["--set", set]);
    }
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn number(json: &serde_json::Value, pointer: &str) -> f64 {
    json.pointer(pointer).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {json}"))
}

#[test]
fn every_example_has_a_test_here() {
    let mut names: Vec<String> = std::fs::read_dir(examples())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .map(|p| p.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    let expected = [
        "all-reduce",
        "coexistence",
        "d2tcp",
        "fairness",
        "faults",
        "flowtune-fairness",
        "flowtune-outage",
        "flowtune-web",
        "homa-incast",
        "hull",
        "incast10",
        "incast255",
        "perc-chain",
        "perc-fig6",
        "perc-link",
        "powertcp-rdcn",
        "ratemp-bottlenecks",
        "ratemp-download",
        "ratemp-incast",
        "ratemp-many-to-many",
        "ratemp-random",
        "rocc-asymmetric",
        "rocc-fabric",
        "rocc-fabric-poisson",
        "rocc-multi-bottleneck",
        "rocc-staircase",
        "rocc-star",
        "training",
        "tune-dcqcn",
        "websearch",
        "websearch-artifact",
        "websearch20",
    ];
    assert_eq!(names, expected);
}

/// A ring of eight ranks sends 2·7/8 of its bytes at 100 Gb/s: 2.35 ms of 16 MiB at least. Alone it comes within a
/// tenth of that, and not while another job shares its links.
#[test]
fn all_reduce_is_slower_beside_another_job() {
    let json = run_example("all-reduce", &[]);
    let ring = |field: &str| number(&json, &format!("/metrics/collectives/0/{field}"));
    assert_eq!((ring("complete"), ring("planned")), (3.0, 3.0), "{json}");
    let least_ns = 16.0 * 1024.0 * 1024.0 * 2.0 * 7.0 / 8.0 * 8.0 / 100.0;
    assert!((ring("ideal_ns") - least_ns).abs() < 1.0);
    assert!(1.2 * least_ns < ring("longest_ns"), "{json}");
    let out = Results::open(Path::new(json["dir"].as_str().unwrap())).unwrap();
    let rows = out.collectives().unwrap();
    assert_eq!(rows.len(), 8 * (3 + 4));
    let alone =
        rows.iter().filter(|row| (row.group, row.iteration) == (0, 2)).filter_map(|row| row.time_ns).max().unwrap();
    assert!((alone as f64) < 1.1 * least_ns, "{alone}");
}

/// Without rows of messages all else is the same, and there is a report.
#[test]
fn collectives_without_rows_of_messages_have_all_else() {
    let tables = |sets: &[&str]| {
        let json = run_example("all-reduce", sets);
        let out = Results::open(Path::new(json["dir"].as_str().unwrap())).unwrap();
        assert!(out.dir().join("report.html").exists(), "{json}");
        let rows = (out.collectives().unwrap(), out.links().unwrap());
        (out.flows().unwrap().len(), rows, json["fingerprint"].clone())
    };
    let (all, silent) = (tables(&["seed=3"]), tables(&["seed=3", "measure.messages=false"]));
    assert_eq!((silent.0, &silent.1, &silent.2), (0, &all.1, &all.2));
    assert!(1_000 < all.0);
}

/// A rank of the first stage computes for its share of two layers, and gradients beside the backward pass make
/// iterations shorter.
#[test]
fn training_is_faster_with_gradients_beside_the_backward_pass() {
    let json = run_example("training", &[]);
    let of = |json: &serde_json::Value, field: &str| number(json, &format!("/metrics/jobs/0/{field}"));
    assert_eq!((of(&json, "complete"), of(&json, "planned")), (2.0, 2.0), "{json}");
    let without = run_example("training", &["traffic.0.overlap=false"]);
    assert!(of(&json, "time_ns") < 0.95 * of(&without, "time_ns"), "{json}");
    assert!(of(&json, "exposed_ns") < of(&without, "exposed_ns"), "{json}");
    let out = Results::open(Path::new(json["dir"].as_str().unwrap())).unwrap();
    let iterations = out.iterations().unwrap();
    assert_eq!(iterations.len(), 2 * 16);
    for row in &iterations {
        let sum = row.compute_ns + row.exposed_ns + row.pipeline_ns + row.idle_ns;
        assert!(sum.abs_diff(row.end_ns - row.start_ns) <= 3, "rounded to nanoseconds");
    }
    // Two layers of 2·T·h·(4·2·h + 2·s) and 16·T·h², thrice for both passes, of two micro-batches, halved, at 10
    // operations a picosecond.
    let (tokens, h) = (512.0, 1_024.0);
    let layer = tokens * h * 8.0 * h + 4.0 * tokens * 512.0 * h + 16.0 * tokens * h * h;
    let want_ns = 2.0 * 2.0 * 3.0 * layer / 2.0 / 10.0 / 1e3;
    let first = iterations.iter().find(|row| row.rank == 0).unwrap();
    assert!((first.compute_ns as f64 - want_ns).abs() < 1.0, "{} for {want_ns}", first.compute_ns);
    let operations = out.operations().unwrap();
    assert_eq!(number(&json, "/summary/jobs/0/operations") as usize, {
        let mut numbers: Vec<u32> = operations.iter().map(|row| row.operation).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    });
    let gradients = operations.iter().filter(|row| &*row.name == "gradients" && &*row.kind == "reduce-scatter");
    assert!(gradients.clone().all(|row| row.process_group.starts_with("dp")) && gradients.count() == 2 * 16 * 3);
}

/// The job of 64 GPUs with one layer and short sequences; its whole takes minutes.
#[test]
fn m64_runs_with_one_layer() {
    let small = ["layers=1", "sequence=256", "hidden=256", "ffn=1024"].map(|set| format!("traffic.0.{set}"));
    let json = run_example("large/m64", &small.each_ref().map(String::as_str));
    assert_eq!(number(&json, "/metrics/jobs/0/complete"), 1.0, "{json}");
    assert_eq!(number(&json, "/summary/jobs/0/ranks"), 64.0);
}

#[test]
fn d2tcp_misses_fewer_deadlines_than_dctcp() {
    let missed = |cc: &str| {
        let json = run_example("d2tcp", &["duration=100ms", "traffic.0.stop=80ms", &format!("transport.cc={cc}")]);
        assert_eq!(number(&json, "/summary/deadlines/flows"), 124.0, "{json}");
        assert_eq!(number(&json, "/summary/deadlines/open"), 0.0, "{json}");
        number(&json, "/metrics/deadlines/missed_share")
    };
    // Files read alone at 10 Gb/s take 6.4 ms, so all would be in time: deadlines are at least 10 ms.
    let (dctcp, d2tcp) = (missed("dctcp"), missed("d2tcp"));
    assert!(0.1 < dctcp && d2tcp < 0.8 * dctcp, "{dctcp} and {d2tcp}");
}

#[test]
fn flowtune_shares_alike_as_flows_come_and_go() {
    // A tenth of the time: an arrival every 1 ms, each flow for 5 ms.
    let sets = ["duration=11ms", "traffic.0.start=1ms", "traffic.0.interval=1ms", "traffic.0.hold=5ms"];
    let json = run_example("flowtune-fairness", &sets);
    assert!(0.999 < number(&json, "/metrics/jain"), "{json}");
    assert_eq!(number(&json, "/summary/drops"), 0.0, "{json}");
    assert_eq!(number(&json, "/summary/allocator/starts"), 5.0, "{json}");
    for cc in ["cc=dctcp", "cc=xcp", "cc=pfabric"] {
        run_example(
            "flowtune-fairness",
            &[&sets[..], &[&format!("transport.{cc}"), "switch.queue_limit=36864B"]].concat(),
        );
    }
}

#[test]
fn flowtune_serves_small_flows() {
    let json = run_example("flowtune-web", &["traffic.0.stop=500us"]);
    let flows = number(&json, "/summary/flows");
    assert_eq!(number(&json, "/summary/finished_flows"), flows, "{json}");
    assert_eq!(number(&json, "/summary/allocator/starts"), flows, "{json}");
    assert_eq!(number(&json, "/summary/allocator/ends"), flows, "{json}");
}

#[test]
fn flowtune_outlives_its_allocator() {
    let sets = ["allocator.outage.0.down_at=500us", "allocator.outage.0.up_at=1ms", "duration=1500us"];
    let json = run_example("flowtune-outage", &sets);
    assert!(0.0 < number(&json, "/summary/allocator/expired"), "{json}");
    let (starts, flows) = (number(&json, "/summary/allocator/starts"), number(&json, "/summary/flows"));
    assert!(0.0 < number(&json, "/summary/finished_flows") && starts < 2.0 * flows, "{json}");
}

#[test]
fn homa_keeps_rtt_bytes_of_each_granted_message() {
    let of = |overcommitment: u32| {
        let sets = ["duration=3500us".to_owned(), format!("transport.homa.overcommitment={overcommitment}")];
        let json = run_example("homa-incast", &sets.each_ref().map(String::as_str));
        assert_eq!(number(&json, "/metrics/slowdown/0/n"), 255.0, "{json}");
        assert_eq!(number(&json, "/metrics/drops"), 0.0, "{json}");
        assert!(0.99 < number(&json, "/metrics/ports/0/utilisation"), "{json}");
        ["mean", "peak"].map(|key| number(&json, &format!("/metrics/ports/0/qlen_{key}_bytes")))
    };
    let ([one, peak], [six, _]) = (of(1), of(6));
    // RTTbytes of each of eleven messages (25 Gb/s for a base RTT below 30 us), and answers of three packets.
    assert!(peak < 11.0 * 90e3 + 255.0 * 2944.0, "{peak}");
    assert!(2.0 * one < six, "{one} and {six}");
}

/// The first day of `tor0->tor12` is from 2.695 to 2.92 ms.
#[test]
fn circuits_are_used_as_figure_8_says() {
    let of = |cc: &str, prebuffer: &str| {
        let sets =
            ["duration=2920us", &format!("transport.cc={cc}"), &format!("transport.retcp.prebuffer={prebuffer}")];
        let json = run_example("powertcp-rdcn", &sets);
        let utilisation = number(&json, "/metrics/ports/0/throughput_bps") * 2920.0 / (100e9 * 225.0);
        (utilisation, number(&json, "/metrics/ports/0/qlen_mean_bytes"))
    };
    let (powertcp, _) = of("powertcp", "1800us");
    let (hpcc, _) = of("hpcc", "1800us");
    let (retcp, prebuffered) = of("retcp", "1800us");
    assert!(hpcc < powertcp && powertcp < retcp && 0.7 < powertcp, "{hpcc} {powertcp} {retcp}");
    let (_, late) = of("retcp", "600us");
    assert!(1.2 * late < prebuffered, "{late} {prebuffered}");
}

#[test]
fn hull_gives_a_little_of_the_link_for_short_queues() {
    let of = |phantom: &str| {
        let json = run_example("hull", &["duration=15ms", &format!("switch.ecn.phantom={phantom}")]);
        ["goodput_bps", "ports/0/qlen_mean_bytes", "slowdown/0/mean"]
            .map(|key| number(&json, &format!("/metrics/{key}")))
    };
    let ([dctcp, queue, slowdown], [hull, short, fast]) = (of("none"), of("0.95"));
    assert!((0.88..0.96).contains(&(hull / dctcp)), "{hull} of {dctcp}");
    assert!(5.0 * short < queue && 1.5 * fast < slowdown, "{short} of {queue}, {fast} of {slowdown}");
}

#[test]
fn ratemp_leaves_the_bottleneck_that_a_tcp_flow_needs() {
    // The flow starts after 0.2 s instead of 5 s, and the last 0.2 s count.
    let sets = ["duration=600ms", "traffic.1.start=200ms", "traffic.1.stop=600ms"];
    let json = run_example("ratemp-bottlenecks", &sets);
    let rates = Results::open(Path::new(json["dir"].as_str().unwrap())).unwrap().rates().unwrap();
    let goodput_mbps = |flow: u32, from_ms: f64, to_ms: f64| {
        let at = |t_ms: f64| {
            let samples = rates.iter().filter(|r| r.flow == flow && r.t_ns as f64 <= t_ms * 1e6);
            samples.map(|r| r.delivered_bytes).max().unwrap_or(0) as f64
        };
        (at(to_ms) - at(from_ms)) * 8.0 / (to_ms - from_ms) / 1e3
    };
    // A link of 500 Mb/s carries 478 Mb/s of payload. The connection alone uses both links.
    let alone = goodput_mbps(0, 100.0, 200.0);
    assert!((870.0..957.0).contains(&alone), "{alone}");
    // Then the connection leaves nearly all of one link to the flow, and keeps the other.
    let (flow, beside) = (goodput_mbps(1, 400.0, 600.0), goodput_mbps(0, 400.0, 600.0));
    assert!((430.0..479.0).contains(&flow), "{flow}");
    assert!((450.0..530.0).contains(&beside), "{beside}");
}

#[test]
fn ratemp_lets_downloads_through() {
    let json = run_example("ratemp-download", &["transport.cc=ratemp"]);
    assert_eq!(number(&json, "/summary/unfinished_flows"), 0.0, "{json}");
    assert_eq!(number(&json, "/summary/drops"), 0.0, "{json}");
}

#[test]
fn faults_lose_packets_and_everything_arrives() {
    for cc in ["dctcp", "powertcp"] {
        for recovery in ["go-back-n", "selective-repeat"] {
            let sets = [format!("transport.cc={cc}"), format!("transport.recovery={recovery}")];
            let json = run_example("faults", &sets.each_ref().map(String::as_str));
            assert_eq!(number(&json, "/summary/finished_flows"), 4.0, "{json}");
            assert!(0.0 < number(&json, "/summary/drops_faults"), "{json}");
            assert_eq!(number(&json, "/summary/drops_faults"), number(&json, "/summary/drops"), "{json}");
            assert_eq!(number(&json, "/summary/goodput_bytes"), 20e6, "{json}");
        }
    }
}

#[test]
fn incast10_fills_the_port_of_the_receiver() {
    let json = run_example("incast10", &["duration=1200us"]);
    assert!(0.9 < number(&json, "/metrics/ports/0/utilisation"));
    assert!(20e3 < number(&json, "/metrics/ports/0/qlen_peak_bytes"));
    assert_eq!(number(&json, "/metrics/drops"), 0.0);
}

#[test]
fn incast255_answers_arrive() {
    let json = run_example("incast255", &["duration=1500us"]);
    assert_eq!(number(&json, "/metrics/slowdown/0/n"), 255.0);
    assert_eq!(number(&json, "/metrics/flows_unfinished"), 0.0);
}

#[test]
fn fairness_has_four_flows_that_come_and_go() {
    // A tenth of the time: an arrival every 1 ms, each flow for 4 ms.
    let sets = ["duration=7200us", "traffic.0.start=100us", "traffic.0.interval=1ms", "traffic.0.hold=4ms"];
    let json = run_example("fairness", &[&sets[..], &["probe.1.every=10us", "probe.0.every=1us"]].concat());
    assert!(0.9 < number(&json, "/metrics/jain"), "{}", json["metrics"]["jain"]);
    assert!(0.9 < number(&json, "/metrics/ports/0/utilisation"));
}

/// CUBIC beside DCTCP is dropped where DCTCP is marked, and yields.
#[test]
fn coexistence_shows_what_each_block_gets() {
    let json = run_example("coexistence", &["duration=40ms", "measure.from=20ms"]);
    let group = |at: usize, field: &str| number(&json, &format!("/metrics/groups/{at}/{field}"));
    assert_eq!(json["metrics"]["groups"][1]["cc"], "cubic");
    let shares = [group(0, "share"), group(1, "share")];
    assert!((shares[0] + shares[1] - 1.0).abs() < 1e-9 && 0.7 < shares[0], "{shares:?}");
    assert!(0.0 < group(0, "marked") && group(0, "drops") == 0.0);
    assert!(group(1, "marked") == 0.0 && 0.0 < group(1, "drops"));
}

#[test]
fn websearch_offers_its_load_to_the_uplinks() {
    for (name, load, s) in [("websearch", 0.6, 0.042), ("websearch20", 0.2, 0.126)] {
        let path = examples().join(format!("{name}.toml"));
        let config = Scenario::load(&path, &Overrides::default()).expect("it reads").into_sim_config();
        // About 2,900 flows, and 16 uplinks of 100 Gb/s. The mean of that many sizes is 4 % off by chance.
        assert!((2_700..3_100).contains(&config.flows.len()), "{name}: {} flows", config.flows.len());
        let bytes: f64 = config.flows.iter().map(|f| f.bytes.as_f64()).sum();
        let offered = bytes * 8.0 / (16.0 * 100e9 * s);
        assert!((offered / load - 1.0).abs() < 0.1, "{name}: {offered}");
        let rack = |host: fairrate_sim::NodeId| config.topology.nodes[host.index()].rack;
        assert!(config.flows.iter().all(|f| rack(f.src) != rack(f.dst)), "{name}");
    }
}

#[test]
fn websearch_sends_every_flow_over_one_uplink() {
    for name in ["websearch", "websearch20"] {
        // The whole run, until the last byte has arrived.
        let json = run_example(name, &["traffic.0.stop=300us", "measure.from=0ns", "measure.until=end"]);
        assert_eq!(json["metrics"]["ports"].as_array().unwrap().len(), 16, "{name}");
        assert_eq!(number(&json, "/metrics/flows_unfinished"), 0.0, "{name}");
        // Uplinks carry the data of all flows once, and their acknowledgments: 1,090 and 88 bytes for 1,000 of payload.
        let carried = number(&json, "/metrics/all_ports/utilisation") * 16.0 * 100e9 / 8.0;
        let ratio = carried * number(&json, "/summary/sim_s") / number(&json, "/summary/goodput_bytes");
        assert!((1.17..1.2).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn websearch_artifact_has_the_traffic_of_the_public_code() {
    let path = examples().join("websearch-artifact.toml");
    let sets = vec![("traffic.0.stop".to_owned(), "400ms".to_owned())];
    let config =
        Scenario::load(&path, &Overrides { sets, ..Overrides::default() }).expect("it reads").into_sim_config();
    let rack = |host: fairrate_sim::NodeId| config.topology.nodes[host.index()].rack;
    let tor0 = rack(config.topology.hosts().next().expect("64 hosts"));
    assert_eq!(config.topology.hosts().count(), 64);
    // Its generator gives each host load * 25 Gb/s * 32 / 4 of uplink over the mean size, which are 274 flows a second.
    let per_host = config.flows.len() as f64 / 64.0 / 0.4;
    assert!((per_host / 273.9 - 1.0).abs() < 0.04, "{per_host}");
    let (from_tor0, from_tor1): (Vec<_>, Vec<_>) = config.flows.iter().partition(|f| rack(f.src) == tor0);
    assert!(from_tor1.iter().all(|f| rack(f.dst) != tor0));
    // 32 of the 63 hosts that a host of the first rack may send to are in the other one.
    let away = from_tor0.iter().filter(|f| rack(f.dst) != tor0).count() as f64 / from_tor0.len() as f64;
    assert!((away - 32.0 / 63.0).abs() < 0.03, "{away}");
    // No flow is below 2 KB, and 8.6 % are below 5 KB.
    let below = |bytes| config.flows.iter().filter(|f| f.bytes.as_u64() < bytes).count() as f64;
    let short = below(5_000) / config.flows.len() as f64;
    assert!(below(2_000) == 0.0 && (0.075..0.096).contains(&short), "{short}");
}

/// Returns the flows of a run, in order of their numbers.
fn flows(json: &serde_json::Value) -> Vec<FlowRow> {
    let dir = json["dir"].as_str().unwrap();
    let mut flows = Results::open(Path::new(dir)).unwrap().flows().unwrap();
    flows.sort_by_key(|f| f.id);
    flows
}

#[test]
fn rocc_star_shares_the_link_evenly() {
    let json = run_example("rocc-star", &[]);
    assert!(0.9 < number(&json, "/metrics/ports/0/utilisation"));
    assert!(0.95 < number(&json, "/metrics/jain"), "{}", json["metrics"]["jain"]);
    assert!(0.0 < number(&json, "/metrics/notices"));
}

#[test]
fn rocc_staircase_has_96_sources() {
    let json = run_example("rocc-staircase", &["duration=52ms", "probe.1.every=1ms"]);
    assert_eq!(flows(&json).iter().filter(|f| 0 < f.delivered_bytes).count(), 96);
    assert!(0.9 < number(&json, "/metrics/ports/0/utilisation"));
}

#[test]
fn rocc_multi_bottleneck_has_two_shares() {
    let flows = flows(&run_example("rocc-multi-bottleneck", &["probe.1.every=1ms"]));
    let bytes: Vec<f64> = flows.iter().map(|f| f.delivered_bytes as f64).collect();
    // 5 and 8.75 Gb/s, with some difference from the time before rates have settled.
    let ratio = (bytes[1..5].iter().sum::<f64>() / 4.0) / f64::midpoint(bytes[0], bytes[5]);
    assert!((1.5..2.0).contains(&ratio), "{bytes:?}");
}

#[test]
fn rocc_asymmetric_is_fair_to_slow_links() {
    let json = run_example("rocc-asymmetric", &["probe.1.every=1ms"]);
    assert!(0.98 < number(&json, "/metrics/jain"), "{}", json["metrics"]["jain"]);
}

#[test]
fn rocc_fabric_offers_both_its_workloads() {
    let json = run_example("rocc-fabric", &["duration=1ms"]);
    assert_eq!(json["metrics"]["ports"].as_array().unwrap().len(), 6);
    assert!(0.0 < number(&json, "/metrics/all_ports/utilisation") && 20.0 < number(&json, "/metrics/flows_done"));
    let json = run_example("rocc-fabric-poisson", &["traffic.0.stop=1ms"]);
    assert!(0.0 < number(&json, "/metrics/all_ports/utilisation") && 10.0 < number(&json, "/metrics/flows_done"));
}

#[test]
fn dcqcn_on_100_gbps_has_shorter_tails_with_lower_marks() {
    let p95_of_short_flows = |more: &[&str]| {
        let sets = [&["traffic.0.stop=1ms", "traffic.1.stop=1ms"][..], more].concat();
        let json = run_example("tune-dcqcn", &sets);
        assert_eq!(number(&json, "/metrics/flows_unfinished"), 0.0, "{json}");
        number(&json, "/metrics/slowdown/1/p95")
    };
    let (given, lower) =
        (p95_of_short_flows(&[]), p95_of_short_flows(&["switch.ecn.kmin=20KB", "switch.ecn.kmax=100KB"]));
    assert!(lower < 0.5 * given, "{lower} and {given}");
}

#[test]
fn perc_link_has_a_round_trip_of_120_us() {
    let json = run_example("perc-link", &["traffic.0.stop=5ms"]);
    assert_eq!(number(&json, "/metrics/flows_unfinished"), 0.0);
    // One way takes 59.9 us, and the smallest flow hardly longer.
    let ideal = flows(&json).iter().filter_map(|f| f.ideal_fct_ns).min().unwrap();
    assert!((59_800..61_000).contains(&ideal), "{ideal}");
}

#[test]
fn perc_fig6_measures_every_change() {
    let json = run_example("perc-fig6", &["traffic.0.changes=20"]);
    // The simultaneous start of 32 flows is one more change.
    assert_eq!(number(&json, "/metrics/convergence/changes"), 21.0);
    assert_eq!(number(&json, "/metrics/convergence/converged"), 21.0);
    assert!(number(&json, "/metrics/convergence/p50_rtts") < 10.0);
    assert!(0.0 < number(&json, "/metrics/control_packets"));
}

#[test]
fn perc_chain_settles_within_five_round_trips() {
    let json = run_example("perc-chain", &["duration=500us"]);
    assert!(number(&json, "/metrics/convergence/p99_rtts") < 5.0);
}

#[test]
fn ratemp_fabrics_finish_their_flows_without_a_drop() {
    let sets = ["traffic.0.stop=500us", "probe.0.every=50us"];
    let random = run_example("ratemp-random", &sets);
    assert_eq!(random["metrics"]["ports"].as_array().unwrap().len(), 54);
    let many = run_example("ratemp-many-to-many", &sets);
    let incast = run_example("ratemp-incast", &[&sets[..], &["traffic.1.stop=500us"]].concat());
    for json in [&random, &many, &incast] {
        assert_eq!(number(json, "/metrics/flows_unfinished"), 0.0);
        assert_eq!(number(json, "/metrics/drops"), 0.0);
        assert!(0.0 < number(json, "/metrics/flows_done"));
    }
    // Each pod has 18 hosts, and all receivers are in the last pod.
    assert!(flows(&many).iter().all(|f| 90 <= f.dst));
    assert!(flows(&incast).iter().any(|f| f.dst == 107 && f.group == 1));
}
