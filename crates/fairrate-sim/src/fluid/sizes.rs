//! Bytes on the wire and times alone.

use fairrate_units::{Bytes, Rate};

use super::{Fluid, duration_ps};
use crate::ideal::{self, Hop};

impl Fluid {
    /// Returns the time in which the last bit of `bytes` bytes in `steps` messages leaves if they are alone, in
    /// picoseconds.
    pub(super) fn alone_ps(&self, hops: &[Hop], bytes: u64, steps: u32) -> u64 {
        let slowest = hops.iter().map(|hop| hop.rate).min().unwrap_or(Rate::MAX);
        duration_ps(self.wire_bytes_of(bytes, steps) as f64 * 8.0, slowest.as_bps_f64())
    }

    /// Returns the time that the last bit of each of `steps` messages of `bytes` bytes together is under way: the time
    /// that they take alone, one after the other, without that in which their bits leave.
    pub(super) fn tail_ps(&self, hops: &[Hop], bytes: u64, steps: u32) -> i64 {
        let clock = self.config.fabric.clock;
        let alone = |bytes: u64| ideal::ideal_fct(clock, hops, self.framing.train(Bytes::new(bytes)));
        let (larger, smaller) = split(bytes, steps);
        let time = |(n, bytes): (u64, u64)| if n == 0 { 0 } else { alone(bytes).as_ps().saturating_mul(n) };
        let all_ps = time(larger).saturating_add(time(smaller));
        all_ps.wrapping_sub(self.alone_ps(hops, bytes, steps)).cast_signed() / i64::from(steps.max(1))
    }

    /// Returns the bytes that `payload` bytes of payload in `steps` messages take on the wire.
    pub(super) fn wire_bytes_of(&self, payload: u64, steps: u32) -> u64 {
        let (larger, smaller) = split(payload, steps);
        [larger, smaller].into_iter().map(|(n, bytes)| n * self.wire_bytes(bytes)).sum()
    }

    /// Returns the bytes that `payload` bytes of payload take on the wire, in packets.
    pub(super) fn wire_bytes(&self, payload: u64) -> u64 {
        payload + payload.div_ceil(self.framing.mtu.as_u64().max(1)) * self.framing.header.as_u64()
    }

    /// Returns the payload in `wire` bytes on the wire: each packet begins with its header.
    pub(super) fn payload_bytes(&self, wire: u64) -> u64 {
        let (mtu, header) = (self.framing.mtu.as_u64(), self.framing.header.as_u64());
        let packet = (mtu + header).max(1);
        wire / packet * mtu + (wire % packet).saturating_sub(header)
    }
}

/// Returns `bytes` in `steps` parts that differ by a byte at most: the number of the larger ones with their bytes, and
/// those of the others.
fn split(bytes: u64, steps: u32) -> ((u64, u64), (u64, u64)) {
    let steps = u64::from(steps.max(1));
    let (each, n_larger) = (bytes / steps, bytes % steps);
    ((n_larger, each + 1), (steps - n_larger, each))
}
