//! The choice of paths by hosts: each data packet carries an entropy value, which every switch hashes along with the
//! addresses and ports of its flow. Packets of one value take one path, and acknowledgments return the value.
//!
//! Sources: the Ultra Ethernet consortium's simulator (uet-htsim) for `oblivious`, `bitmap`, `reps`, `reps-legacy` and
//! `mixed`; Bonato et al., "REPS", arXiv 2407.21625; Linux (`tcp_plb.c`) and Qureshi et al., "PLB", SIGCOMM 2022;
//! csg-htsim at 841d9e7 for `bitmap-once` (`eqds.cpp`) and `permutation` (`ndp.cpp`).

mod permutation;
mod plb;
mod reps;
mod rounds;

use self::permutation::Permutation;
use self::plb::Plb;
use self::reps::{Recycled, Reps};
use self::rounds::{Bitmap, BitmapOnce, Round};
use crate::config::{Entropy, EntropyScheme, SimConfig};
use crate::ids::{FlowId, SenderIdx};
use crate::rng::{Purpose, Stream};

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
    seed: u64,
    of_sender: Vec<PathPicker>,
}

impl PathPickers {
    /// Returns the pickers of a run; `None` if hosts do not choose paths.
    pub(crate) fn new(config: &SimConfig) -> Option<Box<Self>> {
        let is_wanted = config.is_any(|transport, _| transport.entropy.is_some());
        is_wanted.then(|| Box::new(Self { seed: config.seed, of_sender: Vec::new() }))
    }

    /// Gives a new sender, whose flow has `config`, its picker. `n_paths` returns the number of paths of its flow.
    pub(crate) fn add(&mut self, slot: SenderIdx, flow: FlowId, config: Entropy, n_paths: impl FnOnce() -> usize) {
        let n_paths = if config.scheme == EntropyScheme::Permutation { n_paths() } else { 1 };
        let picker = PathPicker::new(config, self.seed, flow, n_paths);
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
    /// The bits of the values.
    mask: u16,
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

impl PathPicker {
    /// Returns the picker of a flow over `n_paths` paths that has sent nothing.
    pub fn new(config: Entropy, seed: u64, flow: FlowId, n_paths: usize) -> Self {
        let mut stream = Stream::new(seed, u64::from(flow.0), Purpose::Entropy);
        let n = config.values;
        let bits = stream.below(1 << 16) as u16;
        let mut round = || Round::new(n, &mut stream);
        let rule = match config.scheme {
            EntropyScheme::Oblivious => Rule::Oblivious(round()),
            EntropyScheme::Bitmap => Rule::Bitmap(Bitmap::new(round())),
            EntropyScheme::Reps => Rule::Reps(Reps::new(n)),
            EntropyScheme::RepsLegacy => Rule::RepsLegacy(Recycled::new(n)),
            EntropyScheme::Mixed => Rule::Mixed(Bitmap::new(round()), Recycled::new(n)),
            EntropyScheme::Plb => Rule::Plb(Plb::new()),
            EntropyScheme::BitmapOnce => Rule::BitmapOnce(BitmapOnce::new(round())),
            EntropyScheme::Permutation => Rule::Permutation(Permutation::new(n_paths)),
        };
        let mask = if matches!(rule, Rule::Plb(_) | Rule::Permutation(_)) { u16::MAX } else { n - 1 };
        Self { base: bits & !mask, mask, stream, rule }
    }

    /// Returns the value of the next packet, sent at `now_ps` with a window of `window` packets.
    pub fn next(&mut self, window: u64, now_ps: u64) -> u16 {
        let stream = &mut self.stream;
        let value = match &mut self.rule {
            Rule::Oblivious(round) => round.take(stream),
            Rule::Bitmap(bitmap) => bitmap.next(stream),
            Rule::Reps(reps) => reps.next(stream, now_ps),
            Rule::RepsLegacy(recycled) => recycled.next(stream, window),
            Rule::Mixed(bitmap, recycled) => recycled.take_good().unwrap_or_else(|| bitmap.next(stream)),
            Rule::Plb(plb) => plb.value(),
            Rule::BitmapOnce(bitmap) => bitmap.next(stream),
            Rule::Permutation(permutation) => permutation.next(stream),
        };
        self.base | value
    }

    /// Takes the outcome of a packet.
    pub fn learn(&mut self, echo: &Echo) {
        let value = echo.entropy & self.mask;
        match &mut self.rule {
            Rule::Oblivious(_) | Rule::Permutation(_) => {}
            Rule::BitmapOnce(bitmap) => bitmap.learn(value, echo.outcome),
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

    /// A value that was marked once is passed over once, one whose packet was trimmed four times, and after a timeout
    /// it is value 0, 15 times.
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
