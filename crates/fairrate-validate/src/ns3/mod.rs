//! `cargo xtask validate ns3`: compares our simulator with ns-3 in every scenario and with every algorithm that ns-3
//! was run with.

mod compare;
mod exact;
mod json;
mod simulate;
pub mod tables;
mod trace;

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use clap::Args;

use self::exact::Exactness;
use self::tables::{Case, Measured};
use crate::rows::{Findings, Row, Verdict};
use crate::{runs, show};

/// Options of `validate ns3`.
#[derive(Args)]
pub struct Options {
    /// Only this scenario, or this scenario with this algorithm (`star_2x1MB/powertcp`)
    #[arg(long, value_name = "SCENARIO[/ALGORITHM]")]
    only: Option<String>,
    /// Runs of each case whose marks are random draws. One has ns-3's own draws; the mean over several is
    /// compared within 5 %
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Rows as JSON on stdout
    #[arg(long)]
    json: bool,
    /// Also rows that no tolerance is set for
    #[arg(long)]
    all: bool,
    /// Instead: the rates after each of the first acknowledgments, up to the first that differs
    #[arg(long)]
    trace: bool,
    /// Simulations at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: u64,
}

/// Runs the validation; returns `true` if every counted row is inside its tolerance and every flow ends at the same
/// time as in ns-3.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let dir = root.join("validation/ns3");
    let cases: Vec<Case> =
        tables::load(&dir)?.into_iter().filter(|c| is_selected(c, options.only.as_deref())).collect();
    if cases.is_empty() {
        return Err(format!(
            "nothing is called `{}` in validation/ns3/suite.toml",
            options.only.as_deref().unwrap_or("")
        ));
    }
    if options.trace {
        return trace::run(&dir, &cases);
    }
    let findings = Findings::read(&dir.join("findings.toml"))?;
    let measured = measure_all(&dir, &cases, options);
    let exactness = Exactness::of(&cases, &measured);
    let mut rows: Vec<Row> = Vec::new();
    for (case, runs) in cases.iter().zip(measured) {
        rows.extend(compare::rows(case, &runs, &findings));
    }
    rows.retain(|row| options.all || row.verdict != Verdict::NoTolerance);
    if options.json {
        json::print(&rows, &exactness);
    } else {
        exactness.show();
        show::table(&rows);
    }
    Ok(exactness.differ.is_empty() && rows.iter().all(|row| row.verdict != Verdict::Outside))
}

fn is_selected(case: &Case, only: Option<&str>) -> bool {
    only.is_none_or(|only| case.scenario.name == only || case.name() == only)
}

/// Measures every case with all its seeds, several at a time, the longest first. An error, or a panic in the simulator,
/// becomes a failed row instead of the end of the validation.
fn measure_all(dir: &Path, cases: &[Case], options: &Options) -> Vec<Vec<Result<Measured, String>>> {
    let mut todo = runs::of_cases(cases, |case| 1..=if case.is_random() { options.seeds } else { 1 });
    todo.sort_by(|a, b| cases[b.0].reference.packet_hops.total_cmp(&cases[a.0].reference.packet_hops));
    let n_ended = Mutex::new(0);
    let measure = |case: &Case, seed: u64| {
        let start = Instant::now();
        let result = simulate::measure(dir, case, seed);
        let mut n = n_ended.lock().expect("no thread panics with this lock held");
        *n += 1;
        eprintln!("[{n}/{}] {} seed {seed}: {:.1} s", todo.len(), case.name(), start.elapsed().as_secs_f64());
        result
    };
    runs::measure(cases, &todo, options.jobs, &measure)
}
