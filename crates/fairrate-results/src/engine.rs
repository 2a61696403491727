//! The ways in which a run was simulated, in its summary.

use fairrate_sim::{Mode, Reason};
use serde::{Deserialize, Serialize};

/// The reasons for which a run was not simulated in faster ways; an empty list: it was. They come from the scenario
/// alone and move no result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// The reasons for which switches went event by event, and not in spans of time.
    pub switches_by_event: Vec<String>,
    /// `true` if switches went in spans, those of several switches in a batch.
    #[serde(default)]
    pub in_batches: bool,
    /// The reasons for which hosts went event by event, and not in spans of time.
    pub hosts_by_event: Vec<String>,
    /// The reasons for which the run has one thread, whatever number is asked for.
    pub one_thread: Vec<String>,
}

impl From<Mode> for Engine {
    fn from(mode: Mode) -> Self {
        let words = |reasons: Vec<Reason>| reasons.iter().map(Reason::to_string).collect();
        Self {
            switches_by_event: words(mode.switches),
            in_batches: mode.in_batches,
            hosts_by_event: words(mode.hosts),
            one_thread: words(mode.one_part),
        }
    }
}
