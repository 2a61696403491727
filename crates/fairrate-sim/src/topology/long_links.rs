use std::ops::Range;

use crate::ids::PortId;

/// The links of a network that count as [`LongLinks::LENGTH`] for the length of a path, which follow each other; others
/// count as one.
///
/// They are the global links of a [`Dragonfly`](super::Dragonfly): a shortest path between groups has one of them,
/// though by two others there may be fewer links in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongLinks(Range<u32>);

impl LongLinks {
    /// The length of each: more than that of two local links, one at either end.
    pub const LENGTH: u16 = 3;

    /// Creates the set of the links at these positions in [`Topology::links`](super::Topology::links).
    pub const fn new(links: Range<u32>) -> Self {
        Self(links)
    }

    /// Returns `true` if all links count as one.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the length of the link of a port.
    #[inline]
    pub fn length(&self, port: PortId) -> u16 {
        if self.0.contains(&(port.0 / 2)) { Self::LENGTH } else { 1 }
    }
}
