//! Frames of priority flow control (IEEE 802.1Qbb).

use super::frame::Frame;

/// The smallest frame of Ethernet without its checksum.
const SMALLEST: usize = 60;

/// Returns the frame that pauses or resumes `class`.
pub(super) fn frame(class: u8, pause: bool) -> Frame {
    // To the address of MAC control, from a local one; opcode 0x0101.
    let mut bytes = vec![0x01, 0x80, 0xC2, 0x00, 0x00, 0x01, 0x02, 0, 0xFF, 0, 0, 0, 0x88, 0x08, 0x01, 0x01];
    bytes.extend_from_slice(&[0, 1 << (class & 7)]);
    for other in 0..8 {
        let quanta = if pause && other == class { u16::MAX } else { 0 };
        bytes.extend_from_slice(&quanta.to_be_bytes());
    }
    bytes.resize(SMALLEST, 0);
    Frame { bytes, wire: SMALLEST as u32 }
}
