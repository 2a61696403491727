//! The common parts of the coupled window algorithms: the window of a subflow in slow start, at a loss and in recovery,
//! which is NewReno's (RFC 5681, RFC 6582), its smoothed round-trip time (RFC 6298), and the set of subflows that
//! count.

use std::ops::{Index, IndexMut};

use fairrate_units::{Bytes, Rate, Time};

use crate::controller::{Ack, Allowance, FlowContext, Loss};
use crate::coupled::{CoupledController, PathState};
use crate::limits::{WindowUse, after_idle};

/// A smoothed round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Srtt(f64);

impl Srtt {
    /// Adds a sample as in RFC 6298 section 2, with its gain of 1/8.
    pub(crate) fn sample(&mut self, rtt: Time) {
        let rtt = rtt.as_secs_f64();
        if self.0 == 0.0 {
            self.0 = rtt;
        } else if 0.0 < rtt {
            self.0 += (rtt - self.0) / 8.0;
        }
    }
    /// Returns the smoothed round-trip time in seconds; zero before the first sample.
    pub(crate) fn secs(self) -> f64 {
        self.0
    }
}

/// The change of a subflow's window on an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// No further change: the subflow recovers, its window does not limit it, or slow start has grown it already.
    Hold,
    /// A decrease: the first ECN mark in this window.
    Cut,
    /// Growth in congestion avoidance, for this number of acknowledged bytes.
    Grow(f64),
}

/// The window of one subflow.
#[derive(Clone, Debug)]
pub(crate) struct Subflow {
    line: Rate,
    /// Payload of a full segment, in bytes.
    pub(crate) mss: f64,
    /// Smallest window after a repaired loss, in bytes.
    pub(crate) min: f64,
    /// The first window, in bytes.
    first: f64,
    /// The congestion window, in bytes.
    pub(crate) cwnd: f64,
    /// The slow start threshold, in bytes.
    pub(crate) ssthresh: f64,
    /// Smoothed round-trip time.
    pub(crate) srtt: Srtt,
    /// Bytes in flight after the last acknowledgment, or when the last loss was detected.
    pub(crate) flight: f64,
    /// First byte that is not acknowledged, followed by the next new byte.
    una: u64,
    pub(crate) snd_nxt: u64,
    /// End of the recovery: no second decrease and no growth before this byte is acknowledged.
    recover: u64,
    /// Set from a timeout until data is acknowledged.
    timed_out: bool,
    window_use: WindowUse,
    /// Set when the path is considered to work.
    pub(crate) alive: bool,
}

impl Subflow {
    fn new(flow: &FlowContext, initial_window: u32, min_window: u32) -> Self {
        let mss = flow.mtu.as_f64().max(1.0);
        Self {
            line: flow.line_rate,
            mss,
            min: f64::from(min_window) * mss,
            first: f64::from(initial_window) * mss,
            cwnd: f64::from(initial_window) * mss,
            ssthresh: f64::INFINITY,
            srtt: Srtt::default(),
            flight: 0.0,
            una: 0,
            snd_nxt: 0,
            recover: 0,
            timed_out: false,
            window_use: WindowUse::default(),
            alive: true,
        }
    }

    /// Stores the values of an acknowledgment; returns `true` if the window limits the subflow (RFC 7661).
    pub(crate) fn note(&mut self, ack: &Ack<'_>) -> bool {
        self.srtt.sample(ack.rtt);
        (self.flight, self.una, self.snd_nxt) = (ack.in_flight as f64, ack.ack_seq, ack.snd_nxt);
        self.timed_out &= ack.newly_acked == 0;
        self.window_use.limits(ack, self.cwnd, self.mss)
    }

    /// Returns `true` if data that was in flight at the last decrease is not acknowledged by `ack_seq`.
    pub(crate) fn recovers(&self, ack_seq: u64) -> bool {
        ack_seq <= self.recover && 0 < self.recover
    }

    /// Grows the window by RFC 5681 eq. 2: by the `acked` bytes, at most two segments (RFC 3465).
    pub(crate) fn slow_start(&mut self, acked: f64) {
        self.cwnd += acked.min(2.0 * self.mss);
    }

    /// Returns the growth of RFC 5681 eq. 3 for `acked` bytes, in bytes.
    pub(crate) fn reno(&self, acked: f64) -> f64 {
        self.mss * acked / self.cwnd
    }

