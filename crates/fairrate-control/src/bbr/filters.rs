//! BBR's filters over the last round trips: the maximum of the bandwidth, and the excess of acknowledgments over it.

use fairrate_units::Time;

/// Number of rounds in the maximum of the bandwidth.
const BANDWIDTH_ROUNDS: usize = 10;
/// Number of rounds in each of two maxima of the aggregation (Linux: `bbr_extra_acked_win_rtts`).
const AGGREGATION_ROUNDS: u32 = 5;

/// The largest sample of [`BANDWIDTH_ROUNDS`] rounds, up to the round of the last sample: without a new sample none is
/// discarded.
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

/// The excess of acknowledged bytes over the bandwidth: acknowledgments may arrive aggregated, and the window must not
/// stop the flow in between (Linux: extra_acked).
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    /// Start of the epoch over which deliveries are compared with the bandwidth.
    began: Time,
    acked: f64,
    /// The largest excess of the present group of rounds and of the group before it, in bytes.
    excess: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    pub(super) fn new(now: Time) -> Self {
        Self { began: now, acked: 0.0, excess: [0.0; 2], rounds: 0 }
    }

    /// Records `acked` delivered bytes, at a bandwidth of `bandwidth` bytes per second. An excess is at most `most`; at
    /// `reset` bytes the epoch restarts.
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
