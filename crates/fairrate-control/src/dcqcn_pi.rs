//! `dcqcn-pi`: DCQCN whose switches mark with a PI controller in place of RED. Y. Zhu, M. Ghobadi, V. Misra,
//! J. Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016, §5.
//!
//! | paper | here    | unit                     |
//! |-------|---------|--------------------------|
//! | p     | `pi`    | 1                        |
//! | q_ref | `q_ref` | bytes                    |
//! | a, b  | `a`, `b`| 1 / 1,000 bytes of queue |
//!
//! Sender and receiver are DCQCN's. Readings: the queue is that of the whole port with the arriving packet, as for RED,
//! and only data packets update p and are marked. The gains are those of the authors' fluid model at 40 Gb/s, with
//! packets of 1,000 bytes and one update per packet; the default is the authors' set for the shorter delay, with which
//! the queue oscillates less. It does oscillate with ten flows, in the fluid model too: see the page of the algorithm.
//! The model stores p without bounds; here p stays within [0, 1]. The ns-3 artifact has no PI marking: there the
//! defaults differ only in DCQCN's own.

use fairrate_units::Bytes;

use crate::config::algorithm_config;
use crate::controller::{AlgorithmSpec, FlowContext, MadeFor};
use crate::dcqcn::DcqcnConfig;
use crate::needs::{Needs, NetworkNeeds};
use crate::pi_marker::PiMarker;
use crate::port::{Actions, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortStep, PortView};

/// A flow under DCQCN+PI: it sees marks and CNPs as under DCQCN.
pub use crate::dcqcn::Dcqcn as DcqcnPi;

algorithm_config! {
    /// Parameters of DCQCN+PI.
    pub struct DcqcnPiConfig {
        /// Queue that the ports hold (ECN or Delay §5: 200 KB).
        q_ref: Bytes = Bytes::new(200_000), tune = Log("20KB", "2MB");
        /// Gain on the queue, per packet and 1,000 bytes of queue; above `b` (authors' model: 1.0001 b).
        a: f64 = 1.000_1 * 1.816e-5, in 0.0..=1.0;
        /// Gain on the queue at the packet before (authors' model: 1.816e-5 for 4 us until feedback, 5.816e-6 for
        /// 85 us).
        b: f64 = 1.816e-5, in 0.0..=1.0;
        include /** DCQCN's, whose sender and receiver these are. */ dcqcn: DcqcnConfig;
    }
}

impl AlgorithmSpec for DcqcnPiConfig {
    type Controller = DcqcnPi;
    type Port = DcqcnPiPort;
    fn needs(&self) -> Needs {
        let dcqcn = self.dcqcn.needs();
        Needs { network: NetworkNeeds { ecn: false, ports: PortScope::Switches, ..dcqcn.network }, ..dcqcn }
    }
    fn made_for(&self) -> &'static [MadeFor] {
        self.dcqcn.made_for()
    }
    fn build(&self, flow: &FlowContext) -> DcqcnPi {
        self.dcqcn.build(flow)
    }
    fn build_port(&self, port: &PortContext) -> Option<DcqcnPiPort> {
        Some(DcqcnPiPort { pi: PiMarker::new(self.a, self.b, self.q_ref.as_f64(), port) })
    }
}

/// An egress port that marks.
#[derive(Clone, Debug)]
pub struct DcqcnPiPort {
    pi: PiMarker,
}

impl PortAgent for DcqcnPiPort {
    fn watches(&self, kind: PortPacketKind, step: PortStep) -> bool {
        (kind, step) == (PortPacketKind::Data, PortStep::Enqueue)
    }

    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        if packet.kind == PortPacketKind::Data {
            packet.mark |= self.pi.selects(Bytes::new(view.queue_bytes + u64::from(packet.wire)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;
    use crate::test_flow::{data_packet, port_40g};
    use fairrate_units::Time;

    fn marks(port: &mut DcqcnPiPort, queue_bytes: u64, packet: &mut PortPacket<'_>) -> bool {
        let mut actions = Actions::default();
        port.on_enqueue(&PortView { now: Time::ZERO, queue_bytes }, packet, &mut actions);
        assert!(actions.notices.is_empty());
        packet.mark
    }

    #[test]
    fn the_port_marks_and_the_receiver_notifies() {
        let config = DcqcnPiConfig::default();
        let needs = config.needs();
        assert_eq!(
            (needs.network.ecn, needs.network.ports, needs.feedback.cnp_interval),
            (false, PortScope::Switches, Some(Time::from_us(50)))
        );
        // The artifact's DCQCN reads the marks that acknowledgments echo.
        assert_eq!(DcqcnPiConfig::new(Profile::Ns3).needs().feedback.cnp_interval, None);
    }

    #[test]
    fn the_arriving_packet_counts() {
        // a = b = 1/2,000 and 1,999 packets wait: with the arriving packet they are 2,000 and p = 1. Without it p would
        // be less.
        let config = DcqcnPiConfig { a: 0.000_5, b: 0.000_5, ..DcqcnPiConfig::default() };
        let mut port = config.build_port(&port_40g()).unwrap();
        assert!((0..1_000).all(|_| marks(&mut port, 1_999_000, &mut data_packet(1, 1_000))));
        assert!((0..1_000).any(|_| !marks(&mut port, 1_899_000, &mut data_packet(1, 1_000))));
    }

    #[test]
    fn only_data_moves_p() {
        // A pure integrator around a queue of one packet: each further packet adds 1.
        let config = DcqcnPiConfig { a: 1.0, b: 0.0, q_ref: Bytes::new(1_000), ..DcqcnPiConfig::default() };
        let mut port = config.build_port(&port_40g()).unwrap();
        for kind in [PortPacketKind::Control, PortPacketKind::Other] {
            assert!(!marks(&mut port, 9_000, &mut PortPacket { kind, ..data_packet(1, 1_000) }));
        }
        assert!(!marks(&mut port, 0, &mut data_packet(1, 1_000)));
        assert!(marks(&mut port, 0, &mut PortPacket { mark: true, ..data_packet(1, 1_000) }), "a mark stays");
        assert!(marks(&mut port, 1_000, &mut data_packet(1, 1_000)));
    }
}
