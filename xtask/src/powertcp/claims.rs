//! What the paper states in words and numbers about Figures 4 to 7.

use std::fmt;

use super::Results;
use super::runs::{Column, Measured, Workload};
use super::slowdowns::Tails;
use crate::interval::Estimate;

/// How far a measurement supports a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// At least what the paper states.
    Met,
    /// The same direction, but less of it.
    Less,
    /// Not even the direction.
    NotMet,
    /// The paper has words or a plot; the number stands beside them.
    Shown,
    /// There is no number in this column.
    NotRun,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::Less => "less",
            Self::NotMet => "not met",
            Self::Shown => "shown",
            Self::NotRun => "-",
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
    /// A relative change; the claim is that it is at least this.
    Worse,
    /// Bytes; the claim is that it is above this.
    KilobytesAbove,
    /// A difference in bytes; the claim is that it is about this, within a quarter, as it was read off a plot.
    KilobytesMore,
}

impl Unit {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Change | Self::Worse => "relative change",
            Self::AtLeast | Self::Below => "share",
            Self::Ratio => "ratio",
            Self::Kilobytes | Self::KilobytesAbove | Self::KilobytesMore => "KB",
        }
    }

    /// A value as text.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Change | Self::Worse => format!("{:+.0} %", value * 100.0),
            Self::AtLeast | Self::Below => format!("{value:.3}"),
            Self::Ratio => format!("{value:.2}x"),
            Self::Kilobytes | Self::KilobytesAbove => format!("{value:.1} KB"),
            Self::KilobytesMore => format!("{value:+.0} KB"),
        }
    }

    /// Half the width of an interval as text, in the unit's digits.
    fn show_half_width(self, value: f64) -> String {
        match self {
            Self::Change | Self::Worse => format!("{:.0}", value * 100.0),
            Self::AtLeast | Self::Below => format!("{value:.3}"),
            Self::Ratio => format!("{value:.2}"),
            Self::Kilobytes | Self::KilobytesAbove | Self::KilobytesMore => format!("{value:.1}"),
        }
    }

    fn judge(self, value: f64, paper: f64) -> Verdict {
        let (met, less) = match self {
            Self::Change => (value <= paper + 0.05, value < 0.0),
            Self::AtLeast => (paper <= value, false),
            Self::Below => (value < paper, false),
            Self::Ratio => (paper * 0.95 <= value, 1.0 < value),
            Self::Kilobytes => (value <= paper, false),
            Self::Worse => (paper - 0.05 <= value, 0.0 < value),
            Self::KilobytesAbove => (paper < value, false),
            Self::KilobytesMore => ((value - paper).abs() <= 0.25 * paper, 0.0 < value),
        };
        match (met, less) {
            (true, _) => Verdict::Met,
            (false, true) => Verdict::Less,
            (false, false) => Verdict::NotMet,
        }
    }
}

