//! The operations of a training job in the order in which each rank does them.

use std::collections::HashMap;
use std::ops::Range;

use fairrate_units::{Bytes, Time};

use super::loads::Loads;
use super::schedule::{Schedule, Step};
use super::sizes::{Block, Pass};
use super::{Dimension, Recompute, Training};
use crate::workload::job::{Job, PartId, collective_of};
use crate::workload::{Collective, CollectiveAlgorithm, Op, Sizes};

/// Returns the operations of all iterations; `places` has the groups of each dimension.
pub(super) fn write(training: &Training, job: Job, places: Vec<Vec<usize>>, loads: &Loads) -> Job {
    let n = job.n_ranks() as usize;
    let mut program = Program {
        training,
        job,
        places,
        loads,
        iteration: 0,
        ranks: vec![Rank::default(); n],
        messages: HashMap::new(),
        buckets: Vec::new(),
    };
    for iteration in 0..training.iterations {
        program.iteration = iteration;
        program.messages.clear();
        (0..training.parallelism.pp).for_each(|stage| program.write_stage(stage));
    }
    program.job
}

/// A job while it is written.
struct Program<'a> {
    training: &'a Training,
    job: Job,
    places: Vec<Vec<usize>>,
    loads: &'a Loads,
    iteration: u32,
    ranks: Vec<Rank>,
    /// The parts of sender and receiver in messages between stages.
    messages: HashMap<Message, (PartId, PartId)>,
    /// Gradients that are to be reduced after the backward pass: parameters, and the dimension.
    buckets: Vec<(u64, Dimension)>,
}

/// The state of a rank.
#[derive(Clone, Default)]
struct Rank {
    /// The parts that the next operation waits for.
    last: Vec<PartId>,
    /// Computation that no operation has followed yet.
    pending: Option<(Pass, Time)>,
    /// The last reductions of gradients: of all ranks' parameters, and of experts. They go one after the other.
    reduced: [Option<PartId>; 2],
    /// Messages sent in this iteration.
    sent: Vec<PartId>,
}

/// A message between stages: the sender, the part of the model there, the pass and the micro-batch.
type Message = (u32, u32, bool, u32);

