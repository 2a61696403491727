//! `nscc`: network signal congestion control, the sender's window of Ultra Ethernet (Ultra Ethernet Specification 1.0,
//! 2025). The rules are those of the Ultra Ethernet consortium's simulator (github.com/ultraethernet/uet-htsim at
//! 40ccb05, `uec.cpp`), which follows the specification; the specification's own text was not read.
//!
//! | simulator                 | here              | unit  |
//! |---------------------------|-------------------|-------|
//! | `_cwnd`, `_maxwnd`        | `cwnd`, `max_window()` | bytes on the wire |
//! | `_base_rtt`, `_network_rtt` | `base_rtt`, `tau` | ps    |
//! | `_target_Qdelay`          | `target`          | ps    |
//! | `_scaling_factor_a`, `_b` | `a`, in `alpha`   | 1     |
//! | `_alpha`, `_fi`, `_eta`, `_fi_scale` | the same | bytes per ps, bytes, bytes, 1 |
//! | `_gamma`, `_delay_alpha`  | `gamma`, `delay_gain` | 1 |
//! | `_avg_delay`              | `average`         | ps    |
//! | `_inc_bytes`, `_received_bytes` | `increase`, `since_adjusted` | bytes², bytes |
//! | `_achieved_bytes`, `_qa_endtime` | `achieved`, `check_at` | bytes, ps |
//! | `_bytes_to_ignore`, `_bytes_ignored` | `to_ignore`, `ignored` | bytes |
//!
//! Readings: the target is 0.75 base RTTs with switches that trim, and 1 without (`target = 1.0`). Delays are compared
//! with the smallest round trip seen; a sample below it becomes the new base. Marks without delay switch the path and
//! leave the window alone. A receiver in trouble may ask for a penalty (`rcv_cwnd_pend` of the specification) of up to
//! 127: that many 128ths of the newly acknowledged bytes go off the window. This is the published reading of the
//! specification; the simulator has 255 in place of 128, and never sends one. Loss detection without trimming (SLEEK)
//! is left out.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, Trimmed};
use crate::limits::bdp;
use crate::needs::{FeedbackNeeds, MarkedQueue, Needs, NetworkNeeds, RedDefault};
use crate::port::NoPort;
use crate::rccc::CREDITS;

algorithm_config! {
    /// Parameters of NSCC. The defaults are those of uet-htsim.
    pub struct NsccConfig {
        /// Target queueing delay, in base RTTs of the network.
        target: f64 = 0.75, in 0.01..=100.0, tune = Log(0.1, 3.0);
        /// First window, in bandwidth-delay products.
        initial_window: f64 = 1.5, in 0.01..=1000.0, tune = Log(0.2, 1.5);
        /// Largest window, in bandwidth-delay products.
        max_window: f64 = 1.5, in 0.01..=1000.0, tune = Log(1.5, 6.0);
        /// Proportional increase at a delay of zero, in packets per 12 us of the reference network.
        alpha: f64 = 4.0, in 0.0..=1000.0, tune = Log(0.4, 40.0);
        /// Fair increase, in packets a round trip of the reference network.
        fi: f64 = 5.0, in 0.0..=1000.0, tune = Log(0.5, 50.0);
        /// Increase once a round trip in any case, in packets.
        eta: f64 = 0.15, in 0.0..=1000.0, tune = Log(0.01, 1.5);
        /// Share of the acknowledged bytes by which a window grows that finds no queue.
        fast: f64 = 0.25, in 0.0..=1000.0, tune = Log(0.02, 2.5);
        /// Delay below which there counts as no queue.
        fast_delay: Time = Time::from_us(1), tune = Log("200ns", "5us");
        /// Multiplicative decrease factor.
        gamma: f64 = 0.8, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// Largest decrease at once.
        max_decrease: f64 = 0.5, in 0.0..=1.0, tune = Linear(0.1, 0.9);
        /// Gain of the average delay.
        delay_gain: f64 = 0.0125, in 0.0..=1.0, tune = Log(0.001, 0.1);
        /// Quick adapt: it acts if less than the largest window, halved this many times, came through.
        gate: u32 = 3, tune = Linear(1, 6);
        /// Quick adapt: delay that counts as a loss, in targets.
        loss_delay: f64 = 4.0, in 0.0..=1000.0, tune = Log(1.0, 20.0);
        /// Packets received after which the collected increase is applied, if a round trip has not passed before.
        adjust_packets: u32 = 8, tune = Linear(1, 32);
        /// Receivers give credit as well (RCCC): a packet may go if both allow it.
        credit: bool = false;
    }
}

