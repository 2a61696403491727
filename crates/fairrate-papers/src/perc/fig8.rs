//! Figure 8: the chain of three bottlenecks on packets, all flows starting at once.

use fairrate_report::panel::{Axis, Panel};

use super::chain::{FLOWS, OPTIMUM, chain, with_optimum, worst_overload_bps};

use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_marks};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::{Record, settle};
use crate::variant::Variant;

pub const FIGURE: Figure = Figure {
    id: "perc/fig8",
    title: "A chain of three bottlenecks: PERC settles link after link, RCP circles",
    kind: Kind::Simulation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/perc-chain.toml");
const FLOW_LIST: &str = include_str!("../../scenarios/perc-chain.csv");
/// End of the runs; rates that are not settled by then count as settled at this time.
const END_US: f64 = 5_000.0;
/// Relative distances from the optimum within which a rate counts as settled. Times in the text are read off a plot.
const WITHIN: [(&str, f64); 3] = [("5 %", 0.05), ("10 %", 0.1), ("20 %", 0.2)];
/// Excess of rates over a link's capacity from which it counts as overloaded: their resolution, 1 bit/s per flow.
const RESOLUTION_BPS: f64 = 4.0;

const PERC: Variant = Variant::of("perc");
const NO_WAIT: Variant =
    PERC.with("no-wait", "perc, raises do not wait 2 RTTs", &[("transport.perc.increase_wait", "0.0")]);
const FIRST_WAITS: Variant =
    PERC.with("first-waits", "perc, first rates wait too", &[("transport.perc.first_rate_waits", "true")]);
const CHARNY: Variant = Variant::of("charny");
const RCP: Variant = Variant::of("rcp");
const LOW_GAINS: Variant =
    RCP.with("rcp-low", "rcp, gains of 0.25", &[("transport.rcp.alpha", "0.25"), ("transport.rcp.beta", "0.25")]);
/// RCP with the path's delay at its hosts, and with it at the links between switches: 24 us in all, as before.
const DELAY_AT_HOSTS: Variant = RCP.with(
    "rcp-delay-hosts",
    "rcp, delay at hosts",
    &[("topology.host_delay", "5250ns"), ("topology.link_delay", "250ns")],
);
const DELAY_AT_LINKS: Variant = RCP.with(
    "rcp-delay-links",
    "rcp, delay at links",
    &[("topology.host_delay", "250ns"), ("topology.link_delay", "3583ns")],
);
const IDEAL: Variant = Variant::of("ideal");
const DRAWN: [&Variant; 6] = [&PERC, &RCP, &NO_WAIT, &FIRST_WAITS, &CHARNY, &LOW_GAINS];
/// End of the drawn time, in microseconds.
const SHOWN_US: f64 = 200.0;
const SHOWN_OF_RCP_US: f64 = 1_000.0;
/// Number of samples between two that are drawn of RCP.
const RCP_EVERY: usize = 5;

fn runs(scale: &Scale) -> Vec<Run> {
    let run = |variant: &Variant| {
        let sets: Vec<_> = [("duration", "5ms")].iter().chain(variant.sets).copied().collect();
        let is_seeded = variant.cc == "rcp";
        let is_drawn = DRAWN.iter().any(|drawn| drawn.line == variant.line);
        let read = move |record: &Record| {
            let point = read(record, is_seeded);
            if is_drawn { point } else { point.without_series() }
        };
        Run::of("chain", SCENARIO, variant.cc, &sets, read).called(variant.line).with_file("perc-chain.csv", FLOW_LIST)
    };
    // RCP's ports draw the phase of their intervals; the others have no random part.
    let seeded = |variant: &&Variant| match variant.cc {
        "rcp" => scale.seeds.iter().map(|&seed| run(variant).seeded(seed)).collect(),
        _ => vec![run(variant)],
    };
    DRAWN.iter().chain([&&IDEAL, &&DELAY_AT_HOSTS, &&DELAY_AT_LINKS]).flat_map(seeded).collect()
}

/// Reads the rates, which are sampled every microsecond. Where seeds differ, those that are drawn are kept of each.
fn read(record: &Record, is_seeded: bool) -> Point {
    let rates = [0, 1, 2, 3].map(|flow| record.rate_gbps(flow));
    let mut point = Point::default();
    for ((name, _), (rate, want)) in FLOWS.iter().zip(rates.iter().zip(OPTIMUM)) {
        for (within, tolerance) in WITHIN {
            let after_us = settle(rate, (0.0, END_US * 1e-6), want, tolerance) * 1e6;
            point.numbers.insert(format!("{name} {within}"), after_us.min(END_US));
        }
        let in_us = rate.iter().map(|(t, rate)| ((t * 1e6).round(), *rate));
        let shown = in_us.filter(|(t, _)| *t <= SHOWN_OF_RCP_US);
        point = if is_seeded {
            point.with_each_seed(name, shown.step_by(RCP_EVERY).collect())
        } else {
            point.with(name, shown.collect())
        };
    }
    let all = FLOWS.map(|(name, _)| point.numbers[&format!("{name} 5 %")]).into_iter().fold(0.0, f64::max);
    let chain = chain();
    let at = |i: usize| rates.each_ref().map(|rate| rate.get(i).map_or(0.0, |sample| sample.1 * 1e9));
    let over: Vec<f64> = (0..rates[0].len()).map(|i| worst_overload_bps(&chain, &at(i))).collect();
    point.numbers.extend([
        ("all".to_owned(), all),
        ("overload us".to_owned(), over.iter().filter(|over| RESOLUTION_BPS < **over).count() as f64),
        ("overload".to_owned(), over.into_iter().fold(0.0, f64::max) * 1e-9),
    ]);
    point
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |variant: &Variant| {
        // Times and rates in the text.
        let (shown_us, stated): (_, &[_]) = match variant.cc {
            "rcp" => (SHOWN_OF_RCP_US, &[(600.0, 5.0)]),
            "perc" => (SHOWN_US, &[(50.0, 5.0), (100.0, 25.0), (100.0, 35.0)]),
            _ => (SHOWN_US, &[]),
        };
        let seeds = points.each_seed("chain", variant.line, FLOWS[0].0).count();
        let line = |(name, look): (&str, &'static str)| {
            let shown = |series: &Vec<(f64, f64)>| series.iter().copied().filter(|(t, _)| *t <= shown_us).collect();
            let shown: Vec<Vec<_>> = points.each_seed("chain", variant.line, name).map(shown).collect();
            Line { name: name.to_owned(), ..Line::ranged(look, shown.iter()) }
        };
        let x = Axis::new("time (us)").showing(0.0, shown_us);
        let title = match (variant.cc, seeds) {
            ("rcp", 1) => format!("{}, one seed", variant.line),
            ("rcp", _) => format!("{}, one seed and the range of {seeds}", variant.line),
            _ => variant.line.to_owned(),
        };
        let panel = panel(title, x, Axis::new("rate (Gb/s)").showing(0.0, 60.0), FLOWS.map(line).into());
        with_marks(with_optimum(panel, (0.0, shown_us)), "paper: there by then", 2, stated)
    };
    DRAWN.map(draw).into()
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |variant: &Variant, what: &str| points.mean("chain", variant.line, what);
    let claim = |id: &str, variant: &Variant, text: &str, rule, unit, what: &str| {
        let sentence = format!("{}: {text}", variant.line);
        match variant.cc {
            "rcp" => Claim::mean(id, &sentence, rule, unit, points.values("chain", variant.line, what)),
            _ => Claim::exact(id, &sentence, rule, unit, of(variant, what)),
        }
    };
    let all = "all flows are at their rates, within 5 %, after";
    let perc_c = claim(
        "perc-c",
        &PERC,
        "\"at around 50 us\" C is at 5 Gb/s, within 5 % (25 % is ours)",
        Rule::About(50.0, 0.25),
        "us",
        "C 5 %",
    );
    let first = "First rates, which do not wait. If they wait 2 RTTs as raises do, C is there after 57 us: see below.";
    let mut claims = vec![
        perc_c.because(first),
        claim(
            "perc-all",
            &PERC,
            "all flows are at their rates \"within 100 us\" (within 5 %)",
            Rule::AtMost(100.0),
            "us",
            "all",
        ),
        claim("ideal-all", &IDEAL, all, Rule::AtMost(0.0), "us", "all"),
    ];
    for flow in ["C", "D"] {
        let text = format!("{flow} takes \"almost 600 us\" to 5 Gb/s, within 10 % (25 % is ours)");
        let id = format!("rcp-{}", flow.to_lowercase());
        let rcp = claim(&id, &RCP, &text, Rule::About(600.0, 0.25), "us", &format!("{flow} 10 %"));
        let after = |variant: &Variant| points.values("chain", variant.line, &format!("{flow} 10 %"));
        claims.push(
            rcp.changing("the delay of paths is at hosts", after(&DELAY_AT_HOSTS))
                .changing("the delay of paths is at the links between switches", after(&DELAY_AT_LINKS))
                .changing("gains are 0.25", after(&LOW_GAINS)),
        );
    }
    for flow in ["A", "B"] {
        let id = format!("rcp-{}", flow.to_lowercase());
        let near = format!("{flow} is \"within 20 %\" (after 1 ms at most, which is ours)");
        claims.push(claim(&format!("{id}-20"), &RCP, &near, Rule::AtMost(1_000.0), "us", &format!("{flow} 20 %")));
        let long = format!("{flow} oscillates \"for milliseconds\" (beyond 5 % for 1 ms at least, which is ours)");
        claims.push(claim(&format!("{id}-5"), &RCP, &long, Rule::AtLeast(1_000.0), "us", &format!("{flow} 5 %")));
    }
    let saved = of(&NO_WAIT, "overload us").zip(of(&PERC, "overload us")).map(|(without, with)| without - with);
    let waits = "perc waits 2 RTTs \"for other flows to first decrease\": overload is shorter by";
    claims.push(Claim::exact("overload", waits, Rule::AtLeast(0.0), "us", saved));
    for variant in [&PERC, &NO_WAIT, &FIRST_WAITS] {
        let (time, most) = ("time in which rates exceed a link", "the most by which they do");
        let id = variant.id;
        claims.push(claim(&format!("overload-us-{id}"), variant, time, Rule::Words, "us", "overload us"));
        claims.push(claim(&format!("overload-gbps-{id}"), variant, most, Rule::Words, "Gb/s", "overload"));
    }
    for variant in [&NO_WAIT, &FIRST_WAITS, &CHARNY, &LOW_GAINS] {
        claims.push(claim(&format!("all-{}", variant.id), variant, all, Rule::Words, "us", "all"));
    }
    claims.push(claim("c-first-waits", &FIRST_WAITS, "C is at 5 Gb/s, within 5 %, after", Rule::Words, "us", "C 5 %"));
    for flow in ["C", "D"] {
        let text = format!("{flow} is at 5 Gb/s, within 10 %, after");
        let id = format!("rcp-low-{}", flow.to_lowercase());
        claims.push(claim(&id, &LOW_GAINS, &text, Rule::Words, "us", &format!("{flow} 10 %")));
    }
    claims
}
