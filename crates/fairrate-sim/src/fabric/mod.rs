//! Links and switches: egress ports, the shared buffer with its thresholds and PFC, ECN marking.

mod ecn;
mod flow_queues;
mod mmu;
mod port;

pub use ecn::Marker;
pub use mmu::{Admission, DropCause, Mmu};
pub use port::{NO_HOST, Port, tx_time_ps};
