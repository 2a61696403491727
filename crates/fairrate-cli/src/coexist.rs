//! `fairrate coexist`: the standard study of two algorithms that share a queue, as a comparison over buffers, numbers
//! of flows, round-trip times and classes, with short flows, and with groups that come and go.

mod cases;
mod maps;
mod study;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use fairrate_control::Registry;
use fairrate_experiment::columns::{Seeds, parse_seeds};
use fairrate_report::index::Index;
use fairrate_report::metric::Metric;
use fairrate_report::metrics::Metrics;

use self::study::Plan;
pub use self::study::Study;
pub use self::verdict::{Case, verdict};
use crate::compare;
use crate::failure::Failure;
use crate::output;
use crate::run::Sets;

/// Arguments of `coexist`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// One algorithm, as NAME, NAME:KEY=VALUE or NAME/TRANSPORT, where TRANSPORT is rdma, tcp or uet
    a: String,
    /// The other one
    b: String,
    #[command(flatten)]
    plan: Plan,
    /// Seeds, as for `compare`
    #[arg(long, value_name = "SEEDS", default_value = "1..5", value_parser = parse_seeds)]
    seeds: Seeds,
    #[command(flatten)]
    sets: Sets,
    /// Results directory [default: runs/A-beside-B]; the scenario is written beside it
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print compare.json in place of the tables
    #[arg(long)]
    pub json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

/// Metrics that the terminal's table has.
const PRINTED: [&str; 15] = [
    "fair-share:block0",
    "fair-share:block1",
    "slowdown-p50:block1",
    "slowdown-p99:block1",
    "rest:block0",
    "settle-come:block0",
    "level-come:block0",
    "settle-go:block0",
    "settle-come:block1",
    "level-come:block1",
    "settle-go:block1",
    "jain",
    "queue-mean",
    "drops:block0",
    "drops:block1",
];

/// Further metrics, which the report and the verdict have.
const MORE: [&str; 6] =
    ["level-go:block0", "level-go:block1", "jain:block0", "jain:block1", "marked:block0", "marked:block1"];

/// Returns the metrics of a study.
pub fn metrics() -> Vec<&'static str> {
    PRINTED.into_iter().chain(MORE).collect()
}

/// Runs the study, and returns the exit code.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let study = Study::new(&args.plan, [&args.a, &args.b], registry)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("runs/{}", study.blocks.join("-beside-"))));
    let mut beside = out.clone().into_os_string();
    beside.push("-scenario");
    let beside = PathBuf::from(beside);
    let is_new = !beside.exists();
    study.write(&beside)?;
    let shown = compare::Study { shown: Some(&PRINTED), heat_maps: Some(study.heat_maps.clone()) };
    let result = compare::run_study(&comparison(args, &study, &beside, &out), &shown, registry);
    if result.is_err() && is_new && !out.exists() {
        // Nothing is left of a study that was refused.
        let _ = std::fs::remove_dir_all(&beside);
    }
    let code = result?;
    if !args.json {
        let index = Index::read(&out)?;
        if let Some((_, comparison)) = index.assemble(&out, registry)? {
            let cases: Vec<Case> = comparison.metrics.iter().map(case).collect();
            output::print_text(&verdict(&study.blocks, &cases))?;
        }
    }
    Ok(code)
}

/// Returns the study of the algorithms `a` and `b`, with `options` as `coexist` takes them.
///
/// # Errors
/// An option or an algorithm is not understood.
pub fn study(a: &str, b: &str, options: &[String], registry: &Registry) -> Result<Study, Failure> {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        plan: Plan,
    }
    let words = std::iter::once("coexist").chain(options.iter().map(String::as_str));
    let line = Line::try_parse_from(words).map_err(|error| Failure::Usage {
        message: error.to_string().trim_start_matches("error: ").lines().next().unwrap_or_default().to_owned(),
        help: "`fairrate coexist --help` says what each option takes".to_owned(),
    })?;
    Study::new(&line.plan, [a, b], registry)
}

/// Returns the comparison of all cases.
fn comparison(args: &Args, study: &Study, beside: &Path, out: &Path) -> compare::Args {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: compare::Args,
    }
    let mut words: Vec<String> = vec!["coexist".into(), beside.join("coexist.toml").display().to_string()];
    let mut add = |key: &str, value: String| words.extend([key.to_owned(), value]);
    for variant in &study.variants {
        add("--variant", variant.clone());
    }
    add("--grid", format!("switch.buffer={}", study.buffers.join(",")));
    let seeds: Vec<String> = args.seeds.0.iter().map(u64::to_string).collect();
    add("--seeds", seeds.join(","));
    for metric in metrics() {
        add("--metric", metric.to_owned());
    }
    for (key, value) in args.sets.pairs() {
        add("--set", format!("{key}={value}"));
    }
    add("--out", out.display().to_string());
    words.extend([(args.json, "--json"), (args.quiet, "--quiet")].into_iter().filter(|f| f.0).map(|f| f.1.to_owned()));
    Line::parse_from(words).args
}

/// Returns the case of a column.
fn case(column: &Metrics) -> Case {
    let values = |metric: Metric| column.seeds_alone().iter().filter_map(|m| metric.value(m)).collect();
    let of = |name: &str| Some((name.to_owned(), values(Metric::by_name(name, &[])?)));
    let label = column.label.strip_suffix(&column.point).unwrap_or(&column.label).trim_end();
    Case {
        label: label.to_owned(),
        point: column.point.clone(),
        values: metrics().into_iter().filter_map(of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_not_understood_are_named() {
        let options = ["--flows".to_owned(), "0:1".to_owned()];
        let error = study("dctcp", "cubic", &options, &Registry::new()).map(|_| ()).expect_err("no flows");
        assert!(error.to_string().contains("0:1"), "{error}");
    }
}
