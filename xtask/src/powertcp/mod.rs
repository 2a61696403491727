//! `cargo xtask validate powertcp`: the claims of the PowerTCP paper's Figures 4 to 7 and 9 to 11 beside what this simulator
//! measures: with every algorithm in its own paper's form, in the ns-3 artifact's, and with the artifact's traffic.

mod claims;
mod homa;
mod runs;
mod slowdowns;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use claims::{Claim, LOADS, Verdict};
use runs::{Column, Job, Measured, Size, Workload};

const ALGORITHMS: [&str; 5] = ["powertcp", "theta-powertcp", "hpcc", "timely", "dcqcn"];
/// Those of which the paper says something at the loads of Figure 7.
const AT_ALL_LOADS: [&str; 3] = ["powertcp", "theta-powertcp", "hpcc"];

/// What to validate, and how to show it.
#[derive(Args)]
pub struct Options {
    /// A sixth of the web search traffic: minutes become seconds, and tails become noise
    #[arg(long)]
    quick: bool,
    /// The artifact's traffic for as long as in its own runs: hours
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Claims as JSON on stdout
    #[arg(long)]
    json: bool,
    /// Only runs whose name contains one of these, separated by commas, as `homa` or `ArtifactTraffic WebSearch(60)`
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Seeds of the artifact's web search traffic
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Seeds of the web search traffic between racks
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    uniform_seeds: u64,
    /// Simulations at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: u64,
}

/// Everything measured, by column, workload, algorithm and seed.
type Results = BTreeMap<(Column, Workload, &'static str, u64), Measured>;

/// Runs the comparison. It reports claims, met or not, so it succeeds if it could run.
///
/// # Errors
/// If a scenario does not build or a run stalls.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let results = measure_all(root, options)?;
    let reasons = read_reasons(&root.join("validation/powertcp/reasons.toml"))?;
    let mut claims = claims::all();
    claims.extend(homa::claims());
    if !options.only.is_empty() {
        claims.retain(|claim| Column::ALL.iter().any(|&c| claim.measure(c, &results).1 != Verdict::NotRun));
    }
    if options.json {
        print_json(&claims, &results, &reasons)?;
    } else {
        print_table(&claims, &results, &reasons);
    }
    Ok(true)
}

/// All runs, those of most seeds last.
fn jobs(options: &Options) -> Vec<Job> {
    let size = match (options.quick, options.full) {
        (true, _) => Size::Quick,
        (_, true) => Size::Full,
        _ => Size::Usual,
    };
    let mut jobs = Vec::new();
    let mut add = |column, workload, seeds, ccs: &[&'static str]| {
        for seed in 1..=seeds {
            jobs.extend(ccs.iter().map(|&cc| Job { column, workload, cc, seed, size }));
        }
    };
    for workload in [Workload::Incast255, Workload::Incast10, Workload::Fairness] {
        add(Column::Own, workload, 1, &ALGORITHMS);
        add(Column::Own, workload, 1, &homa::DEGREES);
        add(Column::Artifact, workload, 1, &ALGORITHMS);
    }
    for load in [60, 20] {
        add(Column::Own, Workload::WebSearch(load), options.uniform_seeds, &ALGORITHMS);
        add(Column::Own, Workload::WebSearch(load), options.uniform_seeds, &homa::WEB_SEARCH);
        add(Column::Artifact, Workload::WebSearch(load), options.uniform_seeds, &ALGORITHMS);
    }
    for load in [60, 20] {
        add(Column::ArtifactTraffic, Workload::WebSearch(load), options.seeds, &ALGORITHMS);
        add(Column::ArtifactTraffic, Workload::WebSearch(load), options.seeds, &homa::WEB_SEARCH);
        add(Column::PathTau, Workload::WebSearch(load), options.seeds, &AT_ALL_LOADS);
    }
    for load in LOADS.into_iter().filter(|load| ![20, 60].contains(load)) {
        add(Column::ArtifactTraffic, Workload::WebSearch(load), options.seeds, &AT_ALL_LOADS);
    }
    if !options.only.is_empty() {
        jobs.retain(|job| options.only.iter().any(|part| job.to_string().contains(part.as_str())));
    }
    jobs
}

