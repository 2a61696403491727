//! Packet spraying: each packet takes one of several paths, chosen hop by hop; packets are spread evenly, on shortest
//! paths only, and not onto links that are down.

mod common;

use common::{algorithm, config, flow, run};
use fairrate_sim::topology::{FatTreeK, LeafSpine, Topology};
use fairrate_sim::workload::Permutation;
use fairrate_sim::{Balance, DropCause, FaultConfig, Flap, PortId, ProbeSpec, Recovery, SimConfig};
use fairrate_units::{Bytes, Rate, Time};

const SPINES: u32 = 4;

/// Returns hosts 0 to 3 at one leaf, 4 to 7 at the other, with equal capacity upward and downward.
fn leaf_spine() -> Topology {
    let (rate, us) = (Rate::from_gbps(25), Time::from_us(1));
    LeafSpine {
        leaves: 2,
        spines: SPINES,
        hosts_per_leaf: 4,
        host_rate: rate,
        host_delay: us,
        uplink_rate: rate,
        uplink_delay: us,
    }
    .build()
}

fn sprayed(mut c: SimConfig) -> SimConfig {
    (c.fabric.balance, c.transport.recovery) = (Balance::Spray, Recovery::SelectiveRepeat);
    c
}

/// Returns the ports of the first leaf that lead to spines.
fn uplinks(topology: &Topology) -> Vec<PortId> {
    let leaf = topology.node("tor0").expect("the first leaf");
    let ports = (0..topology.n_ports() as u32).map(PortId).filter(|&port| topology.from(port) == leaf);
    ports.filter(|&port| !topology.is_host(topology.to(port))).collect()
}

/// Each of the four links upward carries a quarter of a flow's packets: a binomial number, within five standard deviations.
#[test]
fn packets_are_spread_evenly() {
    let n = 10_000_u64;
    let mut c = sprayed(config(leaf_spine(), algorithm("line-rate"), vec![flow(0, 4, n * 1_000, Time::ZERO)]));
    let up = uplinks(&c.topology);
    assert_eq!(up.len(), SPINES as usize);
    c.probes = vec![ProbeSpec::Ports { ports: up, every: Time::from_ms(10) }];
    c.stop.at = Some(Time::from_ms(10));
    c.stop.when_flows_done = false;
    let (told, totals) = run(c);
    assert_eq!(totals.drops.total(), 0);
    let last: Vec<u64> = told.ports.iter().rev().take(4).map(|sample| sample.tx_bytes / 1_048).collect();
    assert_eq!(last.iter().sum::<u64>(), n);
    let (mean, deviation) = (n as f64 / 4.0, (n as f64 * 0.25 * 0.75).sqrt());
    assert!(last.iter().all(|&k| (k as f64 - mean).abs() < 5.0 * deviation), "{last:?}");
}

/// A packet passes the number of links of a shortest path.
#[test]
fn paths_are_the_shortest() {
    let topology = FatTreeK {
        k: 4,
        hosts_per_edge: None,
        host_rate: Rate::from_gbps(25),
        fabric_rate: Rate::from_gbps(100),
        delay: Time::from_us(1),
        core_delay: Time::from_us(1),
    }
    .build();
    let permutation = Permutation { bytes: Bytes::new(50_000), start: Time::ZERO, hosts: None };
    let flows = permutation.generate(&topology, 3, 0).expect("enough hosts");
    let c = config(topology, algorithm("swift"), flows);
    let (plain, by_flow) = run(c.clone());
    let (told, by_packet) = run(sprayed(c));
    assert_eq!(by_packet.packet_hops, by_flow.packet_hops);
    assert_eq!((told.flows.len(), by_packet.flows_unfinished), (plain.flows.len(), 0));
}

/// One of a switch's uplinks is down for a while: no packet is put onto it, and only the packets that were on it are
/// lost.
#[test]
fn links_that_are_down_are_not_taken() {
    let mut c = sprayed(config(leaf_spine(), algorithm("line-rate"), vec![flow(0, 4, 5_000_000, Time::ZERO)]));
    let port = vec![uplinks(&c.topology)[0]];
    let flap = Some(Flap { down_at: Time::from_us(100), up_at: Time::from_ms(1), period: None });
    c.faults = vec![FaultConfig { ports: port, flap, ..FaultConfig::NONE }];
    let (told, totals) = run(c);
    // A link of 1 us at 25 Gb/s has up to 3 packets of 1,048 B on it, and one more is being sent.
    assert!(totals.drops.of(DropCause::Fault) <= 4, "{}", totals.drops.of(DropCause::Fault));
    let fct = told.flows[0].fct.expect("it is done");
    assert!(fct < told.flows[0].ideal_fct * 2, "{fct}");
}

/// Two parallel links, one faster and the other shorter: on either of them, a packet takes no less than the ideal time.
#[test]
fn the_ideal_is_a_lower_bound_where_links_differ() {
    let text = "4 2 4\n2 3\n0 2 25Gbps 1us 0\n2 3 100Gbps 20us 0\n2 3 25Gbps 1us 0\n3 1 25Gbps 1us 0\n";
    let topology = fairrate_sim::topology::parse_topology_file(text).expect("it reads");
    let mut fcts = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut c = sprayed(config(topology.clone(), algorithm("line-rate"), vec![flow(0, 1, 1_000, Time::ZERO)]));
        c.seed = seed;
        let told = run(c).0;
        let (fct, ideal) = (told.flows[0].fct.expect("it is done"), told.flows[0].ideal_fct);
        assert!(ideal <= fct, "{fct} {ideal}");
        fcts.insert(fct);
    }
    assert_eq!(fcts.len(), 2, "some take the one link and some the other");
}