/// The reference network: 100 Gb/s and 12 us.
const REFERENCE_RTT: Time = Time::from_us(12);
const REFERENCE_RATE: Rate = Rate::from_gbps(100);

/// The marking of uet-htsim: between 0.2 and 0.8 bandwidth-delay products of the reference network, as a packet leaves.
pub(crate) const RED: RedDefault = RedDefault {
    kmin: Bytes::new(30_000),
    kmax: Bytes::new(120_000),
    pmax: 1.0,
    per_rate: Some(REFERENCE_RATE),
    queue: MarkedQueue::Left,
};

impl AlgorithmSpec for NsccConfig {
    type Controller = Nscc;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds { ecn: true, red: Some(RED), ..NetworkNeeds::NOTHING },
            feedback: FeedbackNeeds { uet: true, credit: self.credit.then_some(CREDITS), ..FeedbackNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Nscc {
        let tau = flow.base_rtt.as_ps() as f64;
        let packet = flow.wire_mtu.as_f64();
        // The payload of a packet: in the simulator these constants are in packets without headers.
        let payload = flow.mtu.as_f64();
        let a = bdp(flow.line_rate, flow.base_rtt) / bdp(REFERENCE_RATE, REFERENCE_RTT);
        let mut nscc = Nscc {
            line_rate: flow.line_rate,
            packet,
            tau,
            base_rtt: tau,
            target: self.target * tau,
            // 4 MSS a b / T with b = T / 12 us.
            alpha: self.alpha * payload * a / REFERENCE_RTT.as_ps() as f64,
            fi: self.fi * payload * a,
            eta: self.eta * payload * a,
            fi_scale: self.fast * a,
            adjust_bytes: f64::from(self.adjust_packets) * packet,
            cwnd: 0.0,
            average: 0.0,
            increase: 0.0,
            since_adjusted: 0.0,
            adjusted_at: 0.0,
            fast_count: 0.0,
            is_fast: false,
            cut_at: 0.0,
            achieved: 0.0,
            check_at: 0.0,
            is_triggered: false,
            to_ignore: 0.0,
            ignored: 0.0,
            config: Box::new(self.clone()),
        };
        nscc.cwnd = (self.initial_window / self.max_window * nscc.max_window()).trunc();
        nscc
    }
}

/// A flow under NSCC.
#[derive(Clone, Debug)]
pub struct Nscc {
    config: Box<NsccConfig>,
    line_rate: Rate,
    /// Bytes of a full packet on the wire.
    packet: f64,
    /// The base RTT of the network, in picoseconds.
    tau: f64,
    /// The smallest round trip so far, in picoseconds.
    base_rtt: f64,
    target: f64,
    alpha: f64,
    fi: f64,
    eta: f64,
    fi_scale: f64,
    adjust_bytes: f64,
    cwnd: f64,
    average: f64,
    increase: f64,
    since_adjusted: f64,
    adjusted_at: f64,
    fast_count: f64,
    is_fast: bool,
    cut_at: f64,
    achieved: f64,
    /// End of quick adapt's round, in picoseconds; 0 before the first.
    check_at: f64,
    is_triggered: bool,
    to_ignore: f64,
    ignored: f64,
}

/// The sign of congestion that a packet brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// None: it was acknowledged without a mark.
    Clear,
    /// An ECN mark.
    Mark,
    /// The loss of its payload, which a switch has cut off.
    Trim,
}

