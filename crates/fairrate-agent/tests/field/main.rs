//! Eight hosts in network namespaces on a rate-limited star, TCP connections with CUBIC, agents that see them, and an allocator.
//!
//! It needs root, and the program `fairrate-allocator`, which `FAIRRATE_ALLOCATOR` names: `cargo xtask agent` sees to both.
#![cfg(feature = "bpf")]

mod rack;
mod shares;
mod staircase;
mod survival;
