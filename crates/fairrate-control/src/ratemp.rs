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
//! cycles (`window = "rtt"` shows it); the same RTT is in x·rtt > 1 and in the steps. An acknowledgment moves x by a
//! round trip's step at most: as printed, one sample of an empty queue after 100 round trips moves x by c, and a few dozen
//! such subflows at one bottleneck cycle (`low_rate_step = "printed"` shows it). α_total has the unit of x, so that
//! α_total / Σx is a marking probability, and c is one capacity for all subflows. §III-B's p = α·β is §III-C's β / α_total
//! with α = 1 / α_total. A step is made for each packet acknowledged, so that delayed acknowledgments cost nothing. Eq. 7
//! in bytes, over Kmax at most 1, as a marking probability is. Algorithm 1 averages marks only after slow start, which
//! then could never end by them: here always. x = w / rtt in slow start with the present RTT, so that what slow start has
//! queued is not taken for rate. A window is whole packets, rounded down.
//!
//! Left open by the paper: ten packets at first (RFC 6928), no first threshold. A gap ends slow start and cuts nothing,
//! as marks come long before losses. A timeout leaves one packet a base RTT and slow start up to half of what was; but it
//! never raises a rate that is lower. Only a subflow whose window or rate limits it grows (RFC 7661). An idle subflow
//! keeps x. A base RTT is forgotten after one to two `base_rtt_window`; the first is a handshake's.
//! The ns-3 artifact has no RateMP: both profiles are the same.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{ParamKind, ParamType, RawValue, SetParamError, algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, FlowContext, Loss, Needs, RedDefault};
use crate::coupled::{Alone, CoupledController, CoupledSpec};
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
        /// A round trip's.
        RoundTrip = "round-trip",
        /// That of the time since the last acknowledgment, as Algorithm 1 is printed: up to 1 / min_rate round trips'.
        Printed = "printed",
    }
}

choice! {
    /// Which round-trip times the base is the smallest of.
    pub enum RateMpBaseRtt {
        /// A handshake's through an empty network, which is the path's, and the acknowledgments'.
        Handshake = "handshake",
        /// The acknowledgments' alone.
        Data = "data",
    }
}

/// The paper's c: what the bottleneck can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateMpCapacity {
    /// As much as the sender's NIC.
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
        /// Bottleneck capacity c, a rate or `"line-rate"`; the same for all subflows (RateMP §V: c is the link bandwidth).
        capacity: RateMpCapacity = RateMpCapacity::LineRate, ns3 = RateMpCapacity::LineRate;
        /// α_total as a share of c: what a flow adds per RTT (RateMP §V: 1/100).
        alpha: f64 = 0.01, ns3 = 0.01, in 0.0..=1.0;
        /// Gain of the average of marks (RateMP §III-B: 1/16).
        g: f64 = 1.0 / 16.0, ns3 = 1.0 / 16.0, in 0.0..=1.0;
        /// Queue at which every packet is marked, as the switches have it; for delay detection (RateMP §V-B: 40 KB, §V-A: 150 KB).
        kmax: Bytes = Bytes::new(40_000), ns3 = Bytes::new(40_000);
        /// Smallest rate in packets per base RTT (RateMP §III-D: 0.01).
        min_rate: f64 = 0.01, ns3 = 0.01, in 0.000_001..=1.0;
        /// The RTT a rate is multiplied with for a window (Algorithm 1 line 21 has `"rtt"`, which cycles).
        window: RateMpWindow = RateMpWindow::BaseRtt, ns3 = RateMpWindow::BaseRtt;
        /// The largest step of an acknowledgment below a packet per RTT (Algorithm 1 lines 13 and 14 have `"printed"`, which cycles).
        low_rate_step: RateMpLowRateStep = RateMpLowRateStep::RoundTrip, ns3 = RateMpLowRateStep::RoundTrip;
        /// Which RTTs the base is the smallest of (RateMP §III-B: those measured; our choice: a handshake's too).
        base_rtt: RateMpBaseRtt = RateMpBaseRtt::Handshake, ns3 = RateMpBaseRtt::Handshake;
        /// How long a measured base RTT is kept at least, twice that at most (our choice; BBR has 10 s).
        base_rtt_window: Time = Time::from_ms(10_000), ns3 = Time::from_ms(10_000);
        /// First window in packets (RFC 6928; the paper has none).
        initial_window: u32 = 10, ns3 = 10, in 1..=1_000_000;
    }
}

