//! HPCC: Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Alg. 1.
//!
//! Telemetry gives the number of bytes in flight through every port, normalised to the number that the port can carry
//! without a queue. The window is controlled so that the fullest port stays just below that, at η.
//!
//! | paper | here | unit |
//! |---|---|---|
//! | T | `FlowContext::base_rtt` | time |
//! | B | `IntHop::rate` | bit/s |
//! | txRate, u′ | `tx_rate`, `utilization` | bit/s, 1 |
//! | τ | `dt` | time |
//! | U | `utilization` of the flow | 1 |
//! | η | `eta` | 1 |
//! | maxStage, incStage | `max_stage`, `inc_stage` | round trips |
//! | W_AI | `additive_increase` times T | bytes a round trip |
//! | W, W^c | `applied`, `reference` | bytes of payload |
//!
//! Readings, where the paper leaves a choice:
//! - W_AI = W_init·(1 − η)/N depends on an expected number of flows N. It is 50 Mb/s·T here, the constant of
//!   HPCC's public code (N = 25 at 25 Gb/s), times the flow's weight. `increase = "by-line-rate"` selects the formula.
//! - U starts at 1, as in HPCC's public code.
//! - The first acknowledgment, and any with a changed number of hops, only store their telemetry. There is no special
//!   case for idle times (τ is then limited to T, and the new sample replaces U) and losses (RDMA on PFC).
//! - W stays between one packet (`floor`) and W_init, the line rate times T.
//!
//! RoCC's authors' OMNeT++ code (profile `rocc-omnet`) starts from nothing: U and W^c are zero, and the first
//! acknowledgment's telemetry is held against zeros, so that a flow goes from line rate to W_AI/T with its first
//! acknowledgment. It has no window (`window = "none"` of `[transport]`), and its rate limiter is a bucket without
//! bound.
//!
//! The ns-3 profile is the code in PowerTCP's artifact: one rate for all hops as the state, in whole bit/s,
//! W = W_init·rate/line rate in whole bytes, packed telemetry.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::int::{IntFormat, IntHop};
use crate::limits::{RateLimiter, bdp, scaled_window};
use crate::needs::{Bucket, FeedbackNeeds, Needs, NetworkNeeds, Telemetry};
use crate::port::NoPort;
use crate::records::Records;

choice! {
    /// The quantity that HPCC's law computes.
    pub enum HpccState {
        /// A window; the rate follows as W/T.
        Window = "window",
        /// A rate; the window follows in proportion.
        Rate = "rate",
    }
}

choice! {
    /// The source of HPCC's additive increase.
    pub enum HpccIncrease {
        /// The same rate for every flow.
        Given = "given",
        /// The fraction (1 - η)/N of the rate of the flow's NIC, from the headroom and an expected number of flows.
        ByLineRate = "by-line-rate",
    }
}

choice! {
    /// The state of a flow before its first acknowledgment.
    pub enum HpccStart {
        /// W^c is W_init and U is 1; the first acknowledgment is only stored.
        Full = "full",
        /// W^c, U and the telemetry before the first acknowledgment are zero.
        Zero = "zero",
    }
}

choice! {
    /// The lower limit of HPCC's law.
    pub enum HpccFloor {
        /// A window of one packet.
        Packet = "packet",
        /// A rate.
        Rate = "rate",
    }
}

