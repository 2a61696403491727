//! The common part of Figures 13 and 14: simulations of the paper's testbeds. Three hosts send to a fourth.

use fairrate_report::panel::{Axis, Panel};

use super::star::{goodputs, part};
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_level};
use crate::experiment::Run;
use crate::moments::mean_of_series;
use crate::null::with_line_rate;
use crate::points::{Point, Points};
use crate::record::{Record, ms_from};

/// The star of Figure 8 with three hosts, each with its own rate.
const SCENARIO: &str = r#"
description = "three hosts send to a fourth (RoCC Fig 13 and 14)"
duration = "40ms"

[topology]
kind = "star"
hosts = 4
rate = "10Gbps"
delay = "1500ns"

[switch]
buffer = "15MB"
dt_alpha = 0.0333 # 500 KB, RoCC's PFC threshold at 40 Gb/s

[transport]
cc = "rocc"
reaction_delay = "15us"

[transport.rocc]
thresholds = "given"
q_ref = "75KB"
q_mid = "150KB"
q_max = "210KB"

[[traffic]]
kind = "incast"
receiver = "h0"
senders = [1]
bytes = "endless"
demand = "10Gbps"

[[traffic]]
kind = "incast"
receiver = "h0"
senders = [2]
bytes = "endless"
demand = "10Gbps"

[[traffic]]
kind = "incast"
receiver = "h0"
senders = [3]
bytes = "endless"
demand = "10Gbps"

[[probe]]
queue = "sw0->h0"
every = "20us"

[[probe]]
flows = "all"
every = "20us"
"#;
const LINE: &str = "rocc";
const Q_REF_KB: f64 = 75.0;
const STEADY_S: (f64, f64) = (0.02, 0.04);
const SHOWN_S: (f64, f64) = (0.0, 0.02);
const SHOWN_MS: f64 = 20.0;

/// A testbed with its cases.
pub struct Testbed {
    pub gbps: u64,
    pub sets: &'static [(&'static str, &'static str)],
    pub cases: [Case; 2],
}

/// The offered rates of the three hosts, and their fair shares.
pub struct Case {
    pub name: &'static str,
    /// The look of the case's line.
    pub look: &'static str,
    pub offers_gbps: [u64; 3],
    /// Max-min shares. The text's "3 Gb/s" and "~13 Gb/s" are thirds of the links, truncated.
    pub fair_gbps: [f64; 3],
}

pub fn runs(testbed: &'static Testbed) -> Vec<Run> {
    let run = |case: &Case| {
        let (rate, [d0, d1, d2]) =
            (format!("{}Gbps", testbed.gbps), case.offers_gbps.map(|gbps| format!("{gbps}Gbps")));
        let mut sets = vec![
            ("topology.rate", rate.as_str()),
            ("traffic.0.demand", &d0),
            ("traffic.1.demand", &d1),
            ("traffic.2.demand", &d2),
        ];
        sets.extend(testbed.sets);
        Run::of(case.name, SCENARIO, LINE, &sets, read)
    };
    with_line_rate(testbed.cases.iter().map(run).collect())
}

fn read(record: &Record) -> Point {
    let (rates, queue) = (goodputs(record, STEADY_S), record.port("sw0", "h0").queue_kb());
    let mean = mean_of_series(&part(&queue, STEADY_S));
    Point::of([("d0", rates[0]), ("d1", rates[1]), ("d2", rates[2]), ("queue", mean)])
        .with("queue", part(&queue, SHOWN_S))
        .with("rate", part(&record.rate_gbps(0), SHOWN_S))
}

pub fn panels(testbed: &'static Testbed, points: &Points) -> Vec<Panel> {
    let draw = |title: &str, y: Axis, what: &str| {
        let line = |case: &'static Case| {
            let series = points.series(case.name, LINE, what);
            Line { name: case.name.to_owned(), ..Line::of(case.look, &ms_from(series, 0.0, (0.0, SHOWN_MS))) }
        };
        let lines = testbed.cases.iter().map(line).collect();
        panel(title, Axis { link: "time", ..Axis::new("time (ms)") }, y, lines)
    };
    let queue = draw("(a) queue", Axis::new("queue (KB)").showing(0.0, 200.0), "queue");
    let rate = draw("(b) fair rate, as D0 has it", Axis::new("rate (Gb/s)").showing(0.0, testbed.gbps as f64), "rate");
    let level = |panel, case: &Case| {
        with_level(panel, &format!("fair: {:.1} Gb/s", case.fair_gbps[0]), case.fair_gbps[0], (0.0, SHOWN_MS))
    };
    let rate = testbed.cases.iter().fold(rate, level);
    vec![with_level(queue, "paper: 75 KB", Q_REF_KB, (0.0, SHOWN_MS)), rate]
}

/// Returns the claims. Queues must be within 5 % and rates within 3 %, as in Figure 8.
pub fn claims(testbed: &'static Testbed, points: &Points) -> Vec<Claim> {
    let of_case = |case: &'static Case| {
        let claim = |what: &str, text: String, rule, unit| {
            let (id, value) = (format!("{}-{what}", case.id()), points.mean(case.name, LINE, what));
            Claim::exact(&id, &format!("{}: {text}", case.name), rule, unit, value)
        };
        let rate = |(what, fair): (&str, f64)| {
            claim(what, format!("rate of {}", what.to_uppercase()), Rule::About(fair, 0.03), "Gb/s")
        };
        let queue = claim("queue", "mean queue".to_owned(), Rule::About(Q_REF_KB, 0.05), "KB");
        [queue].into_iter().chain(["d0", "d1", "d2"].into_iter().zip(case.fair_gbps).map(rate)).collect::<Vec<_>>()
    };
    testbed.cases.iter().flat_map(of_case).collect()
}

impl Case {
    /// Returns the case's part of claims' names.
    fn id(&self) -> &'static str {
        self.name.split(' ').next().unwrap_or(self.name)
    }
}
