//! Hosts with queues before their links.

use std::fmt::Write;
use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{FlowOutcome, Recorder, RunTotals, SimConfig, Simulation};
use fairrate_units::Time;

const HOSTS: usize = 5;

/// Reads `rest` of a scenario on the network of a section, with TCP; `dir` has the files.
fn config(topology: &str, rest: &str, dir: &Path) -> SimConfig {
    let text = format!("duration = \"100ms\"\nstop = \"all-flows-done\"\n[topology]\n{topology}\n{rest}");
    let scenario = Scenario::from_toml(&text, "queues.toml", dir, &Overrides::default());
    scenario.unwrap_or_else(|error| panic!("{error}")).into_sim_config()
}

/// Runs a scenario; returns what was recorded, and totals.
fn record(config: SimConfig, threads: usize) -> (Recorder, RunTotals) {
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::with_threads(config, threads);
    simulation.run(&mut recorder).expect("the run does not stall");
    let totals = simulation.totals();
    assert_eq!(totals.unaccounted_bytes(), 0);
    recorder.flows.sort_by_key(|flow| flow.flow);
    (recorder, totals)
}

fn run(topology: &str, rest: &str, dir: &Path, threads: usize) -> (Vec<FlowOutcome>, RunTotals) {
    let (recorder, totals) = record(config(topology, rest, dir), threads);
    (recorder.flows, totals)
}

fn star(queues: bool) -> String {
    format!("kind = \"star\"\nhosts = {HOSTS}\nrate = \"10Gbps\"\ndelay = \"1us\"\nhost_queues = {queues}")
}

/// Returns the same star with its queues as a topology file: each is a switch with two links.
fn as_file() -> String {
    let switch = HOSTS;
    let queue = |host: usize| HOSTS + 1 + host;
    let switches: Vec<String> = (switch..=queue(HOSTS - 1)).map(|node| node.to_string()).collect();
    let mut text = format!("{} {} {}\n{}\n", 2 * HOSTS + 1, HOSTS + 1, 2 * HOSTS, switches.join(" "));
    for host in 0..HOSTS {
        writeln!(text, "{} {switch} 10Gbps 1us 0", queue(host)).expect("text");
    }
    for host in 0..HOSTS {
        writeln!(text, "{host} {} 1000Gbps 1ns 0", queue(host)).expect("text");
    }
    text
}

/// Two of every host's flows share its link, so queues of hosts mark and drop.
#[test]
fn a_queue_is_a_switch_between_host_and_link() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(dir.join("queues_of_hosts.txt"), as_file()).expect("it can be written");
    let file = "kind = \"file\"\npath = \"queues_of_hosts.txt\"";
    let traffic = "[[traffic]]\nkind = \"all-to-all\"\nbytes = \"300KB\"\n";
    let tcp = |cc: &str| format!("[transport]\nkind = \"tcp\"\ncc = \"{cc}\"\n[transport.tcp]\nrto_min = \"200us\"\n");
    for (cc, switch) in [
        ("dctcp", "[switch]\npfc = false\n"),
        ("cubic", "[switch]\npfc = false\nqueue_limit = \"60KB\"\n"),
        ("newreno", "[switch]\npfc = false\nqueue = \"sfq-codel\"\n"),
        ("cubic", "[switch]\nbuffer = \"100KB\"\n"),
    ] {
        let rest = format!("{switch}{}{traffic}", tcp(cc));
        let queued = run(&star(true), &rest, dir, 1);
        assert_eq!(queued, run(file, &rest, dir, 1), "{cc}, {switch}");
        assert_eq!(queued, run(&star(true), &rest, dir, 3), "{cc}, {switch}, three threads");
        assert_ne!(queued.0, run(&star(false), &rest, dir, 1).0, "{cc}, {switch}, no queues");
        let loses = switch.contains("queue");
        assert_eq!(0 < queued.1.dropped_bytes, loses, "{cc}, {switch}: {} B dropped", queued.1.dropped_bytes);
    }
}

/// A packet waits behind the ten that another flow has just put into the queue; without a queue it waits for the
/// packet under way and for one more, since the other flow has the turn.
#[test]
fn a_packet_waits_behind_the_window_of_another_flow() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let flows = "start_ns,src,dst,bytes\n0,0,1,14600\n1000,0,2,1460\n";
    std::fs::write(dir.join("queues_of_hosts.csv"), flows).expect("it can be written");
    let rest = "[switch]\necn = false\n[transport]\nkind = \"tcp\"\ncc = \"newreno\"\nmtu = \"1460B\"\nheader = \"78B\"\n\
                [[traffic]]\nkind = \"list\"\npath = \"queues_of_hosts.csv\"\n";
    let wait = |queues: bool| {
        let (flows, _) = run(&star(queues), rest, dir, 1);
        flows[1].fct.expect("it is done") - flows[1].ideal_fct
    };
    // A packet takes 1,230.4 ns on the link. The second flow starts 1,000 ns after the first.
    assert_eq!(wait(true), Time::from_ps(10 * 1_230_400 - 1_000_000));
    assert_eq!(wait(false), Time::from_ps(2 * 1_230_400 - 1_000_000));
}

