//! What the paper states in words and numbers about Figures 4 to 6.

use std::fmt;

use fairrate_report::stats::percentile;

use super::Results;
use super::runs::{Measured, Workload};

/// How far a measurement supports a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// At least what the paper states.
    Met,
    /// The same direction, but less of it.
    Less,
    /// Not even the direction.
    NotMet,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::Less => "less",
            Self::NotMet => "not met",
        })
    }
}

/// What a claim's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A relative change; the claim is that it is at most this.
    Change,
    /// A share of capacity, or an index; the claim is that it is at least this.
    AtLeast,
    /// The claim is that it is below this.
    Below,
    /// A ratio; the claim is that it is at least about this.
    Ratio,
    /// Bytes; the claim is at most this.
    Kilobytes,
}

impl Unit {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Change => "relative change",
            Self::AtLeast | Self::Below => "share",
            Self::Ratio => "ratio",
            Self::Kilobytes => "KB",
        }
    }

    /// A value as text.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Change => format!("{:+.0} %", value * 100.0),
            Self::AtLeast | Self::Below => format!("{value:.3}"),
            Self::Ratio => format!("{value:.2}x"),
            Self::Kilobytes => format!("{value:.1} KB"),
        }
    }

    fn judge(self, value: f64, paper: f64) -> Verdict {
        let (met, less) = match self {
            Self::Change => (value <= paper + 0.05, value < 0.0),
            Self::AtLeast => (paper <= value, false),
            Self::Below => (value < paper, false),
            Self::Ratio => (paper * 0.95 <= value, 1.0 < value),
            Self::Kilobytes => (value <= paper, false),
        };
        match (met, less) {
            (true, _) => Verdict::Met,
            (false, true) => Verdict::Less,
            (false, false) => Verdict::NotMet,
        }
    }
}

