use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn gbps(n: u64) -> Rate {
    Rate::from_gbps(n)
}

fn us(n: u64) -> Time {
    Time::from_us(n)
}

/// Returns the fat-tree of PowerTCP section 4.1 with the cores of its artifact.
pub(crate) fn powertcp() -> FatTree {
    FatTree {
        pods: 4,
        tors_per_pod: 2,
        aggs_per_pod: 2,
        cores: 4,
        hosts_per_tor: 32,
        host_rate: gbps(25),
        host_delay: us(1),
        fabric_rate: gbps(100),
        tor_delay: us(1),
        core_delay: us(5),
    }
}

/// Returns the links as `a-b`, in order.
fn links(topology: &Topology) -> String {
    let name = |node: NodeId| &*topology.nodes[node.index()].name;
    let links: Vec<String> = topology.links.iter().map(|l| format!("{}-{}", name(l.a), name(l.b))).collect();
    links.join(" ")
}

#[test]
fn the_powertcp_fat_tree_has_the_ids_of_its_artifact() {
    let t = powertcp().build();
    assert_eq!((t.nodes.len(), t.links.len()), (276, 288));
    // Hosts 0 to 255, ToR from 256, aggregation from 264, core from 272; links in that order too.
    let link = |i: usize| (t.links[i].a.0, t.links[i].b.0);
    assert_eq!((link(0), link(255), link(256), link(271)), ((0, 256), (255, 263), (256, 264), (263, 271)));
    assert_eq!((link(272), link(274), link(287)), ((264, 272), (265, 274), (271, 275)));
    assert_eq!((t.node("h33"), t.node("tor1"), t.node("core3")), (Some(NodeId(33)), t.node("257"), t.node("275")));
    assert_eq!(t.nodes[33].rack, 1);
    let port = t.port(NodeId(264), NodeId(256)).unwrap();
    assert_eq!((port, t.from(port), t.to(port)), (PortId(513), NodeId(264), NodeId(256)));
    // 4:1 oversubscription: 256 x 25G below, 8 ToRs x 2 x 100G above.
    assert_eq!(t.capacity_bps(&t.link_sets["host-links"]), 6.4e12);
    assert_eq!(t.capacity_bps(&t.link_sets["tor-uplinks"]), 1.6e12);
    assert_eq!(t.capacity_bps(&t.link_sets["agg-uplinks"]), 1.6e12);
    assert_eq!(t.link_sets["all-switch-links"].len(), 64);
    assert!(!t.link_sets.contains_key("bottleneck"));
}

#[test]
fn fewer_cores_than_aggregation_switches_are_shared() {
    let t = FatTree { pods: 2, tors_per_pod: 1, cores: 1, hosts_per_tor: 1, ..powertcp() }.build();
    assert_eq!(
        links(&t),
        "h0-tor0 h1-tor1 tor0-agg0 tor0-agg1 tor1-agg2 tor1-agg3 agg0-core0 agg1-core0 agg2-core0 agg3-core0"
    );
    let error = FatTree { cores: 3, ..powertcp() }.check().unwrap_err();
    assert_eq!((error.field, error.help.as_deref()), ("cores", Some("write a multiple of 2, such as `cores = 4`")));
}

#[test]
fn a_k_ary_fat_tree_has_k_cubed_over_4_hosts() {
    let shape = FatTreeK {
        k: 4,
        hosts_per_edge: None,
        host_rate: gbps(100),
        fabric_rate: gbps(100),
        delay: us(1),
        core_delay: us(2),
    };
    let t = shape.build();
    assert_eq!((t.hosts().count(), t.nodes.len(), t.links.len()), (16, 16 + 8 + 8 + 4, 16 + 16 + 16));
    let ports_of = |node| (0..t.n_ports() as u32).map(PortId).filter(|&p| t.from(p) == node).count();
    assert!((16..36).map(NodeId).all(|switch| ports_of(switch) == 4));
    assert_eq!(FatTreeK { k: 5, ..shape.clone() }.check().unwrap_err().field, "k");
    // 65,536 and 101,306 hosts.
    assert_eq!(FatTreeK { k: 64, hosts_per_edge: None, ..shape.clone() }.check(), Ok(()));
    assert_eq!(FatTreeK { k: 74, hosts_per_edge: None, ..shape.clone() }.check().unwrap_err().field, "k");
    assert_eq!(FatTreeK { delay: Time::MAX, ..shape.clone() }.check().unwrap_err().field, "delay");
    assert_eq!(
        FatTreeK { hosts_per_edge: Some(0), ..shape }.check().unwrap_err().message,
        "`hosts_per_edge` must be at least 1"
    );
}

