//! The transports of the hosts. Each is a folder that implements [`Transport`](interface::Transport), and a line of
//! `list.rs`. Code that several transports use is in the files beside the folders.

mod allocator;
#[cfg(test)]
mod byte_streams;
mod controlled;
mod dispatch;
mod entropy;
mod homa;
mod interface;
mod lasting;
mod list;
mod mptcp;
mod nic;
mod ranges;
mod rdma;
mod receiver;
mod sender;
mod tcp;
mod uet;

pub(crate) use allocator::{
    Allocator, LineNote, follow_up, line_flows, on_event as on_allocator_event, start as start_allocator,
};
pub(crate) use controlled::{Controlled, ControllerRef};
pub(crate) use entropy::{Echo, Outcome, PathPickers};
pub(crate) use homa::{Levels, Messages, train as homa_train};
pub(crate) use interface::{Answer, Load, Timed};
pub(crate) use lasting::Lasting;
pub(crate) use list::Kind;
pub(crate) use mptcp::Connections;
pub use mptcp::{MptcpConfig, Scheduler, SubflowPaths};
pub(crate) use nic::{Nic, NicFlow};
pub(crate) use receiver::Receiver;
pub(crate) use sender::{Sender, Tally, Writing};
pub(crate) use tcp::SACK_WORDS;
#[cfg(test)]
pub(crate) use tcp::TcpSender;
pub use tcp::{DelayedAck, EcnEcho, LossDetection, MarkReduction, TcpConfig};
pub(crate) use uet::Datagrams;
