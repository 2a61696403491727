//! `dcqcn`: DCQCN. Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, §3
//! and Figure 7; ns-3 form: the firmware variant in the PowerTCP artifact (cc mode 1).
//!
//! | paper     | here                | unit  |
//! |-----------|---------------------|-------|
//! | R_C       | `rate`              | bit/s |
//! | R_T       | `target`            | bit/s |
//! | α         | `alpha`             | 1     |
//! | g         | `g`                 | 1     |
//! | F         | `fast_recovery`     | steps |
//! | R_AI      | `ai`                | bit/s |
//! | R_HAI     | `hai`               | bit/s |
//! | B         | `byte_counter`      | bytes |
//! | T, BC     | `timer_steps`, `byte_steps` | steps |
//!
//! Readings: an increase step uses the counts of the steps before it, so that fast recovery has F steps;
//! without a byte counter BC counts as T; i in "R_T + i R_HAI" is min(T, BC) - F. Counters and timers run
//! from the first CNP on. Rates are whole bits per second and halves are truncated separately, as in the artifact,
//! so a recovered flow may be 1 bit/s below line rate.
//!
//! Timers are lazy: the decay of α and a check that finds no CNP are not visible outside, so these ticks are computed
//! when their result is needed, with the same arithmetic and thus bit for bit the same result as a ticking timer.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, MadeFor};
use crate::limits::{RateLimiter, bdp, scaled_window};
use crate::needs::{Bucket, FeedbackNeeds, Needs, NetworkNeeds, PacingNeeds};
use crate::port::{NoPort, Notice};

choice! {
    /// The signal that reports marks to the sender.
    pub enum Notification {
        /// Notification packets that the receiver spaces.
        Cnp = "cnp",
        /// The ECN echo on every acknowledgment.
        Ack = "ack",
    }
}

choice! {
    /// The time from which timers and counters run.
    pub enum Clocks {
        /// The first notification.
        FirstCnp = "first-cnp",
        /// The first packet.
        FirstPacket = "first-packet",
    }
}

choice! {
    /// The time at which the sender reacts to a notification.
    pub enum Reaction {
        /// At once, every time.
        Immediate = "immediate",
        /// At the next tick of a clock, once for all notifications since the previous tick.
        Sampled = "sampled",
    }
}

