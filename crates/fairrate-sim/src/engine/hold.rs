//! The hold model of an event list: with N events pending, pop the earliest one and push it again with a later time.
//! `fairrate bench` times it, and `cargo xtask instructions` counts its instructions.

use super::{Event, EventKind, EventList};
use crate::rng::{Purpose, Stream};

/// Numbers of pending events: a few hosts at a switch, a fabric, a large fabric.
pub const SIZES: [u32; 3] = [128, 4_096, 65_536];

/// Width of the wheel's buckets, as in the engine: 2^11 ps.
const BUCKET_SHIFT: u32 = 11;

/// Number of increments drawn ahead of the measurement; a power of two.
const N_INCREMENTS: usize = 1 << 16;

/// Returns the times from an event to its next one, in picoseconds, as in a fabric of 25 and 100 Gb/s: the end of a
/// packet's serialisation; its arrival, a link delay later; and one retransmission timer in a thousand.
fn increments() -> Vec<u64> {
    let mut draw = Stream::new(1, 0, Purpose::Test);
    let mut one = || {
        let serialisation = [87_200, 348_800][draw.below(2) as usize];
        match draw.below(1_000) {
            0 => 1_000_000_000 + draw.below(3_000_000_000),
            1..500 => serialisation,
            _ => serialisation + [1_000_000, 1_840_000, 5_000_000][draw.below(3) as usize],
        }
    };
    (0..N_INCREMENTS).map(|_| one()).collect()
}

/// An event list in the hold model.
pub struct Hold {
    pending: EventList,
    increments: Vec<u64>,
    n_steps: usize,
}

impl Hold {
    /// Returns an event list of `n` pending events in their steady state: with the increments laid end to end, an event
    /// waits for the end of the increment that a random point falls into. So six in ten are timers.
    pub fn new(n: u32) -> Self {
        let mut pending = EventList::new(BUCKET_SHIFT);
        let increments = increments();
        let ends: Vec<u64> = increments
            .iter()
            .scan(0, |end, i| {
                *end += i;
                Some(*end)
            })
            .collect();
        let mut draw = Stream::new(1, 1, Purpose::Test);
        for entity in 0..n {
            let point = draw.below(ends[N_INCREMENTS - 1]);
            let end = ends[ends.partition_point(|end| *end <= point)];
            pending.push(Event::new(end - point, EventKind::Arrive, entity));
        }
        Self { pending, increments, n_steps: 0 }
    }

    /// Pops an event and pushes it again.
    pub fn step(&mut self) -> Event {
        let event = self.pending.pop().expect("every event popped is pushed again");
        let increment = self.increments[self.n_steps % N_INCREMENTS];
        self.n_steps += 1;
        self.pending.push(Event::new(event.time_ps + increment, EventKind::Arrive, event.entity()));
        event
    }
}
