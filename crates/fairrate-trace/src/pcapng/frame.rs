//! The headers of a packet: Ethernet, IPv4, and what the protocol of its flow puts behind them.

use fairrate_sim::{HostId, PacketEvent, PacketKind};

use super::{Step, rdma, tcp};
use crate::network::{Network, Protocol};

/// Bytes of the header of Ethernet.
pub(super) const ETHERNET: usize = 14;
/// Bytes of the header of IPv4.
pub(super) const IPV4: usize = 20;
/// The protocol number of UDP.
pub(super) const UDP_PROTOCOL: u8 = 17;
/// The protocol number of HOMA (IANA).
const HOMA_PROTOCOL: u8 = 146;

/// The UDP port of Ultra Ethernet (IANA).
const UET_PORT: u16 = 4793;
/// The UDP port of control packets, there and back: none is assigned.
const CONTROL_PORT: u16 = 55_500;
/// The UDP port of notices that switches send to sources.
const NOTICE_PORT: u16 = 55_501;

/// The first bytes of a frame, and its length on the wire.
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
    pub(super) wire: u32,
}

/// The part of a packet behind its IPv4 header.
pub(super) struct Segment {
    /// Its number of the protocol.
    pub(super) protocol: u8,
    /// Its headers.
    pub(super) bytes: Vec<u8>,
    /// The least number of its bytes, of which `bytes` are the first.
    pub(super) least: usize,
}

impl Frame {
    /// Returns the frame of a packet.
    pub(super) fn of(network: &Network, step: Step<'_>) -> Self {
        let Step { event, header } = step;
        let (protocol, ecn) = network.stack(event.flow);
        let kind = event.kind;
        let mut segment = match protocol {
            _ if kind == PacketKind::Notice => plain(step, NOTICE_PORT),
            Protocol::Tcp if header.is_handshake || is_transport(kind) => tcp::segment(step, ecn, network.mtu),
            _ if matches!(kind, PacketKind::Control | PacketKind::ControlBack) => plain(step, CONTROL_PORT),
            Protocol::Rdma | Protocol::Tcp => rdma::segment(network, step),
            Protocol::Homa => homa(step),
            Protocol::Uet => plain(step, UET_PORT),
        };
        let len = (IPV4 + segment.least).max(usize::from(event.wire_bytes).saturating_sub(ETHERNET));
        // TCP's payload is what the length leaves to it, so it must not be longer.
        let len = if segment.protocol == tcp::PROTOCOL { IPV4 + segment.least } else { len };
        if segment.protocol == UDP_PROTOCOL && segment.bytes[4..6] == [0, 0] {
            let udp = (len - IPV4) as u16;
            segment.bytes[4..6].copy_from_slice(&udp.to_be_bytes());
        }
        let is_forth = is_forth(kind);
        let (from, to) = if is_forth { (header.sender, header.receiver) } else { (header.receiver, header.sender) };
        let mark = match (is_forth, event.marked) {
            (true, true) => 3,
            (true, false) if ecn && kind == PacketKind::Data => 2,
            _ => 0,
        };
        let mut bytes = Vec::with_capacity(ETHERNET + IPV4 + segment.bytes.len());
        bytes.extend_from_slice(&mac(to));
        bytes.extend_from_slice(&mac(from));
        bytes.extend_from_slice(&[0x08, 0x00]);
        bytes.extend_from_slice(&ipv4(segment.protocol, (event.class, mark), len, (from, to)));
        bytes.extend_from_slice(&segment.bytes);
        Self { wire: u32::from(event.wire_bytes).max((ETHERNET + len) as u32), bytes }
    }

    /// Returns the length of the frame, at least that of the bytes that are shown.
    pub(super) fn length(&self) -> u32 {
        self.wire.max(self.bytes.len() as u32)
    }
}

/// Returns `true` for packets that go from the sender of a flow to its receiver.
fn is_forth(kind: PacketKind) -> bool {
    matches!(kind, PacketKind::Data | PacketKind::Trimmed | PacketKind::Busy | PacketKind::Control)
}