/// A run's numbers by workload and algorithm.
pub type Lookup<'a> = &'a dyn Fn(Workload, &'static str) -> Measured;
/// What a claim compares: a number of one algorithm, or of two.
pub type Measure = Box<dyn Fn(Lookup<'_>) -> f64>;

/// One claim.
pub struct Claim {
    /// Name, for the reasons file.
    pub id: String,
    /// The claim in our words.
    pub text: String,
    /// What the paper states; `None`: words or a plot.
    pub paper: Option<f64>,
    /// What the numbers are.
    pub unit: Unit,
    measure: Measure,
}

impl Claim {
    /// A claim.
    pub fn new(
        id: impl Into<String>,
        text: impl Into<String>,
        paper: impl Into<Option<f64>>,
        unit: Unit,
        measure: impl Fn(Lookup<'_>) -> f64 + 'static,
    ) -> Self {
        Self { id: id.into(), text: text.into(), paper: paper.into(), unit, measure: Box::new(measure) }
    }

    /// The value over all seeds and what it says. Values are compared seed by seed, as all algorithms have the same flows.
    pub fn measure(&self, column: Column, results: &Results) -> (Estimate, Verdict) {
        let mut seeds: Vec<u64> = results.keys().filter(|key| key.0 == column).map(|key| key.3).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let value = |seed| {
            let lookup = |workload, cc| results.get(&(column, workload, cc, seed)).copied().unwrap_or_default();
            (self.measure)(&lookup)
        };
        let estimate = Estimate::of(seeds.into_iter().map(value));
        let verdict = match self.paper {
            _ if estimate.mean.is_nan() => Verdict::NotRun,
            None => Verdict::Shown,
            Some(paper) => self.unit.judge(estimate.mean, paper),
        };
        (estimate, verdict)
    }

    /// What a column of the table says.
    pub fn cell(&self, column: Column, results: &Results) -> String {
        let (estimate, verdict) = self.measure(column, results);
        let value = self.unit.show(estimate.mean);
        match verdict {
            Verdict::NotRun => "-".to_owned(),
            _ if estimate.half_width.is_nan() => format!("{value} {verdict}"),
            _ => format!("{value} ±{} {verdict}", self.unit.show_half_width(estimate.half_width)),
        }
    }

    /// What the paper states, as text.
    pub fn paper_text(&self) -> String {
        let Some(paper) = self.paper else { return "-".to_owned() };
        let bound = match self.unit {
            Unit::Change | Unit::Ratio | Unit::Worse => "",
            Unit::AtLeast => ">= ",
            Unit::Below => "< ",
            Unit::Kilobytes => "<= ",
            Unit::KilobytesAbove => "> ",
            Unit::KilobytesMore => "about ",
        };
        format!("{bound}{}", self.unit.show(paper))
    }
}

/// All claims, in the order of the figures.
pub fn all() -> Vec<Claim> {
    use Workload::WebSearch;
    let mut claims = incast_claims("10:1", Workload::Incast10, ["4a", "4b", "4c", "4d", "4d-loss"]);
    claims.extend(incast_claims("255:1", Workload::Incast255, ["4a-255", "4b-255", "4c-255", "4d-255", "4d-255-loss"]));
    for (id, cc) in [("5a", "powertcp"), ("5b", "theta-powertcp")] {
        let text = format!("Fig 5: {cc} shares fairly as four flows come and go (least Jain index)");
        claims.push(Claim::new(id, text, 0.95, Unit::AtLeast, move |of| of(Workload::Fairness, cc).jain));
    }
    // (id, workload, size class, algorithm, against, the paper's number)
    claims.extend([
        tail("6a-short-hpcc", WebSearch(20), "short", "powertcp", "hpcc", -0.09),
        tail("6a-short-timely", WebSearch(20), "short", "powertcp", "timely", -0.80),
        tail("6a-short-dcqcn", WebSearch(20), "short", "powertcp", "dcqcn", -0.80),
        tail("6a-theta-hpcc", WebSearch(20), "short", "theta-powertcp", "hpcc", -0.09),
        tail("6a-medium-hpcc", WebSearch(20), "medium", "powertcp", "hpcc", -0.33),
        tail("6a-medium-timely", WebSearch(20), "medium", "powertcp", "timely", -0.62),
        tail("6a-medium-dcqcn", WebSearch(20), "medium", "powertcp", "dcqcn", -0.50),
        tail("6b-short-hpcc", WebSearch(60), "short", "powertcp", "hpcc", -0.33),
        tail("6b-short-timely", WebSearch(60), "short", "powertcp", "timely", -0.74),
        tail("6b-short-dcqcn", WebSearch(60), "short", "powertcp", "dcqcn", -0.74),
        tail("6b-theta-hpcc", WebSearch(60), "short", "theta-powertcp", "hpcc", -0.36),
        tail("6b-theta-timely", WebSearch(60), "short", "theta-powertcp", "timely", -0.82),
        tail("6b-theta-dcqcn", WebSearch(60), "short", "theta-powertcp", "dcqcn", -0.82),
        tail("6b-medium-hpcc", WebSearch(60), "medium", "powertcp", "hpcc", -0.33),
        tail("6b-medium-timely", WebSearch(60), "medium", "powertcp", "timely", -0.62),
        tail("6b-medium-dcqcn", WebSearch(60), "medium", "powertcp", "dcqcn", -0.50),
        tail("6b-long-hpcc", WebSearch(60), "long", "powertcp", "hpcc", 0.0),
    ]);
    claims.extend(load_claims());
    claims
}

/// Loads of Figure 7, of which the paper gives only the range, in per cent. A mean over loads weighs them equally.
pub const LOADS: [u8; 6] = [20, 40, 60, 80, 90, 95];

/// Section 4.2 on Figures 6 and 7a, b: what it says of whole ranges. Written down before the first measurement.
fn load_claims() -> Vec<Claim> {
    let mean = |value: fn(Lookup<'_>, u8) -> f64, loads: &'static [u8]| {
        move |of: Lookup<'_>| loads.iter().map(|&load| value(of, load)).sum::<f64>() / loads.len() as f64
    };
    vec![
        // "experience 60% worse performance on average compared to PowerTCP and HPCC", of medium flows in both figures.
        Claim::new(
            "6-theta-medium",
            "Fig 6, 20 and 60 %: p99.9 slowdown of medium flows, theta-powertcp against powertcp and hpcc",
            0.6,
            Unit::Worse,
            mean(
                |of, load| {
                    let of = |cc| of(Workload::WebSearch(load), cc).p999.medium;
                    of("theta-powertcp") / f64::midpoint(of("powertcp"), of("hpcc")) - 1.0
                },
                &[20, 60],
            ),
        ),
        // "improve the flow completion times of short flows by 36% (and 55%) compared to HPCC", of 20 to 95 %.
        Claim::new(
            "7a-powertcp",
            "Fig 7a, mean of 20 to 95 %: p99.9 slowdown of short flows, powertcp against hpcc",
            -0.36,
            Unit::Change,
            mean(|of, load| against_hpcc(of, load, "powertcp", |t| t.short), &LOADS),
        ),
        Claim::new(
            "7a-theta",
            "Fig 7a, mean of 20 to 95 %: p99.9 slowdown of short flows, theta-powertcp against hpcc",
            -0.55,
            Unit::Change,
            mean(|of, load| against_hpcc(of, load, "theta-powertcp", |t| t.short), &LOADS),
        ),
        // "At low load, PowerTCP performs similar to HPCC and performs 9% better compared to HPCC at 90% network loads."
        Claim::new(
            "7b-low",
            "Fig 7b, 20 %: p99.9 slowdown of long flows, powertcp against hpcc",
            0.0,
            Unit::Change,
            |of: Lookup<'_>| against_hpcc(of, 20, "powertcp", |t| t.long),
        ),
        Claim::new(
            "7b-90",
            "Fig 7b, 90 %: p99.9 slowdown of long flows, powertcp against hpcc",
            -0.09,
            Unit::Change,
            |of: Lookup<'_>| against_hpcc(of, 90, "powertcp", |t| t.long),
        ),
        // "consistently 35% worse on average across various loads compared to PowerTCP and HPCC".
        Claim::new(
            "7b-theta",
            "Fig 7b, mean of 20 to 95 %: p99.9 slowdown of long flows, theta-powertcp against hpcc",
            0.35,
            Unit::Worse,
            mean(|of, load| against_hpcc(of, load, "theta-powertcp", |t| t.long), &LOADS),
        ),
    ]
}

/// How much an algorithm's tail at a load is above HPCC's.
fn against_hpcc(of: Lookup<'_>, load: u8, cc: &'static str, class: fn(Tails) -> f64) -> f64 {
    let p999 = |cc| class(of(Workload::WebSearch(load), cc).p999);
    p999(cc) / p999("hpcc") - 1.0
}

fn incast_claims(name: &str, workload: Workload, ids: [&'static str; 5]) -> Vec<Claim> {
    let claim = |id: &str, text: String, paper: f64, unit, measure: Measure| Claim::new(id, text, paper, unit, measure);
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
pub fn tail(
    id: &str,
    workload: Workload,
    class: &'static str,
    cc: &'static str,
    against: &'static str,
    paper: f64,
) -> Claim {
    let load = if workload == Workload::WebSearch(20) { "6a, 20 %" } else { "6b, 60 %" };
    let text = format!("Fig {load}: p99.9 slowdown of {class} flows, {cc} against {against}");
    Claim::new(id, text, paper, Unit::Change, move |of| {
        let p999 = |cc| {
            let tails = of(workload, cc).p999;
            match class {
                "short" => tails.short,
                "medium" => tails.medium,
                _ => tails.long,
            }
        };
        p999(cc) / p999(against) - 1.0
    })
}
