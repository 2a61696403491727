use fairrate_units::Rate;
use proptest::prelude::*;

use super::*;
use crate::config::Milestone;
use crate::topology::{FatTree, LeafSpine, Star};

/// Returns four racks of eight hosts at 25G, with two uplinks of 100G each.
fn fabric() -> Topology {
    LeafSpine {
        leaves: 4,
        spines: 2,
        hosts_per_leaf: 8,
        host_rate: Rate::from_gbps(25),
        host_delay: Time::from_us(1),
        uplink_rate: Rate::from_gbps(100),
        uplink_delay: Time::from_us(1),
    }
    .build()
}

fn websearch(load: f64, stop: Time) -> Poisson {
    Poisson {
        sizes: SizeDistribution::by_name("websearch").unwrap(),
        load,
        link_set: "tor-uplinks".to_owned(),
        hosts: None,
        destinations: Peers::OtherRack,
        receivers: None,
        start: Time::ZERO,
        stop,
        max_flows: None,
    }
}

fn rack(topology: &Topology, host: NodeId) -> u32 {
    topology.nodes[host.index()].rack
}

#[test]
fn poisson_offers_the_load_on_the_link_set() {
    let topology = fabric();
    let stop = Time::from_ms(20_000);
    // About 350,000 flows, so the load has a standard error of 0.46 %.
    for (link_set, capacity_bps) in [("tor-uplinks", 8e11), ("host-links", 8e11), ("all-switch-links", 16e11)] {
        let poisson = Poisson { link_set: link_set.to_owned(), ..websearch(0.3, stop) };
        let flows = poisson.generate(&topology, 1, 0).unwrap();
        let bytes: f64 = flows.iter().map(|flow| flow.bytes.as_f64()).sum();
        let load = bytes * 8.0 / 20.0 / capacity_bps;
        assert!((load / 0.3 - 1.0).abs() < 0.02, "{link_set}: {load}");
        assert!(flows.iter().all(|flow| rack(&topology, flow.src) != rack(&topology, flow.dst)));
    }
}

#[test]
fn poisson_arrivals_are_even_over_senders_and_receivers() {
    let topology = fabric();
    let poisson = Poisson { sizes: SizeDistribution::fixed(Bytes::new(100_000)), ..websearch(0.3, Time::from_ms(200)) };
    let flows = poisson.generate(&topology, 1, 0).unwrap();
    let mean = flows.len() as f64 / 32.0;
    let mut counts = vec![[0u32; 2]; 32];
    for flow in &flows {
        counts[flow.src.index()][0] += 1;
        counts[flow.dst.index()][1] += 1;
    }
    // Counts of a Poisson process: within 4.5 standard deviations of the mean.
    assert!(1_000.0 < mean);
    assert!(counts.iter().flatten().all(|&n| (f64::from(n) - mean).abs() < 4.5 * libm::sqrt(mean)), "{counts:?}");
    // The coefficient of variation of the gaps at one host is 1.
    let starts: Vec<f64> = flows.iter().filter(|f| f.src == NodeId(3)).map(|f| f.start.as_us_f64()).collect();
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let n = gaps.len() as f64;
    let (sum, squares) = gaps.iter().fold((0.0, 0.0), |(sum, squares), gap| (sum + gap, squares + gap * gap));
    let variation = libm::sqrt(squares / n - sum * sum / n / n) / (sum / n);
    assert!((variation - 1.0).abs() < 0.12, "{variation}");
}

#[test]
fn poisson_of_some_hosts_counts_their_links_only() {
    let topology = fabric();
    let hosts = Some((0..8).map(NodeId).collect());
    let poisson = Poisson { hosts, ..websearch(0.5, Time::from_ms(8_000)) };
    let flows = poisson.generate(&topology, 1, 0).unwrap();
    let bytes: f64 = flows.iter().map(|flow| flow.bytes.as_f64()).sum();
    // The uplinks of rack 0 are 200G. Standard error 1.2 %.
    assert!((bytes * 8.0 / 8.0 / 2e11 / 0.5 - 1.0).abs() < 0.04);
    assert!(flows.iter().all(|flow| rack(&topology, flow.src) == 0));
}

