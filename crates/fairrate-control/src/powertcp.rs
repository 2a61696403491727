//! PowerTCP: V. Addanki, O. Michel, S. Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter
//! Networks", NSDI 2022, Alg. 1.
//!
//! Power is current times voltage: the rate at which bytes arrive at a port times the bytes in its queue
//! and pipe. Divided by the power of a full link with an empty queue it measures the excess of both the queue and
//! its trend, and the window is divided by it.
//!
//! | paper | here | unit |
//! |---|---|---|
//! | τ | `FlowContext::base_rtt` | time |
//! | HostBw | `FlowContext::line_rate` | bit/s |
//! | q̇, μ, λ | `q_dot`, `mu`, `lambda` | bit/s |
//! | ν (voltage) | `voltage` | bits |
//! | e (base power) | `base_power` | bit²/s |
//! | Γ_norm, Γ_smooth | result of `norm_power`, `SmoothedPower` | 1 |
//! | cwnd, cwnd_old | state of `PowerLaw`, `Ack::cwnd_at_send` | bytes of payload |
//! | γ | `gamma` | 1 |
//! | β | `beta` times τ | bytes a round trip |
//!
//! Readings, where the paper leaves a choice or slips:
//! - Lines 20-21 store the power itself as Γ_norm; the normalised power of line 19 is meant.
//! - UPDATEWINDOW is called with the smoothed power and cwnd_old, in spite of its signature.
//! - cwnd_old is the window when the acknowledged packet was sent, as in the analysis (w(t − θ)); the
//!   "once per RTT" memory of the text is a coarse form of it.
//! - N in β = HostBw·τ/N is not given. β is 150 Mb/s·τ, the artifact's constant.
//! - In Theorem 3 shares are proportional to β. With packets that holds if β is many packets, and this β is a fraction
//!   of a packet; so flows have no weights.
//! - λ has a floor of half the port rate, as in the artifact: without one the printed law oscillates.
//! - Γ_smooth has no first value in the paper: it starts with the first sample; Δt is at most τ.
//! - The first acknowledgment, any with a changed number of hops and the first after an idle time of more than τ
//!   only store their telemetry. Losses do not change the window (the paper's transport is RDMA on PFC).
//! - If a port's rate changes, as with circuits (PowerTCP section 5), the artifact's TCP form uses power without
//!   smoothing. The paper does not; here it is an option, `rate_change`.
//! - The window stays between one packet and HostBw·τ.
//!
//! The ns-3 profile is the artifact with its missing first-acknowledgment case added (the `fs` reference
//! runs): other counter, packed telemetry, target utilization, rate form, power starting at 1, no idle case.
//! With `first_ack = "zero-history"` it is the artifact as published.

