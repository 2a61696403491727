//! `xmp`: eXplicit MultiPath: buffer occupancy suppression (BOS) on every subflow and traffic shifting (TraSh) between
//! them. Y. Cao, M. Xu, X. Fu, E. Dong, "Explicit Multipath Congestion Control for Data Center Networks", CoNEXT 2013;
//! M. Kheirkhah's port of the authors' code to ns-3 (github.com/mkheirkhah/amp).
//!
//! | paper    | here         | unit                         |
//! |----------|--------------|------------------------------|
//! | cwnd     | `cwnd`       | bytes                        |
//! | β        | `beta`       | 1                            |
//! | γ        | `gamma`      | 1                            |
//! | δ_r      | `delta`      | segments a round             |
//! | adder    | `adder`      | segments                     |
//! | x_r      | `rate`       | bytes per second             |
//! | beg_seq  | `ends_at`  | sequence number              |
//! | cwr_seq  | `cut_until`  | sequence number              |
//! | state    | NORMAL after `cut_until`, REDUCED before it | |
//!
//! Readings: a round ends with the first acknowledgment after the data that was sent when it began. x_r is the window
//! of the round that just ended over its smoothed round-trip time (port); a subflow that has not ended a round does not
//! count. The window grows only while it limits the subflow (RFC 7661), and at most doubles in a round. A gap halves
//! it and a timeout leaves one segment, as in NewReno. Switches mark every packet that arrives at a queue longer than K
//! packets; the scenario sets K, at least the bandwidth-delay product over β - 1.

use fairrate_units::Time;

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, FlowContext, Loss};
use crate::coupled::{Alone, CoupledController, CoupledSpec, PathState};
use crate::needs::{Needs, NetworkNeeds};
use crate::port::NoPort;
use crate::subflow::{Subflow, Subflows};

algorithm_config! {
    /// Parameters of XMP.
    pub struct XmpConfig {
        /// First window of a subflow in segments (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
        /// Smallest window in segments after a mark or a repaired loss (paper).
        min_window: u32 = 2, in 1.0..=1_000_000.0;
        /// Inverse of the share of the window that a mark takes: 4 is a quarter (paper: 4).
        beta: f64 = 4.0, in 1.0..=1000.0;
        /// Growth of the whole connection in segments a round trip (paper: 1).
        gamma: f64 = 1.0, in 0.0..=1000.0;
    }
}

/// A flow under XMP.
pub type Xmp = Alone<XmpConnection>;

impl AlgorithmSpec for XmpConfig {
    type Controller = Xmp;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs { network: NetworkNeeds { ecn: true, ..NetworkNeeds::NOTHING }, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Xmp {
        Alone(self.build_connection(std::slice::from_ref(flow)))
    }
}

impl CoupledSpec for XmpConfig {
    type Connection = XmpConnection;
    fn build_connection(&self, subflows: &[FlowContext]) -> XmpConnection {
        XmpConnection {
            subflows: Subflows::new(subflows, self.initial_window, self.min_window),
            rounds: vec![Round::default(); subflows.len()],
            config: self.clone(),
        }
    }
}

/// A connection under XMP.
#[derive(Clone, Debug)]
pub struct XmpConnection {
    subflows: Subflows,
    rounds: Vec<Round>,
    config: XmpConfig,
}

/// The round of a subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    ends_at: u64,
    cut_until: u64,
    /// The window of this round before any cut, in bytes.
    window: f64,
    /// Rate of the last round in bytes per second; zero before the first round has ended.
    rate: f64,
    adder: f64,
}

impl XmpConnection {
    /// Returns TraSh's δ_r = γ (x_r rtt_r) / (Σ x_k · min rtt_k).
    fn delta(&self, r: usize) -> f64 {
        let counts = || self.subflows.coupled(r).filter(|&(i, _)| 0.0 < self.rounds[i].rate);
        let total: f64 = counts().map(|(i, _)| self.rounds[i].rate).sum();
        let shortest = counts().map(|(_, s)| s.srtt.secs()).fold(f64::INFINITY, f64::min);
        if total == 0.0 {
            return self.config.gamma;
        }
        self.config.gamma * self.rounds[r].rate * self.subflows[r].srtt.secs() / (total * shortest)
    }

    /// Ends a round (BOS): updates the rate of subflow `r`, and if it `grows`, adds δ_r to its window.
    fn end_round(&mut self, r: usize, grows: bool) {
        let (round, s) = (&mut self.rounds[r], &self.subflows[r]);
        let rtt = s.srtt.secs();
        round.rate = if 0.0 < rtt { round.window.max(s.cwnd) / rtt } else { 0.0 };
        if grows {
            let delta = self.delta(r);
            let (round, s) = (&mut self.rounds[r], &mut self.subflows[r]);
            round.adder += delta.min(s.cwnd / s.mss);
            let whole = round.adder as u64 as f64;
            round.adder -= whole;
            s.cwnd += whole * s.mss;
        }
        (self.rounds[r].window, self.rounds[r].ends_at) = (self.subflows[r].cwnd, self.subflows[r].snd_nxt);
    }

    /// Cuts the window at the first mark of a round (BOS): by one part in β, at least a segment. In slow start it only
    /// ends slow start.
    fn cut(&mut self, r: usize) {
        let s = &mut self.subflows[r];
        if !slow_starts(s) {
            s.cwnd = (s.cwnd - (s.cwnd / self.config.beta).max(s.mss)).max(s.min);
        }
        s.ssthresh = s.cwnd - s.mss;
        self.rounds[r].cut_until = s.snd_nxt;
    }
}

