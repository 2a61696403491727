//! Flowtune's allocator as a service (J. Perry, H. Balakrishnan, D. Shah, MIT-CSAIL-TR-2016-011, sections 2, 4 and 6).
//!
//! [`Client`] is for programs that pace their own flows, and [`Server`] is the allocator. [`Agent`] and [`Desk`] are
//! the two sides of the protocol as state machines, and [`wire`] is its byte format; none of them uses sockets or
//! clocks.

mod agent;
mod certificate;
mod client;
pub mod config;
mod desk;
mod engine;
mod epoch;
mod fair;
pub mod http;
pub mod keys;
mod lease;
pub mod load;
pub mod logging;
pub mod metrics;
mod network;
mod opening;
mod peers;
mod quota;
mod rate;
mod server;
mod stream;
pub mod systemd;
mod tls;
pub mod wire;

pub use agent::{Agent, FIRST_LEASE};
pub use certificate::Certificate;
pub use client::{Client, ClientOptions, Grant};
pub use desk::{Change, ConnectionId, Counts, Desk, DeskConfig, Identity, LinkLoad, Paths, Refusal, Reign, Urgency};
pub use engine::{Bounds, Pace, Wait};
pub use metrics::Metrics;
pub use network::{LinkState, Network, UnknownLink};
pub use rate::{Weight, WireRate};
pub use server::{Server, ServerConfig, ServerError};
pub use tls::{Certificates, KeyError, KeyFiles, Security};
