//! Decisions of controllers, and their application to senders.

use fairrate_control::{Allowance, Bucket, Controller};
use fairrate_units::Rate;

use super::Hosts;
use super::bucket::{Filled, repaced};
use crate::config::{Milestone, WindowRule};
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::{FlowId, SenderIdx};
use crate::packet::{Packet, PacketKind};
use crate::transport::{ControllerRef, follow_up};

impl Hosts {
    /// Lets a flow's controller decide, if the flow is active or its connection still is, and applies the decision.
    pub(super) fn decide(
        &mut self,
        w: &mut World,
        id: FlowId,
        decide: impl FnOnce(&mut ControllerRef<'_>) -> Option<Allowance>,
    ) {
        let Some(slot) = self.slot_of_notice(&w.run, id) else {
            if let Some(lasting) = self.idle_controller(w, id) {
                decide(&mut ControllerRef::Lasting(lasting));
            }
            return;
        };
        match decide(&mut self.controller(slot)) {
            Some(allowance) => self.apply(w, slot, allowance),
            None => self.ask_for_control(w, slot),
        }
        self.nic_send(w, w.run.flow(id).src_host);
    }

    /// Applies a controller's decision to its sender.
    pub(super) fn apply(&mut self, w: &mut World, slot: SenderIdx, allowance: Allowance) {
        let (now_ps, mtu) = (w.clock.now_ps, w.run.constants.mtu);
        let sender = self.senders[slot].as_mut().expect("the slot is in use");
        let c = w.run.rules(sender.stack);
        let nic = &mut self.nics[sender.host];
        let queued = w.run.queued_rates.get(sender.host).copied();
        let (port, ports) = (nic.port, &w.net.ports);
        let line_rate = || queued.unwrap_or_else(|| ports[port].rate);
        sender.cwnd = match c.window {
            WindowRule::Algorithm => allowance.cwnd.as_u64().max(c.min_window),
            WindowRule::Bdp => {
                let packets = line_rate().bytes_in(c.base_rtt).as_u64().div_ceil(mtu + c.data_header);
                allowance.cwnd.as_u64().max(c.min_window).min(packets * mtu)
            }
            WindowRule::None => u64::MAX,
            WindowRule::Fixed(bytes) => bytes.as_u64().max(mtu),
            WindowRule::RateScaled => {
                let line_rate = line_rate();
                let full = line_rate.bytes_in(c.base_rtt).as_u64();
                (u128::from(full) * u128::from(allowance.rate.as_bps()) / u128::from(line_rate.as_bps())) as u64
            }
        };
        let rate = match queued {
            // A window may fill the queue at once; a rate alone is a pace.
            Some(line) if line <= allowance.rate && sender.cwnd < u64::MAX => sender.fastest,
            Some(line) => allowance.rate.min(sender.fastest).min(line),
            None => allowance.rate.min(sender.fastest),
        };
        let transport = sender.transport;
        let entry = &mut nic.flows[sender.nic_slot as usize];
        let mut respaced = false;
        if rate != sender.rate {
            let before = std::mem::replace(&mut sender.rate, rate);
            if c.bucket != Bucket::None {
                let filled = Filled { next_ps: entry.next_send_ps, more_bits: sender.more_bits };
                let filled = filled.in_bucket_of(c, mtu, now_ps, (before, rate, line_rate()));
                (entry.next_send_ps, sender.more_bits) = (filled.next_ps, filled.more_bits);
            } else if 0 < c.pacing_credit {
                entry.next_send_ps = repaced(entry.next_send_ps, now_ps, before, rate);
            } else if c.repace && sender.has_sent() && Rate::ZERO < rate {
                entry.next_send_ps = sender.last_start_ps + sender.gap_ps(w.run.constants.clock);
                respaced = true;
            }
        }
        sender.settle();
        (entry.open, entry.has_data) = sender.outlook();
        let timer_ps = allowance.timer.as_ps();
        if timer_ps != sender.timer_ps {
            sender.timer_ps = timer_ps;
            if timer_ps < u64::MAX {
                let (at, id) = (timer_ps.max(now_ps), sender.flow);
                sender.timer_ps = at;
                // Rank 0: before all other events of its time; for the exception see [`Hosts::timer_waits`].
                w.clock.push(at, EventKind::FlowTimer, id, 0);
            }
        }
        if respaced {
            let earliest_ps = transport.earliest_ps(self, w, slot);
            let (host, at) = (self.sender(slot).host, self.sender(slot).nic_slot as usize);
            let entry = &mut self.nics[host].flows[at];
            entry.next_send_ps = entry.next_send_ps.max(earliest_ps);
        }
        transport.decided(self, w, slot);
        self.follow(w, slot);
        self.ask_for_control(w, slot);
    }

    /// Sends a flow's control packet if its controller has one.
    #[inline(always)] // One test, at six places: a function of its own costs as much as the rest of a decision.
    pub(super) fn ask_for_control(&mut self, w: &mut World, slot: SenderIdx) {
        if w.run.constants.has_control {
            self.send_control(w, slot);
        }
    }

    #[inline(never)]
    fn send_control(&mut self, w: &mut World, slot: SenderIdx) {
        let sender = self.senders[slot].as_mut().expect("the slot is in use");
        let rules = w.run.rules(sender.stack);
        let Some(wire) = rules.control_wire else { return };
        // Bytes that may have to be retransmitted count too.
        let unsent = if sender.bytes == u64::MAX { u64::MAX } else { sender.bytes.saturating_sub(sender.snd_nxt) };
        let unsent = unsent.max(u64::from(sender.has_data()));
        let (id, header) = (sender.flow, &mut self.header_scratch[..rules.header_words]);
        header.fill(0.0);
        let mut controller = self.connections.controller(sender);
        if !controller.control_packet(w.clock.now(), unsent, header) {
            return;
        }
        let flow = w.run.flow(id);
        let (host, route, class) = (flow.src_host, flow.data_route, rules.control_class);
        let packet = w.net.pool.take(Packet { flow: id, route, class, wire, ..Packet::new(PacketKind::Control) });
        w.net.pool.header_mut(packet)[..header.len()].copy_from_slice(header);
        w.observed.totals.counts.control_packets += 1;
        self.enqueue_control(w, host, packet);
    }

    /// Runs the actions that transports have requested, until there are none.
    #[cold]
    pub(super) fn run_each_deferred(&mut self, w: &mut World) {
        loop {
            if !self.deferred.notices.is_empty() {
                let mut notices = self.deferred.take_notices();
                for notice in notices.drain(..) {
                    let now = w.clock.now();
                    self.decide(w, FlowId(notice.flow), |controller| controller.on_notice(now, &notice));
                }
                self.deferred.spare_notices = notices;
            } else if std::mem::take(&mut self.deferred.is_to_follow_up) {
                follow_up(self, w);
            } else if let Some(id) = self.deferred.arrived.pop() {
                self.note_milestone(w, id, Milestone::Arrived);
            } else if !self.deferred.starts.is_empty() {
                let mut starts = std::mem::take(&mut self.deferred.starts);
                starts.drain(..).for_each(|id| self.start(w, id));
                if self.deferred.starts.is_empty() {
                    self.deferred.starts = starts;
                }
            } else if !self.deferred.hosts.is_empty() {
                let mut hosts = self.deferred.take_hosts();
                for host in hosts.drain(..) {
                    self.nic_send(w, host);
                }
                self.deferred.spare_hosts = hosts;
            } else {
                return;
            }
        }
    }
}
