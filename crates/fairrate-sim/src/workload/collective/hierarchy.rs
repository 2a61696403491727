//! Collectives in two levels: inside servers, over their scale-up networks, and across servers, where every message
//! stays on its rail. A rail consists of the ranks with the same place in their servers.
//!
//! Sums and gathers are rings on either level. An exchange of all with all first hands the data to the rank of the
//! server that is on the receiver's rail, as NCCL's PXN does (K. Jeaugey, "Doubling all2all Performance with NVIDIA
//! Collective Communication Library 2.12", 2022).

use fairrate_units::Time;

use super::graph::Graph;
use super::layout::Layout;
use super::ring::{Receipts, Ring};
use super::{Collective, CollectiveAlgorithm, Op, part};

impl Collective {
    /// Adds rings: inside servers to reduce, across them on each rail, and inside to gather.
    pub(super) fn add_ring_hierarchy(&self, graph: &mut Graph<'_>, layout: &Layout, channel: u32, bytes: u64) {
        let (size, n) = (layout.size(), layout.n_servers());
        let servers: Vec<Vec<usize>> =
            (0..n).map(|at| (0..size).map(|place| layout.rank(at, place)).collect()).collect();
        let inside = |graph: &mut Graph<'_>, op: Op, first: usize, before: &[Receipts]| -> Vec<Receipts> {
            let ring = |(server, members): (usize, &Vec<usize>)| {
                let none = Receipts::new();
                let ring = Ring { members, op, channel, bytes, first };
                self.add_ring_of(graph, &ring, before.get(server).unwrap_or(&none))
            };
            servers.iter().enumerate().map(ring).collect()
        };
        // With a ring that reduces, a rank comes to have the part behind its own.
        let first = usize::from(self.op != Op::AllGather);
        let reduced = if self.op == Op::AllGather { Vec::new() } else { inside(graph, Op::ReduceScatter, 0, &[]) };
        let mut across = vec![vec![vec![Vec::new(); size]; self.chunks as usize]; n];
        for place in 0..size {
            let members: Vec<usize> = (0..n).map(|server| layout.rank(server, place)).collect();
            let bytes = part(bytes, size as u64, ((place + first) % size) as u64);
            let before = |chunk: usize| reduced.iter().map(|of_server| of_server[chunk][place].clone()).collect();
            let before: Receipts =
                if reduced.is_empty() { Vec::new() } else { (0..self.chunks as usize).map(before).collect() };
            let ring = Ring { members: &members, op: self.op, channel, bytes, first: 0 };
            for (chunk, of_chunk) in self.add_ring_of(graph, &ring, &before).into_iter().enumerate() {
                for (server, receipts) in of_chunk.into_iter().enumerate() {
                    across[server][chunk][place] = receipts;
                }
            }
        }
        if self.op != Op::ReduceScatter {
            inside(graph, Op::AllGather, first, &across);
        }
    }

    /// Adds an exchange: inside servers, all that goes to ranks of a rail goes to the rank on it, which sends a message
    /// to every other server.
    pub(super) fn add_exchange_hierarchy(&self, graph: &mut Graph<'_>, layout: &Layout, channel: u32) {
        let (size, n, ranks) = (layout.size(), layout.n_servers(), graph.n());
        let between = |from: usize, to: usize| self.between(ranks, from, to, channel);
        let is_pairwise = self.algorithm == CollectiveAlgorithm::Pairwise;
        let chunks = u64::from(self.chunks);
        for chunk in 0..chunks {
            let mut received = vec![Vec::new(); ranks];
            for step in 1..size {
                let mut coming = vec![Vec::new(); ranks];
                for (from, received) in received.iter().enumerate() {
                    let (server, place) = layout.place(from);
                    let to = layout.rank(server, place + step);
                    let all = (0..n).map(|other| between(from, layout.rank(other, place + step)));
                    let needs = if is_pairwise { received.last().copied() } else { None };
                    let bytes = part(all.sum(), chunks, chunk);
                    let flow = graph.send(channel, (from, to), bytes, needs.as_slice());
                    coming[to].push((flow, Time::ZERO));
                }
                received.iter_mut().zip(coming).for_each(|(received, coming)| received.extend(coming));
            }
            for step in 1..n {
                let mut coming = vec![Vec::new(); ranks];
                for (from, received) in received.iter_mut().enumerate() {
                    let (server, place) = layout.place(from);
                    let to = layout.rank(server + step, place);
                    let all = (0..size).map(|other| between(layout.rank(server, other), to));
                    // What was needed before the first message has come before the later ones of the stream.
                    let needs = std::mem::take(received);
                    let flow = graph.send(channel, (from, to), part(all.sum(), chunks, chunk), &needs);
                    coming[to].push((flow, Time::ZERO));
                }
                if is_pairwise {
                    received = coming;
                }
            }
        }
    }
}
