//! `mpcc`: MPCC, as far as it is described in public. T. Gilad, N. Rozen-Schiff, P. B. Godfrey, C. Raiciu, M. Schapira,
//! "MPCC: Online Learning Multipath Transport", CoNEXT 2020; the authors' module of the Linux kernel, the source of the
//! constants.
//!
//! | paper, module     | here           | unit                     |
//! |-------------------|----------------|--------------------------|
//! | x_r               | `rate`         | payload bytes per second |
//! | Σ of the others' x | `others`      | payload bytes per second |
//! | MI                | `Interval`     |                          |
//! | U                 | `utility`      | (bytes per second)^0.9   |
//! | L                 | `loss`         | 1                        |
//! | dRTT/dt           | `inflation`    | 1                        |
//! | amplifier, change_bound, swing_buffer | same | 1              |
//! | `advertised_rate` | `published`    | payload bytes per second |
//!
//! Every subflow searches for the rate with the highest utility for the connection: it sends four monitor intervals a
//! little above and below its rate and then moves along the gradient, with the rates of the other subflows as they last
//! published them.
//!
//! Readings. Acknowledgments do not report lost bytes, so a byte counts as lost when it arrives in order after later
//! bytes, and an interval is known when all its data is acknowledged in order; the module counts holes. The
//! first move is compared with the worse of the first two probes. A rate is at most line rate. The order of the probes
//! in a pair is drawn from a stream of the flow's start and the subflow's number. The module reads the clock only
//! when an acknowledgment arrives, and so does this. The gain of latency is the module's, 1; Vivace's is 900. Outside
//! the start, round-trip times that fall by more than the noise raise the utility, as in Vivace's public kernel module;
//! a reading with max(dRTT/dt, 0) differs.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, FlowContext, Loss};
use crate::coupled::{Alone, CoupledController, CoupledSpec, PathState};
use crate::draws::Draws;
use crate::needs::Needs;
use crate::port::NoPort;
use crate::subflow::Srtt;

algorithm_config! {
    /// Parameters of MPCC.
    pub struct MpccConfig {
        /// First rate of a subflow (module: 500,000 bytes per second).
        initial_rate: Rate = Rate::from_mbps(4);
        /// Slowest rate of a subflow (module: 25,000 bytes per second).
        min_rate: Rate = Rate::from_bps(200_000);
        /// Smallest change of a rate (module: 62,500 bytes per second).
        min_step: Rate = Rate::from_bps(500_000);
        /// Bytes per second that a rate moves for each unit of utility per byte per second (module: 250 x 1000 / 2).
        gain: f64 = 125_000.0, in 0.0..=1e15;
        /// Power of the connection's rate in the utility (module, Vivace: 0.9).
        exponent: f64 = 0.9, in 0.01..=1.0;
        /// Cost of loss in the utility (module: 11; Vivace: 11.35).
        loss_cost: f64 = 11.0, in 0.0..=100_000.0;
        /// Cost of growing round-trip times in the utility (module: 1; Vivace: 900).
        latency_cost: f64 = 1.0, in 0.0..=100_000.0;
        /// Slope of round-trip times, up or down, that is taken for noise (module: 0.03).
        latency_noise: f64 = 0.03, in 0.0..=1.0;
        /// Distance of probes from the rate, and the most by which a change may grow, as a part of the connection's
        /// rate (module: 0.05).
        probe: f64 = 0.05, in 0.001..=0.5;
        /// Length of a monitor interval in smoothed round-trip times (module: 1.5).
        interval: f64 = 1.5, in 0.1..=100.0;
    }
}

/// A flow under MPCC.
pub type Mpcc = Alone<MpccConnection>;

impl AlgorithmSpec for MpccConfig {
    type Controller = Mpcc;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs::NOTHING
    }
    fn build(&self, flow: &FlowContext) -> Mpcc {
        Alone(self.build_connection(std::slice::from_ref(flow)))
    }
}

impl CoupledSpec for MpccConfig {
    type Connection = MpccConnection;
    fn build_connection(&self, subflows: &[FlowContext]) -> MpccConnection {
        MpccConnection { subflows: subflows.iter().enumerate().map(|(r, flow)| Subflow::new(self, flow, r)).collect() }
    }
}

/// A connection under MPCC.
#[derive(Clone, Debug)]
pub struct MpccConnection {
    subflows: Vec<Subflow>,
}

/// A monitor interval: the data sent in it, and its fate.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    rate: f64,
    began: Time,
    start_seq: u64,
    /// Time its last byte was sent, and the byte after that; `None` while the interval is being sent.
    ended: Option<(Time, u64)>,
    /// Smoothed round-trip times at the acknowledgments of its first and its last byte, in seconds.
    rtts: Option<(f64, f64)>,
    lost: f64,
}

