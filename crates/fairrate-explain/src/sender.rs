//! The sender's account: what it did or waited for at every moment.

use fairrate_units::Time;

use crate::chain::Walk;
use crate::observer::Track;
use crate::piece::{Piece, Reason};
use crate::port::Ports;

/// Returns the account of a sender whose flow started at `start` and took `fct`. The packet that completed the flow has the place
/// `last` among those it sent; `None`: it is not known.
pub(crate) fn account(track: &Track, ports: &Ports, start: Time, fct: Time, last: Option<usize>) -> Vec<Piece> {
    let mut walk = Walk::new(track, ports, start, start + fct);
    let Some(last) = last else {
        walk.close(start, Reason::Unknown);
        return walk.pieces;
    };
    walk.close(track.sends[last].t, Reason::LastPacket);
    for send in (0..=last).rev() {
        let opening = walk.wait_for_turn(send);
        walk.wait_for_pacing(send, opening);
        walk.before_opening(send, opening);
    }
    walk.pieces.reverse();
    walk.pieces
}
