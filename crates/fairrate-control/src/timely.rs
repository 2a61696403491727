//! `timely`: TIMELY. R. Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter",
//! SIGCOMM 2015, Algorithm 1; ns-3 form: the PowerTCP artifact's cc mode 7.
//!
//! | paper      | here           | unit  |
//! |------------|----------------|-------|
//! | R          | `rate`         | bit/s |
//! | δ          | `ai`           | bit/s |
//! | N·δ        | `hai`          | bit/s |
//! | β          | `beta`         | 1     |
//! | α          | `alpha`        | 1     |
//! | T_low      | `t_low`        | time  |
//! | T_high     | `t_high`       | time  |
//! | minRTT     | `min_rtt`      | time  |
//! | rtt_diff   | `rtt_diff_ns`  | ns    |
//! | seg.size   | `segment`      | bytes |
//!
//! Readings: the hyperactive step follows five consecutive increases, so it is the sixth. In the paper's
//! form only increases with a falling RTT count, and a sample outside the thresholds resets the count;
//! the artifact counts (and steps up) below `t_low` too. A flow starts at line rate, not at its share of
//! the host's flows. Rates are whole bits per second, as the artifact stores them.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::limits::{bdp, scaled_window};
use crate::needs::{FeedbackNeeds, Needs, PacingNeeds};
use crate::port::NoPort;

choice! {
    /// The sampling interval of round-trip times.
    pub enum RttSampling {
        /// One sample for every `segment` acknowledged bytes, as a NIC completes segments.
        Segment = "segment",
        /// One sample per round trip.
        RoundTrip = "rtt",
    }
}

algorithm_config! {
    /// Parameters of TIMELY.
    pub struct TimelyConfig {
        /// Additive step δ (TIMELY §5: 10 Mb/s; artifact 50 Mb/s).
        ai: Rate = Rate::from_mbps(10), ns3 = Rate::from_mbps(50), tune = Log("5Mbps", "2Gbps");
        /// Hyperactive additive step, N δ with N = 5 (TIMELY §4.4; artifact 100 Mb/s).
        hai: Rate = Rate::from_mbps(50), ns3 = Rate::from_mbps(100), tune = Log("20Mbps", "10Gbps");
        /// Consecutive increases before the hyperactive step (TIMELY §4.4).
        hai_after: u32 = 5, tune = Linear(1, 10);
        /// If true, samples below `t_low` count as increases for the hyperactive step (artifact only).
        hai_below_t_low: bool = false, ns3 = true;
        /// Weight of the new RTT difference in its average (authors' code and artifact).
        alpha: f64 = 0.875, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// Multiplicative decrease factor β (TIMELY §5).
        beta: f64 = 0.8, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// Below this RTT the rate only grows (TIMELY §5).
        t_low: Time = Time::from_us(50), tune = Log("5us", "100us");
        /// Above this RTT the rate only falls (TIMELY §5).
        t_high: Time = Time::from_us(500), tune = Log("100us", "2ms");
        /// Time that turns an RTT difference into a gradient (TIMELY §5: minimum RTT).
        min_rtt: Time = Time::from_us(20), tune = Log("2us", "100us");
        /// Interval at which an RTT is sampled (TIMELY: per segment; artifact: per round trip).
        sampling: RttSampling = RttSampling::Segment, ns3 = RttSampling::RoundTrip;
        /// Segment size, for `sampling = "segment"` (TIMELY §5: 16 to 64 KB).
        segment: Bytes = Bytes::new(16_000), tune = Log("4KB", "64KB");
        /// If true, a packet's serialisation is taken off its RTT (TIMELY §3; artifact: no).
        subtract_serialisation: bool = true, ns3 = false;
        /// Slowest rate (artifact; the paper gives none).
        min_rate: Rate = Rate::from_mbps(100), tune = Log("10Mbps", "1Gbps");
        /// If true, bytes in flight stay below a window in step with the rate (artifact's burst script only).
        windowed: bool = false;
        /// If true, a new rate moves a pending send time (artifact: no).
        repace_on_change: bool = true, ns3 = false;
    }
}

impl AlgorithmSpec for TimelyConfig {
    type Controller = Timely;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs {
            pacing: PacingNeeds { repace_on_change: self.repace_on_change, ..Needs::TIMESTAMPS.pacing },
            feedback: FeedbackNeeds { first_ack_only_stored: true, ..Needs::TIMESTAMPS.feedback },
            ..Needs::TIMESTAMPS
        }
    }
    fn build(&self, flow: &FlowContext) -> Timely {
        Timely {
            sampler: RttSampler::new(self.sampling, self.segment, self.subtract_serialisation, flow)
                .with_filter(self.alpha, self.min_rtt),
            paced: PacedRate::new(self.min_rate, self.windowed, flow),
            n_increases: 0,
            config: self.clone(),
        }
    }
}

