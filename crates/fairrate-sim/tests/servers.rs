//! Clusters of servers with scale-up networks: their networks, closed forms of a message, and jobs on both networks of
//! a GPU.

use crate::common::{algorithm, config, run};
use fairrate_sim::routing::Routes;
use fairrate_sim::topology::{Cluster, ScaleUp, Topology, Wiring};
use fairrate_sim::workload::{
    Collective, CollectiveAlgorithm as A, ComputeTime, Model, Op, Pace, Parallelism, Recompute, Sizes, StepLatency,
    Training, Workload, collective_of,
};
use fairrate_sim::{CollectiveBook, FlowSpec, NodeId, Recorder, SimConfig, Simulation, Switching};
use fairrate_units::{Bytes, Rate, Time};

const MTU: u64 = 1_000;
const HEADER: u64 = 48;
/// Picoseconds of a byte at 100 and at 800 Gb/s.
const BYTE: u64 = 80;
const FAST_BYTE: u64 = 10;
/// Delay of a link of the fabric and of a scale-up network, in picoseconds.
const DELAY: u64 = 500_000;
const FAST_DELAY: u64 = 25_000;

/// Returns servers of four GPUs at 800 Gb/s with NICs of 100 Gb/s, two servers a leaf, under three spines.
fn cluster(wiring: Wiring, servers: u32) -> Topology {
    cluster_of(wiring, servers, 4, 2)
}

fn cluster_of(wiring: Wiring, servers: u32, gpus_per_server: u32, servers_per_leaf: u32) -> Topology {
    let cluster = Cluster {
        wiring,
        servers,
        gpus_per_server,
        servers_per_leaf,
        spines: 3,
        host_rate: Rate::from_gbps(100),
        host_delay: Time::from_ps(DELAY),
        uplink_rate: Rate::from_gbps(100),
        uplink_delay: Time::from_ps(DELAY),
    };
    cluster.check().expect("it is a network");
    let mut topology = cluster.build();
    topology.add_servers(&cluster.scale_up(Rate::from_gbps(800), Time::from_ps(FAST_DELAY)));
    topology
}

/// Returns a run of a workload at line rate with an acknowledgment a message, of 60 bytes.
fn config_of(topology: Topology, mut workload: Workload) -> SimConfig {
    topology.spread_over_ports(&mut workload.flows, 1);
    let mut c = config(topology, algorithm("line-rate"), workload.flows);
    (c.tasks, c.dependencies) = (workload.tasks, workload.dependencies.into());
    (c.collectives, c.jobs) = (workload.collectives, workload.jobs);
    c.transport.ack_every = Some(Bytes::MAX);
    c.transport.ack = Bytes::new(60);
    c.fabric.buffer = Bytes::new(1 << 30);
    c.transport.rto = Some(Time::from_ms(400));
    c
}

/// Returns the time of the slowest rank in the only iteration of a collective, in picoseconds.
fn time(topology: Topology, collective: &Collective) -> u64 {
    let workload = collective.generate(&topology, 1, 0).expect("it goes with this network");
    let c = config_of(topology, workload);
    let (told, totals) = run(c.clone());
    assert_eq!((totals.drops.total(), told.flows.len()), (0, c.flows.len()));
    let mut book = CollectiveBook::new(&c).expect("there is a collective");
    let outcomes: Vec<_> =
        told.flows.iter().flat_map(|outcome| book.note(&c.flows[outcome.flow.index()], outcome)).collect();
    assert_eq!(outcomes.len(), 1);
    let time = outcomes[0].slowest().expect("it is complete").0;
    assert!(c.collectives[0].bound <= time, "no run is faster than the bound");
    time.as_ps()
}

/// Returns the time of a message over `links` links of which a byte takes `byte` picoseconds and that have this delay.
fn message(bytes: u64, links: u64, byte: u64, delay: u64) -> u64 {
    let wire = (bytes + bytes.div_ceil(MTU) * HEADER) * byte;
    wire + (links - 1) * (bytes.min(MTU) + HEADER) * byte + links * delay
}

fn host(server: u32, gpu: u32) -> NodeId {
    NodeId(4 * server + gpu)
}

