//! The protocol between agents and the allocator, as bytes. It uses no sockets.
//!
//! A stream is a sequence of frames: the length of the rest in 16 bits, a kind in 8 bits, and records of this kind, all
//! of equal length. Numbers are big-endian. Starts, ends and rates have the paper's 16, 4 and 6 bytes (section 6.2).
//!
//! | kind | record | bytes | from |
//! |---|---|---|---|
//! | 1 | HELLO: [versions](Versions) (8 bits), session (64) | 9 | agent |
//! | 2 | START: flow (32), source (32), destination (32), weight in 256ths (16), flags (16, zero) | 16 | agent |
//! | 3 | END: flow (32) | 4 | agent |
//! | 4 | ALIVE: keeps the connection, but no rates | 0 | agent |
//! | 5 | SYNCED: all flows have been sent since HELLO | 0 | agent |
//! | 6 | STAMP: clock in ns (64), the allocator's last clock (64), [epoch](Epoch) (64), voters (32), agents (32), quiet for in ms (32), flags (8) | 37 | agent |
//! | 7 | IN FORCE: flow (32), [rate](WireRate) (16) | 6 | agent |
//! | 8 | ACK: number of a MARK (32) | 4 | agent |
//! | 9 | REPORTED: all rates in force have been sent | 0 | agent |
//! | 10 | START of IPv6: flow (32), source (128), destination (128), weight in 256ths (16), flags (16, zero) | 40 | agent |
//! | 17 | HELLO: version (8), instance (64), lease in ms (32) | 13 | allocator |
//! | 18 | RATE: flow (32), [rate](WireRate) (16) | 6 | allocator |
//! | 19 | BYE: [reason](Reason) (8) | 1 | both |
//! | 20 | STAMP: clock in ns (64), the agent's last clock (64), epoch (64), validity in us (32), voters (32), agents (32) | 36 | allocator |
//! | 21 | MARK: number (32) | 4 | allocator |
//! | 22 | SEEN: number of STARTs and ENDs since HELLO (32) | 4 | allocator |
//!
//! HELLO of both sides has the same length in all versions, so that a peer of another version gets [`Reason::Version`].
//! Kind 10 is of version 3. Rates belong to the epoch of the last STAMP before them. They are valid for a time that
//! begins when the agent sent the STAMP whose clock is returned. So an agent and an allocator need no common clock, and
//! a message that was delayed prolongs nothing. An agent answers a MARK with an ACK when the rates before it are in
//! force. A rate is for the flow that had its number when the allocator had read as many STARTs and ENDs as the last
//! SEEN says.

use std::time::Duration;

pub use crate::epoch::Epoch;
use crate::rate::WireRate;

mod stamp;
mod start;
mod version;

pub use self::stamp::{AgentStamp, AllocatorStamp};
pub use self::start::Start;
pub use self::version::{LEAST_VERSION, VERSION, Versions};

/// Largest number of bytes of a frame after its length.
pub const MAX_FRAME: usize = 16 * 1024;

/// The number by which an agent identifies a flow.
pub type Flow = u32;

/// The messages of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromAgent {
    /// The first message, with the agent's identity. The same session after a broken connection is the same agent.
    Hello {
        /// Byte of the [`Versions`] that the agent speaks.
        version: u8,
        /// Random number drawn when the agent started.
        session: u64,
    },
    /// The beginning of a flowlet.
    Start(Start),
    /// The end of a flowlet.
    End(Flow),
    /// A sign of life, without news.
    Alive,
    /// The end of all flows that were not sent since HELLO.
    Synced,
    /// The agent's clock and its allegiance.
    Stamp(AgentStamp),
    /// A rate in force, given by another allocator or on another connection.
    InForce {
        /// The flow.
        flow: Flow,
        /// The rate.
        rate: WireRate,
    },
    /// The rates before the mark of this number are in force.
    Ack(u32),
    /// The end of the rates in force: flows not named have none.
    Reported,
    /// The agent and its flows leave.
    Bye(Reason),
}

