//! CONGA: Alizadeh, Edsall, Dharmapurikar, Vaidyanathan, Chu, Fingerhut, Lam, Matus, Pan, Yadav, Varghese, "CONGA:
//! Distributed Congestion-Aware Load Balancing for Datacenters", SIGCOMM 2014. The sections in the comments are the
//! paper's.
//!
//! In a fabric of two tiers, a leaf learns how loaded each of its uplinks' paths to each other leaf is. A packet
//! carries the number of its uplink and the load of the most loaded link so far; the leaf at the other end remembers
//! it, and sends it back on whatever goes the other way. A flowlet takes the uplink whose path is loaded least.
//!
//! Chosen here: data and acknowledgments both carry and choose, as all packets do in the paper (the ns-3 code of
//! ConWeave's authors leaves acknowledgments out), but headers that go back to their senders do neither; a load that
//! was not heard of for `age` counts as none at once, where the paper lets it fade; flowlets are found exactly, where
//! the paper's hardware has an age bit and a table of hashes; numbers of uplinks have five bits, where the paper's have
//! four.

use std::collections::BTreeMap;

use super::{Crossing, Scheme};
use crate::config::Conga as Config;
use crate::ids::{FlowId, NodeId, PortIdx};
use crate::packet::PacketKind;

/// Share of a link's register that is lost each time it decays (section 3.2).
const ALPHA: f64 = 0.2;
/// Largest load: loads have three bits (section 3.6, Q).
const MAX_LOAD: u16 = 7;

/// The fields of a packet (section 3.1), in the 16 bits that its header has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// Number of the uplink that it has taken (LBTag).
    uplink: u16,
    /// Load of the most loaded link so far (CE).
    load: u16,
    /// Number of an uplink of the leaf that the packet goes to (FB_LBTag), and the load of its path (FB_Metric).
    feedback: (u16, u16),
}

impl Header {
    fn pack(self) -> u16 {
        self.uplink | self.load << 5 | self.feedback.0 << 8 | self.feedback.1 << 13
    }

    fn unpack(bits: u16) -> Self {
        Self { uplink: bits & 31, load: bits >> 5 & 7, feedback: (bits >> 8 & 31, bits >> 13) }
    }
}

/// The discounting rate estimator of a link (section 3.2): bytes sent, less a share of `ALPHA` after each interval.
#[derive(Clone, Copy, Default)]
struct Estimator {
    bytes: f64,
    intervals: u64,
}

impl Estimator {
    fn decay(&mut self, now_ps: u64, interval_ps: u64) {
        let now = now_ps / interval_ps;
        let passed = i32::try_from(now - self.intervals).unwrap_or(i32::MAX);
        (self.bytes, self.intervals) = (self.bytes * (1.0 - ALPHA).powi(passed), now);
    }
}

/// The paths of a leaf to another leaf: for each uplink, the load and when it was heard of (section 3.3).
#[derive(Default)]
struct ToLeaf([Option<(u16, u64)>; 32]);

/// The paths from another leaf to this one, as they are to be sent back (section 3.3).
#[derive(Default)]
struct FromLeaf {
    /// For each uplink of the other leaf, the load and whether it has changed since it was sent back.
    loads: Vec<(u16, bool)>,
    next: usize,
}

impl FromLeaf {
    fn note(&mut self, uplink: u16, load: u16) {
        let uplink = usize::from(uplink);
        if self.loads.len() <= uplink {
            self.loads.resize(uplink + 1, (0, false));
        }
        let (known, has_changed) = &mut self.loads[uplink];
        *has_changed |= *known != load;
        *known = load;
    }

    /// Returns the next uplink in turn with its load; those that have changed come first.
    fn feedback(&mut self) -> (u16, u16) {
        let n = self.loads.len();
        if n == 0 {
            return (0, 0);
        }
        let turn = |i: usize| (self.next + i) % n;
        let uplink = (0..n).map(turn).find(|&uplink| self.loads[uplink].1).unwrap_or(turn(0));
        self.next = (uplink + 1) % n;
        self.loads[uplink].1 = false;
        (uplink as u16, self.loads[uplink].0)
    }
}

pub(super) struct Conga {
    config: Config,
    links: BTreeMap<PortIdx, Estimator>,
    /// By leaf, flow and kind of packet: the uplink, and the time of the last packet. Both ends of a flow may send
    /// packets that are no data.
    flowlets: BTreeMap<(NodeId, FlowId, bool), (PortIdx, u64)>,
    /// By leaf, and by the leaf at the other end.
    to_leaf: BTreeMap<(NodeId, NodeId), ToLeaf>,
    from_leaf: BTreeMap<(NodeId, NodeId), FromLeaf>,
}

impl Conga {
    pub(super) fn new(config: Config) -> Self {
        let (links, flowlets) = (BTreeMap::new(), BTreeMap::new());
        Self { config, links, flowlets, to_leaf: BTreeMap::new(), from_leaf: BTreeMap::new() }
    }

