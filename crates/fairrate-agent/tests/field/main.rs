//! Eight hosts in network namespaces on a rate-limited star, TCP connections with CUBIC, agents that see them, and an allocator.
//!
//! It needs root, and the program `fairrate-allocator`, which `FAIRRATE_ALLOCATOR` names: `cargo xtask agent` sees to both.
#![cfg(feature = "bpf")]

mod cost;
mod hostile;
mod overrun;
mod own_connections;
mod own_limits;
mod rack;
mod service;
mod shares;
mod staircase;
mod survival;
