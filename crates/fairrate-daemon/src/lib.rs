//! Flowtune's allocator as a service (J. Perry, H. Balakrishnan, D. Shah, MIT-CSAIL-TR-2016-011, sections 2, 4 and 6).
//!
//! [`Client`] is for programs that pace themselves. [`Agent`] and [`Desk`] are the two sides of the conversation as state
//! machines, and [`wire`] is its bytes; none of them knows sockets or clocks.

mod agent;
mod client;
mod desk;
mod rate;
mod stream;
mod tls;
pub mod wire;

pub use agent::{Agent, FIRST_LEASE};
pub use client::{Client, ClientOptions, Grant};
pub use desk::{ConnectionId, Counts, Desk, DeskConfig, Identity, Paths};
pub use rate::{Weight, WireRate};
pub use tls::{KeyError, KeyFiles, Security};