#[test]
fn what_changes_in_one_stream_leaves_the_others_alone() {
    let topology = fabric();
    let base = websearch(0.3, Time::from_ms(100)).generate(&topology, 1, 0).unwrap();
    let key = |flows: &[FlowSpec]| flows.iter().map(|f| (f.start, f.src, f.dst, f.sport)).collect::<Vec<_>>();

    // Other sizes of the same mean: same arrivals, same destinations.
    let fixed = SizeDistribution::fixed(Bytes::new(1_711_250));
    let flows = Poisson { sizes: fixed, ..websearch(0.3, Time::from_ms(100)) }.generate(&topology, 1, 0).unwrap();
    assert_eq!(key(&flows), key(&base));

    // Other destinations: same arrivals, same sizes.
    let flows = Poisson { destinations: Peers::OtherHost, ..websearch(0.3, Time::from_ms(100)) };
    let flows = flows.generate(&topology, 1, 0).unwrap();
    let arrival = |f: &FlowSpec| (f.start, f.src, f.bytes);
    assert!(flows.iter().map(arrival).eq(base.iter().map(arrival)));

    // A longer run begins with the shorter one; a limit cuts it.
    let longer = websearch(0.3, Time::from_ms(200)).generate(&topology, 1, 0).unwrap();
    assert_eq!(longer[..base.len()], base[..]);
    let limited = Poisson { max_flows: Some(10), ..websearch(0.3, Time::MAX) }.generate(&topology, 1, 0).unwrap();
    assert_eq!(limited[..], base[..10]);

    // Another seed and another block are other draws.
    assert_ne!(key(&websearch(0.3, Time::from_ms(100)).generate(&topology, 2, 0).unwrap()), key(&base));
    let block = websearch(0.3, Time::from_ms(100)).generate(&topology, 1, 1).unwrap();
    assert_ne!(block[0].start, base[0].start);
    assert_eq!((block[0].group, block[0].dport), (1, 101));
}

#[test]
fn a_host_keeps_its_draws_when_another_joins() {
    // Loads on host links scale with the senders, so the rate at each stays the same.
    let topology = fabric();
    let of = |hosts: &[u32]| {
        let hosts = Some(hosts.iter().copied().map(NodeId).collect());
        let poisson = Poisson { hosts, link_set: "host-links".to_owned(), ..websearch(0.5, Time::from_ms(50)) };
        poisson.generate(&topology, 1, 0).unwrap()
    };
    let (one, two) = (of(&[4]), of(&[4, 9]));
    assert!(!one.is_empty() && one.len() < two.len());
    assert!(two.iter().filter(|flow| flow.src == NodeId(4)).eq(&one));
}

#[test]
fn peers_are_where_they_should_be() {
    let topology = fabric();
    for &(name, peers) in Peers::NAMES {
        assert_eq!(peers.name(), name);
        let poisson = Poisson { destinations: peers, ..websearch(0.5, Time::from_ms(400)) };
        let mut seen = std::collections::BTreeSet::new();
        for flow in poisson.generate(&topology, 1, 0).unwrap() {
            assert_ne!(flow.src, flow.dst);
            if flow.src == NodeId(9) {
                seen.insert(flow.dst.0);
            }
        }
        let expected: Vec<u32> = match peers {
            Peers::OtherRack => (0..8).chain(16..32).collect(),
            Peers::OtherHost => (0..9).chain(10..32).collect(),
            Peers::SameRack => (8..9).chain(10..16).collect(),
            Peers::FromOwnRackOn => (8..9).chain(10..32).collect(),
        };
        assert!(seen.into_iter().eq(expected), "{name}");
    }
}

#[test]
fn named_receivers_take_all_flows() {
    let topology = fabric();
    let receivers = Some([9, 30, 9, 2].map(NodeId).to_vec());
    let poisson = Poisson { receivers, ..websearch(0.5, Time::from_ms(100)) };
    let flows = poisson.generate(&topology, 1, 0).unwrap();
    let to = |src: u32| {
        let own = flows.iter().filter(|f| f.src == NodeId(src)).map(|f| f.dst.0);
        own.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!((to(0), to(9)), (vec![2, 9, 30], vec![2, 30]));
    let alone = Poisson { hosts: Some(vec![NodeId(9)]), receivers: Some(vec![NodeId(9)]), ..poisson };
    assert_eq!(alone.generate(&topology, 1, 0).unwrap_err().to_string(), "host `h9` has no `receivers` peers");
}

#[test]
fn ports_are_unique_for_each_pair() {
    let topology = fabric();
    let flows = websearch(0.9, Time::from_ms(500)).generate(&topology, 1, 0).unwrap();
    let mut keys: Vec<_> = flows.iter().map(|f| (f.src, f.dst, f.sport, f.dport)).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), flows.len());
    assert_eq!((flows[0].sport, flows[0].dport), (10_000, 100));
    assert_eq!((default_ports(55_535, 0), default_ports(55_536, 0)), ((65_535, 100), (10_000, 100)));
}

