//! Figure 12: a flow over two bottlenecks (a, on the network of Figure 10), and sources with unequal links (b).

use fairrate_report::panel::{Axis, Panel};

use super::baselines::{
    AT_ONCE, BFC, DCQCN, DCQCN_AUTHORS, HPCC, HPCC_BY_LINE_RATE, OMNET, PACC, Says, by_seeds, claim, is_random, ratios,
};
use super::star::{ROCC, SAMPLE, goodputs, worst};
use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, with_level, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::mean;
use crate::points::{Point, Points};
use crate::record::Record;
use crate::variant::Variant;

pub const FIGURE: Figure = Figure {
    id: "rocc/fig12",
    title: "Rates of flows over two bottlenecks, and from unequal links",
    kind: Kind::Simulation,
    quick_s: 5,
    runs,
    panels,
    claims,
};

const TWO: &str = "two bottlenecks";
const UNEQUAL: &str = "unequal links";
const TWO_SCENARIO: &str = include_str!("../../scenarios/rocc-multi-bottleneck.toml");
const FLOWS: &str = include_str!("../../scenarios/rocc-multi-bottleneck.csv");
const UNEQUAL_SCENARIO: &str = include_str!("../../scenarios/rocc-asymmetric.toml");
const JUDGED: [Variant; 6] = [ROCC, DCQCN, HPCC, HPCC_BY_LINE_RATE, PACC, BFC];
/// BFC with all flows of a port in one queue, so that paused flows block others.
const BFC_ONE: Variant = BFC.with("bfc-one-queue", "bfc, one queue a port", &[("transport.bfc.queues", "1")]);
/// The same over links of 100 ns, which fill less while a pause is on its way.
const BFC_SHORT: Variant = BFC.with(
    "bfc-short",
    "bfc, one queue a port, 100 ns",
    &[("transport.bfc.queues", "1"), ("topology.host_delay", "100ns"), ("topology.bottleneck_delay", "100ns")],
);
/// DCQCN as in the code of RoCC's authors.
const DCQCN_OMNET: Variant = DCQCN.with("dcqcn-omnet", "dcqcn, rocc-omnet", &[OMNET, AT_ONCE]);
const LOOKS: [&str; 10] =
    ["powertcp", "dcqcn", "hpcc", "dctcp", "timely", "theta-powertcp", "swift", "line-rate", "rocc", "bfc"];
/// The paper has no durations; the second half is measured.
const DURATION: &str = "200ms";
const STEADY_S: (f64, f64) = (0.1, 0.2);
/// Fair rates of 12a, of D0 and D5 and of the others, and of 12b.
const FAIR_D0: f64 = 5.0;
const FAIR_D1: f64 = 8.75;
const FAIR_GBPS: f64 = 100.0 / 7.0;

fn shown() -> impl Iterator<Item = Variant> {
    JUDGED.into_iter().chain([BFC_ONE, BFC_SHORT, DCQCN_OMNET, DCQCN_AUTHORS])
}

fn runs(scale: &Scale) -> Vec<Run> {
    let variants: Vec<Variant> = shown().collect();
    // The other network's links have their delays from the figure.
    let of_unequal_links: Vec<Variant> = shown().filter(|variant| variant.id != BFC_SHORT.id).collect();
    let run = |name, toml, variant: &Variant, read: fn(&Record) -> Point| {
        let sets = [&[("duration", DURATION), ("probe.1.every", SAMPLE)], variant.sets].concat();
        Run::of(name, toml, variant.cc, &sets, read).called(variant.line)
    };
    let two = |variant: &Variant| run(TWO, TWO_SCENARIO, variant, of_two).with_file("rocc-multi-bottleneck.csv", FLOWS);
    let unequal = |variant: &Variant| run(UNEQUAL, UNEQUAL_SCENARIO, variant, of_unequal);
    by_seeds(scale, &variants, two).into_iter().chain(by_seeds(scale, &of_unequal_links, unequal)).collect()
}

