//! Applications that write on a connection now and then.

use super::Core;
use crate::config::Burst;
use crate::engine::EventKind;
use crate::transport::Writing;

impl Core {
    /// What a burst has: with TCP, whose scoreboard counts in segments, whole ones.
    pub(super) fn burst_bytes(&self, burst: &Burst) -> u64 {
        let (bytes, mtu) = (burst.bytes.as_u64(), self.constants.mtu);
        if self.is_tcp() { bytes.div_ceil(mtu).saturating_mul(mtu) } else { bytes }
    }

    /// All that an application has written is sent: it writes again after a pause.
    pub(super) fn plan_burst(&mut self, slot: u32) {
        let sender = self.senders[slot as usize].as_mut().expect("the slot is in use");
        let (id, now_ps) = (sender.flow, self.now_ps);
        if let (Writing::Burst, Some(burst)) = (sender.writing, self.config.flows[id as usize].burst) {
            sender.writing = Writing::Pause;
            self.schedule(now_ps + burst.pause.as_ps(), EventKind::Burst, id);
        }
    }

    /// The application of a flow writes its next burst, unless the flow has stopped.
    pub(super) fn on_burst(&mut self, id: u32) {
        let slot = self.flows[id as usize].sender;
        let Some(burst) = self.config.flows[id as usize].burst else { return };
        let bytes = self.burst_bytes(&burst);
        let Some(sender) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        if sender.writing == Writing::Done {
            return;
        }
        sender.writing = Writing::Burst;
        sender.bytes += bytes;
        self.refresh_open(slot);
        self.begin_flowlet(id);
        self.poll_control(slot);
        self.nic_send(self.flows[id as usize].src_host);
    }
}
