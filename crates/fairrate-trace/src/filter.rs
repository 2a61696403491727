//! The choice of the steps that a trace has.

use fairrate_sim::{FlowId, PortId};
use fairrate_units::Time;

/// The steps that a trace has: those for which all of its parts hold.
#[derive(Clone, Debug)]
pub struct Filter {
    /// For each flow of the list, `true` if its packets are traced; `None`: those of all flows, and messages of an
    /// allocator.
    pub flows: Option<Vec<bool>>,
    /// For each port, `true` if steps there are traced; `None`: those at all ports.
    pub ports: Option<Vec<bool>>,
    /// The first time of the trace.
    pub from: Time,
    /// The end of the trace: the first time that is not in it.
    pub until: Time,
}

impl Filter {
    /// The filter that lets everything through.
    pub const ALL: Self = Self { flows: None, ports: None, from: Time::ZERO, until: Time::MAX };

    /// Returns `true` if packets of `flow` are traced.
    pub fn has_flow(&self, flow: FlowId) -> bool {
        self.flows.as_ref().is_none_or(|flows| flows.get(flow.index()).copied().unwrap_or(false))
    }

    /// Returns `true` if steps at `port` are traced.
    pub fn has_port(&self, port: PortId) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.get(port.index()).copied().unwrap_or(false))
    }

    /// Returns `true` if the trace has the time `t`.
    pub fn has_time(&self, t: Time) -> bool {
        self.from <= t && t < self.until
    }
}
