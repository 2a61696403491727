//! Decisions of controllers, and their application to senders.

use fairrate_control::{Allowance, Bucket, Controller};
use fairrate_units::{Bytes, Rate};

use super::Hosts;
use crate::config::WindowRule;
use crate::core::run::Constants;
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
        let (c, now_ps) = (&w.run.constants, w.clock.now_ps);
        let sender = self.senders[slot].as_mut().expect("the slot is in use");
        let nic = &mut self.nics[sender.host];
        sender.cwnd = match w.run.config.transport.window {
            WindowRule::Algorithm => allowance.cwnd.as_u64().max(c.min_window),
            WindowRule::None => u64::MAX,
            WindowRule::Fixed(bytes) => bytes.as_u64().max(c.mtu),
            WindowRule::RateScaled => {
                let line_rate = w.net.ports[nic.port].rate;
                let full = line_rate.bytes_in(c.base_rtt).as_u64();
                (u128::from(full) * u128::from(allowance.rate.as_bps()) / u128::from(line_rate.as_bps())) as u64
            }
        };
        let (rate, transport) = (allowance.rate.min(sender.fastest), sender.transport);
        let entry = &mut nic.flows[sender.nic_slot as usize];
        let mut respaced = false;
        if rate != sender.rate {
            let before = std::mem::replace(&mut sender.rate, rate);
            if c.bucket != Bucket::None {
                let line = w.net.ports[nic.port].rate;
                let filled = Filled { next_ps: entry.next_send_ps, more_bits: sender.more_bits };
                let filled = filled.in_bucket_of(c, now_ps, (before, rate, line));
                (entry.next_send_ps, sender.more_bits) = (filled.next_ps, filled.more_bits);
            } else if 0 < c.pacing_credit {
                entry.next_send_ps = repaced(entry.next_send_ps, now_ps, before, rate);
            } else if c.repace && sender.has_sent() && Rate::ZERO < rate {
                entry.next_send_ps = sender.last_start_ps + sender.gap_ps(c.whole_ns);
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
    #[inline]
    pub(super) fn ask_for_control(&mut self, w: &mut World, slot: SenderIdx) {
        if let Some(wire) = w.run.constants.control_wire {
            self.send_control(w, slot, wire);
        }
    }

    fn send_control(&mut self, w: &mut World, slot: SenderIdx, wire: u16) {
        let sender = self.senders[slot].as_mut().expect("the slot is in use");
        // Bytes that may have to be retransmitted count too.
        let unsent = if sender.bytes == u64::MAX { u64::MAX } else { sender.bytes.saturating_sub(sender.snd_nxt) };
        let unsent = unsent.max(u64::from(sender.has_data()));
        self.header_scratch.fill(0.0);
        let mut controller = self.connections.controller(sender);
        if !controller.control_packet(w.clock.now(), unsent, &mut self.header_scratch) {
            return;
        }
        let id = self.sender(slot).flow;
        let flow = w.run.flow(id);
        let (host, route, class) = (flow.src_host, flow.data_route, w.run.constants.control_class);
        let packet = w.net.pool.take(Packet { flow: id, route, class, wire, ..Packet::new(PacketKind::Control) });
        w.net.pool.header_mut(packet)[..self.header_scratch.len()].copy_from_slice(&self.header_scratch);
        w.observed.totals.control_packets += 1;
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

/// Returns the new send time of a packet that had to wait until `at_ps` at the rate `before`: the rest of the wait is
/// scaled to `rate`. A credit (a time in the past) stays as it is.
fn repaced(at_ps: u64, now_ps: u64, before: Rate, rate: Rate) -> u64 {
    if at_ps <= now_ps || rate == Rate::ZERO {
        return at_ps;
    }
    let wait = u128::from(at_ps - now_ps) * u128::from(before.as_bps()) / u128::from(rate.as_bps());
    now_ps.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
}

/// Time between two fillings of the bucket of RoCC's public simulation.
const FILLING_PS: u64 = 10_000;

/// The contents of a flow's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// The time at which the bucket had enough for the next packet. In the past it stands for a credit: what goes at the flow's
    /// rate in the time since.
    pub(super) next_ps: u64,
    /// Bits of credit besides, if that time would be before zero.
    pub(super) more_bits: u64,
}

impl Filled {
    /// Returns the bucket as the flow's rate changes from the first to the second of `rates`, on a link of the third, with
    /// the run's kind of bucket.
    pub(super) fn in_bucket_of(self, c: &Constants, now_ps: u64, (before, rate, line): (Rate, Rate, Rate)) -> Self {
        // What nothing empties has no line rate.
        let line = if c.bucket == Bucket::Kept { Rate::MAX } else { line };
        self.refilled(now_ps, (before, rate, line), c.mtu + c.data_header)
    }

    /// Returns the bucket as the flow's rate changes from `before` to `rate` on a link of rate `line`. It is empty when a limit
    /// is first set: it then fills for a packet of `packet` bytes. A credit keeps its bytes. Each change fills it once.
    fn refilled(self, now_ps: u64, (before, rate, line): (Rate, Rate, Rate), packet: u64) -> Self {
        let empty = |next_ps| Self { next_ps, more_bits: 0 };
        if line <= rate {
            return empty(self.next_ps.min(now_ps));
        }
        if line <= before {
            return empty(now_ps + rate.tx_time(Bytes::new(packet)).as_ps().saturating_sub(FILLING_PS));
        }
        if now_ps < self.next_ps {
            return empty(repaced(self.next_ps, now_ps, before, rate).saturating_sub(FILLING_PS));
        }
        // In bits times 10^12.
        let (bps, second) = (u128::from(rate.as_bps().max(1)), 1_000_000_000_000);
        let held =
            u128::from(now_ps - self.next_ps) * u128::from(before.as_bps()) + u128::from(self.more_bits) * second;
        let back = held / bps;
        match u64::try_from(back) {
            Ok(back) if back <= now_ps => empty(now_ps - back),
            _ => {
                let more_bits = (held - u128::from(now_ps) * bps) / second;
                Self { next_ps: 0, more_bits: u64::try_from(more_bits).unwrap_or(u64::MAX) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fills_by_its_rate() {
        let (line, half, tenth) = (Rate::from_gbps(40), Rate::from_gbps(20), Rate::from_gbps(4));
        let refilled = |next_ps, rates| {
            let filled = Filled { next_ps, more_bits: 0 }.refilled(1_000_000, rates, 1_500);
            assert_eq!(filled.more_bits, 0);
            filled.next_ps
        };
        // Empty when first limited: 1,500 bytes at 4 Gb/s are 3 us, less one filling.
        assert_eq!(refilled(400_000, (line, tenth, line)), 1_000_000 + 3_000_000 - FILLING_PS);
        // What is missing fills five times as fast; a credit lasts five times as long at a fifth of the rate.
        assert_eq!(refilled(2_000_000, (tenth, half, line)), 1_200_000 - FILLING_PS);
        assert_eq!(refilled(900_000, (half, tenth, line)), 500_000);
        // Without a limit nothing waits, and no credit is lost that comes later.
        assert_eq!((refilled(2_000_000, (half, line, line)), refilled(5, (half, line, line))), (1_000_000, 5));
    }

    /// 20 Gb/s for 1 us are 20,000 bits. At 4 Gb/s that is 5 us, of which 4 us would be before time zero.
    #[test]
    fn a_credit_may_be_older_than_time() {
        let (line, half, tenth) = (Rate::from_gbps(40), Rate::from_gbps(20), Rate::from_gbps(4));
        let full = Filled { next_ps: 0, more_bits: 0 }.refilled(1_000_000, (half, tenth, line), 1_500);
        assert_eq!(full, Filled { next_ps: 0, more_bits: 16_000 });
        let back = full.refilled(1_000_000, (tenth, half, line), 1_500);
        assert_eq!(back, Filled { next_ps: 0, more_bits: 0 });
    }
}