/// Five servers of four GPUs: three segments of two servers, the last one with one. Rails have four leaves a segment,
/// DCN+ one.
#[test]
fn clusters_have_their_nodes_links_and_paths() {
    for (wiring, leaves) in [(Wiring::Rails, 12), (Wiring::Servers, 3)] {
        let t = cluster(wiring, 5);
        assert_eq!(t.nodes.len(), 20 + leaves + 3 + 20 + 5, "{wiring:?}");
        assert_eq!(t.links.len(), 20 + 3 * leaves + 20, "{wiring:?}");
        let routes = Routes::new(&t);
        let between = |a, b| {
            let (from, to) = t.ends_between(a, b);
            routes.distance(from, to)
        };
        let to_other_rail = if wiring == Wiring::Rails { 4 } else { 2 };
        assert_eq!(between(host(0, 1), host(0, 3)), Some(2), "by the server's own switch");
        assert_eq!(between(host(0, 1), host(1, 1)), Some(2), "by a leaf");
        assert_eq!(between(host(0, 1), host(1, 3)), Some(to_other_rail), "{wiring:?}");
        assert_eq!(between(host(0, 1), host(2, 1)), Some(4), "by a spine");
        assert_eq!(between(host(3, 2), host(4, 0)), Some(4), "by a spine");
        let up = t.scale_up_end(host(0, 1)).expect("it has one");
        assert_eq!(routes.distance(up, host(0, 1)), None, "no path leads from one network to the other");
        assert_eq!(
            t.port(up, t.node("nvswitch0").expect("it is there")),
            t.link_sets["scale-up-links"].get(2).copied()
        );
    }
}

/// Five servers of four GPUs with two ports, in two planes of 12 leaves and three spines each.
#[test]
fn first_and_second_ports_have_planes_of_their_own() {
    let t = cluster(Wiring::Planes, 5);
    assert_eq!(t.nodes.len(), 2 * (20 + 12 + 3) + 20 + 5);
    assert_eq!(t.links.len(), 2 * (20 + 3 * 12) + 20);
    assert_eq!((t.hosts().count(), t.end_points().count()), (20, 60));
    let routes = Routes::new(&t);
    let second = |host| t.second_ports.of(host).expect("it has one");
    let name = |node: NodeId| &*t.nodes[node.index()].name;
    let switch = |end| name(t.to(routes.host_port(end).expect("an end point"))).to_owned();
    for (server, gpu, tor) in [(0, 0, 0), (1, 3, 6), (2, 1, 10)] {
        let first = host(server, gpu);
        assert_eq!((name(second(first)), t.nic(second(first))), (&*format!("{}.p2", name(first)), first));
        assert_eq!([switch(first), switch(second(first))], [format!("tor{tor}"), format!("tor{}", tor + 1)]);
    }
    for (from, to, links) in [(host(0, 1), host(1, 1), 2), (host(0, 1), host(1, 2), 4), (host(0, 1), host(4, 1), 4)] {
        assert_eq!(routes.distance(from, to), Some(links));
        assert_eq!(routes.distance(second(from), second(to)), Some(links));
        assert_eq!(routes.distance(from, second(to)), None, "no path leads from one plane to the other");
    }
}

/// 4,000 flows between 20 hosts: each takes the same port of both hosts, the same one whenever its addresses, ports and
/// the seed are the same, and half of them the second one, within four standard deviations.
#[test]
fn flows_are_spread_over_both_ports() {
    let t = cluster(Wiring::Planes, 5);
    let flow = |i: u32| FlowSpec {
        sport: (i / 20) as u16,
        ..FlowSpec::new(NodeId(i % 20), NodeId((i + 1 + i % 19) % 20), Bytes::new(1), Time::ZERO)
    };
    let flows: Vec<FlowSpec> = (0..4_000).map(flow).filter(|flow| flow.src != flow.dst).collect();
    let spread = |seed| {
        let mut spread = flows.clone();
        t.spread_over_ports(&mut spread, seed);
        spread
    };
    let is_second = |end| t.second_ports.host_of(end).is_some();
    for (before, after) in flows.iter().zip(spread(1)) {
        assert_eq!((t.nic(after.src), t.nic(after.dst)), (before.src, before.dst));
        assert_eq!(is_second(after.src), is_second(after.dst));
    }
    let (n, n_second) = (flows.len() as f64, spread(1).iter().filter(|flow| is_second(flow.src)).count() as f64);
    assert!((n_second - n / 2.0).abs() < 4.0 * (n / 4.0).sqrt(), "{n_second} of {n}");
    assert_eq!(spread(1), spread(1));
    assert_ne!(spread(1), spread(2));
}

