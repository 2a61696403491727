//! Multipath TCP (RFC 8684): a connection spreads its data over subflows, each of which is TCP over its own path.

mod cargo;
mod connection;
mod connections;
mod reassembly;

pub(crate) use cargo::Pieces;
#[cfg(test)]
pub use connection::Connection;
pub use connection::{MptcpConfig, Scheduler, SubflowPaths};
pub(crate) use connections::Connections;
#[cfg(test)]
pub use reassembly::Reassembly;
