//! Exchanges in which every rank sends to every other one itself, and the binomial tree.

use fairrate_units::Time;

use super::graph::Graph;
use super::{Collective, Op, Order, Sizes, part};

impl Collective {
    /// Adds an exchange in steps: in step s, rank i sends to rank i + s, after what it has received in the step before.
    pub(super) fn add_pairwise(&self, graph: &mut Graph<'_>, channel: u32) {
        let n = graph.n();
        let mut received = vec![vec![(None, Time::ZERO); n]; self.chunks as usize];
        for step in 1..n {
            for (chunk, received) in received.iter_mut().enumerate() {
                let mut coming = vec![(None, Time::ZERO); n];
                for from in 0..n {
                    let to = (from + step) % n;
                    let size = part(self.between(n, from, to, channel), u64::from(self.chunks), chunk as u64);
                    let flow = graph.send(channel, (from, to), size, &received[from..=from]);
                    let delay = if self.op == Op::ReduceScatter { self.reduce_time(size) } else { Time::ZERO };
                    coming[to] = (flow, delay);
                }
                *received = coming;
            }
        }
    }

    /// Adds an exchange without steps: a rank sends to all others, one after the other.
    pub(super) fn add_direct(&self, graph: &mut Graph<'_>, channel: u32) {
        let n = graph.n();
        let layout = graph.layout();
        for from in 0..n {
            let peers: Vec<usize> = match (&layout, self.order) {
                (_, Order::Rank) => (0..n).collect(),
                (Some(layout), Order::Shifted) => layout.shifted(from).collect(),
                (None, Order::Shifted) => (from..n).chain(0..from).collect(),
            };
            for to in peers.into_iter().filter(|&to| to != from) {
                for size in self.pieces(self.between(n, from, to, channel)) {
                    graph.send(channel, (from, to), size, &[]);
                }
            }
        }
    }

    /// Returns the bytes of a channel that rank `from` sends to rank `to`: the sender's part to gather, and the
    /// receiver's otherwise.
    pub(super) fn between(&self, n: usize, from: usize, to: usize, channel: u32) -> u64 {
        let channels = u64::from(self.channels);
        if let Sizes::Matrix(matrix) = &self.sizes {
            return part(matrix[from * n + to], channels, u64::from(channel));
        }
        let bytes = part(self.bytes.as_u64(), channels, u64::from(channel));
        part(bytes, n as u64, if self.op == Op::AllGather { from } else { to } as u64)
    }

    /// Adds a binomial tree: in step s, each of the first 2^s ranks sends to the rank 2^s places on.
    pub(super) fn add_binomial(&self, graph: &mut Graph<'_>, channel: u32, bytes: u64) {
        let n = graph.n();
        let mut received = vec![vec![(None, Time::ZERO); self.chunks as usize]; n];
        let mut distance = 1;
        while distance < n {
            for from in 0..distance.min(n - distance) {
                for (chunk, size) in self.pieces(bytes).enumerate() {
                    // Later messages come after the first ones, and so after the receipts.
                    let needs = std::mem::replace(&mut received[from][chunk], (None, Time::ZERO));
                    let flow = graph.send(channel, (from, from + distance), size, &[needs]);
                    received[from + distance][chunk] = (flow, Time::ZERO);
                }
            }
            distance *= 2;
        }
    }
}
