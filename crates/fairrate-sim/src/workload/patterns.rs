//! Regular patterns: staggered starts, a permutation, a stride, all to all.

use std::collections::HashSet;

use fairrate_units::{Bytes, Time};

use super::{Block, Senders, at_least_a_byte, few_enough, hosts};
use crate::config::FlowSpec;
use crate::ids::NodeId;
use crate::input_error::FieldError;
use crate::rng::Purpose;
use crate::topology::Topology;

/// Flows towards one receiver that start, and stop, one after the other (PowerTCP Fig. 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staggered {
    /// The receiver.
    pub receiver: NodeId,
    /// The senders, in the order in which they start.
    pub senders: Senders,
    /// Start of the first sender.
    pub start: Time,
    /// Time from one start to the next.
    pub interval: Time,
    /// Duration of each flow if it is endless; [`Time::MAX`]: for ever.
    pub hold: Time,
    /// Bytes each sender sends; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
}

/// One flow from every host to another host, so that every host also receives one flow; all hosts, or some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    /// Bytes of each flow; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// Start of all flows.
    pub start: Time,
    /// Hosts that take part; `None`: all.
    pub hosts: Option<Vec<NodeId>>,
}

/// One flow from every host to the host `stride` places further on, counted in a circle: if the stride is the number of
/// hosts in a rack, to the host at the same place in the next rack. Places are those in the list of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stride {
    /// Number of places.
    pub stride: u32,
    /// Bytes of each flow; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// Start of all flows.
    pub start: Time,
    /// Hosts that take part, in the order of the circle; `None`: all, in ascending order.
    pub hosts: Option<Vec<NodeId>>,
}

/// One flow from every host to every other host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllToAll {
    /// Bytes of each flow; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// Start of all flows.
    pub start: Time,
    /// Hosts that take part; `None`: all.
    pub hosts: Option<Vec<NodeId>>,
}

impl Staggered {
    /// Returns the flows.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        at_least_a_byte("bytes", self.bytes)?;
        if self.hold == Time::ZERO {
            return Err(FieldError::new("hold", "`hold` must be above 0"));
        }
        let mut block = Block::new(seed, group);
        let mut start = self.start;
        for sender in self.senders.resolve(topology, self.receiver, &block)? {
            block.add(sender, self.receiver, self.bytes, start, start.saturating_add(self.hold));
            start = start.saturating_add(self.interval);
        }
        Ok(block.finish())
    }
}

impl Permutation {
    /// Returns the flows: every permutation in which no host sends to itself is equally likely.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        at_least_a_byte("bytes", self.bytes)?;
        let mut block = Block::new(seed, group);
        let hosts = participants(self.hosts.as_deref(), topology)?;
        if hosts.len() < 2 {
            return Err(FieldError::new("hosts", "a permutation needs two hosts"));
        }
        let mut stream = block.stream(NodeId(0), Purpose::Participants);
        let mut receivers = hosts.clone();
        // One shuffle in e is a derangement, for any number of hosts.
        while hosts.iter().zip(&receivers).any(|(a, b)| a == b) {
            stream.shuffle(&mut receivers);
        }
        for (&sender, &receiver) in hosts.iter().zip(&receivers) {
            block.add(sender, receiver, self.bytes, self.start, Time::MAX);
        }
        Ok(block.finish())
    }
}

impl Stride {
    /// Returns the flows. Nothing is random; the seed is a parameter only for uniformity.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        at_least_a_byte("bytes", self.bytes)?;
        let mut hosts = participants(self.hosts.as_deref(), topology)?;
        if let Some(named) = &self.hosts {
            let mut seen = HashSet::new();
            hosts = named.iter().copied().filter(|host| seen.insert(*host)).collect();
        }
        let stride = self.stride as usize;
        if stride.is_multiple_of(hosts.len().max(1)) {
            let message = format!("with a stride of {stride} each of {} hosts sends to itself", hosts.len());
            return Err(
                FieldError::new("stride", message).help("write a number from 1 to one less than there are hosts")
            );
        }
        let mut block = Block::new(seed, group);
        for (place, &sender) in hosts.iter().enumerate() {
            block.add(sender, hosts[(place + stride) % hosts.len()], self.bytes, self.start, Time::MAX);
        }
        Ok(block.finish())
    }
}

impl AllToAll {
    /// Returns the flows. Nothing is random; the seed is a parameter only for uniformity.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        at_least_a_byte("bytes", self.bytes)?;
        let hosts = participants(self.hosts.as_deref(), topology)?;
        few_enough("kind", hosts.len() as f64 * (hosts.len() as f64 - 1.0))?;
        let mut block = Block::new(seed, group);
        for &sender in &hosts {
            for &receiver in hosts.iter().filter(|&&host| host != sender) {
                block.add(sender, receiver, self.bytes, self.start, Time::MAX);
            }
        }
        Ok(block.finish())
    }
}

/// Returns the hosts of a pattern in ascending order: those of `named`, or all.
fn participants(named: Option<&[NodeId]>, topology: &Topology) -> Result<Vec<NodeId>, FieldError> {
    named.map_or_else(|| Ok(topology.hosts().collect()), |named| hosts("hosts", named, topology))
}

#[cfg(test)]
mod tests {
    use fairrate_units::Rate;

    use super::*;
    use crate::topology::Star;

    fn star() -> Topology {
        Star { hosts: 32, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build()
    }

    #[test]
    fn patterns_may_be_of_some_hosts() {
        let some = || Some([9, 3, 7, 3].map(NodeId).to_vec());
        let ends = |flows: Vec<FlowSpec>| flows.iter().map(|f| (f.src.0, f.dst.0)).collect::<Vec<_>>();
        let (bytes, start) = (Bytes::new(1_000), Time::ZERO);
        let permutation = Permutation { bytes, start, hosts: some() }.generate(&star(), 1, 0).unwrap();
        let [cycle, back] = [[(3, 7), (7, 9), (9, 3)], [(3, 9), (7, 3), (9, 7)]];
        assert!([cycle.to_vec(), back.to_vec()].contains(&ends(permutation)));
        let stride = Stride { stride: 1, bytes, start, hosts: some() };
        assert_eq!(ends(stride.generate(&star(), 1, 0).unwrap()), cycle);
        // In the order of the list, in which a host counts once.
        let ring = Stride { hosts: Some([9, 7, 3, 7].map(NodeId).to_vec()), ..stride.clone() };
        assert_eq!(ends(ring.generate(&star(), 1, 0).unwrap()), back);
        assert!(Stride { stride: 3, ..stride }.generate(&star(), 1, 0).is_err());
        let all = AllToAll { bytes, start, hosts: some() };
        assert_eq!(all.generate(&star(), 1, 0).unwrap().len(), 6);
        for wrong in [vec![], vec![NodeId(32)]] {
            let field = AllToAll { bytes, start, hosts: Some(wrong) }.generate(&star(), 1, 0).unwrap_err().field;
            assert_eq!(field, "hosts");
        }
    }
}
