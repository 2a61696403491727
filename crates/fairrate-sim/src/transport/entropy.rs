//! The choice of paths by hosts: each data packet carries an entropy value, which every switch hashes along with the
//! addresses and ports of its flow. Packets of one value take one path, and acknowledgments return the value.
//!
//! Sources: the Ultra Ethernet consortium's simulator (uet-htsim) for `oblivious`, `bitmap`, `reps`, `reps-legacy` and
//! `mixed`; Bonato et al., "REPS", arXiv 2407.21625; Linux (`tcp_plb.c`) and Qureshi et al., "PLB", SIGCOMM 2022; csg-htsim at
//! 841d9e7 for `bitmap-once` (`eqds.cpp`) and `permutation` (`ndp.cpp`).

use std::collections::VecDeque;

use fairrate_units::Time;

use crate::config::{Entropy, EntropyScheme};
use crate::ids::{FlowId, SenderIdx};
use crate::rng::{Purpose, Stream};

/// Largest number of times that a value is passed over after bad feedback.
const MOST_SKIPS: u8 = 15;
/// Number of times that a value is passed over for a mark, a loss and a timeout.
const SKIPS: [u8; 3] = [1, 4, 15];
/// REPS: number of values that are remembered.
const REMEMBERED: usize = 8;
/// REPS: time for which only remembered values are used after a timeout.
const FROZEN: Time = Time::from_ms(10);
/// REPS: number of random values that are tried after that time.
const EXPLORED: u32 = 16;
/// PLB: share of marks, in 256ths, at which a round is congested.
const CONGESTED: u64 = 128;
/// PLB: number of congested rounds in a row after which an idle flow takes another path, and any flow.
const ROUNDS: (u32, u32) = (3, 12);
/// PLB: least time after a timeout without a further change of paths; the most is twice as long.
const SUSPENDED: Time = Time::from_ms(60_000);

/// The end of a packet, by which its path is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It arrived without a mark.
    Good,
    /// It arrived with a mark.
    Marked,
    /// It was trimmed inside the network.
    Lost,
    /// It, or another packet of its flow, was not acknowledged in time. The value is unknown and counts as zero.
    TimedOut,
}

/// The outcome of a packet, as its sender learns it.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// The packet's entropy value.
    pub entropy: u16,
    /// Its outcome.
    pub outcome: Outcome,
    /// Time at which it was sent, in picoseconds.
    pub sent_ps: u64,
    /// The time now, in picoseconds.
    pub now_ps: u64,
    /// `true` if nothing is in flight.
    pub is_idle: bool,
}

/// The pickers of all senders of a part.
pub(crate) struct PathPickers {
    config: Entropy,
    seed: u64,
    of_sender: Vec<PathPicker>,
}

impl PathPickers {
    /// Returns the pickers of a run; `None` if hosts do not choose paths.
    pub(crate) fn new(config: Option<Entropy>, seed: u64) -> Option<Box<Self>> {
        config.map(|config| Box::new(Self { config, seed, of_sender: Vec::new() }))
    }

    /// Gives a new sender its picker. `n_paths` returns the number of paths of its flow.
    pub(crate) fn add(&mut self, slot: SenderIdx, flow: FlowId, n_paths: impl FnOnce() -> usize) {
        let n_paths = if self.config.scheme == EntropyScheme::Permutation { n_paths() } else { 1 };
        let picker = PathPicker::new(self.config, self.seed, flow, n_paths);
        match self.of_sender.get_mut(slot.0 as usize) {
            Some(place) => *place = picker,
            None => self.of_sender.push(picker),
        }
    }

    /// Returns the picker of a sender.
    pub(crate) fn of(&mut self, slot: SenderIdx) -> &mut PathPicker {
        &mut self.of_sender[slot.0 as usize]
    }
}

/// The choice of a sender among entropy values.
pub struct PathPicker {
    /// Random bits above those of the values.
    base: u16,
    stream: Stream,
    rule: Rule,
}

/// The state of each scheme.
enum Rule {
    Oblivious(Round),
    Bitmap(Bitmap),
    Reps(Reps),
    RepsLegacy(Recycled),
    Mixed(Bitmap, Recycled),
    Plb(Plb),
    BitmapOnce(BitmapOnce),
    Permutation(Permutation),
}

/// All values once a round, in an order that changes.
struct Round {
    n: u16,
    at: u16,
    mask: u16,
}

