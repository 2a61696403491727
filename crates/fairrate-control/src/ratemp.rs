//! `ratemp`: RateMP. J. Han, K. Xue, W. Wang, R. Li, Q. Sun, J. Lu, "RateMP: Optimizing Bandwidth Utilization with High
//! Burst Tolerance in Data Center Networks", Algorithm 1 and §III. Switches mark by RED on the instantaneous queue with
//! Kmin = 0, Kmax = 40 KB and Pmax = 1 (eq. 5); their thresholds are the scenario's, `kmax` here must agree with them.
//!
//! | paper          | here                   | unit                     |
//! |----------------|------------------------|--------------------------|
//! | x_j            | `x`                    | full packets per second  |
//! | Σ_j x_j        | `total`                | full packets per second  |
//! | w_j            | `w`, x_j · rtt         | packets                  |
//! | ss_j           | `ss`                   | packets                  |
//! | α_total        | `alpha_total`          | full packets per second  |
//! | β_j, F, γ      | `beta`, `fraction`, `g` | 1                       |
//! | c              | `capacity`             | bits per second          |
//! | new_rtt_j      | `rtt`                  | seconds                  |
//! | base_rtt_j     | `base_rtt`             | seconds                  |
//! | K_max          | `kmax`                 | bytes                    |
//! | min_rate       | `min_rate`             | packets per base RTT     |
//!
//! Readings. The window is x·base_rtt: with the present RTT, as printed, w = x·rtt grows with the queue it makes and
//! oscillates (`window = "rtt"` shows it); the same RTT is in x·rtt > 1 and in the steps. An acknowledgment changes x
//! by at most the step of a round trip: as printed, one sample of an empty queue after 100 round trips changes x by c,
//! and a few dozen such subflows at one bottleneck oscillate (`low_rate_step = "printed"` shows it). α_total has the
//! unit of x, so that α_total / Σx is a marking probability, and c is one capacity for all subflows. §III-B's p = α·β
//! is §III-C's β / α_total with α = 1 / α_total. There is a step for each packet acknowledged, so that delayed
//! acknowledgments cost nothing. Eq. 7 is in bytes, divided by Kmax and at most 1, like a marking probability.
//! Algorithm 1 averages marks only after slow start, so that marks could never end slow start: here they are always
//! averaged. In slow start x = w / rtt with the present RTT, so that the queue made by slow start does not count as
//! rate. A window is whole packets, rounded down.
//!
//! β changes "once per RTT", and below a packet per round trip most round trips have no acknowledgment. As §III-D says
//! that β then needs several acknowledgments, each changes it once. So the paper's own rules react late there, in spite
//! of its claim: delay decides only if β < 2·α_total/Σx (lines 15 to 19), and β loses a sixteenth with each packet, 100
//! round trips apart. With `beta_rounds = "elapsed"` all round trips count; then one packet decides about a path.
//!
//! Eq. 6 also makes the law slow to settle: Theorem 1 sets β to the present queue. With the average in it
//! the rate law is unstable; windows stabilise it, with little damping (see the tests). After an arrival at a full link
//! rates fall far below it, and rise again by α_total per round trip.
//!
//! Left open by the paper: ten packets at first (RFC 6928), no first threshold. A gap ends slow start and cuts nothing,
//! as marks precede losses by far. A timeout leaves one packet per base RTT and slow start up to half of the old
//! window; but it never raises a rate that is lower. Only a subflow limited by its window or rate grows (RFC 7661). An
//! idle subflow keeps x. A base RTT is discarded after one to two `base_rtt_window`; the first is a handshake's. The
//! ns-3 artifact has no RateMP: both profiles are the same.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{ParamKind, ParamType, RawValue, SetParamError, algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, FlowContext, Loss};
use crate::coupled::{Alone, CoupledController, CoupledSpec, PathState};
use crate::needs::{MarkedQueue, Needs, NetworkNeeds, RedDefault};
use crate::port::NoPort;

choice! {
    /// The round-trip time that turns a rate into a window.
    pub enum RateMpWindow {
        /// The smallest measured: the window does not feed on its own queue.
        BaseRtt = "base-rtt",
        /// The latest, as Algorithm 1 is printed.
        Rtt = "rtt",
    }
}

