//! `newreno`: NewReno. M. Allman, V. Paxson, E. Blanton, "TCP Congestion Control", RFC 5681; S. Floyd, T. Henderson,
//! A. Gurtov, RFC 6582. The transport recovers lost data (RFC 8985); this module has the window alone.
//!
//! | RFC 5681   | here       | unit  |
//! |------------|------------|-------|
//! | cwnd       | `cwnd`     | bytes |
//! | ssthresh   | `ssthresh` | bytes |
//! | SMSS       | `mss`      | bytes |
//! | FlightSize | `flight`   | bytes |
//!
//! Readings: the first window is that of RFC 6928, ten segments. The window grows only while it limits the flow (RFC
//! 7661). Acknowledged bytes are counted (RFC 3465, L = 2 in slow start), so that delayed acknowledgments cost nothing.
//! An ECN mark reduces the window as a loss does (RFC 3168 section 6.1.2), at most once per window. After idle time the
//! window halves for each timeout, down to the first window (RFC 2861, Linux); RFC 5681 section 4.1 sets it to that at
//! once.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::limits::{WindowUse, after_idle};
use crate::needs::{FeedbackNeeds, Needs, NetworkNeeds};
use crate::port::NoPort;

algorithm_config! {
    /// Parameters of NewReno.
    pub struct NewRenoConfig {
        /// First window in segments (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
        /// Smallest window in segments after a loss that recovery repairs (RFC 5681 eq. 4).
        min_window: u32 = 2, in 1.0..=1_000_000.0;
        /// If true, switches mark, and the window halves on a mark (RFC 3168).
        ecn: bool = false;
    }
}

impl AlgorithmSpec for NewRenoConfig {
    type Controller = NewReno;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds { ecn: self.ecn, ..NetworkNeeds::NOTHING },
            feedback: FeedbackNeeds { prr: true, ..FeedbackNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> NewReno {
        let mss = flow.mtu.as_f64();
        NewReno {
            line: flow.line_rate,
            mss,
            min: f64::from(self.min_window) * mss,
            first: f64::from(self.initial_window) * mss,
            cwnd: f64::from(self.initial_window) * mss,
            ssthresh: f64::INFINITY,
            flight: 0.0,
            una: 0,
            snd_nxt: 0,
            recover: 0,
            timed_out: false,
            window_use: WindowUse::default(),
        }
    }
}

/// A flow under NewReno.
#[derive(Clone, Debug)]
pub struct NewReno {
    line: Rate,
    mss: f64,
    min: f64,
    first: f64,
    cwnd: f64,
    ssthresh: f64,
    flight: f64,
    una: u64,
    snd_nxt: u64,
    /// End of the recovery: no second decrease and no growth before this byte is acknowledged.
    recover: u64,
    /// Set from a timeout until data is acknowledged.
    timed_out: bool,
    window_use: WindowUse,
}

impl NewReno {
    /// Continues from window `cwnd` in congestion avoidance, after a law other than TCP's was in force.
    pub(crate) fn resume(&mut self, cwnd: Bytes) {
        self.cwnd = cwnd.as_f64().max(self.mss);
        (self.ssthresh, self.recover) = (self.cwnd, 0);
    }

    /// Multiplies the window by `by`; it stays at least a segment.
    pub(crate) fn scale(&mut self, by: f64) -> Allowance {
        self.cwnd = (self.cwnd * by).max(self.mss);
        self.allowance()
    }

    /// Returns `true` while data sent before the last reduction is not acknowledged; the window does not grow until
    /// then.
    pub(crate) fn is_recovering(&self) -> bool {
        self.una <= self.recover && 0 < self.recover
    }

    /// Grows the window by RFC 5681 section 3.1, with eq. 2 and 3 summed over the acknowledged bytes.
    fn grow(&mut self, acked: f64) {
        if self.cwnd < self.ssthresh {
            self.cwnd += acked.min(2.0 * self.mss);
        } else {
            self.cwnd += self.mss * acked / self.cwnd;
        }
    }

    /// Reduces the window by RFC 5681 eq. 4.
    fn halve(&mut self) {
        self.ssthresh = (self.flight / 2.0).max(self.min);
        self.cwnd = self.ssthresh;
        self.recover = self.snd_nxt;
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::new(self.cwnd as u64), rate: self.line, timer: Time::MAX }
    }
}

