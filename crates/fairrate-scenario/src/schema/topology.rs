//! `[topology]`: the nodes and links of the network.

pub(super) mod host_queues;
mod scale_up;

use fairrate_sim::FieldError;
use fairrate_sim::routing::Routes;
use fairrate_sim::topology::{
    Asymmetric, Cluster, Dragonfly, Dumbbell, FatTree, FatTreeK, LeafSpine, NODES_MAX, ParkingLot, Rdcn, ScaleUp, Star,
    TOPOLOGIES, Topology, Wiring, parse_topology_file,
};
use fairrate_units::{Rate, Time};

use super::files::{Files, Text, file_problem};
use crate::error::{Report, ScenarioError, Site};
use crate::reader::{OrWord, Section, list};
use crate::scalar::Scalar;
use crate::tree::{Node, Value};

/// Largest number of hops: the engine counts the hops of a packet in a byte.
const MAX_HOPS: u32 = 255;

/// A network that was read.
pub(super) struct Network {
    pub shape: Shape,
    /// The scale-up networks of servers, if there are any, and the place of their parameters.
    scale_up: Option<(ScaleUp, Site)>,
    /// The place of `host_queues = true`, if hosts have queues.
    host_queues: Option<Site>,
}

/// A shape that was read.
pub(super) enum Shape {
    Star(Star),
    Dumbbell(Dumbbell),
    ParkingLot(ParkingLot),
    LeafSpine(LeafSpine),
    FatTree(FatTree),
    FatTreeK(FatTreeK),
    Asymmetric(Asymmetric),
    Rdcn(Rdcn),
    Cluster(Cluster),
    Dragonfly(Dragonfly),
    File(Text),
    /// No usable shape; a problem has been reported.
    Unusable,
}

impl Shape {
    /// Returns the name of the shape in scenarios.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Star(_) => "star",
            Self::Dumbbell(_) => "dumbbell",
            Self::ParkingLot(_) => "parking-lot",
            Self::LeafSpine(_) => "leaf-spine",
            Self::FatTree(_) => "fat-tree",
            Self::FatTreeK(_) => "fat-tree-k",
            Self::Asymmetric(_) => "asymmetric",
            Self::Rdcn(_) => "rdcn",
            Self::Cluster(Cluster { wiring: Wiring::Rails, .. }) => "rail",
            Self::Cluster(Cluster { wiring: Wiring::Servers, .. }) => "dcn+",
            Self::Cluster(Cluster { wiring: Wiring::Planes, .. }) => "hpn",
            Self::Dragonfly(_) => "dragonfly",
            Self::File(_) | Self::Unusable => "file",
        }
    }
}

/// Reads `[topology]`.
pub(super) fn read(root: &mut Section<'_>, files: &Files<'_>) -> Network {
    let given = root.has("topology");
    let problems = root.report.count();
    let mut s = root.child("topology", "`[topology]`");
    if problems < root.report.count() {
        return Network::unusable();
    }
    if !given {
        let help = "add `[topology]` and below it for instance `kind = \"star\"`";
        root.report.problem(
            "scenario::missing_key",
            root.anchor.site,
            "the scenario needs `[topology]`",
            "none in here",
            help,
        );
        return Network::unusable();
    }
    let kinds: Vec<&str> = TOPOLOGIES.iter().map(|t| t.name).collect();
    let kind = match s.node("kind").map(|n| (&n.value, n.site)) {
        Some((Value::Text(kind), _)) if kinds.contains(&kind.as_str()) => kind.clone(),
        Some((Value::Text(kind), site)) => {
            s.unknown_word("topology", kind, site, &kinds);
            return Network::unusable();
        }
        Some(_) => {
            s.given::<String>("kind");
            return Network::unusable();
        }
        None => {
            s.missing("kind", "\"star\"");
            return Network::unusable();
        }
    };
    s.out.push("kind", format!("\"{kind}\""));
    s.name = format!("`[topology]` of kind `{kind}`");
    let shape = read_shape(&kind, &mut s, files);
    let scale_up = scale_up::read(&mut s, &shape);
    let host_queues = host_queues::read(&mut s, &shape, scale_up.is_some());
    if problems == root.report.count() {
        check(&shape, &s);
    }
    root.out.tables.push(("topology".into(), s.finish()));
    Network { shape, scale_up, host_queues }
}

impl Network {
    fn unusable() -> Self {
        Self { shape: Shape::Unusable, scale_up: None, host_queues: None }
    }
}

const fn gbps(gbps: u64) -> Rate {
    Rate::from_gbps(gbps)
}

