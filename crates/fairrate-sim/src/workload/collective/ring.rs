//! The ring, and the chain, which is an open ring.

use fairrate_units::Time;

use super::graph::Graph;
use super::{Collective, Op, part};
use crate::ids::FlowId;

impl Collective {
    /// Adds a ring: in step s, rank i passes part i − s on to rank i + 1. The first N − 1 steps reduce, the others gather.
    pub(super) fn add_ring(&self, graph: &mut Graph<'_>, channel: u32, bytes: u64) {
        let n = graph.n();
        let n_reduce = if self.op == Op::AllGather { 0 } else { n - 1 };
        let n_steps = if self.op == Op::AllReduce { 2 * (n - 1) } else { n - 1 };
        // For each chunk and rank, the message received in the step before, and the time to add it up.
        let mut received: Vec<Vec<(Option<FlowId>, Time)>> = vec![vec![(None, Time::ZERO); n]; self.chunks as usize];
        for step in 0..n_steps {
            for (chunk, received) in received.iter_mut().enumerate() {
                let mut coming = vec![(None, Time::ZERO); n];
                for from in 0..n {
                    let whole = part(bytes, n as u64, ((from + 2 * n - step % n) % n) as u64);
                    let size = part(whole, u64::from(self.chunks), chunk as u64);
                    let to = (from + 1) % n;
                    let flow = graph.send(channel, (from, to), size, &received[from..=from]);
                    let delay = if step < n_reduce { self.reduce_time(size) } else { Time::ZERO };
                    coming[to] = (flow, delay);
                }
                *received = coming;
            }
        }
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
