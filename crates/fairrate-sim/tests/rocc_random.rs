//! RoCC on random networks: the rates of its ports, against the exact max-min rates; and the causes of differences.

use std::fmt::Write as _;

use crate::common::{algorithm_with, config, flow, max_min_gbps, paths, random_flows, run};
use fairrate_control::RawValue;
use fairrate_sim::rng::Stream;
use fairrate_sim::topology::{Topology, parse_topology_file};
use fairrate_sim::{FlowSpec, NodeId, ProbeSpec, SimConfig, StopRule};
use fairrate_units::{Bytes, Time};

/// Payload and wire bytes of a full packet, and bytes of its acknowledgment.
const PAYLOAD: f64 = 1_000.0;
const WIRE: f64 = 1_048.0;
const ACK: f64 = 60.0;

/// Allowed distance of a flow from its max-min rate, on average over `FROM..TO`. Ports send whole multiples of 10 Mb/s,
/// 1 % of the lowest rates here, and their notices are not in the optimum: 0.13 % of 10 Gb/s a flow.
const TOLERANCE: f64 = 0.03;
const FROM: Time = Time::from_ms(20);
const TO: Time = Time::from_ms(30);

/// Switches in a tree, and hosts at them.
struct Tree {
    /// The switch of every host.
    hosts: Vec<u64>,
    host_gbps: u64,
    /// The link of every switch but the first: the index of the switch before it that it connects to, and the rate in
    /// Gb/s.
    uplinks: Vec<(u64, f64)>,
}

impl Tree {
    /// Returns two to four switches with two or three hosts of 40 Gb/s each, and links of 10 to 40 Gb/s between them.
    fn random(draws: &mut Stream) -> Self {
        let switches = 2 + draws.below(3);
        let hosts = (0..switches).flat_map(|switch| vec![switch; 2 + draws.below(2) as usize]).collect();
        let mut uplink = |switch| (draws.below(switch), [10.0, 20.0, 25.0, 40.0][draws.below(4) as usize]);
        Self { hosts, host_gbps: 40, uplinks: (1..switches).map(&mut uplink).collect() }
    }

    /// Returns the topology. Hosts come first. All links are 1 us long.
    fn topology(&self) -> Topology {
        let hosts = self.hosts.len() as u64;
        let switches = 1 + self.uplinks.len() as u64;
        let mut text = format!("{} {switches} {}\n", hosts + switches, hosts + switches - 1);
        let mut add = |line: String| text.write_str(&line).expect("a string takes all");
        (hosts..hosts + switches).for_each(|id| add(format!("{id} ")));
        for (host, switch) in self.hosts.iter().enumerate() {
            add(format!("\n{host} {} {}Gbps 1us 0", hosts + switch, self.host_gbps));
        }
        for (switch, (to, gbps)) in (1..).zip(&self.uplinks) {
            add(format!("\n{} {} {gbps}Gbps 1us 0", hosts + switch, hosts + to));
        }
        parse_topology_file(&text).expect("the topology is sound")
    }
}

