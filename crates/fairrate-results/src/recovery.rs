//! The time until goodput is back after the first failure of a link, and the level at which it settles.

use fairrate_sim::FailureWindows;
use fairrate_units::Time;
use serde::{Deserialize, Serialize};

/// Share of the goodput before a failure at which goodput is back.
const BACK: f64 = 0.95;
/// Number of windows in a row in which it has to be.
const IN_A_ROW: usize = 3;

/// The last part of the windows after a failure, in which goodput has settled: one of this number.
const LAST: usize = 4;

/// The time until goodput was back after the first failure of a link in a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecoverySummary {
    /// Time of the failure.
    pub down_ns: u64,
    /// Length of the windows in which goodput is measured.
    pub window_ns: u64,
    /// Mean goodput of all flows in the windows before the failure.
    pub before_bps: f64,
    /// The goodput at which it is back.
    pub back_bps: f64,
    /// Time from the failure to the first of three windows in a row in which goodput is back; `None`: there were none.
    pub time_ns: Option<u64>,
    /// Mean goodput of all flows in the last quarter of the windows after the failure; `None`: there were fewer than
    /// four.
    #[serde(default)]
    pub settled_bps: Option<f64>,
}

/// The goodput in the windows around a failure.
pub(super) struct RecoveryMeter {
    windows: FailureWindows,
    /// The last edge of a window, with the bytes delivered until then.
    last: Option<(Time, u64)>,
    /// Bytes of each window so far.
    before: Vec<u64>,
    /// Bytes at which goodput is back, once the windows before the failure are over.
    back: f64,
    /// Bytes of each window after the failure so far.
    after: Vec<u64>,
    /// Number of windows in a row, up to the last one, in which goodput is back; it stays once they are enough.
    in_a_row: usize,
    /// Number of windows after the failure up to those in a row.
    n_until_back: usize,
}

impl RecoveryMeter {
    /// Returns a meter of the windows `windows`.
    pub fn new(windows: FailureWindows) -> Self {
        Self { windows, last: None, before: Vec::new(), back: 0.0, after: Vec::new(), in_a_row: 0, n_until_back: 0 }
    }

    /// Returns `true` if the meter needs the bytes delivered at `t`: a window begins or ends there.
    pub fn wants(&self, t: Time) -> bool {
        let FailureWindows { down_at, window, n_before, n_after } = self.windows;
        let first = down_at.as_ps() - n_before * window.as_ps();
        let since = t.as_ps().checked_sub(first).filter(|since| since.is_multiple_of(window.as_ps()));
        since.is_some_and(|since| since / window.as_ps() <= n_before + n_after)
    }

    /// Adds the bytes `delivered` of all flows until `t`, the end of a window.
    pub fn add(&mut self, t: Time, delivered: u64) {
        let Some((_, earlier)) = self.last.replace((t, delivered)) else { return };
        let bytes = delivered - earlier;
        if t <= self.windows.down_at {
            self.before.push(bytes);
            // Goodput that varied before the failure is back where it was no lower then.
            let least = self.before.iter().min().map_or(0.0, |&least| least as f64);
            self.back = least.min(BACK * self.mean());
            return;
        }
        self.after.push(bytes);
        if self.in_a_row < IN_A_ROW {
            self.in_a_row = if self.back <= bytes as f64 { self.in_a_row + 1 } else { 0 };
            self.n_until_back = self.after.len() - self.in_a_row;
        }
    }

    /// Returns the mean number of bytes of a window before the failure.
    fn mean(&self) -> f64 {
        self.before.iter().sum::<u64>() as f64 / self.before.len().max(1) as f64
    }

