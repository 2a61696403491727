//! `pacc`: a reconstruction of PACC. X. Zhong, J. Zhang, Y. Zhang, Z. Guan, Z. Wan, "PACC: Proactive and Accurate
//! Congestion Feedback for RDMA Congestion Control", INFOCOM 2022.
//!
//! Neither code nor a list of parameters is public. The RoCC paper (which compares with PACC) states only
//! that the sender is DCQCN's, and that switches decide with a PI controller and notify sources themselves. The rest
//! is chosen here:
//!
//! | here           | unit                     | choice                                               |
//! |----------------|--------------------------|------------------------------------------------------|
//! | `a`, `b`       | 1 / 1,000 bytes of queue | DCQCN+PI's controller, larger gains                  |
//! | `q_ref`        | bytes                    | the queue that RoCC holds at a port of this rate     |
//! | `cnp_interval` | time                     | DCQCN's spacing of CNPs, for each port and flow      |
//!
//! A data packet that the controller selects makes its port send a notice to the packet's source, unless the port has
//! sent this flow a notice within `cnp_interval`. The sender handles a notice as a CNP. Receivers send no CNPs, and no
//! packet is marked.

use std::collections::VecDeque;

use fairrate_units::{Bytes, Rate, Time};

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FlowContext, MadeFor};
use crate::dcqcn::DcqcnConfig;
use crate::needs::{FeedbackNeeds, Needs, NetworkNeeds};
use crate::pi_marker::PiMarker;
use crate::port::{
    Actions, NOTICE_VALUES, Notice, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortStep, PortView,
};

/// A flow under PACC: it handles a notice as DCQCN handles a CNP.
pub use crate::dcqcn::Dcqcn as Pacc;

algorithm_config! {
    /// Parameters of the reconstruction of PACC.
    pub struct PaccConfig {
        /// Queue that a port holds, without the part that grows with its rate (RoCC holds 75 KB at 10 Gb/s, 150 KB at
        /// 40 and 300 KB at 100: a line).
        q_ref_base: Bytes = Bytes::new(50_000);
        /// Growth of that queue with each Gb/s of a port's rate, in bytes (the same line).
        q_ref_bytes_per_gbps: f64 = 2_500.0, in 0.0..=1_000_000.0;
        /// Gain on the queue, per packet and 1,000 bytes of queue; above `b` (chosen here: 1.0001 b, as in `dcqcn-pi`).
        a: f64 = 1.000_1 * 1e-4, in 0.0..=1.0;
        /// Gain on the queue at the packet before (chosen here: with that of `dcqcn-pi` the queue of ten flows swings
        /// between 0 and three times the reference).
        b: f64 = 1e-4, in 0.0..=1.0;
        include /** DCQCN's, whose sender this is; `cnp_interval` spaces notices and `notification` has no effect. */
            dcqcn: DcqcnConfig;
    }
}

impl PaccConfig {
    /// Returns the reference queue of a port of `rate`, in bytes.
    fn q_ref(&self, rate: Rate) -> f64 {
        self.q_ref_base.as_f64() + self.q_ref_bytes_per_gbps * rate.as_gbps_f64()
    }
}

impl AlgorithmSpec for PaccConfig {
    type Controller = Pacc;
    type Port = PaccPort;
    fn needs(&self) -> Needs {
        let dcqcn = self.dcqcn.needs();
        Needs {
            network: NetworkNeeds { ecn: false, ports: PortScope::Switches, ..dcqcn.network },
            feedback: FeedbackNeeds { cnp_interval: None, ..dcqcn.feedback },
            ..dcqcn
        }
    }
    fn made_for(&self) -> &'static [MadeFor] {
        self.dcqcn.made_for()
    }
    fn build(&self, flow: &FlowContext) -> Pacc {
        self.dcqcn.build(flow)
    }
    fn build_port(&self, port: &PortContext) -> Option<PaccPort> {
        Some(PaccPort {
            port: port.port,
            pi: PiMarker::new(self.a, self.b, self.q_ref(port.rate), port),
            spacing: self.dcqcn.cnp_interval,
            notified: VecDeque::new(),
        })
    }
}

