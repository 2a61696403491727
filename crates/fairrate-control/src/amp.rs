//! `amp`: Adaptive MultiPath. M. Kheirkhah, M. Lee, "AMP: An Adaptive Multipath TCP for Data Center Networks", IFIP
//! Networking 2019; the authors' ns-3 code (github.com/mkheirkhah/amp).
//!
//! | code               | here          | unit            |
//! |--------------------|---------------|-----------------|
//! | cwnd               | `cwnd`        | bytes           |
//! | beta, gamma        | `beta`, `gamma` | 1             |
//! | totalCwnd          | `total`       | bytes           |
//! | IncastThresh       | `enter_rounds` | rounds         |
//! | IncastExitThresh   | `leave_rounds` | rounds         |
//! | incastCounter      | `Mode::Multi` | rounds          |
//! | incastReDoCounter  | `Mode::Single` | rounds         |
//! | dctcp_alpha_update_seq | `round_end` | sequence number |
//! | dctcp_maxseq       | `cut_until`   | sequence number |
//!
//! Readings: rounds are those of the one subflow that is kept, which is the first whose path works. An acknowledgment
//! with a mark that cuts does not grow the window. A suspended subflow sends no new data, repairs its losses and stops
//! once all its data is acknowledged; a timer checks every round-trip time whether it may send again, as no other event
//! would.
//! Windows grow only while they limit (RFC 7661). Losses are NewReno's. Switches mark by a step at K packets.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, FlowContext, Loss};
use crate::coupled::{Alone, CoupledController, CoupledSpec, PathState};
use crate::needs::{Needs, NetworkNeeds};
use crate::port::NoPort;
use crate::subflow::Subflows;

algorithm_config! {
    /// Parameters of AMP.
    pub struct AmpConfig {
        /// First window of a subflow in segments (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
        /// Smallest window in segments after a mark or a repaired loss (code).
        min_window: u32 = 1, in 1.0..=1_000_000.0;
        /// Number of parts of a window, of which a mark takes `gamma` (code: 4, as XMP).
        beta: f64 = 4.0, in 1.0..=1000.0;
        /// Number of those parts that a mark takes (code: 1).
        gamma: f64 = 1.0, in 0.0..=1.0;
        /// Rounds with all windows at their smallest after which one subflow is kept (code: 10).
        enter_rounds: u32 = 10, in 1.0..=1_000_000.0;
        /// Rounds with a larger window and without marks after which all subflows send again (code: 8).
        leave_rounds: u32 = 8, in 1.0..=1_000_000.0;
    }
}

/// A flow under AMP.
pub type Amp = Alone<AmpConnection>;

impl AlgorithmSpec for AmpConfig {
    type Controller = Amp;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs { network: NetworkNeeds { ecn: true, ..NetworkNeeds::NOTHING }, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Amp {
        Alone(self.build_connection(std::slice::from_ref(flow)))
    }
}

impl CoupledSpec for AmpConfig {
    type Connection = AmpConnection;
    fn build_connection(&self, subflows: &[FlowContext]) -> AmpConnection {
        AmpConnection {
            subflows: Subflows::new(subflows, self.initial_window, self.min_window),
            marks: vec![Marks::default(); subflows.len()],
            mode: Mode::Multi { rounds_at_min: 0 },
            config: self.clone(),
        }
    }
}

/// A connection under AMP.
#[derive(Clone, Debug)]
pub struct AmpConnection {
    subflows: Subflows,
    marks: Vec<Marks>,
    mode: Mode,
    config: AmpConfig,
}

/// The round of a subflow, and its marks.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    round_end: u64,
    /// Set when there was a mark in this round.
    in_round: bool,
    cut_until: u64,
    /// Set while the subflow recovers from a loss.
    recovers: bool,
    /// Set when all data sent is acknowledged.
    at_rest: bool,
}

/// The mode of the connection: it sends on all paths, or on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Multi { rounds_at_min: u32 },
    Single { clear_rounds: u32 },
}

impl AmpConnection {
    /// Returns the subflow that is kept: the first that is alive.
    fn kept(&self) -> usize {
        self.subflows.alive().next().map_or(0, |(i, _)| i)
    }

    fn is_single(&self) -> bool {
        matches!(self.mode, Mode::Single { .. })
    }

    /// Returns the total window, in bytes, over which the growth of subflow `r` is shared.
    fn total(&self, r: usize) -> f64 {
        let kept = self.kept();
        let counts = |i: usize| i == r || self.subflows[i].alive && (!self.is_single() || i == kept);
        (0..self.subflows.len()).filter(|&i| counts(i)).map(|i| self.subflows[i].cwnd).sum()
    }