/// A ring of four ranks under one leaf of each plane: its eight channels are spread over both ports, of which the
/// busier one has its part of the time of one port for all, and no run is faster than both ports at line rate.
#[test]
fn a_collective_takes_both_ports() {
    let ranks: Vec<NodeId> = (0..4).map(|server| host(server, 0)).collect();
    let ring = |wiring| {
        let ring = collective_of(Op::AllGather, A::Ring, Bytes::new(3_200_000), 8, 1);
        time(cluster_of(wiring, 4, 4, 4), &Collective { hosts: Some(ranks.clone()), ..ring })
    };
    let (one, both) = (ring(Wiring::Rails), ring(Wiring::Planes));
    let of_busier: Vec<u64> = (4..=8).map(|channels| one * channels / 8).collect();
    let nearest = of_busier.iter().map(|&part| part.abs_diff(both)).min();
    assert!(both < one && nearest < Some(one / 20), "{both} of {one}");
}

/// Ten flows from a host to another: they arrive when the busier port has sent its part.
#[test]
fn a_port_has_the_rate_of_its_link() {
    let t = cluster(Wiring::Planes, 5);
    let flow = |i: u16| FlowSpec { sport: i, ..FlowSpec::new(host(0, 0), host(1, 0), Bytes::new(100_000), Time::ZERO) };
    let mut flows: Vec<FlowSpec> = (0..10).map(flow).collect();
    t.spread_over_ports(&mut flows, 1);
    let n_second = flows.iter().filter(|flow| t.second_ports.host_of(flow.src).is_some()).count() as u64;
    assert!((1..10).contains(&n_second), "both have some");
    let c = config_of(t, Workload::from(flows));
    let last = run(c).0.flows.iter().map(|flow| flow.fct.expect("it ends").as_ps()).max();
    assert_eq!(last, Some(message(n_second.max(10 - n_second) * 100_000, 2, BYTE, DELAY)));
}

/// A broadcast of two ranks is a message.
#[test]
fn a_message_takes_the_network_of_its_ends() {
    for bytes in [100, 1_000, 25_300, 1_000_000] {
        let one = |wiring, to: NodeId| {
            let hosts = Some(vec![host(0, 1), to]);
            time(
                cluster(wiring, 5),
                &Collective { hosts, ..collective_of(Op::Broadcast, A::Chain, Bytes::new(bytes), 1, 1) },
            )
        };
        for wiring in [Wiring::Rails, Wiring::Servers] {
            assert_eq!(one(wiring, host(0, 2)), message(bytes, 2, FAST_BYTE, FAST_DELAY), "same server");
            assert_eq!(one(wiring, host(1, 1)), message(bytes, 2, BYTE, DELAY), "same rail");
            assert_eq!(one(wiring, host(4, 1)), message(bytes, 4, BYTE, DELAY), "other segment");
        }
        assert_eq!(one(Wiring::Rails, host(1, 2)), message(bytes, 4, BYTE, DELAY), "other rail");
        assert_eq!(one(Wiring::Servers, host(1, 2)), message(bytes, 2, BYTE, DELAY), "other rail");
    }
}

/// The two networks of a GPU work at the same time: an exchange of all with all takes as long as its part over NICs.
#[test]
fn the_networks_of_a_gpu_work_side_by_side() {
    let all = |hosts: Vec<NodeId>| Collective {
        hosts: Some(hosts),
        ..collective_of(Op::AllToAll, A::Direct, Bytes::new(800_000), 1, 1)
    };
    // Two servers under the same leaf of DCN+, eight ranks: each sends 3/8 inside and 4/8 by its NIC, and no two send
    // to the same one.
    let ranks = (0..8).map(NodeId).collect();
    let both = time(cluster(Wiring::Servers, 2), &all(ranks));
    let outside = message(400_000, 2, BYTE, DELAY);
    // Four acknowledgments share the link.
    assert!((outside..=outside + 4 * 60 * BYTE).contains(&both), "{both} after {outside}");
}

