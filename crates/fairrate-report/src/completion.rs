//! Completion of traffic blocks: the time from the first start of a block's flows to the last completion, and the times
//! of its queries.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::format;
use crate::metrics::{Metrics, block_words};
use crate::model::{Flow, RunData, block_name, own_name};
use crate::stats::{self, Distribution};

/// The name of all flows together.
const ALL_FLOWS: &str = "all flows";

/// The completion of a traffic block. Over several seeds, times of queries are pooled and the time of the block is the
/// mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Completion {
    /// Number of the block, from 0; `None` for all flows.
    pub block: Option<u32>,
    /// The block in words, `all flows` for all; its name, or `traffic 1` for the second one if it has none.
    pub name: String,
    /// `true` if tables show it: a block with a name.
    #[serde(skip)]
    pub is_shown: bool,
    /// Set if its flows are the messages of a collective operation or of a training job.
    #[serde(skip)]
    pub is_job: bool,
    /// Time from the first start to the last byte of the last flow, in ns, whatever the measuring window; `None` unless
    /// all flows of the block finished in every run.
    pub time_ns: Option<f64>,
    /// Finite flows of the block that should have started, over all runs.
    pub flows: usize,
    /// Flows among them that did not finish or did not start.
    pub unfinished: usize,
    /// Endless flows of the block.
    pub endless: usize,
    /// Times of queries, in ns: flows of the block that start at the same time towards the same receiver, within the
    /// measuring window. A query with an unfinished flow counts with the time that it has taken when the run ended, as
    /// a lower bound.
    pub queries: Distribution,
    /// Flows of the largest query.
    pub most_flows: usize,
}

impl Completion {
    /// Returns the reason why there is no time, in words; `None` if there is one.
    pub fn why_missing(&self) -> Option<String> {
        let count = |n: usize| format::count(n as f64);
        if self.time_ns.is_some() {
            return None;
        }
        Some(match (self.unfinished, self.endless) {
            (0, 1..) => "it has endless flows".to_owned(),
            (0, 0) => "it has no flows".to_owned(),
            (1, _) => format!("1 of {} flows did not finish", count(self.flows)),
            (n, _) => format!("{} of {} flows did not finish", count(n), count(self.flows)),
        })
    }

    /// Returns `true` if the block is made of queries: several, at least one of several flows, which are no messages of
    /// a collective operation.
    pub fn has_queries(&self) -> bool {
        !self.is_job && 1 < self.most_flows && 1 < self.queries.n
    }
}

/// Returns the name in words of a block, `None` for all flows, in all of `columns`.
pub(crate) fn name_in(columns: &[Metrics], block: Option<u32>) -> String {
    block.map_or_else(|| ALL_FLOWS.to_owned(), |block| block_words(columns.iter(), block))
}

/// Returns the completion of all flows, and of each traffic block that has a name or is one of several.
pub(crate) fn completions(runs: &[RunData]) -> Vec<Completion> {
    let names = runs.first().map_or(&[][..], |run| &run.blocks);
    let blocks: BTreeSet<u32> = runs.iter().flat_map(|run| run.flows.iter().map(|flow| flow.block)).collect();
    let several = 1 < blocks.len();
    let of_block = |&block: &u32| Completion {
        block: Some(block),
        name: block_name(names, block),
        is_shown: own_name(names, block).is_some(),
        is_job: runs.iter().any(|run| {
            run.collectives.iter().any(|job| job.block == block) || run.jobs.iter().any(|job| job.block == block)
        }),
        ..of(runs, Some(block))
    };
    let all = Completion { name: ALL_FLOWS.to_owned(), ..of(runs, None) };
    let each = blocks.iter().filter(|block| several || own_name(names, **block).is_some()).map(of_block);
    std::iter::once(all).chain(each).collect()
}

