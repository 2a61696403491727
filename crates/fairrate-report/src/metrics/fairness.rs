//! Fairness among long flows.

use crate::model::{FlowSeries, RunData};
use crate::series::value_at;
use crate::stats;

/// Returns the Jain index of the long flows.
///
/// The long flows are the endless flows that were probed: their shares are the bytes each delivered while all of them
/// were active. With fewer than two of those, a burst is measured: the finite flows, if there are at least two and all
/// have the same size and start and are finished; their shares are size over FCT. Otherwise there is no index.
pub fn fairness(run: &RunData) -> Option<f64> {
    let endless = |s: &&FlowSeries| run.flows.iter().any(|f| f.id == s.flow && f.bytes.is_none());
    let long: Vec<&FlowSeries> = run.rates.iter().filter(endless).filter(|s| !s.t_ns.is_empty()).collect();
    if 2 <= long.len() {
        return long_flow_fairness(&long, run.window());
    }
    let finite = || run.flows.iter().filter(|f| f.bytes.is_some());
    let first = finite().next()?;
    let one_burst = finite().all(|f| f.bytes == first.bytes && f.start_ns == first.start_ns);
    if !one_burst || finite().nth(1).is_none() {
        return None;
    }
    stats::jain(&finite().map(|f| Some(1.0 / f.fct_ns.get()?)).collect::<Option<Vec<_>>>()?)
}

fn long_flow_fairness(long: &[&FlowSeries], (from, until): (f64, f64)) -> Option<f64> {
    let from = long.iter().filter_map(|s| s.t_ns.first()).copied().fold(from, f64::max);
    let to = long.iter().filter_map(|s| s.t_ns.last()).copied().fold(until, f64::min);
    if to <= from {
        return None;
    }
    let delivered = |s: &&FlowSeries| {
        let at = |t| value_at(&s.t_ns, &s.delivered_bytes, t).unwrap_or(0.0);
        at(to) - at(from)
    };
    stats::jain(&long.iter().map(delivered).collect::<Vec<_>>())
}
