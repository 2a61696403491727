//! Adaptive routing: each data packet takes the port with the least load, as in the Ultra Ethernet simulator's
//! `ADAPTIVE_ROUTING`; ties are broken at random. The load is the queue, the use of the link, or whether the other end
//! has paused it, or several of them in order.
//!
//! As there, queues are rounded to four levels by default, so that short queues tie. Compared exactly, the senders of a
//! rack at full load fall into step: each finds the same port free each time, and keeps one path as under ECMP.
//!
//! As there, `sticky` lets a flow keep its port. Only after a silence that is longer, and then in half of the cases, it
//! looks for the best port, and moves if that one is better than its own.
//!
//! Differences from that simulator: by default ports are read at once, there every 100 ns (`refresh`); the use of a
//! link is measured between decisions about its port, there over exactly 30 us. As there, small packets are sprayed
//! (there below 100 bytes, here all but data).

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use super::{Crossing, Scheme};
use crate::config::{Adaptive as Config, Signal};
use crate::ids::{FlowId, NodeId, PortIdx};

/// Time over which the use of a link is measured, in picoseconds.
const WINDOW_PS: u64 = 30_000_000;

pub(super) struct Adaptive {
    config: Config,
    /// The port of each flow at each switch, and the time of its last packet there, if flows keep their ports.
    flows: BTreeMap<(NodeId, FlowId), (PortIdx, u64)>,
    levels: RefCell<Levels>,
}

/// The last readings of ports.
#[derive(Default)]
struct Levels {
    /// For a port and a signal, the time and the value of the last reading.
    read: BTreeMap<(PortIdx, usize), (u64, u64)>,
    /// Bytes that each port had sent at some times within the window, and once before it.
    sent: BTreeMap<PortIdx, VecDeque<(u64, u64)>>,
}

impl Adaptive {
    pub(super) fn new(config: Config) -> Self {
        Self { config, flows: BTreeMap::new(), levels: RefCell::default() }
    }

    /// Returns the loads of a port, the most important first.
    fn loads(&self, at: &Crossing<'_>, port: PortIdx) -> [u64; 3] {
        let mut loads = [0; 3];
        for (i, (load, signal)) in loads.iter_mut().zip(self.config.signals).enumerate() {
            *load = signal.map_or(0, |signal| self.load(at, port, (i, signal)));
        }
        loads
    }

    /// Returns what `signal`, the i-th, says of a port: the last reading if that is not older than `refresh`.
    fn load(&self, at: &Crossing<'_>, port: PortIdx, (i, signal): (usize, Signal)) -> u64 {
        let mut levels = self.levels.borrow_mut();
        let refresh_ps = self.config.refresh.as_ps();
        if 0 < refresh_ps
            && let Some(&(read_ps, load)) = levels.read.get(&(port, i))
            && at.now_ps - read_ps <= refresh_ps
        {
            return load;
        }
        let load = match signal {
            Signal::Exact => at.wait_ps(port),
            Signal::Levels { full } => level(at.queued_bytes(port), full.as_u64()),
            Signal::Utilization => levels.utilization(at, port),
            Signal::Pauses => u64::from(at.is_paused(port)),
        };
        if 0 < refresh_ps {
            levels.read.insert((port, i), (at.now_ps, load));
        }
        load
    }

    /// Returns the port that the flow of the packet keeps, or moves to after a silence of more than `sticky_ps`.
    fn keep(&mut self, at: &Crossing<'_>, best: PortIdx, sticky_ps: u64) -> PortIdx {
        let key = (at.switch, at.packet.flow);
        let known = self.flows.get(&key).filter(|(port, _)| at.candidates.contains(port));
        let port = match known {
            Some(&(own, last_ps)) => {
                let asks = sticky_ps < at.now_ps - last_ps && at.another_draw(1) >> 63 == 0;
                if asks && self.loads(at, best) < self.loads(at, own) { best } else { own }
            }
            None => best,
        };
        self.flows.insert(key, (port, at.now_ps));
        port
    }
}

impl Scheme for Adaptive {
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx {
        if !at.is_data() {
            return at.any();
        }
        let best = at.least(at.candidates, |port| self.loads(at, port));
        match self.config.sticky {
            Some(sticky) => self.keep(at, best, sticky.as_ps()),
            None => best,
        }
    }
}

impl Levels {
    /// Returns the level of the use of a port, 0 to 3.
    fn utilization(&mut self, at: &Crossing<'_>, port: PortIdx) -> u64 {
        let (now_ps, (sent_bytes, rate)) = (at.now_ps, at.sent(port));
        let sent = self.sent.entry(port).or_insert_with(|| VecDeque::from([(0, 0)]));
        if sent.back().is_some_and(|last| last.0 < now_ps) {
            sent.push_back((now_ps, sent_bytes));
        }
        let start_ps = now_ps.saturating_sub(WINDOW_PS);
        while sent.get(1).is_some_and(|second| second.0 <= start_ps) {
            sent.pop_front();
        }
        let (since_ps, before_bytes) = sent[0];
        let busy_ps = rate.tx_time(fairrate_units::Bytes::new(sent_bytes - before_bytes)).as_ps();
        use_level(busy_ps, WINDOW_PS.max(now_ps - since_ps))
    }
}

/// Returns the level of a queue, 0 to 3: the number of thresholds of 5, 10 and 20 % that it has reached.
fn level(queued_bytes: u64, full_bytes: u64) -> u64 {
    let percent = u128::from(queued_bytes) * 100 / u128::from(full_bytes.max(1));
    [5, 10, 20].into_iter().filter(|&threshold| threshold <= percent).count() as u64
}

/// Returns the level of the use of a link that was busy for `busy_ps` of `of_ps`: none, below 15 %, below 50 %, and
/// above.
fn use_level(busy_ps: u64, of_ps: u64) -> u64 {
    let percent = u128::from(busy_ps) * 100 / u128::from(of_ps.max(1));
    [1, 15, 50].into_iter().filter(|&threshold| threshold <= percent).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_have_four_levels() {
        assert_eq!([0, 49, 50, 99, 100, 199, 200, 5_000].map(|bytes| level(bytes, 1_000)), [0, 0, 1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn links_have_four_levels_of_use() {
        assert_eq!([0, 9, 10, 149, 150, 499, 500, 1_000].map(|busy| use_level(busy, 1_000)), [0, 0, 1, 1, 2, 2, 3, 3]);
    }
}
