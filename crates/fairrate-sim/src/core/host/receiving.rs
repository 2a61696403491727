//! Arrivals of packets and timers at hosts: selection of the transport, and the host's next step.

use fairrate_control::Controller;

use super::Hosts;
use super::disorder::Arrival;
use crate::core::world::World;
use crate::ids::{FlowId, HostId, PacketIdx};
use crate::output::{Cause, SenderStep};
use crate::packet::PacketKind;
use crate::transport::{Answer, Echo, Kind, Outcome, Timed, on_allocator_event};

impl Hosts {
    /// Processes a packet that reaches its host.
    // Kept apart from the switches' work for every packet, which needs fewer registers saved.
    #[inline(never)]
    pub(in crate::core) fn on_packet(&mut self, w: &mut World, host: HostId, packet: PacketIdx, kind: PacketKind) {
        if w.observed.wants.senders {
            w.observed.begin_with_packet(&w.run, w.clock.now(), w.net.pool.get(packet));
        }
        match kind {
            PacketKind::Data | PacketKind::Trimmed | PacketKind::Busy => self.on_data(w, host, packet),
            PacketKind::Ack | PacketKind::Nack | PacketKind::Credit | PacketKind::Returned => {
                self.on_ack(w, host, packet);
            }
            PacketKind::Cnp | PacketKind::Notice => self.on_notification(w, host, packet),
            PacketKind::Control => self.turn_control(w, host, packet),
            PacketKind::ControlBack => self.on_control_back(w, packet),
            PacketKind::Pause | PacketKind::Resume | PacketKind::FlowPause | PacketKind::FlowResume => {
                unreachable!("handled at the link")
            }
        }
        self.run_deferred(w);
    }

    /// Processes a data packet that reaches its receiver, and sends the answer.
    fn on_data(&mut self, w: &mut World, host: HostId, packet: PacketIdx) {
        let p = w.net.pool.get(packet);
        let (id, arrival) = (p.flow, self.disorder.as_ref().and_then(|_| Arrival::of(p)));
        if !w.observed.groups.is_empty()
            && p.is_marked()
            && let Some(group) = w.observed.group_of(&w.run, id)
        {
            group.marked += 1;
        }
        let transport = w.run.flow(id).transport;
        let answer = transport.on_data(self, w, host, packet);
        if let (Some(book), Some(arrival)) = (&mut self.disorder, arrival)
            && transport != Kind::Homa
        {
            book.note(id, arrival, self.receiving[id].receiver.expected);
        }
        match answer {
            Answer::Packet(packet) => self.reply(w, host, packet),
            Answer::Waiting => self.nic_send(w, host),
            Answer::Nothing => return,
        }
        transport.read(self, w, id);
    }

    /// Processes an acknowledgment that reaches its sender.
    fn on_ack(&mut self, w: &mut World, host: HostId, packet: PacketIdx) {
        let p = w.net.pool.get(packet);
        let (id, entropy, sent_ps) = (p.flow, p.entropy, p.sent_ps);
        if self.pickers.is_some() && w.run.flow(id).transport != Kind::Uet {
            let outcome = if p.is_marked() { Outcome::Marked } else { Outcome::Good };
            self.learn(w, id, entropy, outcome, sent_ps);
        }
        // The sender is read anyway, and the flow only where it has none.
        let transport = self.sender_of(id).map_or_else(|| w.run.flow(id).transport, |(_, sender)| sender.transport);
        let acked = transport.on_ack(self, w, host, packet);
        w.net.pool.release(packet);
        let Some(acked) = acked else { return };
        self.apply(w, acked.slot, acked.allowance);
        self.pull_wake(w, acked.slot, acked.is_only_stored);
        if acked.is_done {
            self.finish(w, w.run.flow(id).parent);
        } else {
            transport.plan_timer(self, w, acked.slot);
            self.nic_send(w, host);
        }
    }

    /// Tells the sender of a flow the outcome of a packet with the value `entropy`, sent at `sent_ps`.
    pub(crate) fn learn(&mut self, w: &World, id: FlowId, entropy: u16, outcome: Outcome, sent_ps: u64) {
        let slot = self.sending[id].sender;
        let (Some(pickers), Some(sender)) = (&mut self.pickers, self.senders.get(slot).and_then(Option::as_ref)) else {
            return;
        };
        let (now_ps, is_idle) = (w.clock.now_ps, sender.inflight() == 0);
        pickers.of(slot).learn(&Echo { entropy, outcome, sent_ps, now_ps, is_idle });
    }

    /// Returns the number of timeouts of a flow's sender so far.
    fn timeouts(&mut self, id: FlowId) -> u32 {
        self.sender_of(id).map_or(0, |(_, sender)| sender.tally.timeouts)
    }

    /// Sends an acknowledgment of a flow, if it has been delayed for long enough.
    pub(in crate::core) fn on_ack_timer(&mut self, w: &mut World, id: FlowId) {
        w.observed.begin(Cause::Other);
        let flow = w.run.flow(id);
        let (host, transport) = (flow.dst_host, flow.transport);
        if let Some(ack) = transport.on_ack_timer(self, w, id) {
            self.reply(w, host, ack);
        }
        self.run_deferred(w);
    }

    /// Handles the retransmission timer of a flow, if it has expired.
    pub(in crate::core) fn on_transport_timer(&mut self, w: &mut World, id: FlowId) {
        w.observed.begin(Cause::TransportTimer);
        let transport = w.run.flow(id).transport;
        let before = self.timeouts(id);
        let timed = transport.on_timer(self, w, id);
        if before < self.timeouts(id) {
            if self.pickers.is_some() {
                self.learn(w, id, 0, Outcome::TimedOut, 0);
            }
            if w.observed.wants.senders {
                w.observed.push_sender(&w.run, w.clock.now(), id, SenderStep::TimedOut);
            }
        }
        let slot = match timed {
            Timed::Nothing => return,
            Timed::MaySend(slot) => slot,
            Timed::Decided(slot, allowance) => {
                self.apply(w, slot, allowance);
                slot
            }
        };
        transport.plan_timer(self, w, slot);
        self.nic_send(w, w.run.flow(id).src_host);
        self.run_deferred(w);
    }

    /// Calls the controller of a flow if its timer is due now; an earlier request may have been replaced.
    pub(in crate::core) fn on_flow_timer(&mut self, w: &mut World, id: FlowId) {
        let now_ps = w.clock.now_ps;
        let Some((slot, sender)) = self.sender_of(id) else { return };
        if sender.timer_ps != now_ps || self.timer_waits(w, id) {
            return;
        }
        w.observed.begin(Cause::ControllerTimer);
        self.sender_mut(slot).timer_ps = u64::MAX;
        let allowance = self.controller(slot).on_timer(w.clock.now());
        self.apply(w, slot, allowance);
        if self.order.sends_after_timers(w.run.rules_of(id).repace) {
            self.nic_send(w, w.run.flow(id).src_host);
        }
        self.run_deferred(w);
    }

    /// Handles an event of the allocator or of a flow that it controls.
    pub(in crate::core) fn on_allocate(&mut self, w: &mut World, entity: u32) {
        w.observed.begin(Cause::Notice);
        on_allocator_event(self, w, entity);
        self.run_deferred(w);
    }
}
