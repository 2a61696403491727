//! `hull`: HULL. M. Alizadeh et al., "Less is More: Trading a little Bandwidth for Ultra-Low Latency in the Data
//! Center", NSDI 2012, §3. DCTCP at hosts that pace, marked by phantom queues.
//!
//! | paper          | here              | unit         |
//! |----------------|-------------------|--------------|
//! | γ              | `DRAIN`           | percent      |
//! | marking threshold | `MARKS.kmin`   | bytes        |
//! | pacer          | `pacing`          | true or false |
//!
//! Readings: the threshold is that of the paper's testbed, 1 KB at 1 Gb/s, in proportion at other rates, which is also
//! the simulator's for phantom queues; the paper's simulations at 10 Gb/s have 6 KB, 0.6 of that. The paper's pacer is
//! a token bucket in the NIC that measures a flow's sending rate, and only long flows have one; here all flows are
//! paced by DCTCP's `pacing`: window over the path's base RTT, which a smoothed RTT is near while queues are small. The
//! window is always controlled as DCTCP published it: the artifact has no HULL.

use fairrate_units::{Bytes, Rate};

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::dctcp::{Dctcp, DctcpConfig, DctcpInitialWindow};
use crate::needs::{MarkedQueue, Needs, NetworkNeeds, RedDefault};
use crate::port::NoPort;

algorithm_config! {
    /// Parameters of HULL.
    pub struct HullConfig {
        /// If true, packets are spaced at window / base RTT of the path, headers counted; otherwise at line rate.
        pacing: bool = true;
        /// Gain of alpha's average (RFC 8257 §4.2: 1/16).
        g: f64 = 1.0 / 16.0, in 0.0..=1.0, tune = Log(0.001, 0.5);
        /// First window; over TCP the default is `"10mtu"` (RFC 6928).
        initial_window: DctcpInitialWindow = DctcpInitialWindow::Bdp;
        /// If true, the flow starts in slow start; over TCP the default is true.
        slow_start: bool = false;
        /// Smallest window in packets (Linux: 2).
        min_window: u32 = 2, in 1..=1_000_000, tune = Linear(1, 10);
        /// Growth per RTT in packets (RFC 5681: 1).
        ai_packets: f64 = 1.0, in 0.0..=1000.0, tune = Log(0.1, 10.0);
    }
}

/// γ: the percentage of a link's rate at which its phantom queue drains (paper: 0.95).
const DRAIN: u8 = 95;

/// Marking above 1 KB at 1 Gb/s of a phantom queue.
const MARKS: RedDefault = RedDefault {
    kmin: Bytes::new(1_000),
    kmax: Bytes::new(1_000),
    pmax: 1.0,
    per_rate: Some(Rate::from_gbps(1)),
    queue: MarkedQueue::Phantom(DRAIN),
};

impl HullConfig {
    /// Returns the configuration of DCTCP in HULL.
    fn dctcp(&self) -> DctcpConfig {
        DctcpConfig {
            pacing: self.pacing,
            g: self.g,
            initial_window: self.initial_window,
            slow_start: self.slow_start,
            min_window: self.min_window,
            ai_packets: self.ai_packets,
            ..DctcpConfig::default()
        }
    }
}

impl AlgorithmSpec for HullConfig {
    type Controller = Hull;
    type Port = NoPort;
    fn over_tcp(self) -> Self {
        Self { initial_window: DctcpInitialWindow::TenMtu, slow_start: true, ..self }
    }
    fn needs(&self) -> Needs {
        let dctcp = self.dctcp().needs();
        Needs { network: NetworkNeeds { red: Some(MARKS), ..dctcp.network }, ..dctcp }
    }
    fn build(&self, flow: &FlowContext) -> Hull {
        self.dctcp().build(flow)
    }
}

/// A flow under HULL: its window is DCTCP's.
pub type Hull = Dctcp;

#[cfg(test)]
mod tests {
    use fairrate_units::Time;

    use super::*;
    use crate::controller::{Ack, Controller as _};
    use crate::test_flow::{acked, flow_25g};

    /// A window of 25,000 bytes with alpha 1 halves to 12,500, which are 12,500 x 8.448 bits on the wire in 8 us.
    #[test]
    fn a_mark_halves_window_and_pace() {
        let mut hull = HullConfig::default().build(&flow_25g());
        assert_eq!(hull.on_start(Time::ZERO).rate, Rate::from_gbps(25));
        let cut = hull.on_ack(&Ack { ecn_marked: true, ..acked(16_000, 8_000, 41_000) });
        assert_eq!((cut.cwnd, cut.rate), (Bytes::new(12_500), Rate::from_mbps(13_200)));
    }

    #[test]
    fn it_asks_for_phantom_queues() {
        let needs = HullConfig::default().needs();
        assert!(needs.network.ecn);
        assert_eq!(
            needs.network.red.map(|red| (red.kmin, red.queue)),
            Some((Bytes::new(1_000), MarkedQueue::Phantom(95)))
        );
    }
}
