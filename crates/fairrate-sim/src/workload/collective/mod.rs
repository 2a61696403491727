//! Collective operations of training jobs: messages between ranks, each of which starts when the data that it carries
//! has come.
//!
//! The algorithms are those of R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication
//! Operations in MPICH", IJHPCA 19(1), 2005 (ring, halving and doubling, pairwise, binomial), and the two trees of P.
//! Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
//! Computing 35, 2009, in the shape that NVIDIA's NCCL gives them (`src/graph/trees.cc`). Sizes count as in NVIDIA's
//! nccl-tests (`doc/PERFORMANCE.md`).
//!
//! A message is a flow. It starts when the receipts that it needs have arrived at its rank, and when the message before
//! on the same channel has been handed to the NIC. Channels split the data, and so do chunks: those of a message follow
//! each other, and each of them needs only its own receipt.

mod bound;
mod exchange;
mod graph;
mod halving;
mod hierarchy;
mod layout;
mod ring;
mod sizes;
mod tree;

use fairrate_units::{Bytes, Rate, Time};

pub(super) use self::graph::{Graph, Origin};
use self::layout::Layout;
pub use self::sizes::Sizes;
pub(super) use self::sizes::drawn_shares;
use super::{Pace, Workload, few_enough, host};
use crate::collectives::CollectiveSpec;
use crate::ids::NodeId;
use crate::input_error::FieldError;
use crate::topology::Topology;

/// Most channels of a collective, as in NCCL.
pub const MAX_CHANNELS: u32 = 32;

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Every rank gets the sum of all buffers.
    AllReduce,
    /// Every rank gets its part of the sum of all buffers.
    ReduceScatter,
    /// Every rank gets the parts of all ranks.
    AllGather,
    /// Every rank sends a part of its buffer to each of the others.
    AllToAll,
    /// The first rank sends its buffer to all others.
    Broadcast,
}

impl Op {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("all-reduce", Self::AllReduce),
        ("reduce-scatter", Self::ReduceScatter),
        ("all-gather", Self::AllGather),
        ("all-to-all", Self::AllToAll),
        ("broadcast", Self::Broadcast),
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, op)| *op == self).map_or("", |(name, _)| name)
    }

    /// Returns the algorithms that know the operation; the first one is the default.
    pub fn algorithms(self) -> &'static [CollectiveAlgorithm] {
        use CollectiveAlgorithm as A;
        match self {
            Self::AllReduce => &[A::Ring, A::HalvingDoubling, A::Tree],
            Self::ReduceScatter | Self::AllGather => &[A::Ring, A::HalvingDoubling, A::Pairwise, A::Direct],
            Self::AllToAll => &[A::Direct, A::Pairwise],
            Self::Broadcast => &[A::Binomial, A::Chain],
        }
    }

    /// Returns numerator and denominator of the factor that makes a bandwidth of links (nccl-tests' `busbw`) of bytes
    /// per time (`algbw`), with `n` ranks.
    pub fn bus_factor(self, n: usize) -> (u64, u64) {
        let n = n as u64;
        match self {
            Self::AllReduce => (2 * (n - 1), n),
            Self::ReduceScatter | Self::AllGather | Self::AllToAll => (n - 1, n),
            Self::Broadcast => (1, 1),
        }
    }
}

/// An algorithm for collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveAlgorithm {
    /// Every rank passes parts on to its successor.
    Ring,
    /// Peers at distances that are powers of two: parts that halve, and parts that double.
    HalvingDoubling,
    /// In step s, every rank sends to the rank s places on.
    Pairwise,
    /// Every rank sends to all others, one after the other, and waits for no receipt.
    Direct,
    /// The ranks pass the buffer on, one to the next.
    Chain,
    /// The number of ranks that have the buffer doubles with every step.
    Binomial,
    /// Two binary trees, each for half of the data, in which no rank has children in both.
    Tree,
}

impl CollectiveAlgorithm {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("ring", Self::Ring),
        ("halving-doubling", Self::HalvingDoubling),
        ("pairwise", Self::Pairwise),
        ("direct", Self::Direct),
        ("chain", Self::Chain),
        ("binomial", Self::Binomial),
        ("tree", Self::Tree),
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, algorithm)| *algorithm == self).map_or("", |(name, _)| name)
    }
}

/// The order in which a rank sends to all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The next rank first: at every time, each receiver has one sender. With servers, the next server and the next
    /// rank there.
    Shifted,
    /// The first rank first: all ranks send to the same receiver.
    Rank,
}

impl Order {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] = &[("shifted", Self::Shifted), ("rank", Self::Rank)];
}

