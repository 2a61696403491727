//! Iterations of the training of a transformer, dense or with a mixture of experts.
//!
//! The bytes of tensor and sequence parallelism, and the groups, are those of Megatron-LM: D. Narayanan et al.,
//! "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021 (the schedules with one
//! forward and one backward pass in turn, section 2.2; bytes, section 3; operations of a layer, appendix), and V.
//! Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", MLSys 2023 (sequence
//! parallelism, section 4.2). Exchanges of experts: D. Lepikhin et al., "GShard", ICLR 2021. Context parallelism passes
//! keys and values around a ring: H. Liu et al., "Ring Attention with Blockwise Transformers", ICLR 2024.

mod loads;
mod program;
mod schedule;
mod sizes;

use fairrate_units::{Bytes, Time};

use self::loads::Loads;
use super::super::{Pace, Workload, host};
use super::Job;
use crate::ids::NodeId;
use crate::input_error::FieldError;
use crate::jobs::ProcessGroup;
use crate::topology::Topology;

/// Most operations of ranks in a job: more would not fit into memory.
const MOST_OPERATIONS: f64 = 2e7;
/// Operations of a rank in a layer, forward and backward.
const OPERATIONS_OF_A_LAYER: f64 = 16.0;
/// Size that no operation reaches.
const LARGEST: Bytes = Bytes::new(1_000_000_000_000_000);

/// A transformer, and the data that goes through it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Number of layers.
    pub layers: u32,
    /// Width of the activations.
    pub hidden: u64,
    /// Inner width of the two (or, if gated, three) matrices after attention; with experts, of each of them.
    pub ffn: u64,
    /// Heads of attention, and those of keys and values.
    pub heads: u32,
    /// See `heads`.
    pub kv_heads: u32,
    /// Number of tokens that the model knows.
    pub vocabulary: u64,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Sequences of a micro-batch.
    pub micro_batch: u64,
    /// Bytes of a number in activations and parameters.
    pub dtype_bytes: u64,
    /// Bytes of a number in gradients that are reduced.
    pub gradient_bytes: u64,
    /// `true` if there are three matrices after attention, as with SwiGLU.
    pub gated: bool,
    /// Number of experts; 0: the model is dense.
    pub experts: u32,
    /// Number of experts that a token goes to.
    pub top_k: u32,
    /// The tokens of the busiest of the ranks that share experts, as a multiple of their mean; which one that is, is
    /// drawn for each layer.
    pub imbalance: f64,
}

/// The division of a model and of its data among ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Parallelism {
    /// Ranks that share each matrix (tensor parallelism).
    pub tp: u32,
    /// Ranks that share each sequence (context parallelism).
    pub cp: u32,
    /// Copies of the model, each with data of its own.
    pub dp: u32,
    /// Ranks that share the experts: some of those that share sequences and data.
    pub ep: u32,
    /// Stages of the pipeline.
    pub pp: u32,
    /// `true` if ranks of a tensor group keep a part of the sequence each between matrices.
    pub sequence_parallel: bool,
}

/// The time that ranks compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ComputeTime {
    /// From the operations of the model at 10^12 of them a second.
    Tflops(f64),
    /// Given for a layer and a micro-batch; nothing else takes time.
    PerLayer {
        /// Forward pass.
        forward: Time,
        /// Backward pass.
        backward: Time,
    },
}

/// The activations that are computed once more in the backward pass, as they were not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recompute {
    /// None.
    None,
    /// Those inside attention, which needs no messages (Korthikanti et al., section 5).
    Selective,
    /// Those of each layer as a whole, with its collectives.
    Full,
}

impl Recompute {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("selective", Self::Selective), ("full", Self::Full)];
}