/// An egress port that notifies sources.
#[derive(Clone, Debug)]
pub struct PaccPort {
    port: u32,
    pi: PiMarker,
    spacing: Time,
    /// Time and flow of the last notices, the oldest first; `may_notify` removes those older than `spacing`.
    notified: VecDeque<(Time, u32)>,
}

impl PaccPort {
    /// Returns `true` if `flow` has had no notice for `spacing`, and then records a notice at `now`.
    fn may_notify(&mut self, flow: u32, now: Time) -> bool {
        while self.notified.front().is_some_and(|&(at, _)| at.saturating_add(self.spacing) <= now) {
            self.notified.pop_front();
        }
        if self.notified.iter().any(|&(_, f)| f == flow) {
            return false;
        }
        self.notified.push_back((now, flow));
        true
    }
}

impl PortAgent for PaccPort {
    fn watches(&self, kind: PortPacketKind, step: PortStep) -> bool {
        (kind, step) == (PortPacketKind::Data, PortStep::Enqueue)
    }

    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, actions: &mut Actions) {
        if packet.kind != PortPacketKind::Data {
            return;
        }
        let selected = self.pi.selects(Bytes::new(view.queue_bytes + u64::from(packet.wire)));
        if selected && self.may_notify(packet.flow, view.now) {
            actions.notices.push(Notice { flow: packet.flow, port: self.port, values: [0.0; NOTICE_VALUES] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::test_flow::{data_packet, flow_25g, port_40g};

    #[test]
    fn the_reference_queue_is_roccs() {
        let q_ref = |gbps| PaccConfig::default().q_ref(Rate::from_gbps(gbps));
        // 50 KB + 2.5 KB x 10, 40 and 100.
        assert_eq!([10, 40, 100].map(q_ref), [75_000.0, 150_000.0, 300_000.0]);
    }

    #[test]
    fn nothing_is_marked_and_receivers_are_silent() {
        let needs = PaccConfig::default().needs();
        assert_eq!(
            (needs.network.ecn, needs.network.ports, needs.feedback.cnp_interval),
            (false, PortScope::Switches, None)
        );
    }

    /// Returns the flows that get a notice when packets of the given flows arrive at the given times and p is 1.
    fn notified(arrivals: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let config = PaccConfig { a: 1.0, b: 1.0, ..PaccConfig::default() };
        let mut port = config.build_port(&port_40g()).unwrap();
        let mut actions = Actions::default();
        let mut sent = Vec::new();
        for &(flow, at_ns) in arrivals {
            let mut packet = data_packet(flow, 1_000);
            port.on_enqueue(&PortView { now: Time::from_ns(at_ns), queue_bytes: 9_000 }, &mut packet, &mut actions);
            assert!(!packet.mark);
            assert!(actions.notices.iter().all(|n| (n.flow, n.port) == (flow, 7)));
            sent.extend(actions.notices.drain(..).map(|n| (n.flow, at_ns)));
        }
        sent
    }

    #[test]
    fn a_flow_has_a_notice_in_50_us_and_flows_do_not_share_them() {
        let sent =
            notified(&[(1, 0), (1, 10), (2, 20), (1, 49_999), (1, 50_000), (2, 50_000), (2, 50_020), (1, 99_999)]);
        assert_eq!(sent, [(1, 0), (2, 20), (1, 50_000), (2, 50_020)]);
    }

    #[test]
    fn a_notice_is_a_cnp_to_the_sender() {
        let config = PaccConfig::default();
        let (mut noticed, mut notified) = (config.build(&flow_25g()), config.build(&flow_25g()));
        let notice = Notice { flow: 1, port: 7, values: [0.0; NOTICE_VALUES] };
        let a = noticed.on_notice(Time::from_us(3), &notice).unwrap();
        assert_eq!(a, notified.on_cnp(Time::from_us(3)));
        // Alpha is 1: half the line rate.
        assert_eq!(a.rate, Rate::from_mbps(12_500));
    }
}
