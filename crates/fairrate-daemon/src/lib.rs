//! Flowtune's allocator as a service (J. Perry, H. Balakrishnan, D. Shah, MIT-CSAIL-TR-2016-011, sections 2, 4 and 6).
//!
//! [`Agent`] and [`Desk`] are the two sides of the conversation as state machines, and [`wire`] is its bytes; none of them
//! knows sockets or clocks.

mod agent;
mod desk;
mod rate;
pub mod wire;

pub use agent::{Agent, FIRST_LEASE};
pub use desk::{ConnectionId, Counts, Desk, DeskConfig, Identity, Paths};
pub use rate::{Weight, WireRate};