impl Nscc {
    /// Returns the largest window in bytes: 1.5 bandwidth-delay products of the smallest round trip.
    fn max_window(&self) -> f64 {
        let bdp = (self.base_rtt * self.line_rate.as_bps_f64() / 8e12).trunc();
        (self.config.max_window * bdp).trunc()
    }

    fn bound(&mut self) {
        self.cwnd = self.cwnd.min(self.max_window()).max(self.packet).trunc();
    }

    /// Takes a round trip of `rtt` ps; returns its queueing delay.
    fn sample(&mut self, rtt: f64) -> f64 {
        self.base_rtt = self.base_rtt.min(rtt);
        rtt - self.base_rtt
    }

    /// Adds a delay to the average. A long delay without a mark is taken for that of a queue that is gone.
    fn average_in(&mut self, delay: f64, sign: Sign) {
        let gain = self.config.delay_gain;
        let counted = if sign == Sign::Clear && self.target < delay { 0.25 * self.base_rtt } else { delay };
        self.average = (gain * counted + (1.0 - gain) * self.average).trunc();
    }

    /// Quick adapt: once in a base RTT and target, takes as the window what came through, if that was an eighth of the
    /// largest and something was lost. Then a window of marks and losses goes by. Returns `true` if nothing else may
    /// act.
    fn quick_adapt(&mut self, now: f64, sign: Sign, delay: f64, in_flight: f64) -> bool {
        let acts = if self.ignored < self.to_ignore && sign != Sign::Clear {
            true
        } else if self.check_at < now {
            let is_due = self.check_at != 0.0
                && (self.is_triggered || sign == Sign::Trim || self.config.loss_delay * self.target < delay)
                && self.achieved < (self.max_window() / f64::from(self.config.gate).exp2()).trunc();
            if is_due {
                self.cwnd = self.achieved.max(self.packet);
                (self.to_ignore, self.ignored, self.is_triggered) = (in_flight, 0.0, false);
            }
            self.achieved = 0.0;
            self.check_at = now + self.base_rtt + self.target;
            is_due
        } else {
            false
        };
        if acts {
            (self.increase, self.since_adjusted) = (0.0, 0.0);
        }
        acts
    }

    /// Grows by `newly` bytes without a mark at `delay` below the target.
    fn grow(&mut self, newly: f64, delay: f64) {
        if delay < self.config.fast_delay.as_ps() as f64 {
            self.fast_count += newly;
            if self.cwnd < self.fast_count || self.is_fast {
                self.cwnd += (newly * self.fi_scale).trunc();
                self.is_fast = true;
            }
        } else {
            (self.fast_count, self.is_fast) = (0.0, false);
        }
        if !self.is_fast {
            self.increase += self.alpha * newly * (self.target - delay);
        }
    }

    fn cut(&mut self, now: f64) {
        if self.target < self.average && self.base_rtt < now - self.cut_at {
            let excess = (self.average - self.target) / self.average;
            let factor = (1.0 - self.config.gamma * excess).max(1.0 - self.config.max_decrease);
            self.cwnd = (self.cwnd * factor).trunc().max(self.packet);
            self.cut_at = now;
            (self.is_fast, self.fast_count) = (false, 0.0);
        }
    }

    /// Applies the collected increase, after enough bytes or a round trip.
    fn fulfil(&mut self, now: f64) {
        let round = self.tau <= now - self.adjusted_at;
        if self.adjust_bytes < self.since_adjusted || self.tau < now - self.adjusted_at {
            self.cwnd += (self.increase / self.cwnd).trunc();
            if round {
                self.cwnd += self.eta.trunc();
                self.adjusted_at = now;
            }
            (self.increase, self.since_adjusted) = (0.0, 0.0);
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: Bytes::new(self.cwnd as u64), rate: self.line_rate, timer: Time::MAX }
    }
}

