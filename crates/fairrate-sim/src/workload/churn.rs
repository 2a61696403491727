//! Flows that are added and removed one at a time, to measure how long rates take to settle (PERC section 4.2).

use fairrate_units::{Bytes, Time};

use super::{Block, few_enough, host};
use crate::config::{Change, FlowSpec, Trigger};
use crate::ids::{FlowId, NodeId};
use crate::input_error::FieldError;
use crate::rng::{Purpose, Stream};
use crate::topology::Topology;

/// Endless flows between random pairs of hosts. Once rates have settled, one flow is added; once they have settled
/// again, one of the active flows is removed, and so on in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Churn {
    /// Flows at the start.
    pub flows: u32,
    /// Additions and removals; the first is an addition.
    pub changes: u32,
    /// The hosts; `None`: all.
    pub hosts: Option<Vec<NodeId>>,
    /// Start of the first flows.
    pub start: Time,
}

impl Churn {
    /// Returns the flows, in the order in which they start, and the changes. Every pair of different hosts is equally
    /// likely, and so is every flow that can be removed.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(
        &self,
        topology: &Topology,
        seed: u64,
        group: u32,
    ) -> Result<(Vec<FlowSpec>, Vec<Change>), FieldError> {
        let hosts = self.hosts(topology)?;
        if self.flows == 0 {
            return Err(FieldError::new("flows", "`flows` must be at least 1"));
        }
        few_enough("flows", f64::from(self.flows) + f64::from(self.changes) / 2.0)?;
        let mut block = Block::new(seed, group);
        let mut pairs = block.stream(NodeId(0), Purpose::Participants);
        let mut removals = block.stream(NodeId(0), Purpose::Destinations);
        let mut add = |block: &mut Block| {
            let (src, dst) = pair(&hosts, &mut pairs);
            block.add(src, dst, Bytes::MAX, self.start, Time::MAX);
            FlowId(block.flows.len() as u32 - 1)
        };
        let mut active: Vec<FlowId> = (0..self.flows).map(|_| add(&mut block)).collect();
        let change = |i| {
            if i % 2 == 0 {
                let added = add(&mut block);
                block.flows[added.index()].trigger = Trigger::Change;
                active.push(added);
                Change::Start(added)
            } else {
                let at = removals.below(active.len() as u64) as usize;
                Change::Stop(active.swap_remove(at))
            }
        };
        let changes = (0..self.changes).map(change).collect();
        Ok((block.flows, changes))
    }

    /// Returns the hosts, ascending.
    fn hosts(&self, topology: &Topology) -> Result<Vec<NodeId>, FieldError> {
        let mut hosts = match &self.hosts {
            None => topology.hosts().collect(),
            Some(hosts) => hosts.iter().map(|&node| host("hosts", topology, node)).collect::<Result<Vec<_>, _>>()?,
        };
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.len() < 2 {
            return Err(FieldError::new("hosts", format!("flows need two different hosts, not {}", hosts.len())));
        }
        Ok(hosts)
    }
}

/// Draws two different hosts.
fn pair(hosts: &[NodeId], stream: &mut Stream) -> (NodeId, NodeId) {
    let src = stream.below(hosts.len() as u64) as usize;
    let dst = stream.below(hosts.len() as u64 - 1) as usize;
    (hosts[src], hosts[dst + usize::from(src <= dst)])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use fairrate_units::Rate;

    use super::*;
    use crate::topology::Star;

    fn topology() -> Topology {
        Star { hosts: 4, rate: Rate::from_gbps(100), delay: Time::from_us(1) }.build()
    }

    fn churn() -> Churn {
        Churn { flows: 32, changes: 3_000, hosts: None, start: Time::from_us(1) }
    }

    #[test]
    fn additions_and_removals_take_turns_and_fit_together() {
        let (flows, changes) = churn().generate(&topology(), 1, 0).unwrap();
        assert_eq!((flows.len(), changes.len()), (32 + 1_500, 3_000));
        let mut active: Vec<FlowId> = (0..32).map(FlowId).collect();
        for (i, change) in changes.iter().enumerate() {
            match *change {
                Change::Start(flow) => {
                    assert_eq!((i % 2, flow.index()), (0, 32 + i / 2));
                    active.push(flow);
                }
                Change::Stop(flow) => {
                    let at = active.iter().position(|&f| f == flow).expect("only what is there is removed");
                    active.remove(at);
                }
            }
        }
        assert_eq!(active.len(), 32);
        assert!(flows.iter().all(|flow| flow.bytes == Bytes::MAX && flow.start == Time::from_us(1)));
        let of_trigger = |trigger| flows.iter().filter(|flow| flow.trigger == trigger).count();
        assert_eq!((of_trigger(Trigger::Time), of_trigger(Trigger::Change)), (32, 1_500));
    }

    #[test]
    fn all_pairs_are_equally_likely() {
        let (flows, _) = churn().generate(&topology(), 1, 0).unwrap();
        let mut counts: HashMap<_, u32> = HashMap::new();
        for flow in &flows {
            assert_ne!(flow.src, flow.dst);
            *counts.entry((flow.src, flow.dst)).or_default() += 1;
        }
        // 1,532 flows on 12 pairs: 127.7 each with a standard deviation of 10.8.
        assert_eq!(counts.len(), 12);
        assert!(counts.values().all(|n| (84..172).contains(n)), "{counts:?}");
    }

    #[test]
    fn more_changes_move_no_draws_and_seeds_do() {
        let of = |changes, seed| Churn { changes, ..churn() }.generate(&topology(), seed, 0).unwrap();
        let (short, long) = (of(100, 1), of(200, 1));
        assert_eq!(short.0[..], long.0[..82]);
        assert_eq!(short.1[..], long.1[..100]);
        assert_ne!(short, of(100, 2));
    }

    #[test]
    fn what_cannot_be_is_told() {
        let error = |churn: Churn| churn.generate(&topology(), 1, 0).unwrap_err();
        assert_eq!(error(Churn { flows: 0, ..churn() }).field, "flows");
        assert_eq!(error(Churn { hosts: Some(vec![NodeId(1), NodeId(1)]), ..churn() }).field, "hosts");
        assert_eq!(error(Churn { hosts: Some(vec![NodeId(0), NodeId(4)]), ..churn() }).field, "hosts");
    }
}
