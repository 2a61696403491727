//! What the validations against papers share: claims with what they say, runs that give them numbers, and the report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use fairrate_control::ALGORITHMS;

/// How to run a validation, and how to show it.
#[derive(Args)]
pub struct Options {
    /// Less traffic: minutes become seconds, and tails become noise
    #[arg(long)]
    pub quick: bool,
    /// The large fabrics too
    #[arg(long)]
    pub full: bool,
    /// Claims as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Only runs whose name and algorithm contain this, as `fig8` or `fig8-n10 rocc`; their claims alone are shown
    #[arg(long)]
    pub only: Option<String>,
    /// Simulations at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    pub jobs: u64,
}

/// What a run measured, by name.
pub type Numbers = BTreeMap<String, f64>;

/// Numbers with their names.
pub fn numbers<const N: usize>(list: [(&str, f64); N]) -> Numbers {
    list.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Simulates and measures.
pub type Measure = Box<dyn Fn() -> Result<Numbers, String> + Send + Sync>;

/// A run that claims refer to.
pub struct Job {
    /// What is run, as `fig8-n10`.
    pub name: String,
    /// The algorithm, or a variant of it: what comes before a `:` is its name in the registry.
    pub cc: String,
    /// Measures it.
    pub measure: Measure,
}

impl Job {
    /// A run of an algorithm.
    pub fn new(
        name: impl Into<String>,
        cc: impl Into<String>,
        measure: impl Fn() -> Result<Numbers, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), cc: cc.into(), measure: Box::new(measure) }
    }
}

/// The algorithm of a variant: `hpcc` of `hpcc:0.99`.
pub fn algorithm(cc: &str) -> &str {
    cc.split(':').next().unwrap_or(cc)
}

/// Everything measured.
#[derive(Default)]
pub struct Measured {
    numbers: BTreeMap<(String, String), Numbers>,
    /// Runs that were asked for and failed, and why.
    failures: Vec<String>,
    /// Algorithms that are not registered.
    absent: BTreeSet<String>,
}

impl Measured {
    /// A number of a run; not a number if there is none.
    pub fn get(&self, job: &str, cc: &str, what: &str) -> f64 {
        let numbers = self.numbers.get(&(job.to_owned(), cc.to_owned()));
        numbers.and_then(|n| n.get(what)).copied().unwrap_or(f64::NAN)
    }

    /// The names of a run's numbers.
    pub fn names(&self, job: &str, cc: &str) -> impl Iterator<Item = &str> {
        let numbers = self.numbers.get(&(job.to_owned(), cc.to_owned()));
        numbers.into_iter().flat_map(Numbers::keys).map(String::as_str)
    }

    /// Whether a run of this name was made.
    pub fn has(&self, job: &str) -> bool {
        self.numbers.keys().any(|(name, _)| name == job)
    }
}

/// What the paper says of a number, and how near ours must be.
#[derive(Clone, Copy, Debug)]
pub enum Says {
    /// About this; met within this relative distance.
    About(f64, f64),
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// A factor of about this, or more; met from three quarters of it on, since factors are read off plots or rounded.
    Times(f64),
    /// Words: the number is shown beside them.
    Words,
}

/// How far a number supports a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As the paper says.
    Met,
    /// The same direction, but less of it.
    Less,
    /// Not so.
    NotMet,
    /// Only beside the paper's words.
    Shown,
    /// There is no number: the run was not made.
    NotRun,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::Less => "less",
            Self::NotMet => "not met",
            Self::Shown => "shown",
            Self::NotRun => "not run",
        })
    }
}

impl Says {
    fn judge(self, value: f64) -> Verdict {
        let met = |met| if met { Verdict::Met } else { Verdict::NotMet };
        match self {
            _ if value.is_nan() => Verdict::NotRun,
            Self::About(paper, tolerance) => met((value - paper).abs() <= tolerance * paper.abs()),
            Self::AtMost(paper) => met(value <= paper),
            Self::AtLeast(paper) => met(paper <= value),
            Self::Times(paper) if 0.75 * paper <= value => Verdict::Met,
            Self::Times(_) if 1.0 < value => Verdict::Less,
            Self::Times(_) => Verdict::NotMet,
            Self::Words => Verdict::Shown,
        }
    }

