//! Early drops: data of an algorithm that does not go by marks is dropped where other data would be marked.

use super::{Newcomer, Rule, Ruling};
use crate::config::{NonEct, SimConfig};
use crate::core::switch::Switches;
use crate::core::world::World;
use crate::fabric::{DropCause, Port};
use crate::ids::PortIdx;

pub(super) const RULE: Rule =
    Rule { reason: "switches drop packets that cannot be marked", applies, judge, note_sent: None };

fn applies(config: &SimConfig, _: &[Port]) -> bool {
    config.fabric.all_ecn().any(|ecn| ecn.non_ect == NonEct::Drop)
}

fn judge(s: &mut Switches, w: &mut World, egress: PortIdx, newcomer: Newcomer) -> Ruling {
    let qlen = newcomer.waiting + u32::from(newcomer.head.wire);
    let (port, p) = (&mut w.net.ports[egress], w.net.pool.get(newcomer.packet));
    if !s.marking.drops(&w.run, (port, egress), p, w.clock.now_ps, qlen) {
        return Ruling::NoObjection;
    }
    w.discard(egress, newcomer.packet, DropCause::Early);
    Ruling::Gone
}