choice! {
    /// The largest step of one acknowledgment in under-rate control.
    pub enum RateMpLowRateStep {
        /// The step of a round trip.
        RoundTrip = "round-trip",
        /// The step of the time since the last acknowledgment, as Algorithm 1 is printed: up to 1 / min_rate round
        /// trips.
        Printed = "printed",
    }
}

choice! {
    /// The round trips that update β.
    pub enum RateMpBetaRounds {
        /// The round trips with an acknowledgment.
        Acknowledged = "acknowledged",
        /// All round trips: those without an acknowledgment get the marks of the next acknowledgment.
        Elapsed = "elapsed",
    }
}

choice! {
    /// The round-trip times of which the base RTT is the smallest.
    pub enum RateMpBaseRtt {
        /// The RTTs of acknowledgments and of a handshake through an empty network, which is the path's base RTT.
        Handshake = "handshake",
        /// Only the RTTs of acknowledgments.
        Data = "data",
    }
}

/// The paper's c: the capacity of the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateMpCapacity {
    /// The rate of the sender's NIC.
    LineRate,
    /// This rate.
    Rate(Rate),
}

impl ParamType for RateMpCapacity {
    const KIND: ParamKind = ParamKind::Rate;
    fn from_raw(raw: RawValue<'_>, range: Option<(f64, f64)>) -> Result<Self, SetParamError> {
        if raw == RawValue::Text("line-rate") {
            return Ok(Self::LineRate);
        }
        Rate::from_raw(raw, range).map(Self::Rate)
    }
    fn to_toml(&self) -> String {
        match self {
            Self::LineRate => "\"line-rate\"".to_owned(),
            Self::Rate(rate) => rate.to_toml(),
        }
    }
}

algorithm_config! {
    /// Parameters of RateMP.
    pub struct RateMpConfig {
        /// Bottleneck capacity c, a rate or `"line-rate"`; the same for all subflows (RateMP §V: c is the link
        /// bandwidth).
        capacity: RateMpCapacity = RateMpCapacity::LineRate;
        /// α_total as a share of c: what a flow adds per RTT (RateMP §V: 1/100).
        alpha: f64 = 0.01, in 0.0..=1.0;
        /// Gain of the average of marks (RateMP §III-B: 1/16).
        g: f64 = 1.0 / 16.0, in 0.0..=1.0;
        /// Queue at which every packet is marked, as the switches have it; for delay detection (RateMP §V-B: 40 KB,
        /// §V-A: 150 KB).
        kmax: Bytes = Bytes::new(40_000);
        /// Smallest rate in packets per base RTT (RateMP §III-D: 0.01).
        min_rate: f64 = 0.01, in 0.000_001..=1.0;
        /// The RTT a rate is multiplied with for a window (Algorithm 1 line 21 has `"rtt"`, which cycles).
        window: RateMpWindow = RateMpWindow::BaseRtt;
        /// The largest step of an acknowledgment below a packet per RTT (Algorithm 1 lines 13 and 14 have `"printed"`,
        /// which cycles).
        low_rate_step: RateMpLowRateStep = RateMpLowRateStep::RoundTrip;
        /// Round trips that move β (RateMP §III-D: those with acknowledgments; §III-B, "once per RTT", may mean
        /// `"elapsed"`).
        beta_rounds: RateMpBetaRounds = RateMpBetaRounds::Acknowledged;
        /// RTTs of which the base is the smallest (RateMP §III-B: those measured; our choice: a handshake's too).
        base_rtt: RateMpBaseRtt = RateMpBaseRtt::Handshake;
        /// Least time for which a measured base RTT is kept; the most is twice that (our choice; BBR has 10 s).
        base_rtt_window: Time = Time::from_ms(10_000);
        /// First window in packets (RFC 6928; the paper has none).
        initial_window: u32 = 10, in 1..=1_000_000;
    }
}

