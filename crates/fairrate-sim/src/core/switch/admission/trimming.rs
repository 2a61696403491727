//! Switches that cut data packets to their headers in place of dropping them, as in NDP: M. Handley et al.,
//! "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM 2017, and in the
//! composite queue of the Ultra Ethernet consortium's simulator, without its turn of data after 100,000 headers.
//!
//! A header that finds no room is dropped or, if the configuration says so, sent back to its sender ("return to
//! sender", section 3.2.4 of the paper). One that finds none on the way back is dropped. In the authors' simulator
//! (`compositequeue.cpp`), acknowledgments and pulls go back too, and their receivers discard them; here they are
//! dropped at once.

use fairrate_units::{Rate, Time};

use super::{Admission, Newcomer, Rule, Ruling};
use crate::config::{SimConfig, Trim};
use crate::core::switch::Switches;
use crate::core::switch::hop::Head;
use crate::core::world::World;
use crate::fabric::{DropCause, Port};
use crate::ids::{HopId, PacketIdx, PortId, PortIdx};
use crate::output::PacketStep;
use crate::packet::{Packet, PacketKind, Pausing};
use crate::rng::mix64;
use crate::table::Table;

pub(super) const RULE: Rule = Rule { reason: "switches trim packets", applies, judge, note_sent: Some(note_sent) };

/// The state of trimming.
pub(super) struct Trimming {
    config: Trim,
    /// Bit c: data of class c is dropped in place of being cut.
    whole: u8,
    seed: u64,
    ids: Table<PortIdx, PortId>,
    /// The limit of each port in bytes; empty: there is none.
    limits: Table<PortIdx, u64>,
    /// For each port, the bytes of the packet that it sent last if that was data; otherwise zero.
    sent: Table<PortIdx, u16>,
}

impl Trimming {
    /// Returns the state of ports with numbers `ids` that have sent nothing; `None` if switches do not trim.
    pub(super) fn new(config: &SimConfig, ids: &Table<PortIdx, PortId>) -> Option<Box<Self>> {
        let packet = config.longest_packet();
        let state = |trim: Trim| {
            let sent = ids.iter().map(|_| 0).collect();
            let limit = |&port: &PortId| {
                let limit = trim.limit?.as_u64();
                let rate = || config.rate_at(port, Time::ZERO).as_bps();
                let scaled = |per: Rate| u128::from(limit) * u128::from(rate()) / u128::from(per.as_bps().max(1));
                let scaled = trim.limit_per.map_or(limit, |per| scaled(per) as u64);
                // The port of a slow link holds a packet too.
                Some(scaled.max(packet.as_u64()))
            };
            let limits = ids.iter().filter_map(limit).collect();
            let own = config.fabric.classes.iter().filter(|(_, of)| !of.trim);
            let whole = own.fold(0, |mask, (class, _)| mask | 1 << class);
            Box::new(Self { config: trim, whole, seed: config.seed, ids: ids.clone(), limits, sent })
        };
        config.fabric.admission.trim.map(state)
    }

    /// Returns the limit of a port in bytes, if it has one.
    fn limit(&self, port: PortIdx) -> Option<u64> {
        self.limits.get(port).copied()
    }

    /// Tosses a fair coin, which is a function of the seed, the port and the packet.
    fn tosses_heads(&self, port: PortIdx, p: &Packet) -> bool {
        let words = [u64::from(self.ids[port].0) << 32 | u64::from(p.flow.0), p.seq, p.sent_ps];
        words.iter().fold(mix64(self.seed ^ 0x7472_696d), |mixed, word| mix64(mixed ^ word)) & 1 == 1
    }
}

fn applies(config: &SimConfig, _: &[Port]) -> bool {
    config.fabric.admission.trim.is_some()
}

/// Charges the buffer with the packet or with its header.
#[cold]
fn judge(s: &mut Switches, w: &mut World, egress: PortIdx, newcomer: Newcomer) -> Ruling {
    s.admit_or_trim(w, egress, newcomer).map_or(Ruling::Gone, Ruling::Joins)
}

/// Records the size of `packet`, which leaves `egress`, if it is data.
fn note_sent(admission: &mut Admission, w: &World, egress: PortIdx, packet: PacketIdx) {
    let (trimming, p) = (admission.trimming.as_mut().expect("switches trim"), w.net.pool.get(packet));
    trimming.sent[egress] = if p.kind == PacketKind::Data { p.wire } else { 0 };
}