algorithm_config! {
    /// Parameters of DCQCN.
    pub struct DcqcnConfig {
        /// Event that counts as a congestion notification (DCQCN §3.1: CNPs; artifact: marked acknowledgments).
        notification: Notification = Notification::Cnp, ns3 = Notification::Ack;
        /// Least time between two CNPs of a flow (DCQCN §3.1).
        cnp_interval: Time = Time::from_us(50), tune = Log("5us", "200us");
        /// Intervals of CNPs by a clock (RoCC's authors' code), and not each from the CNP before.
        cnp_by_clock: bool = false, omnet = true;
        /// Time of the reaction: at each notification, or on a clock (artifact: clock).
        reaction: Reaction = Reaction::Immediate, ns3 = Reaction::Sampled;
        /// Clock of the rate decrease, for `reaction = "sampled"` (artifact 4 us; its DCQCN-paper set 50 us).
        decrease_interval: Time = Time::from_us(50), ns3 = Time::from_us(4), tune = Log("1us", "200us");
        /// Time without notification after which alpha decays (DCQCN §5; artifact 1 us).
        alpha_interval: Time = Time::from_us(55), ns3 = Time::from_us(1), omnet = Time::from_us(53),
            tune = Log("1us", "500us");
        /// Gain of alpha's average (DCQCN §5).
        g: f64 = 1.0 / 256.0, in 0.0001..=1.0, tune = Log(0.001, 0.25);
        /// Alpha at the first notification (DCQCN §3.1, artifact).
        initial_alpha: f64 = 1.0, in 0.0..=1.0, tune = Linear(0.0, 1.0);
        /// If true, a decrease always makes the present rate the target; otherwise only if the rate was raised since
        /// the decrease before (artifact).
        always_clamp_target: bool = true, ns3 = false;
        /// Period of the increase timer (DCQCN §5; artifact 900 us).
        increase_interval: Time = Time::from_us(55), ns3 = Time::from_us(900), tune = Log("10us", "2ms");
        /// If true, sent bytes trigger increases too (artifact: no).
        count_bytes: bool = true, ns3 = false;
        /// Bytes sent from one increase to the next (DCQCN §5: 10 MB).
        byte_counter: Bytes = Bytes::new(10_000_000), tune = Log("100KB", "100MB");
        /// Fast recovery steps F (DCQCN §3.1; artifact 1).
        fast_recovery: u32 = 5, ns3 = 1, tune = Linear(1, 10);
        /// Additive step R_AI (DCQCN §5: 40 Mb/s; artifact 50 Mb/s).
        ai: Rate = Rate::from_mbps(40), ns3 = Rate::from_mbps(50), omnet = Rate::from_mbps(4),
            tune = Log("4Mbps", "4Gbps");
        /// Hyper step R_HAI (DCQCN: ten times R_AI; artifact 100 Mb/s).
        hai: Rate = Rate::from_mbps(400), ns3 = Rate::from_mbps(100), tune = Log("40Mbps", "20Gbps");
        /// If true, the i-th hyper step is i times R_HAI (DCQCN figure 7; artifact: no).
        hyper_growth: bool = true, ns3 = false, omnet = false;
        /// Slowest rate (artifact; the paper gives none).
        min_rate: Rate = Rate::from_mbps(100), omnet = Rate::from_mbps(1), tune = Log("1Mbps", "1Gbps");
        /// If true, bytes in flight stay below a window in step with the rate (artifact's burst script only).
        windowed: bool = false;
        /// If true, a new rate moves a pending send time (artifact: no).
        repace_on_change: bool = true, ns3 = false;
        /// Begin of timers and counters: the first CNP (DCQCN §3.1), or the first packet, so that alpha decays and
        /// rates rise before any CNP (RoCC's authors' code).
        clocks: Clocks = Clocks::FirstCnp, omnet = Clocks::FirstPacket;
        /// Target of at most line rate (ours; RoCC's authors' code: no).
        bounded_target: bool = true, omnet = false;
        /// Steps that count themselves, so that fast recovery has one step less (RoCC's authors' code).
        counts_itself: bool = false, omnet = true;
        /// Rate limiter of a flow: packets spaced by the rate (ours), or a token bucket that nothing empties and
        /// nothing bounds, so that a flow which was idle or paused catches up (RoCC's authors' code).
        limiter: RateLimiter = RateLimiter::Spaced, omnet = RateLimiter::Bucket;
    }
}

/// The steps, which are made for 10 to 40 Gb/s: the testbed of DCQCN §6 has 40 Gb/s; slower hosts of 10 Gb/s recover
/// with the same steps, only faster.
const STEPS: &[MadeFor] = &[step("ai"), step("hai")];

const fn step(param: &'static str) -> MadeFor {
    MadeFor { param, least: Rate::from_gbps(10), most: Rate::from_gbps(40), source: "DCQCN's paper" }
}

impl AlgorithmSpec for DcqcnConfig {
    type Controller = Dcqcn;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds { ecn: true, ..NetworkNeeds::NOTHING },
            pacing: PacingNeeds { repace_on_change: self.repace_on_change, ..self.limiter.needs(Bucket::Kept) },
            feedback: FeedbackNeeds {
                cnp_interval: (self.notification == Notification::Cnp).then_some(self.cnp_interval),
                cnp_by_clock: self.cnp_by_clock,
                ..FeedbackNeeds::NOTHING
            },
            ..Needs::NOTHING
        }
    }
    fn made_for(&self) -> &'static [MadeFor] {
        STEPS
    }
    fn build(&self, flow: &FlowContext) -> Dcqcn {
        let line = flow.line_rate.as_bps_f64();
        Dcqcn {
            line,
            min: self.min_rate.as_bps_f64().min(line),
            first_window: self.windowed.then(|| bdp(flow.line_rate, flow.base_rtt)),
            rate: line,
            target: line,
            alpha: self.initial_alpha,
            alpha_due: Time::MAX,
            notified_since_tick: false,
            clock_start: Time::MAX,
            check_due: Time::MAX,
            increase_due: Time::MAX,
            timer_steps: 0,
            byte_steps: 0,
            sent: 0,
            config: self.clone(),
        }
    }
}

