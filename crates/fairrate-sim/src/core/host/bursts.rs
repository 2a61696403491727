//! Applications that write bursts on a connection, with pauses between them.

use super::Hosts;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::{FlowId, SenderIdx};
use crate::output::Cause;
use crate::transport::Writing;

impl Hosts {
    /// Schedules the next burst after a pause, when all bytes that the application has written are sent.
    pub(super) fn plan_burst(&mut self, w: &mut World, slot: SenderIdx) {
        let sender = self.sender_mut(slot);
        if sender.writing != Writing::Burst {
            return;
        }
        let id = sender.flow;
        if let Some(burst) = w.run.config.flows[id.index()].burst {
            sender.writing = Writing::Pause;
            w.clock.schedule(w.clock.now_ps + burst.pause.as_ps(), EventKind::Burst, id);
        }
    }

    /// Writes the next burst of a flow's application, unless the flow has stopped.
    pub(in crate::core) fn on_burst(&mut self, w: &mut World, id: FlowId) {
        w.observed.begin(Cause::Written);
        let Some(burst) = w.run.config.flows[id.index()].burst else { return };
        let Some((slot, sender)) = self.sender_of(id) else { return };
        if sender.writing == Writing::Done {
            return;
        }
        sender.writing = Writing::Burst;
        sender.bytes += burst.bytes.as_u64();
        self.refresh(slot);
        w.run.flow(id).transport.written(self, w, id);
        self.ask_for_control(w, slot);
        self.may_send(w, w.run.flow(id).src_host);
    }
}