#[test]
fn small_shapes_are_linked_as_drawn() {
    let star = Star { hosts: 3, rate: gbps(25), delay: us(1) };
    assert_eq!(links(&star.build()), "h0-sw0 h1-sw0 h2-sw0");
    let dumbbell = Dumbbell {
        left: 2,
        right: 1,
        host_rate: gbps(25),
        host_delay: us(1),
        bottleneck_rate: gbps(10),
        bottleneck_delay: us(3),
    };
    assert_eq!(links(&dumbbell.build()), "h0-sw0 h1-sw0 h2-sw1 sw0-sw1");
    assert_eq!(dumbbell.build().link_sets["bottleneck"], [PortId(6)]);
    let lot = ParkingLot {
        switches: 3,
        hosts_per_switch: 1,
        host_rate: gbps(25),
        host_delay: us(1),
        link_rate: gbps(25),
        link_rates: None,
        link_delay: us(1),
    };
    assert_eq!(links(&lot.build()), "h0-sw0 h1-sw1 h2-sw2 sw0-sw1 sw1-sw2");
    assert_eq!(lot.build().link_sets["bottleneck"], [PortId(6), PortId(8)]);
    let lot = ParkingLot { link_rates: Some(vec![gbps(60), gbps(30)]), ..lot };
    assert_eq!([6, 8].map(|port| lot.build().link(PortId(port)).rate), [gbps(60), gbps(30)]);
    let lot = ParkingLot { switches: 4, ..lot };
    assert_eq!(lot.check().unwrap_err().to_string(), "2 rates for the 3 links between switches");
    let leaf_spine = LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 1,
        host_rate: gbps(10),
        host_delay: us(1),
        uplink_rate: gbps(40),
        uplink_delay: us(1),
    };
    assert_eq!(links(&leaf_spine.build()), "h0-tor0 h1-tor1 tor0-spine0 tor0-spine1 tor1-spine0 tor1-spine1");
    let asymmetric = Asymmetric {
        slow_hosts: 5,
        slow_rate: gbps(40),
        fast_hosts: 2,
        fast_rate: gbps(100),
        core_rate: gbps(100),
        delay: us(1),
    };
    let t = asymmetric.build();
    assert_eq!(links(&t), "h0-sw0 h1-sw0 h2-sw0 h3-sw0 h4-sw0 h5-sw1 h6-sw1 sw0-sw2 sw1-sw2 sw2-h7");
    let bottleneck = t.link_sets["bottleneck"][0];
    assert_eq!((t.from(bottleneck), t.to(bottleneck)), (t.node("sw2").unwrap(), t.node("h7").unwrap()));
    assert_eq!(t.link_sets["host-links"].len(), 8);
}

#[test]
fn parameters_that_cannot_be_used_are_named() {
    let star = Star { hosts: 2, rate: gbps(25), delay: us(1) };
    assert_eq!(star.check(), Ok(()));
    assert_eq!(Star { hosts: 1, ..star.clone() }.check().unwrap_err().field, "hosts");
    assert_eq!(Star { hosts: u32::MAX, ..star.clone() }.check().unwrap_err().message, "`hosts` makes 4294967295 nodes");
    let error = Star { rate: Rate::ZERO, ..star.clone() }.check().unwrap_err();
    assert_eq!((error.field, error.message.as_str()), ("rate", "`rate` of 0bps is no link rate"));
    assert_eq!(error.help.as_deref(), Some("write a rate from 1kbps to 8Tbps"));
    assert_eq!(Star { delay: Time::MAX, ..star }.check().unwrap_err().field, "delay");
}

#[test]
fn a_topology_file_gives_the_same_network_as_the_shape() {
    let shape = powertcp().build();
    let mut text = format!("276 20 8 288\n{}\n", (256..276).map(|i| i.to_string()).collect::<Vec<_>>().join(" "));
    for link in &shape.links {
        let rate = format!("{}.0", link.rate.as_bps());
        _ = writeln!(text, "{} {} {rate} {}ns 0", link.a.0, link.b.0, link.delay.as_ns());
    }
    let mut read = parse_topology_file(&text).unwrap();
    assert_eq!(read.nodes[256].name, "256");
    for (read, made) in read.nodes.iter_mut().zip(&shape.nodes) {
        read.name.clone_from(&made.name);
    }
    assert_eq!(read, shape);
}

#[test]
fn topology_files_may_be_written_in_several_ways() {
    let t = parse_topology_file("# two hosts\n3 1 2\n\n2\n0 2 25Gbps 0.001ms 0\n1 2 10Gb/s 1840ns\n").unwrap();
    assert_eq!(t.links[0], Link { a: NodeId(0), b: NodeId(2), rate: gbps(25), delay: us(1) });
    assert_eq!(t.links[1], Link { a: NodeId(1), b: NodeId(2), rate: gbps(10), delay: Time::from_ns(1_840) });
    assert_eq!(t.nodes[2].tier, Tier::Tor);
}

