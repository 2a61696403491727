//! Traces of packets for the tools that people have.
//!
//! A [`Tracer`] is a sink that writes the steps of packets of a run as they happen, those that a [`Filter`] lets
//! through. Its [`Format`] is a file for Wireshark ([`Pcapng`]), for Perfetto ([`Perfetto`]), or a table ([`Table`]).
//! It keeps no packets, so its memory does not grow with their number.

mod filter;
mod network;
mod output;
mod pcapng;
mod perfetto;
mod table;
mod tracer;

pub use filter::Filter;
pub use network::Network;
pub use output::Output;
pub use pcapng::Pcapng;
pub use perfetto::Perfetto;
pub use table::Table;
pub use tracer::{Counts, End, Format, Tracer};
