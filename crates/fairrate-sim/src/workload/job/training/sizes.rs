//! Bytes, operations and parameters of a training job, for one rank.

use fairrate_units::{Bytes, Time};

use super::{ComputeTime, Training, bytes};

/// A part of the model whose computation takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// Attention, with the projections before and after.
    Attention,
    /// Attention without these: what each token takes from the others.
    Core,
    /// The matrices after it, or the experts and their router.
    Mlp,
    /// The matrix from activations to the vocabulary.
    Output,
}

/// A pass through the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// From tokens to the loss.
    Forward,
    /// A part of that once more, for activations that were not kept.
    Recomputation,
    /// Back from there to the gradients.
    Backward,
}

impl Pass {
    /// Returns the name of its computations in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Recomputation => "recomputation",
            Self::Backward => "backward",
        }
    }
}

impl Training {
    /// Tokens of a micro-batch that a tensor group has: b·s/cp.
    fn tokens(&self) -> u64 {
        self.model.micro_batch * self.model.sequence / u64::from(self.parallelism.cp)
    }

    fn tp(&self) -> u64 {
        self.parallelism.tp.into()
    }

    /// Width of keys, and of values.
    fn kv_width(&self) -> u64 {
        self.model.hidden / u64::from(self.model.heads) * u64::from(self.model.kv_heads)
    }

    /// Matrices after attention.
    fn matrices(&self) -> u64 {
        if self.model.gated { 3 } else { 2 }
    }

    /// Bytes of the activations between layers, of a whole tensor group: b·s·h numbers (Narayanan et al., section 3.2).
    pub(super) fn activations(&self) -> Bytes {
        bytes(&[self.tokens(), self.model.hidden, self.model.dtype_bytes])
    }

    /// Bytes that a rank hands to the next stage: with sequence parallelism only its part.
    pub(super) fn boundary(&self) -> Bytes {
        let parts = if self.parallelism.sequence_parallel { self.tp() } else { 1 };
        Bytes::new(self.activations().as_u64() / parts)
    }

    /// Bytes of the all-reduces of the loss of a vocabulary that is divided: a number of four bytes a token.
    pub(super) fn loss(&self) -> Bytes {
        bytes(&[self.tokens(), 4])
    }

    /// Bytes of keys and values of a whole sequence, at one rank of a tensor group.
    pub(super) fn keys_and_values(&self) -> Bytes {
        let m = &self.model;
        bytes(&[2, m.micro_batch, m.sequence, self.kv_width() / self.tp().min(u64::from(m.kv_heads)), m.dtype_bytes])
    }

    /// Bytes that a rank sends to experts and gets back: each of its tokens goes to `top_k` of them.
    pub(super) fn dispatch(&self) -> Bytes {
        bytes(&[self.tokens() / self.tp(), self.model.top_k.into(), self.model.hidden, self.model.dtype_bytes])
    }

    /// Bytes of the tokens that the ranks of a tensor group have got for their experts, under a mean load.
    pub(super) fn dispatched(&self) -> Bytes {
        bytes(&[self.dispatch().as_u64(), self.tp()])
    }

    /// Time of experts and their router for a micro-batch, at a rank that gets `load` times as many tokens as the mean.
    pub(super) fn experts_time(&self, pass: Pass, load: f64) -> Time {
        match self.compute {
            ComputeTime::Tflops(tflops) => time_of(pass, self.operations_under(Block::Mlp, load), tflops),
            ComputeTime::PerLayer { .. } => {
                Time::from_ps((self.time(Block::Mlp, pass).as_ps() as f64 * load + 0.5) as u64)
            }
        }
    }

    /// Time of a block for a micro-batch. A backward pass has twice the operations.
    pub(super) fn time(&self, block: Block, pass: Pass) -> Time {
        let forward = match (self.compute, block) {
            (ComputeTime::Tflops(tflops), _) => return time_of(pass, self.operations_under(block, 1.0), tflops),
            (ComputeTime::PerLayer { .. }, Block::Output | Block::Core) => return Time::ZERO,
            (ComputeTime::PerLayer { backward, .. }, _) if pass == Pass::Backward => backward,
            (ComputeTime::PerLayer { forward, .. }, _) => forward,
        };
        let half = Time::from_ps(forward.as_ps() / 2);
        if block == Block::Attention { half } else { forward.saturating_sub(half) }
    }

    /// Multiplications and additions of a rank in the forward pass of a block (Narayanan et al., appendix): 2·m·k·n for
    /// a product of matrices of m·k and k·n numbers. Experts get `load` times as many tokens as the mean.
    fn operations_under(&self, block: Block, load: f64) -> f64 {
        let m = &self.model;
        let (tokens, h, kv) = (self.tokens() as f64, m.hidden as f64, self.kv_width() as f64);
        let mlp = 2.0 * tokens * h * m.ffn as f64 * self.matrices() as f64;
        let core = 4.0 * tokens * m.sequence as f64 * h;
        let all = match block {
            Block::Attention => tokens * h * (4.0 * h + 4.0 * kv) + core,
            Block::Core => core,
            Block::Mlp if m.experts == 0 => mlp,
            Block::Mlp => load * f64::from(m.top_k) * mlp + 2.0 * tokens * h * f64::from(m.experts),
            Block::Output => 2.0 * tokens * h * m.vocabulary as f64,
        };
        all / self.tp() as f64
    }

    /// Parameters of a layer at a rank that all of its data group have: matrices and the weights of two norms, without
    /// biases.
    pub(super) fn layer_parameters(&self) -> u64 {
        let m = &self.model;
        let attention = m.hidden * (2 * m.hidden + 2 * self.kv_width()) / self.tp();
        let rest = if m.experts == 0 { self.mlp_parameters() } else { m.hidden * u64::from(m.experts) };
        attention + rest + 2 * m.hidden
    }

    /// Parameters of a layer at a rank that only ranks with the same experts have.
    pub(super) fn expert_parameters(&self) -> u64 {
        u64::from(self.model.experts / self.parallelism.ep) * self.mlp_parameters()
    }

    fn mlp_parameters(&self) -> u64 {
        self.matrices() * self.model.hidden * self.model.ffn / self.tp()
    }

    /// Parameters of the embedding at a rank of the first stage, and of the output at one of the last stage.
    pub(super) fn vocabulary_parameters(&self) -> u64 {
        self.model.vocabulary * self.model.hidden / self.tp()
    }

    /// Bytes of the gradients of some parameters.
    pub(super) fn gradients(&self, parameters: u64) -> Bytes {
        bytes(&[parameters, self.model.gradient_bytes])
    }

    /// Bytes of some parameters.
    pub(super) fn weights(&self, parameters: u64) -> Bytes {
        bytes(&[parameters, self.model.dtype_bytes])
    }
}

/// Returns the time of a pass at 10^12 times `tflops` operations a second, of which the forward pass has `forward`.
fn time_of(pass: Pass, forward: f64, tflops: f64) -> Time {
    let passes = if pass == Pass::Backward { 2.0 } else { 1.0 };
    Time::from_ps((passes * forward / tflops + 0.5) as u64)
}
