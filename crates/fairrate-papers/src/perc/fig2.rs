//! Figure 2: a flow of 10,000 packets is alone on a link, until at 600 us a flow of 1,000 packets starts.

use fairrate_report::panel::{Axis, Panel};
use fairrate_units::Time;

use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_level};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::{Record, ms_from, seconds, settle};

pub const FIGURE: Figure = Figure {
    id: "perc/fig2",
    title: "A second flow comes: PERC steps to fair rates, RCP dips and climbs",
    kind: Kind::Simulation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("fig2.toml");
const FLOWS: &str = include_str!("fig2.csv");
const ALGORITHMS: [&str; 2] = ["perc", "rcp"];
/// Start of flow 2.
const COMES: Time = Time::from_us(600);
const RTT: Time = Time::from_us(120);
const SHOWN_MS: f64 = 2.0;

fn runs(scale: &Scale) -> Vec<Run> {
    let run = |cc| Run::of("two flows", SCENARIO, cc, &[], read).with_file("fig2.csv", FLOWS);
    // RCP's ports draw the phase of their intervals; PERC has no random part.
    let seeded = scale.seeds.iter().map(|&seed| run("rcp").seeded(seed));
    std::iter::once(run("perc")).chain(seeded).collect()
}

fn read(record: &Record) -> Point {
    let done = |flow: u32| {
        let outcome = record.flows.iter().find(|f| f.flow.0 == flow);
        outcome.and_then(|f| Some(f.start + f.fct?)).unwrap_or(Time::MAX)
    };
    let end = done(0).min(Time::from_ms(2));
    let used = record.port("sw0", "sw1").within(COMES + RTT, end).used();
    let (from, to) = (seconds(COMES), seconds(done(1)));
    let first = record.rate_gbps(0);
    let both = first.iter().filter(|(t, _)| from <= *t && *t <= to);
    Point::of([
        ("fct", (to - from) * 1e6),
        ("use", used.unwrap_or(f64::NAN)),
        ("settle", settle(&first, (from, to), 50.0, 0.1) * 1e6),
        ("dip", both.map(|(_, rate)| *rate).fold(f64::MAX, f64::min)),
    ])
    .with("flow 1", ms_from(&first, 0.0, (0.0, SHOWN_MS)))
    .with("flow 2", ms_from(&record.rate_gbps(1), 0.0, (0.0, SHOWN_MS)))
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |cc: &'static str| {
        // The looks of two algorithms distinguish the two flows.
        let line = |(flow, look): (&str, &'static str)| Line {
            name: flow.to_owned(),
            ..Line::of(look, points.series("two flows", cc, flow))
        };
        let x = Axis { link: "time", ..Axis::new("time (ms)") };
        let y = Axis::new("rate (Gb/s)").showing(0.0, 100.0);
        let panel = panel(cc, x, y, [("flow 1", "powertcp"), ("flow 2", "dcqcn")].map(line).into());
        with_level(panel, "half of the link", 50.0, (0.0, SHOWN_MS))
    };
    ALGORITHMS.map(draw).into()
}

fn claims(points: &Points) -> Vec<Claim> {
    let exact = |what: &str, text: &str, rule, unit| {
        let value = points.mean("two flows", "perc", what);
        Claim::exact(&format!("{what}-perc"), &format!("perc: {text}"), rule, unit, value)
    };
    let mean = |what: &str, text: &str, rule, unit| {
        let values = points.values("two flows", "rcp", what);
        Claim::mean(&format!("{what}-rcp"), &format!("rcp: {text}"), rule, unit, values)
    };
    let steps = "\"step like\": flow 1 is at half of the link after flow 2 came (10 % and three round trips are ours)";
    let dip = "the lowest rate of flow 1 while flow 2 is there";
    let sharp = format!("\"sharp dip\": {dip} (below 40 is ours)");
    let none = format!("no dip below half of the link: {dip} (10 % is ours)");
    let use_of = "use of the link from a round trip after flow 2 came until the end";
    let less = format!("\"underutilizes the link\": {use_of} (0.9 is ours)");
    let fct = "completion time of flow 2";
    vec![
        exact("settle", steps, Rule::AtMost(360.0), "us"),
        exact("dip", &none, Rule::About(50.0, 0.1), "Gb/s"),
        mean("dip", &sharp, Rule::AtMost(40.0), "Gb/s"),
        mean("use", &less, Rule::AtMost(0.9), ""),
        exact("use", use_of, Rule::Words, ""),
        exact("fct", fct, Rule::Words, "us"),
        mean("fct", fct, Rule::Words, "us"),
    ]
}
