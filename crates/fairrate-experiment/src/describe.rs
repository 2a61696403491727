//! The description of a scenario before it runs: its network, its switches' thresholds, the load that its flows offer,
//! and the work that the run is.

mod hosts;
mod jobs;
mod load;
mod paths;

use std::collections::BTreeMap;

use fairrate_scenario::{FLOW_BYTES, Scenario};
use fairrate_sim::routing::Routes;
use fairrate_sim::topology::{SwitchRates, Tier, Topology};
use fairrate_sim::{ClassConfig, FlowSpec, NodeId, Pfc, SimConfig, Transport, Trigger};
use fairrate_units::{Bytes, Rate, Time};
use serde::Serialize;

pub use self::hosts::ImperfectHosts;
pub use self::jobs::{Groups, Job, Operations};
pub use self::load::{LeftOut, Load};
pub use self::paths::{Fault, Routing};

/// Time of a packet-hop on one core, in nanoseconds: a typical one, from which machines and scenarios differ by half.
const NS_PER_HOP: f64 = 100.0;
/// The same in networks of [`MANY_PORTS`], which no near cache holds.
const NS_PER_HOP_OF_MANY: f64 = 250.0;
/// The number of ports from which a network is large.
const MANY_PORTS: usize = 32_768;
/// Memory of a port with its link, its buffers and its routes, as measured in fat trees of 8,192 and 65,536 hosts.
const PORT_BYTES: u64 = 700;
/// Memory of a sample of a port until the end of a run.
const SAMPLE_BYTES: u64 = 24;

/// The facts of a scenario before it runs.
#[derive(Debug, Serialize)]
pub struct Description {
    /// Name of the scenario.
    pub name: String,
    /// Algorithm of congestion control.
    pub cc: &'static str,
    /// `rdma` or `tcp`.
    pub transport: &'static str,
    /// Number of hosts.
    pub hosts: usize,
    /// Number of switches.
    pub switches: usize,
    /// The servers, if they have scale-up networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Servers>,
    /// Links of each kind: from the hosts up.
    pub links: Vec<Links>,
    /// Switches by their capacities.
    pub oversubscription: Vec<Oversubscription>,
    /// Largest base round-trip time of the network, τ, in microseconds.
    pub base_rtt_us: f64,
    /// Payload that a host's link carries in τ, in bytes: of the fastest host.
    pub bdp_bytes: u64,
    /// Payload of a full packet, and its bytes on the wire.
    pub packet_bytes: [u64; 2],
    /// The fate of packets that find no room: who is paused, and when, or that they are cut or dropped.
    pub pfc: String,
    /// The choice among equal paths.
    pub routing: Routing,
    /// Faults of links.
    pub faults: Vec<Fault>,
    /// Hosts that are not ideal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imperfect_hosts: Vec<ImperfectHosts>,
    /// Thresholds of switches' ports by their rates.
    pub ports: Vec<PortKind>,
    /// Classes that switches treat in another way than the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// Traffic blocks.
    pub traffic: Vec<Block>,
    /// Training jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
    /// Load of sets of links.
    pub load: Vec<Load>,
    /// Headers of the flows in `load`, in shares of their payload; `None` without such flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_headers: Option<f64>,
    /// Traffic blocks with flows that `load` leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_without: Vec<LeftOut>,
    /// Sets of links that `load` leaves out, as circuits carry a part of what goes to them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_beside_circuits: Vec<String>,
    /// The expected run.
    pub run: Expected,
    /// Settings that are allowed and likely not meant.
    pub warnings: Vec<String>,
}

/// Servers with scale-up networks.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Servers {
    /// Number of servers.
    pub n: usize,
    /// Number of GPUs in each.
    pub gpus: usize,
}

/// Links of one kind.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Links {
    /// The tiers that they join: `host - tor`.
    pub between: String,
    /// Number of links.
    pub n: usize,
    /// Rate of each direction in bit/s.
    pub rate_bps: u64,
    /// Propagation delay in nanoseconds.
    pub delay_ns: u64,
}

