//! Flowtune's endpoint for the TCP connections of a Linux host (J. Perry, H. Balakrishnan, D. Shah,
//! MIT-CSAIL-TR-2016-011, section 2). By eBPF it detects in the kernel that flowlets begin and end, reports them to the
//! allocator, and paces sockets that it did not make. Programs that send over UDP may ask for their rates.

pub mod agent;
#[cfg(feature = "bpf")]
pub mod attach;
#[cfg(feature = "bpf")]
pub mod cgroups;
pub mod config;
#[cfg(feature = "bpf")]
pub mod flowlets;
#[cfg(feature = "bpf")]
pub mod lock;
pub mod looks;
pub mod metrics;
#[cfg(feature = "bpf")]
pub mod namespaces;
#[cfg(feature = "bpf")]
pub mod run;
pub mod shares;
#[cfg(feature = "bpf")]
mod watch;
pub mod weights;