/// The same, with values passed over after bad feedback.
struct Bitmap {
    round: Round,
    skips: Vec<u8>,
}

/// EQDS's bitmap: all values once a round, but those after bad feedback are passed over once.
struct BitmapOnce {
    round: Round,
    is_bad: Vec<bool>,
}

/// NDP's: the numbers of all paths in a random order.
struct Permutation {
    paths: Vec<u16>,
    at: usize,
}

/// Values that came back without a mark, to be used once more.
struct Recycled {
    n: u16,
    at: u16,
    n_sent: u64,
    good: VecDeque<u16>,
}

/// REPS: a ring of values that came back without a mark.
struct Reps {
    n: u16,
    ring: [Option<Remembered>; REMEMBERED],
    head: usize,
    n_fresh: usize,
    /// Time until which no other values are used, in picoseconds; 0: they are.
    frozen_until_ps: u64,
    next_frozen: usize,
    n_to_explore: u32,
}

#[derive(Clone, Copy)]
struct Remembered {
    value: u16,
    is_fresh: bool,
}

/// PLB: one value until the path has been congested for several round trips.
struct Plb {
    value: u16,
    round_since_ps: u64,
    n_marked: u64,
    n_all: u64,
    congested_rounds: u32,
    suspended_until_ps: u64,
}

impl PathPicker {
    /// Returns the picker of a flow over `n_paths` paths that has sent nothing.
    pub fn new(config: Entropy, seed: u64, flow: FlowId, n_paths: usize) -> Self {
        let mut stream = Stream::new(seed, u64::from(flow.0), Purpose::Entropy);
        let n = config.values;
        let base = stream.below(1 << 16) as u16 & !(n - 1);
        let mut round = || Round { n, at: 0, mask: stream.below(u64::from(n)) as u16 };
        let mut bitmap = || Bitmap { round: round(), skips: vec![0; usize::from(n)] };
        let recycled = || Recycled { n, at: 0, n_sent: 0, good: VecDeque::new() };
        let rule = match config.scheme {
            EntropyScheme::Oblivious => Rule::Oblivious(round()),
            EntropyScheme::Bitmap => Rule::Bitmap(bitmap()),
            EntropyScheme::Reps => Rule::Reps(Reps::new(n)),
            EntropyScheme::RepsLegacy => Rule::RepsLegacy(recycled()),
            EntropyScheme::Mixed => Rule::Mixed(bitmap(), recycled()),
            EntropyScheme::Plb => Rule::Plb(Plb::new()),
            EntropyScheme::BitmapOnce => {
                Rule::BitmapOnce(BitmapOnce { round: round(), is_bad: vec![false; usize::from(n)] })
            }
            EntropyScheme::Permutation => Rule::Permutation(Permutation::new(n_paths)),
        };
        Self { base, stream, rule }
    }

    /// Returns the value of the next packet, sent at `now_ps` with a window of `window` packets.
    pub fn next(&mut self, window: u64, now_ps: u64) -> u16 {
        let stream = &mut self.stream;
        let value = match &mut self.rule {
            Rule::Oblivious(round) => round.take(stream),
            Rule::Bitmap(bitmap) => bitmap.next(stream),
            Rule::Reps(reps) => reps.next(stream, now_ps),
            Rule::RepsLegacy(recycled) => recycled.next(stream, window),
            Rule::Mixed(bitmap, recycled) => recycled.good.pop_front().unwrap_or_else(|| bitmap.next(stream)),
            Rule::Plb(plb) => return plb.value,
            Rule::BitmapOnce(bitmap) => bitmap.next(stream),
            Rule::Permutation(permutation) => return permutation.next(stream),
        };
        self.base | value
    }

    /// Takes the outcome of a packet.
    pub fn learn(&mut self, echo: &Echo) {
        let value = echo.entropy & !self.base_mask();
        match &mut self.rule {
            Rule::Oblivious(_) | Rule::Permutation(_) => {}
            Rule::BitmapOnce(bitmap) => bitmap.is_bad[usize::from(value)] |= echo.outcome != Outcome::Good,
            Rule::Bitmap(bitmap) => bitmap.learn(value, echo.outcome),
            Rule::Reps(reps) => reps.learn(value, echo),
            Rule::RepsLegacy(recycled) => recycled.learn(value, echo.outcome),
            Rule::Mixed(bitmap, recycled) => {
                bitmap.learn(value, echo.outcome);
                recycled.learn(value, echo.outcome);
            }
            Rule::Plb(plb) => plb.learn(echo, &mut self.stream),
        }
    }

