//! The level at which paused ports resume, which the paper does not give: RoCC on its large network, with levels of
//! pausing as in the paper and web search at 70 % for 200 ms.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;
use fairrate_units::Time;

use super::fabric::{HOSTS, SCENARIO};
use super::star::ROCC;
use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::rates::Rates;
use crate::record::{Record, seconds};

pub const FIGURE: Figure = Figure {
    id: "rocc/resume",
    title: "RoCC's pauses by the level at which paused ports resume",
    kind: Kind::Simulation,
    quick_s: 60,
    runs,
    panels,
    claims,
};

/// Levels in KB, with the names of their runs; ports pause at the paper's 500 KB at 40 Gb/s and 800 KB at 100 Gb/s. The
/// last is that of all other figures.
const LEVELS: [(f64, &str, &str); 6] = [
    (10.0, "resume at 10 KB", "\"10KB\""),
    (100.0, "resume at 100 KB", "\"100KB\""),
    (200.0, "resume at 200 KB", "\"200KB\""),
    (300.0, "resume at 300 KB", "\"300KB\""),
    (400.0, "resume at 400 KB", "\"400KB\""),
    (490.0, "resume 10 KB below", "{ 40Gbps = \"490KB\", 100Gbps = \"790KB\" }"),
];
/// The begin and the end of the run in which pauses are counted apart, in seconds.
const EARLY_S: (f64, f64) = (0.05, 0.1);
const LATE_S: (f64, f64) = (0.15, 0.2);

fn runs(scale: &Scale) -> Vec<Run> {
    let levels = if scale.quick { &LEVELS[..1] } else { &LEVELS[..] };
    let of_level = |&(_, name, resume): &(f64, &'static str, &str)| {
        let pfc = format!("{{ pause = {{ 40Gbps = \"500KB\", 100Gbps = \"800KB\" }}, resume = {resume} }}");
        let rates = || Rates::below(HOSTS, Time::ZERO);
        let run = |&seed: &u64| {
            Run::of(name, SCENARIO, ROCC.cc, &[("switch.pfc", &pfc)], read).seeded(seed).counting_rates(rates())
        };
        scale.seeds.iter().map(run).collect::<Vec<_>>()
    };
    levels.iter().flat_map(of_level).collect()
}

fn read(record: &Record) -> Point {
    let per_ms = |(from, to): (f64, f64)| {
        let inside = |t: f64| from <= t && t < to;
        let n = record.pauses.iter().filter(|event| event.pause && inside(seconds(event.t))).count();
        n as f64 / ((to - from) * 1e3)
    };
    let queues: Vec<f64> = record.ports.iter().map(|sample| sample.qlen_bytes as f64 / 1e3).collect();
    let told = record.source_rates.as_ref().map_or(f64::NAN, |rates| rates.notified(|_| true).mean());
    Point::of([
        ("pauses", record.totals.counts.pfc_pauses as f64),
        ("early", per_ms(EARLY_S)),
        ("late", per_ms(LATE_S)),
        ("paused", 100.0 * record.paused_share()),
        ("queue", stats::mean(&queues).unwrap_or(f64::NAN)),
        ("told", told),
    ])
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, y: Axis, lines: &[(&str, &'static str, &str)]| {
        let line = |&(name, cc, what): &(&str, &'static str, &str)| Curve {
            name: name.to_owned(),
            cc,
            values: LEVELS.map(|(kb, run, _)| (kb, points.values(run, ROCC.line, what))).into(),
        };
        curves::panel(title, Axis::new("resume at (KB)"), y, lines.iter().map(line).collect())
    };
    let pauses = [("50 to 100 ms", "powertcp", "early"), ("150 to 200 ms", "dcqcn", "late")];
    vec![
        draw("PFC pauses", Axis::new("pauses a ms").logarithmic(), &pauses),
        draw("queues at the cores", Axis::new("mean queue (KB)"), &[("mean queue", "powertcp", "queue")]),
        draw("rates that sources are told", Axis::new("mean rate (Mb/s)"), &[("mean rate", "powertcp", "told")]),
        draw("paused ports", Axis::new("share of the time (%)"), &[("mean of all ports", "powertcp", "paused")]),
    ]
}

/// Returns what was measured. The paper says nothing of this level.
fn claims(points: &Points) -> Vec<Claim> {
    let quantities = [
        ("pauses", "pauses in 200 ms", ""),
        ("early", "pauses a ms from 50 to 100 ms", ""),
        ("late", "pauses a ms from 150 to 200 ms", ""),
        ("paused", "share of the time for which a port is paused", "%"),
        ("queue", "mean queue at the cores", "KB"),
        ("told", "mean rate in notices", "Mb/s"),
    ];
    let of = |(kb, run, _): (f64, &'static str, &str)| {
        quantities.map(|(what, text, unit)| {
            let values = points.values(run, ROCC.line, what);
            Claim::mean(&format!("{what}-{kb}"), &format!("{run}: {text}"), Rule::Words, unit, values)
        })
    };
    LEVELS.into_iter().flat_map(of).collect()
}
