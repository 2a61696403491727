//! Figure 7c to f: tails of short and of long flows with requests for files beside web search at 80 %: more frequent
//! and larger requests.

use fairrate_report::panel::{Axis, Panel};

use super::websearch::{HPCC, Line, POWERTCP, Reading, Requests, THETA, Traffic};
use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::mean;
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig7-requests",
    title: "Tails of short and of long flows beside requests (7c to f)",
    kind: Kind::Simulation,
    quick_s: 45,
    runs,
    panels,
    claims,
};

pub const LOAD: u32 = 80;
const LINES: [Line; 3] = [POWERTCP, THETA, HPCC];
/// The readings of the text and of the artifact.
pub const READINGS: [Reading; 2] = [Reading::Own, Reading::Traffic];

/// The parameter that is varied: the rate or the size of requests. The values are those of the text and of the
/// artifact's script.
struct Sweep {
    id: &'static str,
    axis: &'static str,
    values: &'static [u32],
    at: fn(u32) -> Requests,
    /// Panels of short and of long flows in the paper.
    letters: [&'static str; 2],
}

const RATES: Sweep = Sweep {
    id: "rates",
    axis: "requests of 2 MB a second and host",
    values: &[1, 4, 8, 16],
    at: |per_s| Requests { megabytes: 2, per_s },
    letters: ["c", "d"],
};
const SIZES: Sweep = Sweep {
    id: "sizes",
    axis: "size of a request (MB), 4 a second and host",
    values: &[1, 2, 4, 6, 8],
    at: |megabytes| Requests { megabytes, per_s: 4 },
    letters: ["e", "f"],
};
const SWEEPS: [&Sweep; 2] = [&RATES, &SIZES];

impl Sweep {
    fn traffic(&self, reading: Reading, value: u32) -> Traffic {
        Traffic { reading, load: LOAD, requests: Some((self.at)(value)) }
    }

    /// Returns the change of a line's tail from HPCC's at a value, in per cent, seed by seed.
    fn against_hpcc(&self, points: &Points, reading: Reading, value: u32, line: &Line, class: &str) -> Vec<f64> {
        let ratios = points.ratios(&self.traffic(reading, value).name(), line.name, HPCC.name, class);
        ratios.iter().map(|ratio| 100.0 * (ratio - 1.0)).collect()
    }

