//! The RDMA transport of the hosts: senders, receivers and the NIC that picks among a host's flows.

mod nic;
mod ranges;
mod receiver;
mod sender;

pub use nic::{Nic, NicFlow};
pub use receiver::{Receiver, Reply};
pub use sender::{NO_SENDER, Sender};
