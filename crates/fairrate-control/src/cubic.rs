//! `cubic`: CUBIC. L. Xu, S. Ha, I. Rhee, V. Goel, L. Eggert, "CUBIC for Fast and Long-Distance Networks", RFC 9438.
//! The transport recovers lost data (RFC 8985); this module has the window alone. `form = "linux"`: growth as in
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
//! Readings: a loss cuts the window, not the amount in flight (section 4.6 allows it, Linux does it): the window grows
//! only while it limits the flow, so the two differ little. Time in which it does not limit the flow, and gaps between
//! acknowledgments longer than a round trip, do not count as t (section 5.8). The first window is that of RFC 6928. A
//! window that lies above the cubic curve keeps its size; section 4.3's W_est never lowers it either. HyStart is off:
//! its thresholds are milliseconds, which datacenter delays never reach. The code has Linux's test for rising delay
//! and, as an option, its test for trains of acknowledgments; RFC 9406 is absent. An ECN mark reduces the window as a
//! loss does, at most once per window. After idle time the window halves for each timeout, down to the first window
//! (RFC 2861, Linux), and a new stage begins.
//!
//! Linux differs in growth: W_est always rises with α, never with 1 (so that random losses leave it a ninth less); the
//! curve is evaluated one smallest RTT ahead; a window above the curve grows by a hundredth of a segment per round
//! trip, and a window without a plateau by at least a twentieth of a segment per acknowledged segment; W_est raises the
//! window within a round trip instead of at once.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::limits::{WindowUse, after_idle};
use crate::needs::{FeedbackNeeds, Needs, NetworkNeeds};
use crate::port::NoPort;

choice! {
    /// The growth of the window in congestion avoidance.
    pub enum CubicForm {
        /// The growth of RFC 9438.
        Rfc9438 = "rfc9438",
        /// The growth of Linux and ns-3, which follow RFC 8312.
        Linux = "linux",
    }
}

algorithm_config! {
    /// Parameters of CUBIC.
    pub struct CubicConfig {
        /// Form of the window's growth in congestion avoidance.
        form: CubicForm = CubicForm::Rfc9438, ns3 = CubicForm::Linux;
        /// Scale of the cubic curve, C, in segments per cubed second (RFC 9438 §5.1: 0.4).
        c: f64 = 0.4, in 0.000_001..=1_000_000.0;
        /// Part of the window that is left after a loss, beta_cubic (RFC 9438 §4.6: 0.7; ns-2's and the first Linux
        /// code: 0.8).
        beta: f64 = 0.7, in 0.1..=0.99;
        /// If true, a flow that loses ground aims lower still, to make room (RFC 9438 §4.7).
        fast_convergence: bool = true;
        /// If true, the window is at least Reno's (RFC 9438 §4.3).
        reno_friendly: bool = true;
        /// First window in segments (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
        /// Smallest window in segments after a loss that recovery repairs (RFC 9438 §4.6).
        min_window: u32 = 2, in 1.0..=1_000_000.0;
        /// If true, switches mark, and a mark cuts the window (RFC 3168; RFC 9438 §4.6).
        ecn: bool = false;
        /// If true, rising delay ends slow start (Linux: on; off here, since its thresholds are milliseconds).
        hystart: bool = false;
        /// Smallest rise of the delay that ends slow start, for `hystart = true` (Linux: 4 ms).
        hystart_rise: Time = Time::from_ms(4);
        /// If true, a train of acknowledgments ends slow start too when it lasts for half the smallest round trip and
        /// what Linux allows for aggregation, for `hystart = true` (Linux: on).
        hystart_trains: bool = false;
        /// If true, the connection was in use before the flow, so that the path's idle round-trip time is known from
        /// the start.
        knows_path: bool = false;
    }
}