    fn show(self, unit: Unit) -> String {
        match self {
            Self::About(paper, 0.0) => unit.show(paper),
            Self::About(paper, tolerance) => format!("{} ±{:.0} %", unit.show(paper), tolerance * 100.0),
            Self::AtMost(paper) => format!("<= {}", unit.show(paper)),
            Self::AtLeast(paper) => format!(">= {}", unit.show(paper)),
            Self::Times(paper) => format!("about {}", unit.show(paper)),
            Self::Words => "-".to_owned(),
        }
    }
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Gb/s on the wire.
    Gbps,
    /// Mb/s on the wire.
    Mbps,
    /// Kilobytes.
    Kilobytes,
    /// Milliseconds.
    Ms,
    /// A ratio.
    Ratio,
    /// A share of 1, or a relative difference.
    Share,
    /// A number of things.
    Count,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Gbps => "Gb/s",
            Self::Mbps => "Mb/s",
            Self::Kilobytes => "KB",
            Self::Ms => "ms",
            Self::Ratio => "x",
            Self::Share => "share",
            Self::Count => "count",
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            _ if value.is_nan() => "-".to_owned(),
            _ if value.is_infinite() => "never".to_owned(),
            Self::Ratio => format!("{}x", self.digits(value)),
            Self::Share | Self::Count => self.digits(value),
            _ => format!("{} {}", self.digits(value), self.name()),
        }
    }

    /// A number with as many digits as the unit is shown with.
    fn digits(self, value: f64) -> String {
        match self {
            Self::Gbps | Self::Ms | Self::Ratio => format!("{value:.2}"),
            Self::Mbps | Self::Kilobytes => format!("{value:.1}"),
            Self::Share => format!("{value:.3}"),
            Self::Count => format!("{value:.0}"),
        }
    }
}

/// One claim, and what was measured.
pub struct Claim {
    /// Name, for the reasons file.
    pub id: String,
    /// The run it is about; a claim about a run that was not asked for is left out.
    pub job: String,
    /// The claim in our words.
    pub text: String,
    /// What the paper says.
    pub says: Says,
    /// What the numbers are.
    pub unit: Unit,
    /// What was measured.
    pub value: f64,
}

impl Claim {
    /// What it says of the value.
    pub fn verdict(&self) -> Verdict {
        self.says.judge(self.value)
    }
}

/// Makes claims.
#[derive(Default)]
pub struct Claims(pub Vec<Claim>);

impl Claims {
    /// Adds one.
    pub fn add(
        &mut self,
        id: impl Into<String>,
        job: impl Into<String>,
        text: impl Into<String>,
        says: Says,
        unit: Unit,
        value: f64,
    ) {
        self.0.push(Claim { id: id.into(), job: job.into(), text: text.into(), says, unit, value });
    }
}

/// Runs all jobs, at most `options.jobs` at a time, and reports the claims. Claims may be met or not: it succeeds if it
/// could run.
///
/// # Errors
/// If a run failed, after the report of the others, or the reasons cannot be read.
pub fn validate(
    root: &Path,
    paper: &str,
    options: &Options,
    jobs: Vec<Job>,
    claims: impl FnOnce(&Measured) -> Vec<Claim>,
) -> Result<bool, String> {
    let reasons = read_reasons(&root.join("validation").join(paper).join("reasons.toml"))?;
    let measured = measure_all(jobs, options);
    let claims: Vec<Claim> =
        claims(&measured).into_iter().filter(|c| options.only.is_none() || measured.has(&c.job)).collect();
    if options.json {
        print_json(&claims, &reasons)?;
    } else {
        print_table(&claims, &reasons);
    }
    if !measured.absent.is_empty() {
        let names: Vec<&str> = measured.absent.iter().map(String::as_str).collect();
        eprintln!("not registered, so their claims are not run: {}", names.join(", "));
    }
    if measured.failures.is_empty() { Ok(true) } else { Err(measured.failures.join("\n")) }
}