impl AlgorithmSpec for RateMpConfig {
    type Controller = RateMp;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        // Section V-B, or the 150 KB of section V-A by `kmax`: delay and marks have the same scale.
        let red =
            RedDefault { kmin: Bytes::ZERO, kmax: self.kmax, pmax: 1.0, per_rate: None, queue: MarkedQueue::Left };
        Needs { network: NetworkNeeds { ecn: true, red: Some(red), ..NetworkNeeds::NOTHING }, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> RateMp {
        Alone(self.build_connection(std::slice::from_ref(flow)))
    }
}

impl CoupledSpec for RateMpConfig {
    type Connection = RateMpConnection;
    fn build_connection(&self, subflows: &[FlowContext]) -> RateMpConnection {
        let slowest = subflows.iter().map(|f| f.line_rate).min().unwrap_or(Rate::MAX);
        let capacity = match self.capacity {
            RateMpCapacity::LineRate => slowest,
            RateMpCapacity::Rate(rate) => rate,
        };
        let subflows = subflows.iter().map(|f| Subflow::new(self, f, capacity)).collect();
        RateMpConnection { kmax_s: self.kmax.as_f64() / capacity.as_bytes_per_sec(), config: self.clone(), subflows }
    }
}

/// Number of round trips after which nothing is left of β, at a gain of 1/16.
const MOST_ROUNDS: u64 = 1_000;

/// A flow under RateMP: a connection of one subflow.
pub type RateMp = Alone<RateMpConnection>;

/// A connection under RateMP.
#[derive(Clone, Debug)]
pub struct RateMpConnection {
    config: RateMpConfig,
    /// Time in which the bottleneck serves Kmax, in seconds.
    kmax_s: f64,
    subflows: Vec<Subflow>,
}

#[derive(Clone, Debug)]
struct Subflow {
    line_rate: Rate,
    alpha_total: f64,
    mtu: u64,
    wire_bits: f64,
    /// Set once the subflow has started. Only subflows that have started and are alive count in Σx.
    has_started: bool,
    is_alive: bool,
    in_slow_start: bool,
    /// The window in slow start, in packets.
    w: f64,
    ss: f64,
    x: f64,
    marks: Marks,
    rtt: f64,
    smallest: WindowedMin,
    base_rtt: f64,
}

/// β_j, and the marks counted in the present round trip.
#[derive(Clone, Copy, Debug)]
struct Marks {
    beta: f64,
    n_acks: u32,
    n_marked: u32,
    /// The last byte of the round trip, which ends when a later byte is acknowledged.
    end: u64,
    /// Time of the last update of β; [`Time::MAX`] before the first.
    at: Time,
}

/// The smallest sample of the last one to two windows.
#[derive(Clone, Copy, Debug)]
struct WindowedMin {
    since: Time,
    present: f64,
    last: f64,
}

impl CoupledController for RateMpConnection {
    fn on_start(&mut self, _: Time, subflow: usize) -> Allowance {
        self.subflows[subflow].has_started = true;
        self.subflows[subflow].allowance(&self.config)
    }

    /// Handles an acknowledgment by Algorithm 1.
    fn on_ack(&mut self, subflow: usize, ack: &Ack<'_>) -> Allowance {
        let total = self.total();
        let (config, s) = (&self.config, &mut self.subflows[subflow]);
        let is_limited = s.is_limited(config, ack);
        s.marks.count(ack, config.g, config.beta_rounds);
        s.measure(config, ack);
        let n_acked = ack.newly_acked as f64 / s.mtu as f64;
        if ack.newly_acked == 0 {
            // Not a new acknowledgment (line 1).
        } else if s.in_slow_start {
            s.slow_start(n_acked, total, is_limited);
        } else {
            s.adjust(config, self.kmax_s, n_acked, total, is_limited);
        }
        s.allowance(config)
    }

    fn on_loss(&mut self, subflow: usize, _: Time, loss: Loss) -> Allowance {
        let (config, s) = (&self.config, &mut self.subflows[subflow]);
        match loss {
            Loss::Gap => s.in_slow_start = false,
            Loss::Timeout => s.on_timeout(config),
        }
        s.allowance(config)
    }

    fn on_timer(&mut self, subflow: usize, _: Time) -> Allowance {
        self.subflows[subflow].allowance(&self.config)
    }

