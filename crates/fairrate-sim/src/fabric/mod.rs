//! Links and switches: egress ports, their queueing disciplines, faulty wires, the shared buffer with its
//! thresholds and PFC, ECN marking.

mod backlog_pfc;
mod codel;
mod discipline;
mod drop_cause;
mod ecn;
mod faults;
mod flow_queues;
mod mmu;
mod packet_fifo;
mod pfabric;
mod port;
mod red;
mod sfq_codel;
mod weighted;

pub use backlog_pfc::BacklogPfc;
pub use discipline::{Discipline, Place, Verdicts};
pub use drop_cause::DropCause;
pub use ecn::Marker;
pub use faults::{Faults, FaultyLink, FlapTimes};
pub use mmu::{Admission, Mmu};
pub use port::{MOST_FRAMES, N_CLASSES, Port, tx_time_ps};
pub use weighted::{WeightedClasses, quanta};
