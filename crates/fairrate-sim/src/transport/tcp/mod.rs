//! TCP's parts that know neither packets nor clocks: what is in flight and what is lost, when to send again, and how a
//! receiver acknowledges.

mod prr;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;

pub use receiver::{Answered, MAX_SACKS, TcpReceiver};
pub use rtt::RttEstimator;
pub use scoreboard::{Acked, LossDetection, Scoreboard};
pub use sender::{DelayedAck, EcnEcho, Expired, TcpConfig, TcpSender};
