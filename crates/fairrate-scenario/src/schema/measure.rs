//! `[measure]`: the time window in which queues, utilisation, goodput and slowdowns are measured, and the flows that
//! have rows.

use std::collections::BTreeSet;

use fairrate_sim::{FailureWindows, FlowSpec, Trigger};
use fairrate_units::{Bytes, Time};

use super::Run;
use crate::error::{Report, Site};
use crate::reader::{OrWord, Section};

/// The measuring window of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the window.
    pub from: Time,
    /// End of the window; `None`: the end of the run.
    pub until: Option<Time>,
    /// The windows around the first failure of a link; `None`: there is none.
    pub failure: Option<FailureWindows>,
    /// `true` if messages of collectives and jobs have rows in the table of flows.
    pub messages: bool,
}

/// The values of the section.
pub(super) struct Measure {
    from: OrWord<Time>,
    until: OrWord<Time>,
    from_site: Site,
    until_site: Site,
    messages: bool,
}

/// Accepted words for `from`.
const FROM: &[&str] = &["first-start"];
/// Accepted words for `until`.
const UNTIL: &[&str] = &["last-start", "end"];

/// Reads the section. If flows arrive by themselves (`has_arrivals`), the window ends with the last start by default:
/// the time after it only drains the network, and its length depends on the algorithm. Otherwise the window ends with
/// the run.
pub(super) fn read(root: &mut Section<'_>, has_arrivals: bool) -> Measure {
    let mut s = root.child("measure", "`[measure]`");
    let from = s.value_or::<Time>("from", FROM, OrWord::Word(0));
    let until = s.value_or::<Time>("until", UNTIL, OrWord::Word(usize::from(!has_arrivals)));
    let messages = s.get("messages", true).value;
    root.out.tables.push(("measure".into(), s.finish()));
    let (from_site, until_site) = (from.site, until.site);
    Measure { from: from.value, until: until.value, from_site, until_site, messages }
}

/// Returns the window, once the flows are known, without that of failures. Flows of the groups `messages` wait for each
/// other by their nature.
pub(super) fn build(
    report: &Report,
    measure: &Measure,
    run: &Run,
    flows: &[FlowSpec],
    messages: &BTreeSet<u32>,
) -> Window {
    let timed = || flows.iter().filter(|flow| flow.trigger == Trigger::Time).map(|flow| flow.start);
    let from = match measure.from {
        OrWord::Value(from) => from,
        OrWord::Word(_) => timed().min().unwrap_or_default(),
    };
    let has_endless = flows.iter().any(|flow| flow.bytes == Bytes::MAX);
    let waits = flows.iter().any(|flow| flow.trigger == Trigger::Dependencies && !messages.contains(&flow.group));
    let last = timed().max().unwrap_or_default();
    let until = match measure.until {
        OrWord::Value(until) => Some(until),
        // Endless flows keep the network busy until the end, flows of a list that wait for others may start as late,
        // and flows that all start together have no later start.
        OrWord::Word(0) if has_endless || waits || last <= from => None,
        OrWord::Word(0) => Some(last),
        OrWord::Word(_) => None,
    };
    check(report, measure, run, from, until);
    Window { from, until, failure: None, messages: measure.messages }
}

fn check(report: &Report, measure: &Measure, run: &Run, from: Time, until: Option<Time>) {
    let problem = |site: Site, message: String, help: &str| {
        report.problem("scenario::out_of_range", site, message, "an empty window", help);
    };
    if let Some(until) = until.filter(|until| *until <= from) {
        let message = format!("the measuring window ends at {until} and starts at {from}");
        problem(measure.until_site, message, "let `until` be later than `from`, or write `until = \"end\"`");
    } else if let (OrWord::Value(from), Some(end)) = (&measure.from, run.end.at.filter(|end| *end <= from)) {
        let message = format!("the measuring window starts at {from}, and the run ends at {end}");
        problem(measure.from_site, message, "let `from` be earlier, or `duration` longer");
    }
}
