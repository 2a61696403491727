//! Flows, acknowledgments, ports and packets for the algorithms' unit tests.

use fairrate_units::{Bytes, Rate, Time};

use crate::controller::{Ack, FlowContext};
use crate::port::{PortContext, PortPacket, PortPacketKind};

/// Returns a flow on the validation star: 25 Gb/s, base RTT 8 us, so a bandwidth-delay product of 25,000 bytes.
pub(crate) fn flow_25g() -> FlowContext {
    FlowContext { wire_mtu: Bytes::new(1_056), ..FlowContext::on(Rate::from_gbps(25), Time::from_us(8)) }
}

/// Returns an unmarked acknowledgment of all bytes before `ack_seq`, 16,000 of them new.
pub(crate) fn acked(ack_seq: u64, rtt_ns: u64, snd_nxt: u64) -> Ack<'static> {
    Ack {
        now: Time::from_ms(1),
        ack_seq,
        snd_nxt,
        newly_acked: 16_000,
        delivered: 16_000,
        lost: 0,
        rtt: Time::from_ns(rtt_ns),
        cwnd_at_send: 25_000,
        in_flight: 0,
        delivery_rate: Rate::ZERO,
        prior_delivered: None,
        penalty: 0,
        app_limited: false,
        ecn_marked: false,
        int: &[],
        path: 0,
        header: &[],
    }
}

/// Returns switch port 7 of 40 Gb/s.
pub(crate) fn port_40g() -> PortContext {
    PortContext {
        port: 7,
        rate: Rate::from_gbps(40),
        nic_rate: Rate::MAX,
        base_rtt: Time::from_us(8),
        wire_mtu: 1_048,
        frame_overhead: 0,
        upstream_delay: Time::from_us(1),
        of_host: false,
        seed: 1,
    }
}

/// Returns a data packet of `flow` with `wire` bytes on the wire.
pub(crate) fn data_packet(flow: u32, wire: u32) -> PortPacket<'static> {
    PortPacket { flow, class: 3, kind: PortPacketKind::Data, wire, header: &mut [], mark: false }
}
