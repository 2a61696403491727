//! Figure 4: every 10 ms one more flow to one receiver, up to five, then one less.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;

use super::{ALL, DCTCP, FLOWTUNE, HOST_BPS, IW10, MSS, PFABRIC, SFQ_CODEL, Variant, XCP, XCP_NS2};
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::{Record, ms_from, seconds};

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig4",
    title: "How fast rates become fair as five flows come and go",
    kind: Kind::Simulation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/flowtune-fairness.toml");
const SHOWN: [&Variant; 6] = [&FLOWTUNE, &DCTCP, &PFABRIC, &SFQ_CODEL, &XCP, &XCP_NS2];
/// Algorithms whose looks the lines of flows have.
const LOOKS: [&str; 5] = ["powertcp", "dcqcn", "hpcc", "dctcp", "timely"];
const FLOWS: usize = 5;
/// Number of changes, one every 10 ms, after which there are active flows.
const CHANGES: usize = 9;
const PERIOD_S: f64 = 0.01;
/// Samples in a bin of the paper, which is 100 us.
const BIN: usize = 10;
/// Samples in the bins of 20 us in which "within 20 us" is held, and the payload of a packet, in bits: at the smallest
/// share such a bin has three packets.
const FINE: usize = 2;
const PACKET_BITS: f64 = MSS * 8.0;
/// Largest relative distance of a fair flow from its share in a bin: some ten packets at the smallest share, of which
/// one or two fall into the next bin.
const FAIR: f64 = 0.2;

fn runs(_: &Scale) -> Vec<Run> {
    // pFabric's priorities depend on the bytes left: for endless flows all would be alike.
    let sets =
        |variant: &Variant| -> &[_] { if variant.is_of(&[&PFABRIC]) { &[("traffic.0.bytes", "30MB")] } else { &[] } };
    ALL.map(|variant| variant.run("shares", SCENARIO, sets(variant), read)).into()
}

/// Returns a flow's rate at its receiver in overlapping bins of `n` samples, in bit/s of payload, at the begin of each.
fn bins(record: &Record, flow: usize, n: usize) -> Vec<(f64, f64)> {
    let samples: Vec<_> = record.rates.iter().filter(|rate| rate.flow.index() == flow).collect();
    let bin = |ends: &[&fairrate_sim::RateSample]| {
        let (from, to) = (ends[0], ends[n]);
        let bits = (to.delivered_bytes - from.delivered_bytes) as f64 * 8.0;
        (seconds(from.t), bits / (seconds(to.t) - seconds(from.t)))
    };
    samples.windows(n + 1).map(bin).collect()
}

/// Returns the numbers of the flows that are active after change number `change`.
fn active(change: usize) -> std::ops::Range<usize> {
    change.saturating_sub(FLOWS - 1)..(change + 1).min(FLOWS)
}