fn job() -> Training {
    let model = Model {
        layers: 3,
        hidden: 64,
        ffn: 256,
        heads: 4,
        kv_heads: 4,
        vocabulary: 64,
        sequence: 64,
        micro_batch: 1,
        dtype_bytes: 2,
        gradient_bytes: 4,
        gated: false,
        experts: 4,
        top_k: 2,
        imbalance: 1.0,
    };
    Training {
        model,
        parallelism: Parallelism { tp: 4, cp: 1, dp: 4, ep: 2, pp: 1, sequence_parallel: true },
        microbatches: 2,
        virtual_stages: 1,
        recompute: Recompute::None,
        compute: ComputeTime::PerLayer { forward: Time::from_us(1), backward: Time::from_us(2) },
        optimizer: Time::ZERO,
        overlap: true,
        distributed_optimizer: true,
        tp_channels: 2,
        channels: 2,
        chunks: 2,
        hierarchy: false,
        merged_rings: false,
        iterations: 2,
        start: Time::ZERO,
        hosts: None,
        pace: Pace::EVEN,
    }
}

/// Tensor groups are servers, and all other groups are on rails. The bits are the same by spans and by events, on any
/// number of threads, although what arrives at one end point of a GPU starts messages at the other.
#[test]
fn jobs_on_both_networks_are_the_same_by_spans_and_by_events() {
    for wiring in [Wiring::Rails, Wiring::Servers] {
        let topology = cluster(wiring, 4);
        let workload = job().generate(&topology, 1, 0).expect("it goes with this network");
        let inside = workload.flows.iter().filter(|flow| topology.is_scale_up(flow.src)).count();
        let crossing =
            workload.flows.iter().filter(|flow| topology.is_scale_up(flow.src) != topology.is_scale_up(flow.dst));
        assert!(0 < inside && inside < workload.flows.len() && crossing.count() == 0);
        for cc in ["line-rate", "dcqcn"] {
            let mut c = config_of(topology.clone(), workload.clone());
            c.cc = algorithm(cc);
            let run = |threads, switching| {
                let mut told = Recorder::default();
                let mut simulation = Simulation::with_switching(c.clone(), threads, switching);
                simulation.run(&mut told).expect("nothing is stuck");
                (told.flows, told.tasks, simulation.totals().fingerprint)
            };
            let by_events = run(1, Switching::Events);
            assert_eq!(by_events.0.len(), c.flows.len());
            for (threads, switching) in [(1, Switching::Spans), (2, Switching::Spans), (3, Switching::Events)] {
                let other = run(threads, switching);
                assert_eq!(other.2, by_events.2, "{wiring:?} {cc} {threads} {switching:?}");
                assert!(other == by_events, "{wiring:?} {cc} {threads} {switching:?}");
            }
        }
    }
}

/// Any shape can have servers; a group of ranks on one of them sends nothing by NICs.
#[test]
fn groups_inside_servers_leave_nics_alone() {
    let mut star =
        fairrate_sim::topology::Star { hosts: 6, rate: Rate::from_gbps(100), delay: Time::from_ps(DELAY) }.build();
    star.add_servers(&ScaleUp { size: 3, rate: Rate::from_gbps(800), delay: Time::from_ps(FAST_DELAY) });
    let hosts = Some(vec![NodeId(3), NodeId(4), NodeId(5)]);
    let ring = Collective { hosts, ..collective_of(Op::AllGather, A::Ring, Bytes::new(30_000), 1, 1) };
    // Two steps of 10 kB, the second one behind an acknowledgment.
    assert_eq!(time(star, &ring), 2 * message(10_000, 2, FAST_BYTE, FAST_DELAY) + 60 * FAST_BYTE);
}

/// Returns the time of `steps` messages inside servers that wait for each other, and of the acknowledgments between
/// them.
fn inside(steps: u64, bytes: u64) -> u64 {
    steps * message(bytes, 2, FAST_BYTE, FAST_DELAY) + (steps - 1) * 60 * FAST_BYTE
}

/// Returns the same of messages on rails.
fn across(steps: u64, bytes: u64) -> u64 {
    steps * message(bytes, 2, BYTE, DELAY) + (steps - 1) * 60 * BYTE
}