    /// Returns the bits that are the same for all values.
    fn base_mask(&self) -> u16 {
        match &self.rule {
            Rule::Oblivious(Round { n, .. })
            | Rule::Bitmap(Bitmap { round: Round { n, .. }, .. })
            | Rule::BitmapOnce(BitmapOnce { round: Round { n, .. }, .. }) => !(n - 1),
            Rule::Reps(Reps { n, .. }) | Rule::RepsLegacy(Recycled { n, .. }) | Rule::Mixed(_, Recycled { n, .. }) => {
                !(n - 1)
            }
            Rule::Plb(_) | Rule::Permutation(_) => 0,
        }
    }
}

impl Round {
    fn value(&self) -> u16 {
        self.at ^ self.mask
    }

    fn advance(&mut self, stream: &mut Stream) {
        self.at += 1;
        if self.at == self.n {
            (self.at, self.mask) = (0, stream.below(u64::from(self.n)) as u16);
        }
    }

    fn take(&mut self, stream: &mut Stream) -> u16 {
        let value = self.value();
        self.advance(stream);
        value
    }
}

impl Bitmap {
    /// Returns the next value that is not to be passed over, or, after a whole round without one, any. Only the first
    /// value that is passed over counts as such.
    fn next(&mut self, stream: &mut Stream) -> u16 {
        let first = usize::from(self.round.value());
        if 0 < self.skips[first] {
            self.skips[first] -= 1;
            for _ in 0..=self.round.n {
                self.round.advance(stream);
                if self.skips[usize::from(self.round.value())] == 0 {
                    break;
                }
            }
        }
        self.round.take(stream)
    }

    fn learn(&mut self, value: u16, outcome: Outcome) {
        let more = match outcome {
            Outcome::Good => return,
            Outcome::Marked => SKIPS[0],
            Outcome::Lost => SKIPS[1],
            Outcome::TimedOut => SKIPS[2],
        };
        let skips = &mut self.skips[usize::from(value)];
        *skips = (*skips + more).min(MOST_SKIPS);
    }
}

impl BitmapOnce {
    /// Returns the next value that is not bad. Values that are passed over are good again.
    fn next(&mut self, stream: &mut Stream) -> u16 {
        while std::mem::take(&mut self.is_bad[usize::from(self.round.value())]) {
            self.round.advance(stream);
        }
        self.round.take(stream)
    }
}

impl Permutation {
    fn new(n_paths: usize) -> Self {
        let n = u16::try_from(n_paths).unwrap_or(u16::MAX).max(1);
        Self { paths: (0..n).collect(), at: usize::from(n) }
    }

    fn next(&mut self, stream: &mut Stream) -> u16 {
        if self.at == self.paths.len() {
            self.at = 0;
            for left in (1..self.paths.len()).rev() {
                self.paths.swap(left, stream.below(left as u64 + 1) as usize);
            }
        }
        self.at += 1;
        self.paths[self.at - 1]
    }
}

impl Recycled {
    fn next(&mut self, stream: &mut Stream, window: u64) -> u16 {
        self.n_sent += 1;
        if self.n_sent <= window.min(u64::from(self.n)) {
            self.at = (self.at + 1) % self.n;
            return self.at;
        }
        self.good.pop_front().unwrap_or_else(|| stream.below(u64::from(self.n)) as u16)
    }

    fn learn(&mut self, value: u16, outcome: Outcome) {
        if outcome == Outcome::Good {
            self.good.push_back(value);
        }
    }
}

impl Reps {
    fn new(n: u16) -> Self {
        let ring = [None; REMEMBERED];
        Self { n, ring, head: 0, n_fresh: 0, frozen_until_ps: 0, next_frozen: 0, n_to_explore: 0 }
    }