/// Reads the parameters of a shape of this `kind`.
fn read_shape(kind: &str, s: &mut Section<'_>, files: &Files<'_>) -> Shape {
    match kind {
        "star" => Shape::Star(read_star(s)),
        "dumbbell" => Shape::Dumbbell(read_dumbbell(s)),
        "parking-lot" => Shape::ParkingLot(read_parking_lot(s)),
        "leaf-spine" => Shape::LeafSpine(read_leaf_spine(s)),
        "fat-tree" => Shape::FatTree(read_fat_tree(s)),
        "fat-tree-k" => Shape::FatTreeK(read_fat_tree_k(s)),
        "asymmetric" => Shape::Asymmetric(read_asymmetric(s)),
        "rdcn" => Shape::Rdcn(read_rdcn(s)),
        "rail" => Shape::Cluster(read_cluster(s, Wiring::Rails)),
        "dcn+" => Shape::Cluster(read_cluster(s, Wiring::Servers)),
        "hpn" => Shape::Cluster(read_cluster(s, Wiring::Planes)),
        "dragonfly" => Shape::Dragonfly(read_dragonfly(s)),
        _ => files.read(s, "topology", "txt").map_or(Shape::Unusable, Shape::File),
    }
}

/// Reads `star`. The defaults are a rack of PowerTCP section 4.1: 25 Gb/s and 1 us.
fn read_star(s: &mut Section<'_>) -> Star {
    Star {
        hosts: s.get("hosts", 16).value,
        rate: s.get("rate", gbps(25)).value,
        delay: s.get("delay", Time::from_us(1)).value,
    }
}

/// Reads `dumbbell`.
fn read_dumbbell(s: &mut Section<'_>) -> Dumbbell {
    let us = Time::from_us(1);
    Dumbbell {
        left: s.get("left", 8).value,
        right: s.get("right", 8).value,
        host_rate: s.get("host_rate", gbps(25)).value,
        host_delay: s.get("host_delay", us).value,
        bottleneck_rate: s.get("bottleneck_rate", gbps(25)).value,
        bottleneck_delay: s.get("bottleneck_delay", us).value,
    }
}

/// Reads `parking-lot`. The defaults are the three switches with two hosts each of the ns-3 reference runs.
fn read_parking_lot(s: &mut Section<'_>) -> ParkingLot {
    let us = Time::from_us(1);
    ParkingLot {
        switches: s.get("switches", 3).value,
        hosts_per_switch: s.get("hosts_per_switch", 2).value,
        host_rate: s.get("host_rate", gbps(25)).value,
        host_delay: s.get("host_delay", us).value,
        link_rate: s.get("link_rate", gbps(25)).value,
        link_rates: read_link_rates(s),
        link_delay: s.get("link_delay", us).value,
    }
}

/// Reads `leaf-spine`. The defaults are Flowtune's, section 6: 9 racks of 16 servers at 10 Gb/s, 4 spines at 40 Gb/s,
/// 1.5 us a link.
fn read_leaf_spine(s: &mut Section<'_>) -> LeafSpine {
    LeafSpine {
        leaves: s.get("leaves", 9).value,
        spines: s.get("spines", 4).value,
        hosts_per_leaf: s.get("hosts_per_leaf", 16).value,
        host_rate: s.get("host_rate", gbps(10)).value,
        host_delay: s.get("host_delay", Time::from_ns(1_500)).value,
        uplink_rate: s.get("uplink_rate", gbps(40)).value,
        uplink_delay: s.get("uplink_delay", Time::from_ns(1_500)).value,
    }
}

/// Reads `fat-tree`. The defaults are those of PowerTCP section 4.1. The paper says 2 cores; with its 100 Gb/s links
/// these cores would carry half of the capacity of the ToR uplinks, too little for 60 % of load. Its public code has 4,
/// as has this default.
fn read_fat_tree(s: &mut Section<'_>) -> FatTree {
    let us = Time::from_us(1);
    FatTree {
        pods: s.get("pods", 4).value,
        tors_per_pod: s.get("tors_per_pod", 2).value,
        aggs_per_pod: s.get("aggs_per_pod", 2).value,
        cores: s.get("cores", 4).value,
        hosts_per_tor: s.get("hosts_per_tor", 32).value,
        host_rate: s.get("host_rate", gbps(25)).value,
        host_delay: s.get("host_delay", us).value,
        fabric_rate: s.get("fabric_rate", gbps(100)).value,
        tor_delay: s.get("tor_delay", us).value,
        core_delay: s.get("core_delay", Time::from_us(5)).value,
    }
}

