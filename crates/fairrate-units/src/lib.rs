//! The three quantities of fairrate's computations, as integers: [`Time`] in picoseconds, [`Rate`] in bits per second
//! and [`Bytes`]. Only this crate converts between them and text.
//!
//! A byte lasts a whole number of picoseconds at every Ethernet rate from 10 Gb/s to 1.6 Tb/s, so
//! serialisation times are exact and simulated time never drifts.

mod bytes;
mod parse;
mod rate;
mod time;

pub use bytes::Bytes;
pub use parse::ParseQuantityError;
pub use rate::Rate;
pub use time::Time;
