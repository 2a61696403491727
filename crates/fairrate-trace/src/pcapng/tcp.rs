//! Segments of TCP (RFC 9293), of which multipath TCP has one connection for each subflow.

use fairrate_sim::{FlowId, PacketKind};

use super::Step;
use super::frame::Segment;

/// The protocol number of TCP.
pub(super) const PROTOCOL: u8 = 6;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// The first of the dynamic ports, and their number.
const DYNAMIC: (u32, u32) = (49_152, 16_384);

/// Returns the segment of a packet whose sender goes by ECN marks if `ecn`. The byte before the first of a flow has
/// number 0.
pub(super) fn segment(step: Step<'_>, ecn: bool, mtu: u64) -> Segment {
    let Step { event, header } = step;
    let number = |byte: u64| byte.wrapping_add(1) as u32;
    let is_forth = matches!(event.kind, PacketKind::Data | PacketKind::Trimmed | PacketKind::Control);
    let (mut flags, mut options) = (ACK, Vec::new());
    let (seq, ack) = match event.kind {
        PacketKind::Control | PacketKind::ControlBack => {
            flags = if is_forth { SYN } else { SYN | ACK };
            flags |= match (ecn, is_forth) {
                (false, _) => 0,
                (true, true) => ECE | CWR,
                (true, false) => ECE,
            };
            // The largest segment; selective acknowledgments are permitted.
            options.extend_from_slice(&[2, 4]);
            options.extend_from_slice(&(mtu.min(u64::from(u16::MAX)) as u16).to_be_bytes());
            options.extend_from_slice(&[1, 1, 4, 2]);
            (0, u32::from(!is_forth))
        }
        PacketKind::Data | PacketKind::Trimmed => {
            flags |= if header.is_reduced { CWR } else { 0 };
            (number(event.seq), 1)
        }
        _ => {
            flags |= if event.marked { ECE } else { 0 };
            if !header.sacks.is_empty() {
                options.extend_from_slice(&[1, 1, 5, 2 + 8 * header.sacks.len() as u8]);
                for &(from, to) in header.sacks {
                    options.extend_from_slice(&number(from).to_be_bytes());
                    options.extend_from_slice(&number(to).to_be_bytes());
                }
            }
            (1, number(event.seq))
        }
    };
    let (source, destination) = ports(event.lane);
    let (from, to) = if is_forth { (source, destination) } else { (destination, source) };
    let mut bytes = Vec::with_capacity(20 + options.len());
    bytes.extend_from_slice(&from.to_be_bytes());
    bytes.extend_from_slice(&to.to_be_bytes());
    bytes.extend_from_slice(&seq.to_be_bytes());
    bytes.extend_from_slice(&ack.to_be_bytes());
    bytes.extend_from_slice(&[((20 + options.len()) as u8 / 4) << 4, flags]);
    // The largest window; no checksum, as the payload is not there; no urgent data.
    bytes.extend_from_slice(&[0xFF, 0xFF, 0, 0, 0, 0]);
    bytes.extend_from_slice(&options);
    Segment { protocol: PROTOCOL, least: bytes.len() + usize::from(event.payload_bytes), bytes }
}

/// Returns the ports of a connection at its sender and at its receiver, both of the dynamic range: no other two ends
/// have the same.
fn ports(lane: FlowId) -> (u16, u16) {
    let (first, n) = DYNAMIC;
    ((first + lane.0 % n) as u16, (first + lane.0 / n % n) as u16)
}
