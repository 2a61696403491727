//! Headers that go back to their senders (`trim_return`): switches that have room neither for a packet nor for its
//! header.

use std::collections::BTreeSet;
use std::path::Path;

use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::topology::Topology;
use fairrate_sim::{
    FlowOutcome, NodeId, PacketEvent, PacketHeader, PacketKind, PacketStep, PortId, RunTotals, SimConfig, Simulation,
    Sink, Wants,
};

const ALL: [&str; 4] = ["nscc", "rccc", "eqds", "ndp"];

/// A sink that keeps outcomes and the steps of packets.
#[derive(Default)]
struct Seen {
    flows: Vec<FlowOutcome>,
    steps: Vec<PacketEvent>,
}

impl Sink for Seen {
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.flows.push(*outcome);
    }
    fn wants(&self) -> Wants {
        Wants { packets: true, ..Wants::default() }
    }
    fn packet(&mut self, event: &PacketEvent, _: Option<&PacketHeader<'_>>) {
        self.steps.push(*event);
    }
}

/// Returns an incast of seven hosts in two racks under `cc`, of 60 packets each, which are all sent at once. A port
/// holds three packets of 1,564 B and 25 headers.
fn incast(cc: &str, sets: &[(&str, &str)]) -> SimConfig {
    let entropy = match cc {
        "eqds" => "bitmap-once",
        "ndp" => "permutation",
        _ => "mixed",
    };
    let window = if cc == "ndp" { "[transport.ndp]\nwindow = 60" } else { "" };
    let text = format!(
        r#"
duration = "50ms"
stop = "all-flows-done"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 4
host_rate = "100Gbps"
host_delay = "500ns"
uplink_rate = "100Gbps"
uplink_delay = "500ns"
[switch]
buffer = "64MiB"
dt_alpha = "unlimited"
trim_limit = "5KB"
trim_size = "400B"
trim_return = true
[routing]
balance = "host"
[transport]
cc = "{cc}"
entropy = "{entropy}"
mtu = "1500B"
rto = "5ms"
[transport.uet]
ack_every = "1500B"
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 7
bytes = "90KB"
{window}
"#
    );
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let overrides = Overrides { sets, ..Overrides::default() };
    match Scenario::from_toml(&text, "returned.toml", Path::new("."), &overrides) {
        Ok(scenario) => scenario.into_sim_config(),
        Err(error) => panic!("{error}"),
    }
}

fn run(config: SimConfig, threads: usize) -> (Seen, RunTotals) {
    let mut seen = Seen::default();
    let mut simulation = Simulation::with_threads(config, threads);
    simulation.run(&mut seen).expect("the run does not stall");
    let totals = simulation.totals();
    assert_eq!(totals.unaccounted_bytes(), 0);
    seen.flows.sort_by_key(|flow| flow.flow);
    (seen, totals)
}

/// Returns the last completion time in microseconds.
fn last_us(flows: &[FlowOutcome]) -> f64 {
    flows.iter().map(|flow| flow.fct.expect("it is done").as_ps() as f64 / 1e6).fold(0.0, f64::max)
}

fn timeouts(flows: &[FlowOutcome]) -> u32 {
    flows.iter().map(|flow| flow.timeouts).sum()
}

/// Returns the number of links between two nodes.
fn distance(topology: &Topology, from: NodeId, to: NodeId) -> u32 {
    let mut reached = BTreeSet::from([from]);
    for n in 0.. {
        if reached.contains(&to) {
            return n;
        }
        let ports = (0..topology.n_ports() as u32).map(PortId);
        let next: Vec<NodeId> =
            ports.filter(|&port| reached.contains(&topology.from(port))).map(|port| topology.to(port)).collect();
        reached.extend(next);
    }
    unreachable!("the network is connected")
}

/// The 420 packets of 1,564 B take 53.1 us at 0.99 of the link. With headers that go back each is known to be lost
/// within a round trip, and no timeout is needed; without, the messages end with the timeouts of 5 ms. Requests for
/// credit do not go back: some are dropped.
#[test]
fn no_sender_waits_for_a_timeout() {
    for cc in ALL {
        let (seen, totals) = run(incast(cc, &[]), 1);
        assert!(20 < totals.counts.returns && totals.drops.total() <= 3, "{cc}: {totals:?}");
        assert_eq!((seen.flows.len(), timeouts(&seen.flows)), (7, 0), "{cc}");
        let with = last_us(&seen.flows);
        assert!(53.0 < with && with < 150.0, "{cc}: {with} us");
        let (seen, totals) = run(incast(cc, &[("switch.trim_return", "false")]), 1);
        assert!(20 < totals.drops.total() && totals.counts.returns == 0, "{cc}");
        assert!(0 < timeouts(&seen.flows) && 5_000.0 < last_us(&seen.flows), "{cc}");
    }
}

/// Each header that turns goes back over the links that lead to its sender, as many as it has crossed, however switches
/// choose paths.
#[test]
fn headers_go_back_to_their_senders() {
    for (balance, cc) in [("ecmp", "nscc"), ("host", "rccc"), ("spray", "eqds"), ("host", "ndp"), ("conga", "nscc")] {
        let quoted = format!("\"{balance}\"");
        let mut sets = vec![("routing.balance", quoted.as_str())];
        if balance != "host" {
            sets.push(("transport.entropy", "\"none\""));
        }
        let config = incast(cc, &sets);
        let topology = config.topology.clone();
        let sources: Vec<_> = config.flows.iter().map(|flow| flow.src).collect();
        let (seen, totals) = run(config, 1);
        assert!(20 < totals.counts.returns && totals.drops.total() <= 3, "{balance}: {totals:?}");
        let source = |step: &PacketEvent| sources[step.flow.index()];
        let back =
            || seen.steps.iter().filter(|step| step.kind == PacketKind::Returned && step.step == PacketStep::Sent);
        let home = back().filter(|step| topology.to(step.port) == source(step)).count() as u64;
        assert_eq!(home, totals.counts.returns, "{balance}: all of them arrive");
        let turns = seen.steps.iter().filter(|step| step.step == PacketStep::Returned);
        let n_hops: u32 = turns.map(|step| distance(&topology, topology.from(step.port), source(step))).sum();
        assert_eq!(back().count(), n_hops as usize, "{balance}");
    }
}

/// Any number of threads gives the same bits, under each scheme.
#[test]
fn threads_give_the_same_bits() {
    for (balance, cc) in [("ecmp", "nscc"), ("host", "rccc"), ("spray", "eqds"), ("host", "ndp")] {
        let quoted = format!("\"{balance}\"");
        let mut sets = vec![("routing.balance", quoted.as_str())];
        if balance != "host" {
            sets.push(("transport.entropy", "\"none\""));
        }
        let (one, totals) = run(incast(cc, &sets), 1);
        assert!(20 < totals.counts.returns, "{cc}: {totals:?}");
        for threads in [2, 3] {
            let (many, other) = run(incast(cc, &sets), threads);
            assert_eq!((&many.flows, other), (&one.flows, totals), "{cc} on {threads} threads");
        }
    }
}