    fn next(&mut self, stream: &mut Stream, now_ps: u64) -> u16 {
        let mut any = || stream.below(u64::from(self.n)) as u16;
        if 0 < self.n_to_explore {
            self.n_to_explore -= 1;
            return any();
        }
        if now_ps < self.frozen_until_ps {
            let n_used = self.ring.iter().flatten().count();
            if n_used == 0 {
                return any();
            }
            let at = self.next_frozen % n_used;
            self.next_frozen = at + 1;
            return self.ring.iter().flatten().nth(at).map_or(0, |entry| entry.value);
        }
        if self.n_fresh == 0 {
            return any();
        }
        let oldest = (self.head + REMEMBERED - self.n_fresh) % REMEMBERED;
        self.n_fresh -= 1;
        let entry = self.ring[oldest].as_mut().expect("a fresh entry is there");
        entry.is_fresh = false;
        entry.value
    }

    fn learn(&mut self, value: u16, echo: &Echo) {
        if echo.outcome == Outcome::TimedOut {
            if self.n_to_explore == 0 {
                self.frozen_until_ps = echo.now_ps.saturating_add(FROZEN.as_ps());
            }
            return;
        }
        if 0 < self.frozen_until_ps && self.frozen_until_ps <= echo.now_ps {
            *self = Self { n_to_explore: EXPLORED, ..Self::new(self.n) };
        }
        if echo.outcome == Outcome::Good {
            let was_fresh = self.ring[self.head].is_some_and(|entry| entry.is_fresh);
            self.n_fresh += usize::from(!was_fresh);
            self.ring[self.head] = Some(Remembered { value, is_fresh: true });
            self.head = (self.head + 1) % REMEMBERED;
        }
    }
}

impl Plb {
    fn new() -> Self {
        Self { value: 0, round_since_ps: 0, n_marked: 0, n_all: 0, congested_rounds: 0, suspended_until_ps: 0 }
    }

    fn learn(&mut self, echo: &Echo, stream: &mut Stream) {
        if echo.outcome == Outcome::TimedOut {
            self.repath();
            let more_ps = stream.below(SUSPENDED.as_ps());
            self.suspended_until_ps = echo.now_ps.saturating_add(SUSPENDED.as_ps() + more_ps);
            return;
        }
        self.n_all += 1;
        self.n_marked += u64::from(echo.outcome != Outcome::Good);
        if echo.sent_ps < self.round_since_ps {
            return;
        }
        // A packet that was sent in this round has come back.
        let is_congested = CONGESTED * self.n_all <= 256 * self.n_marked;
        self.congested_rounds = if is_congested { self.congested_rounds + 1 } else { 0 };
        (self.round_since_ps, self.n_marked, self.n_all) = (echo.now_ps, 0, 0);
        let enough = if echo.is_idle { ROUNDS.0 } else { ROUNDS.1 };
        if enough <= self.congested_rounds && self.suspended_until_ps <= echo.now_ps {
            self.repath();
        }
    }

