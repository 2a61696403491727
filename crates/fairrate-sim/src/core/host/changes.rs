//! Flows that start and stop one after the other, each once rates have converged after the one before.

use super::Hosts;
use crate::config::Change;
use crate::core::run::Run;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::output::Observation;

impl Hosts {
    /// Returns `true` if all changes are done and rates have settled after the last.
    pub(super) fn changes_are_done(&self, run: &Run) -> bool {
        self.convergence.as_ref().is_none_or(|c| c.is_done(run.config.changes.len()))
    }

    /// Schedules the first change, if no flow starts by itself.
    pub(in crate::core) fn start_convergence(&mut self, w: &mut World) {
        let changes = &w.run.config.changes;
        debug_assert!(changes.is_empty() || self.convergence.is_some(), "changes wait for convergence");
        if self.convergence.is_some() && self.starts.is_empty() && !changes.is_empty() {
            w.clock.schedule(0, EventKind::Settled, 0_u32);
        }
    }

    /// Checks if rates have settled or the time to settle is over, and continues with the next change.
    pub(in crate::core) fn on_settled(&mut self, w: &mut World) {
        let Some(c) = &mut self.convergence else { return };
        c.overtaken.drain(..).for_each(|sample| w.observed.add(Observation::Convergence(sample)));
        let closed = c.close(w.clock.now_ps);
        if let Some(sample) = closed {
            w.observed.add(Observation::Convergence(sample));
        }
        let nobody_left = c.active.is_empty() && c.open.is_none() && !c.is_starting;
        if closed.is_some() || nobody_left {
            self.change_next(w);
        }
    }

    /// Applies the next of the changes that has an effect.
    fn change_next(&mut self, w: &mut World) {
        while let Some(c) = &mut self.convergence
            && let Some(&change) = w.run.config.changes.get(c.n_changes)
        {
            c.n_changes += 1;
            match change {
                Change::Start(id) => {
                    c.is_starting = true;
                    self.finite_left += u64::from(!w.run.flow(id).is_endless());
                    let at = w.clock.now_ps.max(w.run.config.flows[id.index()].start.as_ps());
                    w.clock.schedule(at, EventKind::FlowStart, id);
                    return;
                }
                Change::Stop(id) if self.sending[id].sender.is_none() => {}
                Change::Stop(id) => {
                    self.on_flow_stop(w, id);
                    if self.convergence.as_ref().is_some_and(|c| c.open.is_some()) {
                        return;
                    }
                }
            }
        }
    }
}
