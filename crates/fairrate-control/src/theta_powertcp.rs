//! θ-PowerTCP: V. Addanki, O. Michel, S. Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter
//! Networks", NSDI 2022, Alg. 2 and eq. (8).
//!
//! PowerTCP without help from switches: with q/b + τ = θ (the round-trip time) and q̇/b = θ̇, and the sending
//! rate of the bottleneck assumed to be its bandwidth, normalised power is (θ̇ + 1)·θ/τ. It detects too much
//! traffic but hardly too little, so it claims free bandwidth only by additive increase.
//!
//! | paper | here | unit |
//! |---|---|---|
//! | τ | `base_rtt` | time |
//! | RTT (θ) | `Ack::rtt` | time |
//! | t_c | `Ack::now` | time |
//! | θ̇ + 1 | `current` | 1 |
//! | Γ_norm, Γ_smooth | result of `norm_power`, `SmoothedPower` | 1 |
//! | cwnd, cwnd_old | state of `PowerLaw`, `Ack::cwnd_at_send` | bytes of payload |
//! | γ | `gamma` | 1 |
//! | β | `beta` times τ | bytes a round trip |
//!
//! Readings, where the paper leaves a choice or slips (β, cwnd_old, the window's limits and losses as in
//! [`powertcp`](crate::powertcp)):
//! - Eq. (8) lacks a dot: its first factor is (q̇/b + 1), as in Alg. 2 line 13.
//! - The Δt of line 14 is the dt of line 11, at most τ. Γ_smooth starts with the first sample.
//! - θ̇ + 1 has a floor of 0.5, as in the artifact: a round-trip time that falls as fast as time passes has no
//!   power at all, and the law divides by it.
//! - Power is smoothed on every acknowledgment; the window changes once per round trip, when a packet sent after
//!   the last update is acknowledged.
//! - The first acknowledgment and the first after an idle time of more than τ only store their time.
//!
//! The ns-3 profile is the artifact with its missing first-acknowledgment case added (the `fs` reference
//! runs): rate form on every acknowledgment, γ 0.7, smallest round trip seen instead of τ (in power, smoothing
//! and window) and 5 % slack on it, power starting at 1, no idle case, and the telemetry header, unread. With
//! `first_ack = "zero-history"` it is the artifact as published.

