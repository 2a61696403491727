//! `fairrate coexist`: the standard study of two algorithms that share a queue, as a comparison over buffers, numbers of flows,
//! round-trip times and classes.

mod study;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use fairrate_control::Registry;
use fairrate_experiment::columns::{Seeds, parse_seeds};
use fairrate_report::format;
use fairrate_report::index::Index;
use fairrate_report::metrics::GroupMetrics;

use self::study::Plan;
pub use self::study::Study;
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
    #[arg(long, value_name = "SEEDS", default_value = "1..3", value_parser = parse_seeds)]
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

/// Shares of a fair one that count as fair.
const FAIR: std::ops::RangeInclusive<f64> = 0.9..=1.1;

/// Runs the study, and returns the exit code.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let study = Study::new(&args.plan, [&args.a, &args.b], registry)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("runs/{}", study.blocks.join("-beside-"))));
    let mut beside = out.clone().into_os_string();
    beside.push("-scenario");
    let beside = PathBuf::from(beside);
    let is_new = !beside.exists();
    study.write(&beside)?;
    let result = compare::run(&comparison(args, &study, &beside, &out), registry);
    if result.is_err() && is_new && !out.exists() {
        // Nothing is left of a study that was refused.
        let _ = std::fs::remove_dir_all(&beside);
    }
    let code = result?;
    if !args.json {
        let index = Index::read(&out)?;
        if let Some((_, comparison)) = index.assemble(&out, registry)? {
            let share = |groups: &[GroupMetrics]| if let [a, _] = groups { a.fair_share } else { None };
            let cases = comparison.metrics.iter().filter_map(|m| Some((m.label.clone(), share(&m.groups)?)));
            output::print_text(&verdict(&study.blocks, cases.collect()))?;
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
    for metric in ["fair-share:block0", "fair-share:block1", "queue-mean", "drops"] {
        add("--metric", metric.to_owned());
    }
    for (key, value) in args.sets.pairs() {
        add("--set", format!("{key}={value}"));
    }
    add("--out", out.display().to_string());
    words.extend([(args.json, "--json"), (args.quiet, "--quiet")].into_iter().filter(|f| f.0).map(|f| f.1.to_owned()));
    Line::parse_from(words).args
}

/// Returns what the cases say in a few sentences: each has a label, and the share of a fair one that a flow of the first of the two
/// `blocks` gets.
pub fn verdict([name, other]: &[String; 2], mut shares: Vec<(String, f64)>) -> String {
    shares.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(least), Some(most)) = (shares.first(), shares.last()) else { return String::new() };
    let n_fair = shares.iter().filter(|(_, share)| FAIR.contains(share)).count();
    let n_more = shares.iter().filter(|(_, share)| *FAIR.end() < *share).count();
    let all = shares.len();
    let count = |n: usize| if n == all { format!("all {all}") } else { format!("{n} of {all}") };
    let word = match (n_fair, n_more) {
        (fair, _) if fair == all => format!("{name} and {other} share fairly in all {all} cases (within 10 %)."),
        (fair, more) if fair + more == all => format!("{name} takes more than its share in {} cases.", count(more)),
        (fair, 0) => format!("{name} gets less than its share in {} cases.", count(all - fair)),
        (fair, more) => format!(
            "{name} takes more than its share in {} cases and less in {}.",
            count(more),
            count(all - fair - more)
        ),
    };
    let case = |(case, share): &(String, f64)| format!("{} ({case})", format::percent(*share));
    format!("{word} A flow of {name} gets from {} to {} of a fair share.\n", case(least), case(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_names_the_extremes() {
        let cases = [("1:1", 0.95), ("1:10", 1.5), ("10:1", 0.2)].map(|(label, share)| (label.to_owned(), share));
        assert_eq!(
            verdict(&["new".to_owned(), "old".to_owned()], cases.to_vec()),
            "new takes more than its share in 1 of 3 cases and less in 1 of 3. A flow of new gets from 20.0 % (10:1) to 150.0 % \
             (1:10) of a fair share.\n"
        );
    }

    #[test]
    fn options_that_are_not_understood_are_named() {
        let options = ["--flows".to_owned(), "0:1".to_owned()];
        let error = study("dctcp", "cubic", &options, &Registry::new()).map(|_| ()).expect_err("no flows");
        assert!(error.to_string().contains("0:1"), "{error}");
    }
}