    /// Records the state of a subflow's path. The rate of a dead path does not count; a path that is alive again
    /// restarts with one packet.
    fn on_path(&mut self, subflow: usize, _: Time, state: PathState) {
        let is_alive = state == PathState::Alive;
        let s = &mut self.subflows[subflow];
        if is_alive && !s.is_alive && s.has_started {
            s.enter_slow_start();
        }
        s.is_alive = is_alive;
    }
}

impl RateMpConnection {
    /// Returns Σ_j x_j over the subflows that are in use.
    fn total(&self) -> f64 {
        self.subflows.iter().filter(|s| s.has_started && s.is_alive).map(|s| s.x).sum()
    }
}

impl Subflow {
    fn new(config: &RateMpConfig, flow: &FlowContext, capacity: Rate) -> Self {
        let wire_bits = flow.wire_mtu.as_f64().max(1.0) * 8.0;
        let path_rtt = flow.path_base_rtt.max(Time::from_ns(1)).as_secs_f64();
        let handshake = match config.base_rtt {
            RateMpBaseRtt::Handshake => path_rtt,
            RateMpBaseRtt::Data => f64::INFINITY,
        };
        let w = f64::from(config.initial_window);
        Self {
            line_rate: flow.line_rate,
            alpha_total: config.alpha * capacity.as_bps_f64() / wire_bits,
            mtu: flow.mtu.as_u64().max(1),
            wire_bits,
            has_started: false,
            is_alive: true,
            in_slow_start: true,
            w,
            ss: f64::INFINITY,
            x: w / path_rtt,
            marks: Marks::NONE,
            rtt: path_rtt,
            smallest: WindowedMin { since: flow.start, present: handshake, last: f64::INFINITY },
            base_rtt: path_rtt,
        }
    }

    /// Handles `n_acked` packets in slow start (lines 3 to 6).
    fn slow_start(&mut self, n_acked: f64, total: f64, is_limited: bool) {
        if is_limited {
            self.w += n_acked.min(2.0);
        }
        self.x = self.w / self.rtt;
        if self.alpha_total < self.marks.beta * total || self.ss < self.w {
            self.in_slow_start = false;
        }
    }

    /// Changes x by the steps of lines 10 to 20.
    fn adjust(&mut self, config: &RateMpConfig, kmax_s: f64, n_acked: f64, total: f64, is_limited: bool) {
        let packets = self.packets(config);
        let delta1 = step(self.alpha_total, total, self.marks.beta, packets);
        let delta = if 1.0 < packets {
            delta1
        } else {
            let congestion = delay_congestion(self.rtt, self.base_rtt, kmax_s);
            cooperative_step(delta1, step(self.alpha_total, total, congestion, packets))
        };
        let n_most = match config.low_rate_step {
            RateMpLowRateStep::RoundTrip => packets,
            RateMpLowRateStep::Printed => packets.max(1.0),
        };
        if delta < 0.0 || is_limited {
            self.x += delta * n_acked.min(n_most);
        }
        self.x = self.x.max(config.min_rate / self.base_rtt);
    }

    /// Returns the allowance of lines 4 and 21 to 25: a window of whole packets; below one packet, a paced rate with a
    /// single packet in flight.
    fn allowance(&self, config: &RateMpConfig) -> Allowance {
        let packets = if self.in_slow_start { self.w } else { self.packets(config) };
        if self.in_slow_start || 1.0 < packets {
            let cwnd = Bytes::new((packets as u64).max(1).saturating_mul(self.mtu));
            return Allowance { cwnd, rate: self.line_rate, timer: Time::MAX };
        }
        let paced = Rate::from_bps_f64(self.x * self.wire_bits).clamp(Rate::from_bps(1), self.line_rate);
        Allowance { cwnd: Bytes::new(self.mtu), rate: paced, timer: Time::MAX }
    }

    /// Updates RTT and base RTT (line 9).
    fn measure(&mut self, config: &RateMpConfig, ack: &Ack<'_>) {
        if ack.rtt == Time::ZERO {
            return;
        }
        self.rtt = ack.rtt.max(Time::from_ns(1)).as_secs_f64();
        self.base_rtt = self.smallest.update(ack.now, self.rtt, config.base_rtt_window);
    }

