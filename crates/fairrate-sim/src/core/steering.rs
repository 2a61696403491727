//! The port by which a packet leaves a switch: the next port of its flow's path, or one that is chosen when the packet
//! is there.

use std::collections::BTreeSet;

use crate::ideal::Hop;
use crate::ids::{NodeId, PortId, PortIdx};
use crate::routing::Routes;
use crate::topology::Topology;

/// The next step of a packet: a port, or a host toward which a port is still to be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The packet leaves by this port.
    By(PortIdx),
    /// The packet leaves by any port on a shortest path to this host.
    Toward(NodeId),
}

/// The next step of a packet as the table of paths stores it, in one number.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextHop(pub(super) u32);

impl NextHop {
    /// Flag of an entry that holds a host to go toward, and not a port.
    pub(super) const TOWARD: u32 = 1 << 31;
    /// The entry of a packet that ends at the next node.
    pub(super) const NOWHERE: Self = Self(u32::MAX);

    /// Returns the port, if it is known before the packet arrives; otherwise a number that no port has.
    #[inline]
    pub(super) fn port(self) -> PortIdx {
        PortIdx(self.0)
    }

    /// Decodes the entry: a port, or a host to choose a port for.
    #[inline]
    pub(super) fn exit(self) -> Exit {
        if self.0 < Self::TOWARD { Exit::By(PortIdx(self.0)) } else { Exit::Toward(NodeId(self.0 ^ Self::TOWARD)) }
    }
}

/// Returns, for each hop of `path` to `to`, the highest rate and the shortest delay among the links that packets may
/// take there (not necessarily of the same link), and the number of these links.
pub(super) fn hops_beside(
    topology: &Topology,
    routes: &Routes,
    path: impl Iterator<Item = PortId>,
    to: NodeId,
) -> Vec<Hop> {
    let mut nodes = BTreeSet::new();
    let hop = |port| {
        // The first hop is the sender's own port.
        let beside: Vec<PortId> = if nodes.is_empty() {
            vec![port]
        } else {
            nodes.iter().flat_map(|&node| routes.next_hops(node, to)).collect()
        };
        nodes = beside.iter().map(|&port| topology.to(port)).collect();
        let links = || beside.iter().map(|&port| topology.link(port));
        let (rate, delay) = (links().map(|link| link.rate).max(), links().map(|link| link.delay).min());
        let (rate, delay) = rate.zip(delay).expect("a path leads there");
        Hop { rate, delay, lanes: beside.len() as u32 }
    };
    path.map(hop).collect()
}