/// A collective operation, once or several times in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// The operation.
    pub op: Op,
    /// Its algorithm, one of [`Op::algorithms`].
    pub algorithm: CollectiveAlgorithm,
    /// The hosts, one for each rank in the order of ranks; `None`: all hosts.
    pub hosts: Option<Vec<NodeId>>,
    /// The bytes as nccl-tests count them: the buffer of a rank, and with all-gather and reduce-scatter the parts of
    /// all ranks.
    pub bytes: Bytes,
    /// Parts of the data that go side by side, each over connections of its own, from 1 to [`MAX_CHANNELS`].
    pub channels: u32,
    /// Pieces of each message that go one after the other, at least 1.
    pub chunks: u32,
    /// Number of iterations, at least 1.
    pub repeat: u32,
    /// Start of the first iteration.
    pub start: Time,
    /// Time between the end of an iteration at a rank and the start of the next one there.
    pub compute: Time,
    /// The factors by which that is longer, and the latency of each step.
    pub pace: Pace,
    /// Bytes that a rank adds up per second, between a receipt and the messages that need the sum; [`Rate::MAX`]: at
    /// once.
    pub reduce_rate: Rate,
    /// Halving and doubling: set if halving begins with the nearest peer, and not with the farthest.
    pub nearest_first: bool,
    /// Direct: the order of receivers.
    pub order: Order,
    /// Set if data goes inside servers and across them in steps of their own: sums and gathers by rings, and exchanges
    /// of all with all by the rank on the receiver's rail.
    pub hierarchy: bool,
    /// All-to-all: the bytes of each pair of ranks.
    pub sizes: Sizes,
    /// Rings of one level, without packets: set if all messages from a rank to the next are one flow.
    pub merged_rings: bool,
}

