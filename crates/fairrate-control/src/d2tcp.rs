//! `d2tcp`: D2TCP. B. Vamanan, J. Hasan, T. N. Vijaykumar, "Deadline-Aware Datacenter TCP (D2TCP)", SIGCOMM 2012, §3.
//! DCTCP that cuts its window by a power of alpha; the exponent follows from the flow's deadline.
//!
//! | paper | here               | unit                         |
//! |-------|--------------------|------------------------------|
//! | W     | DCTCP's window     | bytes                        |
//! | α     | DCTCP's `alpha`    | 1                            |
//! | p     | `penalty`          | 1                            |
//! | d     | `urgency`          | 1                            |
//! | B     | `left`             | bytes                        |
//! | Tc    | `needed`           | s; B / (3/4 W) round trips   |
//! | D     | `remaining`        | s                            |
//!
//! Readings: d is computed when a mark cuts, with the round-trip time of the acknowledgment that carries it and with
//! all bytes that are not acknowledged. After the deadline d is its smallest value, so that flows which can still meet
//! their deadlines go first, as in a public ns-3 implementation. Gaps and timeouts are DCTCP's: they halve, whatever
//! the deadline. In a connection of several subflows, each subflow uses the size of the whole connection as its own.
//! Everything else is DCTCP's, and so is the ns-3 form: the artifact has no D2TCP.

use fairrate_units::{Bytes, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext};
use crate::dctcp::{Dctcp, DctcpConfig};
use crate::forward_controller;
use crate::needs::Needs;
use crate::port::NoPort;

algorithm_config! {
    /// Parameters of D2TCP.
    pub struct D2tcpConfig {
        /// Smallest exponent, of flows whose deadline is far (paper section 3: 0.5).
        d_min: f64 = 0.5, in 0.01..=1.0, tune = Linear(0.1, 1.0);
        /// Largest exponent, of flows whose deadline is near (paper section 3: 2).
        d_max: f64 = 2.0, in 1.0..=100.0, tune = Linear(1.0, 4.0);
        /// Exponent once the deadline has passed (public ns-3 code: 0.5).
        d_late: f64 = 0.5, in 0.01..=100.0, tune = Linear(0.1, 2.0);
        include /** DCTCP's, which this is for flows without a deadline. */ dctcp: DctcpConfig;
    }
}

impl AlgorithmSpec for D2tcpConfig {
    type Controller = D2tcp;
    type Port = NoPort;
    fn over_tcp(self) -> Self {
        Self { dctcp: self.dctcp.over_tcp(), ..self }
    }
    fn needs(&self) -> Needs {
        self.dctcp.needs()
    }
    fn build(&self, flow: &FlowContext) -> D2tcp {
        let is_finite = flow.size < Bytes::MAX;
        let due = flow.deadline.filter(|_| is_finite).map(|deadline| flow.start.saturating_add(deadline));
        let deadline = due.map(|due| Deadline {
            due,
            size: flow.size.as_u64(),
            d_min: self.d_min,
            d_max: self.d_max,
            d_late: self.d_late,
        });
        D2tcp { dctcp: self.dctcp.build(flow), deadline }
    }
}

/// A flow under D2TCP.
#[derive(Clone, Debug)]
pub struct D2tcp {
    dctcp: Dctcp,
    deadline: Option<Deadline>,
}

/// A flow's deadline, and the bounds of the exponent.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    due: Time,
    size: u64,
    d_min: f64,
    d_max: f64,
    d_late: f64,
}

impl Deadline {
    /// Returns d = Tc / D, within bounds, for a window of `window` bytes. DCTCP's sawtooth is on average at 3/4 of its
    /// peak.
    fn urgency(&self, ack: &Ack<'_>, window: f64) -> f64 {
        let remaining = self.due.saturating_sub(ack.now).as_secs_f64();
        if remaining == 0.0 {
            return self.d_late;
        }
        let left = self.size.saturating_sub(ack.ack_seq) as f64;
        let needed = left / (0.75 * window.max(1.0)) * ack.rtt.as_secs_f64();
        (needed / remaining).max(self.d_min).min(self.d_max)
    }
}

/// Returns p = α^d; a marked window is cut by half of it (W ← W (1 - p/2)).
fn penalty(alpha: f64, urgency: f64) -> f64 {
    libm::pow(alpha, urgency)
}

