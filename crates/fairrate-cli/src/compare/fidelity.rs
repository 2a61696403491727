//! `--fidelity`: one scenario as packets, as fluids and by the alpha-beta model, and the operations in which these
//! part.

use std::collections::BTreeMap;
use std::path::Path;

use fairrate_experiment::columns::Variant;
use fairrate_report::format;
use fairrate_report::index::{Index, RunEntry};
use fairrate_results::{Results, ResultsError};
use fairrate_text::aligned;

use crate::failure::Failure;

/// Most rows of the table.
const MOST: usize = 12;

/// A way to move data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fidelity {
    /// Packets, under the scenario's algorithm
    Packets,
    /// Fluids, which have their max-min rates at every moment (`ideal`)
    Fluid,
    /// Each message has the rate of its slowest link, whatever else there is
    AlphaBeta,
}

impl Fidelity {
    /// Returns the label of its column.
    fn label(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Fluid => "fluid",
            Self::AlphaBeta => "alpha-beta",
        }
    }

    fn variant(self) -> Variant {
        let rates = |rates| Variant::called(self.label(), "ideal", &[("transport.ideal.rates", rates)]);
        match self {
            Self::Packets => Variant::called(self.label(), "", &[]),
            Self::Fluid => rates("max-min"),
            Self::AlphaBeta => rates("alone"),
        }
    }
}

/// Returns a variant of the scenario for each fidelity.
pub fn variants(all: &[Fidelity]) -> Vec<Variant> {
    all.iter().map(|fidelity| fidelity.variant()).collect()
}

/// Checks that packets are packets: a scenario under `ideal` has none.
pub fn check<'a>(all: &[Fidelity], mut entries: impl Iterator<Item = &'a RunEntry>) -> Result<(), Failure> {
    if all.contains(&Fidelity::Packets) && entries.any(|entry| entry.cc == "ideal" && is_of(entry, Fidelity::Packets)) {
        return Err(Failure::Usage {
            message: "this scenario has no packets: its algorithm is `ideal`".to_owned(),
            help: "choose one, as in `--set transport.cc=dcqcn`".to_owned(),
        });
    }
    Ok(())
}

fn is_of(entry: &RunEntry, fidelity: Fidelity) -> bool {
    entry.line == fidelity.label()
}

/// The times of operations of the same block, name and kind: their sum in ns, and their number.
type Times = BTreeMap<(u32, String), (f64, u64)>;

/// Returns a table of the operations in which the fidelities part most; `None` if there are no operations, or a grid.
/// `blocks` has the names of traffic blocks.
pub fn parting(all: &[Fidelity], index: &Index, dir: &Path, blocks: &[String]) -> Option<String> {
    if all.len() < 2 || index.runs.iter().any(|run| !run.grid.is_empty()) {
        return None;
    }
    let of = |fidelity: &Fidelity| {
        let mut times = Times::new();
        for run in index.runs.iter().filter(|run| run.state == "complete" && is_of(run, *fidelity)) {
            add(&mut times, &dir.join(&run.dir), blocks).ok()?;
        }
        Some(times)
    };
    let times: Vec<Times> = all.iter().map(of).collect::<Option<_>>()?;
    let mut rows: Vec<(f64, [String; 2], Vec<String>)> = times[0]
        .iter()
        .filter_map(|(key, first)| {
            let mean = |(sum, n): &(f64, u64)| sum / *n as f64;
            let others: Vec<f64> = times[1..].iter().map(|times| times.get(key).map(mean)).collect::<Option<_>>()?;
            let usual = mean(first);
            let apart = others.iter().map(|other| (other - usual).abs()).fold(0.0, f64::max) * first.1 as f64;
            let change = |other: &f64| format!("{} {:+.1} %", format::time_ns(*other), 100.0 * (other / usual - 1.0));
            let cells = std::iter::once(format::time_ns(usual)).chain(others.iter().map(change));
            Some((apart, [key.1.clone(), first.1.to_string()], cells.collect()))
        })
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (n, head) =
        (rows.len(), ["operation", "number"].into_iter().chain(all.iter().map(|fidelity| fidelity.label())));
    let head: Vec<String> = head.map(str::to_owned).collect();
    let rows = rows.into_iter().take(MOST).map(|(_, names, cells)| names.into_iter().chain(cells).collect());
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let rest = if MOST < n { format!("{} more\n", n - MOST) } else { String::new() };
    (1 < lines.len()).then(|| {
        format!("\nMean time from the moment all ranks are ready to the end at the last one, where it differs most in sum\n{}{rest}", aligned(&lines, 1))
    })
}

/// The last start and the last end of an operation among its ranks, in ns.
#[derive(Default)]
struct Span {
    start: u64,
    end: u64,
}

/// Adds the times of the operations of the run in `dir`.
fn add(times: &mut Times, dir: &Path, blocks: &[String]) -> Result<(), ResultsError> {
    let results = Results::open(dir)?;
    let mut spans: BTreeMap<(u32, u32, u32), (String, Span)> = BTreeMap::new();
    let mut note = |key, what: String, start: u64, end: u64| {
        let (_, span) = spans.entry(key).or_insert_with(|| (what, Span::default()));
        (span.start, span.end) = (span.start.max(start), span.end.max(end));
    };
    if !results.summary.jobs.is_empty() {
        for row in results.operations()?.iter().filter(|row| !["compute", "send"].contains(&&*row.kind)) {
            let what =
                if &*row.kind == "receive" { (*row.name).to_owned() } else { format!("{} {}", &*row.name, &*row.kind) };
            note((row.group, row.iteration, 1 + row.operation), what, row.start_ns, row.end_ns);
        }
    }
    let collectives = if results.summary.collectives.is_empty() { Vec::new() } else { results.collectives()? };
    for collective in &results.summary.collectives {
        let name = blocks.get(collective.group as usize).map_or("", String::as_str);
        let what = format!("{name} {}", collective.op).trim_start().to_owned();
        for row in collectives.iter().filter(|row| row.group == collective.group) {
            if let Some(end) = row.end_ns {
                note((row.group, row.iteration, 0), what.clone(), row.start_ns, end);
            }
        }
    }
    for ((group, ..), (what, span)) in spans {
        let (sum, n) = times.entry((group, what)).or_default();
        (*sum, *n) = (*sum + span.end.saturating_sub(span.start) as f64, *n + 1);
    }
    Ok(())
}
