//! The order in which NICs send and wake up: in fair turns, or as ns-3's RDMA stack does, for runs whose ties go by
//! insertion. All that hosts do differently in such runs is decided here.
//!
//! The second order takes the same decisions at the same points of the event order as ns-3, including its
//! peculiarities. One peculiarity matters beyond ties: the wake-up for pacing uses the earliest pacing time of any flow
//! with data, even if the flow's window is closed. If that time has passed, no wake-up is scheduled, and paced flows of
//! that host wait for the next acknowledgment instead.

use fairrate_control::Controller;

use super::Hosts;
use crate::core::share::Own;
use crate::core::world::World;
use crate::engine::{Event, EventKind};
use crate::fabric::{N_CLASSES, WeightedClasses};
use crate::ids::{FlowId, HostId, SenderIdx};
use crate::transport::Nic;

/// The order in which the NICs of a part send and wake up.
pub(super) enum NicOrder {
    /// Flows of a class in turn; a wake-up when the next packet may be sent.
    Fair,
    /// The same, and classes with weights in turns of their own, at each NIC.
    Weighted(Box<Own<HostId, Turns>>),
    /// The order of ns-3's RDMA stack, with the pending wake-up of each NIC.
    AsNs3(Box<Own<HostId, Wake>>),
}

/// The turns of classes with weights at a NIC, and of the flows of each class.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    classes: WeightedClasses,
    /// For each class, the position after the flow of it that sent last.
    flows: [usize; N_CLASSES],
}

/// The pending wake-up of a NIC, apart from its time.
#[derive(Clone, Copy, Default)]
pub(super) struct Wake {
    /// Rank of its event.
    rank: u32,
    /// Time at which it was planned, in picoseconds.
    planned_ps: u64,
}

impl NicOrder {
    /// Returns the order of a run with these classes with weights, if there are any; `by_insertion` is set if its ties
    /// go by insertion.
    pub(super) fn new(by_insertion: bool, weighted: Option<WeightedClasses>, nics: &Own<HostId, Nic>) -> Self {
        match weighted {
            _ if by_insertion => Self::AsNs3(Box::new(nics.alike())),
            Some(classes) => Self::Weighted(Box::new(nics.with(|_| Turns { classes, flows: [0; N_CLASSES] }))),
            None => Self::Fair,
        }
    }

    /// Returns `true` if flows send in fair turns, and packets at once where nothing is ahead of them.
    #[inline]
    pub(super) fn is_fair(&self) -> bool {
        !matches!(self, Self::AsNs3(_))
    }

    /// Returns `true` if `event` has the rank of the pending wake-up of `host`.
    #[inline]
    pub(super) fn is_wake(&self, host: HostId, event: Event) -> bool {
        match self {
            Self::Fair | Self::Weighted(_) => true,
            Self::AsNs3(wakes) => wakes[host].rank == event.rank,
        }
    }

    /// Returns the position of the flow of `nic`, that of `host`, that may send at `now_ps`, in fair turns. `paused`
    /// has one bit for each paused class.
    #[inline]
    pub(super) fn pick(&mut self, nic: &Nic, host: HostId, now_ps: u64, paused: u8) -> Option<usize> {
        match self {
            Self::Weighted(all) => {
                let may_send = nic.classes_that_may_send(now_ps, paused);
                // The length of a packet is known once it is made: a class sends while it may send a byte.
                let turns = &mut all[host];
                let class = (may_send != 0).then(|| turns.classes.choose(may_send, 0, |_| 1))?;
                nic.pick_from(turns.flows[usize::from(class)], now_ps, !(1 << class))
            }
            Self::Fair | Self::AsNs3(_) => nic.pick(now_ps, paused),
        }
    }

