//! The names of ports, and of the receive buffers of hosts, in the tables.

use fairrate_sim::topology::Topology;
use fairrate_sim::{NodeId, PortId};

use crate::value::Text;

/// The names of a network.
pub(super) struct Names {
    /// For each port the node that it sends from, and its name.
    ports: Vec<(u32, Text)>,
    /// The rate of each port in bit/s.
    rates_bps: Vec<u64>,
    /// For each node the name of its receive buffer.
    hosts: Vec<Text>,
}

impl Names {
    /// Returns the names of `topology`.
    pub(super) fn new(topology: &Topology) -> Self {
        let ports = (0..topology.n_ports() as u32).map(PortId);
        let hosts = (0..topology.nodes.len() as u32).map(NodeId);
        Self {
            ports: ports.clone().map(|port| (topology.from(port).0, topology.port_name(port).into())).collect(),
            rates_bps: ports.map(|port| topology.link(port).rate.as_bps()).collect(),
            hosts: hosts.map(|host| host_name(topology, host).into()).collect(),
        }
    }

    /// Returns the id of the node that `port` sends from, and the port's name.
    pub(super) fn port(&self, port: PortId) -> (u32, Text) {
        self.ports[port.index()].clone()
    }

    /// Returns the rate of `port` in bit/s, without faults.
    pub(super) fn rate_bps(&self, port: PortId) -> u64 {
        self.rates_bps[port.index()]
    }

    /// Returns the name of the receive buffer of `host`.
    pub(super) fn host(&self, host: NodeId) -> Text {
        self.hosts[host.index()].clone()
    }
}

/// Returns the name of the receive buffer of a host in tables.
pub(super) fn host_name(topology: &Topology, host: NodeId) -> String {
    format!("host-rx->{}", topology.nodes[host.index()].name)
}