fn of(runs: &[RunData], block: Option<u32>) -> Completion {
    let inside = |flow: &&Flow| block.is_none_or(|block| flow.block == block);
    let (mut times, mut all) = (Vec::new(), Completion { block, ..Completion::default() });
    let (mut known, mut bounds) = (Vec::new(), Vec::new());
    for run in runs {
        let finite = || run.flows.iter().filter(inside).filter(|flow| flow.bytes.is_some());
        let to_start = |(of, n): (&u32, &usize)| if block.is_none_or(|block| block == *of) { *n } else { 0 };
        let not_started: usize = run.not_started.iter().map(to_start).sum();
        let unfinished = finite().filter(|flow| flow.fct_ns.get().is_none()).count() + not_started;
        all.flows += finite().count() + not_started;
        all.unfinished += unfinished;
        all.endless += run.flows.iter().filter(inside).filter(|flow| flow.bytes.is_none()).count();
        let first = finite().map(|flow| flow.start_ns).reduce(f64::min);
        let last = finite().filter_map(|flow| Some(flow.start_ns + flow.fct_ns.get()?)).reduce(f64::max);
        times.extend(first.zip(last).filter(|_| unfinished == 0).map(|(first, last)| last - first));
        each_query(run, inside, |query| {
            all.most_flows = all.most_flows.max(query.flows);
            if query.is_open { bounds.push(query.time_ns) } else { known.push(query.time_ns) }
        });
    }
    let is_whole = times.len() == runs.len() && all.endless == 0;
    all.time_ns = stats::mean(&times).filter(|_| is_whole);
    all.queries = Distribution::with_bounds(known, &bounds);
    all
}

/// A query of a run.
#[derive(Clone, Copy)]
struct Query {
    /// Time until the last of its flows is done, or until the run ended.
    time_ns: f64,
    /// Number of its flows.
    flows: usize,
    /// `true` if a flow did not finish.
    is_open: bool,
}

/// Calls `f` with each query of the measured flows of a run that are `inside`: flows of a block that start together
/// towards one receiver.
fn each_query(run: &RunData, inside: impl Fn(&&Flow) -> bool, f: impl FnMut(Query)) {
    let mut flows: Vec<&Flow> = run.measured_flows().filter(inside).filter(|flow| flow.bytes.is_some()).collect();
    let order =
        |a: &&Flow, b: &&Flow| a.start_ns.total_cmp(&b.start_ns).then_with(|| (a.block, a.dst).cmp(&(b.block, b.dst)));
    // Most are in order already.
    flows.sort_by(order);
    let of = |flows: &[&Flow]| {
        let time_ns = |flow: &&Flow| flow.fct_ns.get().unwrap_or_else(|| (run.totals.end_ns - flow.start_ns).max(0.0));
        Query {
            time_ns: flows.iter().map(time_ns).fold(0.0, f64::max),
            flows: flows.len(),
            is_open: flows.iter().any(|flow| flow.fct_ns.get().is_none()),
        }
    };
    flows.chunk_by(|a, b| order(a, b).is_eq()).map(of).for_each(f);
}