/// The messages of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromAllocator {
    /// The answer to HELLO.
    Hello {
        /// Version of the protocol on this connection.
        version: u8,
        /// Random number drawn when the allocator started.
        instance: u64,
        /// Lifetime of rates and of flows without a message.
        lease: Duration,
    },
    /// The new rate of a flow.
    Rate {
        /// The flow.
        flow: Flow,
        /// The rate; if it is none, TCP decides.
        rate: WireRate,
    },
    /// The allocator's clock, its epoch, and how long rates are valid.
    Stamp(AllocatorStamp),
    /// The request to acknowledge the rates before it, by this number.
    Mark(u32),
    /// The number of starts and ends since HELLO that the rates after it take into account.
    Seen(u32),
    /// The allocator closes the connection.
    Bye(Reason),
}

/// The reason why a side closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[repr(u8)]
pub enum Reason {
    /// The program ends normally.
    #[error("it shuts down")]
    Shutdown = 1,
    /// The bytes received are no message, or a message at the wrong time.
    #[error("what was said is against the protocol")]
    Protocol = 2,
    /// Another version of the protocol.
    #[error("the protocol's version is another one")]
    Version = 3,
    /// No message was received for a lease.
    #[error("nothing was heard for a lease")]
    Silent = 4,
    /// The allocator has the largest number of agents.
    #[error("there are too many agents")]
    TooManyAgents = 5,
    /// The same agent has a newer connection.
    #[error("the agent has a newer connection")]
    Replaced = 6,
    /// The bytes written to the agent were not read for a lease.
    #[error("what was written was not read for a lease")]
    Slow = 7,
    /// The keys have changed: the agent has to connect again.
    #[error("keys have changed")]
    Rekeyed = 8,
    /// The identity has the largest number of agents or connections.
    #[error("there are too many agents or connections of this identity")]
    TooManySessions = 9,
    /// The certificate has expired.
    #[error("the certificate has expired")]
    Expired = 10,
}

impl Reason {
    pub(crate) const ALL: [Self; 10] = [
        Self::Shutdown,
        Self::Protocol,
        Self::Version,
        Self::Silent,
        Self::TooManyAgents,
        Self::Replaced,
        Self::Slow,
        Self::Rekeyed,
        Self::TooManySessions,
        Self::Expired,
    ];

    fn from_code(code: u8) -> Self {
        // A later version may have more reasons; all of them close the connection.
        Self::ALL.into_iter().find(|reason| *reason as u8 == code).unwrap_or(Self::Shutdown)
    }
}

/// The reason why bytes are not messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame without a kind.
    #[error("a frame is empty")]
    Empty,
    /// A frame longer than [`MAX_FRAME`].
    #[error("a frame of {0} bytes is longer than {MAX_FRAME}")]
    TooLong(usize),
    /// A kind that this side does not send.
    #[error("there is no message of kind {0}")]
    Kind(u8),
    /// Incomplete records.
    #[error("a frame of kind {kind} has {len} bytes of records")]
    Length {
        /// Kind of the frame.
        kind: u8,
        /// Number of bytes after the kind.
        len: usize,
    },
    /// A flow with a weight of 0.
    #[error("the weight of flow {0} is 0")]
    Weight(Flow),
    /// Reserved flags of a stamp that are not zero; a later version may define them.
    #[error("reserved flags of a stamp are not zero")]
    Reserved,
    /// Flags that are not zero; a later version may define them.
    #[error("the flags of flow {0} are not zero")]
    Flags(Flow),
}

/// The messages of one side: their kinds and records.
pub trait Message: Copy {
    /// Returns the bytes of a record of this kind; `None` if this side sends no such record.
    fn record_len(kind: u8) -> Option<usize>;
    /// Returns the message's kind.
    fn kind(self) -> u8;
    /// Appends the record to `out`.
    fn write(self, out: &mut Vec<u8>);
    /// Reads a record of [`Message::record_len`] bytes.
    ///
    /// # Errors
    /// If its values are invalid.
    fn read(kind: u8, record: &[u8]) -> Result<Self, FrameError>;
}