    /// Returns the load of a link, 0 to 7: the share of its rate, in eighths, that its register comes to in the time
    /// constant.
    fn load(&mut self, at: &Crossing<'_>, port: PortIdx) -> u16 {
        let memory_ps = self.config.memory.as_ps() as f64;
        let interval_ps = (memory_ps * ALPHA).max(1.0) as u64;
        let link = self.links.entry(port).or_default();
        link.decay(at.now_ps, interval_ps);
        let full_bytes = at.sent(port).1.as_bps_f64() / 8.0 * memory_ps * 1e-12;
        let eighths = link.bytes / full_bytes * f64::from(MAX_LOAD + 1);
        (eighths as u16).min(MAX_LOAD)
    }

    /// Counts the packet on a link, and returns the link's load.
    fn count(&mut self, at: &Crossing<'_>, port: PortIdx) -> u16 {
        self.load(at, port);
        self.links.entry(port).or_default().bytes += f64::from(at.packet.wire);
        self.load(at, port)
    }

    /// Returns the uplink for a packet of a host of this leaf to a host of the leaf `other` (section 3.5), and writes
    /// the packet's header.
    fn leave(&mut self, at: &Crossing<'_>, other: NodeId) -> PortIdx {
        let key = (at.switch, at.packet.flow, at.is_data());
        let known = self.flowlets.get(&key).copied().filter(|(port, _)| at.candidates.contains(port));
        let port = match known {
            Some((port, last_ps)) if at.now_ps - last_ps <= self.config.gap.as_ps() => port,
            _ => self.best(at, other, known.map(|(port, _)| port)),
        };
        self.flowlets.insert(key, (port, at.now_ps));
        let uplink = at.all.iter().position(|&other| other == port).expect("a candidate is a port of all") as u16;
        debug_assert!(uplink < 32, "scenarios with more uplinks are refused");
        let feedback = self.from_leaf.entry((at.switch, other)).or_default().feedback();
        let load = self.count(at, port);
        at.header.set(Header { uplink, load, feedback }.pack());
        port
    }

    /// Returns the uplink with the least load on its way to the leaf `other`: `own` if it is among the best, and
    /// otherwise one of them at random.
    fn best(&mut self, at: &Crossing<'_>, other: NodeId, own: Option<PortIdx>) -> PortIdx {
        let remote = |conga: &Self, uplink: usize| {
            let known = conga.to_leaf.get(&(at.switch, other)).and_then(|leaf| leaf.0[uplink]);
            known.filter(|(_, heard_ps)| at.now_ps - heard_ps <= conga.config.age.as_ps()).map_or(0, |(load, _)| load)
        };
        let loads: BTreeMap<PortIdx, u16> = (at.all.iter().enumerate())
            .filter(|(_, port)| at.candidates.contains(port))
            .map(|(uplink, &port)| (port, self.load(at, port).max(remote(self, uplink))))
            .collect();
        let least = loads.values().min();
        match own {
            Some(own) if loads.get(&own) == least => own,
            _ => at.least(at.candidates, |port| loads[&port]),
        }
    }

    /// Takes in what a packet of a host of the leaf `other` carries (section 3.4).
    fn arrive(&mut self, at: &Crossing<'_>, other: NodeId) {
        let Header { uplink, load, feedback } = Header::unpack(at.header.get());
        self.from_leaf.entry((at.switch, other)).or_default().note(uplink, load);
        let to = self.to_leaf.entry((at.switch, other)).or_default();
        to.0[usize::from(feedback.0)] = Some((feedback.1, at.now_ps));
    }
}

impl Scheme for Conga {
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx {
        if at.packet.kind == PacketKind::Returned {
            // Its fields are those of the way on which it turned.
            return at.any();
        }
        let (sender, receiver) = at.leaves();
        if at.switch == receiver {
            if sender != receiver {
                self.arrive(at, sender);
            }
            return at.candidates[0];
        }
        if at.switch == sender {
            return self.leave(at, receiver);
        }
        let loads: BTreeMap<PortIdx, u16> = at.candidates.iter().map(|&port| (port, self.load(at, port))).collect();
        let port = at.least(at.candidates, |port| loads[&port]);
        let header = Header::unpack(at.header.get());
        at.header.set(Header { load: header.load.max(self.count(at, port)), ..header }.pack());
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_fits_into_sixteen_bits() {
        for header in [
            Header { uplink: 31, load: 0, feedback: (0, 7) },
            Header { uplink: 0, load: 7, feedback: (31, 0) },
            Header { uplink: 5, load: 3, feedback: (17, 6) },
        ] {
            assert_eq!(Header::unpack(header.pack()), header);
        }
    }

    #[test]
    fn a_register_loses_a_fifth_an_interval() {
        let mut link = Estimator { bytes: 1_000.0, intervals: 0 };
        link.decay(99, 100);
        assert!((link.bytes - 1_000.0).abs() < 1e-9);
        link.decay(300, 100);
        assert!((link.bytes - 512.0).abs() < 1e-9);
    }

    #[test]
    fn changed_loads_are_sent_back_first_and_then_all_in_turn() {
        let mut from = FromLeaf::default();
        assert_eq!(from.feedback(), (0, 0));
        from.note(2, 5);
        from.note(0, 1);
        assert_eq!([(); 5].map(|()| from.feedback()), [(0, 1), (2, 5), (0, 1), (1, 0), (2, 5)]);
        from.note(1, 3);
        assert_eq!([(); 2].map(|()| from.feedback()), [(1, 3), (2, 5)]);
    }
}
