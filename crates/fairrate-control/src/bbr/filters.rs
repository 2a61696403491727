//! What BBR remembers of the last round trips: the bandwidth, and how far acknowledgments run ahead of it.

use fairrate_units::Time;

/// Rounds that the maximum of the bandwidth looks back on.
const BANDWIDTH_ROUNDS: usize = 10;
/// Rounds that each of two maxima of the aggregation looks back on (Linux: `bbr_extra_acked_win_rtts`).
const AGGREGATION_ROUNDS: u32 = 5;

/// The largest of the samples of [`BANDWIDTH_ROUNDS`] rounds, up to that of the last sample: while none is taken, none
/// is forgotten.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    rounds: [f64; BANDWIDTH_ROUNDS],
    last: u64,
}

impl MaxFilter {
    pub(super) fn take(&mut self, round: u64, x: f64) {
        for past in (self.last..round).take(BANDWIDTH_ROUNDS) {
            self.rounds[(past + 1) as usize % BANDWIDTH_ROUNDS] = 0.0;
        }
        self.last = round;
        let slot = &mut self.rounds[round as usize % BANDWIDTH_ROUNDS];
        *slot = slot.max(x);
    }
    pub(super) fn max(&self) -> f64 {
        self.rounds.iter().fold(0.0, |a, &b| b.max(a))
    }
}

/// How far acknowledgments run ahead of the bandwidth: they may come in bunches, and the window must not stop the flow in
/// between (Linux: extra_acked).
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    /// The epoch over which deliveries are held against the bandwidth.
    began: Time,
    acked: f64,
    /// The largest excess of the present rounds and of those before them, in bytes.
    excess: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    pub(super) fn new(now: Time) -> Self {
        Self { began: now, acked: 0.0, excess: [0.0; 2], rounds: 0 }
    }

    /// So many bytes have arrived, at a bandwidth of so many a second; no excess is above `most`.
    pub(super) fn take(&mut self, now: Time, acked: f64, bandwidth: f64, most: f64, reset: f64) {
        let expected = bandwidth * now.saturating_sub(self.began).as_secs_f64();
        let mut ahead = self.acked - expected;
        if ahead <= 0.0 || reset <= self.acked + acked {
            (self.began, self.acked, ahead) = (now, 0.0, 0.0);
        }
        self.acked += acked;
        self.excess[0] = self.excess[0].max((ahead + acked).min(most));
    }

    pub(super) fn begin_round(&mut self) {
        self.rounds += 1;
        if AGGREGATION_ROUNDS <= self.rounds {
            self.rounds = 0;
            self.excess = [0.0, self.excess[0]];
        }
    }

    pub(super) fn max(&self) -> f64 {
        self.excess[0].max(self.excess[1])
    }
}