use fairrate_units::{Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::int::{IntCounter, IntFormat, IntHop};
use crate::needs::{FeedbackNeeds, Needs, NetworkNeeds, Telemetry};
use crate::port::NoPort;
pub use crate::power_law::{FirstAck, InitialPower, RateChange, Reference, UpdateInterval};
use crate::power_law::{PowerLaw, SmoothedPower};
use crate::records::Records;

algorithm_config! {
    /// Parameters of PowerTCP.
    pub struct PowerTcpConfig {
        /// γ: weight of the new window against the present one (PowerTCP §3.3; ns-3 artifact).
        gamma: f64 = 0.9, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// β/τ: additive increase a round trip, as a rate (constant of the ns-3 artifact; the paper's
        /// HostBw/N leaves N open).
        beta: Rate = Rate::from_mbps(150), tune = Log("5Mbps", "5Gbps");
        /// Least current λ as a part of the port rate (ns-3 artifact; the paper has no floor, and oscillates).
        lambda_floor: f64 = 0.5, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// The utilization to aim for: power is divided by it (ns-3 artifact: 0.95; the paper: 1).
        target_utilization: f64 = 1.0, ns3 = 0.95, in 0.01..=1.0, tune = Linear(0.8, 1.0);
        /// Quantity that the law divides by power: the window at send time (PowerTCP Alg. 1) or a rate set once a round
        /// trip (ns-3 artifact).
        reference: Reference = Reference::WindowAtSend, ns3 = Reference::RatePerRtt;
        /// Interval at which the law acts (PowerTCP Alg. 1: every acknowledgment).
        update: UpdateInterval = UpdateInterval::PerAck;
        /// Byte counter in the telemetry: bytes sent, so that λ = q̇ + μ (PowerTCP Alg. 1), or bytes put into
        /// the queue, so that λ is its slope (ns-3 artifact).
        int_counter: IntCounter = IntCounter::Transmitted, ns3 = IntCounter::Enqueued;
        /// Precision of the telemetry (ns-3 artifact: packed into 64 bits a hop).
        int_format: IntFormat = IntFormat::Exact, ns3 = IntFormat::Packed;
        /// Where the smoothed power starts (not in the paper; ns-3 artifact: at 1).
        initial_power: InitialPower = InitialPower::FirstSample, ns3 = InitialPower::One;
        /// Least rate with reference `rate-per-rtt` (ns-3 artifact); the window form has one packet instead.
        min_rate: Rate = Rate::from_mbps(100), tune = Log("10Mbps", "1Gbps");
        /// If true, an idle time of more than τ discards the stored telemetry (not in the paper).
        idle_restart: bool = true, ns3 = false;
        /// Treatment of the smoothed power when a port's rate has changed (Alg. 1: none; the artifact's TCP form: a
        /// fresh start).
        rate_change: RateChange = RateChange::Smooth;
        /// Reference of the first acknowledgment (not in the paper; ns-3 artifact as published: zeros, a slip that both
        /// profiles leave out).
        first_ack: FirstAck = FirstAck::Store;
        /// If true, telemetry is kept for each path, so that packets of a flow may take several (not in the paper);
        /// else a change of path begins anew.
        per_path: bool = false;
    }
}

impl AlgorithmSpec for PowerTcpConfig {
    type Controller = PowerTcp;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds {
                telemetry: Some(Telemetry { counter: self.int_counter, format: self.int_format }),
                ..Needs::TELEMETRY.network
            },
            feedback: FeedbackNeeds {
                first_ack_only_stored: self.first_ack == FirstAck::Store,
                paths_apart: self.per_path,
                ..Needs::TELEMETRY.feedback
            },
            ..Needs::TELEMETRY
        }
    }
    fn build(&self, flow: &FlowContext) -> PowerTcp {
        PowerTcp {
            tau: flow.base_rtt,
            tau_ns: flow.base_rtt.as_ns_f64(),
            prev: Records::new(self.per_path),
            power: SmoothedPower::new(self.initial_power),
            law: PowerLaw::new(flow, self.reference, self.update, self.gamma, self.beta, self.min_rate),
            last_ack: flow.start,
            config: self.clone(),
        }
    }
}

/// A flow under PowerTCP.
#[derive(Clone, Debug)]
pub struct PowerTcp {
    config: PowerTcpConfig,
    tau: Time,
    tau_ns: f64,
    /// prevInt: telemetry of the last acknowledgment.
    prev: Records,
    power: SmoothedPower,
    law: PowerLaw,
    last_ack: Time,
}

impl PowerTcp {
    /// Returns NORMPOWER without smoothing (Alg. 1 lines 8-23): the largest normalised power of all ports, and the time
    /// in nanoseconds over which it was measured (τ if a new rate makes a fresh start), or `None` if no port's clock
    /// advanced.
    fn norm_power(&self, int: &[IntHop]) -> Option<(f64, f64)> {
        let mut largest: Option<(f64, f64)> = None;
        for (hop, prev) in int.iter().zip(self.prev.last()) {
            let Some(sample) = self.hop_power(hop, prev) else { continue };
            if largest.is_none_or(|(power, _)| power < sample.0) {
                largest = Some(sample);
            }
        }
        largest
    }

