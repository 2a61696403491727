//! Hosts with queues before their links.

use std::fmt::Write;
use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{FlowOutcome, Recorder, RunTotals, Simulation};
use fairrate_units::Time;

const HOSTS: usize = 5;

/// Runs `rest` of a scenario on the network of a section, with TCP; `dir` has the files. Returns the outcomes of flows,
/// in their order, and totals.
fn run(topology: &str, rest: &str, dir: &Path, threads: usize) -> (Vec<FlowOutcome>, RunTotals) {
    let text = format!("duration = \"100ms\"\nstop = \"all-flows-done\"\n[topology]\n{topology}\n{rest}");
    let scenario = Scenario::from_toml(&text, "queues.toml", dir, &Overrides::default());
    let config = scenario.unwrap_or_else(|error| panic!("{error}")).into_sim_config();
    let mut recorder = Recorder::default();
    let mut simulation = Simulation::with_threads(config, threads);
    simulation.run(&mut recorder).expect("the run does not stall");
    let totals = simulation.totals();
    assert_eq!(totals.unaccounted_bytes(), 0);
    let mut flows = recorder.flows;
    flows.sort_by_key(|flow| flow.flow);
    (flows, totals)
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
