//! Ports, hosts and flows that have been sampled at a moment: if several probes watch one, it leaves one sample.

use std::collections::HashSet;

use crate::config::ProbeSpec;
use crate::ids::{FlowId, NodeId, PortId};

/// The ports, hosts and flows that have been sampled at one moment.
pub(crate) struct Sampled {
    /// `true` if several probes may watch the same: otherwise nothing needs to be remembered.
    is_asked: bool,
    at_ps: u64,
    seen: HashSet<Watched>,
}

/// Something that probes watch.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Watched {
    Port(PortId),
    Host(NodeId),
    Flow(FlowId),
}

impl Sampled {
    /// Creates the memory of a run with these probes.
    pub(crate) fn new(probes: &[ProbeSpec]) -> Self {
        let n = |is: fn(&ProbeSpec) -> bool| probes.iter().filter(|probe| is(probe)).count();
        let several = [
            n(|probe| matches!(probe, ProbeSpec::Ports { .. })),
            n(|probe| matches!(probe, ProbeSpec::Hosts { .. })),
            n(|probe| matches!(probe, ProbeSpec::Flows { .. })),
        ];
        Self { is_asked: several.into_iter().any(|n| 1 < n), at_ps: 0, seen: HashSet::new() }
    }

    /// Returns `true` if `what` has not been sampled at `now_ps` yet, and notes that it is now.
    pub(crate) fn is_first(&mut self, now_ps: u64, what: Watched) -> bool {
        if !self.is_asked {
            return true;
        }
        if self.at_ps != now_ps {
            self.at_ps = now_ps;
            self.seen.clear();
        }
        self.seen.insert(what)
    }
}
