//! The notifications of a part that were not yet passed on.

use std::collections::HashMap;

use fairrate_control::IntHop;

use super::Notification;
use crate::engine::Event;
use crate::ids::PortId;
use crate::output::PacketHeader;

/// Fewest notifications for which the places of those that were passed on are used again while others wait.
const FEW: usize = 4_096;

/// Notifications, each with the event that caused it. Sorting moves their events and not them.
#[derive(Default)]
pub(super) struct Pending {
    /// The event of each, and its position in `notifications`.
    order: Vec<(Event, u32)>,
    notifications: Vec<Notification>,
    headers: Headers,
    /// From this index of `order` on, those of the event being processed.
    marked: usize,
    /// Number of notifications at the head of `order` that were passed on since the last [`Pending::forget_done`].
    n_done: usize,
    /// Set when they are not in the order of events: switches that process spans run ahead of other nodes.
    is_mixed: bool,
}

/// The headers of packets.
#[derive(Default)]
struct Headers {
    all: Vec<Stored>,
    sacks: Vec<(u64, u64)>,
    telemetry: Vec<IntHop>,
}

/// A header whose lists are elsewhere: the index behind the last one of each.
#[derive(Clone, Copy)]
struct Stored {
    header: PacketHeader<'static>,
    sacks: (u32, u32),
    telemetry: (u32, u32),
}

impl Headers {
    /// Adds a header; returns its position.
    fn push(&mut self, header: PacketHeader<'_>) -> u32 {
        let from = (self.sacks.len() as u32, self.telemetry.len() as u32);
        self.sacks.extend_from_slice(header.sacks);
        self.telemetry.extend_from_slice(header.telemetry);
        let (sacks, telemetry) = ((from.0, self.sacks.len() as u32), (from.1, self.telemetry.len() as u32));
        let header = PacketHeader { sacks: &[], telemetry: &[], ..header };
        self.all.push(Stored { header, sacks, telemetry });
        self.all.len() as u32 - 1
    }

    /// Returns the header at a position.
    fn get(&self, at: u32) -> PacketHeader<'_> {
        let Stored { header, sacks, telemetry } = self.all[at as usize];
        let sacks = &self.sacks[sacks.0 as usize..sacks.1 as usize];
        PacketHeader { sacks, telemetry: &self.telemetry[telemetry.0 as usize..telemetry.1 as usize], ..header }
    }

    fn clear(&mut self) {
        self.all.clear();
        self.sacks.clear();
        self.telemetry.clear();
    }
}

impl Pending {
    /// Adds a notification of the event being processed.
    #[inline]
    pub(super) fn push(&mut self, notification: Notification) {
        self.order.push((Event::LAST, self.notifications.len() as u32));
        self.notifications.push(notification);
    }

    /// Keeps the header of a packet whose notification is added next; returns its position.
    pub(super) fn keep_header(&mut self, header: PacketHeader<'_>) -> u32 {
        self.headers.push(header)
    }

