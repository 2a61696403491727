//! `dctcp`: DCTCP. M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, §3; RFC 8257. Default: the
//! window form, over a transport that recovers losses itself. ns-3 form: the PowerTCP artifact's rate-based
//! analogue (cc mode 8).
//!
//! | paper            | here            | unit  |
//! |------------------|-----------------|-------|
//! | cwnd             | `cwnd`          | bytes |
//! | α                | `alpha`         | 1     |
//! | g                | `g`             | 1     |
//! | F, DCTCP.M       | `fraction`      | 1     |
//! | DCTCP.WindowEnd  | `window_end`    | sequence number |
//! | DCTCP.BytesAcked, BytesMarked | `acked`, `marked` | bytes |
//! | ssthresh         | `ssthresh`      | bytes |
//!
//! Readings: the first marked acknowledgment of a window cuts, with the α of the previous window (RFC 8257 §3.3,
//! Linux), and until that window is acknowledged the flow neither cuts nor grows. The window grows only while it limits
//! the flow (RFC 7661); otherwise a lone flow at line rate would grow it without end. A gap halves the window, at most
//! once per window; a timeout leaves one packet and slow start, which begins when a packet sent after the timeout is
//! acknowledged: over a transport that repairs selectively, that is long before the whole window is acknowledged. The
//! first window is a bandwidth-delay product, as in comparable algorithms, so no slow start is needed; over TCP it is
//! TCP's. After an idle period the window shrinks as in Linux (RFC 2861).

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::limits::{WindowUse, after_idle, bdp, scaled_window};
use crate::needs::{FeedbackNeeds, MarkedQueue, Needs, NetworkNeeds, PacingNeeds, RedDefault};
use crate::port::NoPort;

choice! {
    /// The quantity that DCTCP controls.
    pub enum DctcpForm {
        /// A window, as published.
        Window = "window",
        /// A rate and a window in step with it (artifact).
        Rate = "rate",
    }
}

choice! {
    /// The first window.
    pub enum DctcpInitialWindow {
        /// Line rate times base RTT.
        Bdp = "bdp",
        /// Ten packets, as in TCP.
        TenMtu = "10mtu",
        /// Two packets, as in ns-2's TCP.
        TwoMtu = "2mtu",
    }
}

algorithm_config! {
    /// Parameters of DCTCP.
    pub struct DctcpConfig {
        /// Quantity that is steered: a window or a rate (artifact: rate).
        form: DctcpForm = DctcpForm::Window, ns3 = DctcpForm::Rate;
        /// Gain of alpha's average (RFC 8257 §4.2: 1/16; artifact 1/256).
        g: f64 = 1.0 / 16.0, ns3 = 1.0 / 256.0, in 0.0..=1.0, tune = Log(0.001, 0.5);
        /// Alpha before the first window (RFC 8257 §3.3; the paper's ns-2 code has 0).
        initial_alpha: f64 = 1.0, in 0.0..=1.0, tune = Linear(0.0, 1.0);
        /// First window, for `form = "window"`; over TCP the default is `"10mtu"` (RFC 6928).
        initial_window: DctcpInitialWindow = DctcpInitialWindow::Bdp;
        /// If true, the flow starts in slow start, for `form = "window"`; over TCP the default is true.
        slow_start: bool = false;
        /// Smallest window in packets, for `form = "window"` (Linux: 2).
        min_window: u32 = 2, in 1..=1_000_000, tune = Linear(1, 10);
        /// Growth per RTT in packets, for `form = "window"` (RFC 5681: 1).
        ai_packets: f64 = 1.0, in 0.0..=1000.0, tune = Log(0.1, 10.0);
        /// If true, packets are spaced at window / base RTT of the path, headers counted; otherwise at line rate. For
        /// `form = "window"`.
        pacing: bool = false;
        /// Growth per RTT, for `form = "rate"` (artifact).
        ai: Rate = Rate::from_mbps(1_000), tune = Log("50Mbps", "10Gbps");
        /// Slowest rate, for `form = "rate"` (artifact).
        min_rate: Rate = Rate::from_mbps(100), tune = Log("10Mbps", "1Gbps");
        /// If true, a new rate moves a pending send time (artifact: no).
        repace_on_change: bool = true, ns3 = false;
    }
}

