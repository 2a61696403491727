//! A run on several threads: the parts of a network, the windows of time they work through, and the mail between them.

mod cluster;
mod crew;
mod mail;
mod meeting;
mod merge;
mod meter;
mod pace;
mod partition;

pub(crate) use cluster::Cluster;
pub(super) use cluster::next_ps;
pub(super) use crew::lock;
pub(crate) use mail::{Mail, PostOffice};
pub use meeting::Meeting;
pub use meter::{CriticalPath, Work};
pub(super) use partition::{Expected, Partition, add_loads};
