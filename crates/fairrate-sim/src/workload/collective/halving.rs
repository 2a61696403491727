//! Recursive halving, which reduces, and recursive doubling, which gathers.

use fairrate_units::Time;

use super::graph::{Graph, Needed};
use super::{Collective, Op, part};

/// The last receipt of each chunk at each rank.
struct Receipts(Vec<Vec<Needed>>);

impl Receipts {
    fn of(&self, chunk: usize, rank: usize) -> Needed {
        self.0[chunk][rank]
    }
}

impl Collective {
    /// Adds halving, doubling, or both. With ranks that are no power of two, the first ones fold: each odd one gives
    /// its data to the even one before it, and gets the result from there.
    pub(super) fn add_halving_doubling(&self, graph: &mut Graph<'_>, channel: u32, bytes: u64) {
        let n = graph.n();
        let log = n.ilog2();
        let core = 1_usize << log;
        let folded = n - core;
        // The ranks that take part in all steps.
        let ranks: Vec<usize> = (0..core).map(|at| if at < folded { 2 * at } else { at + folded }).collect();
        let mut receipts = Receipts(vec![vec![(None, Time::ZERO); n]; self.chunks as usize]);
        for pair in 0..folded {
            let (even, odd) = (2 * pair, 2 * pair + 1);
            for (chunk, size) in self.pieces(bytes).enumerate() {
                let flow = graph.send(channel, (odd, even), size, &[]);
                receipts.0[chunk][even] = (flow, self.reduce_time(size));
            }
        }
        let halving: Vec<u32> = if self.nearest_first { (0..log).collect() } else { (0..log).rev().collect() };
        if self.op != Op::AllGather {
            for step in 0..halving.len() {
                // A rank keeps the parts that agree with it in this bit and those before, and sends those of its peer.
                let agree = |rank: usize, place: usize| {
                    let differs = rank ^ place;
                    halving[..step].iter().all(|bit| differs >> bit & 1 == 0) && differs >> halving[step] & 1 == 1
                };
                self.add_step(graph, channel, (&ranks, bytes), halving[step], &mut receipts, (agree, true));
            }
        }
        if self.op != Op::ReduceScatter {
            for step in (0..halving.len()).rev() {
                // A rank sends all parts that it has: those that agree with it in the bits that are left.
                let agree =
                    |rank: usize, place: usize| halving[..=step].iter().all(|bit| (rank ^ place) >> bit & 1 == 0);
                self.add_step(graph, channel, (&ranks, bytes), halving[step], &mut receipts, (agree, false));
            }
        }
        for pair in 0..folded {
            let (even, odd) = (2 * pair, 2 * pair + 1);
            for (chunk, size) in self.pieces(bytes).enumerate() {
                graph.send(channel, (even, odd), size, &[receipts.of(chunk, even)]);
            }
        }
    }

    /// Adds a step in which peers differ in `bit`; `is_sent` says if a rank sends a part, and the second if it is added
    /// up.
    fn add_step(
        &self,
        graph: &mut Graph<'_>,
        channel: u32,
        (ranks, bytes): (&[usize], u64),
        bit: u32,
        receipts: &mut Receipts,
        (is_sent, reduces): (impl Fn(usize, usize) -> bool, bool),
    ) {
        let n = ranks.len();
        let size_of = |at: usize| {
            let parts = (0..n).filter(|&place| is_sent(at, place));
            parts.map(|place| part(bytes, n as u64, place as u64)).sum::<u64>()
        };
        let sizes: Vec<u64> = (0..n).map(size_of).collect();
        for chunk in 0..self.chunks as usize {
            let mut coming = receipts.0[chunk].clone();
            for (at, &from) in ranks.iter().enumerate() {
                let to = ranks[at ^ 1 << bit];
                let size = part(sizes[at], u64::from(self.chunks), chunk as u64);
                let flow = graph.send(channel, (from, to), size, &[receipts.of(chunk, from)]);
                if flow.is_some() {
                    coming[to] = (flow, if reduces { self.reduce_time(size) } else { Time::ZERO });
                }
            }
            receipts.0[chunk] = coming;
        }
    }
}