/// The cause of an increase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Timer,
    Bytes,
}

/// Value below which alpha counts as 0: 1 - alpha/2 is 1 and (1 - g) alpha + g is g, to the last bit.
const ALPHA_NONE: f64 = 1e-30;
/// Time from alpha's tick to the artifact's check for a decrease.
const CHECK_OFFSET: Time = Time::from_ns(1);

/// A flow under DCQCN.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    config: DcqcnConfig,
    line: f64,
    min: f64,
    first_window: Option<f64>,
    rate: f64,
    target: f64,
    alpha: f64,
    /// The earliest tick of alpha that is not yet applied to `alpha`.
    alpha_due: Time,
    notified_since_tick: bool,
    /// Time of the first notification, at which the clocks of `reaction = "sampled"` start.
    clock_start: Time,
    /// Time of the decrease check that will find a notification; [`Time::MAX`] if there is none.
    check_due: Time,
    increase_due: Time,
    timer_steps: u32,
    byte_steps: u32,
    sent: u64,
}

/// Returns the number of the ticks `first`, `first + interval`, ... that are not after `until`.
fn n_ticks(first: Time, interval: Time, until: Time) -> u64 {
    if until < first || first == Time::MAX { 0 } else { (until - first).as_ps() / interval.as_ps().max(1) + 1 }
}

/// Returns the time `n` intervals after `from`.
fn after(from: Time, interval: Time, n: u64) -> Time {
    from.saturating_add(Time::from_ps(interval.as_ps().saturating_mul(n)))
}

impl Dcqcn {
    /// Handles a notification: decreases the rate at once or schedules the next check.
    fn notify(&mut self, now: Time) {
        let first = self.alpha_due == Time::MAX;
        // In the artifact a notification at the time of a tick is handled first: it was already on its wire, which
        // takes longer than a tick of 1 us, when the tick was scheduled.
        let sampled = self.config.reaction == Reaction::Sampled;
        self.catch_up_alpha(if sampled { now.saturating_sub(Time::from_ps(1)) } else { now });
        match self.config.reaction {
            Reaction::Immediate => {
                self.decrease(now);
                self.alpha = (1.0 - self.config.g) * self.alpha + self.config.g;
                self.alpha_due = after(now, self.config.alpha_interval, 1);
            }
            Reaction::Sampled if first => {
                self.clock_start = now;
                self.alpha_due = after(now, self.config.alpha_interval, 1);
                self.check_due = self.check_after(now);
            }
            Reaction::Sampled => {
                self.notified_since_tick = true;
                self.check_due = self.check_due.min(self.check_after(now));
            }
        }
    }

    /// Returns the time of the first decrease check after `now`.
    fn check_after(&self, now: Time) -> Time {
        let interval = self.config.decrease_interval;
        let first = after(self.clock_start.saturating_add(CHECK_OFFSET), interval, 1);
        after(first, interval, n_ticks(first, interval, now))
    }

    /// Applies the ticks of α until `until`: α ← (1 - g) α + g at the first tick after a notification, α ← (1 - g) α at
    /// the others.
    fn catch_up_alpha(&mut self, until: Time) {
        let n = n_ticks(self.alpha_due, self.config.alpha_interval, until);
        if n == 0 {
            return;
        }
        self.alpha *= 1.0 - self.config.g;
        if self.notified_since_tick {
            self.alpha += self.config.g;
        }
        self.notified_since_tick = false;
        for _ in 1..n {
            if self.alpha < ALPHA_NONE {
                self.alpha = 0.0;
                break;
            }
            self.alpha *= 1.0 - self.config.g;
        }
        self.alpha_due = after(self.alpha_due, self.config.alpha_interval, n);
    }

