//! The times that ranks of a job take besides their messages: computations that differ, and the latency of a step.

use fairrate_units::Time;

use crate::ids::NodeId;
use crate::input_error::FieldError;
use crate::rng::{Purpose, Stream, mix64};
use crate::topology::Topology;

/// The time that a rank takes, each time, to begin to send: the α of an α-β model, as for starting a kernel and shaking
/// hands.
///
/// It passes before the first message of an operation, and between a receipt and the messages that need it. A message
/// that only follows the one before on its channel has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepLatency {
    /// Between NICs.
    pub outside: Time,
    /// Inside a server; `None`: the same.
    pub inside: Option<Time>,
}

impl StepLatency {
    /// Returns the latency of a step that is a message sent by this end point.
    pub fn of(self, topology: &Topology, src: NodeId) -> Time {
        self.inside.filter(|_| topology.is_scale_up(src)).unwrap_or(self.outside)
    }
}

/// The times that a job's ranks take besides their messages: the factors by which computations are longer than it says,
/// and the latency of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// The hosts that are slow, ascending.
    pub stragglers: Vec<NodeId>,
    /// The factor of theirs.
    pub factor: f64,
    /// Every computation takes longer by a share drawn uniformly from zero to this.
    pub jitter: f64,
    /// The seed of the run and the traffic block, which the draws go by.
    pub seed: u64,
    /// The traffic block.
    pub group: u32,
    /// The latency of each step of communication.
    pub alpha: StepLatency,
}

impl Pace {
    /// All ranks compute as long as the job says, and begin to send at once.
    pub const EVEN: Self = Self {
        stragglers: Vec::new(),
        factor: 1.0,
        jitter: 0.0,
        seed: 0,
        group: 0,
        alpha: StepLatency { outside: Time::ZERO, inside: None },
    };

    /// Checks that stragglers are among the `hosts` of a job, and that there are servers if they have a latency.
    ///
    /// # Errors
    /// Names one that is not, or the latency.
    pub fn check(&self, topology: &Topology, hosts: &[NodeId]) -> Result<(), FieldError> {
        if self.alpha.inside.is_some() && topology.servers.is_none() {
            let help = "remove `alpha_inside`, or add for instance `scale_up = { size = 8 }` to `[topology]`";
            return Err(FieldError::new("alpha_inside", "there are no servers").help(help));
        }
        match self.stragglers.iter().find(|host| !hosts.contains(host)) {
            None => Ok(()),
            Some(other) => {
                let message = format!("`{}` is no rank of this job", topology.nodes[other.index()].name);
                Err(FieldError::new("stragglers", message).help("name `hosts` of the job"))
            }
        }
    }

    /// Returns the time that `host` takes for computation `number` of the job, which says `usual`. It depends on
    /// nothing else.
    pub fn time(&self, usual: Time, host: NodeId, number: u64) -> Time {
        let mut factor = if self.stragglers.binary_search(&host).is_ok() { self.factor } else { 1.0 };
        if 0.0 < self.jitter {
            let entity = mix64(u64::from(self.group)) ^ number;
            factor *= 1.0 + self.jitter * Stream::new(self.seed, entity, Purpose::ComputeJitter).uniform();
        }
        if factor == 1.0 || usual == Time::ZERO {
            usual
        } else {
            Time::from_ps((usual.as_ps() as f64 * factor).round() as u64)
        }
    }

    /// Returns the time that a rank of a collective takes before an iteration.
    pub fn time_before(&self, usual: Time, ranks: &[NodeId], rank: usize, iteration: u32) -> Time {
        self.time(usual, ranks[rank], u64::from(iteration) * ranks.len() as u64 + rank as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stragglers_take_their_factor_and_jitter_adds_up_to_its_share() {
        let usual = Time::from_us(100);
        let slow = Pace { stragglers: vec![NodeId(3)], factor: 1.1, ..Pace::EVEN };
        assert_eq!(slow.time(usual, NodeId(3), 7), Time::from_us(110));
        assert_eq!(slow.time(usual, NodeId(2), 7), usual);
        let late = Pace { jitter: 0.2, seed: 1, ..Pace::EVEN };
        let shares: Vec<f64> =
            (0..10_000).map(|number| late.time(usual, NodeId(2), number).as_ps() as f64 / 1e8 - 1.0).collect();
        assert!(shares.iter().all(|share| (0.0..0.2).contains(share)));
        // A standard error is 0.2 / sqrt(12 * 10,000).
        let mean = shares.iter().sum::<f64>() / 1e4;
        assert!((mean - 0.1).abs() < 4.0 * 0.000_577, "{mean}");
        let other = Pace { group: 1, ..late.clone() };
        assert_ne!(late.time(usual, NodeId(2), 0), other.time(usual, NodeId(2), 0));
    }
}
