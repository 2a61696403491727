//! `qcn`: quantized congestion notification. IEEE Std 802.1Qau-2010 (now IEEE 802.1Q, clauses 30 to 33); M. Alizadeh
//! et al., "Data Center Transport Mechanisms: Congestion Control Theory and IEEE Standardization", Allerton 2008.
//!
//! | standard              | here                       | unit                  |
//! |-----------------------|----------------------------|-----------------------|
//! | Q, Q_old, Q_eq        | `q`, `q_old`, `q_eq`       | bytes                 |
//! | w                     | `w`                        | 1                     |
//! | F_b                   | `feedback`                 | bytes                 |
//! | QntzFb                | `quantised`                | 63 for the largest    |
//! | R_C, R_T              | `rate`, `target`           | bit/s                 |
//! | G_d                   | `gd`                       | 1 / QntzFb            |
//! | R_AI, R_HAI           | `ai`, `hai`                | bit/s                 |
//! | byte, timer stage     | `byte_cycles`, `timer_cycles` | cycles since the CNM |
//!
//! Readings: the congestion point is the whole port; only data frames are counted and sampled, and the queue includes
//! the sampled frame. A message is sent if the quantised feedback is not 0. A cycle uses the counts before it, so
//! fast recovery has `threshold` cycles, and the i-th hyper step is i = min(counts) - `threshold` + 1. Counters and
//! timers have no jitter of their own. The rate limiter is released when its rate is within 1 bit/s of the line rate,
//! which halving alone would never quite reach.
//! The ns-3 artifact has no QCN: the profile changes nothing.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, MadeFor};
use crate::draws::Draws;
use crate::needs::{Needs, NetworkNeeds};
use crate::port::{Actions, Notice, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortStep, PortView};

algorithm_config! {
    /// Parameters of QCN.
    pub struct QcnConfig {
        /// Queue that a port aims at (IEEE8021-CN-MIB: 26,000 bytes; 150 KB to compare with RoCC at 40 Gb/s).
        q_eq: Bytes = Bytes::new(26_000);
        /// Weight of the queue's growth between two samples against its distance from `q_eq` (802.1Qau: 2).
        w: f64 = 2.0, in 0.0..=100.0;
        /// Bytes from one sampled frame to the next without congestion; an eighth as many with the most (802.1Qau).
        sample_base: Bytes = Bytes::new(150_000);
        /// Largest deviation of a sampling interval from its table, as a share of it (802.1Qau: 0.15).
        sample_jitter: f64 = 0.15, in 0.0..=0.99;
        /// Decrease for each of the 63 steps of feedback (IEEE8021-CN-MIB: 2^-7).
        gd: f64 = 1.0 / 128.0, in 0.0..=1.0;
        /// Least factor by which one message changes the rate (IEEE8021-CN-MIB: 50 %).
        least_factor: f64 = 0.5, in 0.01..=1.0;
        /// Bytes sent in a cycle of the byte counter, half as many after fast recovery (IEEE8021-CN-MIB).
        byte_reset: Bytes = Bytes::new(150_000);
        /// Length of a cycle of the timer, half as long after fast recovery (IEEE8021-CN-MIB).
        time_reset: Time = Time::from_ms(15);
        /// Cycles of fast recovery (IEEE8021-CN-MIB).
        threshold: u32 = 5;
        /// Additive step R_AI (IEEE8021-CN-MIB).
        ai: Rate = Rate::from_mbps(5);
        /// Hyper step R_HAI (IEEE8021-CN-MIB).
        hai: Rate = Rate::from_mbps(50);
        /// If true, the steps are these times the line rate over 10 Gb/s, for which they were made (not in 802.1Qau).
        scaled: bool = false;
        /// If true, the first cycle after a message divides a target above ten times the rate by 8 (an option of QCN).
        target_reduction: bool = true;
        /// Slowest rate (IEEE8021-CN-MIB).
        min_rate: Rate = Rate::from_mbps(5);
    }
}

/// The steps of 802.1Qau, which are for links of 1 to 10 Gb/s.
const STEPS: &[MadeFor] = &[step("ai"), step("hai")];

const fn step(param: &'static str) -> MadeFor {
    MadeFor { param, least: Rate::from_gbps(1), most: MADE_FOR, source: "IEEE 802.1Qau" }
}

