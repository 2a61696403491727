//! `cubic`: CUBIC. L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert, "CUBIC for Fast and Long-Distance Networks", RFC 9438.
//! Recovery of the lost data is the transport's (RFC 8985); what is here is the window. `form = "linux"`: growth as in
//! Linux (`tcp_cubic.c`) and ns-3, which is RFC 8312's.
//!
//! | RFC 9438     | here          | unit     |
//! |--------------|---------------|----------|
//! | cwnd         | `cwnd`        | segments |
//! | ssthresh     | `ssthresh`    | segments |
//! | W_max        | `w_max`       | segments |
//! | cwnd_prior   | `cwnd_prior`  | segments |
//! | W_est        | `w_est`       | segments |
//! | t            | `t`           | seconds  |
//! | K            | `k`           | seconds  |
//! | C            | `c`           | segments / s^3 |
//! | β_cubic      | `beta`        | 1        |
//! | α_cubic      | `alpha`       | 1        |
//!
//! Readings: a loss cuts what the window was, not what was in flight (section 4.6 allows it, Linux does it): the
//! window grows only while it limits the flow, so the two differ little. Time in which it does not limit the flow, and
//! gaps between acknowledgments longer than a round trip, do not count as t (section 5.8). The first window is that of
//! RFC 6928. A window that lies above the cubic curve keeps its size; section 4.3's W_est never lowers it either.
//! HyStart is off: its thresholds are milliseconds, which datacenter delays never reach. What there is of it is the
//! test for rising delay of Linux; the test for trains of acknowledgments and RFC 9406 are absent. An ECN mark is a
//! loss without the loss, at most once a window. After idle time the window halves for each timeout, down to the first
//! one (RFC 2861, Linux), and a new stage begins.
//!
//! Linux differs in growth: W_est always rises with α, never with 1 (so that random losses leave it a ninth less); the
//! curve is looked up one smallest RTT ahead; a window above the curve grows by a hundredth of a segment a round trip,
//! and one without a plateau by at least a twentieth of a segment an acknowledged one; W_est pulls the window up within a
//! round trip instead of at once.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, Needs};
use crate::limits::{WindowUse, after_idle};
use crate::port::NoPort;

choice! {
    /// How the window grows in congestion avoidance.
    pub enum CubicForm {
        /// As in RFC 9438.
        Rfc9438 = "rfc9438",
        /// As in Linux and in ns-3, which follow RFC 8312.
        Linux = "linux",
    }
}

algorithm_config! {
    /// Parameters of CUBIC.
    pub struct CubicConfig {
        /// How the window grows in congestion avoidance.
        form: CubicForm = CubicForm::Rfc9438, ns3 = CubicForm::Linux;
        /// Scale of the cubic curve, C, in segments per cubed second (RFC 9438 §5.1: 0.4).
        c: f64 = 0.4, in 0.000_001..=1_000_000.0;
        /// What a loss leaves of the window, beta_cubic (RFC 9438 §4.6: 0.7; ns-2's and the first Linux code: 0.8).
        beta: f64 = 0.7, in 0.1..=0.99;
        /// Whether a flow that loses ground aims lower still, to make room (RFC 9438 §4.7).
        fast_convergence: bool = true;
        /// Whether the window is at least what Reno's would be (RFC 9438 §4.3).
        reno_friendly: bool = true;
        /// First window in segments (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
        /// Smallest window in segments after a loss that recovery repairs (RFC 9438 §4.6).
        min_window: u32 = 2, in 1.0..=1_000_000.0;
        /// Whether switches mark and the window is cut on a mark (RFC 3168; RFC 9438 §4.6).
        ecn: bool = false;
        /// Whether rising delay ends slow start (Linux: on; off here, since its thresholds are milliseconds).
        hystart: bool = false;
        /// Smallest rise of the delay that ends slow start, for `hystart = true` (Linux: 4 ms).
        hystart_rise: Time = Time::from_ms(4);
    }
}