fn read(record: &Record) -> Point {
    let rates: Vec<Vec<(f64, f64)>> = (0..FLOWS).map(|flow| bins(record, flow, BIN)).collect();
    let fine: Vec<Vec<(f64, f64)>> = (0..FLOWS).map(|flow| bins(record, flow, FINE)).collect();
    let payload = HOST_BPS * MSS / (MSS + 78.0);
    let (mut settled, mut unsteady, mut starved, mut used) = (Vec::new(), Vec::new(), 0.0_f64, 0.0);
    let mut delivered = Vec::new();
    for change in 0..CHANGES {
        let from = PERIOD_S * (change + 1) as f64;
        // The last bin that ends before the next change.
        let to = from + PERIOD_S - 1.1e-4;
        let share = payload / active(change).len() as f64;
        let mut worst = 0.0_f64;
        for flow in active(change) {
            worst = worst.max(settles_us(&rates[flow], from, to, share));
            let late: Vec<f64> = within(&rates[flow], from + PERIOD_S / 2.0, to).map(|bin| bin.1).collect();
            let mean = stats::mean(&late).unwrap_or(0.0);
            let variance = stats::mean(&late.iter().map(|x| (x - mean) * (x - mean)).collect::<Vec<_>>());
            unsteady.push(variance.unwrap_or(0.0).sqrt() / mean.max(1.0));
            let low = late.iter().filter(|&&x| x < 0.05 * share).count();
            starved = starved.max(low as f64 / late.len().max(1) as f64);
            used += mean / payload / CHANGES as f64;
        }
        settled.push(worst);
        let end_us = |flow: usize| delivered_after_us(&fine[flow], from, share);
        delivered.push(active(change).map(end_us).fold(0.0, f64::max));
    }
    let delivered = stats::sorted(delivered);
    let settled = stats::sorted(settled);
    let told = stats::sorted((0..CHANGES).map(|change| told_after_us(record, change)));
    let point = Point::of([
        ("median", settled[CHANGES / 2]),
        ("worst", settled[CHANGES - 1]),
        ("told median", told[CHANGES / 2]),
        ("told worst", told[CHANGES - 1]),
        ("delivered median", delivered[CHANGES / 2]),
        ("delivered worst", delivered[CHANGES - 1]),
        ("used", used),
        ("starved", starved),
        ("unsteady", stats::mean(&unsteady).unwrap_or(f64::NAN)),
    ]);
    let gbps = |bins: &[(f64, f64)]| bins.iter().step_by(BIN).map(|&(t, bps)| (t, bps / 1e9)).collect();
    (0..).zip(&rates).fold(point, |point, (flow, bins)| point.with(&format!("flow {flow}"), gbps(bins)))
}

/// Returns the microseconds from a change until all active senders have rates near the share, and keep them until the
/// next.
fn told_after_us(record: &Record, change: usize) -> f64 {
    let from = PERIOD_S * (change + 1) as f64;
    let share = HOST_BPS / active(change).len() as f64;
    let of_flow = |flow: usize| {
        let samples = record.rates.iter().filter(|sample| sample.flow.index() == flow);
        let rates: Vec<(f64, f64)> = samples.map(|sample| (seconds(sample.t), sample.rate_bps as f64)).collect();
        settles_us(&rates, from, from + PERIOD_S - 1e-5, share)
    };
    active(change).map(of_flow).fold(0.0, f64::max)
}

/// Returns the microseconds from a change to the end of the first bin of 20 us from which on all such bins have the
/// share until the next change, within a fifth or a packet.
fn delivered_after_us(fine: &[(f64, f64)], from: f64, share: f64) -> f64 {
    let width_s = PERIOD_S / 1_000.0 * FINE as f64;
    let tolerance = (PACKET_BITS / width_s / share).max(FAIR);
    let begin = settles_within_us(fine, (from, from + PERIOD_S - width_s - 1e-6), share, tolerance);
    begin + width_s * 1e6
}

fn within(bins: &[(f64, f64)], from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    bins.iter().copied().filter(move |bin| from <= bin.0 && bin.0 <= to)
}

/// Returns the whole microseconds from a change until all bins are near the share and stay there until the next change;
/// the whole period if they never do. Bins begin at whole microseconds: 20 us after 30 ms are not more than 20 us.
fn settles_us(bins: &[(f64, f64)], from: f64, to: f64, share: f64) -> f64 {
    settles_within_us(bins, (from, to), share, FAIR)
}

