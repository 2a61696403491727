//! Vectors: inputs of a module, and the outputs of the law in Rust, as lines of decimal numbers. Each bench in
//! `hardware/bench` describes its lines.

pub mod int;
pub mod perc;
pub mod rocc;
pub mod table;

use fairrate_control::PortContext;
use fairrate_units::{Rate, Time};

/// The origin of a file's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Seeded random numbers.
    Random,
    /// The busiest port of a scenario.
    Recorded(&'static str),
}

/// The steps of a file.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Their number.
    pub steps: u64,
    /// Their origin.
    pub source: Source,
}

/// Returns a switch's port of `rate`.
fn port(rate: Rate) -> PortContext {
    let (base_rtt, upstream_delay) = (Time::from_us(20), Time::from_us(1));
    PortContext {
        port: 3,
        rate,
        nic_rate: Rate::MAX,
        base_rtt,
        wire_mtu: 1_048,
        frame_overhead: 0,
        upstream_delay,
        of_host: false,
        seed: 1,
    }
}
