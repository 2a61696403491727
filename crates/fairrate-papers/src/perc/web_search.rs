//! Figures 1, 4 and 5: web search at 60 % on one link, at three speeds and round-trip times.

use fairrate_report::figure::{Axis, Figure as Panel};
use fairrate_report::stats;
use fairrate_units::Time;

use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, with_level, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::Record;

pub const FIG1: Figure = Figure {
    id: "perc/fig1",
    title: "Completion times on a link of 100 Gb/s and 120 us",
    kind: Kind::Simulation,
    quick_s: 20,
    runs: |scale| runs(&FAST_AND_LONG, scale),
    panels: |points| panels(&FAST_AND_LONG, points),
    claims: |points| claims(&FAST_AND_LONG, points),
};

pub const FIG4: Figure = Figure {
    id: "perc/fig4",
    title: "Completion times on a link of 10 Gb/s and 12 us",
    kind: Kind::Simulation,
    quick_s: 20,
    runs: |scale| runs(&SLOW, scale),
    panels: |points| panels(&SLOW, points),
    claims: |points| claims(&SLOW, points),
};

pub const FIG5: Figure = Figure {
    id: "perc/fig5",
    title: "Completion times on a link of 100 Gb/s and 12 us",
    kind: Kind::Simulation,
    quick_s: 20,
    runs: |scale| runs(&FAST, scale),
    panels: |points| panels(&FAST, points),
    claims: |points| claims(&FAST, points),
};

const SCENARIO: &str = include_str!("../../../../examples/perc-link.toml");

/// Flows by size, with the statistic that the paper has of them, and where their sizes begin and end in bytes.
const CLASSES: [(&str, &str, f64, f64); 3] = [
    ("small", "p99 FCT of small flows", 0.0, 10e3),
    ("medium", "p99 FCT of medium flows", 10e3, 1e6),
    ("large", "mean FCT of large flows", 1e6, f64::MAX),
];

/// A line: an algorithm with something set.
struct Variant {
    /// Its part of claims' names.
    id: &'static str,
    line: &'static str,
    cc: &'static str,
    sets: &'static [(&'static str, &'static str)],
}

/// An algorithm as the paper has it.
const fn as_is(cc: &'static str) -> Variant {
    Variant { id: cc, line: cc, cc, sets: &[] }
}

/// PERC with one thing changed.
const fn perc(id: &'static str, line: &'static str, set: &'static [(&'static str, &'static str)]) -> Variant {
    Variant { id, line, cc: "perc", sets: set }
}

const PERC: Variant = as_is("perc");
const CHARNY: Variant = as_is("charny");
const RCP: Variant = as_is("rcp");
/// The paper's DCTCP is ns-2's TCP, which begins with slow start.
const DCTCP: Variant = Variant {
    sets: &[("transport.dctcp.initial_window", "10mtu"), ("transport.dctcp.slow_start", "true")],
    ..as_is("dctcp")
};
const IDEAL: Variant = as_is("ideal");
const CHARGED: Variant =
    perc("perc-charged", "perc, control packets charged", &[("transport.perc.charge_control", "true")]);
const SMALL_CONTROL: Variant =
    perc("perc-control-1B", "perc, control packets of 1 B", &[("transport.perc.control_packet", "1B")]);
const HEADROOM: Variant = perc("perc-headroom", "perc, 5 % headroom", &[("transport.perc.headroom", "0.05")]);
const FIRST_WAITS: Variant =
    perc("perc-first-waits", "perc, first rates wait", &[("transport.perc.first_rate_waits", "true")]);
const PUBLISHED: [&Variant; 4] = [&PERC, &CHARNY, &RCP, &DCTCP];
const CHANGED: [&Variant; 5] = [&PERC, &CHARGED, &SMALL_CONTROL, &HEADROOM, &FIRST_WAITS];
const ALL: [&Variant; 9] = [&PERC, &CHARNY, &RCP, &DCTCP, &CHARGED, &SMALL_CONTROL, &HEADROOM, &FIRST_WAITS, &IDEAL];

/// A link, and what the text says of completion times on it.
struct Setting {
    rate: &'static str,
    /// With a packet and its acknowledgment on three links and 1 us a host link, the base RTT below.
    delay: &'static str,
    rtt: &'static str,
    /// Until when flows arrive: about 1,100 of them, of which 150 are small; and with `quick`. The others end later.
    until: [&'static str; 2],
    says: &'static [Says],
}

/// What the text says of an algorithm beside others.
struct Says {
    classes: &'static [&'static str],
    line: &'static Variant,
    over: &'static [&'static Variant],
    words: &'static str,
    rule: Rule,
    /// Why it is not so, where that is measured.
    cause: Option<&'static str>,
}

const FAST_AND_LONG: Setting = Setting {
    rate: "100Gbps",
    delay: "57865ns",
    rtt: "120us",
    until: ["1500ms", "250ms"],
    says: &[
        Says {
            classes: &["small", "medium"],
            line: &RCP,
            over: &[&PERC, &CHARGED],
            words: "\"almost four times\"",
            rule: Rule::Times(4.0),
            cause: None,
        },
        Says {
            classes: &["medium", "large"],
            line: &DCTCP,
            over: &[&PERC, &CHARGED],
            words: "\"completely breaks down\" (4 is ours)",
            rule: Rule::AtLeast(4.0),
            cause: None,
        },
    ],
};