impl Controller for D2tcp {
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let Some(deadline) = self.deadline else { return self.dctcp.on_ack(ack) };
        let window = self.dctcp.allowance().cwnd.as_f64();
        self.dctcp.on_ack_with(ack, |alpha| penalty(alpha, deadline.urgency(ack, window)))
    }
    forward_controller!(self => { Self { dctcp, .. } => dctcp }, but on_ack);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;
    use crate::controller::Loss;
    use crate::test_flow::{acked, flow_25g};

    /// Returns a configuration in which alpha stays 0.25: the share of marks has no weight.
    fn config() -> D2tcpConfig {
        let dctcp = DctcpConfig { initial_alpha: 0.25, g: 0.0, ..DctcpConfig::default() };
        D2tcpConfig { dctcp, ..D2tcpConfig::default() }
    }

    /// Returns a flow of 1 MB with a window of 25,000 bytes that starts at 1 ms.
    fn flow(deadline: Option<Time>) -> FlowContext {
        FlowContext { start: Time::from_ms(1), size: Bytes::new(1_000_000), deadline, ..flow_25g() }
    }

    /// Returns the window after a mark at `at_us` after the start, for a flow with `deadline` that has sent 250,000
    /// bytes.
    fn cut(deadline: Option<Time>, at_us: u64) -> u64 {
        let mut d2tcp = config().build(&flow(deadline));
        let now = Time::from_ms(1) + Time::from_us(at_us);
        d2tcp.on_ack(&Ack { now, ecn_marked: true, ..acked(250_000, 10_000, 275_000) }).cwnd.as_u64()
    }

    #[test]
    fn deadlines_choose_the_exponent() {
        // Tc: 750,000 bytes at 3/4 of 25,000 a round trip are 40 round trips of 10 us: 400 us.
        let us = |us| Some(Time::from_us(us));
        // 400 us left: d = 1, and the cut is DCTCP's, 25,000 (1 - 0.25 / 2).
        assert_eq!(cut(us(500), 100), 21_875);
        assert_eq!(cut(None, 100), 21_875);
        // 800 us left: d = 0.5, p = 0.5, 25,000 x 0.75; and no less than that with more time.
        assert_eq!((cut(us(900), 100), cut(us(9_000), 100)), (18_750, 18_750));
        // 200 us left: d = 2, p = 1/16, 25,000 x 31/32 = 24,218.75; and no more than that with less time.
        assert_eq!((cut(us(300), 100), cut(us(101), 100)), (24_218, 24_218));
        // 266.67 us left: d = 1.5, p = 1/8, 25,000 x 15/16 = 23,437.5.
        assert_eq!(cut(Some(Time::from_ps(366_666_667)), 100), 23_437);
        // At the deadline and after it: 0.5 again.
        assert_eq!((cut(us(100), 100), cut(us(100), 5_000)), (18_750, 18_750));
    }

    #[test]
    fn full_congestion_halves_and_none_cuts_nothing_whatever_the_deadline() {
        for deadline in [Time::from_us(1), Time::from_us(400), Time::from_ms(90)] {
            for (alpha, cwnd) in [(1.0, 12_500), (0.0, 25_000)] {
                let mut config = config();
                config.dctcp.initial_alpha = alpha;
                let mut d2tcp = config.build(&flow(Some(deadline)));
                let ack = Ack { now: Time::from_ms(1), ecn_marked: true, ..acked(250_000, 10_000, 275_000) };
                assert_eq!(d2tcp.on_ack(&ack).cwnd, Bytes::new(cwnd), "alpha {alpha}, deadline {deadline}");
            }
        }
    }

    /// Windows grow by a packet per round trip under a near deadline too.
    #[test]
    fn between_cuts_it_is_dctcp() {
        let (mut d2tcp, mut dctcp) =
            (config().build(&flow(Some(Time::from_us(20)))), config().dctcp.build(&flow(None)));
        let starts = (d2tcp.on_start(Time::from_ms(1)), dctcp.on_start(Time::from_ms(1)));
        assert_eq!(starts.0, starts.1);
        for i in 1..40 {
            let ack = Ack { newly_acked: 1_000, ..acked(i * 1_000, 8_000, i * 1_000 + 30_000) };
            assert_eq!(d2tcp.on_ack(&ack), dctcp.on_ack(&ack));
        }
        let lost = (d2tcp.on_loss(Time::from_ms(1), Loss::Gap), dctcp.on_loss(Time::from_ms(1), Loss::Gap));
        assert_eq!(lost.0, lost.1);
    }

    /// The artifact's rate form cuts by the same power: a rate of 25 Gb/s with alpha 1/4, and 20 round trips of time
    /// left of the 40 that it needs.
    #[test]
    fn rates_are_cut_by_the_same_power() {
        let dctcp = DctcpConfig { initial_alpha: 0.25, g: 0.0, ..DctcpConfig::new(Profile::Ns3) };
        let config = D2tcpConfig { dctcp, ..D2tcpConfig::default() };
        let mut d2tcp = config.build(&flow(Some(Time::from_us(200))));
        let ack = Ack { now: Time::from_ms(1), ecn_marked: true, ..acked(250_000, 10_000, 275_000) };
        // d = 2, p = 1/16: 25 x 31/32.
        assert_eq!(d2tcp.on_ack(&ack).rate.as_bps(), 24_218_750_000);
    }
}