    /// Records that the flow of `host` at `at`, of `class`, has sent `wire` bytes. In ns-3 the turn stays there, and
    /// the search begins behind it.
    #[inline]
    pub(super) fn sent(&mut self, nic: &mut Nic, host: HostId, (at, class): (usize, u8), wire: u16) {
        match self {
            Self::Fair => nic.sent(at, class),
            Self::Weighted(all) => {
                let turns = &mut all[host];
                turns.classes.take(class, u32::from(wire));
                turns.flows[usize::from(class)] = at + 1;
            }
            Self::AsNs3(_) => nic.turn = at,
        }
    }

    /// Ends the turns of the flow at `at`, whose sender is gone; returns `true` if the flows behind it have moved up.
    /// In ns-3 it stays until a search passes it.
    pub(super) fn remove(&mut self, nic: &mut Nic, host: HostId, at: usize) -> bool {
        match self {
            Self::Fair => nic.remove(at),
            Self::Weighted(all) => {
                nic.remove(at);
                all[host].flows.iter_mut().for_each(|turn| *turn -= usize::from(at < *turn));
            }
            Self::AsNs3(_) => {
                let entry = &mut nic.flows[at];
                (entry.open, entry.has_data, entry.sender) = (false, false, SenderIdx::NONE);
            }
        }
        self.is_fair()
    }

    /// Returns `true` if a NIC looks for a packet after the timer of a controller; `repace` is set if its decisions
    /// change the time of the next packet. ns-3's rate timers do not trigger the NIC: a window they open is used at the
    /// next acknowledgment.
    #[inline]
    pub(super) fn sends_after_timers(&self, repace: bool) -> bool {
        self.is_fair() || repace
    }
}

impl Hosts {
    /// Sends the host's next packet if its port is free and a packet may be sent, and schedules the next look.
    pub(super) fn nic_send(&mut self, w: &mut World, host: HostId) {
        if w.observed.wants.senders {
            self.tell_outlooks(w, host);
        }
        match self.order {
            NicOrder::Fair | NicOrder::Weighted(_) => self.nic_send_fairly(w, host),
            NicOrder::AsNs3(_) => self.nic_send_as_ns3(w, host),
        }
    }

    /// Reports which flows of a host may send now, and could not before.
    #[cold]
    fn tell_outlooks(&self, w: &mut World, host: HostId) {
        let now = w.clock.now();
        for entry in self.nics[host].flows.iter().filter(|entry| !entry.sender.is_none()) {
            w.observed.note_outlook(&w.run, now, self.sender(entry.sender).flow, entry.open);
        }
    }

    fn nic_send_as_ns3(&mut self, w: &mut World, host: HostId) {
        let egress = self.nics[host].port;
        let port = &w.net.ports[egress];
        if !w.clock.has_passed(port.busy_until_ps, egress) {
            // This function is called again at the end of the transmission.
            return;
        }
        if port.can_send() {
            self.send_waiting(w, host);
            w.net.schedule_tx_done(&mut w.clock, egress);
            return;
        }
        let (picked, moved) = pick(&mut self.nics[host], w.clock.now_ps, port.paused);
        if moved {
            self.renumber(host, 0);
        }
        if let Some(at) = picked {
            self.send_data(w, host, at);
            w.net.schedule_tx_done(&mut w.clock, egress);
            return;
        }
        let nic = &self.nics[host];
        let at = next_send_ps(nic);
        if nic.wake_ps == u64::MAX && at < u64::MAX && w.clock.now_ps < at {
            self.set_wake(w, host, at);
        }
    }

    /// Moves the planned wake-up of a sender's NIC to an earlier time, in ns-3's order, if after the decision about its
    /// rate its next packet may be sent earlier. Called after every acknowledgment, even if the rate has not changed or
    /// the flow has nothing left to send; a first one that `is_only_stored` is not a decision.
    #[inline]
    pub(super) fn pull_wake(&mut self, w: &mut World, slot: SenderIdx, is_only_stored: bool) {
        if !self.order.is_fair() && !is_only_stored && w.run.rules(self.sender(slot).stack).repace {
            self.pull_wake_as_ns3(w, slot);
        }
    }

