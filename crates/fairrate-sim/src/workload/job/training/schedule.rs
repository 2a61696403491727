//! The order of passes in a stage of a pipeline.

use super::sizes::Pass;

/// A pass of a micro-batch through a part of the model that a stage has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The pass.
    pub(super) pass: Pass,
    /// The part, from 0 on.
    pub(super) chunk: u32,
    /// The micro-batch.
    pub(super) microbatch: u32,
}

/// The schedule of a pipeline of `stages` with `chunks` parts of the model in each.
///
/// Some forward passes come first, then one forward and one backward pass in turn, then backward passes. With several
/// parts, micro-batches go in groups of as many as there are stages through one part after the other, and the number of
/// micro-batches is a multiple of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// Number of stages.
    pub(super) stages: u32,
    /// Parts of the model in each stage.
    pub(super) chunks: u32,
    /// Number of micro-batches.
    pub(super) microbatches: u32,
}

impl Schedule {
    /// Returns the passes of a stage in order.
    pub(super) fn steps(self, stage: u32) -> Vec<Step> {
        let n = self.microbatches * self.chunks;
        let behind = self.stages - stage - 1;
        let early = if self.chunks == 1 { behind } else { 2 * behind + (self.chunks - 1) * self.stages };
        let early = early.min(n);
        let forward = |at| self.step(Pass::Forward, at);
        let backward = |at| self.step(Pass::Backward, at);
        let in_turn = (early..n).flat_map(|at| [forward(at), backward(at - early)]);
        (0..early).map(forward).chain(in_turn).chain((n - early..n).map(backward)).collect()
    }

    /// Returns the pass number `at` of its kind.
    fn step(self, pass: Pass, at: u32) -> Step {
        let round = self.stages * self.chunks;
        let (group, place) = (at / round, at % round);
        let chunk = place / self.stages;
        let chunk = if pass == Pass::Backward { self.chunks - 1 - chunk } else { chunk };
        Step { pass, chunk, microbatch: group * self.stages + place % self.stages }
    }

    /// Returns the stage and part that come after a part of a stage in the forward pass; `None` after the last one.
    pub(super) fn next(self, (stage, chunk): (u32, u32)) -> Option<(u32, u32)> {
        if stage + 1 < self.stages {
            return Some((stage + 1, chunk));
        }
        (chunk + 1 < self.chunks).then_some((0, chunk + 1))
    }

    /// Returns the stage and part that come before a part of a stage in the forward pass; `None` before the first one.
    pub(super) fn previous(self, (stage, chunk): (u32, u32)) -> Option<(u32, u32)> {
        if 0 < stage {
            return Some((stage - 1, chunk));
        }
        (0 < chunk).then(|| (self.stages - 1, chunk - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every micro-batch goes once forward and once backward through each part, forward first; a stage holds no more
    /// activations than the schedule says.
    #[test]
    fn every_micro_batch_passes_every_part_twice() {
        for (stages, chunks, microbatches) in
            [(1, 1, 3), (4, 1, 2), (4, 1, 9), (2, 2, 4), (4, 2, 8), (4, 3, 4), (8, 4, 16)]
        {
            let schedule = Schedule { stages, chunks, microbatches };
            for stage in 0..stages {
                let steps = schedule.steps(stage);
                assert_eq!(steps.len() as u32, 2 * microbatches * chunks);
                for chunk in 0..chunks {
                    for microbatch in 0..microbatches {
                        let at = |pass| steps.iter().position(|step| *step == Step { pass, chunk, microbatch });
                        let (forward, backward) = (at(Pass::Forward), at(Pass::Backward));
                        assert!(forward.expect("it goes forward") < backward.expect("it goes back"));
                    }
                }
            }
        }
    }

    /// The interleaved schedule of Narayanan et al., figure 4: four stages with two parts each, eight micro-batches;
    /// the first stage.
    #[test]
    fn micro_batches_go_in_groups_through_one_part_after_the_other() {
        let steps = Schedule { stages: 4, chunks: 2, microbatches: 8 }.steps(0);
        let forward = steps.iter().filter(|step| step.pass == Pass::Forward).map(|step| (step.chunk, step.microbatch));
        let group = |first: u32| (0..2).flat_map(move |chunk| (first..first + 4).map(move |at| (chunk, at)));
        assert!(forward.eq(group(0).chain(group(4))));
        assert!(steps[..10].iter().all(|step| step.pass == Pass::Forward), "ten forward passes come first");
        assert_eq!(steps[11], Step { pass: Pass::Backward, chunk: 1, microbatch: 0 });
    }
}