/// Reads the runs with two bottlenecks. D0 is flow 0 of the example, and so on.
fn of_two(record: &Record) -> Point {
    let rates = goodputs(record, STEADY_S);
    rated(&rates, [("d0", rates[0]), ("d5", rates[5]), ("d1-4", mean(&rates[1..5]))])
}

fn of_unequal(record: &Record) -> Point {
    let rates = goodputs(record, STEADY_S);
    let worst = worst(&rates, FAIR_GBPS);
    rated(&rates, [("slow", mean(&rates[..5])), ("fast", mean(&rates[5..])), ("worst", worst)])
}

/// Returns a point with `numbers` and the rate of each flow.
fn rated<const N: usize>(rates: &[f64], numbers: [(&str, f64); N]) -> Point {
    let mut point = Point::of(numbers);
    point.numbers.extend(rates.iter().enumerate().map(|(flow, rate)| (format!("flow {flow}"), *rate)));
    point
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |run: &str, title: &str, words: &[&str]| {
        let line = |(variant, look): (Variant, &'static str)| Compared {
            name: variant.line.to_owned(),
            cc: look,
            values: (0..words.len()).map(|flow| points.values(run, variant.line, &format!("flow {flow}"))).collect(),
        };
        let panel = words_panel(
            title,
            words,
            Axis::new("rate (Gb/s)").showing(0.0, 10.0),
            shown().zip(LOOKS).map(line).collect(),
        );
        Panel { wide: true, ..panel }
    };
    let two = draw(
        TWO,
        "(a) D0 crosses two bottlenecks, D1-D4 the first, D5 the second",
        &["D0", "D1", "D2", "D3", "D4", "D5"],
    );
    let two = with_level(two, "fair: 5 Gb/s", FAIR_D0, (-0.5, 5.5));
    let unequal = draw(
        UNEQUAL,
        "(b) D0-D4 come from links of 40 Gb/s, D5 and D6 from 100",
        &["D0", "D1", "D2", "D3", "D4", "D5", "D6"],
    );
    let unequal = with_level(unequal, "fair: 14.29 Gb/s", FAIR_GBPS, (-0.5, 6.5));
    let unequal = with_level(unequal, "paper: hpcc at 9.40", 9.4, (-0.5, 4.5));
    vec![with_level(two, "fair: 8.75 Gb/s", FAIR_D1, (-0.5, 5.5)), with_level(unequal, "and 24.5", 24.5, (4.5, 6.5))]
}

fn claims(points: &Points) -> Vec<Claim> {
    [of_a(points), of_b(points)].concat()
}

/// Returns the claims on 12a: RoCC within 2 %, which is ours. For the others the text has reductions from the fair
/// rates.
fn of_a(points: &Points) -> Vec<Claim> {
    let judged = |variant: &Variant| {
        let of = |what: &str, text: &str, rule| {
            let says: Says<'_> = (&format!("a-{what}"), format!("12a: rate of {text}"), rule, "Gb/s");
            claim(points, TWO, variant, what, says)
        };
        let less = |what: &str, percent: f64, text: &str| {
            let values = below_fair(points, variant, what);
            let (id, sentence) = (format!("a-{what}-{}", variant.id), format!("{}: 12a: rate of {text}", variant.line));
            let rule = Rule::Less(-percent);
            if is_random(variant) {
                Claim::mean(&id, &sentence, rule, "%", values)
            } else {
                Claim::exact(&id, &sentence, rule, "%", values.first().copied())
            }
        };
        match variant.cc {
            "rocc" => [
                of("d0", "D0", Rule::About(FAIR_D0, 0.02)),
                of("d5", "D5", Rule::About(FAIR_D0, 0.02)),
                of("d1-4", "D1-D4", Rule::About(FAIR_D1, 0.02)),
            ],
            "dcqcn" => [
                less("d0", 30.0, "D0, \"30 % less\" than 5 Gb/s"),
                of("d5", "D5 (more than it should)", Rule::AtLeast(FAIR_D0)),
                of("d1-4", "D1-D4", Rule::Words),
            ],
            "hpcc" => [
                less("d0", 50.0, "D0, \"around 50 % less\" than 5 Gb/s"),
                of("d5", "D5", Rule::Words),
                of("d1-4", "D1-D4", Rule::Words),
            ],
            "pacc" => [
                less("d0", 30.0, "D0, \"very similar to DCQCN\": 30 % less than 5 Gb/s"),
                of("d5", "D5 (\"very similar to DCQCN\")", Rule::AtLeast(FAIR_D0)),
                of("d1-4", "D1-D4", Rule::Words),
            ],
            _ => [
                of("d0", "D0 (almost 5)", Rule::About(FAIR_D0, 0.1)),
                of("d5", "D5 (almost 5)", Rule::About(FAIR_D0, 0.1)),
                less("d1-4", 45.0, "D1-D4, \"about 45 % less\" than 8.75 Gb/s")
                    .changing("there is one queue a port", below_fair(points, &BFC_ONE, "d1-4"))
                    .changing("there is one queue a port, and links of 100 ns", below_fair(points, &BFC_SHORT, "d1-4")),
            ],
        }
    };
    JUDGED.iter().chain([&DCQCN_OMNET, &DCQCN_AUTHORS]).flat_map(judged).collect()
}