impl AlgorithmSpec for RateMpConfig {
    type Controller = RateMp;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        // Section V-B, and the paper's 150 KB of section V-A if `kmax` says so: delay and marks have one scale.
        let red = RedDefault { kmin: Bytes::ZERO, kmax: self.kmax, pmax: 1.0 };
        Needs { ecn: true, red: Some(red), ..Needs::NOTHING }
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

/// A flow under RateMP: a connection of one subflow.
pub type RateMp = Alone<RateMpConnection>;

/// A connection under RateMP.
#[derive(Clone, Debug)]
pub struct RateMpConnection {
    config: RateMpConfig,
    /// The time in which the bottleneck serves Kmax.
    kmax_s: f64,
    subflows: Vec<Subflow>,
}

#[derive(Clone, Debug)]
struct Subflow {
    line_rate: Rate,
    alpha_total: f64,
    mtu: u64,
    wire_bits: f64,
    /// Only what has started and is alive counts in Σx.
    has_started: bool,
    is_alive: bool,
    in_slow_start: bool,
    /// The window of slow start.
    w: f64,
    ss: f64,
    x: f64,
    marks: Marks,
    rtt: f64,
    smallest: WindowedMin,
    base_rtt: f64,
}

/// β_j and what the present round trip adds to it.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    beta: f64,
    n_acks: u32,
    n_marked: u32,
    /// The round trip ends when a byte after this one is acknowledged.
    end: u64,
}

impl Marks {
    /// Eq. (6), once a round trip; below a packet per round trip that is once an acknowledgment.
    fn count(&mut self, ack: &Ack<'_>, g: f64) {
        self.n_acks += 1;
        self.n_marked += u32::from(ack.ecn_marked);
        if self.end < ack.ack_seq {
            let fraction = f64::from(self.n_marked) / f64::from(self.n_acks);
            self.beta = (1.0 - g) * self.beta + g * fraction;
            (self.n_acks, self.n_marked, self.end) = (0, 0, ack.snd_nxt);
        }
    }
}