use fairrate_units::{Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::needs::{FeedbackNeeds, Needs, NetworkNeeds};
use crate::port::NoPort;
pub use crate::power_law::{FirstAck, InitialPower, Reference, UpdateInterval};
use crate::power_law::{PowerLaw, SmoothedPower};

choice! {
    /// The round-trip time that counts as free of queueing.
    pub enum BaseRtt {
        /// The network's τ.
        Configured = "configured",
        /// The smallest round-trip time that the flow has seen, at most τ.
        MinSeen = "min-seen",
    }
}

choice! {
    /// The header that the algorithm adds to packets.
    pub enum Header {
        /// A timestamp on data packets.
        Timestamp = "timestamp",
        /// The header of in-band telemetry, empty, on data packets and acknowledgments.
        Telemetry = "telemetry",
    }
}

algorithm_config! {
    /// Parameters of θ-PowerTCP.
    pub struct ThetaPowerTcpConfig {
        /// γ: weight of the new window against the present one (PowerTCP §3.3: 0.9; ns-3 artifact: 0.7).
        gamma: f64 = 0.9, ns3 = 0.7, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// β/τ: additive increase a round trip, as a rate (constant of the ns-3 artifact; the paper's
        /// HostBw/N leaves N open).
        beta: Rate = Rate::from_mbps(150), tune = Log("5Mbps", "5Gbps");
        /// Least current θ̇ + 1 (ns-3 artifact; the paper has no floor, and would divide by zero).
        current_floor: f64 = 0.5, in 0.01..=1.0, tune = Linear(0.1, 1.0);
        /// Round-trip time that counts as free of queueing (PowerTCP: τ; ns-3 artifact: the smallest seen).
        base_rtt: BaseRtt = BaseRtt::Configured, ns3 = BaseRtt::MinSeen;
        /// The base round-trip time is multiplied by this in power (ns-3 artifact: 1.05; the paper: 1).
        base_rtt_slack: f64 = 1.0, ns3 = 1.05, in 1.0..=2.0, tune = Linear(1.0, 1.5);
        /// Quantity that the law divides by power: the window at send time (PowerTCP Alg. 2) or a rate set once a round
        /// trip (ns-3 artifact).
        reference: Reference = Reference::WindowAtSend, ns3 = Reference::RatePerRtt;
        /// Interval at which the law acts (PowerTCP Alg. 2: once a round trip; ns-3 artifact: every acknowledgment).
        update: UpdateInterval = UpdateInterval::PerRtt, ns3 = UpdateInterval::PerAck;
        /// Where the smoothed power starts (not in the paper; ns-3 artifact: at 1).
        initial_power: InitialPower = InitialPower::FirstSample, ns3 = InitialPower::One;
        /// Least rate with reference `rate-per-rtt` (ns-3 artifact); the window form has one packet instead.
        min_rate: Rate = Rate::from_mbps(100), tune = Log("10Mbps", "1Gbps");
        /// If true, an idle time of more than τ discards the stored round-trip time (not in the paper).
        idle_restart: bool = true, ns3 = false;
        /// Reference of the first acknowledgment (not in the paper; ns-3 artifact as published: zeros, a slip that both
        /// profiles leave out).
        first_ack: FirstAck = FirstAck::Store;
        /// Header that is added to packets (PowerTCP §3.6: timestamps; ns-3 artifact: the telemetry header).
        header: Header = Header::Timestamp, ns3 = Header::Telemetry;
    }
}

impl AlgorithmSpec for ThetaPowerTcpConfig {
    type Controller = ThetaPowerTcp;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        let needs = match self.header {
            Header::Timestamp => Needs::TIMESTAMPS,
            Header::Telemetry => Needs { network: NetworkNeeds::NOTHING, ..Needs::TELEMETRY },
        };
        Needs {
            feedback: FeedbackNeeds { first_ack_only_stored: self.first_ack == FirstAck::Store, ..needs.feedback },
            ..needs
        }
    }
    fn build(&self, flow: &FlowContext) -> ThetaPowerTcp {
        ThetaPowerTcp {
            tau: flow.base_rtt,
            base_rtt: flow.base_rtt,
            prev: None,
            power: SmoothedPower::new(self.initial_power),
            law: PowerLaw::new(flow, self.reference, self.update, self.gamma, self.beta, self.min_rate),
            config: self.clone(),
        }
    }
}

/// A flow under θ-PowerTCP.
#[derive(Clone, Debug)]
pub struct ThetaPowerTcp {
    config: ThetaPowerTcpConfig,
    tau: Time,
    /// The base RTT: τ, or the running minimum.
    base_rtt: Time,
    /// prevRTT and t_c^prev of the last acknowledgment.
    prev: Option<(Time, Time)>,
    power: SmoothedPower,
    law: PowerLaw,
}

impl ThetaPowerTcp {
    /// Returns NORMPOWER without smoothing (Alg. 2 lines 11-13), `dt_ns` after an acknowledgment with `prev_rtt`.
    fn norm_power(&self, rtt: Time, prev_rtt: Time, dt_ns: f64) -> f64 {
        let theta_dot = (rtt.as_ns_f64() - prev_rtt.as_ns_f64()) / dt_ns;
        let current = (theta_dot + 1.0).max(self.config.current_floor);
        current * rtt.as_ns_f64() / (self.config.base_rtt_slack * self.base_rtt.as_ns_f64())
    }

