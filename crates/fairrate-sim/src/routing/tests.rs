use std::fmt::Write as _;

use fairrate_units::{Rate, Time};
use proptest::prelude::*;

use super::*;
use crate::topology::tests::powertcp;
use crate::topology::{FatTreeK, Topology, parse_topology_file};

fn key(src: u32, dst: u32, sport: u16, dport: u16) -> FlowKey {
    FlowKey { src: NodeId(src), dst: NodeId(dst), sport, dport }
}

/// Returns the nodes a packet passes, as `0-128-32`.
fn nodes(topology: &Topology, routes: &Routes, hash: EcmpHash, key: FlowKey) -> String {
    let mut ports = Vec::new();
    routes.path(hash, 1, key, &mut ports);
    let last = ports.last().map(|&port| topology.to(port));
    let nodes = ports.iter().map(|&port| topology.from(port)).chain(last);
    nodes.map(|node| node.0.to_string()).collect::<Vec<_>>().join("-")
}

/// Returns the fat-tree of PowerTCP's artifact, or the smaller one in which every aggregation switch has both cores.
fn artifact(hosts: u32) -> Topology {
    if hosts == 256 {
        return powertcp().build();
    }
    let mut text = "138 10 4 144\n128 129 130 131 132 133 134 135 136 137\n".to_owned();
    for host in 0..128 {
        _ = writeln!(text, "{host} {} 25Gbps 1us 0", 128 + host / 32);
    }
    let fabric = "128 132,128 133,129 132,129 133,130 134,130 135,131 134,131 135,132 136,132 137,133 136,133 137,134 136,134 137,135 136,135 137";
    for link in fabric.split(',') {
        _ = writeln!(text, "{link} 100Gbps 1us 0");
    }
    parse_topology_file(&text).unwrap()
}

/// Paths that ns-3 took: of the four flows of fairness4, and of some of websearch 60 %, the unloaded and the
/// incast flows. All 31,926 paths of the reference runs were compared once.
#[test]
fn murmur_paths_are_those_of_ns3() {
    let cases = [
        (128, key(0, 32, 10_000, 10_000), "0-128-133-129-32", "32-129-133-128-0"),
        (128, key(1, 32, 10_000, 10_001), "1-128-133-129-32", "32-129-132-128-1"),
        (128, key(2, 32, 10_000, 10_002), "2-128-132-129-32", "32-129-132-128-2"),
        (128, key(3, 32, 10_000, 10_003), "3-128-133-129-32", "32-129-132-128-3"),
        (256, key(177, 254, 10_000, 100), "177-261-268-273-270-263-254", "254-263-271-274-269-261-177"),
        (256, key(57, 243, 10_000, 100), "57-257-264-272-270-263-243", "243-263-270-272-264-257-57"),
        (256, key(255, 218, 10_000, 100), "255-263-270-262-218", "218-262-271-263-255"),
        (256, key(88, 187, 10_000, 100), "88-258-266-273-268-261-187", "187-261-268-272-266-258-88"),
        (256, key(0, 32, 10_002, 100), "0-256-265-257-32", "32-257-265-256-0"),
        (256, key(0, 1, 10_001, 100), "0-256-1", "1-256-0"),
        (256, key(81, 16, 10_000, 10_081), "81-258-267-274-265-256-16", "16-256-264-273-266-258-81"),
    ];
    for (hosts, key, there, back) in cases {
        let topology = artifact(hosts);
        let routes = Routes::new(&topology);
        assert_eq!(nodes(&topology, &routes, EcmpHash::Murmur3, key), there);
        assert_eq!(nodes(&topology, &routes, EcmpHash::Murmur3, key.reversed()), back);
    }
}

#[test]
fn the_own_hash_spreads_evenly_and_depends_on_the_seed() {
    let topology = artifact(256);
    let routes = Routes::new(&topology);
    let mut uses = vec![0u32; topology.n_ports()];
    let (mut ports, mut moved) = (Vec::new(), 0);
    for sport in 10_000..26_000 {
        routes.path(EcmpHash::Mix, 1, key(0, 255, sport, 100), &mut ports);
        for port in &ports {
            uses[port.index()] += 1;
        }
        let first = ports.clone();
        routes.path(EcmpHash::Mix, 2, key(0, 255, sport, 100), &mut ports);
        moved += u32::from(first != ports);
    }
    let through = |a: u32, b: u32| uses[topology.port(NodeId(a), NodeId(b)).unwrap().index()];
    // Half of 16,000 at each ToR uplink, a quarter at each core; four standard errors.
    assert!(through(256, 264).abs_diff(8_000) < 260);
    for (agg, core) in [(264, 272), (264, 273), (265, 274), (265, 275)] {
        assert!(through(agg, core).abs_diff(4_000) < 220);
    }
    // Another seed takes another of the four paths three times of four.
    assert!(u32::abs_diff(moved, 12_000) < 220);
}

