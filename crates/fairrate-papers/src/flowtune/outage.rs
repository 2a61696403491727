//! The text on an allocator that fails (section 2): rates expire, TCP continues, and a new allocator is notified of all
//! flows.

use fairrate_report::panel::{Axis, Panel};
use fairrate_sim::RateSample;
use fairrate_units::Time;

use super::FLOWTUNE;
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::mean_of;
use crate::points::{Point, Points};
use crate::record::{Record, ms_from, seconds};

pub const FIGURE: Figure = Figure {
    id: "flowtune/outage",
    title: "An allocator that is dead for 5 ms",
    kind: Kind::Simulation,
    quick_s: 5,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/flowtune-outage.toml");
const LINE: &str = FLOWTUNE.line;
/// Begin and end of the allocator's failure, in milliseconds.
const DEAD_MS: (u64, u64) = (7, 12);
const END_MS: u64 = 20;
/// Time after which a flow must have delivered some bytes.
const PATIENCE: Time = Time::from_ms(5);

fn runs(scale: &Scale) -> Vec<Run> {
    scale.seeds.iter().map(|&seed| FLOWTUNE.run("outage", SCENARIO, &[], read).seeded(seed)).collect()
}

fn read(record: &Record) -> Point {
    let delivered: Vec<f64> = (0..=END_MS).map(|ms| delivered_bytes(record, Time::from_ms(ms))).collect();
    let gbps = |from: u64, to: u64| (delivered[to as usize] - delivered[from as usize]) * 8e-6 / (to - from) as f64;
    let (down, up) = DEAD_MS;
    let (before, during, after) = (gbps(2, down), gbps(down, up), gbps(13, 18));
    // Some flows are always in their first round trip: "back" is the return to the share allocated before.
    let allocated: Vec<(f64, f64)> =
        record.rates.chunk_by(|a, b| a.t == b.t).map(|at| (seconds(at[0].t) * 1e3, allocated(at))).collect();
    let between = |from: f64, to: f64| allocated.iter().filter(move |at| from <= at.0 && at.0 <= to);
    let usual = mean_of(between(3.0, down as f64).map(|at| at.1));
    let back = between(up as f64, END_MS as f64).find(|at| 0.95 * usual <= at.1);
    let last = Time::from_ms(END_MS).saturating_sub(PATIENCE);
    let stalled = record.cut.iter().filter(|flow| flow.delivered_bytes == 0 && flow.start < last).count();
    Point::of([
        ("during", during / before),
        ("after", after / before),
        ("back", back.map_or(f64::NAN, |at| (at.0 - up as f64) * 1e3)),
        ("stalled", stalled as f64),
    ])
    .with("throughput", (1..=END_MS).map(|ms| (ms as f64 * 1e-3, gbps(ms - 1, ms))).collect())
    .with("allocated", allocated.into_iter().map(|(ms, share)| (ms * 1e-3, 100.0 * share)).collect())
}

/// Returns the payload delivered until `t`.
fn delivered_bytes(record: &Record, t: Time) -> f64 {
    let done = record.flows.iter().filter(|flow| flow.fct_ack.is_some_and(|fct| flow.start + fct <= t));
    let done: u64 = done.map(|flow| record.config.flows[flow.flow.index()].bytes.as_u64()).sum();
    let active: u64 = record.rates.iter().filter(|rate| rate.t == t).map(|rate| rate.delivered_bytes).sum();
    (done + active) as f64
}

/// Returns the share of flows that send at the allocator's rates: they have no window.
fn allocated(at: &[RateSample]) -> f64 {
    at.iter().filter(|rate| rate.cwnd_bytes == u64::MAX).count() as f64 / at.len() as f64
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, y: Axis, what: &str, most: f64| {
        let shown = Line::of("powertcp", &ms_from(points.series("outage", LINE, what), 0.0, (0.0, END_MS as f64)));
        let dead = |(name, ms): (&str, u64)| Line {
            name: name.to_owned(),
            ..Line::of("line-rate", &[(ms as f64, 0.0), (ms as f64, most)])
        };
        let x = Axis { link: "time", ..Axis::new("time (ms)") };
        panel(title, x, y, vec![shown, dead(("it dies", DEAD_MS.0)), dead(("it is back", DEAD_MS.1))])
    };
    vec![
        draw(
            "payload delivered by all flows",
            Axis::new("throughput (Gb/s)").showing(0.0, 1_200.0),
            "throughput",
            1_200.0,
        ),
        draw("flows that go by the allocator's rates", Axis::new("share (%)").showing(0.0, 100.0), "allocated", 100.0),
    ]
}

fn claims(points: &Points) -> Vec<Claim> {
    let claim =
        |what: &str, text: &str, rule, unit| Claim::mean(what, text, rule, unit, points.values("outage", LINE, what));
    vec![
        claim("during", "throughput without an allocator over that before (0.95 is ours)", Rule::AtLeast(0.95), ""),
        claim("after", "throughput afterwards over that before (0.95 is ours)", Rule::AtLeast(0.95), ""),
        claim(
            "back",
            "as many flows under allocation as usual, after its return (1 ms is ours)",
            Rule::AtMost(1_000.0),
            "us",
        ),
        claim("stalled", "flows that had 5 ms and have delivered nothing", Rule::AtMost(0.0), ""),
    ]
}