    /// Returns the result of Alg. 1 lines 11-19 for one port. The order of the operations is the artifact's, so that
    /// results are equal to the last bit.
    fn hop_power(&self, hop: &IntHop, prev: &IntHop) -> Option<(f64, f64)> {
        let delta = hop.since(prev, self.config.int_format)?;
        let bandwidth = hop.rate.as_bps_f64();
        let mu = delta.tx_bytes * 8.0 / delta.dt_s;
        let lambda = match self.config.int_counter {
            IntCounter::Transmitted => {
                let q_dot = delta.qlen * 8.0 / delta.dt_s;
                q_dot + mu
            }
            IntCounter::Enqueued => mu,
        };
        let floor = self.config.lambda_floor * bandwidth;
        // Neither is NaN, for which `f64::max` would test.
        let lambda = if lambda < floor { floor } else { lambda };
        let voltage = f64::from(hop.qlen) * 8.0 + bandwidth * (self.tau_ns * 1e-9);
        let base_power = bandwidth * (bandwidth * self.tau_ns * 1e-9);
        let is_fresh = hop.rate != prev.rate && self.config.rate_change == RateChange::Fresh;
        let weighs_for = if is_fresh { self.tau_ns } else { delta.dt_ns };
        Some((lambda * voltage / base_power, weighs_for))
    }

    /// Returns `true` if the acknowledged packet was sent more than τ after the previous acknowledgment.
    fn was_idle(&self, ack: &Ack<'_>) -> bool {
        self.config.idle_restart && self.last_ack.saturating_add(self.tau).saturating_add(ack.rtt) < ack.now
    }
}

