//! The double binary tree. Each of two trees carries half of the data: up to the root, which adds it up, and down
//! again. No rank has children in both trees if the number of ranks is even.

use fairrate_units::Time;

use super::graph::{Graph, Needed};
use super::{Collective, part};

/// Streams of a rank in one tree: to its parent, and to each of its children.
const STREAMS: u32 = 3;

impl Collective {
    /// Adds both trees.
    pub(super) fn add_trees(&self, graph: &mut Graph<'_>, channel: u32, bytes: u64) {
        let n = graph.n();
        for tree in 0..2 {
            let half = part(bytes, 2, u64::from(tree));
            let rank_of = |place: usize| match (tree, n % 2) {
                (0, _) => place,
                (_, 0) => n - 1 - place,
                _ => (place + 1) % n,
            };
            let stream = STREAMS * (2 * channel + tree);
            for size in self.pieces(half) {
                let root: Vec<Needed> =
                    children(0, n).map(|child| self.add_up(graph, stream, child, size, &rank_of)).collect();
                for (at, child) in (1..).zip(children(0, n)) {
                    add_down(graph, (stream, at), (0, child), size, &root, &rank_of);
                }
            }
        }
    }

    /// Adds the messages of a chunk that go up from the place `at` and from those below it; returns what its parent
    /// gets.
    fn add_up(
        &self,
        graph: &mut Graph<'_>,
        stream: u32,
        at: usize,
        size: u64,
        rank_of: &impl Fn(usize) -> usize,
    ) -> Needed {
        let n = graph.n();
        let below: Vec<Needed> =
            children(at, n).map(|child| self.add_up(graph, stream, child, size, rank_of)).collect();
        let flow = graph.send(stream, (rank_of(at), rank_of(parent(at, n))), size, &below);
        (flow, self.reduce_time(size))
    }
}

/// Adds the messages of a chunk that go down from the place `from` to `to`, its child in the stream
/// `stream.0 + stream.1`, and from there on.
fn add_down(
    graph: &mut Graph<'_>,
    stream: (u32, u32),
    (from, to): (usize, usize),
    size: u64,
    needs: &[Needed],
    rank_of: &impl Fn(usize) -> usize,
) {
    let flow = graph.send(stream.0 + stream.1, (rank_of(from), rank_of(to)), size, needs);
    for (at, child) in (1..).zip(children(to, graph.n())) {
        add_down(graph, (stream.0, at), (to, child), size, &[(flow, Time::ZERO)], rank_of);
    }
}

/// Returns the parent of a place other than 0 among `n`, the lowest bit of which moves up by one.
fn parent(at: usize, n: usize) -> usize {
    let bit = at & at.wrapping_neg();
    let above = at ^ bit | bit << 1;
    if above < n { above } else { at ^ bit }
}

/// Returns the children of a place among `n`: at half of its lowest bit below, and as far above as there are places.
fn children(at: usize, n: usize) -> impl Iterator<Item = usize> {
    let bit = if at == 0 { n.next_power_of_two() } else { at & at.wrapping_neg() };
    let below = (at != 0 && 1 < bit).then(|| at - bit / 2);
    let mut offset = bit / 2;
    while n <= at + offset {
        offset /= 2;
    }
    let above = (0 < offset).then_some(at + offset);
    below.into_iter().chain(above)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The shape of 4 to 16 ranks as NCCL's `trees.cc` builds it: odd places are leaves, and with an even number of
    /// ranks the mirrored tree has other inner places.
    #[test]
    fn places_below_are_those_whose_parent_a_place_is() {
        for n in 2..70 {
            for at in 0..n {
                let below: BTreeSet<usize> = (1..n).filter(|&child| parent(child, n) == at).collect();
                assert_eq!(children(at, n).collect::<BTreeSet<_>>(), below, "{at} of {n}");
                assert!(at % 2 == 0 || below.is_empty(), "{at} of {n} is a leaf");
                let mirrored = n - 1 - at;
                let is_inner_twice = !below.is_empty() && children(mirrored, n).next().is_some();
                assert!(n % 2 == 1 || !is_inner_twice, "{at} of {n} is inner in both");
            }
        }
        assert_eq!(children(0, 8).collect::<Vec<_>>(), [4]);
        assert_eq!(children(4, 8).collect::<Vec<_>>(), [2, 6]);
        assert_eq!(children(4, 6).collect::<Vec<_>>(), [2, 5]);
    }
}