    /// Grows the window of subflow `r`. All subflows together grow by a segment per round trip.
    fn grow(&mut self, r: usize, acked: f64) {
        let total = self.total(r);
        let s = &mut self.subflows[r];
        if s.cwnd < s.ssthresh {
            s.slow_start(acked);
        } else {
            s.cwnd += s.mss * acked.min(s.cwnd) / total;
        }
    }

    /// Cuts the window of subflow `r`: w ← w (1 - γ/β), once per window.
    fn cut(&mut self, r: usize) {
        let s = &mut self.subflows[r];
        s.cwnd = (s.cwnd * (1.0 - self.config.gamma / self.config.beta)).max(s.min);
        s.ssthresh = s.cwnd;
        self.marks[r].cut_until = s.snd_nxt;
    }

    /// Updates the mode at the end of a round of the kept subflow `r`.
    fn end_round(&mut self, r: usize) {
        let at_min = |i: usize| self.subflows[i].segments() as f64 * self.subflows[i].mss <= self.subflows[i].min;
        self.mode = match self.mode {
            Mode::Multi { rounds_at_min } => {
                let all = self.subflows.alive().all(|(i, _)| at_min(i) && !self.marks[i].recovers);
                let several = 1 < self.subflows.alive().count();
                let rounds_at_min = if all && several { rounds_at_min + 1 } else { 0 };
                if rounds_at_min < self.config.enter_rounds {
                    Mode::Multi { rounds_at_min }
                } else {
                    Mode::Single { clear_rounds: 0 }
                }
            }
            Mode::Single { clear_rounds } => {
                let clear = !at_min(r) && !self.marks[r].in_round && !self.marks[r].recovers;
                let clear_rounds = if clear { clear_rounds + 1 } else { 0 };
                if clear_rounds < self.config.leave_rounds {
                    Mode::Single { clear_rounds }
                } else {
                    Mode::Multi { rounds_at_min: 0 }
                }
            }
        };
    }

    /// Returns the allowance of subflow `r`. One that is suspended sends no new data: a window of a segment lets it
    /// repair its losses until all its data is acknowledged, and then its rate is zero.
    fn allowance(&self, r: usize, now: Time) -> Allowance {
        let allowance = self.subflows[r].allowance();
        if !self.is_single() || r == self.kept() {
            return allowance;
        }
        if !self.marks[r].at_rest {
            return Allowance { cwnd: Bytes::new(self.subflows[r].mss as u64), ..allowance };
        }
        let again = Time::from_secs_f64(self.subflows[r].srtt.secs()).max(Time::from_us(1));
        Allowance { rate: Rate::ZERO, timer: now.saturating_add(again), ..allowance }
    }
}

