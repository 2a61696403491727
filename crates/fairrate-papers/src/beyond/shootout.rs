//! Ten algorithms on one fabric: PowerTCP's fat-tree of 256 hosts, with web search or Hadoop between racks and requests
//! beside.
//!
//! ToR uplinks carry a quarter of the traffic that hosts can send there, so that queues form inside the network as well
//! as at receivers. All algorithms have 4 MiB of buffer per switch, packets of 1 KB, and the same flows.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;

use super::contenders::{ALL, Contender, Fabric};
use super::together;
use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve, words};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::occupancy::Occupancy;
use crate::points::{Point, Points};
use crate::record::Record;

pub const FIGURE: Figure = Figure {
    id: "beyond/shootout",
    title: "Ten algorithms on one fabric: who wins where",
    kind: Kind::Simulation,
    quick_s: 140,
    runs,
    panels,
    claims,
};

/// The scenario: web search as in PowerTCP's figures 6 and 7, and requests of 2 MB to ten hosts of another rack, four a
/// second and host, which add 1 % to the load of the uplinks.
pub(super) const SCENARIO: &str = concat!(
    include_str!("../../scenarios/websearch.toml"),
    "\n[[traffic]]\nkind = \"incast-queries\"\nrequest_size = \"2MB\"\nresponders = 10\nfrom = \"one-other-rack\"\n\
     rate_per_host_per_s = 4.0\nstop = \"1ms\"\n"
);
/// Loads of the uplinks, in per cent, payload alone. With headers, acknowledgments and requests 95 % are at least 6 %
/// more than the links carry, so that queues grow for as long as flows arrive.
const LOADS: [u32; 5] = [20, 40, 60, 80, 95];
/// The load at which slowdowns are drawn by size.
const SHOWN_LOAD: u32 = 60;
/// Classes of flows of the first traffic block: name, and the size range in bytes, lower end exclusive.
pub(super) const CLASSES: [(&str, f64, f64); 4] =
    [(SMALL, 0.0, 10e3), ("10-100 KB", 10e3, 100e3), ("100 KB-1 MB", 100e3, 1e6), (LARGE, 1e6, f64::INFINITY)];
pub(super) const SMALL: &str = "up to 10 KB";
pub(super) const LARGE: &str = "above 1 MB";
const REQUESTS: &str = "requests";
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// A distribution of flow sizes.
struct Sizes {
    name: &'static str,
    key: &'static str,
    /// Milliseconds of arrivals, times the load in per cent: about 21,000 flows of web search and 67,000 of Hadoop.
    arrivals: u32,
}

const SIZES: [Sizes; 2] = [
    Sizes { name: "web search", key: "websearch", arrivals: 18_000 },
    Sizes { name: "Hadoop", key: "fb-hadoop", arrivals: 4_000 },
];

fn at(sizes: &Sizes, load: u32) -> String {
    format!("{} {load} %", sizes.name)
}

fn runs(scale: &Scale) -> Vec<Run> {
    let of = |sizes: &Sizes, load: u32| {
        ALL.iter()
            .flat_map(|contender| scale.seeds.iter().map(|&seed| run(sizes, load, contender, seed, scale.quick)))
            .collect::<Vec<_>>()
    };
    let loads = SIZES.iter().flat_map(|sizes| LOADS.into_iter().flat_map(move |load| of(sizes, load)));
    together::runs(&ALL, scale).into_iter().chain(loads).collect()
}

fn run(sizes: &Sizes, load: u32, contender: &Contender, seed: u64, quick: bool) -> Run {
    let (share, us) = (f64::from(load) / 100.0, 1_000 * sizes.arrivals / load / if quick { 16 } else { 1 });
    let (share, stop) = (share.to_string(), format!("{us}us"));
    let mut sets = vec![
        ("traffic.0.sizes", sizes.key),
        ("traffic.0.load", share.as_str()),
        ("traffic.0.stop", &stop),
        ("traffic.1.stop", &stop),
        ("probe.0.queues", "[\"tor*->*\"]"),
        ("probe.0.every", "100us"),
    ];
    sets.extend(contender.sets());
    Run::of(&at(sizes, load), SCENARIO, contender.cc, &sets, read).seeded(seed)
}

