//! The network to lay out: namespaces, links, addresses, routes and queues, as input of `ip` and `tc`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fairrate_sim::topology::{Link, Topology};
use fairrate_sim::{NodeId, PortId, SimConfig};
use fairrate_units::Rate;

use crate::classes::Classes;
use crate::delay;
use crate::field::{FULL_PACKET, port_limit};
use crate::paths::Ways;

/// Time for which a token bucket may save tokens: the lateness of a timer that costs no rate.
const BURST_S: f64 = 100e-6;
/// Limit of the queue of a host's own link. Hosts of the simulator keep waiting packets at their flow and drop none.
const HOST_LIMIT: u64 = 16_000_000;

/// Largest number of subflows of an MPTCP connection besides the first: Linux's own limit.
pub const MOST_SUBFLOWS: u8 = 8;

/// The network to lay out.
pub struct Plan<'a> {
    config: &'a SimConfig,
    ways: &'a Ways,
    /// The mark that names of namespaces begin with.
    mark: &'a str,
}

impl<'a> Plan<'a> {
    /// Creates the plan of `config`, in namespaces whose names begin with `mark`.
    pub fn new(config: &'a SimConfig, ways: &'a Ways, mark: &'a str) -> Self {
        Self { config, ways, mark }
    }

    fn topology(&self) -> &'a Topology {
        &self.config.topology
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.config.topology.nodes.len() as u32).map(NodeId)
    }

    /// Returns the name of a node's namespace.
    pub fn namespace(&self, node: NodeId) -> String {
        format!("{}-{}", self.mark, self.topology().nodes[node.index()].name)
    }

    /// Returns the egress ports of a node.
    pub fn ports(&self, node: NodeId) -> impl Iterator<Item = PortId> + use<'_> {
        let all = (0..self.topology().n_ports() as u32).map(PortId);
        all.filter(move |&port| self.topology().from(port) == node)
    }

    /// Returns the link of an egress port.
    pub fn link(&self, port: PortId) -> &'a Link {
        self.topology().link(port)
    }

    /// Returns the name of the namespace with the far ends of links that have a delay of their own.
    pub fn wires(&self) -> String {
        format!("{}-wires", self.mark)
    }

    /// Returns the egress ports of links with a delay of their own; the two ports of a link follow each other.
    pub fn delayed_ports(&self) -> impl Iterator<Item = PortId> + use<'_> {
        let all = (0..self.topology().n_ports() as u32).map(PortId);
        all.filter(|&port| delay::is_laid_out(self.link(port).delay))
    }

    /// Returns the names of all namespaces.
    pub fn namespaces(&self) -> impl Iterator<Item = String> {
        let wires = self.delayed_ports().next().map(|_| self.wires());
        self.nodes().map(|node| self.namespace(node)).chain(wires)
    }

    /// Returns input for `ip -batch`: the links, each end in its namespace. Both ends have the same hardware address,
    /// so that packets find their way without address resolution. No packet is longer than the MTU: segments are not
    /// merged, so each is paced and counted alone. Each end of a link with a delay of its own is a pair, whose other
    /// end has another address, so that no packet is delivered there.
    pub fn links(&self) -> String {
        let mut text = String::new();
        for (i, link) in (0..).zip(&self.topology().links) {
            let (near, far) = (PortId(2 * i), PortId(2 * i + 1));
            let mac = mac(i);
            let end = |port: PortId| {
                let namespace = self.namespace(self.topology().from(port));
                format!("{} netns {namespace} address {mac} mtu 1500 gso_max_segs 1", device(port))
            };
            let mut pair = |a: &str, b: &str| {
                let _ = writeln!(text, "link add {a} type veth peer name {b}");
            };
            if delay::is_laid_out(link.delay) {
                let wires = self.wires();
                for port in [near, far] {
                    pair(&end(port), &format!("{} netns {wires} mtu 1500", wire(port)));
                }
            } else {
                pair(&end(near), &end(far));
            }
        }
        text
    }

    /// Returns input for `ip -batch` in the namespace of wires: devices up.
    pub fn wires_up(&self) -> String {
        let up: Vec<String> = self.delayed_ports().map(|port| format!("link set {} arp off up", wire(port))).collect();
        up.join("\n")
    }

    /// Returns input for `ip -batch` in a node's namespace: devices up, addresses, routes.
    pub fn addresses(&self, node: NodeId) -> String {
        let mut text = String::from("link set lo up\n");
        for port in self.ports(node) {
            let _ = writeln!(text, "link set {} arp off up", device(port));
        }
        if self.topology().is_host(node) {
            for port in self.ports(node) {
                for address in self.ways.addresses(node) {
                    let _ = writeln!(text, "addr add {}/32 dev {}", address.ip(), device(port));
                }
                let _ = writeln!(text, "route add default dev {}", device(port));
            }
        }
        text.push_str(&self.subflows(node));
        let exits = self.ways.exits.iter().filter(|((switch, _), _)| *switch == node);
        for ((_, address), port) in exits {
            let _ = writeln!(text, "route add {}/32 dev {}", address.ip(), device(*port));
        }
        text
    }

    /// Returns the settings of a host with subflows: receivers announce all addresses, and senders make a subflow to
    /// each, from the address to which its acknowledgments are sent.
    fn subflows(&self, node: NodeId) -> String {
        let mut text = String::new();
        let of_sender = self.ways.more.iter().flatten().filter(|ends| ends.src.host == node);
        let sources: BTreeMap<_, _> = of_sender.map(|ends| (ends.dst, ends.src)).collect();
        for (dst, src) in &sources {
            for port in self.ports(node) {
                let _ = writeln!(text, "route add {}/32 dev {} src {}", dst.ip(), device(port), src.ip());
            }
        }
        let announced_by = self.ways.announced_by(node);
        for address in &announced_by {
            let _ = writeln!(text, "mptcp endpoint add {} signal", address.ip());
        }
        if !(sources.is_empty() && announced_by.is_empty()) {
            let _ = writeln!(text, "mptcp limits set subflows {MOST_SUBFLOWS} add_addr_accepted {MOST_SUBFLOWS}");
        }
        text
    }

    /// Returns input for `tc -batch` in a node's namespace: a token bucket with a first-in, first-out queue at every
    /// egress port.
    pub fn queues(&self, node: NodeId) -> String {
        let is_host = self.topology().is_host(node);
        if !is_host && Classes::of(self.config).is_some() {
            // `fairrate-kernel` lays them out.
            return String::new();
        }
        let limit = if is_host { HOST_LIMIT } else { port_limit(self.config).as_u64() };
        let line = |port: PortId| {
            let rate = self.topology().link(port).rate;
            let (device, burst) = (device(port), burst(rate));
            format!("qdisc add dev {device} root handle 1: tbf rate {}bit burst {burst} limit {limit}\n", rate.as_bps())
        };
        self.ports(node).map(line).collect()
    }

    /// Returns the sysctls of a node's namespace, below `/proc/sys/net/ipv4`.
    pub fn sysctls(&self, node: NodeId) -> &'static [(&'static str, &'static str)] {
        if self.topology().is_host(node) {
            // Flows keep no state of earlier flows. The rest are the defaults that the effective scenario has.
            &[
                ("conf/all/rp_filter", "0"),
                ("tcp_no_metrics_save", "1"),
                ("tcp_slow_start_after_idle", "1"),
                ("tcp_sack", "1"),
                ("tcp_timestamps", "1"),
                ("tcp_recovery", "1"),
                ("tcp_early_retrans", "3"),
                ("tcp_max_syn_backlog", "65536"),
                ("ip_local_port_range", "1024 65535"),
            ]
        } else {
            &[("ip_forward", "1"), ("conf/all/rp_filter", "0"), ("conf/all/send_redirects", "0")]
        }
    }
}

/// Returns the device name of an egress port.
pub fn device(port: PortId) -> String {
    format!("p{}", port.0)
}

/// Returns the device at which the packets of an egress port arrive, if its link has a delay of its own.
pub fn wire(port: PortId) -> String {
    format!("w{}", port.0)
}

/// Returns the hardware address of both ends of a link; it is locally administered.
fn mac(link: u32) -> String {
    let [a, b, c, d] = link.to_be_bytes();
    format!("02:66:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// Returns the bucket's size in bytes: at least two packets, as a bucket that is a byte too small for a packet sends
/// nothing.
fn burst(rate: Rate) -> u64 {
    ((rate.as_bytes_per_sec() * BURST_S) as u64).max(2 * FULL_PACKET)
}
