//! Applications that write on a connection now and then.

use super::Hosts;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::{FlowId, SenderIdx};
use crate::transport::Writing;

impl Hosts {
    /// All that an application has written is sent: it writes again after a pause.
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

    /// The application of a flow writes its next burst, unless the flow has stopped.
    pub(in crate::core) fn on_burst(&mut self, w: &mut World, id: FlowId) {
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