/// Iterations of a training job.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The model.
    pub model: Model,
    /// Its division among ranks.
    pub parallelism: Parallelism,
    /// Micro-batches of an iteration that go through a pipeline.
    pub microbatches: u32,
    /// Parts of the model that each stage has; with several, stages are interleaved.
    pub virtual_stages: u32,
    /// The activations that are computed once more in the backward pass.
    pub recompute: Recompute,
    /// The time that ranks compute.
    pub compute: ComputeTime,
    /// Time of the update of parameters.
    pub optimizer: Time,
    /// `true` if gradients of a layer are reduced while those of earlier layers are computed.
    pub overlap: bool,
    /// `true` if gradients are reduced and scattered, and updated parameters gathered; otherwise gradients are
    /// all-reduced.
    pub distributed_optimizer: bool,
    /// Channels of collectives of tensor groups.
    pub tp_channels: u32,
    /// Channels of other collectives.
    pub channels: u32,
    /// Pieces of each message.
    pub chunks: u32,
    /// Set if collectives of groups with several ranks in each of several servers go inside servers and across them in
    /// steps of their own.
    pub hierarchy: bool,
    /// Without packets: set if all messages of a ring from a rank to the next are one flow.
    pub merged_rings: bool,
    /// Number of iterations.
    pub iterations: u32,
    /// Start of the first one.
    pub start: Time,
    /// The host of each rank; `None`: all hosts.
    pub hosts: Option<Vec<NodeId>>,
    /// The factors by which computations are longer, and the latency of each step of communication.
    pub pace: Pace,
}

/// A dimension in which process groups are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Tensor,
    Context,
    /// The ranks that have the same parameters, but for experts.
    Data,
    Experts,
    /// The ranks that have the same experts.
    ExpertData,
}

impl Dimension {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Tensor, "tp"),
        (Self::Context, "cp"),
        (Self::Data, "dp"),
        (Self::Experts, "ep"),
        (Self::ExpertData, "edp"),
    ];
}

