//! Random packet spraying: Dixit, Prakash, Hu, Kompella, "On the Impact of Packet Spraying in Data Center Networks",
//! INFOCOM 2013. Each packet takes each port with the same probability.
//!
//! The draw is a function of the seed, the switch and the packet, so a choice depends on no other event.

use super::{Crossing, Scheme};
use crate::ids::PortIdx;

pub(super) struct Spray;

impl Scheme for Spray {
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx {
        at.any()
    }
}
