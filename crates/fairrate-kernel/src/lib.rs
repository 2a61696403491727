//! Congestion control of fairrate in the Linux kernel, by eBPF.
//!
//! [`laws`] has the laws, which are C headers compiled for this machine and for the kernel alike. [`params`] converts
//! the parameters of scenarios to those of the laws, [`setup`] reads them. With the feature `bpf` the crate loads the
//! programs into the kernel, which is the task of `fairrate-kernel`.

#[cfg(feature = "bpf")]
pub mod bpf;
pub mod classes;
pub mod error;
pub mod laws;
pub mod params;
pub mod setup;