fn hierarchical(op: Op, algorithm: A, bytes: u64) -> Collective {
    Collective { hierarchy: true, ..collective_of(op, algorithm, Bytes::new(bytes), 1, 1) }
}

/// The levels of a hierarchy take the sum of their steps, to the picosecond: no acknowledgment is between two levels,
/// as they have links of their own.
#[test]
fn levels_take_the_sum_of_their_steps() {
    for (gpus, servers) in [(2_u64, 2_u64), (4, 2), (4, 5), (8, 3), (8, 8)] {
        for part in [100, 1_000, 12_345] {
            let ranks = gpus * servers;
            let s = ranks * part;
            let of = |op, algorithm| {
                let rails = cluster_of(Wiring::Rails, servers as u32, gpus as u32, 64);
                time(rails, &hierarchical(op, algorithm, s))
            };
            let (g, n, of_gpu) = (gpus - 1, servers - 1, s / gpus);
            let name = format!("{gpus} x {servers}, {part}");
            let twice = 2 * inside(g, of_gpu) + across(2 * n, part);
            assert_eq!(of(Op::AllReduce, A::Ring), twice, "{name}");
            // With latencies longer than an acknowledgment, these have left when the next message begins.
            let alpha = StepLatency { outside: Time::from_us(14), inside: Some(Time::from_us(3)) };
            let late = Collective { pace: Pace { alpha, ..Pace::EVEN }, ..hierarchical(Op::AllReduce, A::Ring, s) };
            let acks = (2 * (g - 1) * FAST_BYTE + (2 * n - 1) * BYTE) * 60;
            let latency = 2 * g * 3_000_000 + 2 * n * 14_000_000;
            let rails = cluster_of(Wiring::Rails, servers as u32, gpus as u32, 64);
            assert_eq!(time(rails, &late), twice - acks + latency, "{name}");
            assert_eq!(of(Op::ReduceScatter, A::Ring), inside(g, of_gpu) + across(n, part), "{name}");
            assert_eq!(of(Op::AllGather, A::Ring), across(n, part) + inside(g, of_gpu), "{name}");
            assert_eq!(of(Op::AllToAll, A::Pairwise), inside(g, of_gpu) + across(n, s / servers), "{name}");
            // All at once: the first message of the other level goes when the last one inside has come. Acknowledgments
            // are behind data.
            let direct = of(Op::AllToAll, A::Direct);
            let wire = |bytes: u64, byte: u64| (bytes + bytes.div_ceil(MTU) * HEADER) * byte;
            let last = |bytes: u64, byte: u64, delay: u64| message(bytes, 2, byte, delay);
            let least = (g - 1) * wire(of_gpu, FAST_BYTE)
                + last(of_gpu, FAST_BYTE, FAST_DELAY)
                + (n - 1) * wire(s / servers, BYTE)
                + last(s / servers, BYTE, DELAY);
            let acks = 2 * 60 * (g * FAST_BYTE + n * BYTE);
            assert!((least..=least + acks).contains(&direct), "{name}: {direct} for {least}");
        }
    }
}