/// Returns `true` in slow start. The paper's ssthresh is one segment below the window at which slow start ended.
fn slow_starts(s: &Subflow) -> bool {
    s.cwnd <= s.ssthresh
}

impl CoupledController for XmpConnection {
    fn on_start(&mut self, _: Time, r: usize) -> Allowance {
        self.rounds[r].window = self.subflows[r].cwnd;
        self.subflows[r].allowance()
    }
    fn on_ack(&mut self, r: usize, ack: &Ack<'_>) -> Allowance {
        let limited = self.subflows[r].note(ack);
        let recovers = self.subflows[r].recovers(ack.ack_seq);
        if ack.ecn_marked && !recovers && self.rounds[r].cut_until < ack.ack_seq {
            self.cut(r);
        }
        let normal = !recovers && self.rounds[r].cut_until < ack.ack_seq;
        let starts = slow_starts(&self.subflows[r]);
        if self.rounds[r].ends_at < ack.ack_seq {
            self.end_round(r, normal && limited && !starts);
        }
        if normal && limited && starts {
            self.subflows[r].slow_start(ack.newly_acked as f64);
        }
        self.subflows[r].allowance()
    }
    fn on_loss(&mut self, r: usize, _: Time, loss: Loss) -> Allowance {
        self.subflows[r].lose(loss, 0.5);
        self.rounds[r].window = self.subflows[r].cwnd;
        self.subflows[r].allowance()
    }
    fn on_outstanding(&mut self, r: usize, in_flight: u64, snd_nxt: u64) {
        self.subflows[r].note_outstanding(in_flight, snd_nxt);
    }
    fn on_timer(&mut self, r: usize, _: Time) -> Allowance {
        self.subflows[r].allowance()
    }
    fn on_idle(&mut self, r: usize, _: Time, timeouts: u32) -> Option<Allowance> {
        let allowance = self.subflows[r].wake(timeouts);
        self.rounds[r].window = self.subflows[r].cwnd;
        Some(allowance)
    }
    fn on_path(&mut self, r: usize, _: Time, state: PathState) {
        self.subflows[r].alive = state == PathState::Alive;
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Bytes;

    use super::*;
    use crate::subflow::tests::segment;
    use crate::test_flow::flow_25g;

    fn marked(ack_seq: u64, in_flight: u64) -> Ack<'static> {
        Ack { ecn_marked: true, ..segment(ack_seq, 10, in_flight) }
    }

    #[test]
    fn bos_by_hand() {
        let mut xmp = XmpConfig::default().build_connection(&[flow_25g()]);
        assert_eq!(xmp.on_start(Time::ZERO, 0).cwnd, Bytes::new(10_000));
        let mut cwnd = |ack: Ack<'_>| xmp.on_ack(0, &ack).cwnd.as_u64();
        // Slow start: a segment per segment. The first mark only ends slow start.
        assert_eq!(cwnd(segment(1_000, 10, 9_000)), 11_000);
        assert_eq!(cwnd(segment(2_000, 10, 10_000)), 12_000);
        assert_eq!(cwnd(marked(3_000, 11_000)), 12_000);
        // REDUCED until byte 14,000: marks and rounds change nothing.
        assert_eq!(cwnd(marked(13_000, 11_000)), 12_000);
        assert_eq!(cwnd(segment(14_000, 10, 11_000)), 12_000);
        // The round that began at byte 13,000 ends after byte 24,000 and adds one segment.
        assert_eq!(cwnd(segment(24_000, 10, 11_000)), 12_000);
        assert_eq!(cwnd(segment(25_000, 10, 11_000)), 13_000);
        // A mark cuts a quarter: 9,750. No second cut before byte 37,000.
        assert_eq!(cwnd(marked(26_000, 11_000)), 9_750);
        assert_eq!(cwnd(marked(37_000, 9_000)), 9_750);
        assert_eq!(cwnd(marked(38_000, 9_000)), 7_312);
        // From four segments on the cut is a whole segment, and at least two segments are left.
        let cwnds = [60, 80, 100, 120, 140].map(|i| cwnd(marked(i * 1_000, 5_000)));
        assert_eq!(cwnds, [5_484, 4_113, 3_084, 2_084, 2_000]);
    }

    #[test]
    fn trash_by_hand() {
        let mut xmp = XmpConfig::default().build_connection(&[flow_25g(), flow_25g()]);
        // Rounds of 20,000 bytes in 10 us and 10,000 in 20 us: rates 2,000 and 500 bytes/us.
        for (r, window, rtt) in [(0, 20_000.0, 10), (1, 10_000.0, 20)] {
            xmp.subflows[r].srtt.sample(Time::from_us(rtt));
            (xmp.subflows[r].cwnd, xmp.rounds[r].window) = (window, window);
            xmp.end_round(r, false);
        }
        // 2,000 x 10 / (2,500 x 10) and 500 x 20 / (2,500 x 10).
        assert!((xmp.delta(0) - 0.8).abs() < 1e-12 && (xmp.delta(1) - 0.4).abs() < 1e-12);
        // A subflow adds whole segments: 0.4 per round is two segments in five rounds.
        let windows = [1, 2, 3, 4, 5].map(|_| {
            (xmp.subflows[1].cwnd, xmp.rounds[1].window) = (10_000.0, 10_000.0);
            xmp.end_round(1, true);
            xmp.subflows[1].cwnd
        });
        assert_eq!(windows, [10_000.0, 10_000.0, 11_000.0, 10_000.0, 11_000.0]);
        // With subflow 1 dead, subflow 0 grows as alone.
        xmp.on_path(1, Time::ZERO, PathState::Dead);
        assert!((xmp.delta(0) - 1.0).abs() < 1e-12);
    }
}