impl CoupledController for AmpConnection {
    fn on_start(&mut self, now: Time, r: usize) -> Allowance {
        self.allowance(r, now)
    }
    fn on_ack(&mut self, r: usize, ack: &Ack<'_>) -> Allowance {
        let limited = self.subflows[r].note(ack);
        let marks = &mut self.marks[r];
        marks.recovers = self.subflows[r].recovers(ack.ack_seq);
        marks.at_rest = ack.ack_seq == ack.snd_nxt;
        marks.in_round |= ack.ecn_marked;
        if marks.round_end < ack.ack_seq {
            if r == self.kept() {
                self.end_round(r);
            }
            (self.marks[r].round_end, self.marks[r].in_round) = (ack.snd_nxt, false);
        }
        if !self.marks[r].recovers {
            if ack.ecn_marked && self.marks[r].cut_until < ack.ack_seq {
                self.cut(r);
            } else if limited {
                self.grow(r, ack.newly_acked as f64);
            }
        }
        self.allowance(r, ack.now)
    }
    fn on_loss(&mut self, r: usize, now: Time, loss: Loss) -> Allowance {
        self.subflows[r].lose(loss, 0.5);
        (self.marks[r].recovers, self.marks[r].at_rest) = (true, false);
        self.allowance(r, now)
    }
    fn on_outstanding(&mut self, r: usize, in_flight: u64, snd_nxt: u64) {
        self.subflows[r].note_outstanding(in_flight, snd_nxt);
    }
    fn on_timer(&mut self, r: usize, now: Time) -> Allowance {
        self.allowance(r, now)
    }
    fn on_path(&mut self, r: usize, _: Time, state: PathState) {
        self.subflows[r].alive = state == PathState::Alive;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subflow::tests::segment;
    use crate::test_flow::flow_25g;

    fn connection() -> AmpConnection {
        AmpConfig::default().build_connection(&[flow_25g(), flow_25g()])
    }

    #[test]
    fn growth_and_cuts_by_hand() {
        let mut amp = connection();
        for (r, cwnd) in [(0, 20_000.0), (1, 10_000.0)] {
            (amp.subflows[r].cwnd, amp.subflows[r].ssthresh) = (cwnd, cwnd);
        }
        // 1,000 x 1,000 / 30,000 = 33 bytes on either, whatever the round-trip times.
        assert_eq!(amp.on_ack(0, &segment(1_000, 10, 20_000)).cwnd, Bytes::new(20_033));
        assert_eq!(amp.on_ack(1, &segment(1_000, 40, 10_000)).cwnd, Bytes::new(10_033));
        // A mark cuts a quarter, once before byte 22,000: 20,033.33 x 3/4. Until then the window still grows,
        // by 10^6 / 25,058 = 40 bytes.
        let mark = |ack_seq| Ack { ecn_marked: true, ..segment(ack_seq, 10, 20_000) };
        assert_eq!(amp.on_ack(0, &mark(2_000)).cwnd, Bytes::new(15_025));
        assert_eq!(amp.on_ack(0, &mark(22_000)).cwnd, Bytes::new(15_064));
        assert_eq!(amp.on_ack(0, &mark(23_000)).cwnd, Bytes::new(11_298));
        // With subflow 1 dead, subflow 0 grows as TCP: 10^6 / 11,298.6 = 88 bytes.
        amp.on_path(1, Time::ZERO, PathState::Dead);
        assert_eq!(amp.on_ack(0, &segment(24_000, 10, 20_000)).cwnd, Bytes::new(11_387));
    }

    #[test]
    fn one_path_is_kept_while_windows_are_at_their_smallest() {
        let mut amp = connection();
        for r in 0..2 {
            (amp.subflows[r].cwnd, amp.subflows[r].ssthresh) = (1_000.0, 1_000.0);
        }
        // Ten marked rounds of a segment each; the windows stay at one segment.
        let mark = |i: u64| Ack { ecn_marked: true, ..segment(i * 1_000, 10, 0) };
        for i in 1..=10 {
            assert!(!amp.is_single(), "{i}");
            amp.on_ack(1, &mark(i));
            amp.on_ack(0, &mark(i));
        }
        assert!(amp.is_single());
        // Subflow 1 stops once all its data is acknowledged, and checks again a round-trip time later.
        assert_eq!(amp.on_ack(1, &Ack { snd_nxt: 13_000, ..mark(11) }).rate, Rate::from_gbps(25));
        let rests = amp.on_ack(1, &mark(12));
        assert_eq!((rests.rate, rests.timer), (Rate::ZERO, Time::from_us(1_010)));
        assert_eq!(amp.on_ack(0, &mark(11)).rate, Rate::from_gbps(25));
        // Subflow 0 alone grows: from one segment to two, then by half a segment. Rounds 13 to 20 are clear.
        amp.on_ack(0, &segment(12_000, 10, 1_000));
        assert_eq!(amp.subflows[0].cwnd, 2_000.0);
        for i in 0..8 {
            assert!(amp.is_single(), "{i}");
            amp.on_ack(0, &segment(14_000 + 2_000 * i, 10, 1_000));
        }
        assert!(!amp.is_single());
        assert_eq!(amp.on_timer(1, Time::from_us(1_020)).rate, Rate::from_gbps(25));
    }

    #[test]
    fn a_suspended_subflow_sends_no_new_data() {
        let config = AmpConfig { min_window: 2, ..AmpConfig::default() };
        let mut amp = config.build_connection(&[flow_25g(), flow_25g()]);
        for r in 0..2 {
            (amp.subflows[r].cwnd, amp.subflows[r].ssthresh) = (2_000.0, 2_000.0);
        }
        // Ten marked rounds with two segments in flight: bytes 1,000 to 19,000 are acknowledged.
        let ack = |ack_seq, in_flight| Ack { ecn_marked: true, ..segment(ack_seq, 10, in_flight) };
        (1..20).for_each(|i| _ = amp.on_ack(0, &ack(i * 1_000, 1_000)));
        assert!(amp.is_single());
        // A segment of subflow 1 is still in flight, and none follows it. Then the subflow rests.
        assert_eq!(amp.on_ack(1, &ack(1_000, 1_000)).cwnd, Bytes::new(1_000));
        assert_eq!(amp.on_ack(1, &ack(2_000, 0)).rate, Rate::ZERO);
        // A lost segment is sent again, alone.
        let again = amp.on_loss(1, Time::ZERO, Loss::Gap);
        assert_eq!((again.cwnd, again.rate), (Bytes::new(1_000), Rate::from_gbps(25)));
        // Subflow 0 has its own window, which grows by 1,000 x 1,000 / 2,000 bytes: this window was cut before.
        assert_eq!(amp.on_ack(0, &ack(20_000, 1_000)).cwnd, Bytes::new(2_500));
    }
}