/// Reads slowdowns by class, the buffer held by ToRs, the time ports are paused and the share dropped.
fn read(record: &Record) -> Point {
    let held = stats::sorted(Occupancy::of(record).all());
    let mut point = Point::of([
        ("held mean", stats::mean(&held).unwrap_or(f64::NAN)),
        ("held p99", stats::percentile(&held, 0.99).unwrap_or(f64::NAN)),
        ("paused", 100.0 * record.paused_share()),
        ("dropped", 100.0 * record.totals.dropped_bytes as f64 / record.totals.sent_bytes as f64),
        ("unfinished", record.totals.flows_unfinished as f64),
    ]);
    for (class, above, up_to) in CLASSES {
        point.numbers.extend(slowdowns(record, class, |group, bytes| group == 0 && above < bytes && bytes <= up_to));
    }
    point.numbers.extend(slowdowns(record, REQUESTS, |group, _| group == 1));
    point
}

/// Returns quantiles of the slowdowns of the finished flows that `which` selects by traffic block and size.
pub(super) fn slowdowns(record: &Record, class: &str, which: impl Fn(u32, f64) -> bool) -> Vec<(String, f64)> {
    let of_flow = |flow: &fairrate_sim::FlowOutcome| {
        let spec = &record.config.flows[flow.flow.index()];
        let slowdown = flow.fct?.as_ps() as f64 / flow.ideal_fct.as_ps() as f64;
        which(spec.group, spec.bytes.as_f64()).then_some(slowdown)
    };
    let sorted = stats::sorted(record.flows.iter().filter_map(of_flow));
    QUANTILES.iter().filter_map(|&(name, p)| Some((key(class, name), stats::percentile(&sorted, p)?))).collect()
}

/// Returns the name of a quantile of a class.
pub(super) fn key(class: &str, quantile: &str) -> String {
    format!("{class} {quantile}")
}

/// A number that is drawn over loads.
struct Measure {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    key: fn() -> String,
    /// The fabric the measure is for; `None` if it is for both.
    of: Option<Fabric>,
}

impl Measure {
    /// Returns `true` if the measure is for the contender's fabric: a fabric that drops has no pauses, nor the other
    /// way round.
    fn is_of(&self, contender: &Contender) -> bool {
        self.of.is_none_or(|fabric| fabric == contender.fabric)
    }
}

const MEASURES: [Measure; 7] = [
    Measure { id: "small", title: "flows up to 10 KB: p99 of slowdown", unit: "", key: || key(SMALL, "p99"), of: None },
    Measure { id: "large", title: "flows above 1 MB: p99 of slowdown", unit: "", key: || key(LARGE, "p99"), of: None },
    Measure {
        id: "requests",
        title: "answers to requests: p99 of slowdown",
        unit: "",
        key: || key(REQUESTS, "p99"),
        of: None,
    },
    Measure { id: "held-mean", title: "held by a ToR: mean", unit: "KB", key: || "held mean".to_owned(), of: None },
    Measure { id: "held-p99", title: "held by a ToR: p99", unit: "KB", key: || "held p99".to_owned(), of: None },
    Measure {
        id: "paused",
        title: "time that ports are paused",
        unit: "%",
        key: || "paused".to_owned(),
        of: Some(Fabric::Pauses),
    },
    Measure { id: "dropped", title: "bytes dropped", unit: "%", key: || "dropped".to_owned(), of: Some(Fabric::Drops) },
];

fn panels(points: &Points) -> Vec<Panel> {
    let over_loads = MEASURES.iter().flat_map(|measure| SIZES.iter().map(move |sizes| (measure, sizes)));
    let by_size = QUANTILES.iter().flat_map(|quantile| SIZES.iter().map(move |sizes| (quantile.0, sizes)));
    let mut panels: Vec<Panel> = over_loads.map(|(measure, sizes)| draw(points, sizes, measure)).collect();
    panels.extend(by_size.map(|(quantile, sizes)| draw_sizes(points, sizes, quantile)));
    panels.extend(draw_together(points));
    panels
}

