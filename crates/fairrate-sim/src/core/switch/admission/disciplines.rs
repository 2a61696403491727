//! Queueing disciplines, which may refuse a packet.

use super::{Newcomer, Rule, Ruling};
use crate::config::SimConfig;
use crate::core::switch::Switches;
use crate::core::world::World;
use crate::fabric::Port;
use crate::ids::PortIdx;

pub(super) const RULE: Rule = Rule { reason: "ports have queueing disciplines", applies, judge, note_sent: None };

fn applies(_: &SimConfig, ports: &[Port]) -> bool {
    ports.iter().any(Port::has_disciplines)
}

#[cold]
fn judge(s: &mut Switches, w: &mut World, egress: PortIdx, newcomer: Newcomer) -> Ruling {
    let port = &mut w.net.ports[egress];
    if !port.has_disciplines() {
        return Ruling::NoObjection;
    }
    let admitted = port.admit(&mut w.net.pool, newcomer.packet, w.clock.now_ps, &mut s.verdicts);
    s.carry_out_verdicts(w, egress);
    match admitted {
        Ok(()) => Ruling::NoObjection,
        Err(cause) => {
            w.discard(egress, newcomer.packet, cause);
            Ruling::Gone
        }
    }
}
