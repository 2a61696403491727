//! The transports of the hosts, RDMA and TCP: senders, receivers and the NIC that picks among a host's flows.

#[cfg(test)]
mod byte_streams;
mod channel;
mod mptcp;
mod nic;
mod ranges;
mod receiver;
mod sender;
mod tcp;

pub use channel::{Incoming, Note, Outgoing};
pub use mptcp::{Connection, MptcpConfig, Reassembly, Scheduler, SubflowPaths};
pub use nic::{Nic, NicFlow};
pub use receiver::{Receiver, Reply};
pub use sender::{ControlOf, NO_SENDER, Segment, Sender, SenderControl, Tally, Writing};
pub use tcp::{Answered, DelayedAck, EcnEcho, Expired, LossDetection, MAX_SACKS, TcpConfig, TcpSender};
