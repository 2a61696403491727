//! `lia`: the Linked Increases Algorithm. C. Raiciu, M. Handley, D. Wischik, "Coupled Congestion Control for Multipath
//! Transport Protocols", RFC 6356.
//!
//! | RFC 6356    | here       | unit    |
//! |-------------|------------|---------|
//! | cwnd_i      | `cwnd`     | bytes   |
//! | cwnd_total  | `total`    | bytes   |
//! | rtt_i       | `srtt`     | seconds |
//! | alpha       | `alpha`    | 1       |
//! | bytes_acked | `acked`    | bytes   |
//! | MSS_i       | `mss`      | bytes   |
//!
//! Readings: alpha is computed for every acknowledgment, which section 4.1 allows and approximates. A subflow
//! counts from its first round-trip time on and while its path works. Slow start, losses and first window are
//! NewReno's, as in sections 3 and 5.

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::coupled::{Alone, CoupledSpec};
use crate::needs::{Needs, NetworkNeeds};
use crate::port::NoPort;
use crate::subflow::{Link, Linked, Subflows};

algorithm_config! {
    /// Parameters of LIA.
    pub struct LiaConfig {
        /// First window of a subflow in segments (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
        /// Smallest window in segments after a loss that recovery repairs (RFC 5681 eq. 4).
        min_window: u32 = 2, in 1.0..=1_000_000.0;
        /// If true, switches mark, and the window halves on a mark (RFC 3168).
        ecn: bool = false;
    }
}

/// A connection under LIA.
pub type LiaConnection = Linked<LiaLink>;
/// A flow under LIA.
pub type Lia = Alone<LiaConnection>;

impl AlgorithmSpec for LiaConfig {
    type Controller = Lia;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs { network: NetworkNeeds { ecn: self.ecn, ..NetworkNeeds::NOTHING }, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Lia {
        Alone(self.build_connection(std::slice::from_ref(flow)))
    }
}

impl CoupledSpec for LiaConfig {
    type Connection = LiaConnection;
    fn build_connection(&self, subflows: &[FlowContext]) -> LiaConnection {
        Linked::new(subflows, self.initial_window, self.min_window, LiaLink)
    }
}

/// LIA's link between windows.
#[derive(Clone, Copy, Debug)]
pub struct LiaLink;

/// Returns alpha, RFC 6356 eq. 2: the aggressiveness at which the connection gets the rate of a TCP flow on its best
/// path.
fn alpha(subflows: &Subflows, r: usize, total: f64) -> f64 {
    let rate = subflows.total_rate(r);
    total * subflows.largest(r, |s| s.rate() / s.srtt.secs()) / (rate * rate)
}

impl Link for LiaLink {
    /// Returns the increase of RFC 6356 eq. 1, never more than that of TCP on this path alone.
    #[allow(private_interfaces)]
    fn increase(&self, subflows: &Subflows, r: usize, acked: f64) -> f64 {
        let total: f64 = subflows.coupled(r).map(|(_, s)| s.cwnd).sum();
        let linked = alpha(subflows, r, total) * acked * subflows[r].mss / total;
        linked.min(subflows[r].reno(acked))
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Time;

    use super::*;
    use crate::controller::Loss;
    use crate::coupled::{CoupledController, PathState};
    use crate::subflow::tests::segment;
    use crate::test_flow::flow_25g;

    fn connection() -> LiaConnection {
        LiaConfig::default().build_connection(&[flow_25g(), flow_25g()])
    }

    #[test]
    fn the_increase_by_hand() {
        let mut lia = connection();
        // Windows of 20 and 10 segments of 1,000 bytes at the same 10 us: alpha = 30 x 20 / 30^2 = 2/3, so a segment
        // adds 2/3 x 1,000 x 1,000 / 30,000 = 22.2 bytes on either.
        lia.put(0, 20_000.0, 10);
        lia.put(1, 10_000.0, 10);
        assert!((lia.growth(0) - 200.0 / 9.0).abs() < 1e-9 && (lia.growth(1) - 200.0 / 9.0).abs() < 1e-9);
        // At 10 and 20 us: rates 2,000 and 500 in bytes/us, max w/rtt^2 = 200: alpha = 30,000 x 200 / 2,500^2 = 0.96,
        // and 32 bytes on either.
        lia.put(0, 20_000.0, 10);
        lia.put(1, 10_000.0, 20);
        assert!((lia.growth(0) - 32.0).abs() < 1e-9 && (lia.growth(1) - 32.0).abs() < 1e-9);
        // At 10 and 40 us with equal windows: rates 1,000 and 250, alpha = 20,000 x 100 / 1,250^2 = 1.28: 64 bytes. TCP
        // alone would add 100.
        lia.put(0, 10_000.0, 10);
        lia.put(1, 10_000.0, 40);
        assert!((lia.growth(0) - 64.0).abs() < 1e-9);
        // A small window on a short path: 2 segments at 10 us and 98 at 100 us. Rates 200 and 980, max w/rtt^2 = 20:
        // alpha = 100,000 x 20 / 1,180^2 = 1.436; 14.36 bytes on both, although the long path alone would add
        // 1,000,000 / 98,000 = 10.2, which is its limit.
        lia.put(0, 2_000.0, 10);
        lia.put(1, 98_000.0, 100);
        assert!((lia.growth(0) - 2e7 / 1_180.0 / 1_180.0).abs() < 1e-9);
        assert!((lia.growth(1) - 1_000.0 / 98.0).abs() < 1e-9);
    }

    #[test]
    fn acknowledgments_losses_and_a_dead_path_by_hand() {
        let mut lia = connection();
        lia.put(0, 20_000.0, 10);
        lia.put(1, 10_000.0, 10);
        lia.on_ack(0, &segment(1_000, 10, 19_000));
        assert!((lia.cwnd(0) - 20_022.222).abs() < 1e-3 && lia.cwnd(1) == 10_000.0);
        // Subflow 1 loses with 9,000 in flight: 4,500; subflow 0 keeps its window.
        lia.on_ack(1, &segment(1_000, 10, 9_000));
        lia.on_loss(1, Time::ZERO, Loss::Gap);
        assert_eq!((lia.cwnd(1), lia.cwnd(0) > 20_000.0), (4_500.0, true));
        // Without subflow 1, subflow 0 grows as TCP.
        lia.put(0, 20_000.0, 10);
        lia.on_path(1, Time::ZERO, PathState::Dead);
        assert!((lia.growth(0) - 50.0).abs() < 1e-9);
        lia.on_path(1, Time::ZERO, PathState::Alive);
        assert!(lia.growth(0) < 50.0);
    }
}
