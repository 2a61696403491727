//! Table I: round-trip times of a connection over two bottlenecks. The paper's "variance" has the unit of a deviation.

use fairrate_report::panel::{Axis, Panel};

use super::testbed::{ALL, bottlenecks};
use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve, words};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::Record;

pub const FIGURE: Figure = Figure {
    id: "ratemp/table1",
    title: "Round-trip times of a connection over two bottlenecks",
    kind: Kind::Simulation,
    quick_s: 16,
    runs,
    panels,
    claims,
};

/// The paper's values: algorithm, mean and deviation in microseconds.
const TABLE: [(&str, f64, f64); 4] =
    [("ratemp", 236.0, 12.2), ("dctcp", 615.0, 229.0), ("balia", 7_350.0, 3_140.0), ("lia", 8_560.0, 2_750.0)];
/// RateMP with a base of 200 us that includes the transmission of a full packet and its acknowledgment, and not
/// propagation alone.
const SHORT: &str = "ratemp, base of 200 us in all";
const SHORT_LINKS: &str = "10 6 10
4 5 6 7 8 9
0 4 10Gbps 0.001ms 0
4 5 10Gbps 0.001ms 0
5 6 0.5Gbps 0.081ms 0
6 9 10Gbps 0.001ms 0
4 7 10Gbps 0.001ms 0
7 8 0.5Gbps 0.081ms 0
8 9 10Gbps 0.001ms 0
9 1 10Gbps 0.001ms 0
2 5 10Gbps 0.001ms 0
6 3 10Gbps 0.001ms 0
";

fn runs(scale: &Scale) -> Vec<Run> {
    let of_seed = |&seed: &u64| {
        let short = bottlenecks("ratemp", &[], seed, read).with_file("ratemp-bottlenecks.txt", SHORT_LINKS);
        ALL.iter().map(move |cc| bottlenecks(cc, &[], seed, read)).chain([short.called(SHORT)])
    };
    scale.seeds.iter().flat_map(of_seed).collect()
}

fn read(record: &Record) -> Point {
    Point::of([("mean", record.rtts.mean_us()), ("deviation", record.rtts.deviation_us())])
}

fn panels(points: &Points) -> Vec<Panel> {
    let lines: Vec<&str> = ALL.into_iter().chain([SHORT]).collect();
    let draw = |title: &str, range: (f64, f64), what: &str, of: fn(&(&str, f64, f64)) -> f64| {
        let places = (0..).map(f64::from).zip(&lines);
        let ours = places.clone().map(|(x, line)| (x, points.values("bottlenecks", line, what))).collect();
        let of_paper = |line: &str| TABLE.iter().find(|row| row.0 == line).map(of).into_iter().collect();
        let papers = places.map(|(x, line)| (x, of_paper(line))).collect();
        let curves = vec![
            Curve { name: "here".to_owned(), cc: "powertcp", values: ours },
            Curve { name: "the paper's Table I".to_owned(), cc: "line-rate", values: papers },
        ];
        let labels: Vec<&str> = lines.iter().map(|line| if *line == SHORT { "ratemp, short" } else { line }).collect();
        let y = Axis::new(format!("{title} (us)")).logarithmic().showing(range.0, range.1);
        curves::panel(title, words("algorithm", &labels), y, curves)
    };
    vec![
        draw("mean RTT", (200.0, 10_000.0), "mean", |row| row.1),
        draw("deviation of the RTT", (10.0, 5_000.0), "deviation", |row| row.2),
    ]
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |line: &str, what: &str| points.values("bottlenecks", line, what);
    let claim = |id: &str, sentence: &str, rule, values| Claim::mean(id, sentence, rule, "us", values);
    let mut claims = Vec::new();
    for (cc, mean, deviation) in TABLE {
        // DCTCP's marking threshold and the buffer were chosen from the other means.
        let (rule, text) = match cc {
            "ratemp" => (Rule::About(mean, 0.05), format!("{cc}: mean RTT of {mean} us (5 % is ours)")),
            _ => (Rule::Words, format!("{cc}: mean RTT of {mean} us")),
        };
        let of_mean = claim(&format!("mean-{cc}"), &text, rule, of(cc, "mean"));
        claims.push(super::claims::with_cause(
            of_mean,
            "The base here is 230 us, of which 30 are the transmission of a full packet and its acknowledgment: see mean-short.",
        ));
        let text = format!("{cc}: deviation of {deviation} us (25 % is ours)");
        let of_deviation = claim(&format!("deviation-{cc}"), &text, Rule::About(deviation, 0.25), of(cc, "deviation"));
        claims.push(super::claims::with_cause(of_deviation, super::claims::UNKNOWN));
    }
    let short = "ratemp: the mean where the paper's 200 us hold the transmission too";
    claims.push(claim("mean-short", short, Rule::Words, of(SHORT, "mean")));
    let next = ["dctcp", "balia", "lia"].into_iter().min_by(|a, b| {
        let mean = |cc: &str| points.mean("bottlenecks", cc, "mean").unwrap_or(f64::INFINITY);
        mean(a).total_cmp(&mean(b))
    });
    // DCTCP's mean was chosen, so this is no result.
    let half = points.ratios("bottlenecks", "ratemp", next.unwrap_or("dctcp"), "mean");
    let text = "mean RTT of ratemp over the next smallest of the paper's: \"reduces 50 % RTT\"";
    claims.push(Claim::mean("half", text, Rule::Words, "", half));
    claims
}