/// An RTT sample with its gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RttSample {
    /// Round-trip time, in ns.
    pub rtt_ns: f64,
    /// Averaged RTT difference over `min_rtt`.
    pub gradient: f64,
}

/// The filter that selects RTT samples from acknowledgments and averages their differences.
#[derive(Clone, Debug)]
pub(crate) struct RttSampler {
    sampling: RttSampling,
    segment: u64,
    serialisation_ns: f64,
    alpha: f64,
    min_rtt_ns: f64,
    acked: u64,
    last_seq: u64,
    prev_rtt_ns: Option<f64>,
    rtt_diff_ns: f64,
}

impl RttSampler {
    pub(crate) fn new(sampling: RttSampling, segment: Bytes, subtract: bool, flow: &FlowContext) -> Self {
        let serialisation_ns = if subtract { flow.line_rate.tx_time(flow.wire_mtu).as_ns_f64() } else { 0.0 };
        Self {
            sampling,
            segment: segment.as_u64().max(1),
            serialisation_ns,
            alpha: 1.0,
            min_rtt_ns: 1.0,
            acked: 0,
            last_seq: 0,
            prev_rtt_ns: None,
            rtt_diff_ns: 0.0,
        }
    }

    pub(crate) fn with_filter(mut self, alpha: f64, min_rtt: Time) -> Self {
        self.alpha = alpha;
        self.min_rtt_ns = min_rtt.as_ns_f64();
        self
    }

    fn is_due(&mut self, ack: &Ack<'_>) -> bool {
        match self.sampling {
            RttSampling::Segment => {
                self.acked = self.acked.saturating_add(ack.newly_acked);
                let due = self.acked >= self.segment;
                self.acked %= self.segment;
                due
            }
            RttSampling::RoundTrip => {
                let due = ack.ack_seq > self.last_seq;
                if due {
                    self.last_seq = self.last_seq.max(ack.snd_nxt);
                }
                due
            }
        }
    }

    /// Returns the sample of an acknowledgment, if one is due (Algorithm 1, lines 1 to 4). The first sample is only
    /// stored.
    pub(crate) fn sample(&mut self, ack: &Ack<'_>) -> Option<RttSample> {
        if !self.is_due(ack) {
            return None;
        }
        let rtt_ns = (ack.rtt.as_ns_f64() - self.serialisation_ns).max(0.0);
        let prev_rtt_ns = self.prev_rtt_ns.replace(rtt_ns)?;
        self.rtt_diff_ns = (1.0 - self.alpha) * self.rtt_diff_ns + self.alpha * (rtt_ns - prev_rtt_ns);
        Some(RttSample { rtt_ns, gradient: self.rtt_diff_ns / self.min_rtt_ns })
    }
}

/// A rate in whole bits per second that stays between a floor and the line rate.
#[derive(Clone, Debug)]
pub(crate) struct PacedRate {
    pub rate: f64,
    min: f64,
    line: f64,
    first_window: Option<f64>,
}

impl PacedRate {
    pub(crate) fn new(min_rate: Rate, windowed: bool, flow: &FlowContext) -> Self {
        let line = flow.line_rate.as_bps_f64();
        let first_window = windowed.then(|| bdp(flow.line_rate, flow.base_rtt));
        Self { rate: line, min: min_rate.as_bps_f64().min(line), line, first_window }
    }

    pub(crate) fn set(&mut self, rate: f64) {
        self.rate = rate.trunc().clamp(self.min, self.line);
    }

    pub(crate) fn allowance(&self) -> Allowance {
        let cwnd = self.first_window.map_or(Bytes::MAX, |w0| scaled_window(w0, self.rate, self.line));
        Allowance { cwnd, rate: Rate::from_bps_f64(self.rate), timer: Time::MAX }
    }
}

/// Returns the factor on the rate when the RTT is above `t_high` (Algorithm 1, line 9).
pub(crate) fn factor_above(t_high: Time, beta: f64, rtt_ns: f64) -> f64 {
    1.0 - beta * (1.0 - t_high.as_ns_f64() / rtt_ns)
}

/// A flow under TIMELY.
#[derive(Clone, Debug)]
pub struct Timely {
    config: TimelyConfig,
    sampler: RttSampler,
    paced: PacedRate,
    /// Number of consecutive increases, for the hyperactive step.
    n_increases: u32,
}

impl Timely {
    /// Updates the rate by Algorithm 1, lines 5 to 18.
    fn update(&mut self, sample: RttSample) {
        if sample.rtt_ns < self.config.t_low.as_ns_f64() {
            if self.config.hai_below_t_low {
                self.increase();
            } else {
                self.n_increases = 0;
                self.paced.set(self.paced.rate + self.config.ai.as_bps_f64());
            }
        } else if self.config.t_high.as_ns_f64() < sample.rtt_ns {
            self.decrease(factor_above(self.config.t_high, self.config.beta, sample.rtt_ns));
        } else if sample.gradient <= 0.0 {
            self.increase();
        } else {
            self.decrease((1.0 - self.config.beta * sample.gradient).max(0.0));
        }
    }

