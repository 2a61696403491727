//! The transports of the hosts, RDMA and TCP: senders, receivers and the NIC that picks among a host's flows.

mod nic;
mod ranges;
mod receiver;
mod sender;
mod tcp;

pub use nic::{Nic, NicFlow};
pub use receiver::{Receiver, Reply};
pub use sender::{NO_SENDER, Sender};
pub use tcp::{Answered, DelayedAck, EcnEcho, Expired, MAX_SACKS, TcpConfig, TcpSender};