    /// Returns the round-trip time in x·rtt, in seconds.
    fn window_rtt(&self, config: &RateMpConfig) -> f64 {
        match config.window {
            RateMpWindow::BaseRtt => self.base_rtt,
            RateMpWindow::Rtt => self.rtt,
        }
    }

    /// Returns x_j·rtt_j, in packets: above 1 there is window control, otherwise under-rate control.
    fn packets(&self, config: &RateMpConfig) -> f64 {
        self.x * self.window_rtt(config)
    }

    /// Returns `true` if the window or rate in force limits the subflow, and not the application or the NIC.
    fn is_limited(&self, config: &RateMpConfig, ack: &Ack<'_>) -> bool {
        let allowed = self.allowance(config);
        if allowed.rate < self.line_rate {
            return !ack.app_limited;
        }
        allowed.cwnd.as_u64() <= ack.in_flight.saturating_add(ack.newly_acked).saturating_add(self.mtu)
    }

    fn on_timeout(&mut self, config: &RateMpConfig) {
        let packets = if self.in_slow_start { self.w } else { self.packets(config) };
        if packets <= 1.0 {
            return;
        }
        self.ss = (packets / 2.0).max(2.0);
        self.enter_slow_start();
    }

    fn enter_slow_start(&mut self) {
        self.in_slow_start = true;
        self.w = 1.0;
        self.x = 1.0 / self.base_rtt;
    }
}

impl Marks {
    const NONE: Self = Self { beta: 0.0, n_acks: 0, n_marked: 0, end: 0, at: Time::MAX };

    /// Counts an acknowledgment and updates β by eq. (6), once per round trip. Below a packet per round trip that is
    /// once per acknowledgment, or once per round trip that fits into the time since the last update.
    fn count(&mut self, ack: &Ack<'_>, g: f64, rounds: RateMpBetaRounds) {
        self.n_acks += 1;
        self.n_marked += u32::from(ack.ecn_marked);
        if ack.ack_seq <= self.end {
            return;
        }
        let fraction = f64::from(self.n_marked) / f64::from(self.n_acks);
        let elapsed = ack.now.saturating_sub(self.at).as_ps().checked_div(ack.rtt.as_ps()).unwrap_or(1);
        let n = match rounds {
            RateMpBetaRounds::Acknowledged => 1,
            RateMpBetaRounds::Elapsed => elapsed.clamp(1, MOST_ROUNDS),
        };
        for _ in 0..n {
            self.beta = (1.0 - g) * self.beta + g * fraction;
        }
        (self.n_acks, self.n_marked, self.end, self.at) = (0, 0, ack.snd_nxt, ack.now);
    }
}

/// Returns the step for one acknowledged packet (eqs. 10 and 11): Σx / (x·rtt) · (α_total / Σx - congestion), where
/// congestion is β_j or the congestion by delay. All packets of a round trip change x by α_total - Σx · congestion (eq.
/// 9).
fn step(alpha_total: f64, total: f64, congestion: f64, packets: f64) -> f64 {
    (alpha_total - total * congestion) / packets
}

/// Returns the step of lines 15 to 19: that of delay if the mean of both steps is positive, otherwise that of marks.
fn cooperative_step(delta1: f64, delta2: f64) -> f64 {
    if f64::midpoint(delta1, delta2) <= 0.0 { delta1 } else { delta2 }
}

/// Returns eq. (7) over Kmax: the queue that corresponds to the delay beyond the base RTT, as a fraction of Kmax, which
/// takes `kmax_s` seconds to serve.
fn delay_congestion(rtt: f64, base_rtt: f64, kmax_s: f64) -> f64 {
    ((rtt - base_rtt) / kmax_s).clamp(0.0, 1.0)
}

impl WindowedMin {
    fn update(&mut self, now: Time, sample: f64, window: Time) -> f64 {
        let age = now.saturating_sub(self.since);
        if window <= age {
            self.last = if age < window.saturating_add(window) { self.present } else { f64::INFINITY };
            (self.present, self.since) = (f64::INFINITY, now);
        }
        self.present = self.present.min(sample);
        self.present.min(self.last)
    }
}

#[cfg(test)]
mod tests;
