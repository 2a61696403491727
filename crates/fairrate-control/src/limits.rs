//! What several algorithms share: the bandwidth-delay product and the window that follows a rate.

use fairrate_units::{Bytes, Rate, Time};

/// Bytes in flight at `rate` over `rtt`.
pub(crate) fn bdp(rate: Rate, rtt: Time) -> f64 {
    rate.bytes_in(rtt).as_f64()
}

/// The ns-3 artifact's window of a rate-based flow: its first window times rate / line rate, in whole bytes
/// and at least one.
pub(crate) fn scaled_window(first_window: f64, rate: f64, line_rate: f64) -> Bytes {
    Bytes::new(((first_window * rate / line_rate) as u64).max(1))
}