    /// Reduces a line's changes at all values by `of`, seed by seed.
    fn over_all(&self, points: &Points, reading: Reading, line: &Line, class: &str, of: fn(&[f64]) -> f64) -> Vec<f64> {
        let changes: Vec<Vec<f64>> =
            self.values.iter().map(|&value| self.against_hpcc(points, reading, value, line, class)).collect();
        let seeds = changes.iter().map(Vec::len).min().unwrap_or(0);
        (0..seeds).map(|seed| of(&changes.iter().map(|at| at[seed]).collect::<Vec<_>>())).collect()
    }
}

fn least(changes: &[f64]) -> f64 {
    changes.iter().copied().fold(f64::INFINITY, f64::min)
}

fn runs(scale: &Scale) -> Vec<Run> {
    let mut all: Vec<Requests> = SWEEPS.iter().flat_map(|sweep| sweep.values.iter().map(|&v| (sweep.at)(v))).collect();
    all.sort_by_key(|requests| (requests.per_s, requests.megabytes));
    all.dedup();
    let of = |reading: Reading| {
        let traffic = move |&requests: &Requests| Traffic { reading, load: LOAD, requests: Some(requests) };
        all.iter().flat_map(|requests| traffic(requests).slowdowns(&LINES, scale)).collect::<Vec<_>>()
    };
    READINGS.into_iter().flat_map(of).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |reading: Reading, sweep: &Sweep, class: usize| {
        let (key, what) = [("short", "short flows"), ("long", "long flows")][class];
        let curve = |line: &Line| Curve {
            name: line.name.to_owned(),
            cc: line.cc,
            values: sweep
                .values
                .iter()
                .map(|&value| (f64::from(value), points.values(&sweep.traffic(reading, value).name(), line.name, key)))
                .collect(),
        };
        let title = format!("({}) {what}, {}", sweep.letters[class], reading.name());
        let y = Axis::new("99.9th percentile of slowdown").showing(0.0, 2.0);
        curves::panel(&title, Axis::new(sweep.axis), y, LINES.iter().map(curve).collect())
    };
    let rows = READINGS.into_iter().flat_map(|reading| SWEEPS.map(|sweep| (reading, sweep)));
    rows.flat_map(|(reading, sweep)| [0, 1].map(|class| draw(reading, sweep, class))).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    READINGS.into_iter().flat_map(|reading| [of_rates(points, reading), of_sizes(points, reading)].concat()).collect()
}

/// Returns a claim about changes against HPCC in a reading, in per cent.
fn claim(reading: Reading, id: &str, sentence: &str, rule: Rule, values: impl Fn(Reading) -> Vec<f64>) -> Claim {
    let (id, sentence) = (format!("{id}-{}", reading.name()), format!("{}: {sentence}", reading.name()));
    let claim = Claim::mean(&id, &sentence, rule, "%", values(reading));
    match reading {
        Reading::Own => claim.changing("traffic, τ and what is counted are the artifact's", values(Reading::Traffic)),
        _ => claim,
    }
}

/// Returns the claims on 7c and d.
fn of_rates(points: &Points, reading: Reading) -> Vec<Claim> {
    let over =
        |line: &'static Line, class: &'static str, of| move |reading| RATES.over_all(points, reading, line, class, of);
    vec![
        claim(
            reading,
            "rates-short",
            "\"short flows by 24 %\": PowerTCP against HPCC, mean of all rates",
            Rule::Less(-24.0),
            over(&POWERTCP, "short", mean),
        ),
        claim(
            reading,
            "rates-long",
            "\"long flows by 10 %\": PowerTCP against HPCC, mean of all rates",
            Rule::Less(-10.0),
            over(&POWERTCP, "long", mean),
        ),
        claim(
            reading,
            "rates-short-16",
            "\"at high request rates showing 33 % improvement\": short flows, PowerTCP against HPCC at 16 /s",
            Rule::Less(-33.0),
            |reading| RATES.against_hpcc(points, reading, 16, &POWERTCP, "short"),
        ),
        claim(
            reading,
            "rates-short-theta",
            "theta-PowerTCP \"improves\" short flows: against HPCC, mean of all rates",
            Rule::AtMost(0.0),
            over(&THETA, "short", mean),
        ),
        claim(
            reading,
            "rates-long-theta",
            "theta-PowerTCP \"performs worse across all request rates\": long flows against HPCC, the least of all rates",
            Rule::AtLeast(0.0),
            over(&THETA, "long", least),
        ),
    ]
}

/// Returns the claims on 7e and f.
fn of_sizes(points: &Points, reading: Reading) -> Vec<Claim> {
    let over =
        |line: &'static Line, class: &'static str| move |reading| SIZES.over_all(points, reading, line, class, mean);
    let at = |megabytes: u32| move |reading| SIZES.against_hpcc(points, reading, megabytes, &POWERTCP, "short");
    vec![
        grows(points, reading),
        claim(
            reading,
            "sizes-short-1",
            "\"by 20 % at 1MB request size\": short flows, PowerTCP against HPCC",
            Rule::Less(-20.0),
            at(1),
        ),
        claim(
            reading,
            "sizes-short-8",
            "\"by 7 % at 8MB request size\": short flows, PowerTCP against HPCC",
            Rule::Less(-7.0),
            at(8),
        ),
        claim(
            reading,
            "sizes-long",
            "\"long flows by 5 % on average\": PowerTCP against HPCC, mean of all sizes",
            Rule::Less(-5.0),
            over(&POWERTCP, "long"),
        ),
        claim(
            reading,
            "sizes-long-theta",
            "\"30 % worse for long flows\": theta-PowerTCP against HPCC, mean of all sizes",
            Rule::More(30.0),
            over(&THETA, "long"),
        ),
        claim(
            reading,
            "sizes-short-theta",
            "\"9 % better for short flows\": theta-PowerTCP against HPCC, mean of all sizes",
            Rule::Less(-9.0),
            over(&THETA, "short"),
        ),
    ]
}

/// Returns the claim that short flows' times "with PowerTCP gradually increase with request size".
fn grows(points: &Points, reading: Reading) -> Claim {
    let at = |megabytes: u32| points.values(&SIZES.traffic(reading, megabytes).name(), POWERTCP.name, "short");
    let ratios = at(8).into_iter().zip(at(1)).map(|(largest, smallest)| largest / smallest).collect();
    let sentence = format!(
        "{}: \"gradually increase with request size\": short flows of PowerTCP at 8 MB over those at 1 MB",
        reading.name()
    );
    Claim::mean(&format!("{}-grows-{}", SIZES.id, reading.name()), &sentence, Rule::AtLeastTimes(1.0), "", ratios)
}