    /// Returns the round-trip time and arrival time of the last acknowledgment, or `None` if the flow was idle since:
    /// the acknowledged packet was sent more than τ after it.
    fn history(&self, ack: &Ack<'_>) -> Option<(Time, Time)> {
        let idle_since = |at: Time| at.saturating_add(self.tau).saturating_add(ack.rtt) < ack.now;
        match self.prev {
            None if self.config.first_ack == FirstAck::ZeroHistory => Some((Time::ZERO, Time::ZERO)),
            prev => prev.filter(|(_, at)| !(self.config.idle_restart && idle_since(*at))),
        }
    }
}

impl Controller for ThetaPowerTcp {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.law.allowance(self.base_rtt)
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        // A round-trip time of zero is not a measurement, and would stay the minimum for ever.
        if self.config.base_rtt == BaseRtt::MinSeen && Time::ZERO < ack.rtt {
            self.base_rtt = self.base_rtt.min(ack.rtt);
        }
        match self.history(ack) {
            None => {
                self.power.forget();
                self.law.postpone(ack);
            }
            // Two acknowledgments at one time have no gradient; the next one is measured from the first.
            Some((_, at)) if at == ack.now => return self.law.allowance(self.base_rtt),
            Some((rtt, at)) => {
                let dt_ns = (ack.now - at).as_ns_f64();
                let power = self.norm_power(ack.rtt, rtt, dt_ns);
                let smoothed = self.power.sample(power, dt_ns, self.base_rtt.as_ns_f64());
                self.law.update(ack, smoothed);
            }
        }
        self.prev = Some((ack.rtt, ack.now));
        self.law.allowance(self.base_rtt)
    }
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.law.allowance(self.base_rtt)
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.law.allowance(self.base_rtt)
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.law.allowance(self.base_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;
    use crate::power_law::testing::ack;
    use crate::test_flow::flow_25g;
    use fairrate_units::Bytes;

    #[test]
    fn the_window_moves_once_a_round_trip_by_the_smoothed_power() {
        let mut flow = ThetaPowerTcpConfig::new(Profile::Paper).build(&flow_25g());
        let stored = flow.on_ack(&ack(9_000, 9_500, 1_000, 3_000, &[]));
        assert_eq!((stored.cwnd, stored.rate), (Bytes::new(25_000), Rate::from_gbps(25)));
        // Up to byte 3,000 packets were sent before the first acknowledgment.
        // θ̇ = (10 − 9.5)/1 = 0.5, so Γ = 1.5·10/8 = 1.875: the first sample.
        assert_eq!(flow.on_ack(&ack(10_000, 10_000, 3_000, 4_000, &[])), stored);
        // θ̇ = 0, Γ = 10/8 = 1.25 over 2 µs; smoothed (1.875·6 + 1.25·2)/8 = 1.71875.
        // cwnd = 0.9·(20,000/1.71875 + 150) + 0.1·25,000 = 13,107.7 bytes.
        let next = flow.on_ack(&ack(12_000, 10_000, 4_000, 5_000, &[]));
        assert_eq!(next.cwnd, Bytes::new(13_107));
    }

    #[test]
    fn a_round_trip_time_in_free_fall_keeps_half_its_power() {
        let flow = ThetaPowerTcpConfig::new(Profile::Paper).build(&flow_25g());
        // θ̇ = −1 leaves no power; with the floor Γ = 0.5·8/8.
        assert_eq!(flow.norm_power(Time::from_us(8), Time::from_us(9), 1_000.0), 0.5);
    }

    #[test]
    fn idle_time_and_simultaneous_acknowledgments_change_nothing() {
        let config = ThetaPowerTcpConfig { update: UpdateInterval::PerAck, ..ThetaPowerTcpConfig::default() };
        let mut flow = config.build(&flow_25g());
        let stored = flow.on_ack(&ack(9_000, 8_000, 1_000, 3_000, &[]));
        assert_eq!(flow.on_ack(&ack(9_000, 9_000, 2_000, 3_000, &[])), stored);
        // Sent 8.001 µs after the last acknowledgment.
        assert_eq!(flow.on_ack(&ack(29_001, 12_000, 3_000, 4_000, &[])), stored);
        assert_ne!(flow.on_ack(&ack(30_001, 12_000, 4_000, 5_000, &[])), stored);
    }

    /// The artifact's first three acknowledgments of one flow, from `acktrace_pl3.thetafs` (τ = 9.28 µs): the
    /// first sets the running base round-trip time; U~ is 1.046089978, then 1.094079948.
    #[test]
    fn the_ns3_profile_gives_the_artifacts_rates() {
        let flow = FlowContext { base_rtt: Time::from_ns(9_280), ..flow_25g() };
        let mut flow = ThetaPowerTcpConfig::new(Profile::Ns3).build(&flow);
        let first = flow.on_ack(&ack(1_007_476, 7_476, 1_000, 30_000, &[]));
        // 25 Gb/s · 7,476 ns = 23,362.5 bytes.
        assert_eq!((first.cwnd, first.rate), (Bytes::new(23_362), Rate::from_gbps(25)));
        let second = flow.on_ack(&ack(1_008_172, 7_824, 2_000, 30_000, &[]));
        assert_eq!(second.rate, Rate::from_bps(24_333_962_483));
        let third = flow.on_ack(&ack(1_008_868, 8_172, 3_000, 30_000, &[]));
        assert_eq!(third.rate, Rate::from_bps(23_600_174_786));
    }

    /// The first three acknowledgments of one flow of the artifact as published, from `acktrace_star2.theta`: the
    /// gradient is 8,460/1,008,460 at first; U~ is 1.015591808, 1.064073892 and 1.113744463.
    #[test]
    fn with_zeros_for_history_the_first_acknowledgment_already_decides() {
        let config = ThetaPowerTcpConfig { first_ack: FirstAck::ZeroHistory, ..ThetaPowerTcpConfig::new(Profile::Ns3) };
        assert!(!config.needs().feedback.first_ack_only_stored);
        let mut flow = config.build(&flow_25g());
        let mut on_ack = |ns, rtt, ack_seq| flow.on_ack(&ack(ns, rtt, ack_seq, 25_000, &[])).rate.as_bps();
        assert_eq!(on_ack(1_008_460, 8_460, 1_000), 24_836_332_380);
        assert_eq!(on_ack(1_009_156, 8_808, 2_000), 23_894_457_402);
        assert_eq!(on_ack(1_009_852, 9_156, 3_000), 23_165_793_401);
    }

    #[test]
    fn zeros_for_history_are_not_an_idle_time() {
        let config = ThetaPowerTcpConfig { first_ack: FirstAck::ZeroHistory, ..ThetaPowerTcpConfig::default() };
        // 20 µs after time zero, with τ and round trip 8 µs: θ̇ = 8/20, Γ = 1.4·8/8 = 1.4;
        // cwnd = 0.9·(20,000/1.4 + 150) + 0.1·25,000 = 15,492.1 bytes.
        let first = config.build(&flow_25g()).on_ack(&ack(20_000, 8_000, 1_000, 26_000, &[]));
        assert_eq!(first.cwnd, Bytes::new(15_492));
    }

    #[test]
    fn only_the_artifact_carries_the_telemetry_header() {
        let paper = ThetaPowerTcpConfig::new(Profile::Paper).needs();
        assert_eq!(
            paper,
            Needs {
                feedback: FeedbackNeeds { first_ack_only_stored: true, ..Needs::TIMESTAMPS.feedback },
                ..Needs::TIMESTAMPS
            }
        );
        let ns3 = ThetaPowerTcpConfig::new(Profile::Ns3).needs();
        assert_eq!(
            (ns3.network.telemetry, ns3.wire.data_overhead, ns3.wire.ack_overhead),
            (None, Bytes::new(42), Bytes::new(28))
        );
    }
}
