//! Links, which may have a share of their rate for a time.

use super::{Fluid, NEVER};
use crate::engine::EventKind;
use crate::ideal::Hop;
use crate::ids::PortId;
use crate::optimum::Optimum;

impl Fluid {
    /// Schedules the times at which links change their rates.
    pub(super) fn schedule_slow_links(&mut self) {
        let faults = (0..).zip(&self.config.faults).filter(|(_, fault)| fault.changes_rate());
        let times = faults.flat_map(|(index, fault)| [fault.start, fault.stop].map(|at| (at.as_ps(), index)));
        let times: Vec<(u64, u32)> = times.filter(|&(at, _)| 0 < at && at < NEVER).collect();
        for (at, index) in times {
            self.schedule(at, EventKind::Flap, index);
        }
    }

    /// Gives the links of a fault the rates that they have from now on.
    pub(super) fn on_slow_links(&mut self, fault: usize) {
        let rates = self.config.rates_at(self.now());
        self.solver = Optimum::new(&self.config, self.oracle, &rates);
        self.rates = rates.into();
        self.neighbours.touch(&self.config.faults[fault].ports);
    }

    /// Returns the links of a path at the rates that they have now.
    pub(super) fn hops(&self, path: &[PortId]) -> Vec<Hop> {
        let hop = |&port: &PortId| Hop { rate: self.rates[port], ..Hop::single(self.config.topology.link(port)) };
        path.iter().map(hop).collect()
    }
}
