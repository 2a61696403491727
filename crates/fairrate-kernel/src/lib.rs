//! Congestion control of fairrate in the Linux kernel, by eBPF.
//!
//! [`laws`] has the laws, which are C headers compiled for this machine and for the kernel alike. [`params`] turns the parameters of
//! scenarios into theirs. With the feature `bpf` the crate loads them into the kernel, which the program `fairrate-kernel` does.

pub mod error;
pub mod laws;
pub mod params;