/// A rate without a window is a pace, also that of the link: a lone flow finds its queue empty. Sampled rates are those
/// of the link.
#[test]
fn the_rate_of_a_link_is_not_that_at_which_its_queue_is_filled() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for cc in ["timely", "rcp", "rocc", "line-rate", "dctcp", "newreno", "swift"] {
        let rest = format!(
            "[switch]\npfc = false\n[transport]\nkind = \"tcp\"\ncc = \"{cc}\"\n[[traffic]]\nkind = \"incast\"\nreceiver = 0\n\
             senders = 1\nbytes = \"2MB\"\n[[probe]]\nflows = \"all\"\nevery = \"10us\"\n"
        );
        let (recorder, totals) = record(config(&star(true), &rest, dir), 1);
        let flow = &recorder.flows[0];
        let slowdown = flow.fct.expect("it is done").as_secs_f64() / flow.ideal_fct.as_secs_f64();
        // A window may fill the queue, and lose what it has no room for.
        let has_window = ["dctcp", "newreno", "swift"].contains(&cc);
        assert!(slowdown < 1.1 && (has_window || totals.dropped_bytes == 0), "{cc}: {slowdown}, {totals:?}");
        let fastest = recorder.rates.iter().map(|sample| sample.rate_bps).max();
        assert!(fastest.is_some_and(|bps| bps <= 10_000_000_000), "{cc}: {fastest:?} b/s");
    }
}

/// Loads are of the links behind the queues.
#[test]
fn traffic_is_as_much_as_without_queues() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let shape = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\nhost_queues = ";
    let tcp = "[transport]\nkind = \"tcp\"\ncc = \"dctcp\"\n";
    for traffic in [
        "kind = \"incast-queries\"\nload = 0.1\nrequest_size = \"100KB\"\nresponders = 3\nstop = \"5ms\"\n",
        "kind = \"poisson\"\nsizes = \"fb-web\"\nload = 0.1\nlink_set = \"host-links\"\nstop = \"5ms\"\n",
        "kind = \"poisson\"\nsizes = \"fb-web\"\nload = 0.1\nlink_set = \"tor-uplinks\"\nhosts = [\"tor1\"]\nstop = \"5ms\"\n",
        "kind = \"closed-loop\"\nsizes = \"fb-web\"\nload = 0.1\nstop = \"5ms\"\n",
    ] {
        let flows =
            |queues: bool| config(&format!("{shape}{queues}"), &format!("{tcp}[[traffic]]\n{traffic}"), dir).flows;
        assert!(flows(true) == flows(false), "{traffic}: {} and {} flows", flows(true).len(), flows(false).len());
    }
}

/// A queue holds as much as a switch with two links of its host's rate, and marks go by where ports lead.
#[test]
fn buffers_and_marks_are_those_of_links() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let tcp = "[transport]\nkind = \"tcp\"\ncc = \"dctcp\"\n";
    let flow = "[[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = 2\nbytes = \"1MB\"\n";
    // 3.4 KB for 1 Gb/s: 68 KB, of which a flow of ten segments and more fills what dt_alpha allows.
    let small =
        "[switch]\npfc = false\nbuffer = \"3.4KB\"\nbuffer_per = \"1Gbps\"\ndt_alpha = \"unlimited\"\necn = false\n";
    let (_, totals) = record(config(&star(true), &format!("{small}{tcp}{flow}"), dir), 1);
    assert!(totals.peak_buffer_bytes <= 3_400 * 50, "{}", totals.peak_buffer_bytes);
    let marked = |to_hosts: bool| {
        let ecn =
            format!("[switch]\npfc = false\necn = {{ kmin = \"20KB\", kmax = \"20KB\", to_hosts = {to_hosts} }}\n");
        // Windows fill the queues of senders, too, which lead to the switch; so they are paced below their links' rate.
        let paced = flow.replace("bytes = \"1MB\"", "bytes = \"1MB\"\ndemand = \"9Gbps\"");
        record(config(&star(true), &format!("{ecn}{tcp}{paced}"), dir), 1).1.counts.ecn_marks
    };
    assert!(0 < marked(true) && marked(false) == 0, "{} and {}", marked(true), marked(false));
}