#[test]
fn there_is_no_path_from_a_host_to_itself_or_to_a_switch() {
    let topology = artifact(256);
    let routes = Routes::new(&topology);
    for (src, dst) in [(3, 3), (3, 256), (256, 3), (3, 999)] {
        assert_eq!(nodes(&topology, &routes, EcmpHash::Mix, key(src, dst, 1, 1)), "");
    }
    assert_eq!(routes.distance(NodeId(0), NodeId(255)), Some(6));
    assert_eq!(routes.host_port(NodeId(7)), Some(PortId(14)));
}

#[test]
fn parallel_links_are_all_used() {
    let text = "4 2 5\n2 3\n0 2 25Gbps 1us 0\n1 3 25Gbps 1us 0\n2 3 25Gbps 1us 0\n3 2 25Gbps 1us 0\n2 3 25Gbps 1us 0\n";
    let topology = parse_topology_file(text).unwrap();
    let routes = Routes::new(&topology);
    let mut used: Vec<PortId> = Vec::new();
    for sport in 0..50 {
        let mut ports = Vec::new();
        routes.path(EcmpHash::Mix, 1, key(0, 1, sport, 1), &mut ports);
        used.push(ports[1]);
    }
    used.sort_unstable();
    used.dedup();
    assert_eq!(used, [PortId(4), PortId(7), PortId(8)]);
}

#[test]
fn thousands_of_hosts_take_little_room() {
    let gbps = Rate::from_gbps(100);
    let shape = FatTreeK {
        k: 16,
        hosts_per_edge: None,
        host_rate: gbps,
        fabric_rate: gbps,
        delay: Time::from_us(1),
        core_delay: Time::from_us(1),
    };
    let topology = shape.build();
    let routes = Routes::new(&topology);
    assert_eq!(routes.hops.len(), 16 * 320, "pods, whose edge switches are twins, times switches");
    assert_eq!(routes.longest_path(), 6);
    assert_eq!(routes.distance(NodeId(0), NodeId(1_023)), Some(6));
}

/// Draws a connected network: switch `i` is linked to an earlier one, further links at random, hosts anywhere.
fn any_network() -> impl Strategy<Value = Topology> {
    let link = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let parents = prop::collection::vec(any::<prop::sample::Index>(), 0..9);
    (parents, prop::collection::vec(link, 0..15), prop::collection::vec(any::<prop::sample::Index>(), 2..8)).prop_map(
        |(parents, extra, hosts)| {
            let (n_hosts, n_switches) = (hosts.len(), parents.len() + 1);
            let mut links: Vec<(usize, usize)> =
                hosts.iter().enumerate().map(|(h, s)| (h, n_hosts + s.index(n_switches))).collect();
            links.extend(parents.iter().enumerate().map(|(i, p)| (n_hosts + i + 1, n_hosts + p.index(i + 1))));
            let pairs = extra.iter().map(|(a, b)| (n_hosts + a.index(n_switches), n_hosts + b.index(n_switches)));
            links.extend(pairs.filter(|(a, b)| a != b));
            let ids: Vec<String> = (n_hosts..n_hosts + n_switches).map(|id| id.to_string()).collect();
            let mut text = format!("{} {n_switches} {}\n{}\n", n_hosts + n_switches, links.len(), ids.join(" "));
            for (i, (a, b)) in links.iter().enumerate() {
                _ = writeln!(text, "{a} {b} {}Gbps {}us 0", 10 + i % 3, 1 + i % 4);
            }
            parse_topology_file(&text).unwrap()
        },
    )
}