/// What a claim compares: a number of one algorithm, or of two.
type Measure = Box<dyn Fn(&dyn Fn(Workload, &'static str) -> Measured) -> f64>;

/// One claim.
pub struct Claim {
    /// Name, for the reasons file.
    pub id: &'static str,
    /// The claim in our words.
    pub text: String,
    /// What the paper states.
    pub paper: f64,
    /// What the numbers are.
    pub unit: Unit,
    measure: Measure,
}

impl Claim {
    /// The value and what it says.
    pub fn measure(&self, profile: &'static str, results: &Results) -> (f64, Verdict) {
        let lookup = |workload, cc| results.get(&(profile, workload, cc)).cloned().unwrap_or_default();
        let value = (self.measure)(&lookup);
        (value, self.unit.judge(value, self.paper))
    }

    /// What the paper states, as text.
    pub fn paper_text(&self) -> String {
        let bound = match self.unit {
            Unit::Change | Unit::Ratio => "",
            Unit::AtLeast => ">= ",
            Unit::Below => "< ",
            Unit::Kilobytes => "<= ",
        };
        format!("{bound}{}", self.unit.show(self.paper))
    }
}

/// All claims, in the order of the figures.
pub fn all() -> Vec<Claim> {
    let mut claims = incast_claims("10:1", Workload::Incast10, ["4a", "4b", "4c", "4d", "4d-loss"]);
    claims.extend(incast_claims("255:1", Workload::Incast255, ["4a-255", "4b-255", "4c-255", "4d-255", "4d-255-loss"]));
    for (id, cc) in [("5a", "powertcp"), ("5b", "theta-powertcp")] {
        claims.push(Claim {
            id,
            text: format!("Fig 5: {cc} shares fairly as four flows come and go (least Jain index)"),
            paper: 0.95,
            unit: Unit::AtLeast,
            measure: Box::new(move |of| of(Workload::Fairness, cc).jain),
        });
    }
    // (id, workload, size class, algorithm, against, the paper's number)
    claims.extend([
        tail("6a-short-hpcc", Workload::WebSearch20, "short", "powertcp", "hpcc", -0.09),
        tail("6a-short-timely", Workload::WebSearch20, "short", "powertcp", "timely", -0.80),
        tail("6a-short-dcqcn", Workload::WebSearch20, "short", "powertcp", "dcqcn", -0.80),
        tail("6a-theta-hpcc", Workload::WebSearch20, "short", "theta-powertcp", "hpcc", -0.09),
        tail("6a-medium-hpcc", Workload::WebSearch20, "medium", "powertcp", "hpcc", -0.33),
        tail("6a-medium-timely", Workload::WebSearch20, "medium", "powertcp", "timely", -0.62),
        tail("6a-medium-dcqcn", Workload::WebSearch20, "medium", "powertcp", "dcqcn", -0.50),
        tail("6b-short-hpcc", Workload::WebSearch60, "short", "powertcp", "hpcc", -0.33),
        tail("6b-short-timely", Workload::WebSearch60, "short", "powertcp", "timely", -0.74),
        tail("6b-short-dcqcn", Workload::WebSearch60, "short", "powertcp", "dcqcn", -0.74),
        tail("6b-theta-hpcc", Workload::WebSearch60, "short", "theta-powertcp", "hpcc", -0.36),
        tail("6b-theta-timely", Workload::WebSearch60, "short", "theta-powertcp", "timely", -0.82),
        tail("6b-theta-dcqcn", Workload::WebSearch60, "short", "theta-powertcp", "dcqcn", -0.82),
        tail("6b-medium-hpcc", Workload::WebSearch60, "medium", "powertcp", "hpcc", -0.33),
        tail("6b-medium-timely", Workload::WebSearch60, "medium", "powertcp", "timely", -0.62),
        tail("6b-medium-dcqcn", Workload::WebSearch60, "medium", "powertcp", "dcqcn", -0.50),
        tail("6b-long-hpcc", Workload::WebSearch60, "long", "powertcp", "hpcc", 0.0),
    ]);
    claims
}

fn incast_claims(name: &str, workload: Workload, ids: [&'static str; 5]) -> Vec<Claim> {
    let claim = |id, text: String, paper, unit, measure: Measure| Claim { id, text, paper, unit, measure };
    let mut claims = Vec::new();
    for (id, cc) in [(ids[0], "powertcp"), (ids[1], "theta-powertcp")] {
        claims.push(claim(
            id,
            format!("Fig 4 {name}: {cc} comes back to a near-zero queue (mean of the last ms)"),
            30.0,
            Unit::Kilobytes,
            Box::new(move |of| of(workload, cc).last_queue / 1e3),
        ));
        claims.push(claim(
            id,
            format!("Fig 4 {name}: {cc} loses no throughput (least 100 us, share of the link)"),
            0.98,
            Unit::AtLeast,
            Box::new(move |of| of(workload, cc).least_throughput),
        ));
    }
    claims.push(claim(
        ids[2],
        format!("Fig 4 {name}: timely loses throughput after reacting (least 100 us)"),
        0.9,
        Unit::Below,
        Box::new(move |of| of(workload, "timely").least_throughput),
    ));
    claims.push(claim(
        ids[3],
        format!("Fig 4 {name}: the queue peaks higher with hpcc than with powertcp"),
        if workload == Workload::Incast10 { 2.0 } else { 1.0 },
        Unit::Ratio,
        Box::new(move |of| of(workload, "hpcc").peak_queue / of(workload, "powertcp").peak_queue),
    ));
    claims.push(claim(
        ids[4],
        format!("Fig 4 {name}: hpcc loses throughput after the incast (least 100 us)"),
        0.9,
        Unit::Below,
        Box::new(move |of| of(workload, "hpcc").least_throughput),
    ));
    claims
}

/// A claim about 99.9th percentiles of FCT slowdown.
fn tail(
    id: &'static str,
    workload: Workload,
    class: &'static str,
    cc: &'static str,
    against: &'static str,
    paper: f64,
) -> Claim {
    let load = if workload == Workload::WebSearch20 { "6a, 20 %" } else { "6b, 60 %" };
    Claim {
        id,
        text: format!("Fig {load}: p99.9 slowdown of {class} flows, {cc} against {against}"),
        paper,
        unit: Unit::Change,
        measure: Box::new(move |of| {
            let p999 = |cc| {
                let run = of(workload, cc);
                let flows = match class {
                    "short" => run.short,
                    "medium" => run.medium,
                    _ => run.long,
                };
                percentile(&flows, 0.999).unwrap_or(f64::NAN)
            };
            p999(cc) / p999(against) - 1.0
        }),
    }
}
