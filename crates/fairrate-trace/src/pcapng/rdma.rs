//! Packets of RDMA over Converged Ethernet, version 2: the base transport header of InfiniBand over UDP.

use fairrate_control::IntHop;
use fairrate_sim::PacketKind;

use super::Step;
use super::frame::{Segment, UDP_PROTOCOL, udp};
use crate::network::Network;

/// The UDP port of RoCE, version 2.
const PORT: u16 = 4791;
/// Bytes of the checksum at the end of each packet.
const CHECKSUM: usize = 4;

/// Opcodes of reliable connections: parts of a message that is written to remote memory, and acknowledgments.
const WRITE_FIRST: u8 = 0x06;
const WRITE_MIDDLE: u8 = 0x07;
const WRITE_LAST: u8 = 0x08;
const WRITE_ONLY: u8 = 0x0A;
const ACKNOWLEDGE: u8 = 0x11;
/// The opcode of congestion notifications.
const CNP: u8 = 0x81;
/// Bytes that a congestion notification has behind its header, all of them zero.
const CNP_BYTES: usize = 16;

/// The congestion bit of a header on its way back.
const BECN: u8 = 0x40;

/// Syndromes of acknowledgments: one without a limit of credit, and one that reports a gap.
const SYNDROME_ACK: u8 = 0x1F;
const SYNDROME_NAK: u8 = 0x60;

/// Returns the packet behind its IPv4 header. UDP's length ends with the headers, telemetry and a checksum, as
/// Wireshark 4.0 calls a packet malformed whose payload was not captured.
pub(super) fn segment(network: &Network, step: Step<'_>) -> Segment {
    let Step { event, header } = step;
    let number = |byte: u64| (byte / network.mtu) as u32;
    let mut tail = Vec::new();
    let (opcode, psn) = match event.kind {
        PacketKind::Ack => {
            tail.extend_from_slice(&[SYNDROME_ACK, 0, 0, 0]);
            (ACKNOWLEDGE, number(event.seq.saturating_sub(1)))
        }
        PacketKind::Nack => {
            tail.extend_from_slice(&[SYNDROME_NAK, 0, 0, 0]);
            (ACKNOWLEDGE, number(event.seq))
        }
        PacketKind::Cnp => {
            tail.resize(CNP_BYTES, 0);
            (CNP, 0)
        }
        _ => {
            let is_first = event.seq == 0;
            let bytes = network.bytes(event.flow);
            let is_last = bytes <= event.seq + u64::from(event.payload_bytes);
            let opcode = match (is_first, is_last) {
                (true, true) => WRITE_ONLY,
                (true, false) => WRITE_FIRST,
                (false, true) => WRITE_LAST,
                (false, false) => WRITE_MIDDLE,
            };
            if is_first {
                // To the address 0, with the key 0; the length of the message.
                tail.resize(12, 0);
                tail.extend_from_slice(&u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes());
            }
            (opcode, number(event.seq))
        }
    };
    let echoes = event.kind == PacketKind::Cnp || event.kind == PacketKind::Ack && event.marked;
    let mut bytes = udp(step, PORT);
    // Migrated, no padding, version 0; the default partition; congestion bits; the queue pair; the number.
    bytes.extend_from_slice(&[opcode, 0x40, 0xFF, 0xFF, if echoes { BECN } else { 0 }]);
    bytes.extend_from_slice(&event.lane.0.to_be_bytes()[1..]);
    bytes.push(0);
    bytes.extend_from_slice(&psn.to_be_bytes()[1..]);
    bytes.extend_from_slice(&tail);
    if !header.telemetry.is_empty() {
        bytes.extend_from_slice(&telemetry(header.telemetry));
    }
    bytes.extend_from_slice(&[0; CHECKSUM]);
    let length = bytes.len() as u16;
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    Segment { protocol: UDP_PROTOCOL, least: bytes.len(), bytes }
}

/// Returns telemetry in the widths of HPCC's public code: the number of records in 16 bits, then 64 bits for each.
fn telemetry(records: &[IntHop]) -> Vec<u8> {
    let mut bytes = (records.len() as u16).to_be_bytes().to_vec();
    for record in records {
        bytes.extend_from_slice(&packed(record).to_be_bytes());
    }
    bytes
}

/// Returns a record in 64 bits: 3 for the rate, 24 of nanoseconds, 20 of 128 bytes sent, and 17 of 80 bytes queued.
fn packed(record: &IntHop) -> u64 {
    const GBPS: [f64; 7] = [25.0, 50.0, 100.0, 200.0, 400.0, 10.0, 800.0];
    let gbps = record.rate.as_bps_f64() / 1e9;
    // Other rates have the last number.
    let rate = GBPS.iter().position(|&known| known == gbps).unwrap_or(GBPS.len()) as u64;
    let ns = record.ts.as_ns() & 0xFF_FFFF;
    let sent = (record.tx_bytes / 128) & 0xF_FFFF;
    let queued = (u64::from(record.qlen) / 80).min(0x1_FFFF);
    rate << 61 | ns << 37 | sent << 17 | queued
}
