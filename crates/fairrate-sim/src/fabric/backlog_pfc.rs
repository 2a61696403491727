//! PFC by the backlog of egress queues, as in RoCC's public simulation: a packet that joins a queue above one level
//! pauses its ingress port, and a queue that shrinks to another level resumes all ingress ports that it has paused.
//!
//! No headroom is reserved for packets in flight, so a buffer that is too small drops.

use std::collections::HashMap;

use crate::config::PauseLevels;
use crate::ids::{PortIdx, SwitchIdx};
use crate::table::Table;

/// The ingress ports that the egress queues of all switches have paused.
pub struct BacklogPfc {
    levels: Table<PortIdx, PauseLevels>,
    /// The least level at which a queue pauses.
    least_pause: u64,
    /// By egress port and class: the ingress ports that the queue has paused, in the order of the pauses.
    paused_by: HashMap<(PortIdx, u8), Vec<PortIdx>>,
    /// By ingress port and class: number of egress queues that have paused it.
    n_pausing: HashMap<(PortIdx, u8), u32>,
    /// Number of egress queues of each switch that have paused some ingress port.
    n_queues: Table<SwitchIdx, u32>,
}

impl BacklogPfc {
    /// Creates the state for egress ports with these `levels`.
    pub fn new(levels: Vec<PauseLevels>, n_switches: usize) -> Self {
        let least_pause = levels.iter().map(|levels| levels.pause.as_u64()).min().unwrap_or(u64::MAX);
        let (levels, n_queues) = (levels.into(), vec![0; n_switches].into());
        Self { levels, least_pause, paused_by: HashMap::new(), n_pausing: HashMap::new(), n_queues }
    }

    /// Records that a packet from `ingress` has joined the queue of `class` at `egress`, which now has `bytes` bytes;
    /// returns `true` if a pause must be sent to the other end of `ingress`.
    pub fn joins(&mut self, switch: SwitchIdx, egress: PortIdx, class: u8, ingress: PortIdx, bytes: u32) -> bool {
        if u64::from(bytes) <= self.levels[egress].pause.as_u64() {
            return false;
        }
        let paused = self.paused_by.entry((egress, class)).or_default();
        if paused.contains(&ingress) {
            return false;
        }
        self.n_queues[switch] += u32::from(paused.is_empty());
        paused.push(ingress);
        let n = self.n_pausing.entry((ingress, class)).or_default();
        *n += 1;
        *n == 1
    }

    /// Records that the queue of `class` at `egress` has shrunk to `bytes` bytes; returns the ingress ports whose other
    /// ends may resume.
    pub fn shrinks(&mut self, switch: SwitchIdx, egress: PortIdx, class: u8, bytes: u32) -> Vec<PortIdx> {
        if self.n_queues[switch] == 0 || self.levels[egress].resume.as_u64() < u64::from(bytes) {
            return Vec::new();
        }
        let Some(mut paused) = self.paused_by.remove(&(egress, class)) else { return Vec::new() };
        self.n_queues[switch] -= 1;
        paused.retain(|&ingress| {
            let n = self.n_pausing.get_mut(&(ingress, class)).expect("it was counted as it was paused");
            *n -= 1;
            *n == 0
        });
        paused
    }

    /// Returns `true` if `switch` has paused no ingress port and pauses none while it holds up to `most` bytes.
    pub fn is_quiet(&self, switch: SwitchIdx, most: u64) -> bool {
        self.n_queues[switch] == 0 && most <= self.least_pause
    }

    /// Returns the pauses that hold: an egress port and a class of it, and the ingress ports that this queue has
    /// paused.
    pub fn pauses(&self) -> impl Iterator<Item = (PortIdx, u8, &[PortIdx])> {
        self.paused_by.iter().map(|(&(egress, class), paused)| (egress, class, paused.as_slice()))
    }

    /// Returns the classes for which the other end of `ingress` has been paused.
    pub fn paused_classes(&self, ingress: PortIdx) -> impl Iterator<Item = u8> + '_ {
        (0u8..8).filter(move |&class| self.n_pausing.get(&(ingress, class)).is_some_and(|&n| 0 < n))
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Bytes;

    use super::*;

    const SWITCH: SwitchIdx = SwitchIdx(0);
    const IN: PortIdx = PortIdx(0);
    const OTHER: PortIdx = PortIdx(1);
    const OUT: PortIdx = PortIdx(2);
    const BESIDE: PortIdx = PortIdx(3);

    #[test]
    fn an_ingress_is_paused_once_and_resumes_when_all_queues_are_low() {
        let levels = PauseLevels { pause: Bytes::new(500), resume: Bytes::new(10) };
        let mut pfc = BacklogPfc::new(vec![levels; 4], 1);
        assert!(!pfc.joins(SWITCH, OUT, 3, IN, 500) && pfc.is_quiet(SWITCH, 500) && !pfc.is_quiet(SWITCH, 501));
        assert!(pfc.joins(SWITCH, OUT, 3, IN, 501) && !pfc.joins(SWITCH, OUT, 3, IN, 900));
        assert!(!pfc.joins(SWITCH, BESIDE, 3, IN, 600), "it is paused already");
        assert!(pfc.joins(SWITCH, OUT, 3, OTHER, 600) && !pfc.is_quiet(SWITCH, 0));
        assert_eq!(pfc.paused_classes(IN).collect::<Vec<_>>(), [3]);
        assert!(pfc.shrinks(SWITCH, OUT, 3, 11).is_empty() && pfc.shrinks(SWITCH, OUT, 1, 0).is_empty());
        assert_eq!(pfc.shrinks(SWITCH, OUT, 3, 10), [OTHER], "the other queue still holds the first");
        assert_eq!(pfc.shrinks(SWITCH, BESIDE, 3, 0), [IN]);
        assert!(pfc.is_quiet(SWITCH, 0) && pfc.paused_classes(IN).next().is_none());
    }

    #[test]
    fn each_port_has_its_levels() {
        let [low, high] =
            [500, 800].map(|pause| PauseLevels { pause: Bytes::new(pause), resume: Bytes::new(pause - 10) });
        let mut pfc = BacklogPfc::new(vec![low, low, high, low], 1);
        assert!(!pfc.joins(SWITCH, OUT, 3, IN, 800) && pfc.joins(SWITCH, BESIDE, 3, OTHER, 501));
        assert!(pfc.joins(SWITCH, OUT, 3, IN, 801) && pfc.shrinks(SWITCH, OUT, 3, 791).is_empty());
        assert_eq!((pfc.shrinks(SWITCH, OUT, 3, 790), pfc.shrinks(SWITCH, BESIDE, 3, 490)), (vec![IN], vec![OTHER]));
    }
}
