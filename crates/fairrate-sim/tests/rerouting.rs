//! Switches that take dead links out of their groups: when they do it, which flows move, and what is lost until then.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{algorithm, config, flow, run};
use fairrate_sim::topology::{LeafSpine, Topology};
use fairrate_sim::workload::Permutation;
use fairrate_sim::{
    Balance, DropCause, FaultConfig, Flap, FlowOutcome, FlowSpec, PacketEvent, PacketHeader, PacketKind, PacketStep,
    Pfc, PortId, Recovery, Rehash, Reroute, SimConfig, Simulation, Sink, Wants,
};
use fairrate_units::{Bytes, Rate, Time};

const SPINES: u32 = 4;
const HOSTS: u32 = 8;
const US: fn(u64) -> Time = Time::from_us;

fn leaf_spine(leaves: u32) -> Topology {
    let rate = Rate::from_gbps(25);
    LeafSpine {
        leaves,
        spines: SPINES,
        hosts_per_leaf: HOSTS,
        host_rate: rate,
        host_delay: US(1),
        uplink_rate: Rate::from_gbps(100),
        uplink_delay: US(1),
    }
    .build()
}

/// Returns both directions of the link between two nodes.
fn link(topology: &Topology, a: &str, b: &str) -> [PortId; 2] {
    let [a, b] = [a, b].map(|name| topology.node(name).expect("a node"));
    let port = topology.port(a, b).expect("a link");
    [port, port.reverse()]
}

/// Returns both directions of all links of a node.
fn links_of(topology: &Topology, node: &str) -> Vec<PortId> {
    let node = topology.node(node).expect("a node");
    let ports = (0..topology.n_ports() as u32).map(PortId).filter(|&port| topology.from(port) == node);
    ports.flat_map(|port| [port, port.reverse()]).collect()
}

fn down(ports: Vec<PortId>, down_at: Time, up_at: Time) -> FaultConfig {
    FaultConfig { ports, flap: Some(Flap { down_at, up_at, period: None }), ..FaultConfig::NONE }
}

fn reroute(delay: Time, convergence: Time) -> Reroute {
    Reroute { delay, convergence, rehash: Rehash::Modulo }
}

/// Returns flows from each host of the first leaf to all hosts of the second one, each with its own source port.
fn between_leaves(bytes: u64) -> Vec<FlowSpec> {
    let pairs = (0..HOSTS).flat_map(|src| (0..HOSTS).map(move |dst| (src, HOSTS + dst)));
    (0..).zip(pairs).map(|(n, (src, dst))| FlowSpec { sport: 1_000 + n, ..flow(src, dst, bytes, Time::ZERO) }).collect()
}

fn lossy(topology: Topology, flows: Vec<FlowSpec>) -> SimConfig {
    let mut c = config(topology, algorithm("dctcp"), flows);
    (c.fabric.pfc, c.transport.recovery) = (Pfc::Off, Recovery::SelectiveRepeat);
    c.transport.rto = Some(US(500));
    c
}

/// The times at which data of each flow leaves a port that leads to a spine.
#[derive(Default)]
struct Ways {
    uplinks: BTreeSet<PortId>,
    sent: BTreeMap<u32, Vec<(Time, PortId)>>,
    done: usize,
}

impl Sink for Ways {
    fn flow(&mut self, _: &FlowOutcome) {
        self.done += 1;
    }
    fn wants(&self) -> Wants {
        Wants { packets: true, ..Wants::default() }
    }
    fn packet(&mut self, event: &PacketEvent, _: Option<&PacketHeader<'_>>) {
        if event.step == PacketStep::Sent && event.kind == PacketKind::Data && self.uplinks.contains(&event.port) {
            self.sent.entry(event.flow.0).or_default().push((event.t, event.port));
        }
    }
}

fn ways(c: SimConfig) -> Ways {
    let uplinks = (0..SPINES).map(|spine| link(&c.topology, "tor0", &format!("spine{spine}"))[0]).collect();
    let mut ways = Ways { uplinks, ..Ways::default() };
    Simulation::new(c).run(&mut ways).expect("the run does not stall");
    ways
}

