//! Traces of packets for the tools that people have.
//!
//! A [`Tracer`] is a sink that writes the steps of packets of a run as they happen, those that a [`Filter`] lets through. Its
//! [`Format`] is a file for Wireshark ([`Pcapng`]). It keeps no packets, so its memory does not grow with the run.

mod filter;
mod network;
mod output;
mod pcapng;
mod tracer;

pub use filter::Filter;
pub use network::Network;
pub use output::Output;
pub use pcapng::Pcapng;
pub use tracer::{Counts, End, Format, Step, Tracer};
