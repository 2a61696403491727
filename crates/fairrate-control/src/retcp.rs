//! `retcp`: reTCP. M. K. Mukerjee, C. Canel, W. Wang, D. Kim, S. Seshan, A. C. Snoeren, "Adapting TCP for
//! Reconfigurable Datacenter Networks", NSDI 2020; the authors' kernel module, `retcp.c` of github.com/mukerjee/etalon.
//!
//! NewReno to which ToRs signal that a circuit is up: it multiplies its window when a circuit comes up, and divides it
//! when the circuit goes down. The ToRs prebuffer: some time before a circuit is up, they allow longer queues for it.
//!
//! | module          | here                | unit  |
//! |-----------------|---------------------|-------|
//! | `jump_up`       | `jump_up`           | 1     |
//! | `jump_down`     | `jump_down`         | 1     |
//! | `have_circuit`  | `Ack::ecn_marked`   | -     |
//! | `jumped`        | `jumped`            | -     |
//! | `in_advance`    | `prebuffer`         | time  |
//!
//! Readings: the mark of a data packet means that it has taken a circuit, and is no sign of congestion. As in the
//! module, the window jumps at the first acknowledgment for which congestion avoidance is called, after NewReno has
//! grown it; so not while a loss is being repaired. ssthresh does not change. VOQs of 16 packets of 9,000 bytes and,
//! enlarged, 50 are those of the authors' testbed, in bytes: 10 Gb/s and 80 Gb/s there. Without circuits no packet is
//! marked, and this is NewReno.

use fairrate_units::{Bytes, Time};

use crate::config::algorithm_config;
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext};
use crate::forward_controller;
use crate::needs::{CircuitHelp, FeedbackNeeds, Needs, NetworkNeeds};
use crate::newreno::{NewReno, NewRenoConfig};
use crate::port::NoPort;

algorithm_config! {
    /// Parameters of reTCP.
    pub struct RetcpConfig {
        /// Factor by which the window grows when a circuit comes (reTCP's module: 2).
        jump_up: f64 = 2.0, in 1.0..=100.0;
        /// Divisor of the window when the circuit goes (reTCP's module: 2).
        jump_down: f64 = 2.0, in 1.0..=100.0;
        /// Most bytes in a VOQ whose circuit is away (reTCP's testbed: 16 packets of 9,000 bytes).
        voq: Bytes = Bytes::new(144_000);
        /// Most bytes in it during the prebuffering and while the circuit is there (reTCP's testbed: 50 packets).
        enlarged_voq: Bytes = Bytes::new(450_000);
        /// Time before its circuit comes at which a VOQ is enlarged (PowerTCP section 5: 1800 us, which reTCP suggests,
        /// and 600 us, which a sweep has shown to be enough).
        prebuffer: Time = Time::from_us(1_800);
        /// First window in segments (RFC 6928).
        initial_window: u32 = 10, in 1.0..=1_000_000.0;
    }
}

impl AlgorithmSpec for RetcpConfig {
    type Controller = Retcp;
    type Port = NoPort;
    fn needs(&self) -> Needs {
        let circuits = CircuitHelp { voq: self.voq, enlarged: self.enlarged_voq, ahead: self.prebuffer };
        Needs {
            network: NetworkNeeds { circuits: Some(circuits), ..NetworkNeeds::NOTHING },
            feedback: FeedbackNeeds { prr: true, ..FeedbackNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Retcp {
        let reno = NewRenoConfig { initial_window: self.initial_window, ..NewRenoConfig::default() };
        Retcp { reno: reno.build(flow), jump_up: self.jump_up, jump_down: self.jump_down, jumped: false }
    }
}

/// A flow under reTCP.
#[derive(Clone, Debug)]
pub struct Retcp {
    reno: NewReno,
    jump_up: f64,
    jump_down: f64,
    /// Set when the window has been multiplied, and not divided since.
    jumped: bool,
}

impl Controller for Retcp {
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let grown = self.reno.on_ack(&Ack { ecn_marked: false, ..*ack });
        if ack.ecn_marked == self.jumped || self.reno.is_recovering() {
            return grown;
        }
        self.jumped = ack.ecn_marked;
        self.reno.scale(if self.jumped { self.jump_up } else { 1.0 / self.jump_down })
    }
    forward_controller!(self => { Self { reno, .. } => reno }, but on_ack);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Loss;
    use crate::test_flow::{acked, flow_25g};

    fn ack(ack_seq: u64, in_flight: u64, by_circuit: bool) -> Ack<'static> {
        Ack { newly_acked: 1_000, in_flight, ecn_marked: by_circuit, ..acked(ack_seq, 8_000, ack_seq + in_flight) }
    }

    /// From 10,000 bytes: slow start adds 1,000 with each acknowledgment, and then the window jumps.
    #[test]
    fn the_window_jumps_when_a_circuit_comes_and_when_it_goes() {
        let mut retcp = RetcpConfig::default().build(&flow_25g());
        let mut cwnd =
            |ack_seq, in_flight, by_circuit| retcp.on_ack(&ack(ack_seq, in_flight, by_circuit)).cwnd.as_u64();
        assert_eq!(cwnd(1_000, 9_000, false), 11_000);
        assert_eq!(cwnd(2_000, 10_000, true), 2 * 12_000);
        assert_eq!(cwnd(3_000, 23_000, true), 25_000, "a circuit that is still there is nothing new");
        assert_eq!(cwnd(4_000, 24_000, false), 26_000 / 2);
        assert_eq!(cwnd(5_000, 12_000, false), 14_000);
    }

    /// A gap with 10,000 in flight leaves 5,000 until byte 11,000 is acknowledged: then 5,000 + 1,000 x 1,000 / 5,000,
    /// twice.
    #[test]
    fn it_waits_until_a_loss_is_repaired() {
        let mut retcp = RetcpConfig::default().build(&flow_25g());
        retcp.on_ack(&ack(1_000, 10_000, false));
        assert_eq!(retcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(5_000));
        assert_eq!(retcp.on_ack(&ack(6_000, 5_000, true)).cwnd, Bytes::new(5_000));
        assert_eq!(retcp.on_ack(&ack(12_000, 5_000, true)).cwnd, Bytes::new(10_400));
        let help = RetcpConfig::default().needs().network.circuits.expect("it needs VOQs");
        assert_eq!(
            (help.voq, help.enlarged, help.ahead),
            (Bytes::new(144_000), Bytes::new(450_000), Time::from_us(1_800))
        );
    }
}
