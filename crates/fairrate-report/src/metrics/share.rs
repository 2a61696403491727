//! The flows of a kind that finished.

use serde::Serialize;

/// The number of flows that finished, of those that started within the measuring window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Flows that finished.
    pub finished: usize,
    /// Flows that started.
    pub flows: usize,
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |n: usize| crate::format::count(n as f64);
        write!(f, "{} of {}", count(self.finished), count(self.flows))
    }
}
