//! The common part of Figures 1, 4 and 5: web search at 60 % on one link, at three speeds and round-trip times.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;
use fairrate_units::Time;

use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, with_level, words_panel};
use crate::experiment::Run;
use crate::figure::Scale;
use crate::points::{Point, Points};
use crate::record::Record;
use crate::variant::Variant;

const SCENARIO: &str = include_str!("../../scenarios/perc-link.toml");

/// Classes of flows: the name, the paper's statistic, and the size range in bytes, lower end exclusive.
const CLASSES: [(&str, &str, f64, f64); 3] = [
    ("small", "p99 FCT of small flows", 0.0, 10e3),
    ("medium", "p99 FCT of medium flows", 10e3, 1e6),
    ("large", "mean FCT of large flows", 1e6, f64::MAX),
];

pub const PERC: Variant = Variant::of("perc");
pub const CHARNY: Variant = Variant::of("charny");
pub const RCP: Variant = Variant::of("rcp");
/// The paper's DCTCP is ns-2's TCP, which begins with slow start.
pub const DCTCP: Variant = Variant::of("dctcp").with(
    "dctcp",
    "dctcp",
    &[("transport.dctcp.initial_window", "10mtu"), ("transport.dctcp.slow_start", "true")],
);
/// DCTCP with ns-2's first window of two packets.
pub const DCTCP_TWO: Variant = Variant::of("dctcp").with(
    "dctcp-two",
    "dctcp, two packets",
    &[("transport.dctcp.initial_window", "2mtu"), ("transport.dctcp.slow_start", "true")],
);
const IDEAL: Variant = Variant::of("ideal");
pub const CHARGED: Variant =
    PERC.with("perc-charged", "perc, control packets charged", &[("transport.perc.charge_control", "true")]);
const SMALL_CONTROL: Variant =
    PERC.with("perc-control-1B", "perc, control packets of 1 B", &[("transport.perc.control_packet", "1B")]);
const HEADROOM: Variant = PERC.with("perc-headroom", "perc, 5 % headroom", &[("transport.perc.headroom", "0.05")]);
const FIRST_WAITS: Variant =
    PERC.with("perc-first-waits", "perc, first rates wait", &[("transport.perc.first_rate_waits", "true")]);
const PUBLISHED: [&Variant; 4] = [&PERC, &CHARNY, &RCP, &DCTCP];
const CHANGED: [&Variant; 5] = [&PERC, &CHARGED, &SMALL_CONTROL, &HEADROOM, &FIRST_WAITS];
/// All lines but the ideal, which is the baseline of the others.
const SHOWN: [&Variant; 8] = [&PERC, &CHARNY, &RCP, &DCTCP, &CHARGED, &SMALL_CONTROL, &HEADROOM, &FIRST_WAITS];

/// A link, with the text's statements about completion times on it.
pub struct Setting {
    pub rate: &'static str,
    /// Delay that gives the base RTT below, with the time of a packet and its acknowledgment on three links and 1 us a
    /// host link.
    pub delay: &'static str,
    pub rtt: &'static str,
    /// End of arrivals, at full size and with `quick`.
    pub until: [&'static str; 2],
    pub says: &'static [Says],
    /// Lines that only show why claims fail.
    pub causes: &'static [&'static Variant],
}

/// A statement of the text about an algorithm in comparison with others.
pub struct Says {
    pub classes: &'static [&'static str],
    pub line: &'static Variant,
    pub over: &'static [&'static Variant],
    pub words: &'static str,
    pub rule: Rule,
    /// The cause of a different result, where a line shows it.
    pub cause: Option<&'static str>,
}

pub fn runs(setting: &Setting, scale: &Scale) -> Vec<Run> {
    let run = |seed: u64, variant: &Variant| {
        let link = [
            ("topology.host_rate", setting.rate),
            ("topology.bottleneck_rate", setting.rate),
            ("topology.bottleneck_delay", setting.delay),
            ("transport.base_rtt", setting.rtt),
            ("traffic.0.stop", setting.until[usize::from(scale.quick)]),
            ("probe.0.every", "1ms"),
        ];
        let sets: Vec<_> = link.iter().chain(variant.sets).copied().collect();
        Run::of("link", SCENARIO, variant.cc, &sets, read).called(variant.line).seeded(seed)
    };
    scale
        .seeds
        .iter()
        .flat_map(|&seed| {
            let all = SHOWN.into_iter().chain([&IDEAL]).chain(setting.causes.iter().copied());
            all.map(move |variant| run(seed, variant))
        })
        .collect()
}

/// Reads 99th percentiles of small and medium flows, the mean of large flows, and the mean queue.
fn read(record: &Record) -> Point {
    let [small, medium, large] = CLASSES.map(|(_, _, above, up_to)| record.fcts(above, up_to));
    let p99 = |fcts: &[f64]| stats::percentile(fcts, 0.99).unwrap_or(f64::NAN) * 1e6;
    let port = record.port("sw0", "sw1");
    let queue = port.within(Time::ZERO, Time::MAX).mean_queue_kb();
    // Arrivals are over with the last flow's start.
    let end = record.config.flows.iter().map(|flow| flow.start).max().unwrap_or(Time::ZERO);
    let fifth = |n: u64| Time::from_ps(end.as_ps() / 5 * n);
    let of_fifth = |n: u64| port.within(fifth(n), fifth(n + 1)).mean_queue_kb().unwrap_or(f64::NAN);
    Point::of([
        ("small", p99(&small)),
        ("medium", p99(&medium)),
        ("large", stats::mean(&large).unwrap_or(f64::NAN) * 1e6),
        ("queue", queue.unwrap_or(f64::NAN)),
        ("growth", of_fifth(4) - of_fifth(1)),
    ])
}

