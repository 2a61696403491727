//! Regular patterns: staggered starts, a permutation, a stride, all to all.

use fairrate_units::{Bytes, Time};

use super::{Block, Senders, at_least_a_byte, few_enough};
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
    /// When the first starts.
    pub start: Time,
    /// Time from one start to the next.
    pub interval: Time,
    /// How long each sends if it is endless; [`Time::MAX`]: for ever.
    pub hold: Time,
    /// Bytes each sender sends; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
}

/// Every host sends to one other host and receives from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    /// Bytes of each flow; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// When all start.
    pub start: Time,
}

/// Every host sends to the one so many places further on, counted in a circle: with the hosts of a rack for a stride, to its
/// like in the next rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stride {
    /// How many places.
    pub stride: u32,
    /// Bytes of each flow; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// When all start.
    pub start: Time,
}

/// Every host sends to every other host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllToAll {
    /// Bytes of each flow; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// When all start.
    pub start: Time,
}

impl Staggered {
    /// The flows.
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
    /// The flows: every permutation that leaves no host to itself is as likely as the others.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        at_least_a_byte("bytes", self.bytes)?;
        let mut block = Block::new(seed, group);
        let hosts: Vec<NodeId> = topology.hosts().collect();
        if hosts.len() < 2 {
            return Err(FieldError::new("kind", "a permutation needs two hosts"));
        }
        let mut stream = block.stream(NodeId(0), Purpose::Participants);
        let mut receivers = hosts.clone();
        // One shuffle in e is a derangement, however many hosts there are.
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
    /// The flows. Nothing is random, the seed is taken for the sake of uniformity.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        at_least_a_byte("bytes", self.bytes)?;
        let hosts: Vec<NodeId> = topology.hosts().collect();
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
    /// The flows. Nothing is random, the seed is taken for the sake of uniformity.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        at_least_a_byte("bytes", self.bytes)?;
        let hosts: Vec<NodeId> = topology.hosts().collect();
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