/// The step K: 30 KB at 10 Gb/s, in proportion at other rates, as in HPCC's public configuration (DCTCP's own paper has
/// 65 packets at 10 Gb/s, for hosts that send in bursts).
const STEP: RedDefault = RedDefault {
    kmin: Bytes::new(30_000),
    kmax: Bytes::new(30_000),
    pmax: 1.0,
    per_rate: Some(Rate::from_gbps(10)),
    queue: MarkedQueue::Joined,
};

impl AlgorithmSpec for DctcpConfig {
    type Controller = Dctcp;
    type Port = NoPort;
    fn over_tcp(self) -> Self {
        Self { initial_window: DctcpInitialWindow::TenMtu, slow_start: true, ..self }
    }
    fn needs(&self) -> Needs {
        let prr = self.form == DctcpForm::Window;
        Needs {
            network: NetworkNeeds { ecn: true, red: Some(STEP), ..NetworkNeeds::NOTHING },
            pacing: PacingNeeds { repace_on_change: self.repace_on_change, ..PacingNeeds::NOTHING },
            feedback: FeedbackNeeds { prr, ..FeedbackNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Dctcp {
        match self.form {
            DctcpForm::Window => Dctcp { form: Form::Window(DctcpWindow::new(self, flow)) },
            DctcpForm::Rate => Dctcp { form: Form::Rate(DctcpRate::new(self, flow)) },
        }
    }
}

/// A flow under DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Window(DctcpWindow),
    Rate(DctcpRate),
}

/// The period from a cut until the data in flight at the cut is acknowledged, without a second cut and without growth.
#[derive(Clone, Copy, Debug, Default)]
struct Recovery {
    until_seq: Option<u64>,
    /// Time of the timeout, if a timeout caused the cut: an acknowledgment of data sent since also ends the recovery.
    timed_out: Option<Time>,
}

impl Recovery {
    fn enter(&mut self, snd_nxt: u64) {
        *self = Self { until_seq: Some(snd_nxt), timed_out: None };
    }
    fn leave_if_acked(&mut self, ack: &Ack<'_>) {
        let is_sent_since = self.timed_out.is_some_and(|at| at <= ack.now.saturating_sub(ack.rtt));
        self.until_seq = self.until_seq.filter(|&until| ack.ack_seq <= until && !is_sent_since);
    }
    /// Returns `true` if a gap after `una` belongs to the window that was already cut.
    fn has_cut(self, una: u64) -> bool {
        self.until_seq.is_some_and(|until| una < until)
    }
    fn is_active(self) -> bool {
        self.until_seq.is_some()
    }
}

/// The published form.
#[derive(Clone, Debug)]
struct DctcpWindow {
    g: f64,
    alpha: f64,
    mtu: f64,
    min: f64,
    first: f64,
    growth: f64,
    line_rate: Rate,
    /// The time over which a paced window is spread, and the bits on the wire per payload byte; `None` without pacing.
    paced_over: Option<(Time, f64)>,
    cwnd: f64,
    ssthresh: f64,
    /// State for slow start, in which the window grows faster than the NIC sends; `None` if the flow starts without it.
    window_use: Option<WindowUse>,
    acked: u64,
    marked: u64,
    window_end: u64,
    recovery: Recovery,
    una: u64,
    snd_nxt: u64,
}

impl DctcpWindow {
    fn new(config: &DctcpConfig, flow: &FlowContext) -> Self {
        let mtu = flow.mtu.as_f64().max(1.0);
        let min = f64::from(config.min_window) * mtu;
        let first = match config.initial_window {
            DctcpInitialWindow::Bdp => bdp(flow.line_rate, flow.base_rtt),
            DctcpInitialWindow::TenMtu => 10.0 * mtu,
            DctcpInitialWindow::TwoMtu => 2.0 * mtu,
        };
        Self {
            g: config.g,
            alpha: config.initial_alpha,
            mtu,
            min,
            first: first.max(min),
            growth: config.ai_packets * mtu,
            line_rate: flow.line_rate,
            paced_over: config.pacing.then_some((flow.path_base_rtt, 8.0 * flow.wire_mtu.as_f64() / mtu)),
            cwnd: first.max(min),
            ssthresh: if config.slow_start { f64::MAX } else { 0.0 },
            window_use: config.slow_start.then(WindowUse::default),
            acked: 0,
            marked: 0,
            window_end: 0,
            recovery: Recovery::default(),
            una: 0,
            snd_nxt: 0,
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>, penalty: impl FnOnce(f64) -> f64) {
        (self.una, self.snd_nxt) = (ack.ack_seq, ack.snd_nxt);
        self.acked = self.acked.saturating_add(ack.delivered);
        if ack.ecn_marked {
            self.marked = self.marked.saturating_add(ack.delivered);
        }
        if self.window_end < ack.ack_seq {
            self.update_alpha();
            self.window_end = ack.snd_nxt;
        }
        self.recovery.leave_if_acked(ack);
        if self.recovery.is_active() {
            return;
        }
        if ack.ecn_marked {
            self.cut(1.0 - penalty(self.alpha) / 2.0);
        } else {
            self.grow(ack);
        }
    }

    /// Updates α ← (1 - g) α + g F over the window that just ended (RFC 8257 §3.3; DCTCP eq. 1).
    fn update_alpha(&mut self) {
        if 0 < self.acked {
            let fraction = self.marked as f64 / self.acked as f64;
            self.alpha = (1.0 - self.g) * self.alpha + self.g * fraction;
        }
        (self.acked, self.marked) = (0, 0);
    }

    /// Multiplies cwnd by `factor`: cwnd ← cwnd (1 - α/2) (DCTCP eq. 2).
    fn cut(&mut self, factor: f64) {
        self.cwnd = (self.cwnd * factor).max(self.min);
        self.ssthresh = self.cwnd;
        self.recovery.enter(self.snd_nxt);
    }

    /// Grows the window as Reno: a packet per acknowledged packet in slow start, otherwise `growth` bytes per window.
    fn grow(&mut self, ack: &Ack<'_>) {
        let newly_acked = ack.newly_acked as f64;
        let in_flight = ack.snd_nxt.saturating_sub(ack.ack_seq) as f64;
        let is_full = self.cwnd <= in_flight + newly_acked + self.mtu;
        let was_full = self.window_use.as_mut().is_some_and(|window| window.limits(ack, self.cwnd, self.mtu));
        let is_slow_start = self.cwnd < self.ssthresh;
        if !(is_full || is_slow_start && was_full) {
            return;
        }
        if is_slow_start {
            self.cwnd += newly_acked.min(self.cwnd);
        } else {
            self.cwnd += self.growth * (newly_acked / self.cwnd).min(1.0);
        }
    }

    fn on_loss(&mut self, now: Time, loss: Loss) {
        match loss {
            Loss::Gap if self.recovery.has_cut(self.una) => {}
            Loss::Gap => self.cut(0.5),
            Loss::Timeout => {
                self.cut(0.5);
                // RFC 8257 §3.5, as in RFC 5681: the loss window.
                self.cwnd = self.mtu;
                self.recovery.timed_out = Some(now);
            }
        }
    }

    fn allowance(&self) -> Allowance {
        let rate = self.paced_over.map_or(self.line_rate, |(rtt, wire_bits)| {
            let paced = Rate::from_bps_f64(self.cwnd * wire_bits / rtt.as_secs_f64().max(1e-12));
            paced.clamp(Rate::from_bps(1), self.line_rate)
        });
        Allowance { cwnd: Bytes::new(self.cwnd as u64), rate, timer: Time::MAX }
    }
}

/// The artifact's form. It divides the number of marked acknowledgments by the number of packets the window should
/// hold.
#[derive(Clone, Debug)]
struct DctcpRate {
    g: f64,
    alpha: f64,
    mtu: u64,
    ai: f64,
    min: f64,
    line: f64,
    first_window: f64,
    rate: f64,
    n_marks: u64,
    n_packets: u64,
    window_end: u64,
    recovery: Recovery,
}

impl DctcpRate {
    fn new(config: &DctcpConfig, flow: &FlowContext) -> Self {
        let line = flow.line_rate.as_bps_f64();
        Self {
            g: config.g,
            alpha: config.initial_alpha,
            mtu: flow.mtu.as_u64().max(1),
            ai: config.ai.as_bps_f64(),
            min: config.min_rate.as_bps_f64().min(line),
            line,
            first_window: bdp(flow.line_rate, flow.base_rtt),
            rate: line,
            n_marks: 0,
            n_packets: 0,
            window_end: 0,
            recovery: Recovery::default(),
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>, penalty: impl FnOnce(f64) -> f64) {
        self.n_marks += u64::from(ack.ecn_marked);
        let window_ends = self.window_end < ack.ack_seq;
        if window_ends {
            self.end_window(ack);
        }
        self.recovery.leave_if_acked(ack);
        if ack.ecn_marked && !self.recovery.is_active() {
            self.rate = (self.rate * (1.0 - penalty(self.alpha) / 2.0)).trunc().max(self.min);
            self.recovery.enter(ack.snd_nxt);
        }
        if window_ends && !self.recovery.is_active() {
            self.rate = (self.rate + self.ai).min(self.line);
        }
    }

    /// Updates α and opens the next window. The first acknowledgment only opens a window, in which its mark counts.
    fn end_window(&mut self, ack: &Ack<'_>) {
        let mut window_start = 0;
        if self.window_end != 0 {
            let fraction = (self.n_marks as f64 / self.n_packets as f64).min(1.0);
            self.alpha = (1.0 - self.g) * self.alpha + self.g * fraction;
            self.n_marks = 0;
            window_start = ack.ack_seq;
        }
        self.n_packets = ack.snd_nxt.saturating_sub(window_start) / self.mtu + 1;
        self.window_end = ack.snd_nxt;
    }

    fn allowance(&self) -> Allowance {
        let cwnd = scaled_window(self.first_window, self.rate, self.line);
        Allowance { cwnd, rate: Rate::from_bps_f64(self.rate), timer: Time::MAX }
    }
}

impl Dctcp {
    /// Returns the present allowance.
    pub(crate) fn allowance(&self) -> Allowance {
        match &self.form {
            Form::Window(w) => w.allowance(),
            Form::Rate(r) => r.allowance(),
        }
    }

    /// Handles an acknowledgment; on a mark the window is reduced by the fraction `penalty(alpha)` / 2. In DCTCP
    /// `penalty` returns alpha itself.
    pub(crate) fn on_ack_with(&mut self, ack: &Ack<'_>, penalty: impl FnOnce(f64) -> f64) -> Allowance {
        match &mut self.form {
            Form::Window(w) => w.on_ack(ack, penalty),
            Form::Rate(r) => r.on_ack(ack, penalty),
        }
        self.allowance()
    }
}

impl Controller for Dctcp {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.on_ack_with(ack, |alpha| alpha)
    }
    fn on_loss(&mut self, now: Time, loss: Loss) -> Allowance {
        if let Form::Window(w) = &mut self.form {
            w.on_loss(now, loss);
        }
        self.allowance()
    }
    fn on_idle(&mut self, _: Time, timeouts: u32) -> Option<Allowance> {
        let Form::Window(w) = &mut self.form else { return None };
        (w.cwnd, w.ssthresh) = after_idle(w.cwnd, w.ssthresh, w.first, timeouts);
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