#[test]
fn an_incast_has_the_senders_asked_for() {
    let topology = fabric();
    let incast = Incast {
        receiver: NodeId(5),
        senders: Senders::Count { n: 10, from: Peers::OtherRack },
        bytes: Bytes::new(1_000),
        start: Time::from_us(10),
        stop: Time::MAX,
        jitter: Time::ZERO,
    };
    let flows = incast.generate(&topology, 1, 0).unwrap();
    assert_eq!(flows.len(), 10);
    assert!(flows.windows(2).all(|pair| pair[0].src < pair[1].src));
    assert!(flows.iter().all(|f| f.dst == NodeId(5) && rack(&topology, f.src) != 0 && f.start == Time::from_us(10)));
    let senders = |flows: &[FlowSpec]| flows.iter().map(|f| f.src).collect::<Vec<_>>();
    assert_ne!(senders(&incast.generate(&topology, 2, 0).unwrap()), senders(&flows));

    let all = Incast { senders: Senders::Count { n: 31, from: Peers::OtherHost }, ..incast.clone() };
    assert_eq!(all.generate(&topology, 1, 0).unwrap().len(), 31);

    let listed =
        Incast { senders: Senders::Hosts(vec![NodeId(9), NodeId(9), NodeId(2)]), bytes: Bytes::MAX, ..incast.clone() };
    let listed = Incast { stop: Time::from_ms(1), ..listed };
    let flows = listed.generate(&topology, 1, 0).unwrap();
    assert_eq!(flows.iter().map(|f| (f.src.0, f.sport)).collect::<Vec<_>>(), [(2, 10_000), (9, 10_000), (9, 10_001)]);
    assert!(flows.iter().all(|f| f.bytes == Bytes::MAX && f.stop == Time::from_ms(1)));

    let jittered = Incast { jitter: Time::from_us(5), ..all }.generate(&topology, 1, 0).unwrap();
    assert!(jittered.iter().all(|f| (Time::from_us(10)..Time::from_us(15)).contains(&f.start)));
    assert!(jittered.windows(2).any(|pair| pair[0].start != pair[1].start));
}

#[test]
fn file_requests_are_incasts_from_other_racks() {
    let topology = fabric();
    let queries = IncastQueries {
        request_size: Bytes::new(2_000_000),
        responders: 8,
        from: Responders::OtherRacks,
        rate: RequestRate::PerSecond(100.0),
        start: Time::ZERO,
        stop: Time::from_ms(1_000),
    };
    for from in [Responders::OtherRacks, Responders::OneOtherRack] {
        let flows = IncastQueries { from, ..queries.clone() }.generate(&topology, 1, 0).unwrap();
        assert!(flows.is_sorted_by_key(|f| (f.start, f.src)));
        let requests: Vec<&[FlowSpec]> = flows.chunk_by(|a, b| a.start == b.start).collect();
        // 3200 requests are expected; four standard deviations.
        assert!(requests.len().abs_diff(3_200) < 226, "{}", requests.len());
        for request in requests {
            assert_eq!(request.len(), 8);
            let mut racks: Vec<u32> = request.iter().map(|f| rack(&topology, f.src)).collect();
            racks.dedup();
            let own = rack(&topology, request[0].dst);
            assert!(request.iter().all(|f| f.dst == request[0].dst && f.bytes == Bytes::new(250_000)));
            assert!(!racks.contains(&own) && (from == Responders::OtherRacks || racks.len() == 1));
            assert!(request.windows(2).all(|pair| pair[0].src < pair[1].src));
        }
    }
}