impl AlgorithmSpec for CubicConfig {
    type Controller = Cubic;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs { ecn: self.ecn, prr: true, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Cubic {
        Cubic {
            line: flow.line_rate,
            mss: flow.mtu.as_f64().max(1.0),
            // Section 4.3: the slope at which cuts by β average what Reno does.
            alpha: 3.0 * (1.0 - self.beta) / (1.0 + self.beta),
            cwnd: f64::from(self.initial_window),
            ssthresh: f64::INFINITY,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            last_ack: flow.start,
            srtt: None,
            min_rtt: f64::INFINITY,
            una: 0,
            snd_nxt: 0,
            recover: None,
            window_use: WindowUse::default(),
            hystart: HyStart::default(),
            config: self.clone(),
        }
    }
}

/// A flow under CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: CubicConfig,
    line: Rate,
    /// Payload bytes of a segment.
    mss: f64,
    alpha: f64,
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    cwnd_prior: f64,
    /// The present stage of congestion avoidance; none in slow start and recovery.
    epoch: Option<Epoch>,
    last_ack: Time,
    /// Smoothed RTT and smallest RTT in seconds.
    srtt: Option<f64>,
    min_rtt: f64,
    una: u64,
    snd_nxt: u64,
    /// No second cut and no growth before this byte is acknowledged.
    recover: Option<u64>,
    window_use: WindowUse,
    hystart: HyStart,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    t: f64,
    k: f64,
    /// Height of the plateau: W_max, or the first window of the stage if that is above it.
    plateau: f64,
    w_est: f64,
}

/// The delay test that ends slow start early.
#[derive(Clone, Copy, Debug, Default)]
struct HyStart {
    round_end: u64,
    /// Smallest RTT of the first samples of the round, in seconds, and their number.
    round_min: f64,
    n_samples: u32,
    /// Smallest RTT of all, in seconds; zero before the first.
    least: f64,
}

impl HyStart {
    /// Samples a round (Linux).
    const SAMPLES: u32 = 8;
    /// Smallest window, in segments, that is worth leaving slow start for (Linux).
    const LOW_WINDOW: f64 = 16.0;
    /// Largest rise of the delay that is waited for, in seconds (Linux).
    const MAX_RISE: f64 = 0.016;

    /// Whether the round's delay has risen by an eighth of the smallest, within bounds.
    fn delay_rises(&mut self, ack: &Ack<'_>, rtt: f64, rise: f64) -> bool {
        self.least = if self.least == 0.0 { rtt } else { self.least.min(rtt) };
        if self.round_end < ack.ack_seq {
            (self.round_end, self.round_min, self.n_samples) = (ack.snd_nxt, f64::INFINITY, 0);
        }
        if self.n_samples < Self::SAMPLES {
            self.n_samples += 1;
            self.round_min = self.round_min.min(rtt);
        }
        let threshold = (self.least / 8.0).min(Self::MAX_RISE).max(rise);
        self.n_samples == Self::SAMPLES && self.least + threshold < self.round_min
    }
}

impl Cubic {
    /// RFC 9438 eq. 1.
    fn w_cubic(&self, epoch: &Epoch, t: f64) -> f64 {
        let d = t - epoch.k;
        self.config.c * d * d * d + epoch.plateau
    }

    /// RFC 9438 eq. 2; after a timeout and at the end of a slow start without loss, K is 0 (sections 4.8, 4.10).
    fn new_epoch(&self) -> Epoch {
        let k = libm::cbrt((self.w_max - self.cwnd).max(0.0) / self.config.c);
        Epoch { t: 0.0, k, plateau: self.w_max.max(self.cwnd), w_est: self.cwnd }
    }