fn measure_all(root: &Path, options: &Options) -> Result<Results, String> {
    let jobs = jobs(options);
    let (next, results, failure) = (AtomicUsize::new(0), Mutex::new(Results::new()), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match runs::measure(root, job) {
                        Ok(measured) => {
                            let mut results = results.lock().expect("no thread panicked");
                            results.insert((job.column, job.workload, job.cc, job.seed), measured);
                            eprintln!("[{}/{}] {job}: {measured}", results.len(), jobs.len());
                        }
                        Err(message) => {
                            *failure.lock().expect("no thread panicked") = Some(format!("{job}: {message}"));
                        }
                    }
                }
            });
        }
    });
    if let Some(message) = failure.into_inner().expect("no thread panicked") {
        return Err(message);
    }
    Ok(results.into_inner().expect("no thread panicked"))
}

/// Why a claim is not met, by its id.
fn read_reasons(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn print_table(claims: &[Claim], results: &Results, reasons: &BTreeMap<String, String>) {
    let heads = Column::ALL.map(|column| format!(" {:<22} |", column.head())).concat();
    println!("| {:<94} | {:<13} |{heads}", "claim", "paper");
    println!("|{:-<96}|{:-<15}|{}", "", "", format!("{:-<24}|", "").repeat(Column::ALL.len()));
    let mut counts: BTreeMap<(Column, Verdict), usize> = BTreeMap::new();
    for claim in claims {
        let cells = Column::ALL.map(|column| format!(" {:<22} |", claim.cell(column, results))).concat();
        println!("| {:<94} | {:<13} |{cells}", claim.text, claim.paper_text());
        for column in Column::ALL {
            *counts.entry((column, claim.measure(column, results).1)).or_insert(0) += 1;
        }
    }
    for claim in claims {
        let verdict = |&column: &Column| claim.measure(column, results).1;
        let first = Column::ALL.iter().map(verdict).find(|&v| v != Verdict::NotRun);
        if let (Some(Verdict::Less | Verdict::NotMet), Some(reason)) = (first, reasons.get(&claim.id)) {
            println!("\n{}: {reason}", claim.id);
        }
    }
    println!();
    for column in Column::ALL {
        let of = counts.iter().filter(|((c, verdict), _)| *c == column && *verdict != Verdict::NotRun);
        let counts: Vec<String> = of.map(|((_, verdict), n)| format!("{n} {verdict}")).collect();
        println!("{}: {}", column.head(), counts.join(", "));
    }
    println!("(met: at least what the paper states, to 5 points; less: the same direction; not met: the other;");
    println!("shown: no number in the paper; ±: half the 95 % interval of the mean over seeds)");
}

fn print_json(claims: &[Claim], results: &Results, reasons: &BTreeMap<String, String>) -> Result<(), String> {
    let measured = |claim: &Claim, column: Column| {
        let (estimate, verdict) = claim.measure(column, results);
        // JSON has no numbers for what was not run.
        let finite = |value: f64| value.is_finite().then_some(value);
        serde_json::json!({
            "value": finite(estimate.mean),
            "half_width_95": finite(estimate.half_width),
            "seeds": estimate.n,
            "verdict": verdict.to_string(),
        })
    };
    let rows: Vec<serde_json::Value> = claims
        .iter()
        .map(|claim| {
            let columns: BTreeMap<&str, serde_json::Value> =
                Column::ALL.map(|column| (column.head(), measured(claim, column))).into();
            serde_json::json!({
                "id": claim.id,
                "claim": claim.text,
                "paper": claim.paper,
                "unit": claim.unit.name(),
                "measured": columns,
                "reason": reasons.get(&claim.id),
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&rows).map_err(|e| e.to_string())?;
    println!("{text}");
    Ok(())
}
