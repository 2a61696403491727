//! The sender's account: what it did or waited for at every moment.

use fairrate_sim::FlowId;
use fairrate_units::Time;

use crate::chain::Walk;
use crate::observer::Track;
use crate::piece::{Piece, Reason};
use crate::port::Ports;

/// Returns the account of a sender whose flow started at `start` and took `fct`. The packet that completed the flow has
/// this subflow and place among those that it sent; `None`: it is not known.
pub(crate) fn account(
    lanes: &[&Track],
    ports: &Ports,
    start: Time,
    fct: Time,
    last: Option<(FlowId, usize)>,
) -> Vec<Piece> {
    let mut walk = Walk::new(lanes, ports, start, start + fct);
    let Some((_, last)) = last.filter(|&(lane, _)| walk.change_to(lane)) else {
        walk.close(start, Reason::Unknown);
        return walk.pieces;
    };
    walk.close(walk.track.sends[last].t, Reason::LastPacket);
    for send in (0..=last).rev() {
        let opening = walk.wait_for_turn(send);
        walk.wait_for_pacing(send, opening);
        walk.before_opening(send, opening);
    }
    walk.pieces.reverse();
    walk.pieces
}