/// Returns `true` for packets that carry or acknowledge data.
fn is_transport(kind: PacketKind) -> bool {
    matches!(kind, PacketKind::Data | PacketKind::Trimmed | PacketKind::Returned | PacketKind::Ack | PacketKind::Nack)
}

/// Returns the address of a host on Ethernet, which is locally administered.
fn mac(host: HostId) -> [u8; 6] {
    let [a, b, c, d] = host.0.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

/// Returns the address of a host in 10.0.0.0/8: the first host is 10.0.0.1.
fn address(host: HostId) -> [u8; 4] {
    let [_, b, c, d] = (host.0 + 1).to_be_bytes();
    [10, b, c, d]
}

/// Returns the header of IPv4 of a packet of `len` bytes, with the class selector of its class and its ECN bits.
fn ipv4(protocol: u8, (class, mark): (u8, u8), len: usize, (from, to): (HostId, HostId)) -> [u8; IPV4] {
    let mut header = [0; IPV4];
    (header[0], header[1]) = (0x45, (class & 7) << 5 | mark);
    header[2..4].copy_from_slice(&(len.min(usize::from(u16::MAX)) as u16).to_be_bytes());
    // It must not be divided; 64 hops; a protocol.
    (header[6], header[8], header[9]) = (0x40, 64, protocol);
    header[12..16].copy_from_slice(&address(from));
    header[16..].copy_from_slice(&address(to));
    let words = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let checksum = !((folded & 0xFFFF) + (folded >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// Returns the header of UDP, whose length is filled in later, from a port that says the flow or the path.
pub(super) fn udp(step: Step<'_>, port: u16) -> Vec<u8> {
    let choice = if step.header.entropy == 0 { step.event.lane.0 as u16 } else { step.header.entropy };
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&(0xC000 | choice).to_be_bytes());
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

/// Returns a packet over UDP with the fields of the simulator.
fn plain(step: Step<'_>, port: u16) -> Segment {
    let mut bytes = udp(step, port);
    bytes.extend_from_slice(&fields(step.event));
    Segment { protocol: UDP_PROTOCOL, least: bytes.len(), bytes }
}

/// Returns a packet of HOMA: ports, then the fields of the simulator.
fn homa(step: Step<'_>) -> Segment {
    let lane = step.event.lane.0 as u16;
    let mut bytes = [lane.to_be_bytes(), lane.to_be_bytes()].concat();
    bytes.extend_from_slice(&fields(step.event));
    Segment { protocol: HOMA_PROTOCOL, least: bytes.len(), bytes }
}

/// Returns the fields of the simulator: kind, flags, payload, flow, number, and number that it answers.
fn fields(event: &PacketEvent) -> [u8; 24] {
    let mut bytes = [0; 24];
    (bytes[0], bytes[1]) = (code(event.kind), u8::from(event.marked));
    bytes[2..4].copy_from_slice(&event.payload_bytes.to_be_bytes());
    bytes[4..8].copy_from_slice(&event.lane.0.to_be_bytes());
    bytes[8..16].copy_from_slice(&event.seq.to_be_bytes());
    bytes[16..].copy_from_slice(&event.answers.to_be_bytes());
    bytes
}

/// Returns the number of a kind of packets, as docs/trace.md lists them.
fn code(kind: PacketKind) -> u8 {
    match kind {
        PacketKind::Data => 0,
        PacketKind::Ack => 1,
        PacketKind::Nack => 2,
        PacketKind::Trimmed => 3,
        PacketKind::Returned => 4,
        PacketKind::Credit => 5,
        PacketKind::Busy => 6,
        PacketKind::Cnp => 7,
        PacketKind::Notice => 8,
        PacketKind::Control => 9,
        PacketKind::ControlBack => 10,
        PacketKind::Pause | PacketKind::Resume | PacketKind::FlowPause | PacketKind::FlowResume => 11,
    }
}
