//! Rules about what may join a queue, besides the limits of the buffer.
//!
//! A rule is a file here and a line of [`RULES`]. Switches of a run that has one go event by event, and ask its rules
//! in that order.

mod disciplines;
mod early;
mod trimming;
mod voqs;

use self::trimming::Trimming;
use super::Switches;
use super::hop::Head;
use crate::config::SimConfig;
use crate::core::world::World;
use crate::fabric::Port;
use crate::ids::{PacketIdx, PortId, PortIdx};
use crate::table::Table;

/// All rules. The last one that holds decides for good, so those that only object come first.
const RULES: [Rule; 4] = [early::RULE, voqs::RULE, disciplines::RULE, trimming::RULE];

/// A rule about what may join a queue.
#[derive(Clone, Copy)]
pub(in crate::core) struct Rule {
    /// The property of a run with the rule, as a clause: the reason for which its switches go event by event.
    pub(in crate::core) reason: &'static str,
    /// Returns `true` if switches with these ports have the rule.
    applies: fn(&SimConfig, &[Port]) -> bool,
    /// Decides about a packet that would join a queue of `egress`.
    judge: fn(&mut Switches, &mut World, egress: PortIdx, Newcomer) -> Ruling,
    /// Records that a packet leaves the port for the wire, if the rule goes by that.
    note_sent: Option<Note>,
}

/// A function that records that a packet leaves a port for the wire.
type Note = fn(&mut Admission, &World, PortIdx, PacketIdx);

/// A packet that would join a queue, and is not charged to the buffer.
#[derive(Clone, Copy)]
struct Newcomer {
    packet: PacketIdx,
    head: Head,
    /// Bytes of its class that wait at the port.
    waiting: u32,
}

/// The decision of a rule about a packet.
enum Ruling {
    /// The rule has no objection: the next one decides, and after the last one the buffer.
    NoObjection,
    /// This joins the queue: the packet or its header, which the rule has charged to the buffer.
    Joins(Head),
    /// Nothing joins the queue: the rule has discarded the packet, or sent it elsewhere.
    Gone,
}

/// The rules that a part's switches have, with their state.
#[derive(Default)]
pub(in crate::core) struct Admission {
    rules: Vec<Rule>,
    /// The functions of rules that go by what leaves for the wire.
    notes: Vec<Note>,
    trimming: Option<Box<Trimming>>,
}

/// Returns the rules that switches with these ports have.
pub(in crate::core) fn rules_of<'a>(config: &'a SimConfig, ports: &'a [Port]) -> impl Iterator<Item = Rule> + 'a {
    RULES.into_iter().filter(|rule| (rule.applies)(config, ports))
}

impl Admission {
    /// Returns the rules of switches whose `ports`, with numbers `ids`, have sent nothing.
    pub(in crate::core) fn new(config: &SimConfig, ids: &Table<PortIdx, PortId>, ports: &[Port]) -> Self {
        let rules: Vec<Rule> = rules_of(config, ports).collect();
        let notes = rules.iter().filter_map(|rule| rule.note_sent).collect();
        Self { rules, notes, trimming: Trimming::new(config, ids) }
    }

    /// Returns `true` if only the buffer limits what joins a queue.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns `true` if a rule goes by what leaves for the wire.
    #[inline]
    pub(super) fn notes_sent(&self) -> bool {
        !self.notes.is_empty()
    }

    /// Records that `packet` leaves `egress` for the wire.
    #[cold]
    pub(super) fn note_sent(&mut self, w: &World, egress: PortIdx, packet: PacketIdx) {
        for i in 0..self.notes.len() {
            (self.notes[i])(self, w, egress, packet);
        }
    }
}

impl Switches {
    /// Asks the rules, and then the buffer, about `packet`, which would join `waiting` bytes of its class at `egress`.
    /// Returns what joins the queue, charged to the buffer; `None`: nothing does.
    #[cold]
    pub(super) fn admit_by_rules(
        &mut self,
        w: &mut World,
        egress: PortIdx,
        packet: PacketIdx,
        head: Head,
        waiting: u32,
    ) -> Option<Head> {
        for i in 0..self.admission.rules.len() {
            match (self.admission.rules[i].judge)(self, w, egress, Newcomer { packet, head, waiting }) {
                Ruling::NoObjection => {}
                Ruling::Joins(head) => return Some(head),
                Ruling::Gone => return None,
            }
        }
        self.charge_or_discard(w, egress, packet, head, waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_clauses_and_differ() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(rule.reason.contains(' ') && !rule.reason.ends_with('.'), "{}", rule.reason);
            assert!(RULES[..i].iter().all(|other| other.reason != rule.reason), "{}", rule.reason);
        }
    }
}
