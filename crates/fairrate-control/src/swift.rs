//! `swift`: Swift. G. Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
//! Datacenter", SIGCOMM 2020, Algorithm 1 and §3.1 to §3.5, with only the fabric window (the hosts here
//! have no endpoint delay).
//!
//! | paper            | here             | unit    |
//! |------------------|------------------|---------|
//! | cwnd (fcwnd)     | `cwnd`           | packets |
//! | ai               | `ai`             | packets |
//! | β                | `beta`           | 1       |
//! | max_mdf          | `max_mdf`        | 1       |
//! | base target      | `base_target`    | path base RTTs |
//! | ħ                | `hop_target`     | packet times at line rate |
//! | fs_range         | `fs_range`       | base targets |
//! | fs_min, fs_max   | `fs_min`, `fs_max` | packets |
//! | α, β of §3.5     | `fs_alpha`, `fs_beta` | ns |
//! | t_last_decrease  | `last_decrease`  | time    |
//!
//! Readings: targets follow the topology, since the paper's microseconds fit only its own network: the base target is a
//! multiple of the path's unloaded RTT, and as that RTT includes propagation and hops, the hop term is only the
//! queueing allowed at a hop: one packet time. The first window is one bandwidth-delay product of the path; the largest
//! is two, as a window above the capacity of path and target queue is of no use. A window below one packet becomes a
//! window of one byte (one packet in flight) and a gap of RTT / cwnd between packets. The ns-3 artifact has no Swift:
//! both profiles are the same.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::limits::bdp;
use crate::needs::Needs;
use crate::port::NoPort;

algorithm_config! {
    /// Parameters of Swift.
    pub struct SwiftConfig {
        /// Additive increase per RTT, in packets (Swift, HiNA and htsim code: 1).
        ai: f64 = 1.0, in 0.0..=1000.0, tune = Log(0.1, 10.0);
        /// Multiplicative decrease factor (htsim: 0.8).
        beta: f64 = 0.8, in 0.0..=1.0, tune = Linear(0.1, 1.0);
        /// Largest decrease at once (htsim: 0.5).
        max_mdf: f64 = 0.5, in 0.0..=1.0, tune = Linear(0.1, 0.9);
        /// Base target delay, in unloaded RTTs of the path (our choice; the paper's 25 us is its network's).
        base_target: f64 = 1.5, in 0.1..=1000.0, tune = Log(1.1, 10.0);
        /// Target added per hop, in packet times at line rate (our choice; the paper has about 1 us).
        hop_target: f64 = 1.0, in 0.0..=1000.0, tune = Linear(0.0, 10.0);
        /// Largest target added by flow scaling, in base targets (htsim: 5).
        fs_range: f64 = 5.0, in 0.0..=1000.0, tune = Linear(0.0, 20.0);
        /// Window below which flow scaling adds its whole range, in packets (Swift §3.5: 0.1).
        fs_min: f64 = 0.1, in 0.000_001..=1_000_000.0, tune = Log(0.01, 1.0);
        /// Window from which flow scaling adds nothing, in packets (Swift §3.5: 100).
        fs_max: f64 = 100.0, in 0.000_001..=1_000_000.0, tune = Log(10.0, 1000.0);
        /// Timeouts in a row that bring the smallest window (Swift Algorithm 1; htsim: 5).
        retx_reset: u32 = 5, tune = Linear(1, 10);
        /// Smallest window, in packets (Swift §3.1, htsim: 0.001 to 0.01).
        min_window: f64 = 0.001, in 0.000_001..=1000.0, tune = Log(0.0001, 0.1);
        /// First window, in bandwidth-delay products of the path (our choice; htsim: 12 packets).
        initial_window: f64 = 1.0, in 0.000_001..=1000.0, tune = Log(0.1, 2.0);
        /// Largest window, in bandwidth-delay products of the path (our choice).
        max_window: f64 = 2.0, in 0.000_001..=1000.0, tune = Log(1.0, 10.0);
    }
}

impl AlgorithmSpec for SwiftConfig {
    type Controller = Swift;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs::TIMESTAMPS
    }
    fn build(&self, flow: &FlowContext) -> Swift {
        let mtu = flow.mtu.as_f64().max(1.0);
        let path_rtt = flow.path_base_rtt.max(Time::from_ps(1));
        let bdp = bdp(flow.line_rate, path_rtt) / mtu;
        let max = (self.max_window * bdp).max(1.0);
        let base_ns = self.base_target * path_rtt.as_ns_f64();
        let hop_ns = self.hop_target * flow.line_rate.tx_time(flow.wire_mtu).as_ns_f64();
        let (fs_alpha, fs_beta) = flow_scaling(self.fs_range * base_ns, self.fs_min, self.fs_max);
        Swift {
            line_rate: flow.line_rate,
            path_rtt,
            mtu,
            wire_bits: flow.wire_mtu.as_f64().max(1.0) * 8.0,
            fixed_target_ns: base_ns + f64::from(flow.n_hops) * hop_ns,
            fs_alpha,
            fs_beta,
            fs_range_ns: self.fs_range * base_ns,
            min: self.min_window.min(max),
            max,
            cwnd: (self.initial_window * bdp).clamp(self.min_window.min(max), max),
            rtt: path_rtt,
            last_decrease: None,
            n_timeouts: 0,
            config: self.clone(),
        }
    }
}