impl Training {
    /// Returns the messages and tasks of all iterations. Nothing but the loads of experts and the times of computations
    /// is random.
    ///
    /// # Errors
    /// Names the parameter that cannot be used, with these others or on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Workload, FieldError> {
        let hosts = self.check_hosts(topology)?;
        if self.hierarchy && topology.servers.is_none() {
            let error = FieldError::new("hierarchy", "there are no servers");
            return Err(error.help("add for instance `scale_up = { size = 8 }` to `[topology]`"));
        }
        self.job(seed, group)?.generate(topology, &hosts, group, self.start, &self.pace)
    }

    /// Returns the approximate number of messages.
    ///
    /// # Errors
    /// As [`Training::job`].
    pub fn expected_flows(&self) -> Result<f64, FieldError> {
        let one = Self { iterations: 1, ..self.clone() };
        Ok(one.job(0, 0)?.expected_flows() * f64::from(self.iterations))
    }

    /// Returns the operations of all iterations. `seed` and `group` are for the loads of experts.
    ///
    /// # Errors
    /// Names the parameter that cannot be used with the others.
    pub fn job(&self, seed: u64, group: u32) -> Result<Job, FieldError> {
        self.check()?;
        let (groups, places) = self.groups();
        let loads = Loads::drawn(self, seed, group);
        Ok(program::write(self, Job::new(self.n_ranks(), groups), places, &loads))
    }

    /// Returns the number of ranks.
    pub fn n_ranks(&self) -> u32 {
        let p = &self.parallelism;
        p.tp.saturating_mul(p.cp).saturating_mul(p.dp).saturating_mul(p.pp)
    }

    /// Returns the process groups of more than one rank, and for each dimension the numbers of its groups.
    ///
    /// Ranks count as Megatron orders them: tensor first, then context, data and pipeline. Experts divide the ranks of
    /// context and data together, those next to each other first.
    fn groups(&self) -> (Vec<ProcessGroup>, Vec<Vec<usize>>) {
        let p = &self.parallelism;
        let copies = p.cp * p.dp;
        // Rank number `lane` of a stage in tensor place `t` and place `c` among copies.
        let stages = |ranks: &dyn Fn(u32) -> Vec<Vec<u32>>| -> Vec<Vec<u32>> {
            (0..p.pp).flat_map(|stage| ranks(stage * p.tp * copies)).collect()
        };
        let line = |first: u32, step: u32, n: u32| (0..n).map(|at| first + at * step).collect::<Vec<u32>>();
        let of = |dimension: Dimension| match dimension {
            Dimension::Tensor => stages(&|base| (0..copies).map(|c| line(base + c * p.tp, 1, p.tp)).collect()),
            Dimension::Context => stages(&|base| {
                (0..p.dp).flat_map(|d| (0..p.tp).map(move |t| line(base + d * p.cp * p.tp + t, p.tp, p.cp))).collect()
            }),
            Dimension::Data => stages(&|base| (0..p.tp).map(|t| line(base + t, p.tp, copies)).collect()),
            Dimension::Experts => stages(&|base| {
                let blocks = (0..copies / p.ep).flat_map(|block| (0..p.tp).map(move |t| (block, t)));
                blocks.map(|(block, t)| line(base + block * p.ep * p.tp + t, p.tp, p.ep)).collect()
            }),
            Dimension::ExpertData => stages(&|base| {
                let places = (0..p.ep).flat_map(|e| (0..p.tp).map(move |t| (e, t)));
                places.map(|(e, t)| line(base + e * p.tp + t, p.ep * p.tp, copies / p.ep)).collect()
            }),
        };
        let (mut groups, mut places) = (Vec::new(), Vec::new());
        for (dimension, name) in Dimension::ALL {
            let is_of_experts = matches!(dimension, Dimension::Experts | Dimension::ExpertData);
            let all = if is_of_experts && self.model.experts == 0 { Vec::new() } else { of(dimension) };
            let first = groups.len();
            let named = (0..).zip(all).filter(|(_, ranks)| 1 < ranks.len());
            groups.extend(named.map(|(at, ranks): (u32, _)| ProcessGroup { name: format!("{name}{at}"), ranks }));
            places.push((first..groups.len()).collect());
        }
        (groups, places)
    }

    /// Returns the place of a rank among those that share experts with it.
    fn place_of(&self, rank: u32) -> u32 {
        let p = &self.parallelism;
        rank / p.tp % (p.cp * p.dp) % p.ep
    }

    fn check_hosts(&self, topology: &Topology) -> Result<Vec<NodeId>, FieldError> {
        let hosts: Vec<NodeId> = match &self.hosts {
            Some(named) => named.iter().map(|&node| host("hosts", topology, node)).collect::<Result<_, _>>()?,
            None => topology.hosts().collect(),
        };
        let ranks = self.n_ranks();
        if hosts.len() != ranks as usize {
            let p = &self.parallelism;
            let message = format!(
                "`tp`, `cp`, `dp` and `pp` make {} x {} x {} x {} = {ranks} ranks, and there are {} hosts",
                p.tp,
                p.cp,
                p.dp,
                p.pp,
                hosts.len()
            );
            return Err(FieldError::new("hosts", message).help("name a host for each rank, as `hosts = [\"h0-h7\"]`"));
        }
        Ok(hosts)
    }

    /// Checks that there are not too many operations, and that none is too large.
    fn check_sizes(&self) -> Result<(), FieldError> {
        let passes = f64::from(self.iterations) * f64::from(self.microbatches) * f64::from(self.model.layers);
        let again = if self.recompute == Recompute::Full { OPERATIONS_OF_A_LAYER / 2.0 } else { 0.0 };
        // A rank has the layers of one stage.
        let ranks = f64::from(self.n_ranks()) / f64::from(self.parallelism.pp);
        let operations = passes * ranks * (OPERATIONS_OF_A_LAYER + again);
        if MOST_OPERATIONS < operations {
            let message = format!("this makes about {operations:.0} operations of ranks");
            let help = format!("up to {MOST_OPERATIONS:.0} are possible; simulate fewer iterations or layers");
            return Err(FieldError::new("layers", message).help(help));
        }
        let parameters = [self.layer_parameters(), self.expert_parameters(), self.vocabulary_parameters()];
        let parameters = u64::from(self.model.layers).saturating_mul(parameters.iter().sum());
        let sizes = [self.activations(), self.keys_and_values(), self.dispatched(), self.gradients(parameters)];
        match sizes.iter().find(|&&bytes| LARGEST <= bytes) {
            Some(bytes) => {
                let message = format!("an operation of {} GB", bytes.as_u64() / 1_000_000_000);
                Err(FieldError::new("hidden", message).help("choose a smaller model"))
            }
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<(), FieldError> {
        let (m, p) = (&self.model, &self.parallelism);
        let error = |field, message: String, help: &str| Err(FieldError::new(field, message).help(help));
        let divides = |field, what: &str, whole: u64, by: &str, n: u64| {
            if n != 0 && whole.is_multiple_of(n) {
                return Ok(());
            }
            let message = format!("{what} {whole} cannot be divided by {by} {n}");
            Err(FieldError::new(field, message).help("choose numbers that divide each other"))
        };
        let v = self.virtual_stages;
        let by = if v == 1 { "`pp`" } else { "`pp` x `virtual_stages`" };
        divides("layers", "`layers`", m.layers.into(), by, u64::from(p.pp) * u64::from(v))?;
        if 1 < v {
            if p.pp == 1 {
                let message = format!("`virtual_stages = {v}` without a pipeline");
                return error("virtual_stages", message, "add for instance `pp = 2`, or remove `virtual_stages`");
            }
            divides("microbatches", "`microbatches`", self.microbatches.into(), "`pp`", p.pp.into())?;
        }
        if self.recompute == Recompute::Selective && matches!(self.compute, ComputeTime::PerLayer { .. }) {
            let message = "the time of attention alone is not known from that of a layer".to_owned();
            return error("recompute", message, "write `tflops` in place of `forward`, or `recompute = \"full\"`");
        }
        divides("hidden", "`hidden`", m.hidden, "`heads`", m.heads.into())?;
        divides("heads", "`heads`", m.heads.into(), "`tp`", p.tp.into())?;
        divides("heads", "`heads`", m.heads.into(), "`kv_heads`", m.kv_heads.into())?;
        divides("ffn", "`ffn`", m.ffn, "`tp`", p.tp.into())?;
        let cut = if p.sequence_parallel { p.cp * p.tp } else { p.cp };
        let by = if p.sequence_parallel { "`cp` x `tp`" } else { "`cp`" };
        divides("sequence", "`sequence`", m.sequence, by, cut.into())?;
        if m.experts == 0 {
            if 1 < p.ep {
                return error("ep", format!("`ep = {}` divides no experts", p.ep), "add `experts`, or remove `ep`");
            }
            return self.check_sizes();
        }
        divides("ep", "`cp` x `dp`, which `ep` divides,", (p.cp * p.dp).into(), "`ep`", p.ep.into())?;
        divides("experts", "`experts`", m.experts.into(), "`ep`", p.ep.into())?;
        if m.experts < m.top_k {
            let message = format!("a token goes to {} of {} experts", m.top_k, m.experts);
            return error("top_k", message, "let `top_k` be `experts` at most");
        }
        if m.imbalance != 1.0 && !(1.0..f64::from(p.ep)).contains(&m.imbalance) {
            let message = format!("an imbalance of {} among {} ranks that share experts", m.imbalance, p.ep);
            return error("imbalance", message, "write a number from 1 to less than `ep`");
        }
        if 1 < p.tp && !p.sequence_parallel {
            let message = "experts with tensor parallelism need sequence parallelism".to_owned();
            return error("sequence_parallel", message, "write `sequence_parallel = true`");
        }
        self.check_sizes()
    }
}

/// Returns a size that does not overflow.
fn bytes(factors: &[u64]) -> Bytes {
    Bytes::new(factors.iter().fold(1, |product, &factor| factor.saturating_mul(product)))
}
