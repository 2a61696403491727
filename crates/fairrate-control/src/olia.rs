//! `olia`: the Opportunistic Linked Increases Algorithm. R. Khalili, N. Gast, M. Popovic, J.-Y. Le Boudec, "MPTCP Is
//! Not Pareto-Optimal: Performance Issues and a Possible Solution", IEEE/ACM Transactions on Networking 21, 2013;
//! draft-khalili-mptcp-congestion-control-05; the authors' module of the Linux kernel.
//!
//! | paper     | here                        | unit    |
//! |-----------|-----------------------------|---------|
//! | w_r       | `cwnd`                      | bytes   |
//! | rtt_r     | `srtt`                      | seconds |
//! | ℓ_1r, ℓ_2r | `since_loss`, `between_losses` | bytes |
//! | ℓ_r       | `Distance::bytes`           | bytes   |
//! | α_r       | `epsilon`                   | 1       |
//! | B         | of the largest `quality`    |         |
//! | M         | of the most `segments`      |         |
//!
//! Readings: the best paths B are those of the largest ℓ/rtt², as in the authors' kernel module: TCP's rate on a path
//! is √(2ℓ)/rtt. Windows are compared in whole segments, as in the kernel; otherwise no two would ever be equal.
//! Growth is not accumulated to whole segments. The window does not fall below one segment (kernel). A second loss
//! without an acknowledgment in between changes no ℓ. Slow start, losses and first window are NewReno's.

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FlowContext};
use crate::coupled::{Alone, CoupledSpec};
use crate::needs::{Needs, NetworkNeeds};
use crate::port::NoPort;
use crate::subflow::{Link, Linked, Subflow, Subflows};

algorithm_config! {
    /// Parameters of OLIA.
    pub struct OliaConfig {
        /// First window of a subflow in segments (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
        /// Smallest window in segments after a loss that recovery repairs (RFC 5681 eq. 4).
        min_window: u32 = 2, in 1.0..=1_000_000.0;
        /// If true, switches mark, and the window halves on a mark (RFC 3168).
        ecn: bool = false;
    }
}

/// A connection under OLIA.
pub type OliaConnection = Linked<OliaLink>;
/// A flow under OLIA.
pub type Olia = Alone<OliaConnection>;

impl AlgorithmSpec for OliaConfig {
    type Controller = Olia;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        Needs { network: NetworkNeeds { ecn: self.ecn, ..NetworkNeeds::NOTHING }, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Olia {
        Alone(self.build_connection(std::slice::from_ref(flow)))
    }
}

impl CoupledSpec for OliaConfig {
    type Connection = OliaConnection;
    fn build_connection(&self, subflows: &[FlowContext]) -> OliaConnection {
        let link = OliaLink { distances: vec![Distance::default(); subflows.len()] };
        Linked::new(subflows, self.initial_window, self.min_window, link)
    }
}

/// OLIA's link between windows.
#[derive(Clone, Debug)]
pub struct OliaLink {
    distances: Vec<Distance>,
}

/// The bytes that a subflow delivers between losses.
#[derive(Clone, Copy, Debug, Default)]
struct Distance {
    since_loss: f64,
    between_losses: f64,
}

impl Distance {
    /// Returns ℓ_r = max(ℓ_1r, ℓ_2r).
    fn bytes(self) -> f64 {
        self.since_loss.max(self.between_losses)
    }
}

impl OliaLink {
    /// Returns ℓ_r/rtt_r²: half the square of TCP's rate on this path.
    fn quality(&self, r: usize, subflow: &Subflow) -> f64 {
        let rtt = subflow.srtt.secs();
        self.distances[r].bytes() / (rtt * rtt)
    }