#[test]
fn error_rates_of_topology_files_are_kept() {
    let t = parse_topology_file("4 1 3\n3\n0 3 25Gbps 1us 0\n1 3 25Gbps 1us 1e-3\n2 3 25Gbps 1us 0.5\n").unwrap();
    assert_eq!(t.error_rates, [(PortId(2), 1e-3), (PortId(4), 0.5)]);
}

#[test]
fn links_to_hosts_are_a_set() {
    let t = Star { hosts: 3, rate: gbps(25), delay: us(1) }.build();
    let down: Vec<(&str, &str)> = t.link_sets["tor-downlinks"]
        .iter()
        .map(|p| (&*t.nodes[t.from(*p).index()].name, &*t.nodes[t.to(*p).index()].name))
        .collect();
    assert_eq!(down, [("sw0", "h0"), ("sw0", "h1"), ("sw0", "h2")]);
}

#[test]
fn topology_files_with_errors_say_where() {
    let cases = [
        ("", "line 1: the file is empty"),
        ("3 1\n", "line 1: expected `nodes switches links` or `nodes switches tors links`, found 2 words"),
        ("3 x 2\n", "line 1: `x` is no number of switches"),
        ("3 4 2\n", "line 1: 4 switches among 3 nodes"),
        ("3 1 2\n5\n", "line 2: node 5 of a network of 3 nodes"),
        ("3 2 2\n2 2\n", "line 2: switch 2 is listed twice"),
        ("3 2 2\n2\n", "line 1: 2 switches are announced, 1 ids are missing"),
        ("3 1 2\n2\n0 2 25Gbps 1us 0\n", "line 1: 2 links are announced, 1 follow"),
        ("3 1 1\n2\n0 2 25Gbps 1us 0\n1 2 25Gbps 1us 0\n", "line 4: more than the 1 links announced in line 1"),
        ("3 1 2\n2\n0 2 25gbps 1us 0\n1 2 25Gbps 1us 0\n", "line 3: unknown unit `gbps` in rate `25gbps`"),
        ("3 1 2\n2\n0 2 0 1us 0\n1 2 25Gbps 1us 0\n", "line 3: `0` is no link rate"),
        ("3 1 2\n2\n0 2 25Gbps 1 0\n1 2 25Gbps 1us 0\n", "line 3: no unit in time `1`"),
        ("3 1 2\n2\n0 2 25Gbps 1us 1.01\n1 2 25Gbps 1us 0\n", "line 3: `1.01` is no error rate"),
        (
            "3 1 2\n2\n0 1 25Gbps 1us 0\n1 2 25Gbps 1us 0\n",
            "line 3: hosts 0 and 1 are linked without a switch between them",
        ),
        ("3 1 2\n2\n0 2 25Gbps 1us 0\n0 2 25Gbps 1us 0\n", "line 4: host 0 has a second link"),
        ("3 1 2\n2\n0 2 25Gbps 1us 0\n2 2 25Gbps 1us 0\n", "line 4: a link from node 2 to itself"),
        ("4 2 2\n2 3\n0 2 25Gbps 1us 0\n1 3 25Gbps 1us 0\n", "line 1: node 1 is not connected to node 0"),
        ("4000000 1 0\n", "line 1: 4000000 nodes are too many"),
    ];
    for (text, message) in cases {
        assert_eq!(parse_topology_file(text).unwrap_err().to_string(), message, "{text}");
    }
    let error = parse_topology_file("3 1 2\n2\n0 2  25gbps 1us 0\n").unwrap_err();
    assert_eq!((error.column, error.help.unwrap().split(':').next().unwrap()), (Some((5, 11)), "write `25Gbps`"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = parse_topology_file(&text);
    }

    #[test]
    fn nearly_right_texts_are_read_or_refused(
        words in proptest::collection::vec(prop_oneof!["[0-9]{1,2}", Just("\n".to_owned()), Just("25Gbps 1us".to_owned())], 0..40),
    ) {
        if let Ok(t) = parse_topology_file(&format!("4 1 3\n{}", words.join(" "))) {
            prop_assert!(t.hosts().count() == 3);
        }
    }
}

/// 32 hosts of 25 Gb/s share two links of 100 Gb/s; with two cores in place of four, so do aggregation switches one for
/// two.
#[test]
fn oversubscription_is_the_product_over_tiers() {
    assert_eq!(powertcp().build().oversubscription(), 4.0);
    assert_eq!(FatTree { cores: 2, ..powertcp() }.build().oversubscription(), 8.0);
    assert_eq!(FatTree { hosts_per_tor: 4, ..powertcp() }.build().oversubscription(), 1.0);
    assert_eq!(Star { hosts: 5, rate: gbps(100), delay: us(1) }.build().oversubscription(), 1.0);
}
