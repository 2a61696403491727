//! The NIC of ns-3's RDMA stack, for runs whose ties go by insertion: the same decisions at the same points of
//! the event order, its peculiarities included. One matters beyond ties: the wake-up for pacing looks at the
//! earliest pacing time of any flow with data, even one whose window is closed. If that time has passed, no
//! wake-up is planned, and paced flows of that host wait for the next acknowledgment instead.

use fairrate_control::Controller;
use fairrate_units::Time;

use super::Core;
use super::agents::Step;
use crate::engine::{Event, EventKind};

impl Core {
    /// Sends the host's next packet if its port is free, or plans the next look.
    pub(super) fn nic_send_like_ns3(&mut self, host: u32) {
        let egress = self.nics[host as usize].port;
        let port = &self.ports[egress as usize];
        if self.now_ps < port.busy_until_ps || (self.now_ps == port.busy_until_ps && !self.has_passed(port)) {
            // The end of the transmission comes here again.
            return;
        }
        if port.can_send() {
            let packet = self.ports[egress as usize].dequeue(&self.pool);
            self.agent_sees(egress, packet, Step::Dequeue);
            self.transmit(egress, packet);
            self.schedule_tx_done(egress);
            return;
        }
        let (picked, moved) = self.nics[host as usize].pick_like_ns3(self.now_ps, port.paused);
        if moved {
            self.renumber(host, 0);
        }
        if let Some(at) = picked {
            self.send_data(host, at);
            self.schedule_tx_done(egress);
            return;
        }
        let nic = &self.nics[host as usize];
        let at = nic.next_send_like_ns3();
        if nic.wake_ps == u64::MAX && at < u64::MAX && self.now_ps < at {
            self.set_wake(host, at);
        }
    }

    /// A sender has decided about its rate: if its next packet may now go before the planned wake-up of its
    /// NIC, that comes earlier. All decisions come here, whether or not the rate has changed and the flow
    /// has anything left to send; a first acknowledgment that is only stored is none.
    pub(super) fn pull_wake_like_ns3(&mut self, slot: u32) {
        let sender = self.senders[slot as usize].as_ref().expect("the slot is in use");
        let host = self.flows[sender.flow as usize].src_host;
        let nic = &self.nics[host as usize];
        let at = nic.flows[sender.nic_slot as usize].next_send_ps;
        if nic.wake_ps < u64::MAX && at < nic.wake_ps {
            self.set_wake(host, at.max(self.now_ps));
        }
    }

    /// Whether the timer of a flow, which is due, must wait for the wake-up of its NIC at this very moment because
    /// ns-3 planned that one earlier: a packet sent first is still spaced at the old rate. If so, comes again.
    pub(super) fn timer_waits_like_ns3(&mut self, id: u32) -> bool {
        let flow = &self.flows[id as usize];
        let nic = &self.nics[flow.src_host as usize];
        if nic.wake_ps != self.now_ps {
            return false;
        }
        let now = Time::from_ps(self.now_ps);
        let sender = self.senders[flow.sender as usize].as_mut().expect("a flow with a timer is active");
        let planned = now.saturating_sub(self.connections.controller(sender).timer_lead());
        if planned.as_ps() <= nic.wake_planned_ps {
            return false;
        }
        self.events.push(Event::new(self.now_ps, EventKind::FlowTimer, id).ranked(nic.wake_rank));
        true
    }

    fn set_wake(&mut self, host: u32, at_ps: u64) {
        let rank = self.ranks.take();
        let nic = &mut self.nics[host as usize];
        (nic.wake_ps, nic.wake_rank, nic.wake_planned_ps) = (at_ps, rank, self.now_ps);
        self.events.push(Event::new(at_ps, EventKind::HostWake, host).ranked(rank));
    }
}