algorithm_config! {
    /// Parameters of HPCC.
    pub struct HpccConfig {
        /// η: utilization to aim for (HPCC §3.3; ns-3 artifact).
        eta: f64 = 0.95, in 0.01..=1.0, tune = Linear(0.8, 1.0);
        /// maxStage: round trips of additive increase before a multiplicative one (HPCC §3.3; ns-3 artifact).
        max_stage: u32 = 5, in 0..=1_000, tune = Linear(0, 10);
        /// W_AI/T: additive increase a round trip, as a rate (HPCC's public code; ns-3 artifact).
        additive_increase: Rate = Rate::from_mbps(50), tune = Log("5Mbps", "2Gbps");
        /// Source of W_AI/T: `additive_increase` (HPCC's public code; ns-3 artifact), or (1 - eta)/N of the rate of the
        /// flow's NIC (HPCC §3.3 with that NIC's W_init; RoCC §VI).
        increase: HpccIncrease = HpccIncrease::Given, omnet = HpccIncrease::ByLineRate;
        /// N, for `increase = "by-line-rate"`: expected flows of a link (HPCC §3.3 gives none; ours).
        expected_flows: f64 = 10.0, omnet = 4.0, in 1.0..=1_000_000.0, tune = Log(1.0, 1000.0);
        /// If true, acknowledgments between the once-a-round-trip updates act too (HPCC Alg. 1; ns-3 artifact).
        fast_react: bool = true;
        /// Quantity that the law computes: a window (HPCC Alg. 1) or a rate (ns-3 artifact).
        state: HpccState = HpccState::Window, ns3 = HpccState::Rate;
        /// Precision of the telemetry (ns-3 artifact: packed into 64 bits a hop).
        int_format: IntFormat = IntFormat::Exact, ns3 = IntFormat::Packed;
        /// The least window with state `window`: one packet (ours), or what goes at `min_rate` in T.
        floor: HpccFloor = HpccFloor::Packet, omnet = HpccFloor::Rate;
        /// Least rate with state `rate` (ns-3 artifact), or with `floor = "rate"`.
        min_rate: Rate = Rate::from_mbps(100), omnet = Rate::from_mbps(1), tune = Log("1Mbps", "1Gbps");
        /// State before the first acknowledgment: full (HPCC Alg. 1), or zero (RoCC's authors' code).
        start: HpccStart = HpccStart::Full, omnet = HpccStart::Zero;
        /// Rate limiter of a flow: packets spaced by the rate (ours), or a token bucket that nothing empties and
        /// nothing bounds, so that a flow which was idle or paused catches up (RoCC's authors' code).
        limiter: RateLimiter = RateLimiter::Spaced, omnet = RateLimiter::Bucket;
        /// Update of W^c a packet later: by the packet after the first one sent since the last update (RoCC's authors'
        /// code, which compares sequence numbers of packets) and not by that one (HPCC Alg. 1 line 23, ns-3 artifact).
        late_update: bool = false, omnet = true;
        /// If true, telemetry is kept for each path, so that packets of a flow may take several (not in the paper);
        /// else a change of path begins anew.
        per_path: bool = false;
    }
}

impl AlgorithmSpec for HpccConfig {
    type Controller = Hpcc;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds {
                telemetry: Some(Telemetry { format: self.int_format, ..Telemetry::EXACT }),
                ..Needs::TELEMETRY.network
            },
            pacing: self.limiter.needs(Bucket::Kept),
            feedback: FeedbackNeeds {
                first_ack_only_stored: self.start == HpccStart::Full,
                weights: true,
                paths_apart: self.per_path,
                ..Needs::TELEMETRY.feedback
            },
            ..Needs::TELEMETRY
        }
    }
    fn build(&self, flow: &FlowContext) -> Hpcc {
        // The artifact's window is whole bytes; W/T must be the line rate exactly, or the first packets are late.
        let exact = flow.line_rate.as_bytes_per_sec() * flow.base_rtt.as_secs_f64();
        let w_init = match self.state {
            HpccState::Window => exact.max(1.0),
            HpccState::Rate => bdp(flow.line_rate, flow.base_rtt).max(1.0),
        };
        let increase_bps = self.increase_bps(flow.line_rate) * flow.weight;
        let in_rtt = |bps: f64| bps * flow.base_rtt.as_secs_f64() / 8.0;
        let least_window = match self.floor {
            HpccFloor::Packet => flow.mtu.as_f64(),
            HpccFloor::Rate => in_rtt(self.min_rate.as_bps_f64()).max(1.0),
        };
        let (w_ai, least, most) = match self.state {
            HpccState::Window => (in_rtt(increase_bps), least_window, w_init),
            HpccState::Rate => (increase_bps.trunc(), self.min_rate.as_bps_f64(), flow.line_rate.as_bps_f64()),
        };
        let (utilization, reference) = match self.start {
            HpccStart::Full => (1.0, most),
            HpccStart::Zero => (0.0, 0.0),
        };
        Hpcc {
            line_rate: flow.line_rate,
            base_rtt_ns: flow.base_rtt.as_ns_f64(),
            w_init,
            w_ai,
            least: least.min(most),
            most,
            prev: Records::new(self.per_path),
            utilization,
            reference,
            applied: most,
            inc_stage: 0,
            last_update_seq: 0,
            one_later: if self.late_update { flow.mtu.as_u64() } else { 0 },
            config: self.clone(),
        }
    }
}

impl HpccConfig {
    /// Returns W_AI/T of a flow of weight 1, in bit/s.
    fn increase_bps(&self, line_rate: Rate) -> f64 {
        match self.increase {
            HpccIncrease::Given => self.additive_increase.as_bps_f64(),
            HpccIncrease::ByLineRate => line_rate.as_bps_f64() * (1.0 - self.eta) / self.expected_flows,
        }
    }
}