/// Switches of a tier whose links have the same capacities.
#[derive(Debug, PartialEq, Serialize)]
pub struct Oversubscription {
    /// Their tier.
    pub tier: &'static str,
    /// Their number.
    pub n: usize,
    /// Rate of all links down, towards hosts, in bit/s.
    pub down_bps: u64,
    /// Rate of all links up; 0 if there are none.
    pub up_bps: u64,
    /// Rate of all links, those between switches of the tier among them.
    pub all_bps: u64,
    /// Shared buffer in bytes.
    pub buffer_bytes: u64,
}

/// Ports of switches of one rate.
#[derive(Debug, PartialEq, Serialize)]
pub struct PortKind {
    /// Their rate in bit/s.
    pub rate_bps: u64,
    /// Queue from which packets are marked, and from which all are, in bytes; `None` without marking.
    pub ecn_bytes: Option<[f64; 2]>,
    /// Bytes above which a pause is sent, and at which it ends, where these are fixed levels.
    pub pfc_bytes: Option<[u64; 2]>,
}

/// A class that switches treat in another way than the others.
#[derive(Debug, PartialEq, Serialize)]
pub struct Class {
    /// Its number.
    pub class: u8,
    /// Its share of what strict classes leave, by the weights of all; `None`: it is strict.
    pub share: Option<f64>,
    /// `true` if PFC pauses it.
    pub pfc: bool,
    /// Thresholds of its marks in bytes at the fastest port: where they begin, and where all packets are marked.
    pub ecn_bytes: Option<[f64; 2]>,
}

/// A block of traffic.
#[derive(Debug, PartialEq, Serialize)]
pub struct Block {
    /// Number of the block in the file, from 0.
    pub group: u32,
    /// Its name; empty if it has none.
    pub name: String,
    /// Algorithm and transport of its flows, where blocks have different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<[&'static str; 2]>,
    /// Number of its flows; of a closed loop, the largest number that there can be.
    pub flows: usize,
    /// `true` if not all of these flows need to come, as the next one of a loop starts when the one before has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// Number of them without an end.
    pub endless: usize,
    /// Payload of the others, in bytes.
    pub bytes: u64,
    /// The part of these bytes that goes between GPUs of a server, over its scale-up network; `None` without such
    /// networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up_bytes: Option<u64>,
    /// Sizes of the others in bytes: the smallest, the mean and the largest.
    pub size_bytes: Option<[f64; 3]>,
    /// Times of the first and of the last start, in microseconds.
    pub starts_us: [f64; 2],
}

/// The size of a run, as far as it is known before.
#[derive(Debug, PartialEq, Serialize)]
pub struct Expected {
    /// Transmissions of packets by hosts and switches, acknowledgments among them, if nothing is lost.
    pub packet_hops: f64,
    /// Seconds on one core at 100 ns a packet-hop, in large networks at 250, which is typical.
    pub seconds: f64,
    /// Memory of the network, flows and samples in bytes.
    pub memory_bytes: u64,
}

