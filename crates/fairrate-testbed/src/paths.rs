//! The scenario's paths as routes: a host has one address for each path that leads to it.
//!
//! A switch forwards by the destination address alone. If flows to one host take several paths, the host has several
//! addresses, and each switch has one route for each. A flow's data is sent to an address of its receiver, and its
//! acknowledgments to an address of its sender.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use fairrate_sim::routing::{FlowKey, Routes, subflow_keys};
use fairrate_sim::{FlowSpec, NodeId, PortId, SimConfig, Transport};

/// The number of a host's address.
pub type Alias = u8;

/// One of a host's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The host.
    pub host: NodeId,
    /// Number of the address at the host.
    pub alias: Alias,
}

impl Address {
    /// Returns the IP address: 10.ALIAS.HOST, with 16 bits of the host's number.
    pub fn ip(self) -> Ipv4Addr {
        let [_, _, high, low] = self.host.0.to_be_bytes();
        // The last octet is never 0 or 255, and so no address of a network.
        let host = u16::from_be_bytes([high, low]);
        let (third, fourth) = (host / 250, host % 250 + 1);
        Ipv4Addr::new(10, self.alias, third as u8, fourth as u8)
    }
}

/// The two addresses of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The sender's address.
    pub src: Address,
    /// The receiver's address.
    pub dst: Address,
}

/// The paths of all flows.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// Ends of each flow, or of its first subflow.
    pub ends: Vec<Ends>,
    /// Ends of each flow's further subflows.
    pub more: Vec<Vec<Ends>>,
    /// The egress port of a switch to an address.
    pub exits: BTreeMap<(NodeId, Address), PortId>,
    /// Number of addresses of each host.
    aliases: BTreeMap<NodeId, Alias>,
    /// The egress ports of each flow's data and of its acknowledgments, or of its first subflow's.
    pub ports: Vec<(Vec<PortId>, Vec<PortId>)>,
}

impl Ways {
    /// Selects the paths as the simulator does, and the addresses that lead along them.
    pub fn new(config: &SimConfig) -> Self {
        let routes = Routes::of(config);
        let mut ways = Self::default();
        for flow in &config.flows {
            let mut all = Vec::new();
            for (i, key) in keys(config, &routes, flow).into_iter().enumerate() {
                let (mut there, mut back) = (Vec::new(), Vec::new());
                routes.path(config.fabric.ecmp, config.seed, key, &mut there);
                routes.path(config.fabric.ecmp, config.seed, key.reversed(), &mut back);
                let dst = ways.address(config, flow.dst, &there);
                all.push(Ends { dst, src: ways.address(config, flow.src, &back) });
                if i == 0 {
                    ways.ports.push((there, back));
                }
            }
            ways.ends.push(all.remove(0));
            ways.more.push(all);
        }
        ways
    }

    /// Returns the addresses of a host that are ends of subflows. The host announces all of them except a connection's
    /// first to the sender.
    pub fn announced_by(&self, host: NodeId) -> BTreeSet<Address> {
        let multipath = self.ends.iter().zip(&self.more).filter(|(_, more)| !more.is_empty());
        let all = multipath.flat_map(|(first, more)| std::iter::once(first).chain(more)).map(|ends| ends.dst);
        all.filter(|address| address.host == host).collect()
    }

    /// Returns the addresses of a host.
    pub fn addresses(&self, host: NodeId) -> impl Iterator<Item = Address> + '_ {
        let n = self.aliases.get(&host).copied().unwrap_or(0);
        (0..n).map(move |alias| Address { host, alias })
    }

    /// Returns the first address of `host` to which every switch of the path has this route or none yet, and records
    /// the path for it.
    fn address(&mut self, config: &SimConfig, host: NodeId, path: &[PortId]) -> Address {
        // The first port is the sender's own.
        let hops: Vec<(NodeId, PortId)> = path.iter().skip(1).map(|&p| (config.topology.from(p), p)).collect();
        let fits = |alias: &Alias| {
            let taken = |(switch, port): &(NodeId, PortId)| {
                let exit = self.exits.get(&(*switch, Address { host, alias: *alias }));
                exit.is_some_and(|exit| exit != port)
            };
            !hops.iter().any(taken)
        };
        let alias = (0..=Alias::MAX).find(fits).unwrap_or(Alias::MAX);
        let address = Address { host, alias };
        self.exits.extend(hops.into_iter().map(|(switch, port)| ((switch, address), port)));
        let n = self.aliases.entry(host).or_default();
        *n = (*n).max(alias.saturating_add(1));
        address
    }
}

/// Returns the number of subflows of a flow.
pub fn n_subflows(config: &SimConfig, flow: &FlowSpec) -> u8 {
    match config.transport.kind {
        Transport::Tcp(tcp) => flow.subflows.unwrap_or(tcp.multipath.subflows),
        Transport::Rdma | Transport::Uet { .. } => 1,
    }
}

/// Returns the keys of a flow's subflows, as in the simulator.
fn keys(config: &SimConfig, routes: &Routes, flow: &FlowSpec) -> Vec<FlowKey> {
    match (config.transport.kind, n_subflows(config, flow)) {
        (Transport::Tcp(tcp), n) if 1 < n => subflow_keys(config, routes, flow, tcp.multipath.paths, n.into()),
        _ => vec![FlowKey::of(flow)],
    }
}
