//! `cargo xtask validate powertcp`: the claims of the PowerTCP paper's Figures 4 to 6 beside what this simulator
//! measures, with every algorithm in its own paper's form and, for the reasons, in the ns-3 artifact's.

mod claims;
mod runs;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use claims::{Claim, Verdict};
use runs::{Job, Measured, Workload};

/// The two forms every claim is measured in: a profile and its column in the table.
const PROFILES: [&str; 2] = ["paper", "ns3"];
const ALGORITHMS: [&str; 5] = ["powertcp", "theta-powertcp", "hpcc", "timely", "dcqcn"];

/// What to validate, and how to show it.
#[derive(Args)]
pub struct Options {
    /// A sixth of the web search traffic: minutes become seconds, and tails become noise
    #[arg(long)]
    quick: bool,
    /// Claims as JSON on stdout
    #[arg(long)]
    json: bool,
    /// Simulations at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: u64,
}

/// Everything measured, by (profile, workload, algorithm).
type Results = BTreeMap<(&'static str, Workload, &'static str), Measured>;

/// Runs the comparison. It reports claims, met or not, so it succeeds if it could run.
///
/// # Errors
/// If a scenario does not build or a run stalls.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let results = measure_all(root, options)?;
    let reasons = read_reasons(&root.join("validation/powertcp/reasons.toml"))?;
    let claims = claims::all();
    if options.json {
        print_json(&claims, &results, &reasons)?;
    } else {
        print_table(&claims, &results, &reasons);
    }
    Ok(true)
}

fn measure_all(root: &Path, options: &Options) -> Result<Results, String> {
    let mut jobs = Vec::new();
    for profile in PROFILES {
        for workload in Workload::ALL {
            jobs.extend(ALGORITHMS.map(|cc| Job { profile, workload, cc, quick: options.quick }));
        }
    }
    let (next, results, failure) = (AtomicUsize::new(0), Mutex::new(Results::new()), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match runs::measure(root, job) {
                        Ok(measured) => {
                            let mut results = results.lock().expect("no thread panicked");
                            results.insert((job.profile, job.workload, job.cc), measured);
                            eprintln!("[{}/{}] {job}", results.len(), jobs.len());
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
    println!("{:<74} {:>12} {:>22} {:>22}", "claim", "paper", "own forms", "ns-3 artifact's forms");
    let mut counts = BTreeMap::new();
    for claim in claims {
        let cells = PROFILES.map(|profile| claim.measure(profile, results));
        let shown = cells.map(|(value, verdict)| format!("{} {verdict}", claim.unit.show(value)));
        println!("{:<74} {:>12} {:>22} {:>22}", claim.text, claim.paper_text(), shown[0], shown[1]);
        *counts.entry(cells[0].1).or_insert(0) += 1;
        if cells[0].1 != Verdict::Met
            && let Some(reason) = reasons.get(claim.id)
        {
            println!("    {reason}");
        }
    }
    let counts: Vec<String> = counts.iter().map(|(verdict, n)| format!("{n} {verdict}")).collect();
    println!("\nclaims with every algorithm in its own paper's form: {}", counts.join(", "));
    println!("(met: at least what the paper states, to 5 points; less: the same direction; not met: the other)");
}

fn print_json(claims: &[Claim], results: &Results, reasons: &BTreeMap<String, String>) -> Result<(), String> {
    let rows: Vec<serde_json::Value> = claims
        .iter()
        .map(|claim| {
            let measured: BTreeMap<&str, serde_json::Value> = PROFILES
                .map(|profile| {
                    let (value, verdict) = claim.measure(profile, results);
                    (profile, serde_json::json!({ "value": value, "verdict": verdict.to_string() }))
                })
                .into();
            serde_json::json!({
                "id": claim.id,
                "claim": claim.text,
                "paper": claim.paper,
                "unit": claim.unit.name(),
                "measured": measured,
                "reason": reasons.get(claim.id),
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&rows).map_err(|e| e.to_string())?;
    println!("{text}");
    Ok(())
}
