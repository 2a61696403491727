//! TCP's parts that know neither packets nor clocks: round-trip times, and what is in flight.

mod rtt;
mod scoreboard;

pub use rtt::RttEstimator;
pub use scoreboard::{Acked, Scoreboard};