/// A flow under HPCC. `w_ai`, `least`, `most`, `reference` and `applied` are bytes of payload with
/// [`HpccState::Window`] and bit/s with [`HpccState::Rate`].
#[derive(Clone, Debug)]
pub struct Hpcc {
    config: HpccConfig,
    line_rate: Rate,
    base_rtt_ns: f64,
    w_init: f64,
    w_ai: f64,
    least: f64,
    most: f64,
    /// L: telemetry of the last acknowledgment.
    prev: Records,
    /// The utilization U.
    utilization: f64,
    /// The reference window W^c.
    reference: f64,
    /// The window W.
    applied: f64,
    inc_stage: u32,
    last_update_seq: u64,
    /// Bytes by which the next update is later than the first one sent since this one.
    one_later: u64,
}

impl Hpcc {
    /// Updates U as MEASUREINFLIGHT (Alg. 1 lines 1-10). Returns `true` if any port's clock advanced.
    fn measure_inflight(&mut self, int: &[IntHop]) -> bool {
        let mut fullest: Option<(f64, f64)> = None;
        for (hop, prev) in int.iter().zip(self.prev.last()) {
            let Some(sample) = self.hop_utilization(hop, prev) else { continue };
            if fullest.is_none_or(|(u, _)| u < sample.0) {
                fullest = Some(sample);
            }
        }
        let Some((u, dt_ns)) = fullest else { return false };
        self.utilization = smooth(self.utilization, u, dt_ns, self.base_rtt_ns);
        true
    }

    /// Returns u′ of one port (lines 4-5) and the time over which it was measured, in nanoseconds:
    /// u′ = min(qlen, previous qlen)/(B·T) + txRate/B. The queue is divided in the artifact's order.
    fn hop_utilization(&self, hop: &IntHop, prev: &IntHop) -> Option<(f64, f64)> {
        let delta = hop.since(prev, self.config.int_format)?;
        let bandwidth = hop.rate.as_bps_f64();
        let tx_rate = delta.tx_bytes * 8.0 / delta.dt_s;
        let qlen = f64::from(hop.qlen.min(prev.qlen));
        let queued = qlen * self.line_rate.as_bps_f64() / bandwidth / self.w_init;
        Some((tx_rate / bandwidth + queued, delta.dt_ns))
    }

    /// Computes W as COMPUTEWIND (lines 11-20).
    fn compute_wind(&mut self, update_reference: bool) {
        let overload = self.utilization / self.config.eta;
        let (base, stage) = if 1.0 <= overload || self.config.max_stage <= self.inc_stage {
            (self.reference / overload, 0)
        } else {
            (self.reference, self.inc_stage + 1)
        };
        // The artifact keeps rates as whole bit/s.
        let base = if self.config.state == HpccState::Rate { base.trunc() } else { base };
        self.applied = (base + self.w_ai).clamp(self.least, self.most);
        if update_reference {
            self.reference = self.applied;
            self.inc_stage = stage;
        }
    }

    /// Returns the allowance: R = W/T (line 27), or W from R in the rate form.
    fn allowance(&self) -> Allowance {
        let (cwnd, rate) = match self.config.state {
            HpccState::Window => (Bytes::new(self.applied as u64), self.applied * 8e9 / self.base_rtt_ns),
            HpccState::Rate => (scaled_window(self.w_init, self.applied, self.line_rate.as_bps_f64()), self.applied),
        };
        Allowance { cwnd, rate: Rate::from_bps_f64(rate.round()).min(self.line_rate), timer: Time::MAX }
    }
}

/// Returns U ← (1 − τ/T)·U + τ/T·u, with τ at most T (lines 8-9).
fn smooth(utilization: f64, u: f64, dt: f64, base_rtt: f64) -> f64 {
    let dt = dt.min(base_rtt);
    (utilization * (base_rtt - dt) + u * dt) / base_rtt
}

