//! Headers that come back to their senders, because a switch had room neither for the packet nor for its header
//! ("return to sender" in NDP).
//!
//! The sender knows that the packet is lost, and sends it again. Under NDP it waits for credit, as a second incast is
//! no smaller than the first, unless none is to come or the path is to blame (`credit/feedback.rs`). For RCCC and EQDS
//! no rule is public (in csg-htsim EQDS ends the program). Chosen here: as the receiver does not know of the packet,
//! its sender asks for credit by a request if it has none, once a base RTT at most, and with the number of all packets
//! that wait. Under NSCC the window is cut as by a notice of the receiver. The way of the header was shorter than a
//! round trip, so its time says nothing about the network.

use fairrate_control::{Controller, Trimmed};
use fairrate_units::Bytes;

use super::credit::Fate;
use super::{attempt, attempt_and_look, outgoing, send_request};
use crate::core::{Hosts, World};
use crate::ids::SenderIdx;
use crate::packet::Packet;
use crate::transport::entropy::Outcome;
use crate::transport::interface::Acked;

/// Handles a header that has come back to the sender in `slot`.
#[cold]
pub(super) fn on_returned(hosts: &mut Hosts, w: &mut World, slot: SenderIdx, p: &Packet) -> Option<Acked> {
    let (now, number, has_paths) = (w.clock.now(), p.seq / w.run.constants.mtu, hosts.pickers.is_some());
    let message = outgoing(hosts, slot);
    message.on_answer(None, w.clock.now_ps);
    message.hear(Fate::Returned);
    let Some(bytes) = message.lose(number) else {
        attempt_and_look(hosts, w, slot);
        return None;
    };
    message.take_back(w.clock.now_ps, has_paths);
    let (bytes, last_hop, in_flight) = (Bytes::new(bytes), p.is_last_hop(), message.in_flight());
    hosts.sender_mut(slot).tally.recoveries += 1;
    hosts.learn(w, p.flow, p.entropy, Outcome::Lost, 0);
    let trimmed = Trimmed { now, bytes, rtt: None, last_hop, in_flight };
    let allowance = hosts.controller(slot).on_trimmed(&trimmed);
    attempt(hosts, w, slot);
    Some(Acked { slot, allowance, is_done: false, is_only_stored: false })
}

/// Sends a request for the sender in `slot` if it is time to tell the receiver of packets whose headers have come back.
pub(super) fn tell(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
    let (now_ps, base_rtt_ps) = (w.clock.now_ps, w.run.rules(hosts.sender(slot).stack).base_rtt.as_ps());
    let message = outgoing(hosts, slot);
    if message.has_to_tell(now_ps, base_rtt_ps) {
        let request = message.ask(now_ps);
        send_request(hosts, w, slot, request);
    }
}