impl Program<'_> {
    /// Writes an iteration of a stage.
    fn write_stage(&mut self, stage: u32) {
        for step in self.schedule().steps(stage) {
            match step.pass {
                Pass::Backward => self.backward(stage, step),
                _ => self.forward(stage, step),
            }
        }
        self.update(stage);
    }

    fn schedule(&self) -> Schedule {
        let t = self.training;
        Schedule { stages: t.parallelism.pp, chunks: t.virtual_stages, microbatches: t.microbatches }
    }

    /// Returns the ranks of a stage.
    fn stage(&self, stage: u32) -> Range<u32> {
        let n = self.job.n_ranks() / self.training.parallelism.pp;
        stage * n..(stage + 1) * n
    }

    fn is_last(&self, stage: u32) -> bool {
        stage + 1 == self.training.parallelism.pp
    }

    /// Returns the number of layers of a stage.
    fn layers(&self) -> u32 {
        self.training.model.layers / self.training.parallelism.pp
    }

    /// Returns the layers of a part of the model at a stage.
    fn layers_of(&self, (stage, chunk): (u32, u32)) -> Range<u32> {
        let n = self.layers() / self.training.virtual_stages;
        let first = (chunk * self.training.parallelism.pp + stage) * n;
        first..first + n
    }

    /// Writes the forward pass of a micro-batch through a part of the model.
    fn forward(&mut self, stage: u32, step: Step) {
        let t = self.training;
        let here = (stage, step.chunk);
        match self.schedule().previous(here) {
            None => self.reduce_activations(stage, "embedding"),
            Some(from) => self.receive(from, stage, step),
        }
        for layer in self.layers_of(here) {
            self.attention(stage, Pass::Forward);
            self.mlp(stage, layer, Pass::Forward);
        }
        if let Some((to, _)) = self.schedule().next(here) {
            self.send(here, to, step);
            return;
        }
        self.gather_activations(stage, "logits");
        self.compute(stage, Block::Output, Pass::Forward);
        (0..3).for_each(|_| self.collective(stage, Dimension::Tensor, ("loss", Op::AllReduce, t.loss())));
    }

    /// Writes the backward pass of a micro-batch through a part of the model, and after the last one the reduction of
    /// gradients.
    fn backward(&mut self, stage: u32, step: Step) {
        let t = self.training;
        let here = (stage, step.chunk);
        let is_end = step.microbatch + 1 == t.microbatches;
        if let Some(from) = self.schedule().next(here) {
            self.receive(from, stage, step);
        } else {
            self.compute(stage, Block::Output, Pass::Backward);
            self.reduce_activations(stage, "logits");
            self.add_bucket(stage, is_end, t.vocabulary_parameters() + t.model.hidden, Dimension::Data);
        }
        for layer in self.layers_of(here).rev() {
            if t.recompute == Recompute::Full {
                self.attention(stage, Pass::Recomputation);
                self.mlp(stage, layer, Pass::Recomputation);
            }
            self.mlp(stage, layer, Pass::Backward);
            self.attention(stage, Pass::Backward);
            self.add_bucket(stage, is_end, t.layer_parameters(), Dimension::Data);
            self.add_bucket(stage, is_end, t.expert_parameters(), Dimension::ExpertData);
        }
        if let Some((to, _)) = self.schedule().previous(here) {
            self.send(here, to, step);
        } else {
            if t.parallelism.sequence_parallel {
                self.gather_activations(stage, "embedding");
            }
            self.add_bucket(stage, is_end, t.vocabulary_parameters(), Dimension::Data);
        }
    }

    /// Writes attention with its projections: tokens of a sequence come together before it if ranks have a part each.
    fn attention(&mut self, stage: u32, pass: Pass) {
        let kv = self.training.keys_and_values();
        self.gather_activations(stage, "attention");
        self.collective(stage, Dimension::Context, ("keys and values", Op::AllGather, kv));
        if pass == Pass::Backward && self.training.recompute == Recompute::Selective {
            self.compute(stage, Block::Core, Pass::Recomputation);
        }
        self.compute(stage, Block::Attention, pass);
        if pass == Pass::Backward {
            self.collective(stage, Dimension::Context, ("keys and values", Op::ReduceScatter, kv));
        }
        self.reduce_activations(stage, "attention");
    }

    /// Writes the matrices after attention: with experts, tokens go to theirs and come back.
    fn mlp(&mut self, stage: u32, layer: u32, pass: Pass) {
        let t = self.training;
        if t.model.experts == 0 {
            self.gather_activations(stage, "mlp");
            self.compute(stage, Block::Mlp, pass);
            self.reduce_activations(stage, "mlp");
            return;
        }
        let sizes = self.loads.dispatch(layer, t.dispatch());
        let back = sizes.transposed();
        self.exchange(stage, "dispatch", &sizes);
        self.gather_tokens(stage, layer, Op::AllGather);
        for rank in self.stage(stage) {
            let load = self.loads.of(layer, t.place_of(rank));
            self.compute_at(rank, pass, t.experts_time(pass, load));
        }
        self.gather_tokens(stage, layer, Op::ReduceScatter);
        self.exchange(stage, "combine", &back);
    }

    /// Writes that tokens go to experts, or come back.
    fn exchange(&mut self, stage: u32, name: &str, sizes: &Sizes) {
        let bytes = self.training.dispatch();
        self.collective_by_group(stage, Dimension::Experts, (name, Op::AllToAll), |_| (bytes, sizes.clone()));
    }

    /// Writes that the ranks of a tensor group gather the tokens that they have got, or reduce and scatter what became
    /// of them.
    fn gather_tokens(&mut self, stage: u32, layer: u32, op: Op) {
        let (t, loads) = (self.training, self.loads);
        let mean = t.dispatched().as_f64();
        let bytes = |rank: u32| Bytes::new((mean * loads.of(layer, t.place_of(rank)) + 0.5) as u64);
        self.collective_by_group(stage, Dimension::Tensor, ("experts", op), |rank| (bytes(rank), Sizes::Even));
    }

    /// Writes that ranks of a tensor group get each other's activations, if they have a part each.
    fn gather_activations(&mut self, stage: u32, name: &str) {
        if self.training.parallelism.sequence_parallel {
            self.collective(stage, Dimension::Tensor, (name, Op::AllGather, self.training.activations()));
        }
    }

    /// Writes that ranks of a tensor group add up their activations, or the gradients of them.
    fn reduce_activations(&mut self, stage: u32, name: &str) {
        let op = if self.training.parallelism.sequence_parallel { Op::ReduceScatter } else { Op::AllReduce };
        self.collective(stage, Dimension::Tensor, (name, op, self.training.activations()));
    }

    /// Takes note of gradients that are complete if `is_end`: they are reduced from now on, or after the backward pass.
    fn add_bucket(&mut self, stage: u32, is_end: bool, parameters: u64, dimension: Dimension) {
        if !is_end || parameters == 0 {
            return;
        }
        if self.training.overlap {
            self.reduce(stage, parameters, dimension);
        } else {
            self.buckets.push((parameters, dimension));
        }
    }

    /// Writes the reduction of gradients, for which only the update waits.
    fn reduce(&mut self, stage: u32, parameters: u64, dimension: Dimension) {
        let t = self.training;
        let op = if t.distributed_optimizer { Op::ReduceScatter } else { Op::AllReduce };
        self.aside(stage, dimension, ("gradients", op, t.gradients(parameters)));
    }

    /// Writes the rest of an iteration: gradients that are not reduced yet, and the update of parameters.
    fn update(&mut self, stage: u32) {
        let t = self.training;
        for (parameters, dimension) in std::mem::take(&mut self.buckets) {
            self.reduce(stage, parameters, dimension);
        }
        self.join(stage);
        if Time::ZERO < t.optimizer {
            for rank in self.stage(stage) {
                let part = self.job.compute("optimizer", self.iteration, rank, t.optimizer);
                self.follow(rank, part);
            }
        }
        if t.distributed_optimizer {
            let layers = u64::from(self.layers());
            let ends = [stage == 0, self.is_last(stage)].iter().filter(|is_end| **is_end).count() as u64;
            let dense = layers * t.layer_parameters()
                + ends * t.vocabulary_parameters()
                + u64::from(self.is_last(stage)) * t.model.hidden;
            let experts = layers * t.expert_parameters();
            self.aside(stage, Dimension::Data, ("parameters", Op::AllGather, t.weights(dense)));
            self.aside(stage, Dimension::ExpertData, ("parameters", Op::AllGather, t.weights(experts)));
            self.join(stage);
        }
    }

    /// Lets the next operations of the ranks of a stage wait for all of this iteration.
    fn join(&mut self, stage: u32) {
        for rank in self.stage(stage) {
            self.flush(rank);
            let state = &mut self.ranks[rank as usize];
            let all = state.reduced.iter_mut().filter_map(Option::take).chain(state.sent.drain(..));
            state.last.extend(all);
        }
    }

    /// Adds computation; what follows it without an operation in between is one with it.
    fn compute(&mut self, stage: u32, block: Block, pass: Pass) {
        let time = self.training.time(block, pass);
        self.stage(stage).for_each(|rank| self.compute_at(rank, pass, time));
    }

    /// Adds computation of a rank.
    fn compute_at(&mut self, rank: u32, pass: Pass, time: Time) {
        if self.ranks[rank as usize].pending.is_some_and(|(of, _)| of != pass) {
            self.flush(rank);
        }
        let pending = &mut self.ranks[rank as usize].pending;
        *pending = Some((pass, pending.map_or(time, |(_, before)| before.saturating_add(time))));
    }

    /// Writes the computation that is pending at a rank.
    fn flush(&mut self, rank: u32) {
        let pending = self.ranks[rank as usize].pending.take();
        if let Some((pass, time)) = pending.filter(|&(_, time)| Time::ZERO < time) {
            let part = self.job.compute(pass.name(), self.iteration, rank, time);
            self.follow(rank, part);
        }
    }

    /// Lets a part wait for what is last at its rank.
    fn wait(&mut self, rank: u32, part: PartId) {
        for &before in &self.ranks[rank as usize].last {
            self.job.wait(part, before);
        }
    }

    /// Lets a part wait for what is last at its rank, and the next operation for it.
    fn follow(&mut self, rank: u32, part: PartId) {
        self.wait(rank, part);
        let last = &mut self.ranks[rank as usize].last;
        last.clear();
        last.push(part);
    }

    /// Writes a collective operation of the groups of a stage, for which the ranks wait.
    fn collective(&mut self, stage: u32, dimension: Dimension, (name, op, bytes): (&str, Op, Bytes)) {
        self.collective_by_group(stage, dimension, (name, op), |_| (bytes, Sizes::Even));
    }

    /// Does the same with the `sizes` of each group, as [`Program::parts`] takes them.
    fn collective_by_group(
        &mut self,
        stage: u32,
        dimension: Dimension,
        what: (&str, Op),
        sizes: impl Fn(u32) -> (Bytes, Sizes),
    ) {
        for (rank, part) in self.parts(stage, dimension, what, sizes) {
            self.follow(rank, part);
        }
    }

    /// Writes a collective operation for which the ranks do not wait. Those of a dimension go one after the other.
    fn aside(&mut self, stage: u32, dimension: Dimension, (name, op, bytes): (&str, Op, Bytes)) {
        let stream = usize::from(dimension == Dimension::ExpertData);
        for (rank, part) in self.parts(stage, dimension, (name, op), |_| (bytes, Sizes::Even)) {
            self.wait(rank, part);
            if let Some(before) = self.ranks[rank as usize].reduced[stream].replace(part) {
                self.job.wait(part, before);
            }
        }
    }

    /// Adds a collective operation to each group of a dimension in a stage; returns the ranks and their parts. `sizes`
    /// has the bytes of a rank and those of pairs in the group whose first rank it is given.
    fn parts(
        &mut self,
        stage: u32,
        dimension: Dimension,
        (name, op): (&str, Op),
        sizes: impl Fn(u32) -> (Bytes, Sizes),
    ) -> Vec<(u32, PartId)> {
        let t = self.training;
        let (ranks, mut parts) = (self.stage(stage), Vec::new());
        let at = Dimension::ALL.iter().position(|(other, _)| *other == dimension).unwrap_or(0);
        let algorithm = if op == Op::AllToAll { CollectiveAlgorithm::Direct } else { CollectiveAlgorithm::Ring };
        let channels = if dimension == Dimension::Tensor { t.tp_channels } else { t.channels };
        for group in self.places[at].clone() {
            let members = self.job.groups()[group].ranks.clone();
            let (bytes, sizes) = sizes(members[0]);
            if !ranks.contains(&members[0]) || bytes == Bytes::ZERO {
                continue;
            }
            for &rank in &members {
                self.flush(rank);
            }
            let flat = collective_of(op, algorithm, bytes, channels, t.chunks);
            let collective = Collective { hierarchy: t.hierarchy, sizes, merged_rings: t.merged_rings, ..flat };
            let first = self.job.collective(name, self.iteration, group, collective);
            parts.extend((0..).zip(members).map(|(at, rank)| (rank, Job::part(first, at))));
        }
        parts
    }

    /// Writes that the ranks of a stage hand activations of a part of the model, or the gradients of them, to those of
    /// another stage. They do not wait.
    fn send(&mut self, (stage, chunk): (u32, u32), to: u32, step: Step) {
        for rank in self.stage(stage) {
            self.flush(rank);
            let (part, _) = self.message((rank, chunk), to, step);
            self.wait(rank, part);
            self.ranks[rank as usize].sent.push(part);
        }
    }

    /// Writes that the ranks of a stage wait for activations, or the gradients of them, from a part of the model at
    /// another stage.
    fn receive(&mut self, (from, chunk): (u32, u32), stage: u32, step: Step) {
        let n = self.stage(stage).len() as u32;
        for rank in self.stage(stage) {
            self.flush(rank);
            let sender = from * n + rank % n;
            let (_, part) = self.message((sender, chunk), stage, step);
            self.follow(rank, part);
        }
    }

    /// Returns the parts of a message from a rank of a stage to the rank in its place of another one.
    fn message(&mut self, (from, chunk): (u32, u32), to: u32, step: Step) -> (PartId, PartId) {
        let n = self.job.n_ranks() / self.training.parallelism.pp;
        let ends = (from, to * n + from % n);
        let is_forward = step.pass == Pass::Forward;
        let (name, bytes) =
            (if is_forward { "activations" } else { "gradients of activations" }, self.training.boundary());
        let (job, iteration) = (&mut self.job, self.iteration);
        let key = (from, chunk, is_forward, step.microbatch);
        *self.messages.entry(key).or_insert_with(|| job.message(name, iteration, ends, bytes))
    }
}