/// Reads `asymmetric`. The defaults are RoCC's Fig. 12b, five hosts at 40 Gb/s and two at 100 Gb/s; 1.5 us a link as in
/// its large simulations.
fn read_asymmetric(s: &mut Section<'_>) -> Asymmetric {
    Asymmetric {
        slow_hosts: s.get("slow_hosts", 5).value,
        slow_rate: s.get("slow_rate", gbps(40)).value,
        fast_hosts: s.get("fast_hosts", 2).value,
        fast_rate: s.get("fast_rate", gbps(100)).value,
        core_rate: s.get("core_rate", gbps(100)).value,
        delay: s.get("delay", Time::from_ns(1_500)).value,
    }
}

/// Reads `rdcn`. The defaults are those of PowerTCP section 5. Delays are not in the paper. These delays give its
/// largest base round-trip time of 24 us for packets of 1,000 bytes with telemetry; and with empty queues no packet
/// overtakes another when a circuit opens or closes: 9.94 us by the packet switch, 9.9 us and the time at 100 Gb/s by a
/// circuit.
fn read_rdcn(s: &mut Section<'_>) -> Rdcn {
    Rdcn {
        tors: s.get("tors", 25).value,
        hosts_per_tor: s.get("hosts_per_tor", 10).value,
        host_rate: s.get("host_rate", gbps(25)).value,
        host_delay: s.get("host_delay", Time::from_us(1)).value,
        uplink_rate: s.get("uplink_rate", gbps(25)).value,
        uplink_delay: s.get("uplink_delay", Time::from_ns(4_620)).value,
        circuit_rate: s.get("circuit_rate", gbps(100)).value,
        circuit_delay: s.get("circuit_delay", Time::from_ns(9_900)).value,
        day: s.get("day", Time::from_us(225)).value,
        night: s.get("night", Time::from_us(20)).value,
    }
}

/// Reads `dragonfly`. The defaults are the example of the paper's Fig. 5: 72 hosts, and as many global links as make
/// every group a neighbour of every other one.
fn read_dragonfly(s: &mut Section<'_>) -> Dragonfly {
    Dragonfly {
        groups: s.get("groups", 9).value,
        switches_per_group: s.get("switches_per_group", 4).value,
        hosts_per_switch: s.get("hosts_per_switch", 2).value,
        global_per_switch: s.get("global_per_switch", 2).value,
        host_rate: s.get("host_rate", gbps(100)).value,
        host_delay: s.get("host_delay", Time::from_ns(100)).value,
        local_rate: s.get("local_rate", gbps(100)).value,
        local_delay: s.get("local_delay", Time::from_ns(100)).value,
        global_rate: s.get("global_rate", gbps(100)).value,
        global_delay: s.get("global_delay", Time::from_ns(500)).value,
    }
}

/// Reads a rate for each link, or `link_rate` for all of them.
fn read_link_rates(s: &mut Section<'_>) -> Option<Vec<Rate>> {
    let Some(Node { value: Value::Array(_), .. }) = s.node("link_rates") else {
        s.choice("link_rates", &[("link_rate", ())], ());
        return None;
    };
    let items = s.items("link_rates").unwrap_or_default();
    let rates: Vec<Rate> = items.iter().map(|node| s.read_node("link_rates", node)).collect();
    s.out.push("link_rates", list(rates.iter().map(Rate::write)));
    Some(rates)
}

