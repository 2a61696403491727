//! The NIC of ns-3's RDMA stack, for runs whose ties go by insertion: the same decisions at the same points of the
//! event order, including its peculiarities. One peculiarity matters beyond ties: the wake-up for pacing uses the
//! earliest pacing time of any flow with data, even if the flow's window is closed. If that time has passed, no wake-up
//! is scheduled, and paced flows of that host wait for the next acknowledgment instead.

use fairrate_control::Controller;

use super::Hosts;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::{FlowId, HostId, SenderIdx};

impl Hosts {
    /// Sends the host's next packet if its port is free, or schedules the next look.
    pub(super) fn nic_send_like_ns3(&mut self, w: &mut World, host: HostId) {
        let egress = self.nics[host].port;
        let port = &w.net.ports[egress];
        if !w.clock.has_passed(port.busy_until_ps, port.tx_rank) {
            // This function is called again at the end of the transmission.
            return;
        }
        if port.can_send() {
            self.send_waiting(w, host);
            w.net.schedule_tx_done(&mut w.clock, egress);
            return;
        }
        let (picked, moved) = self.nics[host].pick_like_ns3(w.clock.now_ps, port.paused);
        if moved {
            self.renumber(host, 0);
        }
        if let Some(at) = picked {
            self.send_data(w, host, at);
            w.net.schedule_tx_done(&mut w.clock, egress);
            return;
        }
        let nic = &self.nics[host];
        let at = nic.next_send_like_ns3();
        if nic.wake_ps == u64::MAX && at < u64::MAX && w.clock.now_ps < at {
            self.set_wake(w, host, at);
        }
    }

    /// Moves the planned wake-up of a sender's NIC to an earlier time, if after a decision about its rate its next
    /// packet may be sent earlier. Called after every decision, even if the rate has not changed or the flow has
    /// nothing left to send; a first acknowledgment that is only stored is not a decision.
    pub(super) fn pull_wake_like_ns3(&mut self, w: &mut World, slot: SenderIdx) {
        let sender = self.sender(slot);
        let (host, nic) = (sender.host, &self.nics[sender.host]);
        let at = nic.flows[sender.nic_slot as usize].next_send_ps;
        if nic.wake_ps < u64::MAX && at < nic.wake_ps {
            self.set_wake(w, host, at.max(w.clock.now_ps));
        }
    }

    /// Returns `true` if the timer of a flow, which is due, must wait for the wake-up of its NIC at the same time
    /// because ns-3 scheduled that earlier: a packet sent first is still spaced at the old rate. If so, schedules the
    /// timer again.
    pub(super) fn timer_waits_like_ns3(&mut self, w: &mut World, id: FlowId) -> bool {
        let nic = &self.nics[w.run.flow(id).src_host];
        if nic.wake_ps != w.clock.now_ps {
            return false;
        }
        let (wake_rank, wake_planned_ps) = (nic.wake_rank, nic.wake_planned_ps);
        let slot = self.sending[id].sender;
        let planned = w.clock.now().saturating_sub(self.controller(slot).timer_lead());
        if planned.as_ps() <= wake_planned_ps {
            return false;
        }
        w.clock.push(w.clock.now_ps, EventKind::FlowTimer, id, wake_rank);
        true
    }

    fn set_wake(&mut self, w: &mut World, host: HostId, at_ps: u64) {
        let rank = w.clock.take_rank();
        let nic = &mut self.nics[host];
        (nic.wake_ps, nic.wake_rank, nic.wake_planned_ps) = (at_ps, rank, w.clock.now_ps);
        w.clock.push(at_ps, EventKind::HostWake, host, rank);
    }
}
