//! Figure 6: 32 flows among four hosts; a flow starts or ends each time that rates have converged.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;
use fairrate_units::Time;

use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_marks};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::Record;

pub const FIGURE: Figure = Figure {
    id: "perc/fig6",
    title: "Time to converge after flows come and go",
    kind: Kind::Simulation,
    quick_s: 6,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/perc-fig6.toml");
/// Algorithms, with the number of changes at full size and with `quick`. RCP takes long to converge after many changes,
/// and would run for a quarter of an hour for the paper's 3,000.
const ALGORITHMS: [(&str, [&str; 2]); 3] =
    [("perc", ["3000", "300"]), ("charny", ["3000", "300"]), ("rcp", ["300", "100"])];
/// Number of RTTs after which a change counts as not converged, with this time: well above all times in the paper.
const GIVES_UP: f64 = 200.0;
/// Largest time in the picture, in RTTs: the paper's largest number is 71.
const SHOWN: f64 = 100.0;

fn runs(scale: &Scale) -> Vec<Run> {
    let run = |seed: u64, (cc, changes): (&'static str, [&str; 2])| {
        let sets = [
            ("duration", "30s"),
            ("traffic.0.changes", changes[usize::from(scale.quick)]),
            ("probe.0.give_up_rtts", "200"),
        ];
        Run::of("churn", SCENARIO, cc, &sets, read).seeded(seed)
    };
    scale.seeds.iter().flat_map(|&seed| ALGORITHMS.map(|algorithm| run(seed, algorithm))).collect()
}

fn read(record: &Record) -> Point {
    // The flows of the start are not changes.
    let changes = record.convergence.iter().filter(|change| Time::ZERO < change.t);
    let rtts = stats::sorted(changes.map(|change| change.rtts.unwrap_or(f64::INFINITY).min(GIVES_UP)));
    let share = |counts: &dyn Fn(f64) -> bool| rtts.iter().filter(|x| counts(**x)).count() as f64 / rtts.len() as f64;
    let percentile = |p| stats::percentile(&rtts, p).unwrap_or(f64::NAN);
    let cdf = rtts.iter().zip(1..).map(|(&x, i)| (x, 100.0 * f64::from(i) / rtts.len() as f64));
    Point::of([
        ("median", percentile(0.5)),
        ("p99", percentile(0.99)),
        ("in 10", share(&|x| x < 10.0)),
        ("failed", share(&|x| GIVES_UP <= x)),
    ])
    .with("cdf", cdf.filter(|(x, _)| *x <= SHOWN).collect())
}

fn panels(points: &Points) -> Vec<Panel> {
    let line = |(cc, _): (&'static str, _)| Line::of(cc, points.series("churn", cc, "cdf"));
    let x = Axis::new("time to converge (RTTs)").showing(0.0, SHOWN);
    let y = Axis::new("share of changes (%)").showing(0.0, 100.0);
    let panel = panel("CDF of convergence times", x, y, ALGORITHMS.map(line).into());
    let panel = with_marks(panel, "paper: PERC below", 4, &[(14.0 / 3.0, 50.0), (10.0, 99.0)]);
    let panel = with_marks(panel, "paper: Charny", 1, &[(7.0, 50.0)]);
    vec![with_marks(panel, "paper: RCP", 3, &[(14.0, 50.0), (71.0, 99.0)])]
}

fn claims(points: &Points) -> Vec<Claim> {
    let values = |cc: &str, what: &str| points.values("churn", cc, what);
    let claim = |id: &str, cc: &str, what: &str, text: &str, rule, unit| {
        Claim::mean(&format!("{id}-{cc}"), &format!("{cc}: {text}"), rule, unit, values(cc, what))
    };
    let ratio = |id: &str, cc: &str, what: &str, text: &str, rule| {
        Claim::mean(&format!("ratio-{cc}-{id}"), text, rule, "", points.ratios("churn", cc, "perc", what))
    };
    let (median, p99) = ("median time to converge", "99th percentile of times to converge");
    let in_10 = "\"more than 99 % of the flow changes take less than 10 RTTs to converge\"";
    let failed = "changes that are not settled after 200 RTTs; they count as 200 elsewhere";
    let mut claims = vec![
        claim("in10", "perc", "in 10", in_10, Rule::AtLeast(0.99), ""),
        // RCP's numbers are in the text; the others' follow from "twice", "3x" and "5x" of them.
        claim("median", "perc", "median", &format!("{median}, a third of RCP's"), Rule::AtMost(14.0 / 3.0), "RTTs"),
        claim("p99", "perc", "p99", p99, Rule::AtMost(10.0), "RTTs"),
        claim(
            "median",
            "charny",
            "median",
            &format!("{median}, half of RCP's (25 % is ours)"),
            Rule::About(7.0, 0.25),
            "RTTs",
        ),
        claim("p99", "charny", "p99", &format!("{p99}, a fifth of RCP's"), Rule::AtMost(71.0 / 5.0), "RTTs"),
        claim("median", "rcp", "median", &format!("{median} (25 % is ours)"), Rule::About(14.0, 0.25), "RTTs"),
        claim("p99", "rcp", "p99", &format!("{p99} (25 % is ours)"), Rule::About(71.0, 0.25), "RTTs"),
        ratio("p99", "charny", "p99", "Charny's 99th percentile is 50 % longer than PERC's", Rule::Times(1.5)),
        ratio("median", "charny", "median", "so does its median (\"a similar trend\")", Rule::Times(1.5)),
        ratio("median", "rcp", "median", "RCP's median is \"more than 3x that of PERC\"", Rule::AtLeastTimes(3.0)),
        ratio("p99", "rcp", "p99", "its 99th percentile is more than \"7x that of PERC\"", Rule::AtLeastTimes(7.0)),
    ];
    for (cc, _) in ALGORITHMS {
        claims.push(claim("failed", cc, "failed", failed, Rule::Words, ""));
    }
    for cc in ["charny", "rcp"] {
        claims.push(claim("in10", cc, "in 10", "changes that take less than 10 RTTs", Rule::Words, ""));
    }
    claims
}