/// Until a link fails, flows take the paths that they would take without any reaction, and so everything is the same.
#[test]
fn without_a_failure_nothing_changes() {
    let c = || {
        let mut c = lossy(leaf_spine(3), between_leaves(50_000));
        c.faults = vec![down(link(&c.topology, "tor2", "spine0").to_vec(), US(1), US(2))];
        c
    };
    let (fixed, plain) = run(c());
    let mut by_hop = c();
    by_hop.fabric.reroute = Some(reroute(Time::ZERO, Time::ZERO));
    let (told, totals) = run(by_hop);
    assert_eq!(told, fixed);
    assert_eq!((totals.packet_hops, totals.drops), (plain.packet_hops, plain.drops));
}

/// A dead uplink: packets go on to it until its switch notices, and none after that; what was sent meanwhile is lost
/// and comes again. With the hash modulo the ports left, flows of other ports move too; with resilient hashing only
/// those of the dead port do.
#[test]
fn the_own_switch_leaves_a_dead_link_after_the_delay() {
    let (down_at, delay) = (US(100), US(300));
    for rehash in [Rehash::Modulo, Rehash::Resilient] {
        let mut c = lossy(leaf_spine(2), between_leaves(2_000_000));
        let dead = link(&c.topology, "tor0", "spine1");
        c.faults = vec![down(dead.to_vec(), down_at, Time::MAX)];
        c.fabric.reroute = Some(Reroute { delay, convergence: delay, rehash });
        let n = c.flows.len();
        let ways = ways(c);
        assert_eq!(ways.done, n, "nothing is lost for ever");
        let noticed = down_at + delay;
        let mut moved = BTreeMap::<bool, (usize, usize)>::new();
        for sent in ways.sent.values() {
            let ports = |from: Time, until: Time| {
                let within = sent.iter().filter(move |(t, _)| from <= *t && *t < until);
                within.map(|&(_, port)| port).collect::<BTreeSet<_>>()
            };
            let (before, after) = (ports(Time::ZERO, down_at), ports(noticed, Time::MAX));
            assert!(before.len() <= 1 && after.len() <= 1, "one path at a time: {before:?} {after:?}");
            assert!(!after.contains(&dead[0]));
            if let (Some(before), Some(after)) = (before.first(), after.first()) {
                let (moves, all) = moved.entry(*before == dead[0]).or_default();
                (*moves, *all) = (*moves + usize::from(before != after), *all + 1);
            }
        }
        let [others, own] = [false, true].map(|key| moved[&key]);
        assert_eq!(own.0, own.1, "all flows of the dead port move");
        let share = others.0 as f64 / others.1 as f64;
        // A flow of one of the three live ports keeps it with probability 1/3 if the hash modulo three is independent
        // of that modulo four. 48 flows: a standard deviation of 0.07.
        match rehash {
            Rehash::Modulo => assert!((share - 2.0 / 3.0).abs() < 0.21, "{others:?}"),
            Rehash::Resilient => assert_eq!(others.0, 0),
        }
    }
}

/// The link of one spine to the receivers' leaf is dead. The spine notices at once and has no other way. As long as the
/// senders' leaf has not heard of it, a share 1/k of sprayed packets is lost; afterwards none.
#[test]
fn until_others_hear_of_it_their_share_is_lost() {
    let lost = |convergence: Time| {
        let flows = (0..4).map(|host| flow(host, HOSTS + host, 400_000, Time::ZERO)).collect();
        let mut c = lossy(leaf_spine(2), flows);
        c.fabric.balance = Balance::Spray;
        c.transport.reorder_window = US(20);
        c.faults = vec![down(link(&c.topology, "tor1", "spine2").to_vec(), Time::ZERO, Time::MAX)];
        c.fabric.reroute = Some(reroute(Time::ZERO, convergence));
        let (told, totals) = run(c);
        let data = told.flows.iter().map(|flow| (400_000 + flow.retransmitted_bytes) / 1_000).sum::<u64>();
        (totals.drops.of(DropCause::Unreachable), data, totals.flows_unfinished)
    };
    let (drops, sent, unfinished) = lost(Time::MAX);
    assert_eq!(unfinished, 0, "retransmitted until it comes through");
    let share = drops as f64 / sent as f64;
    // Of n packets, each lost with probability 1/4: a standard deviation of sqrt(3/16 n), five of them. A few
    // acknowledgments are among the drops of no spine: they go the other way, around the dead port.
    let deviation = (0.1875 / sent as f64).sqrt();
    assert!((share - 0.25).abs() < 5.0 * deviation, "{drops} of {sent}");
    assert_eq!(lost(Time::ZERO).0, 0);
    let until = lost(US(200)).0;
    assert!(0 < until && until < drops / 2, "{until}");
}

