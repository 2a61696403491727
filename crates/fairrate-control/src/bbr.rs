//! `bbr`: BBR v1. N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V. Jacobson, "BBR: Congestion-Based Congestion
//! Control", ACM Queue 14(5), 2016; constants and recovery as in Linux (`tcp_bbr.c`).
//!
//! | paper, Linux       | here            | unit      |
//! |--------------------|-----------------|-----------|
//! | BtlBw              | `bandwidth`     | payload bytes per second |
//! | RTprop, min_rtt    | `min_rtt`       | time      |
//! | pacing_gain        | `pacing_gain()` | 1         |
//! | cwnd_gain          | `cwnd_gain()`   | 1         |
//! | cycle_idx          | `phase`         | -         |
//! | full_bw            | `full_bandwidth`| payload bytes per second |
//! | prior_cwnd         | `prior_cwnd`    | bytes     |
//! | delivered          | `delivered`     | bytes     |
//! | extra_acked        | `Aggregation`   | bytes     |
//!
//! Readings: a rate on the wire is the payload rate times the ratio of wire bytes to payload bytes. A handshake,
//! simulated or not, has measured the path's unloaded RTT: the first packets are paced by it. Linux adds three bursts
//! of segmentation offload, up to 64 KB each, to the window; hosts here have no offload, so a burst is one packet.
//! Delivered data counts, in order or not. A round ends when a segment is delivered that was sent after the round
//! began; if the transport does not know the send time (RDMA), it ends when as many bytes are delivered as were in
//! flight at its start. The gain cycle starts in a phase drawn from the flow's own stream of random numbers. If the
//! transport gives no delivery rate, the rate of each round is used. Recovery: lost bytes are subtracted from the
//! window when they are detected; packet conservation for a round, then growth up to the model's window, and the
//! earlier window at its end. A timeout: one packet, growth at once, in STARTUP a new measure of growth, and the
//! earlier window when all is repaired. Absent: the detector of policers, the restart after idle time.

mod filters;
mod window;

use fairrate_units::{Bytes, Rate, Time};

use self::filters::{Aggregation, MaxFilter};
use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::draws::Draws;
use crate::forward_controller;
use crate::needs::Needs;
use crate::port::NoPort;

/// Pacing gains of one cycle: probe, drain the queue of the probe, cruise.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The smallest window, in packets, which is also that of PROBE_RTT.
const MIN_WINDOW: f64 = 4.0;

algorithm_config! {
    /// Parameters of BBR.
    pub struct BbrConfig {
        /// Gain of rate and window in STARTUP, whose inverse drains (Linux: 2.885, 2/ln 2).
        high_gain: f64 = 2.885, in 1.0..=100.0;
        /// Gain of the window in PROBE_BW (Linux: 2).
        cwnd_gain: f64 = 2.0, in 1.0..=100.0;
        /// Share of the bandwidth that pacing leaves unused (Linux: 1 %).
        pacing_margin: f64 = 0.01, in 0.0..=0.5;
        /// Growth of the bandwidth that shows that the pipe is not full (Linux: 1.25).
        full_growth: f64 = 1.25, in 1.0..=100.0;
        /// Rounds without that growth that show that it is (Linux: 3).
        full_rounds: u32 = 3, in 1.0..=1000.0;
        /// Time for which the smallest RTT is believed (Linux: 10 s).
        min_rtt_window: Time = Time::from_ms(10_000);
        /// Least duration of PROBE_RTT (Linux: 200 ms).
        probe_rtt_time: Time = Time::from_ms(200);
        /// Packets sent at once, three times which the window has to spare (Linux: bursts of up to 64 KB).
        burst: u32 = 1, in 0.0..=1000.0;
        /// Share of what arrives ahead of the bandwidth that the window has room for (Linux: 1).
        extra_acked_gain: f64 = 1.0, in 0.0..=100.0;
        /// First window in packets (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
    }
}