impl Interval {
    fn sent(&self) -> f64 {
        self.ended.map_or(0.0, |(_, end_seq)| end_seq.saturating_sub(self.start_seq) as f64)
    }
    fn seconds(&self) -> f64 {
        self.ended.map_or(0.0, |(ended, _)| ended.saturating_sub(self.began).as_secs_f64())
    }
    /// Returns the lost fraction of the bytes sent.
    fn loss(&self) -> f64 {
        let sent = self.sent();
        if 0.0 < sent { (self.lost / sent).min(1.0) } else { 0.0 }
    }
    /// Returns the growth of the round-trip time per time.
    fn inflation(&self) -> f64 {
        let (seconds, (first, last)) = (self.seconds(), self.rtts.unwrap_or_default());
        if 0.0 < seconds { (last - first) / seconds } else { 0.0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The rate doubles.
    Start { attempts: u32 },
    /// Two pairs of intervals, each above and below the rate.
    Probe,
    /// The rate moves along the gradient.
    Move,
}

/// Number of times that the start repeats a rate without higher utility before it returns to the last rate.
const START_ATTEMPTS: u32 = 2;
/// Loss above which an interval with more than a hundred packets halves the rate.
const BRAKE_LOSS: f64 = 0.3;

#[derive(Clone, Debug)]
struct Subflow {
    config: MpccConfig,
    line: Rate,
    /// Payload bytes per byte on the wire.
    payload_share: f64,
    mss: f64,
    srtt: Srtt,
    alive: bool,
    rate: f64,
    published: f64,
    others: f64,
    phase: Phase,
    intervals: Vec<Interval>,
    n_sent: usize,
    n_known: usize,
    /// Rate and utility with which the next interval is compared.
    reference: (f64, f64),
    /// `true` if the last change of rate was an increase; `None` if the rate did not change.
    last_up: Option<bool>,
    amplifier: f64,
    change_bound: f64,
    swing_buffer: u32,
    /// Next byte that the receiver expects: all bytes before it have arrived.
    acked_seq: u64,
    delivered: u64,
    snd_nxt: u64,
    draws: Draws,
}

impl Subflow {
    fn new(config: &MpccConfig, flow: &FlowContext, r: usize) -> Self {
        let payload_share = flow.mtu.as_f64() / flow.wire_mtu.as_f64();
        let rate = config.initial_rate.min(flow.line_rate).as_bytes_per_sec() * payload_share;
        Self {
            config: config.clone(),
            line: flow.line_rate,
            payload_share,
            mss: flow.mtu.as_f64().max(1.0),
            srtt: Srtt::default(),
            alive: true,
            rate,
            published: rate,
            others: 0.0,
            phase: Phase::Start { attempts: START_ATTEMPTS },
            intervals: vec![Interval { rate, ..Interval::default() }],
            n_sent: 0,
            n_known: 0,
            reference: (rate, f64::NEG_INFINITY),
            last_up: None,
            amplifier: 1.0,
            change_bound: 0.0,
            swing_buffer: 0,
            acked_seq: 0,
            delivered: 0,
            snd_nxt: 0,
            draws: Draws::new(flow.start.as_ps(), r as u32),
        }
    }

    fn payload(&self, rate: Rate) -> f64 {
        rate.as_bytes_per_sec() * self.payload_share
    }

    fn clamp(&self, rate: f64) -> f64 {
        rate.max(self.payload(self.config.min_rate)).min(self.payload(self.line))
    }

    /// Returns U = x^0.9 - 11 x L - x dRTT/dt, with x the rate of the whole connection; the start ignores small losses
    /// and falling round-trip times.
    fn utility(&self, interval: &Interval) -> f64 {
        let (config, x) = (&self.config, interval.rate + self.others);
        let starts = matches!(self.phase, Phase::Start { .. });
        let loss = if starts && interval.loss() < 0.15 { 0.0 } else { interval.loss() };
        let inflation = interval.inflation();
        let is_noise = -config.latency_noise < inflation && inflation < config.latency_noise;
        let inflation = if is_noise || (starts && inflation < 0.0) { 0.0 } else { inflation };
        libm::pow(x, config.exponent) - config.loss_cost * x * loss - config.latency_cost * x * inflation
    }

    /// Returns the change of utility per change of rate from `a` to `b`, each a rate and its utility; zero if the rates
    /// are within a thousandth of each other.
    fn gradient(a: (f64, f64), b: (f64, f64)) -> f64 {
        let difference = b.0 - a.0;
        if difference.abs() < 0.001 * a.0 { 0.0 } else { (b.1 - a.1) / difference }
    }

    /// Returns the change of rate for a gradient; it grows while the direction stays the same.
    fn step(&mut self, gradient: f64) -> f64 {
        let (up, config) = (0.0 < gradient, &self.config);
        let same = self.last_up == Some(up);
        if !same {
            (self.amplifier, self.change_bound) = (0.0, 0.0);
            self.swing_buffer = (self.swing_buffer + 1).min(2);
        }
        let mut step = config.gain * gradient.abs() * (1.0 + self.amplifier);
        if same && self.swing_buffer == 0 {
            self.amplifier += 2.0;
        } else if same {
            self.swing_buffer -= 1;
        }
        let most = config.probe * (1.0 + self.change_bound) * (self.rate + self.others);
        if most < step {
            (step, self.change_bound) = (most, self.change_bound + 1.0);
        } else {
            self.change_bound = (self.change_bound - 1.0).max(0.0);
        }
        if !same {
            self.change_bound = 0.0;
        }
        let step = step.max(self.payload(config.min_step)).min(self.rate / 2.0);
        if up { step } else { -step }
    }

    /// Starts `phase` with an interval at each of `rates`.
    fn plan(&mut self, phase: Phase, rates: &[f64], now: Time) {
        self.phase = phase;
        self.intervals.clear();
        self.intervals.extend(rates.iter().map(|&rate| Interval { rate, ..Interval::default() }));
        (self.n_sent, self.n_known) = (0, 0);
        self.open(now);
    }

    fn open(&mut self, now: Time) {
        if let Some(interval) = self.intervals.get_mut(self.n_sent) {
            (interval.began, interval.start_seq) = (now, self.snd_nxt);
        }
    }

    /// Starts two pairs of intervals, each with a rate above and a rate below the present one in random order.
    fn probe(&mut self, others: f64, now: Time) {
        self.others = others;
        let distance = self.config.probe * (self.rate + others);
        let high = self.rate + distance;
        let low = if self.rate < distance { high / 2.0 } else { self.rate - distance };
        let (high, low) = (self.clamp(high), self.clamp(low));
        let mut pair = || if self.draws.uniform() < 0.5 { [low, high] } else { [high, low] };
        let rates = [pair(), pair()].concat();
        self.plan(Phase::Probe, &rates, now);
    }

    /// Counts an acknowledgment: round-trip times and losses of the intervals.
    fn count(&mut self, ack: &Ack<'_>) {
        self.srtt.sample(ack.rtt);
        self.snd_nxt = ack.snd_nxt;
        let had_hole = self.acked_seq < self.delivered;
        self.delivered = self.delivered.saturating_add(ack.newly_acked);
        if self.acked_seq < ack.ack_seq {
            let (seq, rtt) = (self.acked_seq, self.srtt.secs());
            for interval in self.intervals.iter_mut().take(self.n_sent + 1) {
                let end_seq = interval.ended.map_or(u64::MAX, |(_, end_seq)| end_seq);
                if had_hole && interval.start_seq <= seq && seq < end_seq {
                    interval.lost += ack.newly_acked as f64;
                }
                if interval.start_seq < ack.ack_seq && seq < end_seq {
                    interval.rtts = Some((interval.rtts.map_or(rtt, |(first, _)| first), rtt));
                }
            }
            self.acked_seq = ack.ack_seq;
        }
    }

    /// Ends the interval being sent if it was long enough, and counts the intervals whose data is all acknowledged.
    fn turn(&mut self, now: Time) {
        let length = self.config.interval * self.srtt.secs();
        if let Some(interval) = self.intervals.get_mut(self.n_sent) {
            let long_enough = length <= now.saturating_sub(interval.began).as_secs_f64();
            if long_enough && self.mss <= self.snd_nxt.saturating_sub(interval.start_seq) as f64 {
                interval.ended = Some((now, self.snd_nxt));
                self.n_sent += 1;
                self.open(now);
            }
        }
        while self.n_known < self.n_sent {
            let (_, end_seq) = self.intervals[self.n_known].ended.expect("what was sent has ended");
            if self.acked_seq < end_seq {
                return;
            }
            self.n_known += 1;
        }
    }

    fn brakes(&self, interval: &Interval) -> bool {
        BRAKE_LOSS < interval.loss() && 100.0 * self.mss < interval.sent()
    }

    /// Doubles the rate while utility grows.
    fn decide_start(&mut self, attempts: u32, others: f64, now: Time) {
        let interval = self.intervals[0];
        let utility = self.utility(&interval);
        let is_met = 0.9 * interval.rate * interval.seconds() < interval.sent();
        if self.reference.1 < utility && is_met {
            self.reference = (self.rate, utility);
            self.rate = self.clamp(2.0 * self.rate);
            self.plan(Phase::Start { attempts: START_ATTEMPTS }, &[self.rate], now);
        } else if 0 < attempts {
            self.plan(Phase::Start { attempts: attempts - 1 }, &[self.rate], now);
        } else {
            self.rate = self.reference.0;
            self.probe(others, now);
        }
    }

    /// Moves by the smaller gradient if both pairs agree on the direction.
    fn decide_probe(&mut self, others: f64, now: Time) {
        let known: Vec<_> = self.intervals.iter().map(|i| (i.rate, self.utility(i))).collect();
        let (a, b) = (Self::gradient(known[0], known[1]), Self::gradient(known[2], known[3]));
        let agree = 0.0 < a * b;
        let change = if 2 < self.intervals.iter().filter(|i| self.brakes(i)).count() {
            -self.rate / 2.0
        } else if agree {
            self.step(if a.abs() < b.abs() { a } else { b })
        } else {
            0.0
        };
        let rate = self.clamp(self.rate + change);
        self.last_up = (rate != self.rate).then_some(self.rate < rate);
        self.published = rate;
        if rate == self.rate {
            return self.probe(others, now);
        }
        self.rate = rate;
        self.reference = if known[0].1 < known[1].1 { known[0] } else { known[1] };
        self.plan(Phase::Move, &[rate], now);
    }

    /// Continues in the same direction, or probes again.
    fn decide_move(&mut self, others: f64, now: Time) {
        let interval = self.intervals[0];
        if self.brakes(&interval) {
            self.rate = self.clamp(self.rate / 2.0);
            return self.probe(others, now);
        }
        let here = (self.rate, self.utility(&interval));
        let gradient = Self::gradient(here, self.reference);
        let change = if gradient == 0.0 { 0.0 } else { self.step(gradient) };
        let rate = self.clamp(self.rate + change);
        self.reference = here;
        if rate == self.rate || self.last_up != Some(self.rate < rate) {
            return self.probe(others, now);
        }
        self.rate = rate;
        self.plan(Phase::Move, &[rate], now);
    }

    fn on_ack(&mut self, ack: &Ack<'_>, others: f64) {
        self.count(ack);
        self.turn(ack.now);
        if self.n_known < self.intervals.len() {
            return;
        }
        match self.phase {
            Phase::Start { attempts } => self.decide_start(attempts, others, ack.now),
            Phase::Probe => self.decide_probe(others, ack.now),
            Phase::Move => self.decide_move(others, ack.now),
        }
    }

    /// Returns the rate of the interval being sent, or otherwise the subflow's; the window is twice that rate times the
    /// RTT.
    fn allowance(&self) -> Allowance {
        let rate = self.clamp(self.intervals.get(self.n_sent).map_or(self.rate, |interval| interval.rate));
        // Before the first sample the module assumes a millisecond.
        let rtt = if self.srtt.secs() == 0.0 { 1e-3 } else { self.srtt.secs() };
        let wire = Rate::from_bps_f64(8.0 * rate / self.payload_share);
        Allowance {
            cwnd: Bytes::new((2.0 * rate * rtt).max(4.0 * self.mss) as u64),
            rate: wire.clamp(Rate::from_bps(1), self.line),
            timer: Time::MAX,
        }
    }
}

impl MpccConnection {
    /// Returns the sum of the rates that the other subflows last published.
    fn others(&self, r: usize) -> f64 {
        self.subflows.iter().enumerate().filter(|&(i, s)| i != r && s.alive).map(|(_, s)| s.published).sum()
    }
}

impl CoupledController for MpccConnection {
    fn on_start(&mut self, now: Time, r: usize) -> Allowance {
        self.subflows[r].open(now);
        self.subflows[r].allowance()
    }
    fn on_ack(&mut self, r: usize, ack: &Ack<'_>) -> Allowance {
        let others = self.others(r);
        self.subflows[r].on_ack(ack, others);
        self.subflows[r].allowance()
    }
    fn on_loss(&mut self, r: usize, _: Time, _: Loss) -> Allowance {
        self.subflows[r].allowance()
    }
    fn on_timer(&mut self, r: usize, _: Time) -> Allowance {
        self.subflows[r].allowance()
    }
    fn on_path(&mut self, r: usize, _: Time, state: PathState) {
        self.subflows[r].alive = state == PathState::Alive;
    }
}

#[cfg(test)]
mod tests;
