//! Eight hosts in network namespaces on a rate-limited star, TCP connections with CUBIC, agents that observe them, and
//! an allocator.
//!
//! It needs root, and the program `fairrate-allocator`, whose path is in `FAIRRATE_ALLOCATOR`: `cargo xtask agent`
//! provides both.
#![cfg(feature = "bpf")]

mod cost;
mod hostile;
mod ipv6;
mod low_rates;
mod mptcp;
mod overrun;
mod own_connections;
mod own_limits;
mod rack;
mod service;
mod shares;
mod staircase;
mod survival;
mod udp;
