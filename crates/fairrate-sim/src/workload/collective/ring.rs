//! The ring, and the chain, which is an open ring.

use std::slice;

use fairrate_units::Time;

use super::graph::{Graph, Needed};
use super::{Collective, Op, part};

/// A ring of some ranks.
pub(super) struct Ring<'a> {
    /// The ranks in order.
    pub members: &'a [usize],
    /// The operation: all-reduce, reduce-scatter or all-gather.
    pub op: Op,
    /// The number of the stream of messages.
    pub channel: u32,
    /// The bytes of all parts.
    pub bytes: u64,
    /// The place, counted from its own, of the part with which a member begins.
    pub first: usize,
}

/// The receipts from which a member has what a ring gives it: for each chunk and member.
pub(super) type Receipts = Vec<Vec<Vec<Needed>>>;

impl Collective {
    /// Adds a ring of all ranks.
    pub(super) fn add_ring(&self, graph: &mut Graph<'_>, channel: u32, bytes: u64) {
        let members: Vec<usize> = (0..graph.n()).collect();
        // With fewer bytes than ranks, some messages are empty, and edges have different numbers of them.
        if self.merged_rings
            && members.len() as u64 <= bytes
            && let Ok(n_steps) = u16::try_from(steps_of(self.op, members.len()))
        {
            add_merged_ring(graph, &members, channel, (bytes, n_steps));
            return;
        }
        self.add_ring_of(graph, &Ring { members: &members, op: self.op, channel, bytes, first: 0 }, &Vec::new());
    }

    /// Adds a ring: in step s, member i passes part i − s on to member i + 1. The first N − 1 steps of a ring that
    /// reduces do so, the others gather. The first messages need what was received `before`, if there is something.
    pub(super) fn add_ring_of(&self, graph: &mut Graph<'_>, ring: &Ring<'_>, before: &Receipts) -> Receipts {
        let n = ring.members.len();
        let n_reduce = if ring.op == Op::AllGather { 0 } else { n - 1 };
        let n_steps = steps_of(ring.op, n);
        // A member has the sum of a part by one receipt, and gathered parts by one each.
        let first_kept = if ring.op == Op::ReduceScatter { n_steps.saturating_sub(1) } else { n_reduce };
        let mut kept: Receipts = vec![vec![Vec::new(); n]; self.chunks as usize];
        // For each chunk and member, the message received in the step before, and the time to add it up.
        let mut received: Vec<Vec<Needed>> = vec![vec![(None, Time::ZERO); n]; self.chunks as usize];
        for step in 0..n_steps {
            for (chunk, received) in received.iter_mut().enumerate() {
                let mut coming = vec![(None, Time::ZERO); n];
                for from in 0..n {
                    let whole = part(ring.bytes, n as u64, ((from + ring.first + 2 * n - step % n) % n) as u64);
                    let size = part(whole, u64::from(self.chunks), chunk as u64);
                    let to = (from + 1) % n;
                    let needs = match before.get(chunk).filter(|_| step == 0) {
                        Some(before) => &before[from][..],
                        None => slice::from_ref(&received[from]),
                    };
                    let flow = graph.send(ring.channel, (ring.members[from], ring.members[to]), size, needs);
                    let delay = if step < n_reduce { self.reduce_time(size) } else { Time::ZERO };
                    coming[to] = (flow, delay);
                    if first_kept <= step {
                        kept[chunk][to].push(coming[to]);
                    }
                }
                *received = coming;
            }
        }
        kept
    }

    /// Adds a chain: the chunks go from each rank to the next.
    pub(super) fn add_chain(&self, graph: &mut Graph<'_>, channel: u32, bytes: u64) {
        let mut received = vec![(None, Time::ZERO); self.chunks as usize];
        for from in 0..graph.n() - 1 {
            for (received, size) in received.iter_mut().zip(self.pieces(bytes)) {
                *received = (graph.send(channel, (from, from + 1), size, &[*received]), Time::ZERO);
            }
        }
    }
}

/// Adds a ring whose messages from each rank to the next are one flow.
fn add_merged_ring(graph: &mut Graph<'_>, members: &[usize], channel: u32, (bytes, n_steps): (u64, u16)) {
    let n = members.len();
    // Member i passes parts i, i − 1, ... on, from its own part on, once around or twice.
    let size = |at: usize, step: usize| part(bytes, n as u64, ((at + 2 * n - step % n) % n) as u64);
    graph.send_merged(channel, members, n_steps, |at| (0..usize::from(n_steps)).map(|step| size(at, step)).sum());
}

/// Returns the number of steps of a ring of `n` ranks.
fn steps_of(op: Op, n: usize) -> usize {
    if op == Op::AllReduce { 2 * (n - 1) } else { n - 1 }
}