/// Describes a scenario.
#[must_use]
pub fn describe(scenario: &Scenario) -> Description {
    let config = scenario.sim_config();
    let (topology, routes) = (&config.topology, Routes::of(config));
    let needs = config.cc.needs();
    let wire = config.transport.mtu + config.transport.data_header(&needs);
    let base_rtt = config.base_rtt(&routes);
    let fastest = topology.host_links().map(|(_, link)| link.rate).max();
    let (arrivals, load_without) = load::arrivals(config);
    let loads = load::loads(config, &routes, &arrivals);
    let load_beside_circuits = if loads.is_empty() { Vec::new() } else { load::beside_circuits(topology) };
    let bdp = fastest.map_or(0.0, |rate| rate.bytes_in(base_rtt).as_f64());
    Description {
        name: scenario.name().to_owned(),
        cc: config.cc.info().name,
        transport: config.transport.kind.name(),
        hosts: topology.hosts().count(),
        switches: topology.nodes.iter().filter(|node| Tier::Nic < node.tier).count(),
        servers: topology.servers.as_ref().map(|servers| Servers { n: servers.n_servers(), gpus: servers.size() }),
        links: links(topology),
        oversubscription: oversubscription(config),
        base_rtt_us: base_rtt.as_secs_f64() * 1e6,
        bdp_bytes: (bdp * config.transport.mtu.as_f64() / wire.as_f64()) as u64,
        packet_bytes: [config.transport.mtu.as_u64(), wire.as_u64()],
        pfc: pfc(config),
        routing: paths::routing(config, &routes),
        faults: paths::faults(config),
        imperfect_hosts: hosts::imperfect(config),
        ports: ports(config),
        classes: classes(config),
        traffic: traffic(config, scenario.traffic_blocks()),
        jobs: jobs::jobs(config),
        load: loads,
        load_headers: load::headers(config, &arrivals),
        load_without,
        load_beside_circuits,
        run: expected(config, &routes),
        warnings: scenario.warnings().to_vec(),
    }
}

fn tier(topology: &Topology, node: NodeId) -> Tier {
    topology.nodes[node.index()].tier
}

/// Returns the name of the kind of a node.
fn kind_of(topology: &Topology, node: NodeId) -> &'static str {
    match tier(topology, node) {
        Tier::Host if topology.is_scale_up(node) => "gpu",
        Tier::Host => "host",
        Tier::Nic => "NIC",
        Tier::Tor if topology.is_server_switch(node) => "nvswitch",
        Tier::Tor => "tor",
        Tier::Aggregation => "aggregation",
        Tier::Core => "core",
    }
}