    /// Smoothed RTT (RFC 6298), and the smallest.
    fn measure(&mut self, rtt: f64) {
        if 0.0 < rtt {
            self.min_rtt = self.min_rtt.min(rtt);
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| srtt + (rtt - srtt) / 8.0));
        }
    }

    fn grow(&mut self, ack: &Ack<'_>, acked: f64) {
        if self.ssthresh <= self.cwnd {
            return self.avoid(ack, acked);
        }
        // Acknowledged bytes are counted (RFC 3465, L = 2).
        self.cwnd += acked.min(2.0);
        let rise = self.config.hystart_rise.as_secs_f64();
        if self.config.hystart
            && HyStart::LOW_WINDOW <= self.cwnd
            && self.hystart.delay_rises(ack, ack.rtt.as_secs_f64(), rise)
        {
            self.ssthresh = self.cwnd;
        }
    }

    /// Congestion avoidance (sections 4.2 to 4.5).
    fn avoid(&mut self, ack: &Ack<'_>, acked: f64) {
        let since_last = ack.now.saturating_sub(self.last_ack).min(ack.rtt).as_secs_f64();
        let mut epoch = match self.epoch {
            Some(epoch) => Epoch { t: epoch.t + since_last, ..epoch },
            None => self.new_epoch(),
        };
        let share = (acked / self.cwnd).min(1.0);
        match self.config.form {
            CubicForm::Rfc9438 => self.grow_as_rfc_9438(&mut epoch, share),
            CubicForm::Linux => self.grow_as_linux(&mut epoch, share),
        }
        self.epoch = Some(epoch);
    }

    /// For this share of the window, acknowledged.
    fn grow_as_rfc_9438(&mut self, epoch: &mut Epoch, share: f64) {
        // Section 4.3, eq. 4: from the window before the loss on, as steep as Reno.
        epoch.w_est += share * if epoch.w_est < self.cwnd_prior { self.alpha } else { 1.0 };
        if self.config.reno_friendly && self.w_cubic(epoch, epoch.t) < epoch.w_est {
            self.cwnd = self.cwnd.max(epoch.w_est);
        } else {
            // Sections 4.4 and 4.5: where the curve is a round trip from now, at most half as much again.
            let target = self.w_cubic(epoch, epoch.t + self.srtt.unwrap_or(0.0));
            self.cwnd += (target.clamp(self.cwnd, 1.5 * self.cwnd) - self.cwnd) * share;
        }
    }

    /// Linux's `bictcp_update`, whose `cnt` is the window over the growth a round trip.
    fn grow_as_linux(&mut self, epoch: &mut Epoch, share: f64) {
        let ahead = if self.min_rtt.is_finite() { self.min_rtt } else { 0.0 };
        let target = self.w_cubic(epoch, epoch.t + ahead);
        let mut growth = if self.cwnd < target { target - self.cwnd } else { 0.01 };
        if self.w_max == 0.0 {
            growth = growth.max(self.cwnd / 20.0);
        }
        if self.config.reno_friendly {
            epoch.w_est += self.alpha * share;
            growth = growth.max(epoch.w_est - self.cwnd);
        }
        self.cwnd += growth.min(0.5 * self.cwnd) * share;
    }

    /// Sections 4.6 and 4.7.
    fn reduce(&mut self) {
        let beta = self.config.beta;
        let gave_way = self.config.fast_convergence && self.cwnd < self.w_max;
        self.w_max = if gave_way { self.cwnd * (1.0 + beta) / 2.0 } else { self.cwnd };
        self.cwnd_prior = self.cwnd;
        self.ssthresh = (self.cwnd * beta).max(f64::from(self.config.min_window));
        self.cwnd = self.ssthresh;
        (self.epoch, self.recover) = (None, Some(self.snd_nxt));
    }

    fn is_recovering(&self) -> bool {
        self.recover.is_some_and(|recover| self.una < recover)
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::new((self.cwnd * self.mss) as u64), rate: self.line, timer: Time::MAX }
    }
}

