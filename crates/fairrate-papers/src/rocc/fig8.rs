//! Figure 8: 2, 10 and 100 flows on a link of 40 and of 100 Gb/s.

use fairrate_report::panel::{Axis, Panel};

use super::causes::{CHANGED, changing};
use super::star::{
    JUDGED, LOOKS, NO_PFC, NO_PFC_10US, NO_PFC_30MB, NO_PFC_70MB, ROCC, cut, fair_rate, forms, goodputs, needs_no_pfc,
    part, queue, run, scaled, settles_ms, worst,
};
use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, Line, panel, with_level, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::{mean, mean_of_series};
use crate::null::with_line_rate;
use crate::points::{Point, Points};
use crate::record::{Record, ms_from};
use crate::variant::Variant;

pub const FIGURE: Figure = Figure {
    id: "rocc/fig8",
    title: "Fairness and stability of RoCC with 2, 10 and 100 flows",
    kind: Kind::Simulation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

const GBPS: [u64; 2] = [40, 100];
/// Flows, and the algorithms whose looks their lines have.
const FLOWS: [(u32, &str); 3] = [(2, "powertcp"), (10, "hpcc"), (100, "dcqcn")];
/// Begin and end of each run in seconds; queues and rates are measured in its second half. The paper has no durations.
const RUN_S: (f64, f64) = (0.0, 0.02);
const STEADY_S: (f64, f64) = (0.01, 0.02);
const SHOWN_S: (f64, f64) = (0.0, 0.01);
const SHOWN_MS: f64 = 10.0;
/// The time in which the text says it "converges in ~2 ms".
const SETTLES_MS: f64 = 2.0;

fn name(gbps: u64, n: u32) -> String {
    format!("{gbps} Gb/s, N = {n}")
}

fn without_pfc(gbps: u64, n: u32) -> String {
    format!("{}, no PFC", name(gbps, n))
}

fn fair_gbps(gbps: u64, n: u32) -> f64 {
    gbps as f64 / f64::from(n)
}

/// Returns Qref in KB.
fn q_ref(gbps: u64) -> f64 {
    if gbps == 40 { 150.0 } else { 300.0 }
}

fn settings() -> impl Iterator<Item = (u64, u32)> {
    GBPS.into_iter().flat_map(|gbps| FLOWS.map(|(n, _)| (gbps, n)))
}

fn runs(scale: &Scale) -> Vec<Run> {
    let of = |(gbps, n): (u64, u32)| {
        let read = move |record: &Record| read(record, fair_gbps(gbps, n));
        forms(gbps).map(|variant| run(&name(gbps, n), &variant, (n, gbps), "20ms", read))
    };
    let changed = |(gbps, n): (u64, u32)| {
        let read = move |record: &Record| numbers(record, fair_gbps(gbps, n));
        CHANGED.iter().map(move |changed| run(&name(gbps, n), &changed.variant, (n, gbps), "20ms", read))
    };
    let without = |(gbps, n): (u64, u32)| {
        let read = move |record: &Record| read(record, fair_gbps(gbps, n));
        let of = move |variant| run(&without_pfc(gbps, n), variant, (n, gbps), "20ms", read);
        forms_without_pfc(n).iter().map(of)
    };
    let changed = settings().filter(|_| scale.causes).flat_map(changed);
    with_line_rate(settings().flat_map(of).chain(changed).chain(settings().flat_map(without)).collect())
}

/// Returns the variants that are run without PFC: where many flows begin at once, those too that show what they
/// overflow.
fn forms_without_pfc(n: u32) -> &'static [Variant] {
    if n < 100 { &[NO_PFC] } else { &[NO_PFC, NO_PFC_30MB, NO_PFC_70MB, NO_PFC_10US] }
}

fn read(record: &Record, fair_gbps: f64) -> Point {
    numbers(record, fair_gbps)
        .with("rate", part(&scaled(&fair_rate(record), 1e9), SHOWN_S))
        .with("queue", part(&cut(&scaled(&queue(record), 1e3)), SHOWN_S))
}

/// Returns the same point without its series.
fn numbers(record: &Record, fair_gbps: f64) -> Point {
    let rates = goodputs(record, STEADY_S);
    Point::of([
        ("drops", record.totals.drops.total() as f64),
        ("settles", settles_ms(&fair_rate(record), RUN_S, fair_gbps * 1e9, 0.05)),
        ("rate", mean(&rates)),
        ("worst", worst(&rates, fair_gbps)),
        ("queue", mean_of_series(&part(&queue(record), STEADY_S)) / 1e3),
    ])
}

fn panels(points: &Points) -> Vec<Panel> {
    let of_rate = |gbps: u64| {
        let title = |what: &str| format!("{gbps} Gb/s: {what}");
        let rate = Axis::new("fair rate (Gb/s)").logarithmic();
        let rate = draw(points, gbps, title("fair rate, and the link over N"), rate, "rate");
        let rate = FLOWS.iter().fold(rate, |panel, &(n, _)| with_level(panel, "", fair_gbps(gbps, n), (0.0, SHOWN_MS)));
        let queue = draw(points, gbps, title("queue, cut at 600 KB"), Axis::new("queue (KB)"), "queue");
        [rate, with_level(queue, &format!("paper: {} KB", q_ref(gbps)), q_ref(gbps), (0.0, SHOWN_MS))]
    };
    GBPS.into_iter().flat_map(of_rate).chain([settling(points)]).collect()
}

