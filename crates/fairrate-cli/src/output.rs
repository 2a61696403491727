//! Output of results directories: to the terminal, as JSON and as report.html.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use fairrate_control::Registry;
use fairrate_report::comparison::Comparison;
use fairrate_report::metrics::Metrics;
use fairrate_report::model::RunData;
use fairrate_report::{load, notes, table};
use fairrate_results::write_whole;
use fairrate_scenario::printable;
use serde::Serialize;

pub use fairrate_experiment::columns::file_name;
pub use fairrate_report::publish::{Pictures, page as write_page, run as write_report};

use crate::failure::Failure;
use crate::terminal;

/// Name of the schema of `run --json`; its number changes only when a field is removed or changes its meaning.
const RUN_SCHEMA: &str = "fairrate.run/1";

/// The output of `run --json`.
#[derive(Serialize)]
struct RunJson<'a> {
    schema: &'static str,
    dir: &'a Path,
    report: &'a Path,
    scenario: &'a str,
    state: &'a str,
    seed: u64,
    fingerprint: &'a str,
    warnings: &'a [String],
    metrics: Metrics,
    summary: serde_json::Value,
}

/// Reads the results in `dir`; returns them under the label `label`.
pub fn load(dir: &Path, label: &str, registry: &Registry) -> Result<RunData, Failure> {
    Ok(RunData { label: label.to_owned(), ..load::run(dir, registry)? })
}

/// Writes a file in one step: a file of that name is never incomplete.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole(path, text).map_err(|e| Failure::io("writing", path, e))
}

/// Prints data to stdout. A closed pipe is no failure; a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::io("writing", Path::new("stdout"), e)),
        _ => Ok(()),
    }
}

/// Prints a text for people, in bold here and there if [`styled`]. Control characters in names from scenarios are
/// replaced.
pub fn print_text(text: &str) -> Result<(), Failure> {
    print(&terminal::harmless(text, styled()))
}

/// Prints warnings to stderr, each on a line.
pub fn warn(warnings: &[&str]) {
    for warning in warnings {
        eprintln!("warning: {}", printable(warning));
    }
}

/// Prints a value as indented JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    // Serialising to memory fails only for maps without text keys, and there are none.
    print(&(serde_json::to_string_pretty(value).unwrap_or_default() + "\n"))
}

/// Returns `true` if tables may use bold: stdout is a terminal and `NO_COLOR` is not set.
pub fn styled() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Prints the tables of a run, or its JSON.
pub fn print_run(dir: &Path, data: &RunData, metrics: Metrics, warnings: &[String], json: bool) -> Result<(), Failure> {
    let report = dir.join("report.html");
    if json {
        let path = dir.join("summary.json");
        let text = std::fs::read_to_string(&path).map_err(|e| Failure::io("reading", &path, e))?;
        let summary = serde_json::from_str(&text).map_err(|e| Failure::io("reading", &path, e))?;
        return print_json(&RunJson {
            schema: RUN_SCHEMA,
            dir,
            report: &report,
            scenario: &data.scenario,
            state: &data.state,
            seed: data.seed,
            fingerprint: &data.provenance.fingerprint,
            warnings,
            metrics,
            summary,
        });
    }
    let all = table::single(&metrics);
    let iterations = fairrate_report::collectives::table(data);
    let training = fairrate_report::jobs::table(data);
    let tables: Vec<String> =
        training.iter().chain(&iterations).chain(&all).map(|t| t.to_styled_text(styled())).collect();
    let end = fairrate_report::format::time_ns(data.totals.end_ns);
    let alone = Comparison::of(vec![metrics.clone()]);
    let about = notes::largest(&all.iter().collect::<Vec<_>>()).into_iter();
    let about = about
        .chain(notes::unfinished(&alone, &[]))
        .chain(notes::unrecovered(&alone, &[]))
        .chain(notes::window(&alone.metrics));
    let about = about.map(|note| format!("\n{note}\n")).collect::<Vec<_>>().concat();
    print_text(&format!(
        "{}: {}, seed {}, {end} simulated in {:.1} s ({})\n\n{}{about}\nfingerprint {}\nreport      {}\n",
        data.scenario,
        data.label,
        data.seed,
        data.totals.wall_s,
        data.state,
        tables.join("\n"),
        data.provenance.fingerprint,
        report.display(),
    ))
}