pub fn panels(setting: &Setting, points: &Points) -> Vec<Panel> {
    let over_ideal = |title: &str, variants: &[&Variant]| {
        let compared = |variant: &&Variant| Compared {
            name: variant.line.to_owned(),
            cc: variant.cc,
            values: CLASSES.map(|(class, ..)| points.ratios("link", variant.line, IDEAL.line, class)).into(),
        };
        let mut lines: Vec<Compared<'_>> = variants.iter().map(compared).collect();
        lines.extend(
            setting.says.iter().filter(|_| variants.len() == PUBLISHED.len()).filter_map(|says| stated(says, points)),
        );
        let y = Axis::new("FCT over that of ideal").logarithmic().showing(0.5, 2.0);
        let words = ["small (p99)", "medium (p99)", "large (mean)"];
        with_level(words_panel(title, &words, y, lines), "ideal", 1.0, (-0.5, 2.5))
    };
    let title = format!("FCT at {} and {}", setting.rate.replace("Gbps", " Gb/s"), setting.rtt.replace("us", " us"));
    vec![
        over_ideal(&title, &PUBLISHED),
        over_ideal("the same of PERC with one thing changed", &CHANGED),
        queues(points),
    ]
}

/// Draws the mean queue of every line, with short names.
fn queues(points: &Points) -> Panel {
    let names = SHOWN.map(|variant| variant.id.strip_prefix("perc-").unwrap_or(variant.id));
    let values = SHOWN.map(|variant| points.values("link", variant.line, "queue")).into();
    let queue = Compared { name: "mean queue of the link".to_owned(), cc: "perc", values };
    let title = "mean queue of the link; from the fifth on, of PERC with one thing changed";
    Panel { wide: true, ..words_panel(title, &names, Axis::new("queue (KB)").logarithmic(), vec![queue]) }
}

/// Returns the values that a line would have at the text's factor over the first of the other lines.
fn stated(says: &Says, points: &Points) -> Option<Compared<'static>> {
    let Rule::Times(factor) = says.rule else { return None };
    let over = |class: &str| points.ratios("link", says.over[0].line, IDEAL.line, class);
    let mean = |class: &str| stats::mean(&over(class)).map(|mean| factor * mean);
    let values = CLASSES.map(|(class, ..)| mean(class).filter(|_| says.classes.contains(&class)).into_iter().collect());
    let name = format!("paper: {} at {factor} times {}", says.line.line, says.over[0].line);
    Some(Compared { name, cc: "line-rate", values: values.into() })
}

pub fn claims(setting: &Setting, points: &Points) -> Vec<Claim> {
    let mut claims: Vec<Claim> = setting.says.iter().flat_map(|says| judged(says, points)).collect();
    for variant in SHOWN {
        for (class, text, ..) in CLASSES {
            let sentence = format!("{}: {text} over that of ideal", variant.line);
            let ratios = points.ratios("link", variant.line, IDEAL.line, class);
            claims.push(Claim::mean(&format!("{class}-{}", variant.id), &sentence, Rule::Words, "", ratios));
        }
        let (sentence, values) =
            (format!("{}: mean queue", variant.line), points.values("link", variant.line, "queue"));
        claims.push(Claim::mean(&format!("queue-{}", variant.id), &sentence, Rule::Words, "KB", values));
        let sentence =
            format!("{}: its mean queue in the last fifth of arrivals, less that in the second", variant.line);
        let values = points.values("link", variant.line, "growth");
        claims.push(Claim::mean(&format!("growth-{}", variant.id), &sentence, Rule::Words, "KB", values));
    }
    claims
}

/// Returns the claims of a statement: one for each class of flows and each of the other lines.
fn judged(says: &Says, points: &Points) -> Vec<Claim> {
    let claim = |over: &Variant, (class, text, ..): (&str, &str, f64, f64)| {
        let id = format!("{class}-{}-{}", says.line.id, over.id);
        let sentence = format!("{text}, {} over {}: {}", says.line.line, over.line, says.words);
        let ratios = |line: &str| points.ratios("link", line, over.line, class);
        let mut claim = Claim::mean(&id, &sentence, says.rule, "", ratios(says.line.line));
        if says.line.id == DCTCP.id {
            claim = claim.changing("DCTCP begins with two packets, as ns-2 does", ratios(DCTCP_TWO.line));
        }
        match says.cause {
            Some(cause) => claim.because(cause),
            None => claim,
        }
    };
    let classes = || CLASSES.into_iter().filter(|(class, ..)| says.classes.contains(class));
    says.over.iter().flat_map(|over| classes().map(|class| claim(over, class))).collect()
}
