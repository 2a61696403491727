//! Limits of virtual output queues, which wait for circuits.

use super::{Newcomer, Rule, Ruling};
use crate::config::SimConfig;
use crate::core::switch::Switches;
use crate::core::world::World;
use crate::fabric::{DropCause, Port};
use crate::ids::PortIdx;

pub(super) const RULE: Rule = Rule { reason: "there are circuits", applies, judge, note_sent: None };

fn applies(config: &SimConfig, _: &[Port]) -> bool {
    config.topology.circuits.is_some()
}

#[cold]
fn judge(s: &mut Switches, w: &mut World, egress: PortIdx, newcomer: Newcomer) -> Ruling {
    let limit = s.rotors.as_ref().and_then(|rotors| rotors.limit_at(egress, w.clock.now()));
    if limit.is_none_or(|limit| w.net.ports[egress].queued_bytes + u64::from(newcomer.head.wire) <= limit) {
        return Ruling::NoObjection;
    }
    w.discard(egress, newcomer.packet, DropCause::QueueLimit);
    Ruling::Gone
}