impl Message for FromAgent {
    fn record_len(kind: u8) -> Option<usize> {
        Some(match kind {
            1 => 9,
            2 => Start::LEN,
            10 => Start::LEN_V6,
            3 | 8 => 4,
            4 | 5 | 9 => 0,
            6 => AgentStamp::LEN,
            7 => 6,
            19 => 1,
            _ => return None,
        })
    }

    fn kind(self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Start(start) if start.is_v4() => 2,
            Self::Start(_) => 10,
            Self::End(_) => 3,
            Self::Alive => 4,
            Self::Synced => 5,
            Self::Stamp(_) => 6,
            Self::InForce { .. } => 7,
            Self::Ack(_) => 8,
            Self::Reported => 9,
            Self::Bye(_) => 19,
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { version, session } => {
                out.push(version);
                out.extend(session.to_be_bytes());
            }
            Self::Start(start) => start.write(out),
            Self::End(flow) => out.extend(flow.to_be_bytes()),
            Self::Alive | Self::Synced | Self::Reported => {}
            Self::Stamp(stamp) => stamp.write(out),
            Self::InForce { flow, rate } => {
                out.extend(flow.to_be_bytes());
                out.extend(rate.0.to_be_bytes());
            }
            Self::Ack(number) => out.extend(number.to_be_bytes()),
            Self::Bye(reason) => out.push(reason as u8),
        }
    }

    fn read(kind: u8, record: &[u8]) -> Result<Self, FrameError> {
        Ok(match kind {
            1 => Self::Hello { version: record[0], session: u64::from_be_bytes(array(record, 1)) },
            2 | 10 => Self::Start(Start::read(record)?),
            3 => Self::End(u32::from_be_bytes(array(record, 0))),
            4 => Self::Alive,
            5 => Self::Synced,
            6 => Self::Stamp(AgentStamp::read(record)?),
            7 => Self::InForce {
                flow: u32::from_be_bytes(array(record, 0)),
                rate: WireRate(u16::from_be_bytes(array(record, 4))),
            },
            8 => Self::Ack(u32::from_be_bytes(array(record, 0))),
            9 => Self::Reported,
            19 => Self::Bye(Reason::from_code(record[0])),
            _ => return Err(FrameError::Kind(kind)),
        })
    }
}

impl Message for FromAllocator {
    fn record_len(kind: u8) -> Option<usize> {
        Some(match kind {
            17 => 13,
            18 => 6,
            19 => 1,
            20 => AllocatorStamp::LEN,
            21 | 22 => 4,
            _ => return None,
        })
    }

    fn kind(self) -> u8 {
        match self {
            Self::Hello { .. } => 17,
            Self::Rate { .. } => 18,
            Self::Bye(_) => 19,
            Self::Stamp(_) => 20,
            Self::Mark(_) => 21,
            Self::Seen(_) => 22,
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { version, instance, lease } => {
                out.push(version);
                out.extend(instance.to_be_bytes());
                let lease_ms = u32::try_from(lease.as_millis()).unwrap_or(u32::MAX);
                out.extend(lease_ms.to_be_bytes());
            }
            Self::Rate { flow, rate } => {
                out.extend(flow.to_be_bytes());
                out.extend(rate.0.to_be_bytes());
            }
            Self::Stamp(stamp) => stamp.write(out),
            Self::Mark(number) | Self::Seen(number) => out.extend(number.to_be_bytes()),
            Self::Bye(reason) => out.push(reason as u8),
        }
    }