fn links(topology: &Topology) -> Vec<Links> {
    type Kind = ([(Tier, &'static str); 2], Rate, Time);
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    for link in &topology.links {
        let mut ends = [link.a, link.b].map(|node| (tier(topology, node), kind_of(topology, node)));
        ends.sort_unstable();
        *kinds.entry((ends, link.rate, link.delay)).or_default() += 1;
    }
    let kind = |(([low, high], rate, delay), n): (Kind, usize)| Links {
        between: format!("{} - {}", low.1, high.1),
        n,
        rate_bps: rate.as_bps(),
        delay_ns: delay.as_ns(),
    };
    kinds.into_iter().map(kind).collect()
}

fn oversubscription(config: &SimConfig) -> Vec<Oversubscription> {
    let topology = &config.topology;
    let mut kinds: BTreeMap<(Tier, &'static str, SwitchRates), usize> = BTreeMap::new();
    for (switch, rates) in topology.switch_rates() {
        *kinds.entry((tier(topology, switch), kind_of(topology, switch), rates)).or_default() += 1;
    }
    let kind = |((_, tier, rates), n): ((Tier, &'static str, SwitchRates), usize)| Oversubscription {
        tier,
        n,
        down_bps: rates.down_bps,
        up_bps: rates.up_bps,
        all_bps: rates.all_bps,
        buffer_bytes: config.fabric.buffer_of(rates.all_bps),
    };
    kinds.into_iter().map(kind).collect()
}

fn pfc(config: &SimConfig) -> String {
    let alpha = config.fabric.ingress_alpha;
    let alpha = alpha.map_or_else(|| "the free buffer".to_owned(), |alpha| format!("{alpha} of the free buffer"));
    match config.fabric.pfc {
        Pfc::Off if config.fabric.admission.trim.is_some_and(|trim| trim.returns) => {
            "off: data that finds no room is cut to its header, and headers that find none go back to their senders"
                .to_owned()
        }
        Pfc::Off if config.fabric.admission.trim.is_some() => {
            "off: data that finds no room is cut to its header, and headers that find none are dropped".to_owned()
        }
        Pfc::Off => "off: packets that find no room are dropped".to_owned(),
        Pfc::Ingress => format!("an ingress port and class above {alpha} pauses its sender"),
        Pfc::IngressLevels(_) => "an ingress port and class above a fixed level pauses its sender".to_owned(),
        Pfc::Egress(_) => "an egress queue above a fixed level pauses those that send into it".to_owned(),
    }
}

fn ports(config: &SimConfig) -> Vec<PortKind> {
    let topology = &config.topology;
    let mut rates: Vec<Rate> = topology.wires().map(|link| link.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    let port = |rate: Rate| PortKind {
        rate_bps: rate.as_bps(),
        ecn_bytes: config.fabric.ecn.as_ref().map(|ecn| <[f64; 2]>::from(ecn.thresholds(rate))),
        pfc_bytes: match config.fabric.pfc {
            Pfc::Egress(levels) | Pfc::IngressLevels(levels) => {
                Some([levels.at(rate).pause.as_u64(), levels.at(rate).resume.as_u64()])
            }
            Pfc::Off | Pfc::Ingress => None,
        },
    };
    rates.into_iter().map(port).collect()
}

fn classes(config: &SimConfig) -> Vec<Class> {
    let rate = config.topology.wires().map(|link| link.rate).max().unwrap_or(Rate::ZERO);
    let weights: f64 = config.fabric.classes.values().filter_map(|of| of.weight).sum();
    let class = |(&class, of): (&u8, &ClassConfig)| Class {
        class,
        share: of.weight.map(|weight| weight / weights),
        pfc: of.pfc && config.fabric.pfc != Pfc::Off,
        ecn_bytes: of.ecn.map(|ecn| ecn.thresholds(rate).into()),
    };
    config.fabric.classes.iter().map(class).collect()
}

fn traffic(config: &SimConfig, names: &[String]) -> Vec<Block> {
    let flows = &config.flows;
    let mut groups: BTreeMap<u32, Vec<&FlowSpec>> = BTreeMap::new();
    for flow in flows {
        groups.entry(flow.group).or_default().push(flow);
    }
    let block = |(group, flows): (u32, Vec<&FlowSpec>)| {
        let sizes: Vec<u64> =
            flows.iter().filter(|flow| flow.bytes != Bytes::MAX).map(|flow| flow.bytes.as_u64()).collect();
        let bytes = sizes.iter().sum();
        let us = |time: Option<Time>| time.unwrap_or(Time::ZERO).as_secs_f64() * 1e6;
        let ends = sizes.iter().min().zip(sizes.iter().max());
        Block {
            group,
            name: names.get(group as usize).cloned().unwrap_or_default(),
            control: flows.first().filter(|_| !config.beside.is_empty()).map(|flow| {
                let (transport, cc) = config.stack(flow.stack);
                [cc.info().name, transport.kind.name()]
            }),
            flows: flows.len(),
            at_most: flows.iter().any(|flow| matches!(flow.trigger, Trigger::After(..))),
            endless: flows.len() - sizes.len(),
            bytes,
            scale_up_bytes: config.topology.servers.as_ref().map(|_| {
                let inside = flows.iter().filter(|flow| config.topology.is_scale_up(flow.src));
                inside.map(|flow| flow.bytes.as_u64()).sum()
            }),
            size_bytes: ends.map(|(least, most)| [*least as f64, bytes as f64 / sizes.len() as f64, *most as f64]),
            starts_us: [us(flows.iter().map(|flow| flow.start).min()), us(flows.iter().map(|flow| flow.start).max())],
        }
    };
    groups.into_iter().map(block).collect()
}

/// Returns the number of acknowledgments of a flow of `packets`: one each, unless receivers acknowledge several at
/// once.
fn acknowledgments(config: &SimConfig, flow: &FlowSpec, packets: f64) -> f64 {
    let transport = config.stack(flow.stack).0;
    let every = match transport.kind {
        Transport::Uet { ack_every } => Some(ack_every),
        // Every n-th segment; a timeout that is due before adds some.
        Transport::Tcp(tcp) => tcp.delayed_ack.map(|ack| Bytes::new(u64::from(ack.every) * transport.mtu.as_u64())),
        Transport::Rdma => transport.ack_every,
    };
    every.map_or(packets, |every| {
        (packets * transport.mtu.as_f64() / every.as_f64()).ceil().clamp(packets.min(1.0), packets)
    })
}

/// Returns, for each receiver of endless flows and each time at which their number changes, the seconds until then for
/// which one flow would have had the receiver's link to itself, had it been there all the time.
fn shared_times(config: &SimConfig, end: Time) -> BTreeMap<NodeId, BTreeMap<Time, f64>> {
    let mut changes: BTreeMap<NodeId, BTreeMap<Time, i64>> = BTreeMap::new();
    for flow in config.flows.iter().filter(|flow| flow.bytes == Bytes::MAX) {
        let of_receiver = changes.entry(flow.dst).or_default();
        *of_receiver.entry(flow.start).or_default() += 1;
        *of_receiver.entry(flow.stop.min(end).max(flow.start)).or_default() -= 1;
    }
    let summed = |changes: BTreeMap<Time, i64>| {
        let (mut n, mut since, mut sum) = (0, Time::ZERO, 0.0);
        let sum_until = |(at, change): (Time, i64)| {
            if 0 < n {
                sum += at.saturating_sub(since).as_secs_f64() / n as f64;
            }
            (n, since) = (n + change, at);
            (at, sum)
        };
        changes.into_iter().map(sum_until).collect()
    };
    changes.into_iter().map(|(receiver, changes)| (receiver, summed(changes))).collect()
}

/// Returns the expected run. Endless flows share the links of their receivers with those that are there at the time.
fn expected(config: &SimConfig, routes: &Routes) -> Expected {
    let end = config.stop.at.unwrap_or(Time::MAX);
    let mtu = config.transport.mtu.as_f64();
    let shared = shared_times(config, end);
    let link_rates: BTreeMap<NodeId, Rate> =
        config.topology.host_links().map(|(host, link)| (host, link.rate)).collect();
    let hops_of = |flow: &FlowSpec| {
        let links = f64::from(routes.distance(flow.src, flow.dst).unwrap_or(0));
        let until = flow.stop.min(end).max(flow.start);
        let time = until.saturating_sub(flow.start).as_secs_f64();
        // Packets that the receiver's link brings in some of that time.
        let most = |link_time: f64| {
            let rate = link_rates.get(&flow.dst).copied().unwrap_or(Rate::ZERO);
            (rate.as_bps_f64() * link_time).min(flow.demand.as_bps_f64() * time) / 8.0 / mtu
        };
        let packets = match (flow.bytes == Bytes::MAX, until == Time::MAX) {
            (true, true) => 0.0,
            (true, false) => most(shared[&flow.dst][&until] - shared[&flow.dst][&flow.start]),
            (false, true) => (flow.bytes.as_f64() / mtu).ceil(),
            (false, false) => (flow.bytes.as_f64() / mtu).ceil().min(most(time).ceil()),
        };
        links * (packets + acknowledgments(config, flow, packets))
    };
    let packet_hops = config.flows.iter().map(hops_of).sum::<f64>();
    let samples = |probe: &fairrate_sim::ProbeSpec| match probe {
        fairrate_sim::ProbeSpec::Hosts { hosts, every } if end < Time::MAX && Time::ZERO < *every => {
            hosts.len() as u64 * (end.as_ps() / every.as_ps())
        }
        fairrate_sim::ProbeSpec::Ports { ports, every } if end < Time::MAX && Time::ZERO < *every => {
            ports.len() as u64 * (end.as_ps() / every.as_ps())
        }
        _ => 0,
    };
    let n_samples: u64 = config.probes.iter().map(samples).sum();
    let n_ports = config.topology.n_ports();
    let ns_per_hop = if n_ports < MANY_PORTS { NS_PER_HOP } else { NS_PER_HOP_OF_MANY };
    Expected {
        packet_hops,
        seconds: packet_hops * ns_per_hop * 1e-9,
        memory_bytes: config.flows.len() as u64 * FLOW_BYTES + n_samples * SAMPLE_BYTES + n_ports as u64 * PORT_BYTES,
    }
}