impl Switches {
    /// Charges the buffer with a packet or with its header. Returns what joins the queue; `None`: nothing does.
    ///
    /// At a limit of the port, a coin decides whether the packet is cut or the last one of the queue, into whose place
    /// it comes.
    fn admit_or_trim(&mut self, w: &mut World, egress: PortIdx, newcomer: Newcomer) -> Option<Head> {
        let Newcomer { packet, head, waiting } = newcomer;
        let trimming = self.admission.trimming.as_ref().expect("switches trim");
        let (limit, wire) = (trimming.limit(egress), u64::from(head.wire));
        if w.net.pool.get(packet).kind != PacketKind::Data {
            return self.admit_ahead(w, egress, packet, head);
        }
        if trimming.whole >> head.class & 1 == 1 {
            return self.charge_or_discard(w, egress, packet, head, waiting);
        }
        let is_busy = !w.clock.has_passed(w.net.ports[egress].busy_until_ps, egress);
        let held = u64::from(waiting) + if is_busy { u64::from(trimming.sent[egress]) } else { 0 };
        if limit.is_none_or(|limit| held + wire <= limit) {
            if let Ok(head) = self.charge(w, egress, packet, head, waiting) {
                return Some(head);
            }
            w.report_queued(egress, packet);
            return self.trim(w, egress, packet);
        }
        w.report_queued(egress, packet);
        let takes_last =
            0 < waiting && head.class != trimming.config.class && trimming.tosses_heads(egress, w.net.pool.get(packet));
        if takes_last && self.charge(w, egress, packet, head, waiting).is_ok() {
            let (ports, net) = w.net.split();
            ports[egress].swap_last(net.pool, packet);
            let last = *w.net.pool.get(packet);
            if self.buffers.release(w.net.ports[egress].of_switch, last.ingress, last.class, last.wire) {
                self.send_pfc(w, last.ingress, last.class, Pausing::Resume);
            }
        }
        self.trim(w, egress, packet)
    }

    /// Cuts `packet`, which has been reported as queued and is not charged to the buffer, to its header. Returns the
    /// header's head; `None`: there is no room for that either.
    fn trim(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx) -> Option<Head> {
        let trimming = self.admission.trimming.as_ref().expect("switches trim");
        let Trim { size, class, .. } = trimming.config;
        let is_last = !w.net.ports[egress].to_host().is_none();
        w.report(egress, packet, PacketStep::Trimmed);
        let p = w.net.pool.get_mut(packet);
        w.observed.totals.counts.trims += 1;
        w.observed.totals.trimmed_bytes += u64::from(p.wire);
        (p.kind, p.wire, p.class) = (PacketKind::Trimmed, size.as_u64() as u16, class);
        if is_last {
            p.set_last_hop();
        }
        let head = Head::of(p);
        self.admit_ahead(w, egress, packet, head)
    }

    /// Charges the buffer with a header or a control packet: twice the limit of data may wait of these. A header for
    /// which there is no room goes back to its sender, if the configuration says so; anything else is discarded.
    fn admit_ahead(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx, head: Head) -> Option<Head> {
        let limit = self.admission.trimming.as_ref().expect("switches trim").limit(egress);
        let waiting = w.net.ports[egress].class_bytes(head.class);
        let charged = if limit.is_some_and(|limit| 2 * limit < u64::from(waiting) + u64::from(head.wire)) {
            Err(DropCause::QueueLimit)
        } else {
            self.charge(w, egress, packet, head, waiting)
        };
        let returns = self.admission.trimming.as_ref().is_some_and(|trimming| trimming.config.returns);
        let cause = match charged {
            Ok(head) => return Some(head),
            Err(cause) => cause,
        };
        if returns && w.net.pool.get(packet).kind == PacketKind::Trimmed {
            self.turn_back(w, egress, packet);
        } else {
            w.discard(egress, packet, cause);
        }
        None
    }

    /// Sends a header for which `egress` has no room back to its sender, from the switch that it is at.
    #[cold]
    #[inline(never)]
    fn turn_back(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx) {
        w.report(egress, packet, PacketStep::Returned);
        w.observed.totals.counts.returns += 1;
        let route = way_back(w, w.net.pool.get(packet));
        let p = w.net.pool.get_mut(packet);
        (p.kind, p.route) = (PacketKind::Returned, route);
        let ingress = p.ingress;
        self.forward(w, ingress, packet);
    }
}

/// Returns the place in the table of paths from which a packet at a switch goes on if it goes back to its sender.
fn way_back(w: &World, p: &Packet) -> HopId {
    let flow = w.run.flow(p.flow);
    // The packet is at the n-th switch of its way, and its next step is that of the switch after it. As many hops lead
    // back.
    let n_back = p.route.index() - flow.data_route.index();
    let skipped = (usize::from(flow.n_hops) - n_back) as u32;
    if w.run.config.goes_hop_by_hop() {
        // The table leads from the receiver's first switch on, and all its steps but perhaps the last are "toward the
        // sender".
        flow.ack_route.plus(skipped - 1)
    } else {
        flow.notice_route.plus(skipped)
    }
}