    /// Applies NewReno's reaction to an acknowledgment, up to congestion avoidance; returns the remaining step.
    fn on_ack(&mut self, ack: &Ack<'_>) -> Step {
        let limited = self.note(ack);
        let acked = ack.newly_acked as f64;
        if self.recovers(ack.ack_seq) {
            return Step::Hold;
        }
        if ack.ecn_marked {
            self.flight += acked;
            return Step::Cut;
        }
        if !limited {
            return Step::Hold;
        }
        if self.cwnd < self.ssthresh {
            self.slow_start(acked);
            return Step::Hold;
        }
        // This window cannot have had more than a window of bytes acknowledged.
        Step::Grow(acked.min(self.cwnd))
    }

    /// Reduces the window to `factor` times the bytes in flight: RFC 5681 eq. 4, where the factor is one half.
    pub(crate) fn shrink(&mut self, factor: f64) {
        self.ssthresh = (self.flight * factor).max(self.min);
        self.cwnd = self.ssthresh;
        self.recover = self.snd_nxt;
    }

    /// Reduces the window on a loss, unless it is a gap and this window was already cut. A timeout leaves one segment
    /// (RFC 5681 section 3.1), and growth begins at once; further timeouts leave the threshold.
    pub(crate) fn lose(&mut self, loss: Loss, factor: f64) {
        if loss == Loss::Gap && self.una < self.recover {
            return;
        }
        let before = self.ssthresh;
        self.shrink(factor);
        if loss == Loss::Timeout {
            (self.cwnd, self.recover) = (self.mss, 0);
            if std::mem::replace(&mut self.timed_out, true) {
                self.ssthresh = before;
            }
        }
    }

    /// Stores what is outstanding when a loss is detected.
    pub(crate) fn note_outstanding(&mut self, in_flight: u64, snd_nxt: u64) {
        (self.flight, self.snd_nxt) = (in_flight as f64, snd_nxt);
    }

    /// Reduces the window of a subflow that sends again after it was idle for `timeouts` retransmission timeouts.
    pub(crate) fn wake(&mut self, timeouts: u32) -> Allowance {
        (self.cwnd, self.ssthresh) = after_idle(self.cwnd, self.ssthresh, self.first, timeouts);
        self.allowance()
    }

    /// Returns the window in whole segments.
    pub(crate) fn segments(&self) -> u64 {
        (self.cwnd / self.mss) as u64
    }

    /// Returns the subflow's rate in bytes per second, zero before the round-trip time is known.
    pub(crate) fn rate(&self) -> f64 {
        let rtt = self.srtt.secs();
        if 0.0 < rtt { self.cwnd / rtt } else { 0.0 }
    }

    /// Returns the allowance: the window, paced at line rate.
    pub(crate) fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::new(self.cwnd as u64), rate: self.line, timer: Time::MAX }
    }
}

/// The subflows of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Subflows(Vec<Subflow>);

impl Subflows {
    /// Creates a subflow for each of `flows`; windows are in segments.
    pub(crate) fn new(flows: &[FlowContext], initial_window: u32, min_window: u32) -> Self {
        Self(flows.iter().map(|flow| Subflow::new(flow, initial_window, min_window)).collect())
    }

    /// Returns the subflows that count in the window of subflow `r`, with their numbers: subflow `r` itself and those
    /// alive among the others, if their round-trip time is known.
    pub(crate) fn coupled(&self, r: usize) -> impl Iterator<Item = (usize, &Subflow)> {
        let counts = move |&(i, s): &(usize, &Subflow)| (i == r || s.alive) && 0.0 < s.srtt.secs();
        self.0.iter().enumerate().filter(counts)
    }

    /// Returns the sum of the rates of the subflows that count for `r`, in bytes per second.
    pub(crate) fn total_rate(&self, r: usize) -> f64 {
        self.coupled(r).map(|(_, s)| s.rate()).sum()
    }