/// Returns the change of a rate of 12a from the fair one, in per cent, seed by seed.
fn below_fair(points: &Points, variant: &Variant, what: &str) -> Vec<f64> {
    let fair = if what == "d1-4" { FAIR_D1 } else { FAIR_D0 };
    points.values(TWO, variant.line, what).iter().map(|rate| 100.0 * (rate / fair - 1.0)).collect()
}

/// The change of HPCC that may be a cause.
const BY_NIC: &str = "the additive increase follows the NIC's rate";

/// Returns the claims on 12b. The limits of 2, 15 and 15 % are ours.
fn of_b(points: &Points) -> Vec<Claim> {
    let judged = |variant: &Variant| {
        let of = |what: &str, text: &str, rule, unit| {
            let says: Says<'_> = (&format!("b-{what}"), format!("12b: {text}"), rule, unit);
            claim(points, UNEQUAL, variant, what, says)
        };
        let (slow, fast) = match variant.cc {
            "rocc" => (Rule::About(FAIR_GBPS, 0.02), Rule::About(FAIR_GBPS, 0.02)),
            "hpcc" => (Rule::About(9.4, 0.15), Rule::About(24.5, 0.15)),
            _ => (Rule::Words, Rule::Words),
        };
        let by_nic =
            |what| if variant.cc == "hpcc" { points.values(UNEQUAL, HPCC_BY_LINE_RATE.line, what) } else { vec![] };
        let mut claims = vec![
            of("slow", "mean rate of D0-D4", slow, "Gb/s").changing(BY_NIC, by_nic("slow")),
            of("fast", "mean rate of D5 and D6", fast, "Gb/s").changing(BY_NIC, by_nic("fast")),
        ];
        if !matches!(variant.cc, "rocc" | "hpcc") {
            let text = "largest distance from 14.29 Gb/s (\"close to the fair share value\")";
            claims.push(of("worst", text, Rule::AtMost(0.15), ""));
        }
        claims
    };
    // Each pair includes DCQCN, which is random.
    let order = |(variant, than): (&Variant, &Variant)| {
        let (id, values) = (format!("b-order-{}", variant.id), ratios(points, UNEQUAL, variant, than, "worst"));
        let sentence = format!("12b: {} is fairer than {} (ratio of largest distances)", variant.line, than.line);
        Claim::mean(&id, &sentence, Rule::AtMost(1.0), "", values)
    };
    let orders = [(&DCQCN, &HPCC), (&PACC, &DCQCN), (&BFC, &DCQCN)];
    JUDGED.iter().flat_map(judged).chain(orders.map(order)).collect()
}