impl AlgorithmSpec for BbrConfig {
    type Controller = Bbr;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs::NOTHING
    }
    fn build(&self, flow: &FlowContext) -> Bbr {
        let mss = flow.mtu.as_f64().max(1.0);
        let cwnd = f64::from(self.initial_window) * mss;
        let line = flow.line_rate.as_bps_f64();
        let bits = 8.0 * flow.wire_mtu.as_f64().max(1.0) / mss;
        let handshake_rtt = flow.path_base_rtt.as_secs_f64().max(1e-12);
        Bbr(Box::new(Model {
            line,
            mss,
            bits,
            mode: Mode::Startup,
            phase: 0,
            phase_began: flow.start,
            draws: Draws::new(flow.seed, 0),
            bandwidth: MaxFilter::default(),
            aggregation: Aggregation::new(flow.start),
            full_bandwidth: 0.0,
            full_rounds: 0,
            pipe_is_full: false,
            min_rtt: None,
            min_rtt_at: flow.start,
            probe_rtt: ProbeRtt::default(),
            round: Round::new(flow.start),
            delivered: 0,
            low_until: 0,
            repair: None,
            prior_cwnd: 0.0,
            cwnd,
            pacing: (self.high_gain * cwnd / handshake_rtt * bits).min(line),
            in_flight: 0.0,
            snd_nxt: 0,
            config: self.clone(),
        }))
    }
}

/// A flow under BBR. Its state is boxed: it is more than twice as large as that of any other algorithm, and every
/// sender has room for the largest.
#[derive(Clone, Debug)]
pub struct Bbr(Box<Model>);

impl Controller for Bbr {
    forward_controller!(self => { Self(model) => model });
}

/// The state of a flow, with its model of the path.
#[derive(Clone, Debug)]
struct Model {
    config: BbrConfig,
    /// Line rate and pacing rate in bits per second on the wire.
    line: f64,
    pacing: f64,
    mss: f64,
    /// Bits on the wire per byte of payload.
    bits: f64,
    mode: Mode,
    phase: usize,
    phase_began: Time,
    draws: Draws,
    bandwidth: MaxFilter,
    aggregation: Aggregation,
    full_bandwidth: f64,
    /// Number of rounds in which the bandwidth has not grown.
    full_rounds: u32,
    pipe_is_full: bool,
    min_rtt: Option<Time>,
    min_rtt_at: Time,
    probe_rtt: ProbeRtt,
    round: Round,
    delivered: u64,
    /// Number of delivered bytes until which PROBE_RTT keeps samples low.
    low_until: u64,
    repair: Option<Repair>,
    prior_cwnd: f64,
    cwnd: f64,
    in_flight: f64,
    snd_nxt: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// A packet-timed round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    number: u64,
    /// Number of delivered bytes beyond which the round is over.
    end: u64,
    began: Time,
    delivered_before: u64,
}

impl Round {
    fn new(now: Time) -> Self {
        Self { number: 0, end: 0, began: now, delivered_before: 0 }
    }
}

/// The progress of PROBE_RTT: its earliest end, set once the pipe is nearly empty, and whether a round has passed
/// since.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    until: Option<Time>,
    round_passed: bool,
}

/// The state of a recovery from losses.
#[derive(Clone, Copy, Debug)]
struct Repair {
    /// End of the recovery: it is over when this byte is acknowledged.
    until: u64,
    /// Set until the first acknowledgment of the recovery.
    is_new: bool,
    /// Set in the first round, in which one packet is sent for each packet that arrives.
    conserves: bool,
}

/// The values of an acknowledgment that are used more than once.
struct Sample {
    now: Time,
    /// Bytes delivered, and bytes lost.
    acked: f64,
    lost: f64,
    before: f64,
    round_begins: bool,
    /// Set when the sample is limited by something other than the network: nothing to send, or the window of PROBE_RTT.
    kept_low: bool,
    with_losses: bool,
}