    fn read(kind: u8, record: &[u8]) -> Result<Self, FrameError> {
        Ok(match kind {
            17 => Self::Hello {
                version: record[0],
                instance: u64::from_be_bytes(array(record, 1)),
                lease: Duration::from_millis(u32::from_be_bytes(array(record, 9)).into()),
            },
            18 => Self::Rate {
                flow: u32::from_be_bytes(array(record, 0)),
                rate: WireRate(u16::from_be_bytes(array(record, 4))),
            },
            19 => Self::Bye(Reason::from_code(record[0])),
            20 => Self::Stamp(AllocatorStamp::read(record)),
            21 => Self::Mark(u32::from_be_bytes(array(record, 0))),
            22 => Self::Seen(u32::from_be_bytes(array(record, 0))),
            _ => return Err(FrameError::Kind(kind)),
        })
    }
}

/// Returns `N` bytes of a record, which has been checked to be long enough.
fn array<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record[at..at + N].try_into().expect("a record has its length")
}

/// Appends messages to `out`; consecutive messages of the same kind share a frame.
pub fn encode<M: Message>(messages: impl IntoIterator<Item = M>, out: &mut Vec<u8>) {
    let mut open: Option<(u8, usize)> = None;
    for message in messages {
        let kind = message.kind();
        let len = M::record_len(kind).unwrap_or(0);
        let at = match open {
            Some((of, at)) if of == kind && 0 < len && out.len() - at - 2 + len <= MAX_FRAME => at,
            _ => {
                out.extend([0, 0, kind]);
                out.len() - 3
            }
        };
        open = Some((kind, at));
        message.write(out);
        let len = (out.len() - at - 2) as u16;
        out[at..at + 2].copy_from_slice(&len.to_be_bytes());
    }
}

/// The decoder of a stream. It keeps the bytes that are not a whole frame yet: at most one frame.
#[derive(Debug, Default)]
pub struct Decoder {
    rest: Vec<u8>,
}

impl Decoder {
    /// Takes the next bytes of a stream and passes each complete message to `each`.
    ///
    /// # Errors
    /// If the bytes are not messages. The stream is unusable from there on.
    pub fn read<M: Message>(&mut self, bytes: &[u8], mut each: impl FnMut(M)) -> Result<(), FrameError> {
        self.rest.extend_from_slice(bytes);
        let result = read_frames(&self.rest, &mut each);
        // After an error nothing of the stream is kept.
        self.rest.drain(..*result.as_ref().unwrap_or(&self.rest.len()));
        result.map(|_| ())
    }

    /// Returns the number of bytes that wait for the rest of their frame.
    pub fn waiting(&self) -> usize {
        self.rest.len()
    }
}

/// Reads the complete frames, and returns their total number of bytes.
fn read_frames<M: Message>(bytes: &[u8], each: &mut impl FnMut(M)) -> Result<usize, FrameError> {
    let mut at = 0;
    while let Some(frame) = whole_frame(&bytes[at..])? {
        read_frame(frame, each)?;
        at += 2 + frame.len();
    }
    Ok(at)
}

/// Returns kind and records of the first frame, if it is complete.
fn whole_frame(bytes: &[u8]) -> Result<Option<&[u8]>, FrameError> {
    let Some((len, rest)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
    let len = usize::from(u16::from_be_bytes(*len));
    match len {
        0 => Err(FrameError::Empty),
        len if MAX_FRAME < len => Err(FrameError::TooLong(len)),
        len => Ok(rest.get(..len)),
    }
}

fn read_frame<M: Message>(frame: &[u8], each: &mut impl FnMut(M)) -> Result<(), FrameError> {
    let (kind, records) = (frame[0], &frame[1..]);
    let record_len = M::record_len(kind).ok_or(FrameError::Kind(kind))?;
    let wrong = Err(FrameError::Length { kind, len: records.len() });
    match (record_len, records.len()) {
        (0, 0) => each(M::read(kind, records)?),
        (0, _) | (_, 0) => return wrong,
        (record_len, len) if len % record_len != 0 => return wrong,
        (record_len, _) => {
            for record in records.chunks_exact(record_len) {
                each(M::read(kind, record)?);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