/// Returns the same with another relative distance from the share.
fn settles_within_us(bins: &[(f64, f64)], (from, to): (f64, f64), share: f64, tolerance: f64) -> f64 {
    let inside: Vec<(f64, f64)> = within(bins, from, to).collect();
    let off = |bin: &(f64, f64)| tolerance * share < (bin.1 - share).abs();
    match inside.iter().rposition(off) {
        None if inside.is_empty() => f64::NAN,
        None => 0.0,
        Some(last) => (inside.get(last + 1).map_or(PERIOD_S, |bin| bin.0 - from) * 1e6).round(),
    }
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |variant: &&Variant| {
        let line = |(flow, look): (usize, &'static str)| {
            let shown = ms_from(points.series("shares", variant.line, &format!("flow {flow}")), 0.0, (0.0, 110.0));
            Line { name: format!("flow {}", flow + 1), ..Line::of(look, &shown) }
        };
        let x = Axis { link: "time", ..Axis::new("time (ms)") }.showing(0.0, 110.0);
        let y = Axis::new("throughput (Gb/s)").showing(0.0, 10.0);
        panel(variant.line, x, y, LOOKS.into_iter().enumerate().map(line).collect())
    };
    SHOWN.iter().map(of).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    ALL.iter().flat_map(|variant| claims_of(points, variant)).collect()
}

fn claims_of(points: &Points, variant: &Variant) -> Vec<Claim> {
    let line = variant.line;
    let exact = |what: &str, text: &str, rule, unit| {
        let value = points.mean("shares", line, what);
        Claim::exact(&format!("{what}-{line}"), &format!("{line}: {text}"), rule, unit, value)
    };
    let settled =
        "from a change to the begin of the first bin of 100 us from which on all have 1/N within a fifth (ours)";
    let median = exact("median", &format!("{settled}, median of nine"), median_rule(variant), "us");
    let worst = if is_flowtune(variant) { Rule::AtMost(100.0) } else { Rule::Words };
    let worst = exact("worst", &format!("{settled}, the slowest; 10,000 us: not before the next"), worst, "us");
    let told = |what: &str, of: &str| {
        let text =
            format!("\"within 20 us\": from a change until all senders have rates of 1/N within a fifth (ours), {of}");
        exact(what, &text, if is_flowtune(variant) { Rule::AtMost(20.0) } else { Rule::Words }, "us")
    };
    let told = [told("told median", "median of nine"), told("told worst", "the slowest")];
    let delivered = |what: &str, of: &str| {
        let text = format!(
            "\"within 20 us\": from a change to the end of the first bin of 20 us from which on all receive 1/N within a fifth or a packet (ours), {of}"
        );
        exact(what, &text, Rule::AtMost(20.0), "us")
    };
    let delivered = [delivered("delivered median", "median of nine"), delivered("delivered worst", "the slowest")];
    let (text, rule) = starved_rule(variant);
    let starved = exact("starved", text, rule, "");
    let (text, rule) = used_rule(variant);
    let used = exact("used", text, rule, "");
    let unsteady = exact("unsteady", "deviation of bins of 100 us over their mean", Rule::Words, "");
    let near = is_flowtune(variant).then_some([told, delivered]).into_iter().flatten().flatten();
    [median, worst, starved, used, unsteady].into_iter().chain(near).collect()
}

fn is_flowtune(variant: &Variant) -> bool {
    variant.is_of(&[&FLOWTUNE, &IW10])
}

/// Returns the rule for the median: Flowtune is there "within 100 us"; DCTCP "takes several milliseconds".
fn median_rule(variant: &Variant) -> Rule {
    if is_flowtune(variant) {
        Rule::AtMost(100.0)
    } else if variant.is_of(&[&DCTCP]) {
        Rule::AtLeast(1_000.0)
    } else {
        Rule::Words
    }
}

fn starved_rule(variant: &Variant) -> (&'static str, Rule) {
    if variant.is_of(&[&PFABRIC]) {
        ("\"starves the other flows\": share of the time with a twentieth of 1/N (half is ours)", Rule::AtLeast(0.5))
    } else {
        ("most of the time that a flow has a twentieth of 1/N", Rule::Words)
    }
}

fn used_rule(variant: &Variant) -> (&'static str, Rule) {
    if variant.is_of(&[&XCP_NS2]) {
        ("\"low throughputs\": use of the link (0.8 is ours)", Rule::AtMost(0.8))
    } else {
        ("use of the link", Rule::Words)
    }
}