    fn repath(&mut self) {
        self.value = self.value.wrapping_add(1);
        self.congested_rounds = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn picker(scheme: EntropyScheme) -> PathPicker {
        PathPicker::new(Entropy { scheme, values: 16 }, 1, FlowId(3), 6)
    }

    fn echo(entropy: u16, outcome: Outcome, now_us: u64) -> Echo {
        Echo { entropy, outcome, sent_ps: now_us * 1_000_000, now_ps: now_us * 1_000_000 + 1, is_idle: false }
    }

    fn take(picker: &mut PathPicker, n: usize) -> Vec<u16> {
        (0..n).map(|_| picker.next(1_000, 0)).collect()
    }

    #[test]
    fn a_round_has_every_value_once_and_rounds_differ() {
        use EntropyScheme::{Bitmap, BitmapOnce, Mixed, Oblivious};
        for scheme in [Oblivious, Bitmap, BitmapOnce, Mixed] {
            let mut picker = picker(scheme);
            let rounds: Vec<Vec<u16>> = (0..4).map(|_| take(&mut picker, 16)).collect();
            assert!(rounds.iter().all(|round| round.iter().collect::<BTreeSet<_>>().len() == 16), "{scheme:?}");
            assert!(rounds.iter().any(|round| *round != rounds[0]), "{scheme:?}");
        }
    }

    /// A value that was marked once is passed over once, one whose packet was trimmed four times, and after a timeout it is value 0, 15
    /// times.
    #[test]
    fn a_bitmap_passes_over_bad_values_for_some_rounds() {
        for (outcome, skips) in [(Outcome::Marked, 1), (Outcome::Lost, 4), (Outcome::TimedOut, 15)] {
            let mut picker = picker(EntropyScheme::Bitmap);
            let bad = if outcome == Outcome::TimedOut { picker.base } else { picker.base | 5 };
            picker.learn(&echo(bad & if outcome == Outcome::TimedOut { 0 } else { u16::MAX }, outcome, 0));
            let rounds = (0..).take_while(|_| !take(&mut picker, 15).contains(&bad)).take(40).count();
            // Rounds are of 15 packets while one value is passed over; the last one may end early.
            assert!(rounds.abs_diff(skips) <= 1, "{outcome:?}: {rounds}");
        }
    }

    /// One that is bad twice is passed over once, and if all are bad, each is passed over once.
    #[test]
    fn a_bitmap_of_eqds_passes_over_bad_values_once() {
        let mut picker = picker(EntropyScheme::BitmapOnce);
        let bad = picker.base | 5;
        for outcome in [Outcome::Lost, Outcome::Marked] {
            picker.learn(&echo(bad, outcome, 0));
        }
        assert!(!take(&mut picker, 15).contains(&bad));
        assert!(take(&mut picker, 16).contains(&bad));
        for value in 0..16 {
            picker.learn(&echo(picker.base | value, Outcome::Lost, 0));
        }
        let mut next = take(&mut picker, 16);
        next.sort_unstable();
        next.dedup();
        assert!(8 < next.len());
    }

    /// Six paths: each once a round, and never two orders by a mask alone.
    #[test]
    fn a_permutation_has_each_path_once_a_round() {
        let mut picker = picker(EntropyScheme::Permutation);
        let rounds: Vec<Vec<u16>> = (0..8).map(|_| take(&mut picker, 6)).collect();
        for round in &rounds {
            assert_eq!(round.iter().copied().collect::<BTreeSet<_>>(), (0..6).collect());
        }
        assert!(4 < rounds.iter().collect::<BTreeSet<_>>().len());
    }

    #[test]
    fn reps_sends_good_values_again_once() {
        let mut picker = picker(EntropyScheme::Reps);
        let base = picker.base;
        for value in [3, 9] {
            picker.learn(&echo(base | value, Outcome::Good, 1));
        }
        picker.learn(&echo(base | 7, Outcome::Marked, 1));
        assert_eq!(take(&mut picker, 2), [base | 3, base | 9]);
        // Ten come back before one is sent: the ring has the last eight.
        for value in 0..10 {
            picker.learn(&echo(base | value, Outcome::Good, 2));
        }
        assert_eq!(take(&mut picker, 8), (2..10).map(|value| base | value).collect::<Vec<_>>());
    }

    #[test]
    fn frozen_reps_sends_what_it_remembers_and_then_explores() {
        let mut picker = picker(EntropyScheme::Reps);
        let base = picker.base;
        for value in [3, 9] {
            picker.learn(&echo(base | value, Outcome::Good, 1));
        }
        picker.learn(&echo(0, Outcome::TimedOut, 2));
        assert_eq!(take(&mut picker, 5), [3, 9, 3, 9, 3].map(|value| base | value));
        // After 10 ms the next feedback ends it; then come 16 random values, and only then what is good.
        picker.learn(&echo(base | 5, Outcome::Good, 10_003));
        let explored = (0..16).map(|_| picker.next(1_000, 10_004_000_000)).collect::<BTreeSet<_>>();
        assert!(4 < explored.len(), "{explored:?}");
        assert_eq!(picker.next(1_000, 10_004_000_000), base | 5);
    }

    #[test]
    fn plb_leaves_a_path_after_twelve_congested_rounds_or_a_timeout() {
        let mut picker = picker(EntropyScheme::Plb);
        let first = picker.next(1, 0);
        for round in 1..12 {
            picker.learn(&echo(first, Outcome::Marked, 10 * round));
            assert_eq!(picker.next(1, 0), first, "round {round}");
        }
        picker.learn(&echo(first, Outcome::Marked, 120));
        let second = picker.next(1, 0);
        assert_ne!(second, first);
        picker.learn(&echo(second, Outcome::TimedOut, 130));
        let third = picker.next(1, 0);
        assert_ne!(third, second);
        // Congestion moves it no more for at least a minute.
        for round in 14..60 {
            picker.learn(&echo(third, Outcome::Marked, 10 * round));
        }
        assert_eq!(picker.next(1, 0), third);
    }
}