fn draw(points: &Points, sizes: &Sizes, measure: &Measure) -> Panel {
    let values = |contender: &Contender| {
        LOADS.map(|load| (f64::from(load), points.values(&at(sizes, load), contender.cc, &(measure.key)())))
    };
    // A contender outside the measure has an empty line, so that the others look the same in all panels.
    let curve = |contender: &Contender| Curve {
        name: contender.cc.to_owned(),
        cc: contender.cc,
        values: if measure.is_of(contender) { values(contender).into() } else { Vec::new() },
    };
    let y = match (measure.of, measure.unit) {
        (Some(_), unit) => Axis::new(unit).showing(0.0, 0.01),
        (None, "") => slowdown(),
        (None, unit) => Axis::new(unit).logarithmic(),
    };
    let x = Axis { link: "load", ..Axis::new("load of the ToR uplinks (%)") };
    let title = format!("{}, {}", sizes.name, measure.title);
    curves::panel(&title, x, y, ALL.iter().map(curve).collect())
}

/// Returns the curve of an algorithm over the sizes of flows: a quantile of each class in the runs called `at`.
pub(super) fn curve_by_size(points: &Points, at: &str, cc: &'static str, quantile: &str) -> Curve<'static> {
    let value =
        |(x, (class, ..)): (u32, (&str, f64, f64))| (f64::from(x), points.values(at, cc, &key(class, quantile)));
    Curve { name: cc.to_owned(), cc, values: (0..).zip(CLASSES).map(value).collect() }
}

fn draw_sizes(points: &Points, sizes: &Sizes, quantile: &str) -> Panel {
    let labels = CLASSES.map(|(class, ..)| class);
    let curve = |contender: &Contender| curve_by_size(points, &at(sizes, SHOWN_LOAD), contender.cc, quantile);
    let title = format!("{}: {quantile} by size", at(sizes, SHOWN_LOAD));
    curves::panel(&title, words("flow size", &labels), slowdown(), ALL.iter().map(curve).collect())
}

/// Returns an axis of slowdowns, none of which is below 1.
fn slowdown() -> Axis {
    Axis::new("slowdown").logarithmic().showing(0.9, 2.0)
}

/// Draws the fairness of up to four flows on a link, and the time they take to share it.
fn draw_together(points: &Points) -> [Panel; 2] {
    let labels = together::COUNTS.map(|count| format!("{count} flows"));
    let labels = labels.each_ref().map(String::as_str);
    let of = |title: &str, y: Axis, key: fn(usize) -> String| {
        let curve = |contender: &Contender| Curve {
            name: contender.cc.to_owned(),
            cc: contender.cc,
            values: (0..)
                .map(f64::from)
                .zip(together::COUNTS)
                .map(|(x, count)| (x, points.values(together::NAME, contender.cc, &key(count))))
                .collect(),
        };
        curves::panel(title, words("on a link", &labels), y, ALL.iter().map(curve).collect())
    };
    let most = together::INTERVAL_MS;
    [
        of("long flows on a link", Axis::new("Jain's index").showing(0.0, 1.0), together::jain_of),
        of(
            "one more comes: time until all have their share",
            Axis::new(format!("ms; {most}: not before the next")).showing(0.0, most),
            together::time_of,
        ),
    ]
}

/// Returns our own questions with the measured numbers: no paper makes a statement about them.
fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (sizes, measure) in SIZES.iter().flat_map(|sizes| MEASURES.iter().map(move |measure| (sizes, measure))) {
        let taking_part = ALL.iter().filter(|contender| measure.is_of(contender));
        claims.extend(taking_part.map(|contender| {
            let id = format!("{}-{}-{}", sizes.key, measure.id, contender.cc);
            let sentence = format!("ours: {}, {}: {}", at(sizes, SHOWN_LOAD), measure.title, contender.cc);
            let values = points.values(&at(sizes, SHOWN_LOAD), contender.cc, &(measure.key)());
            Claim::mean(&id, &sentence, Rule::Words, measure.unit, values)
        }));
    }
    for contender in &ALL {
        let all = together::COUNTS[together::COUNTS.len() - 1];
        let of = |key: String| points.values(together::NAME, contender.cc, &key);
        let claim = |id: &str, title: &str, unit, values| {
            let (id, sentence) = (format!("{id}-{}", contender.cc), format!("ours: {title}: {}", contender.cc));
            Claim::mean(&id, &sentence, Rule::Words, unit, values)
        };
        claims.push(claim("jain", "Jain's index of four flows on a link", "", of(together::jain_of(all))));
        let title = "the fourth comes: time until all have their share (10: never)";
        claims.push(claim("share", title, "ms", of(together::time_of(all))));
    }
    claims
}
