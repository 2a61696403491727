//! Deadlines of flows.

use std::collections::HashMap;

use fairrate_units::Time;

use super::Block;
use crate::config::FlowSpec;
use crate::rng::Purpose;

/// The deadlines of a traffic block's flows, from their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadlines {
    /// The same deadline for all flows.
    Fixed(Time),
    /// A deadline drawn for each flow.
    Drawn {
        /// The distribution.
        spread: Spread,
        /// The mean of the distribution, before `least` raises any deadline.
        mean: Time,
        /// The smallest deadline: smaller draws are raised to it.
        least: Time,
    },
}

/// The distributions of random deadlines around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Exponential, as in the experiments of D3 and D2TCP.
    Exponential,
    /// Uniform from zero to twice the mean.
    Uniform,
}

impl Spread {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("exponential", Self::Exponential), ("uniform", Self::Uniform)];
}

impl Deadlines {
    /// Gives every flow of block number `group` its deadline. Each sender draws from its own stream, in the order of
    /// its flows.
    pub fn assign(&self, flows: &mut [FlowSpec], seed: u64, group: u32) {
        let (block, mut streams) = (Block::new(seed, group), HashMap::new());
        for flow in flows {
            let stream = streams.entry(flow.src).or_insert_with(|| block.stream(flow.src, Purpose::Deadline));
            flow.deadline = Some(match *self {
                Self::Fixed(deadline) => deadline,
                Self::Drawn { spread, mean, least } => {
                    let mean_ps = mean.as_ps() as f64;
                    let drawn_ps = match spread {
                        Spread::Exponential => stream.exponential(mean_ps),
                        Spread::Uniform => 2.0 * mean_ps * stream.uniform(),
                    };
                    Time::from_ps(drawn_ps as u64).max(least)
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use fairrate_units::Bytes;

    /// Returns flows of hosts 0 and 1 in turn.
    fn flows(n: usize) -> Vec<FlowSpec> {
        (0..n).map(|i| FlowSpec::new(NodeId(i as u32 % 2), NodeId(2), Bytes::new(1), Time::from_us(i as u64))).collect()
    }

    fn of(deadlines: Deadlines, mut flows: Vec<FlowSpec>, seed: u64) -> Vec<Time> {
        deadlines.assign(&mut flows, seed, 0);
        flows.iter().map(|flow| flow.deadline.unwrap()).collect()
    }

    #[test]
    fn drawn_deadlines_have_their_mean_and_least() {
        let drawn = |spread, least| Deadlines::Drawn { spread, mean: Time::from_ms(20), least };
        let mean_ms = |times: &[Time]| times.iter().map(|t| t.as_secs_f64() * 1e3).sum::<f64>() / times.len() as f64;
        // Standard errors of 20 ms / sqrt(40,000) = 0.1 ms and, for the uniform one, 0.058 ms.
        for (spread, error) in [(Spread::Exponential, 0.4), (Spread::Uniform, 0.23)] {
            let times = of(drawn(spread, Time::ZERO), flows(40_000), 1);
            assert!((mean_ms(&times) - 20.0).abs() < error, "{spread:?}: {}", mean_ms(&times));
            assert!(times.iter().any(|&t| t < Time::from_ms(1)));
        }
        // Raising deadlines below 3 ms adds the integral of P(X < x) from 0 to 3 ms: 3 - 20 (1 - exp(-3/20)) = 0.214
        // ms.
        let times = of(drawn(Spread::Exponential, Time::from_ms(3)), flows(40_000), 1);
        assert_eq!(times.iter().min(), Some(&Time::from_ms(3)));
        assert!((mean_ms(&times) - 20.214).abs() < 0.4, "{}", mean_ms(&times));
    }

    #[test]
    fn a_sender_draws_the_same_whatever_others_send() {
        let drawn = Deadlines::Drawn { spread: Spread::Exponential, mean: Time::from_ms(20), least: Time::ZERO };
        let both = of(drawn, flows(10), 7);
        let alone = of(drawn, flows(10).into_iter().step_by(2).collect(), 7);
        assert_eq!(alone, both.iter().copied().step_by(2).collect::<Vec<_>>());
        assert_ne!(both, of(drawn, flows(10), 8));
        assert_eq!(of(Deadlines::Fixed(Time::from_us(3)), flows(2), 7), [Time::from_us(3); 2]);
    }
}