/// Returns a run of flows under RoCC on a tree until `TO`.
fn rocc(tree: &Tree, params: &[(&str, RawValue<'_>)], flows: Vec<FlowSpec>) -> SimConfig {
    let mut c = config(tree.topology(), algorithm_with("rocc", params), flows);
    c.transport.reaction_delay = Time::from_us(15);
    c.transport.ack = Bytes::new(ACK as u64);
    c.transport.ack_class = 2;
    c.stop = StopRule { at: Some(TO), when_flows_done: false };
    c.probes.push(ProbeSpec::Flows { flows: None, every: Time::from_us(500) });
    c
}

/// Returns four to eight flows on a random tree. With `own_nics` every flow has a sending host of its own.
fn random_network(seed: u64, own_nics: bool) -> SimConfig {
    let mut draws = crate::common::draws(seed);
    let mut tree = Tree::random(&mut draws);
    let n = 4 + draws.below(5) as u32;
    let mut flows = random_flows(tree.hosts.len() as u64, n, &mut draws);
    if own_nics {
        for flow in &mut flows {
            tree.hosts.push(tree.hosts[flow.src.index()]);
            flow.src = NodeId(tree.hosts.len() as u32 - 1);
        }
    }
    rocc(&tree, &[], flows)
}

/// Returns the max-min rates of data in Gb/s on the wire, where acknowledgments take their part of the links they
/// cross.
fn optimum(c: &SimConfig) -> Vec<f64> {
    let paths = paths(c);
    let mut taken = vec![0.0; c.topology.n_ports()];
    let mut rates = Vec::new();
    // Acknowledgments are 6 % of data, so that each round is off by at most 6 % of the error of the last.
    for _ in 0..6 {
        rates = max_min_gbps(c, &paths, &taken);
        taken.fill(0.0);
        for (path, rate) in paths.iter().zip(&rates) {
            // A link's directions are neighbours, and paths of trees are the same both ways.
            for &port in path {
                taken[port as usize ^ 1] += rate * 1e9 * ACK / WIRE;
            }
        }
    }
    rates
}

/// Returns the rates received in order from `FROM` to the last sample, in Gb/s on the wire.
fn measured(c: &SimConfig) -> Vec<f64> {
    let (recorder, totals) = run(c.clone());
    assert_eq!(totals.drops.total(), 0, "lossless");
    let gbps = |id: usize| {
        let mut samples = recorder.rates.iter().filter(|s| s.flow.index() == id && FROM <= s.t);
        let (first, last) = (samples.next().expect("sampled"), samples.next_back().expect("sampled"));
        let bytes = (last.delivered_bytes - first.delivered_bytes) as f64;
        bytes * 8.0 * WIRE / PAYLOAD / 1e9 / (last.t - first.t).as_secs_f64()
    };
    (0..c.flows.len()).map(gbps).collect()
}

/// Returns the largest relative distance of a flow's rate from its max-min rate.
fn worst(c: &SimConfig) -> f64 {
    let off = measured(c).into_iter().zip(optimum(c)).map(|(got, want)| (got / want - 1.0).abs());
    off.fold(0.0, f64::max)
}

/// Returns the networks of 20 that are not at the optimum, with their distances from it.
fn misses(own_nics: bool) -> Vec<(u64, f64)> {
    let worst = (1..=20).map(|seed| (seed, worst(&random_network(seed, own_nics))));
    worst.filter(|&(_, worst)| TOLERANCE < worst).collect()
}

/// Six of 200 networks are off, the first that of seed 80. In five a flow alone gets 90 % of a link, as in
/// [`a_flow_alone_on_a_link_that_is_far_slower_than_its_host_oscillates`]: with a `rise_interval` of 80 us they are
/// within 0.5 %. That of seed 147 stays 31 % off.
#[test]
fn random_networks_settle_at_the_optimum() {
    assert_eq!(misses(true), []);
}

/// A flow that finds its NIC busy loses the time it waits, since pacing counts from the packet sent last. Ports raise
/// rates until the arriving traffic fills their links, so flows that wait get less than others. The same networks as in
/// [`random_networks_settle_at_the_optimum`], but for hosts that send several flows.
#[test]
fn flows_that_wait_for_their_nic_lose() {
    let misses = misses(false);
    let seeds: Vec<u64> = misses.iter().map(|&(seed, _)| seed).collect();
    assert_eq!(seeds, [3, 5, 12, 13, 15, 20], "{misses:?}");
    assert!(misses.iter().all(|&(_, worst)| worst < 0.18), "{misses:?}");
}

/// Three flows over 20 and then over 19.5 Gb/s. While the first link holds them back, F of the second climbs to Fmax.
/// Once they arrive with 20 Gb/s its queue grows by 2.5 KB a period, far less than Qmid, and alpha alone has to bring F
/// down to 6.5 Gb/s. At Qmax F has reached 7.8, and is cut to Fmin: the next climb takes 6 ms, in which the first
/// link's F climbs to Fmax and is cut as well. If Qmax is half as large again, rates converge.
#[test]
fn a_port_that_becomes_a_bottleneck_late_cuts_too_deep() {
    let tree = Tree { hosts: vec![0, 0, 0, 2, 2, 2], host_gbps: 40, uplinks: vec![(0, 20.0), (1, 19.5)] };
    let use_with = |q_max| {
        // Except for Qmax, section VI's values scaled to 20 Gb/s.
        let params = [
            ("thresholds", RawValue::Text("given")),
            ("q_ref", RawValue::Text("75KB")),
            ("q_mid", RawValue::Text("150KB")),
            ("q_max", RawValue::Text(q_max)),
        ];
        let flows = (0..3).map(|src| flow(src, 3 + src, u64::MAX, Time::ZERO)).collect();
        measured(&rocc(&tree, &params, flows)).iter().sum::<f64>() / 19.5
    };
    let (published, roomy) = (use_with("180KB"), use_with("270KB"));
    assert!(0.6 < published && published < 0.8 && 0.999 < roomy, "{published} and {roomy}");
}

/// A flow alone on a link of less than half its host's rate. The queue empties, the flow gets no notice and doubles its
/// rate after 55 us, and again, from just below half the link to almost twice the link. Meanwhile F has passed Fmax/2,
/// where gains double: the growing queue takes more off F than the same queue, as it shrinks, gives back below Fmax/2.
/// So F stays there. A recovery timer of two periods lets it climb.
#[test]
fn a_flow_alone_on_a_link_that_is_far_slower_than_its_host_oscillates() {
    for (host_gbps, gbps) in [(20, 10.0), (40, 10.0), (100, 10.0), (100, 40.0)] {
        let tree = Tree { hosts: vec![0, 1], host_gbps, uplinks: vec![(0, gbps)] };
        for rise in ["55us", "80us"] {
            let flows = vec![flow(0, 1, u64::MAX, Time::ZERO)];
            let used = measured(&rocc(&tree, &[("rise_interval", RawValue::Text(rise))], flows))[0] / gbps;
            let oscillates = 2.0 * gbps < host_gbps as f64 && rise == "55us";
            let want = if oscillates { 0.85..0.92 } else { 0.999..1.001 };
            assert!(want.contains(&used), "{host_gbps} and {gbps} Gb/s, {rise}: {used}");
        }
    }
}
