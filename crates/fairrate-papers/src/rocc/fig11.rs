//! Figure 11: ten flows on a link of 40 Gb/s, under RoCC and its baselines.

use fairrate_report::panel::{Axis, Panel};
use fairrate_units::Time;

use super::baselines::{
    AT_ONCE, BFC, DCQCN, DCQCN_AUTHORS, DCQCN_PI, HPCC, HPCC_BY_LINE_RATE, OMNET, PACC, QCN, Says, TIMELY, by_seeds,
    claim, ratios,
};
use super::star::{ROCC, SAMPLE_US, goodputs, part, run, settles_over_ms, worst};
use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, Line, panel, with_level, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::{mean, mean_and_deviation};
use crate::points::{Point, Points};
use crate::record::{Record, ms_from};
use crate::variant::Variant;

pub const FIGURE: Figure = Figure {
    id: "rocc/fig11",
    title: "Ten flows on a link: rates, queue and utilisation under nine algorithms",
    kind: Kind::Simulation,
    quick_s: 5,
    runs,
    panels,
    claims,
};

const NAME: &str = "ten flows";
/// HPCC with a headroom of 1 % instead of 5 %.
const HPCC_1: Variant = HPCC.with("hpcc-0.99", "hpcc, 1 % of headroom", &[("transport.hpcc.eta", "0.99")]);
/// The paper's variants, with short names.
const JUDGED: [(Variant, &str); 9] = [
    (ROCC, "rocc"),
    (DCQCN, "dcqcn"),
    (DCQCN_PI, "dcqcn-pi"),
    (TIMELY, "timely"),
    (QCN, "qcn"),
    (HPCC, "hpcc"),
    (HPCC_1, "hpcc 1 %"),
    (PACC, "pacc"),
    (BFC, "bfc"),
];
/// Variants beyond the paper, with one thing changed.
const CHANGED: [(Variant, &str); 4] = [
    (DCQCN_AUTHORS, "dcqcn code"),
    (HPCC_BY_LINE_RATE, "hpcc W_AI"),
    (DCQCN_OMNET, "dcqcn omnet"),
    (HPCC_OMNET, "hpcc omnet"),
];
/// DCQCN and HPCC with all that is in the code of RoCC's authors.
const DCQCN_OMNET: Variant = DCQCN.with("dcqcn-omnet", "dcqcn, rocc-omnet", &[OMNET, AT_ONCE]);
const HPCC_OMNET: Variant = HPCC.with("hpcc-omnet", "hpcc, rocc-omnet", &[OMNET, AT_ONCE]);
/// Duration of the runs: some algorithms take tens of milliseconds to settle. The paper has no durations.
const DURATION: &str = "200ms";
const RUN_S: (f64, f64) = (0.0, 0.2);
const STEADY_S: (f64, f64) = (0.1, 0.2);
const SHOWN_MS: (f64, f64) = (100.0, 120.0);
const FAIR_GBPS: f64 = 4.0;

fn runs(scale: &Scale) -> Vec<Run> {
    let variants: Vec<Variant> = JUDGED.iter().chain(&CHANGED).map(|(variant, _)| *variant).collect();
    by_seeds(scale, &variants, |variant| run(NAME, variant, (10, 40), DURATION, read))
}

fn read(record: &Record) -> Point {
    let (rates, port) = (goodputs(record, STEADY_S), record.port("sw0", "h0"));
    let queue = port.queue_kb();
    let steady: Vec<f64> = part(&queue, STEADY_S).iter().map(|point| point.1).collect();
    let (mean_queue, deviation) = mean_and_deviation(&steady);
    // Rates are averaged over windows of 1 ms.
    let settles = |flow: u32| settles_over_ms(&record.rate_gbps(flow), 1_000 / SAMPLE_US, RUN_S, FAIR_GBPS, 0.25);
    let used = port.within(Time::from_ms(100), Time::from_ms(200)).used();
    Point::of([
        ("rate", mean(&rates)),
        ("slowest", rates.iter().copied().fold(f64::INFINITY, f64::min)),
        ("fastest", rates.iter().copied().fold(0.0, f64::max)),
        ("worst", worst(&rates, FAIR_GBPS)),
        ("queue", mean_queue),
        ("deviation", deviation),
        ("use", used.unwrap_or(f64::NAN)),
        ("settles", (0..10).map(settles).fold(0.0, f64::max)),
    ])
    .with("queue", part(&queue, (SHOWN_MS.0 / 1e3, SHOWN_MS.1 / 1e3)))
}

fn panels(points: &Points) -> Vec<Panel> {
    let all = || JUDGED.iter().chain(&CHANGED);
    let words: Vec<&str> = all().map(|(_, short)| *short).collect();
    let wide = |panel: Panel| Panel { wide: true, ..panel };
    let compared = |name: &str, look, what: &str| {
        let values = all().map(|(variant, _)| points.values(NAME, variant.line, what)).collect();
        Compared { name: name.to_owned(), cc: look, values }
    };
    let level = |panel, name: &str, y| with_level(panel, name, y, (-0.5, words.len() as f64 - 0.5));
    let rates = vec![
        compared("mean of ten flows", "powertcp", "rate"),
        compared("slowest", "hpcc", "slowest"),
        compared("fastest", "dcqcn", "fastest"),
    ];
    let rates = words_panel("(a) rates of flows, 100 to 200 ms", &words, Axis::new("rate (Gb/s)"), rates);
    let deviation =
        vec![compared("its standard deviation", "hpcc", "deviation"), compared("mean queue", "dcqcn", "queue")];
    let deviation = words_panel("(b) queue, 100 to 200 ms", &words, Axis::new("queue (KB)"), deviation);
    let used = vec![compared("utilisation", "powertcp", "use")];
    let used = words_panel("(c) utilisation, 100 to 200 ms", &words, Axis::new("share of the link"), used);
    vec![
        wide(level(rates, "expected", FAIR_GBPS)),
        wide(level(used, "95 %, what HPCC's headroom leaves", 0.95)),
        queues(points, "(b) queue: RoCC, and marks", [ROCC, DCQCN, DCQCN_PI, QCN]),
        queues(points, "(b) queue: delays, telemetry, notices, back pressure", [TIMELY, HPCC, PACC, BFC]),
        wide(level(deviation, "Qref of RoCC", 150.0)),
    ]
}