/// The payload is that of 10 % of all hosts' links within four standard deviations.
#[test]
fn a_load_of_requests_is_of_the_hosts_links() {
    let queries = |rate| IncastQueries {
        request_size: Bytes::new(2_000_000),
        responders: 8,
        from: Responders::OtherRacks,
        rate,
        start: Time::ZERO,
        stop: Time::from_ms(125),
    };
    let topology = fabric();
    let made = |rate| queries(rate).generate(&topology, 1, 0).unwrap();
    let bits: u64 = made(RequestRate::Load(0.1)).iter().map(|f| 8 * f.bytes.as_u64()).sum();
    let link = topology.links.iter().find(|link| topology.is_host(link.a) || topology.is_host(link.b)).unwrap();
    let expected = 0.1 * 32.0 * link.rate.as_bps_f64() * 0.125;
    let requests = expected / 16e6;
    assert!((bits as f64 / expected - 1.0).abs() < 4.0 / requests.sqrt(), "{bits} {expected}");
    // It equals the rate of requests that it comes to.
    assert_eq!(made(RequestRate::Load(0.1)), made(RequestRate::PerSecond(0.1 * link.rate.as_bps_f64() / 16e6)));
    let field = queries(RequestRate::Load(0.0)).generate(&topology, 1, 0).unwrap_err().field;
    assert_eq!(field, "load");
}

#[test]
fn staggered_flows_start_and_stop_one_after_the_other() {
    let staggered = Staggered {
        receiver: NodeId(0),
        senders: Senders::Hosts(vec![NodeId(4), NodeId(3)]),
        start: Time::from_ms(1),
        interval: Time::from_ms(10),
        hold: Time::from_ms(40),
        bytes: Bytes::MAX,
    };
    let flows = staggered.generate(&fabric(), 1, 0).unwrap();
    let times: Vec<_> = flows.iter().map(|f| (f.src.0, f.start, f.stop)).collect();
    let ms = Time::from_ms;
    assert_eq!(times, [(4, ms(1), ms(41)), (3, ms(11), ms(51))]);
}

#[test]
fn a_permutation_has_every_host_once_on_each_side() {
    let permutation = Permutation { bytes: Bytes::new(1_000), start: Time::ZERO, hosts: None };
    for seed in 0..20 {
        let flows = permutation.generate(&fabric(), seed, 0).unwrap();
        let mut receivers: Vec<u32> = flows.iter().map(|f| f.dst.0).collect();
        receivers.sort_unstable();
        assert!(receivers.into_iter().eq(0..32));
        assert!(flows.iter().map(|f| f.src.0).eq(0..32) && flows.iter().all(|f| f.src != f.dst));
    }
}

#[test]
fn a_stride_goes_on_from_the_last_host_to_the_first() {
    let stride =
        |stride| Stride { stride, bytes: Bytes::new(1_000), start: Time::ZERO, hosts: None }.generate(&fabric(), 1, 0);
    let flows = stride(30).unwrap();
    assert_eq!(flows.iter().map(|f| (f.src.0, f.dst.0)).collect::<Vec<_>>()[..4], [(0, 30), (1, 31), (2, 0), (3, 1)]);
    assert_eq!((flows.len(), stride(32).unwrap_err().field), (32, "stride"));
}

#[test]
fn all_to_all_has_every_pair() {
    let flows =
        AllToAll { bytes: Bytes::new(1_000), start: Time::from_us(1), hosts: None }.generate(&fabric(), 1, 3).unwrap();
    assert_eq!(flows.len(), 32 * 31);
    assert!(flows.is_sorted_by_key(|f| (f.src, f.dst)) && flows.iter().all(|f| f.src != f.dst && f.group == 3));
}

#[test]
fn blocks_merge_by_start_and_sender() {
    let topology = fabric();
    let blocks = vec![
        Workload::from(websearch(0.2, Time::from_ms(20)).generate(&topology, 1, 0).unwrap()),
        Workload::from(websearch(0.2, Time::from_ms(20)).generate(&topology, 1, 1).unwrap()),
    ];
    let n = blocks[0].flows.len() + blocks[1].flows.len();
    let flows = merge(blocks).flows;
    assert_eq!(flows.len(), n);
    assert!(flows.is_sorted_by_key(|f| (f.start, f.src)));
}

