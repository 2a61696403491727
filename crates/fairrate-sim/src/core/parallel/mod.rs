//! A run on several threads: the parts of a network, the windows of time they work through, and the mail between them.

mod cluster;
mod crew;
mod mail;
mod merge;
mod pace;
mod partition;

pub(crate) use cluster::Cluster;
pub(super) use cluster::{lock, next_ps};
pub(crate) use mail::Mail;
pub(super) use partition::{Partition, loads};