/// Chunks let levels overlap; a sum takes time. Every rank gets what is due to it, nothing crosses rails, and bits are
/// those of events.
#[test]
fn levels_overlap_by_chunks_and_stay_on_rails() {
    let (s, ranks) = (4_000_003_u64, 12_u64);
    let all = |collective: &Collective| {
        let topology = cluster_of(Wiring::Rails, 3, 4, 64);
        let workload = collective.generate(&topology, 1, 0).expect("it goes with these servers");
        for flow in &workload.flows {
            let (from, to) = (topology.nic(flow.src).0, topology.nic(flow.dst).0);
            let is_inside = from / 4 == to / 4;
            assert!(is_inside == topology.is_scale_up(flow.src) && (is_inside || from % 4 == to % 4), "{from} to {to}");
        }
        let of = |inside: bool| -> u64 {
            let flows = workload.flows.iter().filter(|flow| topology.is_scale_up(flow.src) == inside);
            flows.map(|flow| flow.bytes.as_u64()).sum()
        };
        let bytes = (of(true), of(false));
        let c = config_of(topology.clone(), workload);
        let mut told = Recorder::default();
        let mut by_events = Simulation::with_switching(c.clone(), 1, Switching::Events);
        by_events.run(&mut told).expect("nothing is stuck");
        let mut by_spans = Simulation::with_switching(c.clone(), 1, Switching::Spans);
        by_spans.run(&mut Recorder::default()).expect("nothing is stuck");
        assert_eq!(by_events.totals().fingerprint, by_spans.totals().fingerprint);
        (bytes, time(topology, collective))
    };
    for (op, algorithm) in [
        (Op::AllReduce, A::Ring),
        (Op::ReduceScatter, A::Ring),
        (Op::AllGather, A::Ring),
        (Op::AllToAll, A::Direct),
        (Op::AllToAll, A::Pairwise),
    ] {
        let whole = hierarchical(op, algorithm, s);
        let ((up, out), took) = all(&whole);
        // Of S at each rank, or of S at all of them together.
        let (times, data) = match op {
            Op::AllReduce => (2, s * 4),
            Op::AllToAll => (1, s * ranks),
            _ => (1, s * 4),
        };
        let near = |bytes: u64, want: u64| bytes.abs_diff(want) <= 2 * ranks * ranks;
        let inside = if op == Op::AllToAll { s * ranks * 3 / 4 } else { times * s * 3 * 3 };
        let outside = if op == Op::AllToAll { data * 2 / 3 } else { times * s * 2 };
        assert!(near(up, inside) && near(out, outside), "{op:?}: {up} for {inside}, {out} for {outside}");
        let ((up_of_pieces, out_of_pieces), pieces) = all(&Collective { chunks: 5, channels: 2, ..whole.clone() });
        assert_eq!((up_of_pieces, out_of_pieces), (up, out), "{op:?}");
        assert!(pieces < took, "{op:?} {algorithm:?}: {pieces} and {took}");
        let slow = Collective { reduce_rate: Rate::from_gbps(100), ..whole };
        let sums = all(&slow).1;
        assert!(if matches!(op, Op::AllReduce | Op::ReduceScatter) { took < sums } else { took == sums }, "{op:?}");
    }
}

/// Experts that get three times the mean hold up an exchange: the NIC of the busiest one is full, and no run is faster
/// than the bound.
#[test]
fn an_imbalance_fills_the_link_of_a_rank() {
    let flat = collective_of(Op::AllToAll, A::Direct, Bytes::new(4_000_000), 1, 1);
    let of = |sizes| time(cluster_of(Wiring::Servers, 4, 2, 64), &Collective { sizes, ..flat.clone() });
    let (even, hot) = (of(Sizes::Even), of(Sizes::Imbalance(3.0)));
    assert!((2.0..4.0).contains(&(hot as f64 / even as f64)), "{hot} and {even}");
    let hosts = Some((0..2).map(NodeId).collect());
    let one = Collective { hosts, sizes: Sizes::Matrix([0, 70_000, 0, 0].into()), ..flat };
    let rails = cluster_of(Wiring::Rails, 4, 2, 64);
    assert_eq!(time(rails, &one), message(70_000, 2, FAST_BYTE, FAST_DELAY));
}

#[test]
fn a_hierarchy_needs_servers_of_equal_parts() {
    let refused = |topology: &Topology, hosts: Option<Vec<u32>>| {
        let hosts = hosts.map(|hosts| hosts.into_iter().map(NodeId).collect());
        let collective = Collective { hosts, ..hierarchical(Op::AllReduce, A::Ring, 1_000) };
        collective.generate(topology, 1, 0).map(|_| ()).map_err(|e| (e.field, e.message))
    };
    let rails = cluster(Wiring::Rails, 3);
    let uneven = "a hierarchy is for several servers with the same number of ranks each, at least two";
    for hosts in [vec![0, 1, 2, 3], vec![0, 4, 8], vec![0, 1, 4]] {
        assert_eq!(refused(&rails, Some(hosts)), Err(("hierarchy", uneven.to_owned())));
    }
    for hosts in [None, Some(vec![0, 1, 6, 7]), Some(vec![7, 0, 6, 3])] {
        assert_eq!(refused(&rails, hosts), Ok(()));
    }
    let star =
        fairrate_sim::topology::Star { hosts: 6, rate: Rate::from_gbps(100), delay: Time::from_ps(DELAY) }.build();
    assert_eq!(refused(&star, None), Err(("hierarchy", "there are no servers".to_owned())));
}