/// A spine dies with all its links and comes back. All schemes lose what was on its links and in its queues, and no
/// more after that.
#[test]
fn a_spine_dies_and_comes_back() {
    for balance in [Balance::Ecmp, Balance::Spray, Balance::RoundRobin] {
        let topology = leaf_spine(4);
        let permutation = Permutation { bytes: Bytes::new(3_000_000), start: Time::ZERO, hosts: None };
        let flows = permutation.generate(&topology, 5, 0).expect("enough hosts");
        let mut c = lossy(topology, flows);
        c.fabric.balance = balance;
        c.transport.reorder_window = US(50);
        let dead = links_of(&c.topology, "spine0");
        c.faults = vec![down(dead, US(100), US(600))];
        let ideal = |mut c: SimConfig| {
            c.faults = Vec::new();
            run(c).0.flows.iter().filter_map(|flow| flow.fct).max().expect("flows")
        };
        let undisturbed = ideal(c.clone());
        c.fabric.reroute = Some(reroute(US(50), US(50)));
        let threads = [1, 2, 3].map(|threads| {
            let mut simulation = Simulation::with_threads(c.clone(), threads);
            simulation.run(&mut ()).expect("the run does not stall");
            simulation.totals().fingerprint
        });
        assert!(threads.iter().all(|&print| print == threads[0]), "{threads:x?}");
        let (told, totals) = run(c);
        assert_eq!(totals.flows_unfinished, 0, "{balance:?}");
        let last = told.flows.iter().filter_map(|flow| flow.fct).max().expect("flows");
        // 50 us until switches notice, a timeout of 500 us for what was lost, and its retransmission.
        assert!(last < undisturbed + US(1_000), "{balance:?}: {last} for {undisturbed}");
    }
}

/// A host whose only link is dead cannot be reached: what is for it is dropped, and others go on.
#[test]
fn a_dead_host_blocks_nobody() {
    let mut c = lossy(leaf_spine(2), vec![flow(0, 8, 500_000, Time::ZERO), flow(0, 9, 500_000, Time::ZERO)]);
    c.fabric.pfc = Pfc::Ingress;
    c.faults = vec![down(link(&c.topology, "tor1", "h8").to_vec(), Time::ZERO, US(2_000))];
    c.fabric.reroute = Some(reroute(Time::ZERO, US(100)));
    let (told, totals) = run(c);
    assert_eq!(totals.flows_unfinished, 0);
    assert!(0 < totals.drops.of(DropCause::Unreachable));
    let [dead, other] = [0, 1].map(|n: usize| told.flows[n].fct.expect("it is done"));
    assert!(US(2_000) < dead && other < US(600), "{dead} {other}");
}

/// The link to the receiver has a quarter of its 25 Gb/s from 100 to 300 us: a flow of 5 MB in packets of 1,048 B takes
/// 150 us longer, but for a packet that is under way at the ends of that time. From the beginning to the end it takes
/// four times as long.
#[test]
fn a_slow_link_takes_its_time() {
    let fct = |start: Time, stop: Time, rate: f64| {
        let mut c = config(leaf_spine(2), algorithm("line-rate"), vec![flow(0, 1, 5_000_000, Time::ZERO)]);
        let ports = vec![link(&c.topology, "tor0", "h1")[0]];
        c.faults = vec![FaultConfig { ports, rate, start, stop, ..FaultConfig::NONE }];
        run(c).0.flows[0].fct.expect("it is done").as_us_f64()
    };
    let whole = fct(Time::ZERO, Time::MAX, 1.0);
    let [a_while, always] = [fct(US(100), US(300), 0.25), fct(Time::ZERO, Time::MAX, 0.25)];
    assert!((a_while - whole - 150.0).abs() < 2.0, "{a_while} for {whole}");
    let packets = 5_000.0 * 1_048.0 * 8.0 / 25e3;
    assert!((always - whole - 3.0 * packets).abs() < 2.0, "{always} for {whole}");
}
