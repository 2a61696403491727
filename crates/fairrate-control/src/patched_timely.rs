//! `patched-timely`: TIMELY with a unique fixed point. Y. Zhu, M. Ghobadi, V. Misra, J. Padhye, "ECN or
//! Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016, §4.3 and Algorithm 2.
//!
//! | paper     | here       | unit  |
//! |-----------|------------|-------|
//! | R         | `rate`     | bit/s |
//! | δ         | `ai`       | bit/s |
//! | β         | `beta`     | 1     |
//! | w(g)      | `weight`   | 1     |
//! | q'/C      | `rtt_ref`  | time  |
//! | T_low     | `t_low`    | time  |
//! | T_high    | `t_high`   | time  |
//!
//! Readings: the paper's reference queue q' = C T_low becomes an RTT, so `rtt_ref` is `t_low` by default. The
//! branches outside the band are TIMELY's own, so above `t_high` the factor stays TIMELY's 0.8
//! (`beta_high`); the small `beta` is for the band alone. There is no hyperactive increase.
//! The ns-3 artifact has no patched TIMELY: in that profile only the defaults for all rate-based algorithms differ.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::needs::{FeedbackNeeds, Needs, PacingNeeds};
use crate::port::NoPort;
use crate::timely::{PacedRate, RttSample, RttSampler, RttSampling, factor_above};

algorithm_config! {
    /// Parameters of patched TIMELY.
    pub struct PatchedTimelyConfig {
        /// Additive step δ (ECN or Delay §4).
        ai: Rate = Rate::from_mbps(10), tune = Log("5Mbps", "2Gbps");
        /// Weight of the new RTT difference in its average (authors' code).
        alpha: f64 = 0.875, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// Decrease factor β inside the band (ECN or Delay §4.3).
        beta: f64 = 0.008, in 0.0..=1.0, tune = Log(0.001, 0.1);
        /// Decrease factor above `t_high` (TIMELY §5).
        beta_high: f64 = 0.8, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// RTT the flows settle near (ECN or Delay §4.3: queue C T_low).
        rtt_ref: Time = Time::from_us(50), tune = Log("5us", "100us");
        /// Below this RTT the rate only grows (TIMELY §5).
        t_low: Time = Time::from_us(50), tune = Log("5us", "100us");
        /// Above this RTT the rate only falls (TIMELY §5).
        t_high: Time = Time::from_us(500), tune = Log("100us", "2ms");
        /// Time that turns an RTT difference into a gradient (TIMELY §5).
        min_rtt: Time = Time::from_us(20), tune = Log("2us", "100us");
        /// Interval at which an RTT is sampled.
        sampling: RttSampling = RttSampling::Segment;
        /// Segment size, for `sampling = "segment"` (ECN or Delay §4.3: 16 KB).
        segment: Bytes = Bytes::new(16_000), tune = Log("4KB", "64KB");
        /// If true, a packet's serialisation is taken off its RTT (TIMELY §3).
        subtract_serialisation: bool = true;
        /// Slowest rate (no source; as for TIMELY).
        min_rate: Rate = Rate::from_mbps(100), tune = Log("10Mbps", "1Gbps");
        /// If true, bytes in flight stay below a window in step with the rate.
        windowed: bool = false;
        /// If true, a new rate moves a pending send time (artifact: no).
        repace_on_change: bool = true, ns3 = false;
    }
}

impl AlgorithmSpec for PatchedTimelyConfig {
    type Controller = PatchedTimely;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs {
            pacing: PacingNeeds { repace_on_change: self.repace_on_change, ..Needs::TIMESTAMPS.pacing },
            feedback: FeedbackNeeds { first_ack_only_stored: true, ..Needs::TIMESTAMPS.feedback },
            ..Needs::TIMESTAMPS
        }
    }
    fn build(&self, flow: &FlowContext) -> PatchedTimely {
        PatchedTimely {
            sampler: RttSampler::new(self.sampling, self.segment, self.subtract_serialisation, flow)
                .with_filter(self.alpha, self.min_rtt),
            paced: PacedRate::new(self.min_rate, self.windowed, flow),
            config: self.clone(),
        }
    }
}

/// A flow under patched TIMELY.
#[derive(Clone, Debug)]
pub struct PatchedTimely {
    config: PatchedTimelyConfig,
    sampler: RttSampler,
    paced: PacedRate,
}

/// Returns w(g): 0 up to a gradient of -1/4, 1 from 1/4 on, linear in between (§4.3).
fn weight(gradient: f64) -> f64 {
    (2.0 * gradient + 0.5).clamp(0.0, 1.0)
}

impl PatchedTimely {
    /// Updates the rate by Algorithm 2.
    fn update(&mut self, sample: RttSample) {
        let (rate, ai) = (self.paced.rate, self.config.ai.as_bps_f64());
        let new_rate = if sample.rtt_ns < self.config.t_low.as_ns_f64() {
            rate + ai
        } else if self.config.t_high.as_ns_f64() < sample.rtt_ns {
            rate * factor_above(self.config.t_high, self.config.beta_high, sample.rtt_ns)
        } else {
            // R ← δ (1 - w) + R (1 - β w (RTT - RTT_ref) / RTT_ref)
            let rtt_ref_ns = self.config.rtt_ref.as_ns_f64();
            let (w, error) = (weight(sample.gradient), (sample.rtt_ns - rtt_ref_ns) / rtt_ref_ns);
            ai * (1.0 - w) + rate * (1.0 - self.config.beta * w * error)
        };
        self.paced.set(new_rate);
    }
}

impl Controller for PatchedTimely {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.paced.allowance()
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        if let Some(sample) = self.sampler.sample(ack) {
            self.update(sample);
        }
        self.paced.allowance()
    }
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.paced.allowance()
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.paced.allowance()
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.paced.allowance()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{acked, flow_25g};

    fn rate_after(rtts_ns: &[u64]) -> u64 {
        let config = PatchedTimelyConfig { subtract_serialisation: false, ..PatchedTimelyConfig::default() };
        let mut timely = config.build(&flow_25g());
        timely.paced.rate = 10e9;
        rtts_ns.iter().map(|&rtt| timely.on_ack(&acked(1, rtt, 1)).rate.as_bps()).last().unwrap()
    }

    #[test]
    fn the_weight_is_a_clamped_line() {
        assert_eq!([-1.0, -0.25, -0.125, 0.0, 0.25, 3.0].map(weight), [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]);
    }

    #[test]
    fn each_branch_by_hand() {
        // Constant 100 us: w = 1/2, error 1: 10 Mb/s x 1/2 + 10 Gb/s x (1 - 0.008/2) = 5 + 9,960 Mb/s.
        assert_eq!(rate_after(&[100_000, 100_000]), 9_965_000_000);
        // 80 to 100 us: gradient 0.875, w = 1: 10 Gb/s x (1 - 0.008).
        assert_eq!(rate_after(&[80_000, 100_000]), 9_920_000_000);
        // 100 to 80 us: w = 0, so only the additive step.
        assert_eq!(rate_after(&[100_000, 80_000]), 10_010_000_000);
        // Below t_low, and above t_high: 1 - 0.8 x (1 - 500/1000).
        assert_eq!(rate_after(&[20_000, 40_000]), 10_010_000_000);
        assert_eq!(rate_after(&[20_000, 1_000_000]), 6_000_000_000);
    }
}
