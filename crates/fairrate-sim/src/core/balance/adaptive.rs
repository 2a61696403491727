//! Adaptive routing by packets: each data packet takes the port with the least queue, as in the Ultra Ethernet simulator's
//! `ADAPTIVE_ROUTING`; ties are broken at random.
//!
//! As there, queues are rounded to four levels by default, so that short queues tie. Compared exactly, the senders of a rack
//! at full load fall into step: each finds the same port free each time, and keeps one path as under ECMP.
//!
//! Differences from that simulator: queues are read at once, there every 100 ns. As there, small packets are sprayed (there
//! below 100 bytes, here all but data).

use super::{Crossing, Scheme};
use crate::config::Signal;
use crate::ids::PortIdx;

pub(super) struct Adaptive(pub(super) Signal);

impl Scheme for Adaptive {
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx {
        if !at.is_data() {
            return at.any();
        }
        match self.0 {
            Signal::Exact => at.least(at.candidates, |port| at.wait_ps(port)),
            Signal::Levels { full } => at.least(at.candidates, |port| level(at.queued_bytes(port), full.as_u64())),
        }
    }
}

/// Returns the level of a queue, 0 to 3: the number of thresholds of 5, 10 and 20 % that it has reached.
fn level(queued_bytes: u64, full_bytes: u64) -> u64 {
    let percent = u128::from(queued_bytes) * 100 / u128::from(full_bytes.max(1));
    [5, 10, 20].into_iter().filter(|&threshold| threshold <= percent).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_have_four_levels() {
        assert_eq!([0, 49, 50, 99, 100, 199, 200, 5_000].map(|bytes| level(bytes, 1_000)), [0, 0, 1, 1, 2, 2, 3, 3]);
    }
}