impl AlgorithmSpec for QcnConfig {
    type Controller = Qcn;
    type Port = QcnPort;
    fn needs(&self) -> Needs {
        Needs { network: NetworkNeeds { ports: PortScope::Switches, ..NetworkNeeds::NOTHING }, ..Needs::NOTHING }
    }
    fn made_for(&self) -> &'static [MadeFor] {
        if self.scaled { &[] } else { STEPS }
    }
    fn build(&self, flow: &FlowContext) -> Qcn {
        let line = flow.line_rate.as_bps_f64();
        let scale = if self.scaled { line / MADE_FOR.as_bps_f64() } else { 1.0 };
        Qcn {
            line,
            min: self.min_rate.as_bps_f64().min(line),
            ai: self.ai.as_bps_f64() * scale,
            hai: self.hai.as_bps_f64() * scale,
            rate: line,
            target: line,
            byte_cycles: 0,
            timer_cycles: 0,
            sent: 0,
            timer_due: Time::MAX,
            config: self.clone(),
        }
    }
    fn build_port(&self, port: &PortContext) -> Option<QcnPort> {
        let mut congestion_point = QcnPort {
            config: self.clone(),
            port: port.port,
            q_old: 0.0,
            until_sample: 0.0,
            draws: Draws::new(port.seed, port.port),
        };
        congestion_point.plan_sample(0);
        Some(congestion_point)
    }
}

/// The highest link rate for which the standard's steps were made.
const MADE_FOR: Rate = Rate::from_gbps(10);
/// Largest quantised feedback, which has 6 bits.
const MOST_QUANTISED: u32 = 63;
/// Sampling intervals by the upper 3 bits of the quantised feedback, in KB for a base of 150 KB (802.1Qau).
const INTERVALS: [f64; 8] = [150.0, 75.0, 50.0, 37.5, 30.0, 25.0, 21.5, 18.5];

/// An egress port that samples frames: the congestion point.
#[derive(Clone, Debug)]
pub struct QcnPort {
    config: QcnConfig,
    port: u32,
    q_old: f64,
    /// Bytes until the next sample.
    until_sample: f64,
    draws: Draws,
}

impl QcnPort {
    /// Returns F_b = (Q_eq - Q) - w (Q - Q_old).
    fn feedback(&self, q: f64) -> f64 {
        (self.config.q_eq.as_f64() - q) - self.config.w * (q - self.q_old)
    }

    /// Returns QntzFb: negative feedback as a fraction of its maximum, Q_eq (1 + 2 w), in 63 steps; 0 if there is no
    /// congestion.
    fn quantise(&self, feedback: f64) -> u32 {
        let most = self.config.q_eq.as_f64() * (1.0 + 2.0 * self.config.w);
        (f64::from(MOST_QUANTISED) * (-feedback / most).clamp(0.0, 1.0)) as u32
    }

    /// Draws the number of bytes until the next sample; it is smaller with more congestion.
    fn plan_sample(&mut self, quantised: u32) {
        let share = INTERVALS[(quantised / 8) as usize] / INTERVALS[0];
        let deviation = self.config.sample_jitter * (2.0 * self.draws.uniform() - 1.0);
        self.until_sample = self.config.sample_base.as_f64() * share * (1.0 + deviation);
    }

    /// Takes a sample at queue length `q` and returns its quantised feedback.
    fn sample(&mut self, q: f64) -> u32 {
        let quantised = self.quantise(self.feedback(q));
        self.q_old = q;
        self.plan_sample(quantised);
        quantised
    }
}

impl PortAgent for QcnPort {
    fn watches(&self, kind: PortPacketKind, step: PortStep) -> bool {
        (kind, step) == (PortPacketKind::Data, PortStep::Enqueue)
    }

    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, actions: &mut Actions) {
        if packet.kind != PortPacketKind::Data {
            return;
        }
        self.until_sample -= f64::from(packet.wire);
        if 0.0 < self.until_sample {
            return;
        }
        let quantised = self.sample((view.queue_bytes + u64::from(packet.wire)) as f64);
        if 0 < quantised {
            let values = [f64::from(quantised), 0.0, 0.0, 0.0];
            actions.notices.push(Notice { flow: packet.flow, port: self.port, values });
        }
    }
}

/// A flow under QCN: the reaction point.
#[derive(Clone, Debug)]
pub struct Qcn {
    config: QcnConfig,
    line: f64,
    min: f64,
    /// R_AI and R_HAI for this line rate.
    ai: f64,
    hai: f64,
    rate: f64,
    target: f64,
    byte_cycles: u32,
    timer_cycles: u32,
    /// Bytes sent in the present cycle.
    sent: u64,
    /// End of the timer's cycle; [`Time::MAX`] without a rate limiter.
    timer_due: Time,
}