impl Controller for Cubic {
    fn on_start(&mut self, now: Time) -> Allowance {
        self.last_ack = now;
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let acked = ack.newly_acked as f64 / self.mss;
        (self.una, self.snd_nxt) = (ack.ack_seq, ack.snd_nxt);
        self.measure(ack.rtt.as_secs_f64());
        // A mark on the last packet of the window that was cut is not news.
        let is_news = self.recover.is_none_or(|recover| recover < ack.ack_seq);
        if ack.ecn_marked && is_news {
            self.reduce();
        } else if !self.is_recovering() && self.window_use.limits(ack, self.cwnd * self.mss, self.mss) {
            self.grow(ack, acked);
        }
        self.last_ack = ack.now;
        self.allowance()
    }
    fn on_loss(&mut self, _: Time, loss: Loss) -> Allowance {
        match loss {
            // A mark has cut this window already.
            Loss::Gap if self.is_recovering() => {}
            Loss::Gap => self.reduce(),
            Loss::Timeout => {
                self.reduce();
                // Section 4.8: the loss window, growth at once, and the next plateau is where slow start ends.
                (self.cwnd, self.w_max, self.recover) = (1.0, 0.0, None);
            }
        }
        self.allowance()
    }
    fn on_idle(&mut self, _: Time, timeouts: u32) -> Option<Allowance> {
        let first = f64::from(self.config.initial_window);
        (self.cwnd, self.ssthresh) = after_idle(self.cwnd, self.ssthresh, first, timeouts);
        self.epoch = None;
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

    const RTT_NS: u64 = 100_000_000;

    /// A flow of 1,000-byte segments in congestion avoidance.
    fn cubic_at(cwnd: f64, w_max: f64, config: &CubicConfig) -> Cubic {
        let mut cubic = config.build(&flow_25g());
        (cubic.cwnd, cubic.w_max, cubic.cwnd_prior, cubic.ssthresh) = (cwnd, w_max, w_max, cwnd);
        cubic
    }

    /// One segment acknowledged at `ms`, with the window full.
    fn ack(cubic: &Cubic, ms: u64) -> Ack<'static> {
        let in_flight = (cubic.cwnd * 1_000.0) as u64;
        let ack_seq = cubic.una + 1_000;
        let now = Time::from_ms(ms);
        Ack { now, newly_acked: 1_000, in_flight, ..acked(ack_seq, RTT_NS, ack_seq + in_flight) }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6 * b
    }

    #[test]
    fn an_idle_window_halves_and_a_new_stage_begins() {
        let mut cubic = cubic_at(40.0, 50.0, &CubicConfig::default());
        let a = ack(&cubic, 1);
        cubic.on_ack(&a);
        assert!(cubic.epoch.is_some());
        cubic.cwnd = 40.0;
        assert_eq!(cubic.on_idle(Time::from_ms(9), 1).map(|a| a.cwnd), Some(Bytes::new(20_000)));
        assert_eq!((cubic.ssthresh, cubic.epoch.is_none()), (40.0, true));
        assert_eq!(cubic.on_idle(Time::from_ms(99), 9).map(|a| a.cwnd), Some(Bytes::new(10_000)));
    }