    fn pull_wake_as_ns3(&mut self, w: &mut World, slot: SenderIdx) {
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
    #[inline]
    pub(super) fn timer_waits(&mut self, w: &mut World, id: FlowId) -> bool {
        !self.order.is_fair() && self.timer_waits_as_ns3(w, id)
    }

    fn timer_waits_as_ns3(&mut self, w: &mut World, id: FlowId) -> bool {
        let host = w.run.flow(id).src_host;
        let NicOrder::AsNs3(wakes) = &self.order else { return false };
        let wake = wakes[host];
        if self.nics[host].wake_ps != w.clock.now_ps {
            return false;
        }
        let slot = self.sending[id].sender;
        let planned = w.clock.now().saturating_sub(self.controller(slot).timer_lead());
        if planned.as_ps() <= wake.planned_ps {
            return false;
        }
        w.clock.push(w.clock.now_ps, EventKind::FlowTimer, id, wake.rank);
        true
    }

    fn set_wake(&mut self, w: &mut World, host: HostId, at_ps: u64) {
        let NicOrder::AsNs3(wakes) = &mut self.order else { return };
        let rank = w.clock.take_rank();
        wakes[host] = Wake { rank, planned_ps: w.clock.now_ps };
        self.nics[host].wake_ps = at_ps;
        w.clock.push(at_ps, EventKind::HostWake, host, rank);
    }
}

/// Returns the position of the flow of `nic` that may send at `now_ps`, as ns-3's RDMA stack picks it, and `true` if
/// positions changed. Flows are searched in turn from the one after the last sender, without regard to class; flows
/// whose sender is gone are dropped only when the search passes them.
fn pick(nic: &mut Nic, now_ps: u64, paused: u8) -> (Option<usize>, bool) {
    let n = nic.flows.len();
    let (mut picked, mut first_gone) = (None, None);
    for step in 1..=n {
        let at = (step + nic.turn) % n;
        let flow = &nic.flows[at];
        if flow.open && paused & (1 << flow.class) == 0 {
            if flow.next_send_ps <= now_ps {
                picked = Some(at);
                break;
            }
        } else if flow.sender.is_none() {
            first_gone = Some(first_gone.map_or(at, |f: usize| f.min(at)));
        }
    }
    let Some(first) = first_gone else { return (picked, false) };
    let n_gone = |until: usize| nic.flows[first..until].iter().filter(|f| f.sender.is_none()).count();
    let picked = picked.map(|p| if first < p { p - n_gone(p) } else { p });
    let mut at = 0;
    nic.flows.retain(|f| {
        at += 1;
        at - 1 < first || !f.sender.is_none()
    });
    (picked, true)
}

/// Returns the earliest pacing time of a flow of `nic` with data to send, even if its window is closed, as ns-3's RDMA
/// stack computes it.
fn next_send_ps(nic: &Nic) -> u64 {
    nic.flows.iter().filter(|f| f.has_data).map(|f| f.next_send_ps).min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PortIdx;
    use crate::transport::NicFlow;

    #[test]
    fn flows_that_are_gone_keep_their_turns_until_a_search_passes_them() {
        let flow =
            |sender| NicFlow { next_send_ps: 0, sender: SenderIdx(sender), class: 3, open: true, has_data: true };
        let mut nic = Nic { flows: (0..4).map(flow).collect(), ..Nic::new(PortIdx(0)) };
        let mut order = NicOrder::new(true, None, &Own::all(1, |_| Nic::new(PortIdx(0))));
        assert_eq!(pick(&mut nic, 0, 0), (Some(1), false), "the search begins behind the turn");
        order.sent(&mut nic, HostId(0), (1, 3), 1_000);
        assert!(!order.remove(&mut nic, HostId(0), 2) && !order.remove(&mut nic, HostId(0), 0));
        assert_eq!((pick(&mut nic, 0, 0), nic.flows.len()), ((Some(2), true), 3), "only the flow at 2 was passed");
        assert_eq!((nic.flows[0].sender, nic.flows[2].sender), (SenderIdx::NONE, SenderIdx(3)));
    }
}