/// Returns α and β of flow scaling: α/√cwnd + β is the range at fs_min and zero at fs_max (§3.5).
fn flow_scaling(range_ns: f64, fs_min: f64, fs_max: f64) -> (f64, f64) {
    let span = 1.0 / fs_min.sqrt() - 1.0 / fs_max.sqrt();
    let alpha = if span > 0.0 { range_ns / span } else { 0.0 };
    (alpha, -alpha / fs_max.sqrt())
}

/// A flow under Swift.
#[derive(Clone, Debug)]
pub struct Swift {
    config: SwiftConfig,
    line_rate: Rate,
    path_rtt: Time,
    mtu: f64,
    wire_bits: f64,
    /// Base target plus the hop terms, in nanoseconds.
    fixed_target_ns: f64,
    fs_alpha: f64,
    fs_beta: f64,
    fs_range_ns: f64,
    min: f64,
    max: f64,
    cwnd: f64,
    /// The last RTT, at least the path's base RTT.
    rtt: Time,
    last_decrease: Option<Time>,
    n_timeouts: u32,
}

impl Swift {
    /// Returns the target delay (§3.5): base, hops, and an addition for small windows, which indicate many flows.
    fn target_ns(&self) -> f64 {
        let flow_scaling = self.fs_alpha / self.cwnd.sqrt() + self.fs_beta;
        self.fixed_target_ns + flow_scaling.clamp(0.0, self.fs_range_ns)
    }

    /// Returns `true` if an RTT has passed since the last decrease.
    fn can_decrease(&self, now: Time) -> bool {
        self.last_decrease.is_none_or(|last| self.rtt <= now.saturating_sub(last))
    }

    /// Increases the window by `ai` packets per RTT, above and below one packet (Algorithm 1).
    fn increase(&mut self, n_acked: f64) {
        let step = self.config.ai * n_acked;
        let step = if self.cwnd < 1.0 { step } else { step / self.cwnd };
        self.cwnd = (self.cwnd + step).min(self.max);
    }

    fn decrease(&mut self, now: Time, factor: f64) {
        if self.can_decrease(now) {
            self.set_lower(now, self.cwnd * factor);
        }
    }

    /// Lowers the window to `cwnd`, at least the smallest window. If the window does not fall by that, it does not
    /// count as a decrease.
    fn set_lower(&mut self, now: Time, cwnd: f64) {
        let lower = cwnd.max(self.min);
        if lower < self.cwnd {
            (self.cwnd, self.last_decrease) = (lower, Some(now));
        }
    }

    /// Returns the factor for a delay at or above target: 1 - β (D - T) / D, at least 1 - max_mdf.
    fn factor(&self, delay_ns: f64, target_ns: f64) -> f64 {
        (1.0 - self.config.beta * (delay_ns - target_ns) / delay_ns).max(1.0 - self.config.max_mdf)
    }

    fn allowance(&self) -> Allowance {
        if 1.0 <= self.cwnd {
            return Allowance {
                cwnd: Bytes::new((self.cwnd * self.mtu) as u64),
                rate: self.line_rate,
                timer: Time::MAX,
            };
        }
        let paced = Rate::from_bps_f64(self.cwnd * self.wire_bits / self.rtt.as_secs_f64());
        Allowance { cwnd: Bytes::new(1), rate: paced.clamp(Rate::from_bps(1), self.line_rate), timer: Time::MAX }
    }
}