    /// Returns the result; `None` if the run ended before the failure, or if nothing was delivered before it.
    pub fn summary(&self) -> Option<RecoverySummary> {
        let FailureWindows { down_at, window, .. } = self.windows;
        let is_over = self.last.is_some_and(|(t, _)| down_at <= t);
        let bps = |bytes: f64| 8.0 * bytes / window.as_secs_f64();
        let windows = (self.in_a_row == IN_A_ROW).then_some(self.n_until_back as u64);
        let last = &self.after[self.after.len() - self.after.len() / LAST..];
        let settled = (!last.is_empty()).then(|| last.iter().sum::<u64>() as f64 / last.len() as f64);
        (is_over && 0.0 < self.back).then(|| RecoverySummary {
            down_ns: down_at.as_ps() / 1_000,
            window_ns: window.as_ps() / 1_000,
            before_bps: bps(self.mean()),
            back_bps: bps(self.back),
            time_ns: windows.map(|n| n * (window.as_ps() / 1_000)),
            settled_bps: settled.map(bps),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the summary of windows of 20 us, with these bytes before a failure at 100 us and after it.
    fn of(before: &[u64], after: &[u64]) -> Option<RecoverySummary> {
        let window = Time::from_us(20);
        let windows =
            FailureWindows { down_at: Time::from_us(100), window, n_before: before.len() as u64, n_after: 50 };
        let mut meter = RecoveryMeter::new(windows);
        let mut sum = 7;
        let bytes = std::iter::once(&0).chain(before).chain(after);
        for (t, bytes) in windows.edges().zip(bytes) {
            sum += bytes;
            if meter.wants(t) {
                meter.add(t, sum);
            }
        }
        meter.summary()
    }

    /// The mean before is 100 bytes in 20 us: 40 Mb/s, and 95 % of it are 38 Mb/s.
    #[test]
    fn goodput_is_back_with_the_first_of_three_windows() {
        let time = |after: &[u64]| of(&[100, 100], after).unwrap().time_ns;
        let back = of(&[100, 100], &[60, 0, 94, 95, 120, 95, 0]).unwrap();
        assert_eq!((back.down_ns, back.window_ns, back.time_ns), (100_000, 20_000, Some(60_000)));
        assert!((back.before_bps - 4e7).abs() < 1.0 && (back.back_bps - 3.8e7).abs() < 1.0, "{back:?}");
        // Packets that have passed the failure fill a first window.
        assert_eq!(time(&[100, 20, 20, 100, 100, 100]), Some(60_000));
        // It never falls below: there is nothing to recover.
        assert_eq!(time(&[100, 96, 97]), Some(0));
        // Two windows are too few; the run ends.
        assert_eq!((time(&[10, 100, 100]), time(&[10, 100, 100, 90, 100]), time(&[])), (None, None, None));
    }

    /// The last quarter of eight windows are two; the mean before is 40 Mb/s.
    #[test]
    fn goodput_settles_where_it_is_in_the_end() {
        let whole = |summary: RecoverySummary| (summary.time_ns, summary.settled_bps.map(f64::round));
        let settled = |after: &[u64]| whole(of(&[100, 100], after).unwrap()).1;
        let lost = of(&[100, 100], &[10, 40, 70, 75, 76, 74, 74, 76]).unwrap();
        assert_eq!(whole(lost), (None, Some(3e7)));
        // It has come back, and does not stay.
        let back = of(&[100, 100], &[10, 100, 100, 100, 60, 60, 60, 40]).unwrap();
        assert_eq!(whole(back), (Some(20_000), Some(2e7)));
        assert_eq!((settled(&[50, 50, 50]), settled(&[0, 0, 0, 50])), (None, Some(2e7)));
    }

    /// The mean before is 90, of which 95 % are 85.5, but a window had only 60.
    #[test]
    fn goodput_that_varies_is_back_where_it_was() {
        assert_eq!(of(&[120, 60], &[50, 70, 61, 60, 0]).unwrap().time_ns, Some(20_000));
        assert_eq!(of(&[120, 60], &[50, 59, 61, 120]).unwrap().time_ns, None);
        assert_eq!(of(&[0, 100], &[50, 50, 50]), None);
    }
}