/// Returns the number of flows of each block among `starts`, which are blocks and times in ns, that start after
/// `end_ns`.
pub(crate) fn not_started(starts: impl Iterator<Item = (u32, f64)>, end_ns: f64) -> BTreeMap<u32, usize> {
    let mut all = BTreeMap::new();
    for (block, _) in starts.filter(|(_, start_ns)| end_ns < *start_ns) {
        *all.entry(block).or_default() += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use fairrate_results::Measured;

    use super::*;
    use crate::comparison::Comparison;
    use crate::metric::Metric;
    use crate::metrics::Metrics;
    use crate::model::variants;
    use crate::{notes, table};

    fn flow(block: u32, dst: u32, start_us: f64, fct_us: Option<f64>) -> Flow {
        let start_ns = start_us * 1e3;
        Flow {
            block,
            dst,
            bytes: NonZeroU64::new(1),
            start_ns,
            fct_ns: fct_us.map(|us| us * 1e3).into(),
            ..Flow::default()
        }
    }

    /// Returns a run of 1 ms with two queries of block 1, `shuffle`: to host 7 at 10 µs, to hosts 7 and 8 at 50 µs; and
    /// a flow of block 0.
    fn run(cc: &str, last_us: Option<f64>) -> RunData {
        let flows = vec![
            flow(0, 7, 0.0, Some(400.0)),
            flow(1, 7, 10.0, Some(20.0)),
            flow(1, 7, 10.0, Some(30.0)),
            flow(1, 7, 50.0, Some(60.0)),
            flow(1, 8, 50.0, Some(25.0)),
            flow(1, 7, 50.0, last_us),
        ];
        RunData {
            cc: cc.into(),
            label: cc.into(),
            seed: 1,
            blocks: vec![String::new(), "shuffle".into()],
            measured: Measured { until_ns: 1_000_000, ..Measured::default() },
            totals: crate::model::Totals { end_ns: 1e6, ..Default::default() },
            flows,
            ..RunData::default()
        }
    }

    #[test]
    fn the_time_of_a_block_and_of_its_queries_by_hand() {
        let all = completions(&[run("a", Some(80.0))]);
        let named: Vec<_> = all.iter().map(|c| (c.name.as_str(), c.time_ns, c.is_shown)).collect();
        // From 10 µs to 50 + 80 µs.
        assert_eq!(
            named,
            [("all flows", Some(4e5), false), ("traffic 0", Some(4e5), false), ("shuffle", Some(1.2e5), true)]
        );
        let Distribution { n, n_bounds, p50, max, .. } = all[2].queries;
        assert_eq!((n, n_bounds, p50, max), (3, 0, Some(3e4), Some(8e4)));
        assert!(all[2].has_queries() && all[2].most_flows == 2 && !all[1].has_queries());
    }

    #[test]
    fn an_unfinished_flow_leaves_no_time_and_a_reason() {
        let metrics: Vec<Metrics> =
            variants(vec![run("a", Some(80.0)), run("b", None)]).iter().map(Metrics::of).collect();
        let blocks = [String::new(), "shuffle".to_owned()];
        let value = |name: &str, i: usize| Metric::by_name(name, &blocks).unwrap().value(&metrics[i]);
        assert_eq!((value("completion:shuffle", 0), value("completion:shuffle", 1)), (Some(120.0), None));
        assert_eq!((value("completion", 0), value("completion:block0", 1)), (Some(400.0), Some(400.0)));
        // The query of the unfinished flow has taken 950 µs when the run ends.
        assert_eq!((value("query-max:shuffle", 0), value("query-max:shuffle", 1)), (Some(80.0), Some(950.0)));
        let slowest = Metric::by_name("query-max:shuffle", &blocks).unwrap();
        assert_eq!(slowest.bound(&metrics[1]).unwrap().to_string(), "2 of 3");
        assert_eq!((slowest.unit(), slowest.bound(&metrics[0])), ("µs", None));
        let comparison = Comparison::of(metrics);
        let text = table::comparison(&comparison).to_text();
        assert!(text.contains("Completion of shuffle (5 flows)"), "{text}");
        let row = |name: &str| {
            text.lines().find(|l| l.trim().starts_with(name)).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("whole block"), "whole block 120 µs -");
        assert_eq!(row("query p50"), "query p50 30.0 µs 30.0 µs");
        let note = notes::unfinished(&comparison, &[]).unwrap();
        assert_eq!(note, "No completion of shuffle under b: 1 of 5 flows did not finish.");
        let asked = [Metric::by_name("completion:all", &blocks).unwrap()];
        let note = notes::unfinished(&comparison, &asked).unwrap();
        assert_eq!(note, "No completion of all flows under b: 1 of 6 flows did not finish.");
        assert_eq!(notes::unfinished(&comparison, &[slowest]), None);
    }

    #[test]
    fn flows_that_never_started_and_endless_ones_leave_no_time() {
        let mut one = run("a", Some(80.0));
        one.not_started = not_started([(1, 5e5), (1, 2e6), (0, 3e6)].into_iter(), 1e6);
        let of = |run: &RunData| completions(std::slice::from_ref(run)).pop().unwrap();
        assert_eq!(of(&one).why_missing().as_deref(), Some("1 of 6 flows did not finish"));
        one.not_started.clear();
        assert_eq!(of(&one).why_missing(), None);
        one.flows.push(Flow { bytes: None, ..flow(1, 7, 0.0, None) });
        assert_eq!(of(&one).why_missing().as_deref(), Some("it has endless flows"));
    }

    #[test]
    fn the_mean_over_seeds_needs_all_of_them() {
        let seeds = |last: [Option<f64>; 2]| {
            let runs = last.iter().zip(1..).map(|(last, seed)| RunData { seed, ..run("a", *last) }).collect();
            Metrics::of(&variants(runs).remove(0))
        };
        let time = |m: &Metrics| m.completion.last().unwrap().time_ns;
        assert_eq!(time(&seeds([Some(80.0), Some(100.0)])), Some(1.3e5));
        let half = seeds([Some(80.0), None]);
        assert_eq!((time(&half), half.completion.last().unwrap().unfinished), (None, 1));
    }
}
