//! Paths by number: packets carry the number of their path, and each switch that has a choice takes a digit of it, as
//! if their sources had laid their routes (M. Handley et al., "Re-architecting datacenter networks and stacks for low
//! latency and high performance", SIGCOMM 2017: NDP's senders choose among all paths).
//!
//! The first switch with a choice among n ports takes the number modulo n, the next one goes on with what is left of
//! it. A switch finds out the digits before its own by going the same way from the packet's first switch.

use super::{Crossing, Scheme};
use crate::core::run::Run;
use crate::ids::{NodeId, PortIdx};
use crate::routing::FlowKey;

pub(super) struct Numbered;

impl Scheme for Numbered {
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx {
        let key = at.run.key_of(at.packet.flow);
        let from = if at.to == key.dst { key.src } else { key.dst };
        let left = digits_left(at.run, from, at.to, at.switch, usize::from(at.packet.entropy));
        at.candidates[left % at.candidates.len()]
    }
}

/// Returns what is left of a path's number at `switch`, on the way between two hosts.
fn digits_left(run: &Run, from: NodeId, to: NodeId, switch: NodeId, number: usize) -> usize {
    let mut left = number;
    let Some(up) = run.routes.host_port(from) else { return left };
    let mut at = run.config.topology.to(up);
    while at != switch {
        let n = run.routes.next_hops(at, to).count();
        // After a failure the packet may be where no path of its number leads.
        let Some(port) = n.checked_sub(1).and_then(|_| run.routes.next_hops(at, to).nth(left % n)) else { break };
        left /= n;
        at = run.config.topology.to(port);
    }
    left
}

/// Returns the number of paths of a flow: the product of the choices on its way.
pub(in crate::core) fn n_paths(run: &Run, key: FlowKey) -> usize {
    let Some(up) = run.routes.host_port(key.src) else { return 1 };
    let (mut n_paths, mut at) = (1_usize, run.config.topology.to(up));
    while let Some(port) = run.routes.next_hops(at, key.dst).next() {
        n_paths = n_paths.saturating_mul(run.routes.next_hops(at, key.dst).count());
        at = run.config.topology.to(port);
    }
    n_paths
}