/// Returns a flow that its source port identifies.
fn marked(sport: u16, src: u32, start_us: u64, trigger: Trigger) -> FlowSpec {
    let mut block = Block::new(1, 0);
    block.add(NodeId(src), NodeId(31), Bytes::new(1), Time::from_us(start_us), Time::MAX);
    FlowSpec { trigger, sport, ..block.flows.remove(0) }
}

#[test]
fn references_follow_flows_to_their_places() {
    let after = |id| Trigger::After(FlowId(id), Time::from_us(7));
    let first = Workload {
        flows: vec![
            marked(0, 0, 1, Trigger::Time),
            marked(1, 1, 1, Trigger::Change),
            marked(2, 0, 5, after(0)),
            marked(3, 0, 9, after(2)),
        ],
        changes: vec![Change::Start(FlowId(1)), Change::Stop(FlowId(1))],
        ..Workload::default()
    };
    let second = Workload {
        flows: vec![marked(4, 0, 0, Trigger::Time), marked(5, 0, 5, after(0)), marked(6, 0, 7, Trigger::Change)],
        changes: vec![Change::Start(FlowId(2))],
        dependencies: vec![Dependency {
            waiter: FlowId(2).into(),
            before: FlowId(1).into(),
            on: Milestone::Sent,
            delay: Time::ZERO,
        }],
        ..Workload::default()
    };
    assert_eq!(merge(vec![first.clone()]), first, "a single block stays as it is");
    let merged = merge(vec![first, second]);
    let ports: Vec<u16> = merged.flows.iter().map(|f| f.sport).collect();
    assert_eq!(ports, [4, 0, 1, 2, 5, 6, 3]);
    let waits: Vec<Trigger> = merged.flows.iter().map(|f| f.trigger).collect();
    let (time, change) = (Trigger::Time, Trigger::Change);
    assert_eq!(waits, [time, time, change, after(1), after(0), change, after(3)]);
    assert_eq!(merged.changes, [Change::Start(FlowId(2)), Change::Stop(FlowId(2)), Change::Start(FlowId(5))]);
    assert_eq!(
        merged.dependencies,
        [Dependency { waiter: FlowId(5).into(), before: FlowId(4).into(), on: Milestone::Sent, delay: Time::ZERO }]
    );
}