    #[test]
    fn slow_start_the_cut_and_the_timeout_by_hand() {
        let mut cubic = CubicConfig::default().build(&flow_25g());
        assert_eq!(cubic.on_start(Time::ZERO).cwnd, Bytes::new(10_000));
        let a = ack(&cubic, 1);
        assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(11_000));
        // Two segments at most for an acknowledgment; nothing while the window is not full.
        let a = Ack { newly_acked: 4_000, ..ack(&cubic, 2) };
        assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(13_000));
        let a = Ack { ack_seq: 14_000, in_flight: 3_000, ..ack(&cubic, 3) };
        assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(13_000));
        // 13 x 0.7 = 9.1 segments. No growth until what was in flight, up to byte 16,000, is acknowledged.
        assert_eq!(cubic.on_loss(Time::from_ms(3), Loss::Gap).cwnd, Bytes::new(9_100));
        assert_eq!((cubic.w_max, cubic.recover), (13.0, Some(16_000)));
        assert_eq!(cubic.on_loss(Time::from_ms(3), Loss::Gap).cwnd, Bytes::new(9_100));
        let a = Ack { ack_seq: 5_000, ..ack(&cubic, 4) };
        assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(9_100));
        // A timeout: one segment, slow start up to 9.1 x 0.7 = 6.37, and no memory of the plateau.
        assert_eq!(cubic.on_loss(Time::from_ms(9), Loss::Timeout).cwnd, Bytes::new(1_000));
        assert_eq!(cubic.w_max, 0.0);
        for ms in 10..16 {
            let a = ack(&cubic, ms);
            cubic.on_ack(&a);
        }
        assert_eq!(cubic.cwnd, 7.0);
        let a = ack(&cubic, 16);
        cubic.on_ack(&a);
        let epoch = cubic.epoch.expect("avoidance has begun");
        assert_eq!((epoch.k, epoch.plateau), (0.0, 7.0));
    }

    #[test]
    fn the_curve_by_hand() {
        // W_max 100 segments, cut to 70: K = cbrt(30/0.4) = 4.2171633 s.
        let mut cubic = cubic_at(70.0, 100.0, &CubicConfig { reno_friendly: false, ..CubicConfig::default() });
        let a = ack(&cubic, 1_000);
        cubic.on_ack(&a);
        let epoch = cubic.epoch.expect("avoidance has begun");
        assert!(close(epoch.k, 4.217_163_3));
        // Target at t = 0 + 0.1: 100 + 0.4 (0.1 - K)^3 = 100 - 0.4 x 4.1171633^3 = 72.083991; a seventieth of the way.
        assert!(close(cubic.w_cubic(&epoch, 0.1), 72.083_991));
        assert!(close(cubic.cwnd, 70.0 + 2.083_991 / 70.0));
        // The plateau at t = K, and as far above it at 2K as it began below.
        assert_eq!(cubic.w_cubic(&epoch, epoch.k), 100.0);
        assert!(close(cubic.w_cubic(&epoch, 2.0 * epoch.k), 130.0));
        // 50 ms later t is 0.05; 10 s later only a round trip, 0.1, is added: the rest is idle time.
        let a = ack(&cubic, 1_050);
        cubic.on_ack(&a);
        assert!(close(cubic.epoch.expect("it goes on").t, 0.05));
        let a = ack(&cubic, 11_050);
        cubic.on_ack(&a);
        assert!(close(cubic.epoch.expect("it goes on").t, 0.15));
        // Never by more than a half: far beyond the plateau, the target is 1.5 windows.
        let before = cubic.cwnd;
        cubic.epoch = Some(Epoch { t: 1_000.0, ..epoch });
        let a = ack(&cubic, 11_051);
        cubic.on_ack(&a);
        assert!(close(cubic.cwnd, before + 0.5));
    }

    #[test]
    fn the_reno_friendly_region_by_hand() {
        // alpha = 3 x 0.3/1.7 = 0.52941176. In 100 ms the cubic curve does not move: W_est rules.
        let mut cubic = cubic_at(7.0, 10.0, &CubicConfig::default());
        let a = ack(&cubic, 1);
        cubic.on_ack(&a);
        assert!(close(cubic.cwnd, 7.0 + 0.529_411_76 / 7.0));
        // Above the window before the loss the slope is Reno's.
        cubic.cwnd_prior = 7.0;
        let before = cubic.cwnd;
        let a = ack(&cubic, 1);
        cubic.on_ack(&a);
        assert!(close(cubic.cwnd, before + 1.0 / before));
    }

    #[test]
    fn growth_as_in_linux_by_hand() {
        let config = CubicConfig { form: CubicForm::Linux, ..CubicConfig::default() };
        // Below the plateau, one smallest RTT ahead: K = cbrt(30/0.4) s, 2.083991 segments a round trip as in RFC 9438.
        let mut cubic = cubic_at(70.0, 100.0, &CubicConfig { reno_friendly: false, ..config.clone() });
        let a = ack(&cubic, 1_000);
        cubic.on_ack(&a);
        assert!(close(cubic.cwnd, 70.0 + 2.083_991 / 70.0));
        // At the plateau, where the curve is flat: a hundredth of a segment a round trip.
        let mut cubic = cubic_at(100.0, 90.0, &CubicConfig { reno_friendly: false, ..config.clone() });
        cubic.epoch = Some(Epoch { t: 0.0, k: 0.1, plateau: 100.0, w_est: 100.0 });
        let a = ack(&cubic, 0);
        cubic.on_ack(&a);
        assert!(close(cubic.cwnd, 100.0 + 0.01 / 100.0));
        // Without a plateau, after a timeout: a twentieth of a segment for each.
        let mut cubic = cubic_at(40.0, 0.0, &CubicConfig { reno_friendly: false, ..config.clone() });
        let a = ack(&cubic, 0);
        cubic.on_ack(&a);
        assert!(close(cubic.cwnd, 40.05));
        // Above the window before the loss Reno's slope stays 0.52941176: W_est is 8 + 0.52941176/7, 1.0756303 above.
        let mut cubic = cubic_at(7.0, 10.0, &config);
        (cubic.cwnd_prior, cubic.epoch) = (7.0, Some(Epoch { t: 0.0, k: 1.95743, plateau: 10.0, w_est: 8.0 }));
        let a = ack(&cubic, 0);
        cubic.on_ack(&a);
        assert!(close(cubic.cwnd, 7.0 + (1.0 + 0.529_411_76 / 7.0) / 7.0), "{}", cubic.cwnd);
    }

    #[test]
    fn losing_ground_lowers_the_plateau() {
        let mut cubic = cubic_at(80.0, 100.0, &CubicConfig::default());
        cubic.on_loss(Time::ZERO, Loss::Gap);
        // 80 x 1.7/2 and 80 x 0.7.
        assert_eq!((cubic.w_max, cubic.cwnd), (80.0 * 1.7 / 2.0, 56.0));
        // With the β of old code and without fast convergence: 80 and 64.
        let old = CubicConfig { beta: 0.8, fast_convergence: false, ..CubicConfig::default() };
        let mut cubic = cubic_at(80.0, 100.0, &old);
        cubic.on_loss(Time::ZERO, Loss::Gap);
        assert_eq!((cubic.w_max, cubic.cwnd), (80.0, 64.0));
    }

    #[test]
    fn marks_cut_once_a_window() {
        let mut cubic = cubic_at(20.0, 20.0, &CubicConfig { ecn: true, ..CubicConfig::default() });
        let marked = |cubic: &Cubic| Ack { ecn_marked: true, ..ack(cubic, 1) };
        let a = marked(&cubic);
        assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(14_000));
        // Bytes up to 21,000 were in flight. The loss of one of them is told by its mark already.
        assert_eq!(cubic.recover, Some(21_000));
        cubic.on_loss(Time::ZERO, Loss::Gap);
        for ack_seq in [2_000, 21_000] {
            let a = Ack { ack_seq, ..marked(&cubic) };
            cubic.on_ack(&a);
            assert!(cubic.cwnd < 14.1, "{}", cubic.cwnd);
        }
        let a = marked(&cubic);
        assert!(cubic.on_ack(&a).cwnd < Bytes::new(10_000));
    }

    #[test]
    fn hystart_leaves_slow_start_on_rising_delay() {
        let config = CubicConfig { hystart: true, initial_window: 16, ..CubicConfig::default() };
        let mut cubic = config.build(&flow_25g());
        // The first round has 100 ms; the bound is an eighth, 12.5 ms. Eight samples of the next round make the test.
        for (n, rtt_ms, ends) in [(17, 100, false), (7, 113, false), (1, 113, true)] {
            for _ in 0..n {
                let a = Ack { rtt: Time::from_ms(rtt_ms), ..ack(&cubic, 1) };
                cubic.on_ack(&a);
            }
            assert_eq!(cubic.ssthresh < f64::INFINITY, ends, "{cubic:?}");
        }
    }
}
