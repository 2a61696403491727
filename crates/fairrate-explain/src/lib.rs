//! The completion time of a flow as a sum of its causes, exact to the picosecond.
//!
//! An [`Observer`] is a sink that records the steps of some flows during a run. [`Observer::explain`] then makes two
//! accounts of a flow that has finished, and [`Observer::explain_open`] the same of one that has not, back from the end
//! of the run:
//!
//! - the chain ([`Explanation::chain`]) goes back from the arrival of the last byte: from the packet that brought it,
//!   along its way, to the moment at which it was sent, and on to what let it be sent then. That may be the
//!   acknowledgment of an earlier packet, which the chain follows in turn; the end of the packet before it at the NIC;
//!   or the loss of the same bytes some time before. The chain ends where the flow starts.
//! - the sender's account ([`Explanation::sender`]) says what the sender was doing or waiting for at every moment until
//!   it sent the packet that completed the flow.
//!
//! Both are lists of [`Piece`]s without gaps and overlaps, so their lengths add up to the completion time.

mod chain;
mod critical;
mod faults;
mod granted;
mod observer;
mod open;
mod piece;
mod port;
mod sender;

pub use critical::{CriticalPaths, Doing, Iterated, Milestones, NoPath, Stage, first_tasks};
pub use faults::{Slow, outages, slow};
pub use observer::{Observer, Unsupported, supports, supports_flows};
pub use piece::{Behind, Explanation, How, Loss, Piece, Reason, Sum, Way, sums};