/// The smallest sample of the last one to two windows.
#[derive(Clone, Copy, Debug)]
struct WindowedMin {
    since: Time,
    present: f64,
    last: f64,
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

/// Eq. (10) and (11), the step for one acknowledged packet: Σx / (x·rtt) · (α_total / Σx - congestion), where congestion
/// is β_j or what delay says. A round trip's packets together move x by α_total - Σx · congestion (eq. 9).
fn step(alpha_total: f64, total: f64, congestion: f64, packets: f64) -> f64 {
    (alpha_total - total * congestion) / packets
}

/// Lines 15 to 19: delay decides where both signals together ask for more, marks where they ask for less.
fn cooperative_step(delta1: f64, delta2: f64) -> f64 {
    if f64::midpoint(delta1, delta2) <= 0.0 { delta1 } else { delta2 }
}

/// Eq. (7) over Kmax: the share of Kmax that the delay beyond the base RTT stands for, where Kmax takes `kmax_s`.
fn delay_congestion(rtt: f64, base_rtt: f64, kmax_s: f64) -> f64 {
    ((rtt - base_rtt) / kmax_s).clamp(0.0, 1.0)
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
            marks: Marks::default(),
            rtt: path_rtt,
            smallest: WindowedMin { since: flow.start, present: handshake, last: f64::INFINITY },
            base_rtt: path_rtt,
        }
    }

    /// The round-trip time in x·rtt.
    fn window_rtt(&self, config: &RateMpConfig) -> f64 {
        match config.window {
            RateMpWindow::BaseRtt => self.base_rtt,
            RateMpWindow::Rtt => self.rtt,
        }
    }

    /// x_j·rtt_j, in packets: more than 1 is window control, else under-rate control.
    fn packets(&self, config: &RateMpConfig) -> f64 {
        self.x * self.window_rtt(config)
    }

    /// Line 9.
    fn measure(&mut self, config: &RateMpConfig, ack: &Ack<'_>) {
        if ack.rtt == Time::ZERO {
            return;
        }
        self.rtt = ack.rtt.max(Time::from_ns(1)).as_secs_f64();
        self.base_rtt = self.smallest.update(ack.now, self.rtt, config.base_rtt_window);
    }

    /// Whether the window or the rate in force, and not the application or the NIC, limits the subflow.
    fn is_limited(&self, config: &RateMpConfig, ack: &Ack<'_>) -> bool {
        let allowed = self.allowance(config);
        if allowed.rate < self.line_rate {
            return !ack.app_limited;
        }
        allowed.cwnd.as_u64() <= ack.in_flight.saturating_add(ack.newly_acked).saturating_add(self.mtu)
    }

    /// Lines 3 to 6.
    fn slow_start(&mut self, n_acked: f64, total: f64, is_limited: bool) {
        if is_limited {
            self.w += n_acked.min(2.0);
        }
        self.x = self.w / self.rtt;
        if self.alpha_total < self.marks.beta * total || self.ss < self.w {
            self.in_slow_start = false;
        }
    }

    /// Lines 10 to 20.
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

    /// Lines 4 and 21 to 25. A window of whole packets; below it a single packet may be in flight.
    fn allowance(&self, config: &RateMpConfig) -> Allowance {
        let packets = if self.in_slow_start { self.w } else { self.packets(config) };
        if self.in_slow_start || 1.0 < packets {
            let cwnd = Bytes::new((packets as u64).max(1).saturating_mul(self.mtu));
            return Allowance { cwnd, rate: self.line_rate, timer: Time::MAX };
        }
        let paced = Rate::from_bps_f64(self.x * self.wire_bits).clamp(Rate::from_bps(1), self.line_rate);
        Allowance { cwnd: Bytes::new(self.mtu), rate: paced, timer: Time::MAX }
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

impl RateMpConnection {
    /// Σ_j x_j over the subflows that are in use.
    fn total(&self) -> f64 {
        self.subflows.iter().filter(|s| s.has_started && s.is_alive).map(|s| s.x).sum()
    }
}

impl CoupledController for RateMpConnection {
    fn on_start(&mut self, _: Time, subflow: usize) -> Allowance {
        self.subflows[subflow].has_started = true;
        self.subflows[subflow].allowance(&self.config)
    }

    fn on_ack(&mut self, subflow: usize, ack: &Ack<'_>) -> Allowance {
        let total = self.total();
        let (config, s) = (&self.config, &mut self.subflows[subflow]);
        let is_limited = s.is_limited(config, ack);
        s.marks.count(ack, config.g);
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

    /// A dead path's rate is nobody's; one that is alive again starts anew with one packet.
    fn on_path(&mut self, subflow: usize, _: Time, alive: bool) {
        let s = &mut self.subflows[subflow];
        if alive && !s.is_alive && s.has_started {
            s.enter_slow_start();
        }
        s.is_alive = alive;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::test_flow::{acked, flow_25g};

    /// A million packets of 1,000 bytes per second at 8 Gb/s, base RTT 10 us: α_total is 10,000 packets per second, and
    /// Kmax is 40 us.
    fn flow_8g() -> FlowContext {
        FlowContext {
            line_rate: Rate::from_gbps(8),
            path_base_rtt: Time::from_us(10),
            wire_mtu: Bytes::new(1_000),
            ..flow_25g()
        }
    }

    /// The `i`th packet's acknowledgment, with the window full.
    fn ack(i: u64, rtt_us: u64, ecn_marked: bool) -> Ack<'static> {
        let in_flight = 40_000;
        let ack_seq = i * 1_000;
        let ack = acked(ack_seq, rtt_us * 1_000, ack_seq + in_flight);
        Ack { newly_acked: 1_000, in_flight, ecn_marked, ..ack }
    }

    /// `n` subflows in control with the rates `x` and averages `beta`, after a round trip that ends with byte 10^9.
    fn connection(config: &RateMpConfig, x_and_beta: &[(f64, f64)]) -> RateMpConnection {
        let mut c = config.build_connection(&vec![flow_8g(); x_and_beta.len()]);
        for (i, &(x, beta)) in x_and_beta.iter().enumerate() {
            c.on_start(Time::ZERO, i);
            let s = &mut c.subflows[i];
            (s.in_slow_start, s.x, s.marks.beta, s.marks.end) = (false, x, beta, 1_000_000_000);
        }
        c
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs()
    }

    #[test]
    fn slow_start_adds_a_packet_an_acknowledgment_unpaced() {
        // Lines 2 to 4.
        let mut flow = RateMpConfig::default().build(&flow_8g());
        let first = flow.on_start(Time::ZERO);
        assert_eq!((first.cwnd, first.rate), (Bytes::new(10_000), Rate::from_gbps(8)));
        for i in 1..=30 {
            let a = flow.on_ack(&ack(i, 10, false));
            assert_eq!((a.cwnd, a.rate), (Bytes::new(10_000 + 1_000 * i), Rate::from_gbps(8)));
        }
        // Cumulative acknowledgments count up to two packets; a window that is not full does not grow.
        let a = flow.on_ack(&Ack { newly_acked: 10_000, ..ack(40, 10, false) });
        assert_eq!(a.cwnd, Bytes::new(42_000));
        let a = flow.on_ack(&Ack { in_flight: 39_000, ..ack(41, 10, false) });
        assert_eq!(a.cwnd, Bytes::new(42_000));
        assert_eq!(flow.on_ack(&Ack { newly_acked: 0, ..ack(41, 10, false) }).cwnd, Bytes::new(42_000));
    }

    #[test]
    fn marks_end_slow_start_and_its_queue_is_no_rate() {
        // Line 5: one marked acknowledgment of one makes β = 1/16, above α_total/x = 10^4/10^6. Eleven packets in the
        // present 20 us are 550,000 packets per second; times the base RTT that is 5.5 packets.
        let mut flow = RateMpConfig::default().build(&flow_8g());
        flow.on_start(Time::ZERO);
        let a = flow.on_ack(&ack(1, 20, true));
        let s = &flow.0.subflows[0];
        assert!(!s.in_slow_start && close(s.x, 550_000.0), "{s:?}");
        assert_eq!((a.cwnd, a.rate), (Bytes::new(5_000), Rate::from_gbps(8)));
        // β·x = 1/16 of 10^5 is below α_total: a slow flow stays.
        let mut slow = RateMpConfig { initial_window: 1, ..RateMpConfig::default() }.build(&flow_8g());
        slow.on_start(Time::ZERO);
        assert_eq!(slow.on_ack(&ack(1, 20, true)).cwnd, Bytes::new(2_000));
        assert!(slow.0.subflows[0].in_slow_start);
        // With another subflow of 10^6, β·Σx = 1/16 of 1.1 million is above: coupled, it leaves.
        let config = RateMpConfig { initial_window: 1, ..RateMpConfig::default() };
        let mut two = connection(&config, &[(1e5, 0.0), (1e6, 0.0)]);
        (two.subflows[0].in_slow_start, two.subflows[0].marks.end) = (true, 0);
        two.on_ack(0, &ack(1, 20, true));
        assert!(!two.subflows[0].in_slow_start);
    }

    #[test]
    fn marks_are_averaged_once_a_round_trip() {
        // Eq. (6). The first acknowledgment ends the empty round trip before it: F = 1. The next ends when a byte after
        // snd_nxt = 41,000 is acknowledged: packets 2 to 42, 8 of 41 marked.
        let mut marks = Marks::default();
        marks.count(&ack(1, 10, true), 1.0 / 16.0);
        assert_eq!(marks.beta, 0.0625);
        for i in 2..=41 {
            marks.count(&ack(i, 10, i <= 9), 1.0 / 16.0);
            assert_eq!(marks.beta, 0.0625);
        }
        marks.count(&ack(42, 10, false), 1.0 / 16.0);
        assert!(close(marks.beta, 15.0 / 256.0 + 8.0 / 41.0 / 16.0));
    }

    #[test]
    fn above_a_packet_marks_move_the_rate() {
        // Line 11 with x = 500,000, five packets, whatever the RTT is: (10^4 - β·5·10^5)/5.
        for (beta, x) in [(0.0, 502_000.0), (0.02, 500_000.0), (0.04, 498_000.0)] {
            let mut c = connection(&RateMpConfig::default(), &[(500_000.0, beta)]);
            let a = c.on_ack(0, &ack(1, 100, false));
            assert!(close(c.subflows[0].x, x), "{beta}: {}", c.subflows[0].x);
            assert_eq!((a.cwnd, a.rate), (Bytes::new(x as u64 / 100_000 * 1_000), Rate::from_gbps(8)));
        }
        // With another subflow of 300,000 Σx is 800,000: (10^4 - 0.02·8·10^5)/5 = -1,200. The other does not move.
        let mut c = connection(&RateMpConfig::default(), &[(500_000.0, 0.02), (300_000.0, 0.5)]);
        c.on_ack(0, &ack(1, 10, false));
        assert!(close(c.subflows[0].x, 498_800.0) && c.subflows[1].x == 300_000.0);
        // A window that does not limit may shrink, not grow.
        for (beta, x) in [(0.0, 500_000.0), (0.04, 498_000.0)] {
            let mut c = connection(&RateMpConfig::default(), &[(500_000.0, beta)]);
            c.on_ack(0, &Ack { in_flight: 2_000, ..ack(1, 10, false) });
            assert!(close(c.subflows[0].x, x));
        }
    }

    #[test]
    fn a_round_trip_of_acknowledgments_is_one_gradient_step() {
        // Eq. (9): 100 packets at β = 0 and 0.005 with Σx = 10^7: +10^4 and -40,000, less what the growing x takes off.
        for (beta, sum) in [(0.0, 1e4), (0.005, -4e4)] {
            let config = RateMpConfig { capacity: RateMpCapacity::Rate(Rate::from_gbps(8)), ..RateMpConfig::default() };
            let fast = FlowContext { line_rate: Rate::from_gbps(800), ..flow_8g() };
            let mut c = config.build_connection(&[fast]);
            c.on_start(Time::ZERO, 0);
            let s = &mut c.subflows[0];
            (s.in_slow_start, s.x, s.marks.beta, s.marks.end) = (false, 1e7, beta, 1_000_000_000);
            let full = |i| Ack { in_flight: 200_000, ..ack(i, 10, false) };
            for i in 1..=100 {
                c.on_ack(0, &full(i));
            }
            let moved = c.subflows[0].x - 1e7;
            assert!((moved - sum).abs() < 0.01 * sum.abs(), "{moved}");
            // One acknowledgment of all 100 is the same step.
            c.subflows[0].x = 1e7;
            c.on_ack(0, &Ack { newly_acked: 100_000, ..full(300) });
            assert!(close(c.subflows[0].x - 1e7, sum), "{}", c.subflows[0].x);
        }
    }

    #[test]
    fn below_a_packet_delay_speeds_up_and_marks_slow_down() {
        // Lines 13 to 19 with x = 50,000, half a packet, and another subflow that makes Σx = 150,000. δ1 at β = 0.1:
        // (10^4 - 15,000)/0.5 = -10^4. Without delay δ2 = 10^4/0.5 = 20,000: δ = 5,000, and δ2 it is. With 4 us of delay
        // eq. 7 gives 4/40 = 0.1 and δ2 = δ1 = -10^4. At β = 0.05 δ1 = 2,500/0.5 = 5,000, and 2 us are 0.05 too.
        // A delay of more than Kmax is 1: δ2 = -280,000 and, at β = 0, δ1 = 20,000: δ < 0, so δ1.
        let cases = [
            (0.1, 10, 20_000.0),
            (0.1, 14, -10_000.0),
            (0.05, 12, 5_000.0),
            (0.0, 900, 20_000.0),
            (0.2, 10, -40_000.0),
        ];
        for (beta, rtt_us, delta) in cases {
            for (form, part) in [(RateMpLowRateStep::Printed, 1.0), (RateMpLowRateStep::RoundTrip, 0.5)] {
                let config = RateMpConfig { low_rate_step: form, ..RateMpConfig::default() };
                let mut c = connection(&config, &[(50_000.0, beta), (100_000.0, 0.0)]);
                c.on_ack(0, &ack(1, rtt_us, false));
                let x = c.subflows[0].x;
                assert!(close(x, 50_000.0 + part * delta), "{beta} {rtt_us}: {x}");
            }
        }
        // What the application limits does not grow.
        let mut c = connection(&RateMpConfig::default(), &[(50_000.0, 0.0)]);
        c.on_ack(0, &Ack { app_limited: true, ..ack(1, 10, false) });
        assert!(close(c.subflows[0].x, 50_000.0));
    }

    #[test]
    fn a_clear_path_is_believed_when_its_marks_are_forgotten() {
        // At the smallest rate, with Σx = c, δ > 0 needs β below 2·α_total/Σx = 0.02. From 0.1 that takes
        // ln(5)/ln(16/15) = 24.9 unmarked acknowledgments, 100 round trips apart.
        let mut c = connection(&RateMpConfig::default(), &[(1_000.0, 0.1), (999_000.0, 0.0)]);
        c.subflows[0].marks.end = 0;
        let alone = |i| Ack { snd_nxt: 1_000 * i, in_flight: 0, ..ack(i, 10, false) };
        for i in 1..=24 {
            c.on_ack(0, &alone(i));
            assert!(close(c.subflows[0].x, 1_000.0), "{i}");
        }
        // The step is a round trip's, c/100.
        c.on_ack(0, &alone(25));
        assert!(close(c.subflows[0].x, 11_000.0), "{}", c.subflows[0].x);
    }

    #[test]
    fn rates_have_a_floor_and_below_a_packet_they_pace() {
        // Lines 20 to 25. 0.01 packets in 10 us are 1,000 packets per second, 8 Mb/s; exactly one packet is still paced.
        let config = RateMpConfig::default();
        let mut c = connection(&config, &[(2_000.0, 1.0), (1e6, 0.0)]);
        let a = c.on_ack(0, &ack(1, 50, true));
        assert!(a.cwnd == Bytes::new(1_000) && close(a.rate.as_bps_f64() / 1e6, 8.0), "{a:?}");
        c.subflows[0].x = 1.0 / c.subflows[0].base_rtt;
        assert!(close(c.on_timer(0, Time::ZERO).rate.as_bps_f64() / 1e6, 800.0));
        c.subflows[0].x = 199_999.0;
        let a = c.on_timer(0, Time::ZERO);
        assert_eq!((a.cwnd, a.rate), (Bytes::new(1_000), Rate::from_gbps(8)));
        c.subflows[0].x = 200_001.0;
        assert_eq!(c.on_timer(0, Time::ZERO).cwnd, Bytes::new(2_000));
    }

    #[test]
    fn the_printed_window_grows_with_its_queue() {
        let printed = RateMpConfig { window: RateMpWindow::Rtt, ..RateMpConfig::default() };
        for (config, packets) in [(RateMpConfig::default(), 5_000), (printed, 20_000)] {
            let mut c = connection(&config, &[(500_000.0, 0.02)]);
            assert_eq!(c.on_ack(0, &ack(1, 40, false)).cwnd, Bytes::new(packets));
        }
    }

    #[test]
    fn a_gap_cuts_nothing_and_a_timeout_never_raises() {
        let mut c = connection(&RateMpConfig::default(), &[(800_000.0, 0.01), (50_000.0, 0.01), (1e5, 0.0)]);
        assert_eq!(c.on_loss(0, Time::ZERO, Loss::Gap).cwnd, Bytes::new(8_000));
        assert_eq!(c.on_loss(0, Time::ZERO, Loss::Timeout).cwnd, Bytes::new(1_000));
        // Slow start up to half of eight packets; beyond it control goes on with what was reached.
        let cwnds = [1, 2, 3].map(|i| c.on_ack(0, &ack(i, 10, false)).cwnd.as_u64());
        assert_eq!(cwnds, [2_000, 3_000, 4_000]);
        assert!(c.subflows[0].in_slow_start);
        c.on_ack(0, &ack(4, 10, false));
        assert!(!c.subflows[0].in_slow_start && close(c.subflows[0].x, 500_000.0));
        // Half a packet per round trip stays half a packet.
        let a = c.on_loss(1, Time::ZERO, Loss::Timeout);
        assert_eq!((a.cwnd, a.rate), (Bytes::new(1_000), Rate::from_mbps(400)));
        assert!(!c.subflows[1].in_slow_start);
        // A gap in slow start ends it.
        c.subflows[2].in_slow_start = true;
        c.on_loss(2, Time::ZERO, Loss::Gap);
        assert!(!c.subflows[2].in_slow_start);
    }

    #[test]
    fn a_dead_path_is_nobodys_rate() {
        let mut c = connection(&RateMpConfig::default(), &[(500_000.0, 0.0), (300_000.0, 0.0)]);
        assert_eq!(c.total(), 800_000.0);
        c.on_path(1, Time::ZERO, false);
        assert_eq!(c.total(), 500_000.0);
        c.on_path(1, Time::ZERO, true);
        assert!(close(c.total(), 600_000.0) && c.subflows[1].in_slow_start);
        // Said again, it changes nothing.
        c.subflows[1].in_slow_start = false;
        c.on_path(1, Time::ZERO, true);
        assert!(!c.subflows[1].in_slow_start);
    }

    #[test]
    fn a_base_rtt_is_remembered_for_one_to_two_windows() {
        let mut c = connection(&RateMpConfig::default(), &[(500_000.0, 0.0)]);
        let mut base_us = |at_s: u64, rtt_us| {
            c.on_ack(0, &Ack { now: Time::from_ms(1_000 * at_s), ..ack(1, rtt_us, false) });
            (c.subflows[0].base_rtt * 1e6).round() as u64
        };
        // The handshake's 10 us, then a longer route.
        assert_eq!([base_us(1, 14), base_us(9, 12), base_us(11, 15), base_us(19, 16)], [10, 10, 10, 10]);
        assert_eq!([base_us(22, 17), base_us(32, 20)], [15, 17]);
        assert_eq!([base_us(33, 9), base_us(80, 30)], [9, 30]);
        // Without a handshake the first acknowledgment tells.
        let mut c =
            connection(&RateMpConfig { base_rtt: RateMpBaseRtt::Data, ..RateMpConfig::default() }, &[(5e5, 0.0)]);
        c.on_ack(0, &ack(1, 25, false));
        assert!(close(c.subflows[0].base_rtt, 25e-6));
    }

    #[test]
    fn capacity_is_a_rate_or_the_line_rate() {
        let mut config = RateMpConfig::default();
        crate::Parameters::set(&mut config, "capacity", RawValue::Text("500Mbps")).unwrap();
        let c = config.build_connection(&[flow_8g()]);
        // 62,500 packets per second: α_total 625; 40 KB take 640 us.
        assert!(close(c.subflows[0].alpha_total, 625.0) && close(c.kmax_s, 640e-6));
        assert!(crate::Parameters::set(&mut config, "capacity", RawValue::Text("fast")).is_err());
        // Subflows of several NICs: the slowest.
        let slow = FlowContext { line_rate: Rate::from_gbps(4), ..flow_8g() };
        let c = RateMpConfig::default().build_connection(&[flow_8g(), slow]);
        assert!(c.subflows.iter().all(|s| close(s.alpha_total, 5_000.0)));
    }

    /// dx/dt and dq/dt of eq. (14) and (15), in packets per round trip.
    fn fluid(alpha_total: f64, eta: f64, c: f64, [x, q]: [f64; 2]) -> [f64; 2] {
        [step(alpha_total, x, eta * q, 1.0), x - c]
    }

    /// The real parts of the roots of s² - trace·s + determinant.
    fn real_parts(trace: f64, determinant: f64) -> [f64; 2] {
        let d = trace * trace - 4.0 * determinant;
        let root = d.max(0.0).sqrt();
        [trace - root, trace + root].map(|twice| twice / 2.0)
    }

    /// Theorem 1 with the characteristic polynomial that follows from eq. (18): s² + η'q_e·s + η'x_e. The printed
    /// eigenvalues are those of s² + η'·s + η'.
    #[test]
    fn the_equilibrium_is_stable_in_the_fluid_model() {
        // c = 41.7 packets per round trip, Kmax 26.7 packets, and, for real roots, 4·10^6 packets.
        for (c, kmax, oscillates) in [(41.7, 26.7, true), (8.3, 100.0, true), (41.7, 4e6, false)] {
            let (alpha_total, eta) = (c / 100.0, 1.0 / kmax);
            let at = [c, alpha_total / (eta * c)];
            let zero = fluid(alpha_total, eta, c, at);
            assert!(zero.iter().all(|d| d.abs() < 1e-9), "{zero:?}");
            let mut jacobian = [[0.0; 2]; 2];
            for (column, of) in at.iter().enumerate() {
                let h = 1e-4 * of;
                let moved = |sign: f64| {
                    let mut to = at;
                    to[column] += sign * h;
                    fluid(alpha_total, eta, c, to)
                };
                let (up, down) = (moved(1.0), moved(-1.0));
                (0..2).for_each(|row| jacobian[row][column] = (up[row] - down[row]) / (2.0 * h));
            }
            let trace = jacobian[0][0] + jacobian[1][1];
            let determinant = jacobian[0][0] * jacobian[1][1] - jacobian[0][1] * jacobian[1][0];
            assert!((trace + eta * at[1]).abs() < 1e-6 * eta * at[1], "{trace}");
            assert!((determinant - eta * at[0]).abs() < 1e-6 * eta * at[0], "{determinant}");
            assert_eq!(trace * trace < 4.0 * determinant, oscillates);
            assert!(real_parts(trace, determinant).iter().all(|&r| r < 0.0));
        }
    }
}