#[test]
fn what_cannot_be_generated_is_named() {
    let topology = fabric();
    let star = Star { hosts: 4, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
    let ms = Time::from_ms(1);
    let poisson = websearch(0.5, ms);
    let error = |p: Poisson, t: &Topology| {
        let error = p.generate(t, 1, 0).unwrap_err();
        format!("{}: {} ({})", error.field, error.message, error.help.unwrap_or_default())
    };
    assert_eq!(
        error(Poisson { link_set: "host-links".to_owned(), ..poisson.clone() }, &star),
        "destinations: host `h0` has no `other-rack` peers (it has 3 `other-host` peers)"
    );
    assert_eq!(
        error(Poisson { link_set: "tor-uplink".to_owned(), ..poisson.clone() }, &topology),
        "link_set: this topology has no link set `tor-uplink` (did you mean `tor-uplinks`?)"
    );
    assert_eq!(
        error(Poisson { load: 0.0, ..poisson.clone() }, &topology),
        "load: `load` must be above 0, not 0 (write 0.6 for 60 %)"
    );
    assert_eq!(
        error(Poisson { stop: Time::MAX, ..poisson.clone() }, &topology),
        "stop: arrivals never end (give `stop` or `max_flows`)"
    );
    assert_eq!(
        error(Poisson { stop: Time::ZERO, ..poisson.clone() }, &topology),
        "stop: `stop` must be after `start` ()"
    );
    let switch = Some(vec![NodeId(32)]);
    assert_eq!(
        error(Poisson { hosts: switch, ..poisson.clone() }, &topology),
        "hosts: `tor0` is a switch, not a host ()"
    );
    assert!(
        error(Poisson { load: 1e9, stop: Time::from_ms(10_000), ..poisson }, &topology)
            .starts_with("load: this makes about ")
    );

    let incast = |receiver, senders| {
        let incast = Incast { receiver, senders, bytes: Bytes::new(1), start: ms, stop: Time::MAX, jitter: Time::ZERO };
        incast.generate(&topology, 1, 0).unwrap_err().to_string()
    };
    let other_rack = |n| Senders::Count { n, from: Peers::OtherRack };
    assert_eq!(incast(NodeId(99), other_rack(1)), "there is no node 99");
    assert_eq!(incast(NodeId(1), other_rack(25)), "25 hosts are wanted, but host `h1` has 24 `other-rack` peers");
    assert_eq!(incast(NodeId(1), Senders::Hosts(vec![NodeId(1)])), "host `h1` cannot send to itself");
}

#[test]
fn eight_thousand_hosts_are_quick() {
    let tree = FatTree {
        pods: 16,
        tors_per_pod: 16,
        aggs_per_pod: 16,
        cores: 256,
        hosts_per_tor: 32,
        host_rate: Rate::from_gbps(100),
        host_delay: Time::from_us(1),
        fabric_rate: Rate::from_gbps(400),
        tor_delay: Time::from_us(1),
        core_delay: Time::from_us(5),
    };
    assert_eq!(tree.check(), Ok(()));
    let poisson = Poisson { max_flows: Some(10_000), ..websearch(0.6, Time::MAX) };
    let flows = poisson.generate(&tree.build(), 1, 0).unwrap();
    assert_eq!(flows.len(), 10_000);
}

proptest! {
    #[test]
    fn merged_flows_wait_for_those_they_waited_for(
        blocks in prop::collection::vec(prop::collection::vec((0u32..3, 0u64..4, any::<bool>()), 1..8), 2..5),
    ) {
        let mut sport = 0;
        // Every flow waits for the one before it in its block, or for its time; ports identify all flows.
        let make = |rows: &Vec<(u32, u64, bool)>| {
            let mut block = Workload::default();
            for &(src, start, waits) in rows {
                let before = (block.flows.len() as u32).checked_sub(1).map(FlowId).filter(|_| waits);
                let trigger = before.map_or(Trigger::Time, |id| Trigger::After(id, Time::ZERO));
                block.changes.push(Change::Stop(FlowId(block.flows.len() as u32)));
                block.flows.push(marked(sport, src, start, trigger));
                sport += 1;
            }
            block
        };
        let blocks: Vec<Workload> = blocks.iter().map(make).collect();
        let names = |workload: &Workload| {
            let port = |id: FlowId| workload.flows[id.index()].sport;
            let mut waits: Vec<(u16, Option<u16>)> = workload.flows.iter().map(|flow| match flow.trigger {
                Trigger::After(before, _) => (flow.sport, Some(port(before))),
                _ => (flow.sport, None),
            }).collect();
            waits.sort_unstable();
            let stopped = workload.changes.iter().map(|change| match change {
                Change::Start(id) | Change::Stop(id) => port(*id),
            });
            (waits, stopped.collect::<Vec<_>>())
        };
        let each: Vec<_> = blocks.iter().map(names).collect();
        let merged = merge(blocks);
        prop_assert!(merged.flows.is_sorted_by_key(|f| (f.start, f.src)));
        let (waits, stopped) = names(&merged);
        prop_assert_eq!(waits, each.iter().flat_map(|e| e.0.clone()).collect::<Vec<_>>());
        prop_assert_eq!(stopped, each.iter().flat_map(|e| e.1.clone()).collect::<Vec<_>>());
    }

    #[test]
    fn flows_are_sorted_and_between_different_hosts(seed: u64, load in 0.01f64..2.0, us in 1u64..3_000) {
        let topology = fabric();
        let flows = websearch(load, Time::from_us(us)).generate(&topology, seed, 0).unwrap();
        prop_assert!(flows.is_sorted_by_key(|f| (f.start, f.src)));
        prop_assert!(flows.iter().all(|f| f.src != f.dst && f.start < Time::from_us(us) && Bytes::ZERO < f.bytes));
    }

    #[test]
    fn any_text_is_a_size_distribution_or_refused(text in "\\PC*", numbers in "([0-9.]{1,4}[ ,\n]){0,12}") {
        for text in [text, numbers] {
            if let Ok(sizes) = SizeDistribution::parse_file(&text) {
                prop_assert!(sizes.mean() >= 0.0 && Bytes::ZERO < sizes.sample(0.5));
            }
        }
    }
}