impl Collective {
    /// Returns the messages of all iterations. Nothing but the loads of an imbalance and the times of computations is
    /// random.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Workload, FieldError> {
        let ranks = self.ranks(topology)?;
        self.check(ranks.len())?;
        self.check_hierarchy(topology, &ranks)?;
        few_enough("bytes", self.messages_of(topology, &ranks))?;
        let drawn = Self { sizes: self.sizes.drawn(self.bytes, ranks.len(), seed, group)?, ..self.clone() };
        let mut workload = Workload::default();
        let origin = Origin { group, start: self.start, first_stream: 0, alpha: self.pace.alpha };
        let mut graph = Graph::new(&mut workload, topology, &ranks, origin);
        for iteration in 0..self.repeat {
            graph.begin(iteration, |rank| self.pace.time_before(self.compute, &ranks, rank, iteration));
            drawn.add_messages(&mut graph);
        }
        workload.collectives.push(drawn.spec(topology, ranks, group));
        Ok(workload.sort())
    }

    /// Returns the approximate number of flows.
    ///
    /// # Errors
    /// As [`Collective::generate`].
    pub fn expected_flows(&self, topology: &Topology) -> Result<f64, FieldError> {
        Ok(self.messages_of(topology, &self.ranks(topology)?))
    }

    fn ranks(&self, topology: &Topology) -> Result<Vec<NodeId>, FieldError> {
        let Some(named) = &self.hosts else { return Ok(topology.hosts().collect()) };
        let ranks = named.iter().map(|&node| host("hosts", topology, node)).collect::<Result<Vec<_>, _>>()?;
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("host `{}` is two ranks", topology.nodes[pair[0].index()].name);
            return Err(FieldError::new("hosts", message).help("name every host once: a rank has a host of its own"));
        }
        Ok(ranks)
    }

    /// Checks that `n` ranks can do it.
    pub(super) fn check(&self, n: usize) -> Result<(), FieldError> {
        if n < 2 {
            let message = format!("{n} ranks have nothing to exchange");
            return Err(FieldError::new("hosts", message).help("name at least two hosts"));
        }
        super::at_least_a_byte("bytes", self.bytes)?;
        let folds = self.op == Op::AllReduce;
        if self.algorithm == CollectiveAlgorithm::HalvingDoubling && !n.is_power_of_two() && !folds {
            let message =
                format!("halving and doubling of {} needs a power of two, and there are {n} ranks", self.op.name());
            return Err(FieldError::new("algorithm", message).help("set `algorithm = \"ring\"`"));
        }
        Ok(())
    }

    /// Checks that the ranks are in servers as a hierarchy needs them.
    fn check_hierarchy(&self, topology: &Topology, ranks: &[NodeId]) -> Result<(), FieldError> {
        if !self.hierarchy || Layout::of(topology, ranks).is_some_and(|layout| layout.has_levels()) {
            return Ok(());
        }
        let (message, help) = if topology.servers.is_none() {
            ("there are no servers", "add for instance `scale_up = { size = 8 }` to `[topology]`")
        } else {
            ("a hierarchy is for several servers with the same number of ranks each, at least two", "name such `hosts`")
        };
        Err(FieldError::new("hierarchy", message).help(help))
    }

    /// Returns the approximate number of messages among these ranks.
    fn messages_of(&self, topology: &Topology, ranks: &[NodeId]) -> f64 {
        let n = ranks.len() as f64;
        let of_levels = |layout: Layout| {
            let steps = (layout.size() + layout.n_servers() - 2) as f64;
            let passes = if self.op == Op::AllReduce { 2.0 } else { 1.0 };
            passes * n * steps * f64::from(self.channels) * f64::from(self.chunks) * f64::from(self.repeat)
        };
        let layout = if self.hierarchy { Layout::of(topology, ranks) } else { None };
        layout.map_or_else(|| self.messages(ranks.len()), of_levels)
    }

    /// Returns the approximate number of messages among `n` ranks.
    pub(super) fn messages(&self, n: usize) -> f64 {
        let n = n as f64;
        let log = n.log2().ceil();
        let a_chunk = match (self.algorithm, self.op) {
            (CollectiveAlgorithm::Ring, _) if self.merged_rings => n,
            (CollectiveAlgorithm::Ring, Op::AllReduce) => 2.0 * n * (n - 1.0),
            (CollectiveAlgorithm::Ring | CollectiveAlgorithm::Pairwise | CollectiveAlgorithm::Direct, _) => {
                n * (n - 1.0)
            }
            (CollectiveAlgorithm::HalvingDoubling, _) => 2.0 * n * log,
            (CollectiveAlgorithm::Tree, _) => 4.0 * n,
            (CollectiveAlgorithm::Chain | CollectiveAlgorithm::Binomial, _) => n,
        };
        a_chunk * f64::from(self.channels) * f64::from(self.chunks) * f64::from(self.repeat)
    }

    /// Adds the messages of an iteration.
    pub(super) fn add_messages(&self, graph: &mut Graph<'_>) {
        let layout = if self.hierarchy { graph.layout().filter(Layout::has_levels) } else { None };
        for channel in 0..self.channels {
            match &layout {
                None => self.add_channel(graph, channel),
                Some(layout) if self.op == Op::AllToAll => self.add_exchange_hierarchy(graph, layout, channel),
                Some(layout) => self.add_ring_hierarchy(graph, layout, channel, self.bytes_of(channel)),
            }
        }
    }

    /// Returns the bytes of a channel.
    fn bytes_of(&self, channel: u32) -> u64 {
        part(self.bytes.as_u64(), u64::from(self.channels), u64::from(channel))
    }

    fn add_channel(&self, graph: &mut Graph<'_>, channel: u32) {
        let bytes = self.bytes_of(channel);
        match self.algorithm {
            CollectiveAlgorithm::Ring => self.add_ring(graph, channel, bytes),
            CollectiveAlgorithm::HalvingDoubling => self.add_halving_doubling(graph, channel, bytes),
            CollectiveAlgorithm::Pairwise => self.add_pairwise(graph, channel),
            CollectiveAlgorithm::Direct => self.add_direct(graph, channel),
            CollectiveAlgorithm::Chain => self.add_chain(graph, channel, bytes),
            CollectiveAlgorithm::Binomial => self.add_binomial(graph, channel, bytes),
            CollectiveAlgorithm::Tree => self.add_trees(graph, channel, bytes),
        }
    }

    /// Returns the bytes of each chunk of a message of `bytes` bytes.
    fn pieces(&self, bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let chunks = u64::from(self.chunks);
        (0..chunks).map(move |chunk| part(bytes, chunks, chunk))
    }

    /// Returns the time that a rank takes to add up `bytes` bytes.
    fn reduce_time(&self, bytes: u64) -> Time {
        if self.reduce_rate == Rate::MAX { Time::ZERO } else { self.reduce_rate.tx_time(Bytes::new(bytes)) }
    }

    /// Returns the description of the collective for its results.
    fn spec(&self, topology: &Topology, ranks: Vec<NodeId>, group: u32) -> CollectiveSpec {
        let bound = match &self.sizes {
            Sizes::Matrix(matrix) => bound::least_time_of_matrix(matrix, topology, &ranks),
            _ => bound::least_time(self.op, self.bytes, topology, &ranks),
        };
        CollectiveSpec {
            group,
            op: self.op,
            bytes: self.bytes,
            ranks,
            iterations: self.repeat,
            start: self.start,
            compute: self.compute,
            pace: self.pace.clone(),
            bound,
        }
    }
}

/// Returns the size of part number `at` of `n` parts of `bytes` bytes: the first ones have a byte more if `n` does not
/// divide them.
fn part(bytes: u64, n: u64, at: u64) -> u64 {
    bytes / n + u64::from(at < bytes % n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_differ_by_a_byte_and_add_up() {
        assert_eq!((0..4).map(|at| part(10, 4, at)).collect::<Vec<_>>(), [3, 3, 2, 2]);
        assert_eq!((0..4).map(|at| part(3, 4, at)).collect::<Vec<_>>(), [1, 1, 1, 0]);
    }
}