/// Reads `fat-tree-k`. The defaults are RateMP's fat-tree: 100 Gb/s everywhere, 0.1 us below and 0.5 us to the core,
/// with a smaller k = 8.
fn read_fat_tree_k(s: &mut Section<'_>) -> FatTreeK {
    let k = s.get("k", 8).value;
    let hosts_per_edge = match s.value_or::<u32>("hosts_per_edge", &["k/2"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(n) => Some(n),
    };
    FatTreeK {
        k,
        hosts_per_edge,
        host_rate: s.get("host_rate", gbps(100)).value,
        fabric_rate: s.get("fabric_rate", gbps(100)).value,
        delay: s.get("delay", Time::from_ns(100)).value,
        core_delay: s.get("core_delay", Time::from_ns(500)).value,
    }
}

/// Reads servers of GPUs. The defaults are those of SimAI's `gen_Topo_Template.py`: `Rail_Opti_SingleToR` and
/// `AlibabaHPN` with two planes, each for eight servers, and `DCN+`.
fn read_cluster(s: &mut Section<'_>, wiring: Wiring) -> Cluster {
    let (servers, servers_per_leaf, spines) = match wiring {
        Wiring::Rails => (8, 64, 64),
        Wiring::Servers => (64, 8, 8),
        Wiring::Planes => (8, 128, 60),
    };
    let host_rate = if wiring == Wiring::Planes { gbps(200) } else { gbps(400) };
    Cluster {
        wiring,
        servers: s.get("servers", servers).value,
        gpus_per_server: s.get("gpus_per_server", 8).value,
        servers_per_leaf: s.get("servers_per_leaf", servers_per_leaf).value,
        spines: s.get("spines", spines).value,
        host_rate: s.get("host_rate", host_rate).value,
        host_delay: s.get("host_delay", Time::from_ns(500)).value,
        uplink_rate: s.get("uplink_rate", gbps(400)).value,
        uplink_delay: s.get("uplink_delay", Time::from_ns(500)).value,
    }
}

fn check(shape: &Shape, s: &Section<'_>) {
    let result = match shape {
        Shape::Star(t) => t.check(),
        Shape::Dumbbell(t) => t.check(),
        Shape::ParkingLot(t) => t.check(),
        Shape::LeafSpine(t) => t.check(),
        Shape::FatTree(t) => t.check(),
        Shape::FatTreeK(t) => t.check(),
        Shape::Asymmetric(t) => t.check(),
        Shape::Rdcn(t) => t.check(),
        Shape::Cluster(t) => t.check(),
        Shape::Dragonfly(t) => t.check(),
        Shape::File(_) | Shape::Unusable => return,
    };
    match result {
        Err(FieldError { field, message, help }) => {
            let help = help.unwrap_or_else(|| format!("change `{field}` in `[topology]`"));
            s.problem_at("scenario::bad_topology", field, message, help);
        }
        Ok(()) if NODES_MAX < n_hosts(shape) => {
            let message = format!("this network has {} hosts", n_hosts(shape));
            let help = format!("fairrate takes networks up to {NODES_MAX} nodes");
            s.problem_at("scenario::bad_topology", "kind", message, help);
        }
        Ok(()) => {}
    }
}

fn n_hosts(shape: &Shape) -> u64 {
    let product = |counts: &[u32]| counts.iter().fold(1u64, |n, &count| n.saturating_mul(u64::from(count)));
    match shape {
        Shape::Star(t) => u64::from(t.hosts),
        Shape::Dumbbell(t) => u64::from(t.left) + u64::from(t.right),
        Shape::ParkingLot(t) => product(&[t.switches, t.hosts_per_switch]),
        Shape::LeafSpine(t) => product(&[t.leaves, t.hosts_per_leaf]),
        Shape::FatTree(t) => product(&[t.pods, t.tors_per_pod, t.hosts_per_tor]),
        Shape::FatTreeK(t) => product(&[t.k, t.k / 2, t.hosts_per_edge.unwrap_or(t.k / 2)]),
        Shape::Asymmetric(t) => u64::from(t.slow_hosts) + u64::from(t.fast_hosts),
        Shape::Rdcn(t) => product(&[t.tors, t.hosts_per_tor]),
        Shape::Cluster(t) => product(&[t.servers, t.gpus_per_server]),
        Shape::Dragonfly(t) => product(&[t.groups, t.switches_per_group, t.hosts_per_switch]),
        Shape::File(_) | Shape::Unusable => 0,
    }
}

/// Builds the network.
pub(super) fn build(report: &Report, network: Network, site: Site) -> Result<Topology, ScenarioError> {
    let mut topology = match network.shape {
        Shape::Star(t) => t.build(),
        Shape::Dumbbell(t) => t.build(),
        Shape::ParkingLot(t) => t.build(),
        Shape::LeafSpine(t) => t.build(),
        Shape::FatTree(t) => t.build(),
        Shape::FatTreeK(t) => t.build(),
        Shape::Asymmetric(t) => t.build(),
        Shape::Rdcn(t) => t.build(),
        Shape::Cluster(t) => t.build(),
        Shape::Dragonfly(t) => t.build(),
        Shape::File(file) => parse_topology_file(&file.text).unwrap_or_else(|error| {
            let fallback = "line 1 is `nodes switches links`, line 2 the ids of the switches, then a line a link: `a b rate delay error-rate`";
            file_problem(report, "scenario::topology_file", &file, &error, fallback);
            Star { hosts: 2, rate: gbps(25), delay: Time::ZERO }.build()
        }),
        Shape::Unusable => Star { hosts: 2, rate: gbps(25), delay: Time::ZERO }.build(),
    };
    if let Some((scale_up, site)) = network.scale_up {
        scale_up::add(report, &mut topology, &scale_up, site);
    }
    if let Some(site) = network.host_queues {
        host_queues::add(report, &mut topology, site);
    }
    report.check()?;
    let hops = Routes::new(&topology).longest_path();
    if MAX_HOPS < hops {
        let message = format!("the longest path of the network has {hops} links");
        let help = format!("fairrate takes paths of up to {MAX_HOPS} links; take fewer switches in a row");
        report.problem("scenario::long_path", site, message, "in here", help);
        report.check()?;
    }
    Ok(topology)
}
