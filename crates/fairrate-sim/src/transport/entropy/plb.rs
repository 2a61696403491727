//! PLB: another path after rounds of congestion or a timeout (Qureshi et al., SIGCOMM 2022), with the constants of
//! Linux (`tcp_plb.c`).

use fairrate_units::Time;

use super::{Echo, Outcome};
use crate::rng::Stream;

/// PLB: share of marks, in 256ths, at which a round is congested.
const CONGESTED: u64 = 128;
/// PLB: number of congested rounds in a row after which an idle flow takes another path, and any flow.
const ROUNDS: (u32, u32) = (3, 12);
/// PLB: least time after a timeout without a further change of paths; the most is twice as long.
const SUSPENDED: Time = Time::from_ms(60_000);

/// PLB: one value until the path has been congested for several round trips.
pub(super) struct Plb {
    value: u16,
    round_since_ps: u64,
    n_marked: u64,
    n_all: u64,
    congested_rounds: u32,
    suspended_until_ps: u64,
}

impl Plb {
    /// Returns the value of the present path.
    pub(super) fn value(&self) -> u16 {
        self.value
    }

    pub(super) fn new() -> Self {
        Self { value: 0, round_since_ps: 0, n_marked: 0, n_all: 0, congested_rounds: 0, suspended_until_ps: 0 }
    }

    pub(super) fn learn(&mut self, echo: &Echo, stream: &mut Stream) {
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
