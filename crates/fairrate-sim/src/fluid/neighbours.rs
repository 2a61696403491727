//! Flows that share links, and so can change each other's rates.

use crate::ids::{FlowId, PortId};
use crate::table::Table;

/// The flows at every port, and which of them a change can affect.
#[derive(Debug)]
pub(super) struct Neighbours {
    /// The served flows whose paths have the port.
    at: Table<PortId, Vec<FlowId>>,
    /// Ports of the flows that have joined or left since rates were computed, and of links that have changed.
    stale: Vec<PortId>,
    /// The flows that have joined since then, and those at links that have changed.
    joined: Vec<FlowId>,
    /// For each port and flow, the number of the last search that met it.
    port_met: Table<PortId, u64>,
    flow_met: Table<FlowId, u64>,
    search: u64,
    affected: Vec<FlowId>,
}

impl Neighbours {
    /// Returns ports without flows.
    pub(super) fn new(n_ports: usize, n_flows: usize) -> Self {
        Self {
            at: vec![Vec::new(); n_ports].into(),
            stale: Vec::new(),
            joined: Vec::new(),
            port_met: vec![0; n_ports].into(),
            flow_met: vec![0; n_flows].into(),
            search: 0,
            affected: Vec::new(),
        }
    }

    /// Adds a flow at the ports of its path.
    pub(super) fn join(&mut self, flow: FlowId, path: &[PortId]) {
        self.stale.extend(path);
        self.joined.push(flow);
        for &port in path {
            self.at[port].push(flow);
        }
    }

    /// Removes a flow from the ports of its path.
    pub(super) fn leave(&mut self, flow: FlowId, path: &[PortId]) {
        self.stale.extend(path);
        for &port in path {
            let flows = &mut self.at[port];
            let place = flows.iter().position(|&other| other == flow).expect("it has joined");
            flows.swap_remove(place);
        }
    }

    /// Counts the flows at `ports`, whose links have changed, among those that a change can affect.
    pub(super) fn touch(&mut self, ports: &[PortId]) {
        for &port in ports {
            self.stale.push(port);
            self.joined.extend(&self.at[port]);
        }
    }

    /// Returns `true` if a flow has joined or left, or a link has changed, since [`Neighbours::take_affected`].
    pub(super) fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Returns the flows that have joined since the last time, and those at links that have changed.
    pub(super) fn take_joined(&mut self) -> &[FlowId] {
        self.stale.clear();
        std::mem::swap(&mut self.affected, &mut self.joined);
        self.joined.clear();
        &self.affected
    }

    /// Returns the flows that are at a link that has changed since the last time, share a port with one that has joined
    /// or left, or with a flow that does. `path` has the ports of a flow.
    pub(super) fn take_affected<'a>(&mut self, path: impl Fn(FlowId) -> &'a [PortId]) -> &[FlowId] {
        self.search += 1;
        self.affected.clear();
        self.joined.clear();
        while let Some(port) = self.stale.pop() {
            if std::mem::replace(&mut self.port_met[port], self.search) == self.search {
                continue;
            }
            for &flow in &self.at[port] {
                if std::mem::replace(&mut self.flow_met[flow], self.search) != self.search {
                    self.affected.push(flow);
                    self.stale.extend(path(flow));
                }
            }
        }
        &self.affected
    }
}