    /// Decreases the rate: R_T ← R_C, R_C ← R_C (1 - α/2); resets counters and timer (DCQCN eq. 1).
    fn decrease(&mut self, at: Time) {
        if self.config.always_clamp_target || self.timer_steps > 0 || self.byte_steps > 0 {
            self.target = self.rate;
        }
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).trunc().max(self.min);
        (self.timer_steps, self.byte_steps, self.sent) = (0, 0, 0);
        self.increase_due = after(at, self.config.increase_interval, 1);
    }

    /// Performs one increase step: fast recovery, additive or hyper (DCQCN Figure 7, eqs 3 and 4).
    fn increase(&mut self, by: Step) {
        let itself = |of: Step| u32::from(self.config.counts_itself && by == of);
        let t = self.timer_steps.saturating_add(itself(Step::Timer));
        let b = if self.config.count_bytes { self.byte_steps.saturating_add(itself(Step::Bytes)) } else { t };
        let fast = self.config.fast_recovery;
        if fast < t.min(b) {
            let i = if self.config.hyper_growth { t.min(b) - fast } else { 1 };
            self.target += f64::from(i) * self.config.hai.as_bps_f64();
        } else if fast <= t.max(b) {
            self.target += self.config.ai.as_bps_f64();
        }
        if self.config.bounded_target {
            self.target = self.target.min(self.line);
        }
        self.rate = self.halfway().min(self.line);
    }

    /// Returns (R_C + R_T) / 2.
    fn halfway(&self) -> f64 {
        (self.rate / 2.0).trunc() + (self.target / 2.0).trunc()
    }

    /// Returns `true` if no increase step can change the rate any more.
    fn is_recovered(&self) -> bool {
        self.line <= self.target && (self.halfway() <= self.rate || self.line <= self.rate)
    }

    /// Brings rate and timers up to `now`. If an increase and a check coincide, the increase is first.
    fn advance(&mut self, now: Time) {
        loop {
            let (due, until) = (self.increase_due, now.min(self.check_due));
            if due <= until && due < Time::MAX {
                let n = if self.is_recovered() { n_ticks(due, self.config.increase_interval, until) } else { 1 };
                if !self.is_recovered() {
                    self.increase(Step::Timer);
                }
                self.timer_steps = self.timer_steps.saturating_add(n.try_into().unwrap_or(u32::MAX));
                self.increase_due = after(due, self.config.increase_interval, n);
            } else if self.check_due <= now && self.check_due < Time::MAX {
                let at = std::mem::replace(&mut self.check_due, Time::MAX);
                self.catch_up_alpha(at);
                self.decrease(at);
            } else {
                return;
            }
        }
    }

    fn allowance(&self) -> Allowance {
        let cwnd = self.first_window.map_or(Bytes::MAX, |w0| scaled_window(w0, self.rate, self.line));
        let increase_due = if self.is_recovered() { Time::MAX } else { self.increase_due };
        Allowance { cwnd, rate: Rate::from_bps_f64(self.rate), timer: increase_due.min(self.check_due) }
    }
}

impl Controller for Dcqcn {
    fn on_start(&mut self, now: Time) -> Allowance {
        if self.config.clocks == Clocks::FirstPacket {
            self.alpha_due = after(now, self.config.alpha_interval, 1);
            self.increase_due = after(now, self.config.increase_interval, 1);
        }
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.advance(ack.now);
        if ack.ecn_marked && self.config.notification == Notification::Ack {
            self.notify(ack.now);
        }
        self.allowance()
    }
    fn on_loss(&mut self, now: Time, _: Loss) -> Allowance {
        self.on_timer(now)
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.advance(now);
        self.notify(now);
        self.allowance()
    }
    /// Handles a notice as a CNP. DCQCN's switches send none; the ports of `pacc` send notices in place of marks and
    /// CNPs.
    fn on_notice(&mut self, now: Time, _: &Notice) -> Option<Allowance> {
        Some(self.on_cnp(now))
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        self.advance(now);
        self.allowance()
    }
    fn on_sent(&mut self, now: Time, bytes: Bytes) -> Option<Allowance> {
        if !self.config.count_bytes || self.increase_due == Time::MAX {
            return None;
        }
        self.sent = self.sent.saturating_add(bytes.as_u64());
        if self.sent < self.config.byte_counter.as_u64() {
            return None;
        }
        self.advance(now);
        self.sent = 0;
        if !self.is_recovered() {
            self.increase(Step::Bytes);
        }
        self.byte_steps = self.byte_steps.saturating_add(1);
        Some(self.allowance())
    }
    fn timer_lead(&self) -> Time {
        // The artifact's clocks tick even if there is nothing to do.
        if self.check_due < self.increase_due { self.config.decrease_interval } else { self.config.increase_interval }
    }
}

#[cfg(test)]
mod tests;
