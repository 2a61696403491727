//! `balia`: the Balanced Linked Adaptation algorithm. Q. Peng, A. Walid, J. Hwang, S. Low, "Multipath TCP: Analysis,
//! Design, and Implementation", IEEE/ACM Transactions on Networking 24, 2016; draft-walid-mptcp-congestion-control-04.
//!
//! | paper | here      | unit             |
//! |-------|-----------|------------------|
//! | w_r   | `cwnd`    | bytes            |
//! | τ_r   | `srtt`    | seconds          |
//! | x_r   | `rate()`  | bytes per second |
//! | α_r   | `alpha`   | 1                |
//!
//! Readings: both equations are evaluated at every acknowledgment and loss. The reduction on a loss is a fraction of
//! the bytes in flight (RFC 5681), not of the window. The smallest window after a loss is one segment, as in the
//! authors' module of the Linux kernel. Slow start and first window are NewReno's.

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::coupled::{Alone, CoupledSpec};
use crate::needs::{Needs, NetworkNeeds};
use crate::port::NoPort;
use crate::subflow::{Link, Linked, Subflow, Subflows};

algorithm_config! {
    /// Parameters of BALIA.
    pub struct BaliaConfig {
        /// First window of a subflow in segments (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
        /// Smallest window in segments after a loss that recovery repairs (kernel module).
        min_window: u32 = 1, in 1.0..=1_000_000.0;
        /// If true, switches mark, and the window falls on a mark as on a loss (RFC 3168).
        ecn: bool = false;
    }
}

/// A connection under BALIA.
pub type BaliaConnection = Linked<BaliaLink>;
/// A flow under BALIA.
pub type Balia = Alone<BaliaConnection>;

impl AlgorithmSpec for BaliaConfig {
    type Controller = Balia;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs { network: NetworkNeeds { ecn: self.ecn, ..NetworkNeeds::NOTHING }, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Balia {
        Alone(self.build_connection(std::slice::from_ref(flow)))
    }
}

impl CoupledSpec for BaliaConfig {
    type Connection = BaliaConnection;
    fn build_connection(&self, subflows: &[FlowContext]) -> BaliaConnection {
        Linked::new(subflows, self.initial_window, self.min_window, BaliaLink)
    }
}

/// BALIA's link between windows.
#[derive(Clone, Copy, Debug)]
pub struct BaliaLink;

/// Returns α_r = max x_k / x_r: the rate of the fastest path relative to this path.
fn alpha(subflows: &Subflows, r: usize) -> f64 {
    let rate = subflows[r].rate();
    if rate == 0.0 { 1.0 } else { subflows.largest(r, Subflow::rate) / rate }
}

impl Link for BaliaLink {
    /// Returns the increase: x_r / (τ_r (Σ x_k)²) · (1 + α_r)/2 · (4 + α_r)/5 for a segment.
    #[allow(private_interfaces)]
    fn increase(&self, subflows: &Subflows, r: usize, acked: f64) -> f64 {
        let (s, rate, alpha) = (&subflows[r], subflows.total_rate(r), alpha(subflows, r));
        let optimal = s.rate() / s.srtt.secs() / (rate * rate);
        s.mss * acked * optimal * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
    }
    /// Returns the factor after a loss, at which the reduction is w_r/2 · min(α_r, 3/2).
    #[allow(private_interfaces)]
    fn left(&self, subflows: &Subflows, r: usize) -> f64 {
        1.0 - alpha(subflows, r).min(1.5) / 2.0
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

    fn connection() -> BaliaConnection {
        BaliaConfig::default().build_connection(&[flow_25g(), flow_25g()])
    }

    #[test]
    fn the_increase_by_hand() {
        let mut balia = connection();
        // 20 and 10 segments at 10 us: rates 2,000 and 1,000 bytes/us. Subflow 0 has alpha 1 and adds
        // 10^6 x 200/3,000^2 = 22.2 bytes; subflow 1 has alpha 2 and adds 10^6 x 100/3,000^2 x 3/2 x 6/5 = 20 bytes.
        balia.put(0, 20_000.0, 10);
        balia.put(1, 10_000.0, 10);
        assert!((balia.growth(0) - 200.0 / 9.0).abs() < 1e-9 && (balia.growth(1) - 20.0).abs() < 1e-9);
        // 10 segments at 10 us and 20 at 40 us: rates 1,000 and 500, and again alpha = 1 and 2.
        // 10^6 x 100/1,500^2 = 44.4, 10^6 x 12.5/1,500^2 x 9/5 = 10.
        balia.put(0, 10_000.0, 10);
        balia.put(1, 20_000.0, 40);
        assert!((balia.growth(0) - 400.0 / 9.0).abs() < 1e-9 && (balia.growth(1) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_slow_path_falls_deeper() {
        let mut balia = connection();
        // Rates 2,000 and 1,000: alpha = 1 leaves half of 19,000 in flight, alpha = 2 counts as 3/2 and leaves a
        // quarter of 8,000.
        balia.put(0, 20_000.0, 10);
        balia.put(1, 10_000.0, 10);
        balia.on_ack(0, &segment(1_000, 10, 19_000));
        balia.on_ack(1, &segment(1_000, 10, 8_000));
        balia.put(0, 20_000.0, 10);
        balia.put(1, 10_000.0, 10);
        balia.on_loss(1, Time::ZERO, Loss::Gap);
        assert_eq!(balia.cwnd(1), 2_000.0);
        balia.on_loss(0, Time::ZERO, Loss::Gap);
        assert_eq!(balia.cwnd(0), 9_500.0);
        // Without the other subflow, TCP's.
        balia.put(0, 4_000.0, 10);
        balia.put(1, 10_000.0, 10);
        balia.on_path(1, Time::ZERO, PathState::Dead);
        assert!((balia.growth(0) - 250.0).abs() < 1e-9);
        // The data in flight at the first loss is acknowledged; otherwise a second loss would not count.
        balia.on_ack(0, &segment(20_000, 10, 19_000));
        balia.on_loss(0, Time::ZERO, Loss::Gap);
        assert_eq!(balia.cwnd(0), 9_500.0);
    }
}