impl Controller for Hpcc {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    /// Handles an acknowledgment as NEWACK (lines 21-27).
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let is_full = self.last_update_seq < ack.ack_seq;
        self.prev.turn_to(ack.path);
        if !self.prev.has_begun() && self.config.start == HpccStart::Zero {
            self.prev.begin_with_zeros(ack.int);
        }
        if self.prev.last().len() != ack.int.len() {
            if !self.prev.has_others() {
                self.last_update_seq = self.last_update_seq.max(ack.snd_nxt);
            }
        } else if !is_full && !self.config.fast_react {
            return self.allowance();
        } else if self.measure_inflight(ack.int) {
            self.compute_wind(is_full);
            if is_full {
                self.last_update_seq = self.last_update_seq.max(ack.snd_nxt + self.one_later);
            }
        }
        self.prev.keep(ack.int);
        self.allowance()
    }
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.allowance()
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.allowance()
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.allowance()
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

    fn hop(ns: u64, tx_bytes: u64, qlen: u32) -> [IntHop; 1] {
        [IntHop { ts: Time::from_ns(ns), tx_bytes, qlen, rate: PortRate::new(Rate::from_gbps(25)) }]
    }

    #[test]
    fn bytes_in_flight_count_sending_and_the_smaller_queue() {
        let mut flow = HpccConfig::new(Profile::Paper).build(&flow_25g());
        flow.on_ack(&ack(8_000, 8_000, 1_000, 26_000, &hop(4_000, 0, 6_250)));
        let next = flow.on_ack(&ack(9_000, 9_000, 2_000, 27_000, &hop(5_000, 3_125, 9_000)));
        // txRate = 3,125 B/µs = B; u = 1 + 6,250/25,000 = 1.25 over 1 of 8 µs; U = (1·7 + 1.25·1)/8 = 1.03125.
        // W_AI = 50 Mb/s · 8 µs = 50 bytes; W = 25,000·0.95/1.03125 + 50 = 23,080.3 bytes; R = W/T.
        assert_eq!((next.cwnd, next.rate), (Bytes::new(23_080), Rate::from_bps(23_080_303_030)));
        assert_eq!((flow.reference, flow.inc_stage), (25_000.0, 0));
    }

    /// (1 - 0.95)/4 of 25 Gb/s are 312.5 Mb/s. W^c grows by as much with each round trip of five below η, and the round
    /// trip is over with the second packet sent since the last update.
    #[test]
    fn rocc_authors_flow_falls_to_its_increase_with_the_first_acknowledgment() {
        let mut flow = HpccConfig::new(Profile::RoccOmnet).build(&flow_25g());
        assert_eq!(flow.on_start(Time::ZERO).rate, Rate::from_gbps(25));
        let first = flow.on_ack(&ack(8_000, 8_000, 1_000, 5_000, &hop(8_000, 1_000, 0)));
        assert_eq!((first.rate, flow.inc_stage), (Rate::from_bps(312_500_000), 1));
        let mut rate_after = |seq: u64| {
            let at = 8_000 + seq;
            flow.on_ack(&ack(at, 8_000, seq, seq + 2_000, &hop(at, 1_000 + seq / 10, 0))).rate.as_bps()
        };
        assert_eq!([rate_after(5_000), rate_after(6_000), rate_after(7_000)], [625_000_000; 3]);
        assert_eq!(rate_after(8_000), 937_500_000, "the update came with the packet behind 6,000");
    }

    /// A port further on has sent 25 MB: beside the port before, that would be a thousand times its rate.
    #[test]
    fn telemetry_of_another_path_is_only_stored() {
        for per_path in [false, true] {
            let config = HpccConfig { per_path, ..HpccConfig::default() };
            let mut flow = config.build(&flow_25g());
            let on =
                |path, at, tx_bytes| (Ack { path, ..ack(at, 8_000, at, at + 5_000, &[]) }, hop(at, tx_bytes, 50_000));
            let mut take = |(ack, int): (Ack<'_>, [IntHop; 1])| flow.on_ack(&Ack { int: &int, ..ack }).cwnd;
            let first = take(on(1, 1_000, 1_000));
            assert_eq!(take(on(2, 2_000, 25_000_000)), first);
            // Beside its own telemetry of 8 us before it shows two windows in the queue; if that was forgotten, it is
            // stored once more.
            let back = take(on(1, 9_000, 2_000));
            assert_eq!(back < first, per_path, "{first} {back}");
        }
    }

    #[test]
    fn five_additive_round_trips_and_then_a_multiplicative_one() {
        let mut flow = HpccConfig::new(Profile::Paper).build(&flow_25g());
        let (mut tx_bytes, mut windows) = (0, Vec::new());
        flow.on_ack(&ack(0, 8_000, 0, 1, &hop(0, 0, 22_500)));
        for round in 1..=7 {
            // Round 1: sending at line rate, 22,500 bytes queued; then 19,000 of 25,000 bytes a round trip.
            tx_bytes += if round == 1 { 25_000 } else { 19_000 };
            let qlen = if round == 1 { 22_500 } else { 0 };
            let int = hop(round * 8_000, tx_bytes, qlen);
            let next = flow.on_ack(&ack(round * 8_000, 8_000, round * 10, round * 10 + 9, &int));
            windows.push(next.cwnd.as_u64());
        }
        // U = 1 + 22,500/25,000 = 1.9: W = 25,000/2 + 50. Then U = 0.76 < η: five times + 50 bytes; the sixth
        // divides by 0.76/0.95 = 0.8: 12,800/0.8 + 50.
        assert_eq!(windows, [12_550, 12_600, 12_650, 12_700, 12_750, 12_800, 16_050]);
    }

    #[test]
    fn the_increase_may_follow_the_nic_and_the_floor_be_a_rate() {
        let config = HpccConfig { increase: HpccIncrease::ByLineRate, floor: HpccFloor::Rate, ..HpccConfig::default() };
        // 25 Gb/s · 0.05/10 = 125 Mb/s, in 8 µs 125 bytes; at 100 Gb/s four times as much. 100 Mb/s · 8 µs = 100 bytes.
        let flow = config.build(&flow_25g());
        assert!((flow.w_ai - 125.0).abs() < 1e-9 && (flow.least - 100.0).abs() < 1e-9);
        let fast = config.build(&FlowContext { line_rate: Rate::from_gbps(100), ..flow_25g() });
        assert!((fast.w_ai - 500.0).abs() < 1e-9);
        // A queue of 40 windows: one packet is more than the law asks for, 25,000·0.95/41 + 50 is not.
        let window = |config: HpccConfig| {
            let mut flow = config.build(&flow_25g());
            flow.on_ack(&ack(0, 8_000, 0, 1, &hop(0, 0, 1_000_000)));
            flow.on_ack(&ack(8_000, 8_000, 10, 19, &hop(8_000, 25_000, 1_000_000))).cwnd.as_u64()
        };
        assert_eq!(window(HpccConfig::default()), 1_000);
        assert_eq!(window(HpccConfig { floor: HpccFloor::Rate, ..HpccConfig::default() }), 629);
        // 0.1 Gb/s for 50 ns are less than a byte.
        let near = FlowContext { base_rtt: Time::from_ns(50), ..flow_25g() };
        let mut flow = HpccConfig { floor: HpccFloor::Rate, ..HpccConfig::default() }.build(&near);
        flow.on_start(Time::ZERO);
        let least = (0..50).map(|i| flow.on_ack(&ack(i, i, 10, 19, &hop(8_000, 25_000, 1_000_000))).cwnd).min();
        assert!(Some(Bytes::new(1)) <= least);
    }

    #[test]
    fn without_fast_reaction_only_the_round_trips_first_acknowledgment_acts() {
        let config = HpccConfig { fast_react: false, ..HpccConfig::default() };
        let mut flow = config.build(&flow_25g());
        let start = flow.on_ack(&ack(8_000, 8_000, 1_000, 26_000, &hop(4_000, 0, 0)));
        assert_eq!(flow.on_ack(&ack(9_000, 9_000, 2_000, 27_000, &hop(5_000, 3_125, 0))), start);
        // 28,125 bytes in 9 µs are line rate: U = 1 and W = 25,000·0.95 + 50.
        let next = flow.on_ack(&ack(17_000, 9_000, 27_000, 52_000, &hop(13_000, 28_125, 0)));
        assert_eq!(next.cwnd, Bytes::new(23_800));
    }

    /// The artifact's first four acknowledgments of one flow, from `acktrace_star2.hpcc`: 2,176 bytes in 696 ns
    /// make u 1.000459770, 1.128459770 and 1.218059770 with 0, 3,200 and 5,440 bytes queued at both ends.
    #[test]
    fn the_ns3_profile_gives_the_artifacts_rates() {
        let mut flow = HpccConfig::new(Profile::Ns3).build(&flow_25g());
        let mut on_ack = |n: u64, qlen| {
            let [int] = hop(696 * n, 2_176 * n, qlen);
            let int = [int.encoded(IntFormat::Packed)];
            flow.on_ack(&ack(1_008_112 + 696 * n, 8_112, 1_000 * (n + 1), 30_000, &int))
        };
        assert_eq!(on_ack(0, 0).rate, Rate::from_gbps(25));
        let second = on_ack(1, 3_200);
        assert_eq!((second.cwnd, second.rate), (Bytes::new(23_799), Rate::from_bps(23_799_050_037)));
        assert_eq!(on_ack(2, 5_440).rate, Rate::from_bps(23_536_655_406));
        assert_eq!(on_ack(3, 7_600).rate, Rate::from_bps(23_125_991_126));
    }
}
