//! The operations of training jobs, and the iterations of collective operations, over time: a row for each rank.

use std::collections::BTreeMap;

use fairrate_results::{CollectiveRow, CollectiveSummary, JobSummary, OperationRow};

use crate::critical_path::CriticalPath;
use crate::format;
use crate::model::block_name;
use crate::panel::{Axis, Panel, Series, TimeUnit};
use crate::style::Style;

/// Largest number of rows.
const MAX_RANKS: usize = 32;
/// Bars of a row and kind that are closer to each other than this share of the time are one.
const RESOLUTION: f64 = 1.0 / 2_000.0;
/// The meaning of the bars of a job, and of those of a collective operation.
const JOB: &str =
    "Computation covers collectives, and these cover messages of the pipeline: what shows of them is exposed.";
const COLLECTIVE: &str = "A bar is an iteration at a rank, from its start to the last message that the rank receives.";

/// Start and end of each operation of a rank in ns, by their kind.
type Spans = BTreeMap<Kind, Vec<(u64, u64)>>;

/// The work of the ranks of a traffic block over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The block in words.
    pub name: String,
    /// Number of its ranks.
    pub ranks: usize,
    /// The meaning of the bars.
    pub note: &'static str,
    /// The rows: the name of a rank, and its bars by their kind.
    pub rows: Vec<(String, BTreeMap<Kind, Bars>)>,
}

/// The bars of a row and kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// Start and end of each bar in ns, in turn.
    pub ends: Vec<f64>,
    /// Time that they cover, in ns.
    pub covered_ns: f64,
}

/// A kind of operations, in the order in which bars cover each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The critical paths of iterations, as marks on the other bars.
    CriticalPath,
    /// Computation.
    Compute,
    /// Collective operations of process groups of this dimension, as `tp`.
    Collective(String),
    /// Messages between stages of the pipeline.
    Message,
    /// Iterations of a collective operation, in turn of two kinds.
    Iteration {
        /// `true` if their numbers are odd.
        is_odd: bool,
    },
}

impl Kind {
    fn of(row: &OperationRow) -> Self {
        match &*row.kind {
            "compute" => Self::Compute,
            "send" | "receive" => Self::Message,
            _ => Self::Collective(row.process_group.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::CriticalPath => "critical path",
            Self::Compute => "compute",
            Self::Collective(dimension) => dimension,
            Self::Message => "pipeline",
            Self::Iteration { is_odd: false } => "even iterations",
            Self::Iteration { is_odd: true } => "odd iterations",
        }
    }
}

/// The work of a rank from a start to an end.
struct Span {
    rank: u32,
    node: u32,
    kind: Kind,
    start_ns: u64,
    end_ns: u64,
}

/// The names and critical paths of traffic blocks, and what returns the name of a node.
pub(crate) struct Blocks<'a, Host> {
    /// The names of blocks; those without a name have an empty one.
    pub names: &'a [String],
    /// Their critical paths.
    pub paths: &'a [CriticalPath],
    /// Returns the name of a node.
    pub host: Host,
}

/// Returns the timelines of jobs.
pub(crate) fn of_jobs(
    summaries: &[JobSummary],
    rows: &[OperationRow],
    blocks: &Blocks<'_, impl Fn(u32) -> String>,
) -> Vec<Timeline> {
    let span = |row: &OperationRow| {
        let &OperationRow { rank, node, start_ns, end_ns, .. } = row;
        Span { rank, node, kind: Kind::of(row), start_ns, end_ns }
    };
    let timeline = |summary: &JobSummary| {
        let spans = rows.iter().filter(|row| row.group == summary.group).map(span);
        blocks.timeline((summary.group, summary.ranks as usize), spans.collect(), JOB)
    };
    summaries.iter().map(timeline).collect()
}

/// Returns the timelines of collective operations; an iteration that is not complete has no bars.
pub(crate) fn of_collectives(
    summaries: &[CollectiveSummary],
    rows: &[CollectiveRow],
    blocks: &Blocks<'_, impl Fn(u32) -> String>,
) -> Vec<Timeline> {
    let span = |row: &CollectiveRow| {
        let kind = Kind::Iteration { is_odd: row.iteration % 2 == 1 };
        Some(Span { rank: row.rank, node: row.node, kind, start_ns: row.start_ns, end_ns: row.end_ns? })
    };
    let timeline = |summary: &CollectiveSummary| {
        let spans = rows.iter().filter(|row| row.group == summary.group).filter_map(span);
        blocks.timeline((summary.group, summary.ranks as usize), spans.collect(), COLLECTIVE)
    };
    summaries.iter().map(timeline).collect()
}