const SLOW: Setting = Setting {
    rate: "10Gbps",
    delay: "2670ns",
    rtt: "12us",
    until: ["2500ms", "1s"],
    says: &[
        Says {
            classes: &["small"],
            line: &RCP,
            over: &[&PERC],
            words: COMPARABLE,
            rule: Rule::About(1.0, 0.25),
            cause: Some(
                "Control packets come on top of rates that fill the link, so a queue stands before small flows. With control \
                 packets of 1 B, charged ones or headroom it is gone; with first rates that wait it is not.",
            ),
        },
        Says {
            classes: &["medium", "large"],
            line: &RCP,
            over: &[&PERC],
            words: COMPARABLE,
            rule: Rule::About(1.0, 0.25),
            cause: None,
        },
        Says {
            classes: &["small", "medium", "large"],
            line: &RCP,
            over: &[&CHARGED],
            words: COMPARABLE,
            rule: Rule::About(1.0, 0.25),
            cause: None,
        },
        Says {
            classes: &["small", "medium", "large"],
            line: &DCTCP,
            over: &[&PERC, &RCP, &CHARGED],
            words: "\"performs better\"",
            rule: Rule::AtMost(1.0),
            cause: None,
        },
    ],
};
const COMPARABLE: &str = "\"comparable\" (25 % is ours)";

const FAST: Setting = Setting {
    rate: "100Gbps",
    delay: "3865ns",
    rtt: "12us",
    until: ["1500ms", "250ms"],
    says: &[VERY_LOW, Says { line: &DCTCP, ..VERY_LOW }],
};
const VERY_LOW: Says = Says {
    classes: &["medium"],
    line: &RCP,
    over: &[&PERC, &CHARGED],
    words: "PERC \"outperforms\" it (by a quarter, which is ours)",
    rule: Rule::AtLeast(1.25),
    cause: None,
};

fn runs(setting: &Setting, scale: &Scale) -> Vec<Run> {
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
    scale.seeds.iter().flat_map(|&seed| ALL.map(|variant| run(seed, variant))).collect()
}

/// What is read: 99th percentiles of small and medium flows, the mean of large ones, and the mean queue.
fn read(record: &Record) -> Point {
    let [small, medium, large] = CLASSES.map(|(_, _, above, up_to)| record.fcts(above, up_to));
    let p99 = |fcts: &[f64]| stats::percentile(fcts, 0.99).unwrap_or(f64::NAN) * 1e6;
    let queue = record.port("sw0", "sw1").within(Time::ZERO, Time::MAX).mean_queue_kb();
    Point::of([
        ("small", p99(&small)),
        ("medium", p99(&medium)),
        ("large", stats::mean(&large).unwrap_or(f64::NAN) * 1e6),
        ("queue", queue.unwrap_or(f64::NAN)),
    ])
}

fn panels(setting: &Setting, points: &Points) -> Vec<Panel> {
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
        let y = Axis::new("over that of ideal").logarithmic();
        let words = ["small (p99)", "medium (p99)", "large (mean)"];
        with_level(words_panel(title, &words, y, lines), "ideal", 1.0, (-0.5, 2.5))
    };
    let queue = |variant: &Variant| Compared {
        name: variant.line.to_owned(),
        cc: variant.cc,
        values: vec![points.values("link", variant.line, "queue")],
    };
    let lines = ALL.map(queue).into_iter().take(ALL.len() - 1).collect();
    let title = format!("FCT at {} and {}", setting.rate.replace("Gbps", " Gb/s"), setting.rtt.replace("us", " us"));
    vec![
        over_ideal(&title, &PUBLISHED),
        over_ideal("the same of PERC with one thing changed", &CHANGED),
        words_panel("queue of the link", &["mean"], Axis::new("queue (KB)").logarithmic(), lines),
    ]
}

/// What a line would be at, if it were as many times the first of the others as the text says.
fn stated(says: &Says, points: &Points) -> Option<Compared<'static>> {
    let Rule::Times(factor) = says.rule else { return None };
    let over = |class: &str| points.ratios("link", says.over[0].line, IDEAL.line, class);
    let mean = |class: &str| stats::mean(&over(class)).map(|mean| factor * mean);
    let values = CLASSES.map(|(class, ..)| mean(class).filter(|_| says.classes.contains(&class)).into_iter().collect());
    let name = format!("paper: {} at {factor} times {}", says.line.line, says.over[0].line);
    Some(Compared { name, cc: "line-rate", values: values.into() })
}

fn claims(setting: &Setting, points: &Points) -> Vec<Claim> {
    let mut claims: Vec<Claim> = setting.says.iter().flat_map(|says| judged(says, points)).collect();
    for variant in ALL.iter().filter(|variant| variant.id != IDEAL.id) {
        for (class, text, ..) in CLASSES {
            let sentence = format!("{}: {text} over that of ideal", variant.line);
            let ratios = points.ratios("link", variant.line, IDEAL.line, class);
            claims.push(Claim::mean(&format!("{class}-{}", variant.id), &sentence, Rule::Words, "", ratios));
        }
        let (sentence, values) =
            (format!("{}: mean queue", variant.line), points.values("link", variant.line, "queue"));
        claims.push(Claim::mean(&format!("queue-{}", variant.id), &sentence, Rule::Words, "KB", values));
    }
    claims
}

/// The claims of a sentence: one for each class of flows and each of the others.
fn judged(says: &Says, points: &Points) -> Vec<Claim> {
    let claim = |over: &Variant, (class, text, ..): (&str, &str, f64, f64)| {
        let id = format!("{class}-{}-{}", says.line.id, over.id);
        let sentence = format!("{text}, {} over {}: {}", says.line.line, over.line, says.words);
        let claim = Claim::mean(&id, &sentence, says.rule, "", points.ratios("link", says.line.line, over.line, class));
        match says.cause {
            Some(cause) => claim.because(cause),
            None => claim,
        }
    };
    let classes = || CLASSES.into_iter().filter(|(class, ..)| says.classes.contains(class));
    says.over.iter().flat_map(|over| classes().map(|class| claim(over, class))).collect()
}