/// Leaves with the same neighbours, by links that are not all the same, a spine or two of which may be a leaf as well.
fn twin_network() -> impl Strategy<Value = Topology> {
    let shape = (1..4usize, 2..6usize, 0..3usize);
    (shape, prop::collection::vec(0..3u32, 64), prop::collection::vec(any::<prop::sample::Index>(), 2..9)).prop_map(
        |((spines, leaves, mixed), kinds, hosts)| {
            let (n_hosts, n_switches) = (hosts.len(), leaves + spines);
            let homes = leaves + mixed.min(spines);
            let mut links: Vec<(usize, usize)> =
                hosts.iter().enumerate().map(|(h, s)| (h, n_hosts + s.index(homes))).collect();
            for leaf in 0..leaves {
                let spine = |s| (n_hosts + leaf, n_hosts + leaves + s);
                links.extend((0..spines).map(spine));
                links.extend((kinds[40 + leaf] == 0).then(|| spine(0)));
            }
            let ids: Vec<String> = (n_hosts..n_hosts + n_switches).map(|id| id.to_string()).collect();
            let mut text = format!("{} {n_switches} {}\n{}\n", n_hosts + n_switches, links.len(), ids.join(" "));
            for (i, (a, b)) in links.iter().enumerate() {
                _ = writeln!(text, "{a} {b} 25Gbps {}us 0", 1 + kinds[i] / 2);
            }
            parse_topology_file(&text).unwrap()
        },
    )
}

/// Returns the hops of the longest and the cost of the dearest shortest path between hosts, found pair by pair.
fn extremes(topology: &Topology, cost: impl Fn(PortId) -> u64) -> (usize, u64) {
    let mut extremes = (0, 0);
    for dst in topology.hosts() {
        let distance = distances(topology, dst);
        let mut nodes: Vec<usize> = (0..topology.nodes.len()).collect();
        nodes.sort_by_key(|&node| distance[node]);
        let mut dearest = vec![0; nodes.len()];
        for &node in &nodes[1..] {
            let ports = (0..topology.n_ports() as u32).map(PortId).filter(|&p| topology.from(p).index() == node);
            let nearer = ports.filter(|&p| distance[topology.to(p).index()] < distance[node]);
            dearest[node] = nearer.map(|p| cost(p) + dearest[topology.to(p).index()]).max().unwrap();
        }
        for src in topology.hosts().filter(|&src| src != dst) {
            extremes = (extremes.0.max(distance[src.index()]), extremes.1.max(dearest[src.index()]));
        }
    }
    extremes
}

/// Returns the distance in hops of every node from a host, by relaxation: a simple model to compare with.
fn distances(topology: &Topology, from: NodeId) -> Vec<usize> {
    let mut distance = vec![usize::MAX / 2; topology.nodes.len()];
    distance[from.index()] = 0;
    for _ in 0..topology.nodes.len() {
        for link in &topology.links {
            for (a, b) in [(link.a, link.b), (link.b, link.a)] {
                distance[b.index()] = distance[b.index()].min(distance[a.index()] + 1);
            }
        }
    }
    distance
}

proptest! {
    #[test]
    fn paths_are_connected_shortest_and_free_of_loops(
        topology in prop_oneof![any_network(), twin_network()],
        hash in prop_oneof![Just(EcmpHash::Mix), Just(EcmpHash::Murmur3)],
        sport: u16,
    ) {
        let routes = Routes::new(&topology);
        for src in topology.hosts() {
            let distance = distances(&topology, src);
            for dst in topology.hosts().filter(|&dst| dst != src) {
                let mut ports = Vec::new();
                routes.path(hash, 1, FlowKey { src, dst, sport, dport: 100 }, &mut ports);
                prop_assert_eq!(ports.len(), distance[dst.index()]);
                prop_assert_eq!(routes.distance(src, dst), Some(ports.len() as u32));
                prop_assert_eq!((topology.from(ports[0]), topology.to(ports[ports.len() - 1])), (src, dst));
                for pair in ports.windows(2) {
                    prop_assert_eq!(topology.to(pair[0]), topology.from(pair[1]));
                    prop_assert!(!topology.is_host(topology.to(pair[0])), "hosts never forward");
                }
                let mut seen: Vec<NodeId> = ports.iter().map(|&port| topology.from(port)).collect();
                seen.sort_unstable();
                seen.dedup();
                prop_assert_eq!(seen.len(), ports.len());
            }
        }
    }

    #[test]
    fn the_longest_and_the_dearest_path_are_those_of_all_pairs(
        topology in prop_oneof![any_network(), twin_network()],
        up in 0u64..3,
    ) {
        let routes = Routes::new(&topology);
        let cost = |port: PortId| topology.link(port).delay.as_ps() + up * u64::from(port.0 / 2 % 3);
        let (longest, dearest) = extremes(&topology, cost);
        prop_assert_eq!(routes.longest_path() as usize, longest);
        prop_assert_eq!(routes.dearest_path(cost), dearest);
    }
}