impl Model {
    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => self.config.high_gain,
            Mode::Drain => 1.0 / self.config.high_gain,
            Mode::ProbeBw => CYCLE[self.phase],
            Mode::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => self.config.high_gain,
            Mode::ProbeBw => self.config.cwnd_gain,
            Mode::ProbeRtt => 1.0,
        }
    }

    /// Returns `gain` · BtlBw · RTprop plus room for bursts, in bytes; the first window while either is unknown.
    fn inflight(&self, gain: f64) -> f64 {
        let bandwidth = self.bandwidth.max();
        let Some(min_rtt) = self.min_rtt.filter(|_| 0.0 < bandwidth) else {
            return f64::from(self.config.initial_window) * self.mss;
        };
        // A probe needs two packets more, or a small window would prevent it (Linux).
        let probe = if self.mode == Mode::ProbeBw && self.phase == 0 { 2.0 } else { 0.0 };
        gain * bandwidth * min_rtt.as_secs_f64() + (3.0 * f64::from(self.config.burst) + probe) * self.mss
    }

    /// Counts rounds. At the start of a round, returns the delivery rate of the last round in bytes per second.
    fn count_round(&mut self, ack: &Ack<'_>) -> Option<f64> {
        self.delivered = self.delivered.saturating_add(ack.delivered);
        let is_over = match ack.prior_delivered {
            // A delivery without a rate sample does not end the present round.
            Some(_) if ack.delivery_rate == Rate::ZERO => false,
            Some(before) => self.round.end <= before,
            None => self.round.end < self.delivered,
        };
        if ack.delivered == 0 || !is_over {
            return None;
        }
        let delivered = (self.delivered - self.round.delivered_before) as f64;
        let span = ack.now.saturating_sub(self.round.began).as_secs_f64();
        let end = self.round_end(ack);
        let number = self.round.number + 1;
        self.round = Round { number, end, began: ack.now, delivered_before: self.delivered };
        Some(if 0.0 < span { delivered / span } else { 0.0 })
    }

    /// Returns the end of a round that begins now, in delivered bytes: the bytes delivered so far, if segments carry
    /// that number from their send time; otherwise the number when all bytes in flight have arrived.
    fn round_end(&self, ack: &Ack<'_>) -> u64 {
        if ack.prior_delivered.is_some() { self.delivered } else { self.delivered.saturating_add(ack.in_flight) }
    }

    /// Updates BtlBw. A sample that was kept low counts only if it is not below the present maximum.
    fn update_bandwidth(&mut self, sample: f64, s: &Sample) {
        if 0.0 < sample && (!s.kept_low || self.bandwidth.max() <= sample) {
            self.bandwidth.take(self.round.number, sample);
        }
    }

    /// Advances the gain cycle of PROBE_BW: one gain per RTprop. A probe lasts until it has filled the pipe; its drain
    /// ends early when the excess in flight is gone.
    fn update_cycle(&mut self, s: &Sample) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let is_long = self.min_rtt.unwrap_or(Time::ZERO) < s.now.saturating_sub(self.phase_began);
        let gain = CYCLE[self.phase];
        let is_over = if gain < 1.0 {
            is_long || s.before <= self.inflight(1.0)
        } else if 1.0 < gain {
            is_long && (s.with_losses || self.inflight(gain) <= s.before)
        } else {
            is_long
        };
        if is_over {
            (self.phase, self.phase_began) = ((self.phase + 1) % CYCLE.len(), s.now);
        }
    }

    /// Marks the pipe as full, which ends STARTUP, when the bandwidth has stopped growing.
    fn check_full_pipe(&mut self, s: &Sample) {
        if self.pipe_is_full || !s.round_begins || s.kept_low {
            return;
        }
        let bandwidth = self.bandwidth.max();
        if self.full_bandwidth * self.config.full_growth <= bandwidth {
            (self.full_bandwidth, self.full_rounds) = (bandwidth, 0);
            return;
        }
        self.full_rounds += 1;
        self.pipe_is_full = self.config.full_rounds <= self.full_rounds;
    }

    fn check_drain(&mut self, now: Time) {
        if self.mode == Mode::Startup && self.pipe_is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && self.in_flight <= self.inflight(1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// Enters PROBE_BW in a random phase, but not in the drain after a probe.
    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        let drawn = (self.draws.uniform() * (CYCLE.len() - 1) as f64) as usize;
        self.phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.phase_began = now;
    }

    /// Updates RTprop, and enters PROBE_RTT if its last sample is too old.
    fn update_min_rtt(&mut self, ack: &Ack<'_>, s: &Sample) {
        let is_old = self.min_rtt_at.saturating_add(self.config.min_rtt_window) < s.now;
        if Time::ZERO < ack.rtt && (is_old || self.min_rtt.is_none_or(|least| ack.rtt <= least)) {
            (self.min_rtt, self.min_rtt_at) = (Some(ack.rtt), s.now);
        }
        if is_old && self.mode != Mode::ProbeRtt {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt = ProbeRtt::default();
        }
        if self.mode == Mode::ProbeRtt {
            self.low_until = self.delivered.saturating_add(ack.in_flight);
            self.advance_probe_rtt(ack, s);
        }
    }

    fn advance_probe_rtt(&mut self, ack: &Ack<'_>, s: &Sample) {
        let Some(until) = self.probe_rtt.until else {
            if self.in_flight <= MIN_WINDOW * self.mss {
                let until = Some(s.now.saturating_add(self.config.probe_rtt_time));
                self.probe_rtt = ProbeRtt { until, round_passed: false };
                self.round.end = self.round_end(ack);
            }
            return;
        };
        self.probe_rtt.round_passed |= s.round_begins;
        if self.probe_rtt.round_passed && until < s.now {
            self.min_rtt_at = s.now;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            if self.pipe_is_full {
                self.enter_probe_bw(s.now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    /// Sets the pacing rate to gain · BtlBw on the wire; until the pipe is full the rate only grows.
    fn set_pacing(&mut self) {
        let payload = self.pacing_gain() * self.bandwidth.max() * (1.0 - self.config.pacing_margin);
        let rate = (payload * self.bits).min(self.line);
        if 0.0 < rate && (self.pipe_is_full || self.pacing < rate) {
            self.pacing = rate;
        }
    }

    fn allowance(&self) -> Allowance {
        let rate = Rate::from_bps_f64(self.pacing.max(1.0));
        Allowance { cwnd: Bytes::new(self.cwnd.max(1.0) as u64), rate, timer: Time::MAX }
    }
}

impl Controller for Model {
    fn on_start(&mut self, now: Time) -> Allowance {
        (self.round.began, self.min_rtt_at) = (now, now);
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let acked = ack.delivered as f64;
        (self.in_flight, self.snd_nxt) = (ack.in_flight as f64, ack.snd_nxt);
        let round_rate = self.count_round(ack);
        let sample = Sample {
            now: ack.now,
            acked,
            lost: ack.lost as f64,
            before: self.in_flight + acked + ack.lost as f64,
            round_begins: round_rate.is_some(),
            kept_low: ack.app_limited || self.delivered <= self.low_until,
            with_losses: 0 < ack.lost,
        };
        let known = Some(ack.delivery_rate.as_bytes_per_sec()).filter(|_| ack.prior_delivered.is_some());
        self.update_bandwidth(known.or(round_rate).unwrap_or(0.0), &sample);
        self.update_aggregation(&sample);
        self.update_cycle(&sample);
        self.check_full_pipe(&sample);
        self.check_drain(sample.now);
        self.update_min_rtt(ack, &sample);
        self.set_pacing();
        self.set_cwnd(ack, &sample);
        self.allowance()
    }
    fn on_loss(&mut self, _: Time, loss: Loss) -> Allowance {
        if loss == Loss::Gap && self.repair.is_some() {
            return self.allowance();
        }
        self.save_cwnd();
        self.repair = Some(Repair { until: self.snd_nxt, is_new: loss == Loss::Gap, conserves: false });
        if loss == Loss::Timeout {
            self.cwnd = self.mss;
            self.full_bandwidth = 0.0;
            // Nothing counts as in flight any more: the next delivery begins a round.
            self.round.end = self.delivered;
        }
        self.allowance()
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