fn measure_all(mut jobs: Vec<Job>, options: &Options) -> Measured {
    let mut measured = Measured::default();
    if let Some(only) = &options.only {
        jobs.retain(|job| format!("{} {}", job.name, job.cc).contains(only.as_str()));
    }
    let registered = |cc: &str| ALGORITHMS.iter().any(|a| a.name == cc);
    jobs.retain(|job| {
        // Calculations without packets run under no algorithm's name.
        let known = job.cc.is_empty() || registered(algorithm(&job.cc));
        if !known {
            measured.absent.insert(algorithm(&job.cc).to_owned());
        }
        known
    });
    let (next, done) = (AtomicUsize::new(0), Mutex::new(measured));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = (job.measure)();
                    let mut done = done.lock().expect("no thread panicked");
                    match result {
                        Ok(numbers) => {
                            done.numbers.insert((job.name.clone(), job.cc.clone()), numbers);
                        }
                        Err(message) => done.failures.push(format!("{} {}: {message}", job.name, job.cc)),
                    }
                    eprintln!("[{}/{}] {} {}", done.numbers.len(), jobs.len(), job.name, job.cc);
                }
            });
        }
    });
    done.into_inner().expect("no thread panicked")
}

/// Why a claim is not met, by its id.
fn read_reasons(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// The reason for a claim that is not met: its own, or that of the group its id begins with (`fig9` for `fig9-3`).
fn reason<'a>(claim: &Claim, reasons: &'a BTreeMap<String, String>) -> Option<&'a str> {
    if !matches!(claim.verdict(), Verdict::Less | Verdict::NotMet) {
        return None;
    }
    let mut id = claim.id.as_str();
    loop {
        if let Some(reason) = reasons.get(id) {
            return Some(reason);
        }
        id = id.rsplit_once('-')?.0;
    }
}

fn print_table(claims: &[Claim], reasons: &BTreeMap<String, String>) {
    println!("| {:<88} | {:<18} | {:<18} | {:<7} |", "claim", "paper", "here", "verdict");
    println!("|{:-<90}|{:-<20}|{:-<20}|{:-<9}|", "", "", "", "");
    let mut counts = BTreeMap::new();
    for claim in claims {
        let (paper, value) = (claim.says.show(claim.unit), claim.unit.show(claim.value));
        println!("| {:<88} | {paper:<18} | {value:<18} | {:<7} |", claim.text, claim.verdict());
        *counts.entry(claim.verdict()).or_insert(0) += 1;
    }
    let mut shown = BTreeSet::new();
    for claim in claims {
        if let Some(reason) = reason(claim, reasons)
            && shown.insert(reason)
        {
            println!("\n{}: {reason}", claim.id);
        }
    }
    let unexplained: Vec<&str> = claims
        .iter()
        .filter(|c| matches!(c.verdict(), Verdict::Less | Verdict::NotMet) && reason(c, reasons).is_none())
        .map(|c| c.id.as_str())
        .collect();
    if !unexplained.is_empty() {
        println!("\nwithout a reason: {}", unexplained.join(", "));
    }
    let counts: Vec<String> = counts.iter().map(|(verdict, n)| format!("{n} {verdict}")).collect();
    println!("\nclaims: {}", counts.join(", "));
    println!(
        "(met: as the paper says, within the tolerance beside it; less: the same direction; shown: no number there)"
    );
}

fn print_json(claims: &[Claim], reasons: &BTreeMap<String, String>) -> Result<(), String> {
    let rows: Vec<serde_json::Value> = claims
        .iter()
        .map(|claim| {
            serde_json::json!({
                "id": claim.id,
                "claim": claim.text,
                "paper": claim.says.show(claim.unit),
                "unit": claim.unit.name(),
                // What was not run or never came has no number in JSON.
                "value": claim.value.is_finite().then_some(claim.value),
                "verdict": claim.verdict().to_string(),
                "reason": reason(claim, reasons),
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&rows).map_err(|e| e.to_string())?;
    println!("{text}");
    Ok(())
}