impl<Host: Fn(u32) -> String> Blocks<'_, Host> {
    /// Returns the timeline of a block from the work of its ranks.
    fn timeline(&self, (group, ranks): (u32, usize), work: Vec<Span>, note: &'static str) -> Timeline {
        let end_ns = work.iter().map(|span| span.end_ns).max().unwrap_or(0) as f64;
        // Ranks at equal distances: stages and copies are among them.
        let step = ranks.div_ceil(MAX_RANKS).max(1);
        let mut spans: BTreeMap<u32, (String, Spans)> = BTreeMap::new();
        for span in work.into_iter().filter(|span| (span.rank as usize).is_multiple_of(step)) {
            let of_rank = spans.entry(span.rank).or_insert_with(|| ((self.host)(span.node), BTreeMap::new()));
            of_rank.1.entry(span.kind).or_default().push((span.start_ns, span.end_ns));
        }
        let path = self.paths.iter().filter(|path| path.block == group).flat_map(|path| &path.iterations);
        for stage in path.flat_map(|iteration| &iteration.stages) {
            if let Some((_, kinds)) = spans.get_mut(&stage.rank) {
                let span = (stage.start_ns as u64, (stage.start_ns + stage.time_ns) as u64);
                kinds.entry(Kind::CriticalPath).or_default().push(span);
            }
        }
        let row = |(rank, (host, kinds)): (u32, (String, Spans))| {
            let bars = kinds.into_iter().map(|(kind, spans)| (kind, Bars::of(spans, end_ns * RESOLUTION)));
            (format!("{rank} ({host})"), bars.collect())
        };
        let name = block_name(self.names, group);
        Timeline { name, ranks, rows: spans.into_iter().map(row).collect(), note }
    }
}

impl Bars {
    /// Returns the bars of these spans; those with less than `gap_ns` between them are one.
    fn of(mut spans: Vec<(u64, u64)>, gap_ns: f64) -> Self {
        spans.sort_unstable();
        let (mut bars, mut covered_to) = (Self::default(), 0);
        for (from, to) in spans {
            bars.covered_ns += to.max(covered_to).saturating_sub(from.max(covered_to)) as f64;
            covered_to = covered_to.max(to);
            match bars.ends.last_mut() {
                Some(end) if from as f64 - *end <= gap_ns => *end = end.max(to as f64),
                _ => bars.ends.extend([from as f64, to as f64]),
            }
        }
        bars
    }
}