impl Controller for NewReno {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let acked = ack.newly_acked as f64;
        let before = ack.in_flight as f64 + acked;
        (self.flight, self.una, self.snd_nxt) = (ack.in_flight as f64, ack.ack_seq, ack.snd_nxt);
        self.timed_out &= ack.newly_acked == 0;
        if self.is_recovering() {
            return self.allowance();
        }
        if ack.ecn_marked {
            self.flight = before;
            self.halve();
        } else if self.window_use.limits(ack, self.cwnd, self.mss) {
            self.grow(acked);
        }
        self.allowance()
    }
    fn on_loss(&mut self, _: Time, loss: Loss) -> Allowance {
        if loss == Loss::Gap && self.una < self.recover {
            // A mark has halved this window already.
            return self.allowance();
        }
        let before = self.ssthresh;
        self.halve();
        if loss == Loss::Timeout {
            // RFC 5681 section 3.1: the loss window; growth begins at once. Further timeouts leave ssthresh.
            (self.cwnd, self.recover) = (self.mss, 0);
            if std::mem::replace(&mut self.timed_out, true) {
                self.ssthresh = before;
            }
        }
        self.allowance()
    }
    fn on_outstanding(&mut self, in_flight: u64, snd_nxt: u64) {
        (self.flight, self.snd_nxt) = (in_flight as f64, snd_nxt);
    }
    fn on_idle(&mut self, _: Time, timeouts: u32) -> Option<Allowance> {
        (self.cwnd, self.ssthresh) = after_idle(self.cwnd, self.ssthresh, self.first, timeouts);
        Some(self.allowance())
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{acked, flow_25g};

    fn ack(ack_seq: u64, newly_acked: u64, in_flight: u64) -> Ack<'static> {
        Ack { newly_acked, in_flight, ..acked(ack_seq, 8_000, ack_seq + in_flight) }
    }

    #[test]
    fn slow_start_avoidance_and_the_two_losses_by_hand() {
        let mut reno = NewRenoConfig::default().build(&flow_25g());
        assert_eq!(reno.on_start(Time::ZERO).cwnd, Bytes::new(10_000));
        // Slow start: a byte per byte, at most two segments per acknowledgment; only while the window is full.
        assert_eq!(reno.on_ack(&ack(1_000, 1_000, 9_000)).cwnd, Bytes::new(11_000));
        assert_eq!(reno.on_ack(&ack(5_000, 4_000, 7_000)).cwnd, Bytes::new(13_000));
        // Data up to 12,000 was in flight then, later data was not.
        assert_eq!(reno.on_ack(&ack(12_500, 1_000, 3_000)).cwnd, Bytes::new(13_000));
        // A gap with 12,000 in flight: 6,000, and no growth before byte 25,000.
        reno.on_ack(&ack(13_000, 500, 12_000));
        assert_eq!(reno.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(6_000));
        assert_eq!(reno.on_ack(&ack(18_000, 5_000, 5_000)).cwnd, Bytes::new(6_000));
        // Avoidance: 1,000 x 1,000 / 6,000 = 166 bytes.
        assert_eq!(reno.on_ack(&ack(26_000, 1_000, 5_500)).cwnd, Bytes::new(6_166));
        // A timeout leaves one segment; slow start ends at half of the bytes in flight.
        assert_eq!(reno.on_loss(Time::ZERO, Loss::Timeout).cwnd, Bytes::new(1_000));
        assert_eq!(reno.on_ack(&ack(27_000, 1_000, 0)).cwnd, Bytes::new(2_000));
        assert_eq!(reno.on_ack(&ack(28_000, 1_000, 1_500)).cwnd, Bytes::new(3_000));
        // Windows below the first one stay; larger ones halve, and then grow to three quarters in slow start.
        assert_eq!(reno.on_idle(Time::ZERO, 1), Some(reno.allowance()));
        reno.cwnd = 32_000.0;
        assert_eq!(reno.on_idle(Time::ZERO, 1).map(|a| a.cwnd), Some(Bytes::new(16_000)));
        assert_eq!((reno.on_idle(Time::ZERO, 5).map(|a| a.cwnd), reno.ssthresh), (Some(Bytes::new(10_000)), 24_000.0));
    }

    /// RFC 5681: what is in flight when the loss is found counts, though the last acknowledgment left nothing; and a
    /// timeout after a timeout leaves the threshold.
    #[test]
    fn a_loss_halves_what_is_in_flight_then() {
        let mut reno = NewRenoConfig::default().build(&flow_25g());
        reno.on_ack(&ack(1_000, 1_000, 0));
        reno.on_outstanding(20_000, 21_000);
        assert_eq!(reno.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(10_000));
        assert_eq!(reno.on_ack(&ack(20_000, 1_000, 9_500)).cwnd, Bytes::new(10_000), "data up to 21,000 was in flight");
        for in_flight in [8_000, 1_000] {
            reno.on_outstanding(in_flight, 30_000);
            reno.on_loss(Time::ZERO, Loss::Timeout);
            assert_eq!((reno.cwnd, reno.ssthresh), (1_000.0, 4_000.0), "{in_flight}");
        }
        reno.on_ack(&ack(24_000, 1_000, 6_000));
        reno.on_loss(Time::ZERO, Loss::Timeout);
        assert_eq!(reno.ssthresh, 3_000.0);
    }
}