impl Controller for Nscc {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }

    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let (now, newly) = (ack.now.as_ps() as f64, ack.newly_acked as f64);
        self.achieved += newly;
        self.since_adjusted += newly;
        self.ignored += newly;
        let sign = if ack.ecn_marked { Sign::Mark } else { Sign::Clear };
        let mut delay = self.average;
        if Time::ZERO < ack.rtt {
            delay = self.sample(ack.rtt.as_ps() as f64);
            self.average_in(delay, sign);
        }
        if !self.quick_adapt(now, sign, delay, ack.in_flight as f64) {
            match (ack.ecn_marked, delay < self.target) {
                (false, true) => self.grow(newly, delay),
                (false, false) => self.increase += self.fi * newly,
                (true, true) => {}
                (true, false) => self.cut(now),
            }
        }
        self.cwnd -= newly * f64::from(ack.penalty) / 128.0;
        self.bound();
        self.fulfil(now);
        self.bound();
        self.allowance()
    }

    fn on_trimmed(&mut self, trimmed: &Trimmed) -> Allowance {
        let now = trimmed.now.as_ps() as f64;
        if let Some(rtt) = trimmed.rtt {
            self.sample(rtt.as_ps() as f64);
        }
        self.ignored += trimmed.bytes.as_f64();
        self.average_in(self.tau, Sign::Trim);
        self.is_triggered = true;
        let is_receivers = self.config.credit && trimmed.last_hop;
        if !self.quick_adapt(now, Sign::Trim, 0.0, trimmed.in_flight as f64) && !is_receivers {
            self.cwnd -= trimmed.bytes.as_f64();
        }
        self.bound();
        self.allowance()
    }

    /// A loss found by time takes a packet off the window.
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.cwnd = (self.cwnd - self.packet).max(self.packet);
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
mod tests {
    use super::*;
    use crate::test_flow::acked;

    /// The network of uet-htsim's defaults: 100 Gb/s, three tiers, packets of 4,150 B, a base RTT of 14.02272 us.
    fn flow() -> FlowContext {
        let context = FlowContext::on(Rate::from_gbps(100), Time::from_ps(14_022_720));
        FlowContext { mtu: Bytes::new(4_086), wire_mtu: Bytes::new(4_150), ..context }
    }

