//! Figure 9: flows double every 10 ms, and halve again.

use fairrate_report::panel::{Axis, Panel};

use super::causes::{CHANGED, changing};
use super::star::{
    JUDGED, LOOKS, NO_PFC, SAMPLE, cut, fair_rate, forms, needs_no_pfc, part, queue, scaled, settles_ms,
};
use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, Line, panel, with_level, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::mean_of_series;
use crate::null::with_line_rate;
use crate::points::{Point, Points};
use crate::record::{Record, ms_from};
use crate::variant::Variant;

pub const FIGURE: Figure = Figure {
    id: "rocc/fig9",
    title: "RoCC as flows double every 10 ms, and halve again",
    kind: Kind::Simulation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/rocc-staircase.toml");
/// Numbers of active flows. The paper says up to 100; its public code has 96, and so has the example.
const FLOWS: [u32; 11] = [3, 6, 12, 24, 48, 96, 48, 24, 12, 6, 3];
const STEP_S: f64 = 0.01;
const NAME: &str = "staircase";
const WITHOUT_PFC: &str = "staircase, no PFC";
/// Interval, in samples, between the samples that are drawn.
const DRAWN: usize = 5;
/// Upper bound of the text's "always stabilize in less than 2 ms".
const MOST_MS: f64 = 2.0;

fn fair_gbps(n: u32) -> f64 {
    40.0 / f64::from(n)
}

fn runs(scale: &Scale) -> Vec<Run> {
    let run = |variant: &Variant, read: fn(&Record) -> Point| {
        let sets = [&[("probe.0.every", SAMPLE), ("probe.1.every", SAMPLE)], variant.sets].concat();
        Run::of(NAME, SCENARIO, variant.cc, &sets, read).called(variant.line)
    };
    let without = Run { name: WITHOUT_PFC.to_owned(), ..run(&NO_PFC, read) };
    let changed = CHANGED.iter().filter(|_| scale.causes).map(|changed| run(&changed.variant, numbers));
    with_line_rate(forms(40).iter().map(|form| run(form, read)).chain(changed).chain([without]).collect())
}

fn read(record: &Record) -> Point {
    let drawn = |series: Vec<(f64, f64)>| series.into_iter().step_by(DRAWN).collect();
    numbers(record)
        .with("rate", drawn(scaled(&fair_rate(record), 1e9)))
        .with("queue", drawn(cut(&scaled(&queue(record), 1e3))))
}

/// Returns the same point without its series.
fn numbers(record: &Record) -> Point {
    let (rate, queue) = (fair_rate(record), queue(record));
    let mut point = Point::of([("drops", record.totals.drops.total() as f64)]);
    for (i, n) in FLOWS.into_iter().enumerate() {
        // Samples at the boundary are the next step's.
        let span = (i as f64 * STEP_S, (i + 1) as f64 * STEP_S - 1e-6);
        let late = (span.1 - STEP_S / 2.0, span.1);
        point.numbers.extend([
            (format!("rates {i}"), settles_ms(&rate, span, fair_gbps(n) * 1e9, 0.05)),
            (format!("queue {i}"), settles_ms(&queue, span, 150e3, 0.1)),
            (format!("rate {i}"), mean_of_series(&part(&rate, late)) / 1e9),
        ]);
    }
    point
}

/// Returns a step in words.
fn step(i: usize) -> String {
    let from = i.checked_sub(1).map_or(0, |before| FLOWS[before]);
    format!("{from}->{}", FLOWS[i])
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, y: Axis, what: &str| {
        let line = |(variant, look): (&Variant, &'static str)| {
            let series = points.series(NAME, variant.line, what);
            Line { name: variant.line.to_owned(), ..Line::of(look, &ms_from(series, 0.0, (0.0, 110.0))) }
        };
        let lines = JUDGED.iter().zip(LOOKS).map(line).collect();
        Panel { wide: true, ..panel(title, Axis { link: "time", ..Axis::new("time (ms)") }, y, lines) }
    };
    let rate =
        draw("fair rate as 3, 6, ... 96 flows share 40 Gb/s", Axis::new("fair rate (Gb/s)").logarithmic(), "rate");
    let queue = draw("queue, cut at 600 KB", Axis::new("queue (KB)").showing(0.0, 600.0), "queue");
    vec![
        rate,
        with_level(queue, "paper: 150 KB", 150.0, (0.0, 110.0)),
        settling(points, "until rates stay within 5 %, with one thing changed", "rates"),
        settling(points, "until the queue stays within 10 % of 150 KB", "queue"),
    ]
}

fn settling(points: &Points, title: &str, what: &str) -> Panel {
    let words: Vec<String> = (0..FLOWS.len()).map(step).collect();
    let line = |(variant, look): (&Variant, &'static str)| Compared {
        name: variant.line.to_owned(),
        cc: look,
        values: (0..FLOWS.len()).map(|i| points.values(NAME, variant.line, &format!("{what} {i}"))).collect(),
    };
    let lines = forms(40).iter().zip(LOOKS).map(line).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let panel = words_panel(title, &words, Axis::new("settles after (ms)").showing(0.0, 10.0), lines);
    with_level(Panel { wide: true, ..panel }, "paper: less than 2 ms", MOST_MS, (-0.5, words.len() as f64 - 0.5))
}

fn claims(points: &Points) -> Vec<Claim> {
    let steps = JUDGED.iter().flat_map(|variant| (0..FLOWS.len()).flat_map(|i| of_step(points, variant, i)));
    steps.chain([needs_no_pfc(points, "no-pfc", WITHOUT_PFC)]).collect()
}

/// Returns the claims on a step. The limits of 3 and 5 % for rates, and of 10 % for the queue, are ours.
fn of_step(points: &Points, variant: &Variant, i: usize) -> [Claim; 3] {
    let claim = |what: &str, text: &str, rule, unit| {
        let id = format!("{}-{i}-{}", what.replace(' ', "-"), variant.id);
        let sentence = format!("flows {}, {}: {text}", step(i).replace("->", " to "), variant.line);
        Claim::exact(&id, &sentence, rule, unit, points.mean(NAME, variant.line, &format!("{what} {i}")))
    };
    let with_changes = |claim, what: &str| {
        changing(claim, variant, |changed| points.values(NAME, changed.line, &format!("{what} {i}")))
    };
    let settles = |what: &str, text: &str| with_changes(claim(what, text, Rule::AtMost(MOST_MS), "ms"), what);
    let rate = Rule::About(fair_gbps(FLOWS[i]), 0.03);
    let stabilize = "\"always stabilize in less than 2 ms\"";
    [
        with_changes(claim("rate", "mean rate in the second half of the step", rate, "Gb/s"), "rate"),
        settles("rates", &format!("rates {stabilize} (within 5 %)")),
        settles("queue", &format!("the queue {stabilize} (within 10 %)")),
    ]
}