    /// Returns a header that was kept.
    pub(super) fn header(&self, at: u32) -> PacketHeader<'_> {
        self.headers.get(at)
    }

    /// Returns `true` if a notification was added since the last call of [`Pending::mark`].
    #[inline]
    pub(super) fn has_unmarked(&self) -> bool {
        self.order.len() != self.marked
    }

    /// Returns the place of the notifications added since the last [`Pending::mark`], which `event` caused: that of the
    /// event, or of the `last` steps at the same ports if those are of the same time and later. Sets the last steps of
    /// these ports.
    pub(super) fn place_behind(&self, event: Event, last: &mut HashMap<PortId, Event>) -> Event {
        let port = |&(_, at): &(Event, u32)| match &self.notifications[at as usize] {
            Notification::Packet(step, _) => Some(step.port),
            _ => None,
        };
        let ports = || self.order[self.marked..].iter().filter_map(port);
        let before = ports().filter_map(|port| last.get(&port)).filter(|before| before.time_ps == event.time_ps);
        let place = before.copied().fold(event, Event::max);
        ports().for_each(|port| _ = last.insert(port, place));
        place
    }

    /// Records `event` as the cause of the notifications added since the last call. They keep the order in which they
    /// were added if `keeps_order`.
    pub(super) fn mark(&mut self, event: Event, keeps_order: bool) {
        let is_early = |last: usize| event < self.order[last].0;
        self.is_mixed |= !keeps_order && self.marked.checked_sub(1).is_some_and(is_early);
        self.order[self.marked..].iter_mut().for_each(|notification| notification.0 = event);
        self.marked = self.order.len();
    }

    /// Sorts the notifications into the order of events. Those of one event keep their order.
    pub(super) fn sort(&mut self) {
        if std::mem::take(&mut self.is_mixed) {
            self.order.sort();
        }
    }

    /// Returns the first event with a notification that was not yet passed on.
    pub(super) fn first(&self) -> Option<Event> {
        self.order.get(self.n_done).map(|notification| notification.0)
    }

    /// Takes the first notification that was not yet passed on.
    pub(super) fn take_first(&mut self) -> Option<Notification> {
        let at = self.order.get(self.n_done)?.1;
        self.n_done += 1;
        Some(self.notifications[at as usize])
    }

    /// Removes the notifications that were passed on.
    pub(super) fn forget_done(&mut self) {
        self.order.drain(..std::mem::take(&mut self.n_done));
        self.marked = self.order.len();
        if self.order.is_empty() {
            self.notifications.clear();
            self.headers.clear();
        } else if FEW.max(2 * self.order.len()) < self.notifications.len() {
            self.compact();
        }
    }

    /// Moves what waits into tables of its own, in order.
    fn compact(&mut self) {
        let (mut notifications, mut headers) = (Vec::with_capacity(self.order.len()), Headers::default());
        for (_, at) in &mut self.order {
            let mut notification = self.notifications[*at as usize];
            if let Notification::Packet(_, Some(header)) = &mut notification {
                *header = headers.push(self.headers.get(*header));
            }
            *at = notifications.len() as u32;
            notifications.push(notification);
        }
        (self.notifications, self.headers) = (notifications, headers);
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::{Rate, Time};

    use super::*;
    use crate::engine::EventKind;
    use crate::ids::{FlowId, HostId, PortId};
    use crate::output::{PacketEvent, PacketStep};
    use crate::packet::PacketKind;

    /// Adds the step of packet number `n`, whose header says so twice, by an event at `time_ps`.
    fn add(pending: &mut Pending, n: u32, time_ps: u64) {
        let header = PacketHeader {
            sender: HostId(0),
            receiver: HostId(1),
            cwnd: 0,
            entropy: 0,
            is_handshake: false,
            is_reduced: false,
            sacks: &vec![(u64::from(n), 1); n as usize % 3],
            telemetry: &[],
        };
        let at = pending.keep_header(header);
        let event = PacketEvent {
            t: Time::from_ps(time_ps),
            port: PortId(0),
            step: PacketStep::Sent,
            flow: FlowId(n),
            lane: FlowId(n),
            kind: PacketKind::Data,
            seq: 0,
            answers: 0,
            payload_bytes: 0,
            wire_bytes: 0,
            class: 0,
            queued_bytes: 0,
            rate: Rate::MAX,
            marked: false,
        };
        pending.push(Notification::Packet(event, Some(at)));
        pending.mark(Event::new(time_ps, EventKind::TxDone, 0), false);
    }

    /// Packets come in order of time with their own headers, also when others have gone and their places are used
    /// again.
    #[test]
    fn what_waits_keeps_its_header_when_others_have_gone() {
        let (mut pending, mut seen, mut last) = (Pending::default(), 0, 0);
        for round in 0..20_u64 {
            // Half of a round is earlier than what is there.
            for n in 0..1_000 {
                add(&mut pending, (round * 1_000 + n) as u32, round * 1_000 + n * 7 % 1_000);
            }
            pending.sort();
            // A tenth of a round waits.
            while pending.first().is_some_and(|event| event.time_ps < round * 1_000 + 900) {
                let Some(Notification::Packet(event, Some(at))) = pending.take_first() else {
                    panic!("it is a packet")
                };
                let header = pending.header(at);
                assert_eq!(header.sacks, vec![(u64::from(event.flow.0), 1); event.flow.0 as usize % 3]);
                assert!(last <= event.t.as_ps());
                (seen, last) = (seen + 1, event.t.as_ps());
            }
            pending.forget_done();
            assert_eq!(pending.order.len(), 100);
            assert!(pending.notifications.len() <= FEW + 1_000, "{}", pending.notifications.len());
        }
        assert_eq!(seen, 19_900);
    }
}
