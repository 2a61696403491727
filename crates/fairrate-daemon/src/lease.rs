//! Times derived from the lease, which both sides use.

use std::time::Duration;

/// Shortest lease of an allocator, which its configuration is held to.
pub(crate) const LEAST_LEASE: Duration = Duration::from_millis(10);

/// Number of messages that a side sends in a lease.
pub(crate) const WORDS_A_LEASE: u32 = 8;

/// Returns the time for which rates are valid after the agent's stamp: so much more than the lease that they last for
/// one after the allocator's last answer.
pub(crate) fn validity(lease: Duration) -> Duration {
    lease * 5 / 4
}

/// Returns the validity of rates of an agent that the others' allocator may not know of yet.
pub(crate) fn newcomer_validity(lease: Duration) -> Duration {
    lease / 4
}

/// Returns a time during which `time` certainly passes at the other side, whose clock may be slower by up to a 64th.
pub(crate) fn guarded(time: Duration) -> Duration {
    time + time / 64
}

/// Returns the part of a time that certainly passes at the other side while `time` passes here.
pub(crate) fn shortened(time: Duration) -> Duration {
    time * 63 / 64
}