/// Returns a chart for each timeline, over the time axis `x`.
pub(crate) fn panels(timelines: &[Timeline], unit: TimeUnit, x: &Axis) -> Vec<Panel> {
    let panel = |timeline: &Timeline| {
        let mut kinds: Vec<&Kind> = timeline.rows.iter().flat_map(|(_, kinds)| kinds.keys()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut series = Vec::new();
        // The path has the look that comes after those of operations.
        let n_operations = kinds.iter().filter(|kind| ***kind != Kind::CriticalPath).count();
        let first = kinds.len() - n_operations;
        for (at, kind) in kinds.into_iter().enumerate() {
            let is_path = *kind == Kind::CriticalPath;
            let rows = timeline.rows.iter().enumerate().filter_map(|(row, (_, kinds))| Some((row, kinds.get(kind)?)));
            series.extend(rows.enumerate().map(|(nth, (row, bars))| Series {
                key: kind.name().to_owned(),
                name: if nth == 0 { kind.name().to_owned() } else { String::new() },
                style: Style::nth(if is_path { n_operations } else { at - first }),
                thin: is_path,
                x: unit.of(&bars.ends),
                y: vec![row as f64],
                hint: vec![format::time_ns(bars.covered_ns)],
                ..Series::default()
            }));
        }
        let shown = timeline.rows.len();
        let path = if first == 0 { "" } else { " Marked is the critical path of each iteration." };
        let some =
            if shown < timeline.ranks { format!(" {shown} of {} ranks.", timeline.ranks) } else { String::new() };
        Panel {
            title: format!("Ranks of {}", timeline.name),
            note: format!("{}{path}{some}", timeline.note),
            x: x.clone(),
            y: Axis { rows: timeline.rows.iter().map(|(name, _)| name.clone()).collect(), ..Axis::default() },
            series,
            parts: true,
            wide: true,
            ..Panel::default()
        }
    };
    timelines.iter().filter(|timeline| !timeline.rows.is_empty()).map(panel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critical_path::{PathOfIteration, PathStage};

    #[test]
    fn spans_that_touch_are_one_bar_and_count_once() {
        let bars = Bars::of(vec![(50, 70), (0, 10), (5, 20), (22, 30)], 3.0);
        assert_eq!(bars, Bars { ends: vec![0.0, 30.0, 50.0, 70.0], covered_ns: 48.0 });
    }

    #[test]
    fn a_rank_has_a_row_with_its_kinds() {
        let row = |rank, kind: &str, process_group: &str, start_ns, end_ns| OperationRow {
            group: 0,
            iteration: 0,
            operation: 0,
            rank,
            node: rank,
            kind: kind.to_owned().into(),
            name: "x".to_owned().into(),
            process_group: process_group.to_owned().into(),
            bytes: None,
            start_ns,
            end_ns,
        };
        let rows = [
            row(0, "compute", "", 0, 4_000),
            row(0, "all-reduce", "tp0", 4_000, 9_000),
            row(1, "receive", "", 0, 7_000),
            row(1, "all-reduce", "dp11", 2_000, 10_000),
        ];
        let summary = JobSummary {
            group: 0,
            ranks: 2,
            operations: 3,
            iterations: 1,
            complete: 1,
            time_ns: None,
            compute_ns: None,
            exposed_ns: None,
            pipeline_ns: None,
        };
        let stage = PathStage { rank: 1, start_ns: 1_000.0, time_ns: 2_000.0, ..PathStage::default() };
        let iterations = vec![PathOfIteration { number: 0, stages: vec![stage] }];
        let paths = [CriticalPath { iterations, ..CriticalPath::default() }];
        let blocks = Blocks { names: &["job".to_owned()], paths: &paths, host: |node| format!("h{node}") };
        let all = of_jobs(&[summary], &rows, &blocks);
        let panels = panels(&all, TimeUnit::for_span(10_000.0), &Axis::default());
        assert_eq!(panels[0].y.rows, ["0 (h0)", "1 (h1)"]);
        let series: Vec<(&str, f64, &[f64])> =
            panels[0].series.iter().map(|series| (series.name.as_str(), series.y[0], series.x.as_slice())).collect();
        let want: [(&str, f64, &[f64]); 5] = [
            ("critical path", 1.0, &[1.0, 3.0]),
            ("compute", 0.0, &[0.0, 4.0]),
            ("dp", 1.0, &[2.0, 10.0]),
            ("tp", 0.0, &[4.0, 9.0]),
            ("pipeline", 1.0, &[0.0, 7.0]),
        ];
        assert_eq!(series, want);
        let looks: Vec<(usize, bool)> = panels[0].series.iter().map(|s| (s.style.colour, s.thin)).collect();
        assert_eq!(looks, [(4, true), (0, false), (1, false), (2, false), (3, false)]);
    }

    #[test]
    fn iterations_of_a_collective_take_turns() {
        let row = |iteration, rank, start_ns, end_ns| CollectiveRow {
            group: 0,
            iteration,
            rank,
            node: rank + 4,
            start_ns,
            end_ns,
            time_ns: None,
            ideal_ns: 1,
            bytes: 1,
            algbw_bytes_per_s: None,
            busbw_bytes_per_s: None,
        };
        let rows = [
            row(0, 0, 0, Some(4_000)),
            row(0, 1, 0, Some(5_000)),
            row(1, 0, 4_000, Some(9_000)),
            row(1, 1, 5_000, Some(9_500)),
            row(2, 0, 9_000, None),
        ];
        let summary = CollectiveSummary {
            group: 0,
            op: "all-gather".into(),
            ranks: 2,
            bytes: 1,
            iterations: 3,
            complete: 2,
            ideal_ns: 1,
            time_ns: None,
            busbw_bytes_per_s: None,
        };
        let blocks = Blocks { names: &[], paths: &[], host: |node| format!("h{node}") };
        let panels =
            panels(&of_collectives(&[summary], &rows, &blocks), TimeUnit::for_span(10_000.0), &Axis::default());
        assert_eq!(
            (panels[0].title.as_str(), &panels[0].y.rows[..]),
            ("Ranks of traffic 0", &["0 (h4)".to_owned(), "1 (h5)".to_owned()][..])
        );
        let series: Vec<(&str, f64, &[f64])> =
            panels[0].series.iter().map(|series| (series.key.as_str(), series.y[0], series.x.as_slice())).collect();
        let want: [(&str, f64, &[f64]); 4] = [
            ("even iterations", 0.0, &[0.0, 4.0]),
            ("even iterations", 1.0, &[0.0, 5.0]),
            ("odd iterations", 0.0, &[4.0, 9.0]),
            ("odd iterations", 1.0, &[5.0, 9.5]),
        ];
        assert_eq!(series, want);
    }
}