    /// Increases the rate: R ← R + N δ (Algorithm 1, line 15).
    fn increase(&mut self) {
        let step = if self.n_increases < self.config.hai_after { self.config.ai } else { self.config.hai };
        self.paced.set(self.paced.rate + step.as_bps_f64());
        self.n_increases = self.n_increases.saturating_add(1);
    }

    fn decrease(&mut self, factor: f64) {
        self.paced.set(self.paced.rate * factor);
        self.n_increases = 0;
    }
}

impl Controller for Timely {
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
    use crate::config::Profile;
    use crate::test_flow::{acked, flow_25g};

    fn at(rate: f64, config: &TimelyConfig) -> Timely {
        let mut timely = config.build(&flow_25g());
        timely.paced.rate = rate;
        timely
    }

    fn ns3() -> TimelyConfig {
        TimelyConfig { windowed: true, ..TimelyConfig::new(Profile::Ns3) }
    }

    #[test]
    fn a_rising_rtt_in_the_band_cuts_by_the_gradient() {
        let mut timely = at(10e9, &ns3());
        timely.on_ack(&acked(1_000, 60_000, 30_000));
        // Difference 10 us: rtt_diff = 0.875 x 10,000 = 8,750 ns, gradient = 8,750/20,000 = 0.4375,
        // rate = 10 Gb/s x (1 - 0.8 x 0.4375) = 6.5 Gb/s less a rounding, truncated to whole bits; window =
        // 25,000 x 6.5/25, also truncated.
        let a = timely.on_ack(&acked(30_001, 70_000, 60_000));
        assert_eq!((a.rate, a.cwnd), (Rate::from_bps(6_499_999_999), Bytes::new(6_499)));
        // Same round trip: 60,000 was the next byte at the update.
        assert_eq!(timely.on_ack(&acked(60_000, 90_000, 90_000)), a);
        // rtt_diff = 0.125 x 8,750 + 0.875 x (-10,000) = -7,656 ns: increase by 50 Mb/s.
        assert_eq!(timely.on_ack(&acked(60_001, 60_000, 90_000)).rate.as_bps(), 6_549_999_999);
    }

    #[test]
    fn beyond_t_high_the_cut_is_by_the_excess() {
        let mut timely = at(10e9, &ns3());
        timely.on_ack(&acked(1, 60_000, 2));
        // 1 - 0.8 x (1 - 500/1000) = 0.6.
        assert_eq!(timely.on_ack(&acked(3, 1_000_000, 4)).rate, Rate::from_gbps(6));
        // From 50 to 500 us in one step: gradient 0.875 x 450/20 = 19.7, so the factor is 0 and the rate is the
        // smallest.
        let mut timely = at(10e9, &ns3());
        timely.on_ack(&acked(1, 50_000, 2));
        assert_eq!(timely.on_ack(&acked(3, 500_000, 4)).rate, Rate::from_mbps(100));
    }

    #[test]
    fn the_sixth_increase_in_a_row_is_hyperactive() {
        let rates = |mut timely: Timely, rtt_ns| -> Vec<u64> {
            (1..9).map(|i| timely.on_ack(&acked(i * 16_000, rtt_ns, i * 16_000)).rate.as_bps() / 1_000_000).collect()
        };
        let artifact = [1_000, 1_050, 1_100, 1_150, 1_200, 1_250, 1_350, 1_450];
        assert_eq!(rates(at(1e9, &ns3()), 10_000), artifact);
        let paper = TimelyConfig::default();
        assert_eq!(rates(at(1e9, &paper), 60_000), [1_000, 1_010, 1_020, 1_030, 1_040, 1_050, 1_100, 1_150]);
        assert_eq!(rates(at(1e9, &paper), 10_000), [1_000, 1_010, 1_020, 1_030, 1_040, 1_050, 1_060, 1_070]);
    }

    #[test]
    fn one_sample_a_segment_without_its_serialisation() {
        let mut sampler = RttSampler::new(RttSampling::Segment, Bytes::new(16_000), true, &flow_25g())
            .with_filter(0.875, Time::from_us(20));
        // 15 KB acknowledged are less than a segment; 16 KB are a segment, but the first sample is only stored.
        assert_eq!(sampler.sample(&Ack { newly_acked: 15_000, ..acked(15_000, 50_000, 0) }), None);
        assert_eq!(sampler.sample(&Ack { newly_acked: 1_000, ..acked(16_000, 50_000, 0) }), None);
        let second = sampler.sample(&Ack { newly_acked: 40_000, ..acked(56_000, 50_000, 0) });
        // 1056 wire bytes take 337.92 ns at 25 Gb/s.
        assert_eq!(second, Some(RttSample { rtt_ns: 49_662.08, gradient: 0.0 }));
        // 40,000 - 2 x 16,000 = 8,000 bytes are left over for the next segment.
        assert_eq!(sampler.acked, 8_000);
    }
}
