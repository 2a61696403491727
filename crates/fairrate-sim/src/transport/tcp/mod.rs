//! TCP. One half uses neither packets nor clocks: the segments in flight and lost, the time of retransmissions, the
//! acknowledgments of a receiver. The other half applies it at hosts (`endpoint.rs`), for any payload of the segments
//! (`cargo.rs`).

mod cargo;
mod endpoint;
mod prr;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;

pub(crate) use cargo::{Cargo, OwnData, config_of};
pub(crate) use endpoint::{SACK_WORDS, Tcp, connect};
pub use prr::MarkReduction;
pub use receiver::{Arrived, MAX_SACKS, TcpReceiver};
pub use rtt::RttEstimator;
pub use scoreboard::{Acked, LossDetection, Scoreboard};
#[cfg(test)]
pub use sender::tests::CONFIG as TEST_CONFIG;
pub use sender::{DelayedAck, EcnEcho, Expired, TcpConfig, TcpSender};