impl Qcn {
    fn is_limited(&self) -> bool {
        self.timer_due != Time::MAX
    }

    /// Handles a message: R_T ← R_C if a cycle of the byte counter is over, R_C ← R_C max(1 - G_d QntzFb, 1/2), and
    /// cycles restart.
    fn decrease(&mut self, now: Time, quantised: f64) {
        if 0 < self.byte_cycles {
            self.target = self.rate;
        }
        let factor = (1.0 - self.config.gd * quantised).max(self.config.least_factor);
        self.rate = (self.rate * factor).max(self.min);
        (self.byte_cycles, self.timer_cycles, self.sent) = (0, 0, 0);
        self.timer_due = now.saturating_add(self.config.time_reset);
    }

    /// Ends a cycle: updates R_T by its phase, then R_C ← (R_C + R_T) / 2.
    fn increase(&mut self) {
        let threshold = self.config.threshold;
        let (least, most) = (self.byte_cycles.min(self.timer_cycles), self.byte_cycles.max(self.timer_cycles));
        if threshold <= least {
            self.target += f64::from(least - threshold + 1) * self.hai;
        } else if threshold <= most {
            self.target += self.ai;
        } else if self.config.target_reduction && most == 0 && 10.0 * self.rate < self.target {
            self.target /= 8.0;
        }
        self.target = self.target.min(self.line);
        self.rate = f64::midpoint(self.rate, self.target);
        if self.line - 1.0 < self.rate {
            self.release();
        }
    }

    /// Releases the rate limiter: the flow sends at line rate until the next message.
    fn release(&mut self) {
        (self.rate, self.target) = (self.line, self.line);
        (self.byte_cycles, self.timer_cycles, self.sent) = (0, 0, 0);
        self.timer_due = Time::MAX;
    }

    /// Returns `true` if a counter is in fast recovery after `cycles` cycles. After fast recovery, cycles are half as
    /// long.
    fn is_fast(&self, cycles: u32) -> bool {
        cycles < self.config.threshold
    }

    /// Ends the timer's cycles that are over at `now`.
    fn advance(&mut self, now: Time) {
        while self.is_limited() && self.timer_due <= now {
            self.increase();
            if self.is_limited() {
                self.timer_cycles = self.timer_cycles.saturating_add(1);
                let full = self.config.time_reset;
                let cycle = if self.is_fast(self.timer_cycles) { full } else { Time::from_ps(full.as_ps() / 2) };
                self.timer_due = self.timer_due.saturating_add(cycle.max(Time::from_ps(1)));
            }
        }
    }

    /// Returns the length of the byte counter's present cycle, in bytes.
    fn byte_cycle(&self) -> u64 {
        let full = self.config.byte_reset.as_u64();
        if self.is_fast(self.byte_cycles) { full } else { full / 2 }
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::MAX, rate: Rate::from_bps_f64(self.rate), timer: self.timer_due }
    }
}