fn draw(points: &Points, gbps: u64, title: String, y: Axis, what: &str) -> Panel {
    let line = |(n, look): (u32, &'static str)| {
        let series = points.series(&name(gbps, n), ROCC.line, what);
        Line { name: format!("N = {n}"), ..Line::of(look, &ms_from(series, 0.0, (0.0, SHOWN_MS))) }
    };
    panel(title, Axis { link: "time", ..Axis::new("time (ms)") }, y, FLOWS.map(line).into())
}

/// Draws the settling time of each variant of RoCC in each setting.
fn settling(points: &Points) -> Panel {
    let words: Vec<String> = settings().map(|(gbps, n)| name(gbps, n)).collect();
    let line = |(variant, look): (&Variant, &'static str)| Compared {
        name: variant.line.to_owned(),
        cc: look,
        values: words.iter().map(|name| points.values(name, variant.line, "settles")).collect(),
    };
    let lines = forms(40).iter().zip(LOOKS).map(line).collect();
    let y = Axis::new("rates settle after (ms)").showing(0.0, 8.0);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let panel = words_panel("until rates stay within 5 %, with one thing changed", &words, y, lines);
    with_level(Panel { wide: true, ..panel }, "paper: about 2 ms", SETTLES_MS, (-0.5, words.len() as f64 - 0.5))
}

fn claims(points: &Points) -> Vec<Claim> {
    let all = || JUDGED.iter().flat_map(|variant| settings().map(move |(gbps, n)| (variant, gbps, n)));
    let sooner = || JUDGED.iter().flat_map(|variant| GBPS.map(|gbps| sooner_with_more(points, variant, gbps)));
    let unpaused = || settings().map(|(gbps, n)| without_drops(points, gbps, n));
    all().flat_map(|(variant, gbps, n)| of_run(points, variant, gbps, n)).chain(sooner()).chain(unpaused()).collect()
}

/// Returns the claim that nothing is dropped without PFC. All flows begin at once at their links' rate, and send at it
/// until the first notice: what changes the drops is how much the switch holds and how soon it decides.
fn without_drops(points: &Points, gbps: u64, n: u32) -> Claim {
    let name = without_pfc(gbps, n);
    let drops = |variant: &Variant| points.values(&name, variant.line, "drops");
    needs_no_pfc(points, &format!("no-pfc-{gbps}-{n}"), &name)
        .changing("the buffer holds 30 MB", drops(&NO_PFC_30MB))
        .changing("the buffer holds 70 MB", drops(&NO_PFC_70MB))
        .changing("the switch computes the rate every 10 us, not 40", drops(&NO_PFC_10US))
}

/// Returns the claim on "faster with larger N": the settling time with 100 flows is below that with two.
fn sooner_with_more(points: &Points, variant: &Variant, gbps: u64) -> Claim {
    let ratio = |variant: &Variant| {
        let settles = |n: u32| points.mean(&name(gbps, n), variant.line, "settles");
        settles(100).zip(settles(2)).map(|(many, few)| many / few)
    };
    let (id, sentence) = (
        format!("sooner-{gbps}-{}", variant.id),
        format!(
            "{gbps} Gb/s, {}: time to settle with 100 flows over that with 2 (\"faster with larger N\")",
            variant.line
        ),
    );
    let claim = Claim::exact(&id, &sentence, Rule::AtMost(1.0), "", ratio(variant));
    changing(claim, variant, |changed| ratio(changed).into_iter().collect())
}

/// Returns the claims on a run. Queues must be within 5 % of Qref and rates within 3 % of the fair rate: RoCC computes
/// in steps of 10 Mb/s, 2.5 % of the smallest fair rate here. "About 2 ms" may be up to 2.5. These limits are ours.
fn of_run(points: &Points, variant: &Variant, gbps: u64, n: u32) -> [Claim; 4] {
    const MOST_MS: f64 = 2.5;
    let name = name(gbps, n);
    let claim = |id: &str, text: &str, rule, unit, what| {
        let (id, sentence) = (format!("{id}-{gbps}-{n}-{}", variant.id), format!("{name}, {}: {text}", variant.line));
        Claim::exact(&id, &sentence, rule, unit, points.mean(&name, variant.line, what))
    };
    let words = "\"converges in ~2 ms\" (within 5 %, windows of 200 us)";
    let settle = claim("settle", words, Rule::AtMost(MOST_MS), "ms", "settles");
    let with_changes = |claim, what: &str| changing(claim, variant, |changed| points.values(&name, changed.line, what));
    let queue = claim("queue", "the queue is at its reference (mean)", Rule::About(q_ref(gbps), 0.05), "KB", "queue");
    [
        with_changes(queue, "queue"),
        claim("rate", "mean rate of a flow", Rule::About(fair_gbps(gbps, n), 0.03), "Gb/s", "rate"),
        claim("worst", "largest distance of a flow's rate from the link over N", Rule::AtMost(0.05), "", "worst"),
        with_changes(settle, "settles"),
    ]
}