    /// Returns the largest value of `of` over the subflows that count for `r`.
    pub(crate) fn largest(&self, r: usize, of: impl Fn(&Subflow) -> f64) -> f64 {
        self.coupled(r).map(|(_, s)| of(s)).fold(0.0, f64::max)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the subflows that are alive, with their numbers.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (usize, &Subflow)> {
        self.0.iter().enumerate().filter(|(_, s)| s.alive)
    }
}

impl Index<usize> for Subflows {
    type Output = Subflow;
    fn index(&self, r: usize) -> &Subflow {
        &self.0[r]
    }
}

impl IndexMut<usize> for Subflows {
    fn index_mut(&mut self, r: usize) -> &mut Subflow {
        &mut self.0[r]
    }
}

/// The coupling of NewReno's windows, in which LIA, OLIA and BALIA differ.
pub trait Link {
    /// Returns the growth in congestion avoidance for `acked` bytes of subflow `r`, whose round-trip time is known, in
    /// bytes.
    #[allow(private_interfaces)]
    fn increase(&self, subflows: &Subflows, r: usize, acked: f64) -> f64;
    /// Returns the factor by which bytes in flight are multiplied to give the window after a loss or a mark.
    #[allow(private_interfaces)]
    fn left(&self, _subflows: &Subflows, _r: usize) -> f64 {
        0.5
    }
    /// Records that `acked` bytes of subflow `r` were acknowledged.
    fn on_acked(&mut self, _r: usize, _acked: f64) {}
    /// Records a loss or a mark on subflow `r`.
    fn on_lost(&mut self, _r: usize) {}
}

/// A connection whose subflows are coupled in congestion avoidance and otherwise each behave as NewReno.
#[derive(Clone, Debug)]
pub struct Linked<L> {
    subflows: Subflows,
    link: L,
}

impl<L: Link> Linked<L> {
    pub(crate) fn new(flows: &[FlowContext], initial_window: u32, min_window: u32, link: L) -> Self {
        Self { subflows: Subflows::new(flows, initial_window, min_window), link }
    }

    fn lose(&mut self, r: usize, loss: Loss) {
        let left = self.link.left(&self.subflows, r);
        self.subflows[r].lose(loss, left);
        self.link.on_lost(r);
    }
}

impl<L: Link> CoupledController for Linked<L> {
    fn on_start(&mut self, _: Time, r: usize) -> Allowance {
        self.subflows[r].allowance()
    }
    fn on_ack(&mut self, r: usize, ack: &Ack<'_>) -> Allowance {
        self.link.on_acked(r, ack.newly_acked as f64);
        match self.subflows[r].on_ack(ack) {
            Step::Hold => {}
            Step::Cut => self.lose(r, Loss::Gap),
            Step::Grow(acked) => {
                let s = &self.subflows[r];
                let known = 0.0 < s.srtt.secs();
                let growth = if known { self.link.increase(&self.subflows, r, acked) } else { s.reno(acked) };
                let s = &mut self.subflows[r];
                s.cwnd = (s.cwnd + growth).max(s.mss);
            }
        }
        self.subflows[r].allowance()
    }
    fn on_loss(&mut self, r: usize, _: Time, loss: Loss) -> Allowance {
        self.lose(r, loss);
        self.subflows[r].allowance()
    }
    fn on_outstanding(&mut self, r: usize, in_flight: u64, snd_nxt: u64) {
        self.subflows[r].note_outstanding(in_flight, snd_nxt);
    }
    fn on_timer(&mut self, r: usize, _: Time) -> Allowance {
        self.subflows[r].allowance()
    }
    fn on_idle(&mut self, r: usize, _: Time, timeouts: u32) -> Option<Allowance> {
        Some(self.subflows[r].wake(timeouts))
    }
    fn on_path(&mut self, r: usize, _: Time, state: PathState) {
        self.subflows[r].alive = state == PathState::Alive;
    }
}

/// Connections that a test puts into a given state.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_flow::acked;

    impl<L: Link> Linked<L> {
        /// Puts subflow `r` into congestion avoidance with a window of `cwnd` bytes and a round-trip time of `rtt_us`.
        pub(crate) fn put(&mut self, r: usize, cwnd: f64, rtt_us: u64) {
            let s = &mut self.subflows[r];
            (s.cwnd, s.ssthresh, s.srtt) = (cwnd, cwnd, Srtt::default());
            s.srtt.sample(Time::from_us(rtt_us));
        }
        /// Returns the growth, in bytes, for one full acknowledged segment of subflow `r`.
        pub(crate) fn growth(&self, r: usize) -> f64 {
            self.link.increase(&self.subflows, r, self.subflows[r].mss)
        }
        /// Returns the window of subflow `r`, in bytes.
        pub(crate) fn cwnd(&self, r: usize) -> f64 {
            self.subflows[r].cwnd
        }
    }

    /// Returns an acknowledgment of one segment that leaves `in_flight` bytes in flight.
    pub(crate) fn segment(ack_seq: u64, rtt_us: u64, in_flight: u64) -> Ack<'static> {
        Ack { newly_acked: 1_000, in_flight, ..acked(ack_seq, rtt_us * 1_000, ack_seq + in_flight) }
    }

    #[test]
    fn round_trip_times_are_smoothed() {
        let mut srtt = Srtt::default();
        srtt.sample(Time::ZERO);
        assert_eq!(srtt.secs(), 0.0);
        // 8 us, then 16: 8 + 8/8.
        srtt.sample(Time::from_us(8));
        srtt.sample(Time::from_us(16));
        assert!((srtt.secs() - 9e-6).abs() < 1e-18);
    }
}