impl Controller for PowerTcp {
    fn on_start(&mut self, now: Time) -> Allowance {
        self.last_ack = now;
        self.law.allowance(self.tau)
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.prev.turn_to(ack.path);
        if !self.prev.has_begun() && self.config.first_ack == FirstAck::ZeroHistory {
            self.prev.begin_with_zeros(ack.int);
        }
        let is_known = self.prev.last().len() == ack.int.len();
        if self.was_idle(ack) || !is_known && !self.prev.has_others() {
            self.power.forget();
            self.law.postpone(ack);
        } else if let Some((power, dt_ns)) = self.norm_power(ack.int) {
            let smoothed = self.power.sample(power, dt_ns, self.tau_ns);
            self.law.update(ack, smoothed / self.config.target_utilization);
        }
        self.prev.keep(ack.int);
        self.last_ack = ack.now;
        self.law.allowance(self.tau)
    }
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.law.allowance(self.tau)
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.law.allowance(self.tau)
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.law.allowance(self.tau)
    }
    fn last_telemetry(&self) -> &[IntHop] {
        self.prev.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;
    use crate::int::PortRate;
    use crate::power_law::testing::ack;
    use crate::test_flow::flow_25g;
    use fairrate_units::Bytes;

    fn hop(ns: u64, tx_bytes: u64, qlen: u32) -> IntHop {
        IntHop { ts: Time::from_ns(ns), tx_bytes, qlen, rate: PortRate::new(Rate::from_gbps(25)) }
    }

    fn paper() -> PowerTcp {
        PowerTcpConfig::new(Profile::Paper).build(&flow_25g())
    }

    #[test]
    fn power_is_current_times_voltage() {
        let mut flow = paper();
        flow.on_ack(&ack(8_000, 8_000, 1_000, 26_000, &[hop(4_000, 0, 10_000)]));
        let first_rtt = flow.on_ack(&ack(9_000, 9_000, 2_000, 27_000, &[hop(5_000, 3_125, 12_500)]));
        // μ = 3,125 B/µs = 25 Gb/s, q̇ = 2,500 B/µs = 20 Gb/s, so λ = 45 Gb/s; ν = 12,500 + 25,000 bytes.
        // Γ = 45/25 · 37,500/25,000 = 2.7, and the first sample is the smoothed power.
        // β = 150 Mb/s · 8 µs = 150 bytes; cwnd = 0.9·(20,000/2.7 + 150) + 0.1·25,000 = 9,301.67 bytes,
        // and rate = cwnd/τ = 9.30167 Gb/s.
        assert_eq!((first_rtt.cwnd, first_rtt.rate), (Bytes::new(9_301), Rate::from_bps(9_301_666_666)));
        // Queue and pipe in balance: λ = 25 Gb/s, Γ = 1.5 over 1 µs; smoothed (2.7·7 + 1.5·1)/8 = 2.55.
        // cwnd = 0.9·(20,000/2.55 + 150) + 0.1·9,301.67 = 8,123.99 bytes.
        let next = flow.on_ack(&ack(10_000, 9_000, 3_000, 28_000, &[hop(6_000, 6_250, 12_500)]));
        assert_eq!(next.cwnd, Bytes::new(8_123));
    }

    #[test]
    fn the_hop_with_the_largest_power_counts_and_idle_hops_have_the_floor() {
        let mut flow = paper();
        flow.prev.keep(&[hop(4_000, 0, 0), hop(4_000, 0, 2_000), hop(4_000, 0, 0)]);
        // An unused port has λ = 0.5 b and Γ = 0.5; a full port Γ = 1·27,000/25,000 = 1.08 over 2 µs; the clock
        // of the third stood still.
        let now = [hop(5_000, 0, 0), hop(6_000, 6_250, 2_000), hop(4_000, 0, 99_000)];
        let (power, dt_ns) = flow.norm_power(&now).expect("two clocks advanced");
        assert!((power - 1.08).abs() < 1e-12 && (dt_ns - 2_000.0).abs() < 1e-9);
    }

    /// From 25 to 100 Gb/s in 1 us: λ = 25, at the floor of 50 Gb/s, so Γ = 0.5. Smoothed over 8 us it is (1·7 +
    /// 0.5·1)/8.
    #[test]
    fn a_new_rate_is_smoothed_over_or_makes_a_fresh_start() {
        let rate = PortRate::new(Rate::from_gbps(100));
        let cwnd = |rate_change| {
            let config = PowerTcpConfig { rate_change, ..PowerTcpConfig::default() };
            let mut flow = config.build(&flow_25g());
            flow.on_ack(&ack(8_000, 8_000, 1_000, 26_000, &[hop(4_000, 0, 0)]));
            flow.on_ack(&ack(9_000, 8_000, 2_000, 27_000, &[hop(5_000, 3_125, 0)]));
            let int = [IntHop { rate, ..hop(6_000, 6_250, 0) }];
            flow.on_ack(&Ack { cwnd_at_send: 8_000, ..ack(10_000, 8_000, 3_000, 28_000, &int) }).cwnd.as_u64()
        };
        // The window before is 0.9·(20,000/1 + 150) + 0.1·25,000 = 20,635; then 0.9·(8,000/Γ + 150) + 0.1·20,635.
        assert_eq!(cwnd(RateChange::Fresh), 16_598);
        assert_eq!(cwnd(RateChange::Smooth), 9_878);
    }

    #[test]
    fn after_idle_time_or_a_change_of_path_telemetry_is_only_stored() {
        let mut flow = paper();
        flow.on_ack(&ack(8_000, 8_000, 1_000, 26_000, &[hop(4_000, 0, 0)]));
        let before = flow.on_ack(&ack(9_000, 8_000, 2_000, 27_000, &[hop(5_000, 3_125, 30_000)]));
        // Sent 8.001 µs after the acknowledgment at 9 µs.
        let idle = flow.on_ack(&ack(25_001, 8_000, 3_000, 28_000, &[hop(21_000, 3_125, 0)]));
        let other_path = [hop(22_000, 3_125, 0), hop(22_000, 0, 0)];
        let rerouted = flow.on_ack(&ack(26_001, 8_000, 4_000, 29_000, &other_path));
        assert_eq!([idle, rerouted], [before; 2]);
        assert_eq!(flow.on_loss(Time::from_us(27), Loss::Timeout), before);
    }

    /// The artifact's first three acknowledgments of one flow, from `acktrace_pl3.powertcpfs` (two ports,
    /// τ = 9.28 µs): U~ is 1.097424067, then 1.198718879.
    #[test]
    fn the_ns3_profile_gives_the_artifacts_rates() {
        let flow = FlowContext { base_rtt: Time::from_ns(9_280), ..flow_25g() };
        let mut flow = PowerTcpConfig::new(Profile::Ns3).build(&flow);
        let mut on_ack = |ns, ack_seq, first: IntHop, second: IntHop| {
            let int = [first.encoded(IntFormat::Packed), second.encoded(IntFormat::Packed)];
            flow.on_ack(&ack(ns, 8_000, ack_seq, 30_000, &int)).rate.as_bps()
        };
        assert_eq!(on_ack(1_007_476, 1_000, hop(0, 0, 0), hop(0, 0, 0)), 25_000_000_000);
        // 696 ns at 50,022,988,506 b/s are 4,352 bytes, at 13,241,379,310 b/s 1,152 and at 11,770,114,943 b/s
        // 1,024: counters move in units of 128.
        assert_eq!(on_ack(1_008_172, 2_000, hop(696, 4_352, 4_320), hop(696, 1_152, 0)), 22_112_429_601);
        assert_eq!(on_ack(1_008_868, 3_000, hop(1_392, 8_704, 6_480), hop(1_392, 2_176, 0)), 20_466_536_967);
    }

    fn as_published() -> PowerTcpConfig {
        PowerTcpConfig { first_ack: FirstAck::ZeroHistory, ..PowerTcpConfig::new(Profile::Ns3) }
    }

    /// The first four acknowledgments of one flow of the artifact as published, from `acktrace_star2.powertcp`:
    /// 1,024 bytes in 1,002,188 ns are almost zero, so U~ starts at the floor of 0.5; then it is
    /// 0.704840480, 0.855479166 and 1.008052799.
    #[test]
    fn with_zeros_for_history_the_first_acknowledgment_sees_the_average_since_time_zero() {
        let mut flow = as_published().build(&flow_25g());
        let mut on_ack = |n: u64, tx_bytes, qlen| {
            let int = hop(1_002_188 + 696 * n, tx_bytes, qlen).encoded(IntFormat::Packed);
            flow.on_ack(&ack(1_008_112 + 696 * n, 8_112, 1_000 * (n + 1), 25_000, &[int])).rate.as_bps()
        };
        assert_eq!(on_ack(0, 1_024, 0), 25_000_000_000);
        assert_eq!(on_ack(1, 6_528, 3_200), 25_000_000_000);
        assert_eq!(on_ack(2, 10_880, 5_440), 25_000_000_000);
        assert_eq!(on_ack(3, 15_232, 7_600), 23_839_246_469);
        assert!(
            !as_published().needs().feedback.first_ack_only_stored
                && as_published().needs().network.telemetry.is_some()
        );
    }

    #[test]
    fn with_zeros_for_history_a_flow_that_starts_when_the_packed_clock_wraps_collapses() {
        // The 24-bit clock is 4 µs past its wrap when 1,600,000 bytes have gone through the port in all: 128 times
        // line rate. U~ = (1·4 + 128·4)/8 = 64.5, and 0.9·(25/(64.5/0.95) + 0.15) + 0.1·25 = 2.966 Gb/s.
        let int = [hop((1 << 24) + 4_000, 1_600_000, 0).encoded(IntFormat::Packed)];
        let first = ack(16_783_000, 8_000, 1_000, 25_000, &int);
        assert_eq!(as_published().build(&flow_25g()).on_ack(&first).rate, Rate::from_bps(2_966_395_348));
        let stored = PowerTcpConfig::new(Profile::Ns3).build(&flow_25g()).on_ack(&first);
        assert_eq!(stored.rate, Rate::from_gbps(25));
    }
}