    fn ack(now_us: u64, newly: u64, rtt_ps: u64, ecn_marked: bool) -> Ack<'static> {
        let (now, rtt) = (Time::from_us(now_us), Time::from_ps(rtt_ps));
        Ack { now, newly_acked: newly, rtt, ecn_marked, in_flight: 100_000, ..acked(newly, 0, 0) }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-5 * b.abs()
    }

    /// The values that uet-htsim prints for this network.
    #[test]
    fn constants_are_those_of_the_simulator() {
        let nscc = NsccConfig::default().build(&flow());
        assert_eq!((nscc.cwnd, nscc.max_window()), (262_926.0, 262_926.0));
        assert!(close(nscc.target, 10_517_040.0));
        assert!(close(nscc.alpha, 0.001_591_58));
        assert!(close(nscc.fi, 23_873.68) && close(nscc.eta, 716.210_4) && close(nscc.fi_scale, 0.292_14));
        assert!(close(nscc.adjust_bytes, 33_200.0));
    }

    /// Below the target without marks: alpha times bytes times what is left of the target, over the window, once 33,200
    /// bytes came.
    #[test]
    fn growth_is_proportional_below_the_target_and_fair_above() {
        let mut nscc = NsccConfig::default().build(&flow());
        (nscc.cwnd, nscc.adjusted_at) = (100_000.0, 100e6);
        // A delay of 5 us: 0.00159158 x 33,201 x 5,517,040 = 2.9153e8; over 100,000: 2,915 bytes.
        nscc.on_ack(&ack(101, 33_201, 14_022_720 + 5_000_000, false));
        assert_eq!(nscc.cwnd, 102_915.0);
        // At or above the target: 23,873.7 x 33,201 / 102,915 = 7,701 bytes.
        nscc.on_ack(&ack(102, 33_201, 14_022_720 + 11_000_000, false));
        assert_eq!(nscc.cwnd, 110_616.0);
        // A mark without delay leaves it. A round trip after the last adjustment, eta comes on top.
        nscc.on_ack(&ack(103, 33_201, 14_022_720 + 5_000_000, true));
        assert_eq!(nscc.cwnd, 110_616.0);
        nscc.on_ack(&ack(115, 1, 14_022_720 + 5_000_000, true));
        assert_eq!(nscc.cwnd, 111_332.0);
    }

    #[test]
    fn a_window_without_a_queue_grows_fast() {
        let mut nscc = NsccConfig::default().build(&flow());
        (nscc.cwnd, nscc.adjusted_at) = (30_000.0, 100e6);
        nscc.on_ack(&ack(101, 30_001, 14_022_720 + 999_999, false));
        // 0.29214 x 30,001.
        assert_eq!(nscc.cwnd, 30_000.0 + 8_764.0);
    }

    /// Marks with delay: cut by the average's excess over the target, at most by half, once a base RTT.
    #[test]
    fn cuts_follow_the_average_delay() {
        let mut nscc = NsccConfig::default().build(&flow());
        (nscc.cwnd, nscc.average, nscc.adjusted_at, nscc.check_at) = (200_000.0, 21_034_080.0, 100e6, 500e6);
        // The average stays at twice the target: 1 - 0.8 / 2.
        nscc.on_ack(&ack(101, 4_150, 14_022_720 + 21_034_080, true));
        assert_eq!(nscc.cwnd, 120_000.0);
        nscc.on_ack(&ack(110, 4_150, 14_022_720 + 21_034_080, true));
        assert_eq!(nscc.cwnd, 120_000.0);
    }

    /// When next to nothing came through in a round and something was trimmed, the window becomes what came through;
    /// then a window of notices goes by without a further cut.
    #[test]
    fn quick_adapt_takes_what_came_through() {
        let mut nscc = NsccConfig::default().build(&flow());
        let trim = |now_us| {
            let (now, bytes) = (Time::from_us(now_us), Bytes::new(4_150));
            Trimmed { now, bytes, rtt: None, last_hop: true, in_flight: 8_300 }
        };
        // The first round begins here; a trimmed packet takes itself off the window.
        nscc.on_trimmed(&trim(20));
        assert_eq!(nscc.cwnd, 262_926.0 - 4_150.0);
        nscc.on_ack(&ack(30, 12_450, 20_000_000, true));
        nscc.on_trimmed(&trim(50));
        assert_eq!(nscc.cwnd, 12_450.0);
        // Notices of less than 8,300 bytes go by.
        nscc.on_trimmed(&trim(51));
        assert_eq!(nscc.cwnd, 12_450.0);
        nscc.on_trimmed(&trim(52));
        assert_eq!(nscc.cwnd, 8_300.0);
    }

    /// A mark without delay leaves the window, so that the penalty acts alone: 64 of 128 take half of what was
    /// acknowledged.
    #[test]
    fn penalties_take_their_share_of_what_was_acknowledged() {
        let mut nscc = NsccConfig::default().build(&flow());
        (nscc.cwnd, nscc.adjusted_at, nscc.check_at) = (100_000.0, 100e6, 500e6);
        nscc.on_ack(&Ack { penalty: 64, ..ack(101, 20_000, 14_022_720 + 5_000_000, true) });
        assert_eq!(nscc.cwnd, 90_000.0);
        nscc.on_ack(&Ack { penalty: 127, ..ack(102, 12_800, 14_022_720 + 5_000_000, true) });
        assert_eq!(nscc.cwnd, 77_300.0);
        // The floor is a packet.
        nscc.on_ack(&Ack { penalty: 127, ..ack(103, 90_000, 14_022_720 + 5_000_000, true) });
        assert_eq!(nscc.cwnd, 4_150.0);
    }

    #[test]
    fn a_timeout_takes_a_packet_and_the_window_stays_a_packet() {
        let mut nscc = NsccConfig::default().build(&flow());
        nscc.cwnd = 10_000.0;
        nscc.on_loss(Time::from_us(1), Loss::Timeout);
        assert_eq!(nscc.cwnd, 5_850.0);
        nscc.on_loss(Time::from_us(2), Loss::Timeout);
        assert_eq!(nscc.cwnd, 4_150.0);
    }
}