    /// Returns the paper's α_r: positive for good paths with small windows, negative for the paths with the largest
    /// windows.
    fn epsilon(&self, subflows: &Subflows, r: usize) -> f64 {
        let best = subflows.coupled(r).map(|(i, s)| self.quality(i, s)).fold(0.0, f64::max);
        let widest = subflows.coupled(r).map(|(_, s)| s.segments()).max().unwrap_or(0);
        let is_widest = |s: &Subflow| s.segments() == widest;
        let deserves = |i: usize, s: &Subflow| !is_widest(s) && self.quality(i, s) == best;
        let n_deserve = subflows.coupled(r).filter(|&(i, s)| deserves(i, s)).count();
        let n_widest = subflows.coupled(r).filter(|(_, s)| is_widest(s)).count();
        let n = subflows.coupled(r).count();
        if n_deserve == 0 {
            0.0
        } else if is_widest(&subflows[r]) {
            -1.0 / (n * n_widest) as f64
        } else if deserves(r, &subflows[r]) {
            1.0 / (n * n_deserve) as f64
        } else {
            0.0
        }
    }
}

impl Link for OliaLink {
    /// Returns the increase of the paper's eq. 5, in bytes: Kelly and Voice's term, which makes the equilibrium
    /// optimal, and α_r/w_r, which makes it responsive.
    #[allow(private_interfaces)]
    fn increase(&self, subflows: &Subflows, r: usize, acked: f64) -> f64 {
        let (s, rate) = (&subflows[r], subflows.total_rate(r));
        let optimal = s.rate() / s.srtt.secs() / (rate * rate);
        s.mss * acked * (optimal + self.epsilon(subflows, r) / s.cwnd)
    }
    fn on_acked(&mut self, r: usize, acked: f64) {
        self.distances[r].since_loss += acked;
    }
    fn on_lost(&mut self, r: usize) {
        let distance = &mut self.distances[r];
        if 0.0 < distance.since_loss {
            *distance = Distance { since_loss: 0.0, between_losses: distance.since_loss };
        }
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Time;

    use super::*;
    use crate::controller::Ack;
    use crate::coupled::{CoupledController, PathState};
    use crate::subflow::tests::segment;
    use crate::test_flow::flow_25g;

    #[test]
    fn the_increase_by_hand() {
        let mut olia = OliaConfig::default().build_connection(&[flow_25g(), flow_25g()]);
        // 20 and 10 segments at 10 us, nothing lost and nothing acknowledged: both paths are best, and subflow 1 does
        // not have the largest window. Rates 2,000 and 1,000 bytes/us: 10^6 x 200/3,000^2 = 22.22 and 10^6 x
        // 100/3,000^2 = 11.11 bytes; and 1/2 of TCP's 50 is taken from subflow 0, 1/2 of TCP's 100 given to subflow 1.
        olia.put(0, 20_000.0, 10);
        olia.put(1, 10_000.0, 10);
        assert!((olia.growth(0) - (200.0 / 9.0 - 25.0)).abs() < 1e-9);
        assert!((olia.growth(1) - (100.0 / 9.0 + 50.0)).abs() < 1e-9);
        // Subflow 0 delivers more: it is best and has the largest window, and nothing is moved.
        olia.on_ack(0, &segment(1_000, 10, 10_000));
        olia.put(0, 20_000.0, 10);
        assert!((olia.growth(0) - 200.0 / 9.0).abs() < 1e-9 && (olia.growth(1) - 100.0 / 9.0).abs() < 1e-9);
        // At 30 us it is not best any more, since 1,000 / 30^2 is less than subflow 1's 500 / 10^2.
        olia.on_ack(1, &Ack { newly_acked: 500, ..segment(500, 10, 5_000) });
        olia.put(0, 20_000.0, 30);
        olia.put(1, 10_000.0, 10);
        assert!(olia.growth(0) < 0.0 && 50.0 < olia.growth(1));
        // With subflow 1 dead, subflow 0 grows as TCP.
        olia.on_path(1, Time::ZERO, PathState::Dead);
        assert!((olia.growth(0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn distances_between_losses_by_hand() {
        let mut link = OliaLink { distances: vec![Distance::default()] };
        link.on_acked(0, 7_000.0);
        assert_eq!(link.distances[0].bytes(), 7_000.0);
        link.on_lost(0);
        link.on_acked(0, 3_000.0);
        assert_eq!(link.distances[0].bytes(), 7_000.0);
        // Two losses at once count as one; then 3,000 and 4,000 are left of the three distances.
        link.on_lost(0);
        link.on_lost(0);
        link.on_acked(0, 4_000.0);
        assert_eq!((link.distances[0].between_losses, link.distances[0].bytes()), (3_000.0, 4_000.0));
    }
}
