//! Results directories on their way to the terminal, to JSON and to report.html.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use fairrate_control::Registry;
use fairrate_report::comparison::Comparison;
use fairrate_report::metric::Metric;
use fairrate_report::metrics::Metrics;
use fairrate_report::model::{RunData, Variant, variants};
use fairrate_report::{export, figures, html, load, table};
use fairrate_scenario::write_whole;
use serde::Serialize;

use crate::failure::Failure;
use crate::terminal;

/// Name of the schema of `run --json`; a number that changes only when a field goes or changes its meaning.
const RUN_SCHEMA: &str = "fairrate.run/1";

/// What `run --json` prints.
#[derive(Serialize)]
struct RunJson<'a> {
    schema: &'static str,
    dir: &'a Path,
    report: &'a Path,
    scenario: &'a str,
    state: &'a str,
    seed: u64,
    fingerprint: &'a str,
    metrics: Metrics,
    summary: serde_json::Value,
}

/// Reads a results directory.
pub fn load(dir: &Path, label: &str, registry: &Registry) -> Result<RunData, Failure> {
    Ok(RunData { label: label.to_owned(), ..load::run(dir, registry)? })
}

/// Whether figures are written as files of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pictures {
    /// They are.
    Yes,
    /// They are not.
    No,
}

/// Writes `dir/report.html` about one run, and says its numbers.
pub fn write_report(dir: &Path, run: RunData, pictures: Pictures) -> Result<(RunData, Metrics), Failure> {
    let mut variants = variants(vec![run]);
    let mut comparison = Comparison::of(variants.iter().map(Metrics::of).collect());
    write_page(dir, &variants, &comparison, &[], pictures)?;
    Ok((variants.remove(0).runs.remove(0), comparison.metrics.remove(0)))
}

/// Writes `dir/report.html`, and its figures as files below `dir/figures`.
pub fn write_page(
    dir: &Path,
    variants: &[Variant],
    comparison: &Comparison,
    metrics: &[Metric],
    pictures: Pictures,
) -> Result<(), Failure> {
    let chapters = figures::all(variants, comparison, metrics);
    write(&dir.join("report.html"), &html::page(variants, comparison, &chapters))?;
    match pictures {
        Pictures::Yes => write_figures(&dir.join("figures"), &export::files(&chapters)),
        Pictures::No => Ok(()),
    }
}

/// Writes the files of a report's figures, and removes those of the figures it had before.
fn write_figures(dir: &Path, files: &[export::File]) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|e| Failure::io("making", dir, e))?;
    let before = std::fs::read_to_string(dir.join(export::LIST)).unwrap_or_default();
    for name in export::listed(&before).iter().filter(|name| files.iter().all(|f| f.name != **name)) {
        // One that somebody has removed already is as it should be.
        let _ = std::fs::remove_file(dir.join(name));
    }
    files.iter().try_for_each(|file| write(&dir.join(&file.name), &file.text))
}

/// Writes a file in one piece: never half of it under its name.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole(path, text).map_err(|e| Failure::io("writing", path, e))
}

/// Characters of a file's name at most; file systems allow some 255 bytes.
const LONGEST_NAME: usize = 120;

/// A label as the name of a file or directory.
pub fn file_name(label: &str) -> String {
    let name = label.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.=".contains(c)), "-");
    name.chars().take(LONGEST_NAME).collect()
}

/// Prints data to stdout. Nobody reading it (a closed pipe) is no failure; a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::io("writing", Path::new("stdout"), e)),
        _ => Ok(()),
    }
}

/// Prints a text for people. Names from scenarios do nothing to the terminal; [`styled`] ones are bold.
pub fn print_text(text: &str) -> Result<(), Failure> {
    print(&terminal::harmless(text, styled()))
}

/// Prints a value as indented JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    // Serialising to memory fails only for maps without text keys, and there are none.
    print(&(serde_json::to_string_pretty(value).unwrap_or_default() + "\n"))
}

/// Whether tables are set in bold here and there.
pub fn styled() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Prints the tables of a run, or its JSON.
pub fn print_run(dir: &Path, data: &RunData, metrics: Metrics, json: bool) -> Result<(), Failure> {
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
            metrics,
            summary,
        });
    }
    let tables: Vec<String> = table::single(&metrics).iter().map(|t| t.to_text(styled())).collect();
    let end = fairrate_report::format::time_ns(data.totals.end_ns);
    print_text(&format!(
        "{}: {}, seed {}, {end} simulated in {:.1} s ({})\n\n{}\nfingerprint {}\nreport      {}\n",
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