impl Controller for Qcn {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.on_timer(ack.now)
    }
    fn on_loss(&mut self, now: Time, _: Loss) -> Allowance {
        self.on_timer(now)
    }
    fn on_cnp(&mut self, now: Time) -> Allowance {
        self.on_timer(now)
    }
    fn on_timer(&mut self, now: Time) -> Allowance {
        self.advance(now);
        self.allowance()
    }
    fn on_notice(&mut self, now: Time, notice: &Notice) -> Option<Allowance> {
        self.advance(now);
        self.decrease(now, notice.values[0].clamp(0.0, f64::from(MOST_QUANTISED)));
        Some(self.allowance())
    }
    fn on_sent(&mut self, now: Time, bytes: Bytes) -> Option<Allowance> {
        if !self.is_limited() {
            return None;
        }
        self.sent = self.sent.saturating_add(bytes.as_u64());
        if self.sent < self.byte_cycle() {
            return None;
        }
        self.advance(now);
        if self.is_limited() {
            self.sent = 0;
            self.increase();
        }
        if self.is_limited() {
            self.byte_cycles = self.byte_cycles.saturating_add(1);
        }
        Some(self.allowance())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{data_packet, flow_25g, port_40g};

    fn port() -> QcnPort {
        QcnConfig { sample_jitter: 0.0, ..QcnConfig::default() }.build_port(&port_40g()).unwrap()
    }

    fn message(quantised: f64) -> Notice {
        Notice { flow: 1, port: 7, values: [quantised, 0.0, 0.0, 0.0] }
    }

    /// Returns the notices for frames of 1,000 bytes at a queue of `queue` bytes, each frame included.
    fn notices(port: &mut QcnPort, queue: u64, frames: u64) -> Vec<(u64, f64)> {
        let mut actions = Actions::default();
        let mut sent = Vec::new();
        for i in 1..=frames {
            let view = PortView { now: Time::ZERO, queue_bytes: queue - 1_000 };
            port.on_enqueue(&view, &mut data_packet(3, 1_000), &mut actions);
            assert!(actions.notices.iter().all(|n| (n.flow, n.port) == (3, 7)));
            sent.extend(actions.notices.drain(..).map(|n| (i, n.values[0])));
        }
        sent
    }

    #[test]
    fn feedback_by_hand() {
        let mut p = port();
        // 26,000 - 39,000 - 2 (39,000 - 0) = -91,000 of at most 26,000 x 5 = 130,000: 63 x 0.7 = 44.1.
        assert_eq!(p.feedback(39_000.0).to_bits(), (-91_000.0_f64).to_bits());
        assert_eq!(p.sample(39_000.0), 44);
        // The same queue again: -13,000, 63 x 0.1 = 6.3. Then the queue shrinks by 10,000: 26,000 - 29,000 +
        // 20,000 > 0.
        assert_eq!(p.sample(39_000.0), 6);
        assert_eq!(p.feedback(29_000.0).to_bits(), 17_000.0_f64.to_bits());
        assert_eq!(p.sample(29_000.0), 0);
        // The maximum: Q = 2 Q_eq after Q_old = 0 is -26,000 - 104,000.
        assert_eq!(p.quantise(-130_000.0), 63);
        assert_eq!(p.quantise(-1e9), 63);
        // Less than a step, 130,000 / 63 = 2,063 bytes, counts as 0.
        assert_eq!((p.quantise(-2_063.0), p.quantise(-2_064.0)), (0, 1));
    }

    #[test]
    fn the_sampling_interval_by_the_table() {
        let interval = |quantised| {
            let mut p = port();
            p.plan_sample(quantised);
            p.until_sample.round() as u64
        };
        let each = [0, 8, 16, 24, 32, 40, 48, 56].map(interval);
        assert_eq!(each, [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500]);
        assert_eq!([7, 15, 23, 31, 39, 47, 55, 63].map(interval), each);
    }

    #[test]
    fn the_sampled_frame_is_notified_of() {
        // The first sample is the 150th frame, with -91,000: 44, so the next are 25 KB later with 6, then 150 KB.
        assert_eq!(notices(&mut port(), 39_000, 340), [(150, 44.0), (175, 6.0), (325, 6.0)]);
        // A queue below Q_eq causes no message.
        assert_eq!(notices(&mut port(), 5_000, 1_000), []);
    }

    #[test]
    fn samples_are_15_percent_off_at_most_and_on_time_in_the_mean() {
        let mut p = QcnConfig::default().build_port(&port_40g()).unwrap();
        let intervals = [(); 10_000].map(|()| {
            p.plan_sample(63);
            p.until_sample
        });
        let (least, most) = (18_500.0 * 0.85, 18_500.0 * 1.15);
        assert!(intervals.iter().all(|i| (least..=most).contains(i)));
        // Uniform: standard deviation 18,500 x 0.15 / sqrt(3) = 1,602, of the mean of 10,000: 16.
        let mean = intervals.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 18_500.0).abs() < 50.0, "{mean}");
        assert!(intervals.iter().any(|&i| i < 1.01 * least) && intervals.iter().any(|&i| 0.99 * most < i));
    }

    #[test]
    fn phases_by_hand() {
        let mut qcn = QcnConfig::default().build(&flow_25g());
        assert_eq!(qcn.on_sent(Time::ZERO, Bytes::new(10_000_000)), None);
        // A cut by 63/128: 25 x 65/128 = 12.6953125 Gb/s.
        let a = qcn.on_notice(Time::from_ms(1), &message(63.0)).unwrap();
        assert_eq!((a.rate.as_bps(), a.timer), (12_695_312_500, Time::from_ms(16)));
        // A second message before a cycle is over leaves the target: 12.6953125 x 124/128 = 12.298583984 Gb/s.
        let a = qcn.on_notice(Time::from_ms(2), &message(4.0)).unwrap();
        assert_eq!((a.rate.as_bps(), qcn.target), (12_298_583_984, 25e9));
        // A byte cycle: half way, (12.298583984375 + 25) / 2.
        let mut now = Time::from_ms(2);
        let cycle = |qcn: &mut Qcn, now, bytes: u64| {
            assert_eq!(qcn.on_sent(now, Bytes::new(bytes - 1)), None);
            qcn.on_sent(now, Bytes::new(1)).unwrap()
        };
        assert_eq!(cycle(&mut qcn, now, 150_000).rate.as_bps(), 18_649_291_992);
        // Now a message makes the rate the target.
        qcn.on_notice(now, &message(32.0));
        assert_eq!((qcn.target.round() as u64, qcn.rate.round() as u64), (18_649_291_992, 13_986_968_994));
        // Five cycles of fast recovery, then 75 KB per cycle and 5 Mb/s each.
        let target = qcn.target;
        for _ in 0..5 {
            cycle(&mut qcn, now, 150_000);
        }
        assert_eq!((qcn.byte_cycles, qcn.target), (5, target));
        assert!((target - qcn.rate - (target * 0.25) / 32.0).abs() < 1.0);
        cycle(&mut qcn, now, 75_000);
        assert_eq!(qcn.target, target + 5e6);
        // Five timer cycles of 15 ms are additive too, since the byte counter is past its threshold; then both are: 50
        // and 100 Mb/s, 7.5 ms apart.
        let mut due = Time::from_ms(17);
        for _ in 0..5 {
            now = qcn.timer_due;
            assert_eq!(now, due);
            due += Time::from_ms(15);
            qcn.on_timer(now);
        }
        assert_eq!((qcn.timer_cycles, qcn.target), (5, target + 30e6));
        assert_eq!(qcn.timer_due, Time::from_us(84_500));
        cycle(&mut qcn, now, 75_000);
        assert_eq!(qcn.target, target + 80e6);
        qcn.on_timer(Time::from_us(84_500));
        assert_eq!((qcn.target, qcn.timer_due), (target + 130e6, Time::from_ms(92)));
        // Seven cycles behind both: min(7, 6) - 5 + 1 = 2 times.
        cycle(&mut qcn, now, 75_000);
        assert_eq!(qcn.target, target + 230e6);
    }

    #[test]
    fn a_far_target_is_reduced_once() {
        let rate_and_target = |target_reduction| {
            let mut qcn = QcnConfig { target_reduction, ..QcnConfig::default() }.build(&flow_25g());
            // (65/128)^4 = 0.0665: 1.662 Gb/s under a target of 25.
            for _ in 0..4 {
                qcn.on_notice(Time::ZERO, &message(63.0));
            }
            let rate = qcn.rate;
            qcn.on_timer(Time::from_ms(30));
            (qcn.rate - rate, qcn.target)
        };
        let low = 25e9 * 65.0_f64 * 65.0 * 65.0 * 65.0 / (128.0_f64 * 128.0 * 128.0 * 128.0);
        // Two timer cycles: twice half way, to 3.125 or to 25 Gb/s.
        for (reduced, target) in [(true, 3.125e9), (false, 25e9)] {
            let (gain, t) = rate_and_target(reduced);
            assert_eq!(t, target);
            assert!((gain - 0.75 * (target - low)).abs() < 1.0, "{gain}");
        }
    }

    #[test]
    fn a_recovered_flow_has_no_limiter() {
        let mut qcn = QcnConfig::default().build(&flow_25g());
        let mut a = qcn.on_notice(Time::ZERO, &message(63.0)).unwrap();
        let mut n_cycles = 0;
        while a.timer < Time::MAX {
            a = qcn.on_timer(a.timer);
            n_cycles += 1;
        }
        // 12.3 Gb/s below the line halve 34 times to below 1 bit/s.
        assert_eq!((a.rate, n_cycles), (Rate::from_gbps(25), 34));
        assert_eq!(qcn.on_sent(Time::from_ms(900), Bytes::new(1_000_000)), None);
        // The next message starts from line rate.
        let a = qcn.on_notice(Time::from_ms(900), &message(63.0)).unwrap();
        assert_eq!((a.rate.as_bps(), qcn.target), (12_695_312_500, 25e9));
    }

    #[test]
    fn scaled_steps_are_for_10_gbps() {
        let qcn = QcnConfig { scaled: true, ..QcnConfig::default() }.build(&flow_25g());
        assert_eq!((qcn.ai, qcn.hai), (12.5e6, 125e6));
        let qcn = QcnConfig::default().build(&flow_25g());
        assert_eq!((qcn.ai, qcn.hai), (5e6, 50e6));
    }
}