impl Controller for Swift {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance()
    }

    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        self.n_timeouts = 0;
        self.rtt = ack.rtt.max(self.path_rtt);
        let (delay_ns, target_ns) = (ack.rtt.as_ns_f64(), self.target_ns());
        if delay_ns < target_ns {
            self.increase(ack.newly_acked as f64 / self.mtu);
        } else {
            self.decrease(ack.now, self.factor(delay_ns, target_ns));
        }
        self.allowance()
    }

    fn on_loss(&mut self, now: Time, loss: Loss) -> Allowance {
        let factor = 1.0 - self.config.max_mdf;
        match loss {
            Loss::Gap => {
                self.n_timeouts = 0;
                self.decrease(now, factor);
            }
            Loss::Timeout => {
                self.n_timeouts = self.n_timeouts.saturating_add(1);
                if self.config.retx_reset <= self.n_timeouts {
                    self.set_lower(now, self.min);
                } else {
                    self.decrease(now, factor);
                }
            }
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
mod tests {
    use super::*;
    use crate::test_flow::{acked, flow_25g};

    fn swift_at(cwnd: f64) -> Swift {
        let mut swift = SwiftConfig::default().build(&flow_25g());
        swift.cwnd = cwnd;
        swift
    }

    fn ack(now_us: u64, rtt_ns: u64) -> Ack<'static> {
        Ack { now: Time::from_us(now_us), newly_acked: 1_000, ..acked(1_000, rtt_ns, 2_000) }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6 * b
    }

    #[test]
    fn the_target_has_base_hops_and_flow_scaling() {
        // Base 1.5 x 8 us, two hops of 1056 B = 337.92 ns: 12,675.84 ns. Range 60 us:
        // alpha = 60,000/(1/sqrt(0.1) - 1/10) = 60,000/3.0622777 = 19,593.26 and beta = -1,959.326.
        assert!(close(swift_at(100.0).target_ns(), 12_675.84));
        assert!(close(swift_at(1.0).target_ns(), 12_675.84 + 19_593.26 - 1_959.326));
        assert!(close(swift_at(0.1).target_ns(), 72_675.84));
        assert!(close(swift_at(0.01).target_ns(), 72_675.84));
        assert!(close(swift_at(400.0).target_ns(), 12_675.84));
    }

    #[test]
    fn below_target_a_packet_an_rtt_above_it_by_the_excess_once_an_rtt() {
        let mut swift = swift_at(25.0);
        assert_eq!(swift.on_start(Time::ZERO).cwnd, Bytes::new(25_000));
        // 25 + 1/25 packets.
        assert_eq!(swift.on_ack(&ack(100, 8_000)).cwnd, Bytes::new(25_040));
        // Target at 25 packets: 12,675.84 + 19,593.26/5 - 1,959.33 = 14,635.17 ns. Delay 20 us:
        // 1 - 0.8 x 5,364.83/20,000 = 0.785407.
        swift.cwnd = 25.0;
        assert_eq!(swift.on_ack(&ack(101, 20_000)).cwnd, Bytes::new(19_635));
        assert_eq!(swift.on_ack(&ack(120, 20_000)).cwnd, Bytes::new(19_635));
        // 20 us later the next cut; an excess beyond 62.5 % of the delay halves the window.
        assert_eq!(swift.on_ack(&ack(121, 8_000_000)).cwnd, Bytes::new(19_635));
        assert_eq!(swift.on_ack(&ack(8_200, 8_000_000)).cwnd, Bytes::new(9_817));
    }

    #[test]
    fn below_a_packet_the_gap_paces() {
        let mut swift = swift_at(0.5);
        // Delay 50 us is above the target at 0.5 packets, 12,675.84 + 27,709.05 - 1,959.33 = 38,425.6 ns:
        // 0.5 x (1 - 0.8 x 11,574.4/50,000) = 0.407404. A packet of 1056 B each 50 us / 0.407404 = 122.73 us.
        let a = swift.on_ack(&ack(100, 50_000));
        assert_eq!(a.cwnd, Bytes::new(1));
        assert_eq!(a.rate.tx_time(Bytes::new(1_056)).as_ns() / 10, 12_272);
        // Below target the window grows by a packet per acknowledged packet.
        assert_eq!(swift.on_ack(&ack(200, 10_000)).cwnd, Bytes::new(1_407));
    }

    /// A delay at the target cuts nothing, so that a later delay above it cuts at once.
    #[test]
    fn what_takes_nothing_is_no_decrease() {
        let mut swift = swift_at(100.0);
        let at_target = Ack { rtt: Time::from_ps(12_675_840), ..ack(100, 0) };
        assert_eq!(swift.on_ack(&at_target).cwnd, Bytes::new(100_000));
        // 1 - 0.8 x 7,324.16/20,000 = 0.7070336.
        assert_eq!(swift.on_ack(&ack(101, 20_000)).cwnd, Bytes::new(70_703));
    }

    #[test]
    fn the_fifth_timeout_in_a_row_resets() {
        let mut swift = swift_at(16.0);
        let cwnds: Vec<f64> = (1..=5)
            .map(|i| {
                swift.on_loss(Time::from_us(100 * i), Loss::Timeout);
                swift.cwnd
            })
            .collect();
        assert_eq!(cwnds, [8.0, 4.0, 2.0, 1.0, 0.001]);
        let mut swift = swift_at(16.0);
        swift.on_loss(Time::from_us(100), Loss::Gap);
        // Within the same RTT there is no second cut.
        swift.on_loss(Time::from_us(101), Loss::Gap);
        assert_eq!(swift.cwnd, 8.0);
    }
}
