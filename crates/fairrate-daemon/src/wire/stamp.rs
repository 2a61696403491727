//! The records by which leases and epochs are kept.

use std::time::Duration;

use super::{Epoch, FrameError, array};

/// An agent's clock, and the allocator it goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentStamp {
    /// The agent's clock in nanoseconds; later stamps have larger ones.
    pub sent: u64,
    /// The clock of the allocator's last stamp; 0 if there was none.
    pub ack: u64,
    /// The highest epoch accepted.
    pub epoch: Epoch,
    /// Number of voters that the allocator of this epoch has told.
    pub voters: u32,
    /// Number of agents that the allocator of this epoch has told.
    pub agents: u32,
    /// Time since the agent's last stamp to an allocator of an earlier epoch; whole milliseconds, the largest number if
    /// there was none.
    pub quiet_ms: u32,
    /// Set when the agent has run for so long that no promise of an agent before it counts.
    pub is_grown: bool,
    /// Set when the agent has several allocators.
    pub has_others: bool,
    /// Set when the agent has no allocator, and wants this one.
    pub is_willing: bool,
    /// Set when the allocator that reads this has all rates in force, and its rates are accepted.
    pub is_reported: bool,
}

/// Number of flags of an agent's stamp; the bits above them are reserved.
const FLAGS: usize = 4;

impl AgentStamp {
    pub(super) const LEN: usize = 37;

    fn flags(&self) -> u8 {
        let flags: [bool; FLAGS] = [self.is_grown, self.has_others, self.is_willing, self.is_reported];
        flags.into_iter().enumerate().map(|(i, flag)| u8::from(flag) << i).sum()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for number in [self.sent, self.ack, self.epoch.0] {
            out.extend(number.to_be_bytes());
        }
        out.extend(self.voters.to_be_bytes());
        out.extend(self.agents.to_be_bytes());
        out.extend(self.quiet_ms.to_be_bytes());
        out.push(self.flags());
    }

    pub(super) fn read(record: &[u8]) -> Result<Self, FrameError> {
        if record[36] >> FLAGS != 0 {
            return Err(FrameError::Reserved);
        }
        let flag = |i: u32| record[36] & 1 << i != 0;
        Ok(Self {
            sent: u64::from_be_bytes(array(record, 0)),
            ack: u64::from_be_bytes(array(record, 8)),
            epoch: Epoch(u64::from_be_bytes(array(record, 16))),
            voters: u32::from_be_bytes(array(record, 24)),
            agents: u32::from_be_bytes(array(record, 28)),
            quiet_ms: u32::from_be_bytes(array(record, 32)),
            is_grown: flag(0),
            has_others: flag(1),
            is_willing: flag(2),
            is_reported: flag(3),
        })
    }
}

/// An allocator's clock, and its right to decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorStamp {
    /// The allocator's clock in nanoseconds; later stamps have larger ones.
    pub sent: u64,
    /// The clock of the agent's last stamp.
    pub echo: u64,
    /// The allocator's epoch; none if it does not decide and does not ask to.
    pub epoch: Epoch,
    /// Time for which rates are valid, from when the agent sent the stamp of `echo`; whole microseconds.
    pub valid: Duration,
    /// Number of agents of which more than half have to accept another allocator.
    pub voters: u32,
    /// Number of agents that may have rates.
    pub agents: u32,
}

impl AllocatorStamp {
    pub(super) const LEN: usize = 36;

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for number in [self.sent, self.echo, self.epoch.0] {
            out.extend(number.to_be_bytes());
        }
        let valid_us = u32::try_from(self.valid.as_micros()).unwrap_or(u32::MAX);
        for number in [valid_us, self.voters, self.agents] {
            out.extend(number.to_be_bytes());
        }
    }

    pub(super) fn read(record: &[u8]) -> Self {
        Self {
            sent: u64::from_be_bytes(array(record, 0)),
            echo: u64::from_be_bytes(array(record, 8)),
            epoch: Epoch(u64::from_be_bytes(array(record, 16))),
            valid: Duration::from_micros(u32::from_be_bytes(array(record, 24)).into()),
            voters: u32::from_be_bytes(array(record, 28)),
            agents: u32::from_be_bytes(array(record, 32)),
        }
    }
}