fn queues(points: &Points, title: &str, variants: [Variant; 4]) -> Panel {
    let series = |variant: &Variant| ms_from(points.series(NAME, variant.line, "queue"), 0.0, SHOWN_MS);
    let lines = variants.iter().map(|variant| Line::of(variant.cc, &series(variant))).collect();
    panel(title, Axis { link: "time", ..Axis::new("time (ms)") }, Axis::new("queue (KB)").showing(0.0, 500.0), lines)
}

/// Returns the claims. All thresholds are ours: 3 and 5 % for RoCC's targets, 10 % for fair and 20 % for unfair rates,
/// 30 KB for a shallow queue, 97 % for a high utilisation.
fn claims(points: &Points) -> Vec<Claim> {
    let judged = |(variant, _): &(Variant, &str)| {
        let cc = variant.id;
        let of = |what: &str, says: Says<'_>| {
            let changes: &[(&str, Variant)] = match cc {
                "dcqcn" => &[
                    ("constants are those of the authors' code", DCQCN_AUTHORS),
                    ("it is as in the authors' code", DCQCN_OMNET),
                ],
                "hpcc" => &[
                    ("the additive increase is that of HPCC's formula for ten flows", HPCC_BY_LINE_RATE),
                    ("it is as in the authors' code", HPCC_OMNET),
                ],
                _ => &[],
            };
            let claim = claim(points, NAME, variant, what, says);
            changes
                .iter()
                .fold(claim, |claim, (text, other)| claim.changing(text, points.values(NAME, other.line, what)))
        };
        let words = |text: &str| text.to_owned();
        let rate = match cc {
            "rocc" => Rule::About(FAIR_GBPS, 0.03),
            "hpcc" => Rule::AtMost(3.9),
            _ => Rule::Words,
        };
        let (fair, fairness) = match cc {
            "timely" | "qcn" => (" (significant)", Rule::AtLeast(0.2)),
            "hpcc-0.99" => (" (\"critically loses its fairness\")", Rule::AtLeast(0.2)),
            "dcqcn-pi" => ("", Rule::Words),
            _ => (" (\"comparable to RoCC\")", Rule::AtMost(0.1)),
        };
        let (queue, queue_rule) = match cc {
            "rocc" => (" (at its reference)", Rule::About(150.0, 0.05)),
            "dcqcn" => (" (\"fluctuating around ~100 KB\")", Rule::Words),
            "timely" => (" (\"fluctuating around ~200 KB\")", Rule::Words),
            "hpcc" => (" (shallow)", Rule::AtMost(30.0)),
            _ => ("", Rule::Words),
        };
        let (used, use_rule) = match cc {
            "rocc" | "dcqcn-pi" | "timely" => (" (high)", Rule::AtLeast(0.97)),
            "hpcc" => (" (less by the headroom)", Rule::About(0.95, 0.02)),
            _ => ("", Rule::Words),
        };
        [
            of("rate", ("rate", words("mean rate of a flow"), rate, "Gb/s")),
            of("worst", ("fair", format!("largest distance of a flow from 4 Gb/s{fair}"), fairness, "")),
            of("queue", ("queue", format!("mean queue{queue}"), queue_rule, "KB")),
            of("deviation", ("deviation", words("standard deviation of the queue"), Rule::Words, "KB")),
            of("use", ("use", format!("utilisation{used}"), use_rule, "")),
        ]
    };
    JUDGED.iter().flat_map(judged).chain(compared(points)).collect()
}

/// Returns the text's comparisons of two algorithms. Four fifths is ours for "less" and "sooner".
fn compared(points: &Points) -> Vec<Claim> {
    let claim = |id: &str, variant: &Variant, text: &str, what: &str| {
        let of = |over| ratios(points, NAME, variant, over, what);
        Claim::mean(id, &format!("{} {text} dcqcn", variant.line), Rule::AtMost(0.8), "", of(&DCQCN))
            .changing("DCQCN has the constants of the authors' code", of(&DCQCN_AUTHORS))
            .changing("DCQCN is as in the authors' code", of(&DCQCN_OMNET))
    };
    let steadier = |variant: &Variant| {
        claim(
            &format!("stable-{}", variant.id),
            variant,
            "is more stable: deviation of its queue over that of",
            "deviation",
        )
    };
    vec![
        steadier(&DCQCN_PI),
        steadier(&PACC),
        steadier(&ROCC),
        claim("fast-pacc", &PACC, "\"converges faster\": time to 25 % (windows of 1 ms) over that of", "settles"),
    ]
}
