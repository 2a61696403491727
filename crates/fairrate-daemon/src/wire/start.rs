//! The record by which a flowlet begins.

use std::net::{IpAddr, Ipv6Addr};

use super::{Flow, FrameError, array};
use crate::rate::Weight;

/// The beginning of a flowlet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The flow.
    pub flow: Flow,
    /// Its sender's address. An IPv4 address is never written as one of IPv6.
    pub src: IpAddr,
    /// Its receiver's address.
    pub dst: IpAddr,
    /// The flow's weight.
    pub weight: Weight,
}

impl Start {
    pub(super) const LEN: usize = 16;
    pub(super) const LEN_V6: usize = 40;

    /// Returns `true` if both addresses are of IPv4, so that every version has a record for it.
    pub fn is_v4(&self) -> bool {
        self.src.is_ipv4() && self.dst.is_ipv4()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.flow.to_be_bytes());
        if let (IpAddr::V4(src), IpAddr::V4(dst)) = (self.src, self.dst) {
            out.extend(src.octets());
            out.extend(dst.octets());
        } else {
            out.extend(long(self.src).octets());
            out.extend(long(self.dst).octets());
        }
        out.extend(self.weight.bits().to_be_bytes());
        out.extend([0, 0]);
    }

    pub(super) fn read(record: &[u8]) -> Result<Self, FrameError> {
        let flow = Flow::from_be_bytes(array(record, 0));
        let (src, dst): (IpAddr, IpAddr) = if record.len() == Self::LEN {
            (array::<4>(record, 4).into(), array::<4>(record, 8).into())
        } else {
            (array::<16>(record, 4).into(), array::<16>(record, 20).into())
        };
        let end = record.len() - 4;
        if array(record, end + 2) != [0; 2] {
            return Err(FrameError::Flags(flow));
        }
        let weight = Weight::from_bits(u16::from_be_bytes(array(record, end))).ok_or(FrameError::Weight(flow))?;
        // Permissions and paths know an IPv4 address by one form only.
        Ok(Self { flow, src: src.to_canonical(), dst: dst.to_canonical(), weight })
    }
}

fn long(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