impl AlgorithmSpec for CubicConfig {
    type Controller = Cubic;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds { ecn: self.ecn, ..NetworkNeeds::NOTHING },
            feedback: FeedbackNeeds { prr: true, ..FeedbackNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Cubic {
        let known = self.knows_path.then(|| flow.path_base_rtt.as_secs_f64()).filter(|rtt| 0.0 < *rtt);
        Cubic {
            line: flow.line_rate,
            mss: flow.mtu.as_f64().max(1.0),
            // Section 4.3: the slope at which cuts by β give Reno's average window.
            alpha: 3.0 * (1.0 - self.beta) / (1.0 + self.beta),
            cwnd: f64::from(self.initial_window),
            ssthresh: f64::INFINITY,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            last_ack: flow.start,
            srtt: known,
            min_rtt: known.unwrap_or(f64::INFINITY),
            una: 0,
            snd_nxt: 0,
            recover: None,
            window_use: WindowUse::default(),
            hystart: self.hystart.then(|| Box::new(HyStart { least: known.unwrap_or(0.0), ..HyStart::default() })),
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
    /// The present stage of congestion avoidance; `None` in slow start and recovery.
    epoch: Option<Epoch>,
    last_ack: Time,
    /// Smoothed RTT and smallest RTT in seconds.
    srtt: Option<f64>,
    min_rtt: f64,
    una: u64,
    snd_nxt: u64,
    /// End of the recovery: no second cut and no growth before this byte is acknowledged.
    recover: Option<u64>,
    window_use: WindowUse,
    /// The state of HyStart, boxed because most flows have none.
    hystart: Option<Box<HyStart>>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    t: f64,
    k: f64,
    /// Height of the plateau: W_max, or the first window of the stage if that is larger.
    plateau: f64,
    w_est: f64,
}

/// The tests that end slow start early.
#[derive(Clone, Copy, Debug, Default)]
struct HyStart {
    round_end: u64,
    /// Smallest RTT of the first samples of the round, in seconds, and their number.
    round_min: f64,
    n_samples: u32,
    /// Smallest RTT of all, in seconds; zero before the first.
    least: f64,
    train: AckTrain,
}

impl HyStart {
    /// Number of samples per round (Linux).
    const SAMPLES: u32 = 8;
    /// Smallest window, in segments, at which HyStart may end slow start (Linux).
    const LOW_WINDOW: f64 = 16.0;
    /// Upper bound of the delay threshold, in seconds (Linux).
    const MAX_RISE: f64 = 0.016;

    /// Updates the round and the smallest RTT by an acknowledgment. Called at every window, since rounds count from the
    /// start.
    fn look(&mut self, ack: &Ack<'_>, rtt: f64) {
        self.train.look(ack);
        self.least = if self.least == 0.0 { rtt } else { self.least.min(rtt) };
        if self.round_end < ack.ack_seq {
            (self.round_end, self.round_min, self.n_samples) = (ack.snd_nxt, f64::INFINITY, 0);
        }
    }

    /// Returns `true` if the round's delay is above the smallest RTT by more than an eighth of it, within bounds.
    fn delay_rises(&mut self, rtt: f64, rise: f64) -> bool {
        if self.n_samples < Self::SAMPLES {
            self.n_samples += 1;
            self.round_min = self.round_min.min(rtt);
        }
        let threshold = (self.least / 8.0).min(Self::MAX_RISE).max(rise);
        self.n_samples == Self::SAMPLES && self.least + threshold < self.round_min
    }
}

/// The test for trains of acknowledgments that ends slow start early: a long train fills the path.
#[derive(Clone, Copy, Debug, Default)]
struct AckTrain {
    round_end: u64,
    round_start: Time,
    /// The last acknowledgment of the train.
    last: Time,
}

impl AckTrain {
    /// Longest gap in a train (Linux).
    const DELTA: Time = Time::from_ms(2);
    /// Linux's allowance for aggregation, in bytes: four of the largest segments at the pacing rate, at most a
    /// millisecond.
    const AGGREGATED: f64 = 4.0 * 65_536.0;
    const MAX_ALLOWED: f64 = 0.001;

    fn look(&mut self, ack: &Ack<'_>) {
        if self.round_end < ack.ack_seq {
            (self.round_end, self.round_start, self.last) = (ack.snd_nxt, ack.now, ack.now);
        }
    }

    /// Returns `true` if the train has lasted for more than `seconds` since the round began.
    fn is_longer(&mut self, now: Time, seconds: f64) -> bool {
        if Self::DELTA < now.saturating_sub(self.last) {
            return false;
        }
        self.last = now;
        seconds < now.saturating_sub(self.round_start).as_secs_f64()
    }
}

impl Cubic {
    /// Returns W_cubic(t), RFC 9438 eq. 1.
    fn w_cubic(&self, epoch: &Epoch, t: f64) -> f64 {
        let d = t - epoch.k;
        self.config.c * d * d * d + epoch.plateau
    }

    /// Returns a new stage with K by RFC 9438 eq. 2. After a timeout and at the end of a slow start without loss, K is
    /// 0 (sections 4.8, 4.10).
    fn new_epoch(&self) -> Epoch {
        let k = libm::cbrt((self.w_max - self.cwnd).max(0.0) / self.config.c);
        Epoch { t: 0.0, k, plateau: self.w_max.max(self.cwnd), w_est: self.cwnd }
    }

    /// Updates the smoothed RTT (RFC 6298) and the smallest RTT.
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
        if self.fills_the_path(ack) {
            self.ssthresh = self.cwnd;
        }
    }

    /// Returns `true` if HyStart ends slow start, as in Linux without pacing.
    fn fills_the_path(&mut self, ack: &Ack<'_>) -> bool {
        let Some(hystart) = &mut self.hystart else { return false };
        let rtt = ack.rtt.as_secs_f64();
        hystart.look(ack, rtt);
        if self.cwnd < HyStart::LOW_WINDOW {
            return false;
        }
        let pacing = 2.0 * self.cwnd * self.mss / self.srtt.unwrap_or(f64::INFINITY);
        let allowed = (AckTrain::AGGREGATED / pacing).min(AckTrain::MAX_ALLOWED);
        let is_train = self.config.hystart_trains && hystart.train.is_longer(ack.now, 0.5 * (self.min_rtt + allowed));
        let rise = self.config.hystart_rise.as_secs_f64();
        hystart.delay_rises(rtt, rise) || is_train
    }

    /// Grows the window in congestion avoidance (sections 4.2 to 4.5).
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

    /// Grows the window by RFC 9438, with the fraction `share` of it acknowledged.
    fn grow_as_rfc_9438(&mut self, epoch: &mut Epoch, share: f64) {
        // Section 4.3, eq. 4: above the window before the loss, as steep as Reno.
        epoch.w_est += share * if epoch.w_est < self.cwnd_prior { self.alpha } else { 1.0 };
        if self.config.reno_friendly && self.w_cubic(epoch, epoch.t) < epoch.w_est {
            self.cwnd = self.cwnd.max(epoch.w_est);
        } else {
            // Sections 4.4 and 4.5: the curve a round trip from now, at most 1.5 windows.
            let target = self.w_cubic(epoch, epoch.t + self.srtt.unwrap_or(0.0));
            self.cwnd += (target.clamp(self.cwnd, 1.5 * self.cwnd) - self.cwnd) * share;
        }
    }

    /// Grows the window as Linux's `bictcp_update`, whose `cnt` is the window over the growth per round trip.
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

    /// Reduces the window on congestion (sections 4.6 and 4.7).
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
        // A mark on the last packet of the window that was cut is not a new mark.
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
                // Section 4.8: the loss window, growth at once, and the next plateau is at the end of slow start.
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
mod tests;
