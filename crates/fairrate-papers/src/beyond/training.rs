//! An iteration of 64 GPUs by the placement of its ranks, and with a straggler.
//!
//! The job is that of `examples/large/m64.toml` with 8 of its 32 layers: Mixtral-8x7B on eight servers of eight GPUs,
//! whose eight rails have a leaf each under 64 spines. Placed server by server, tensor groups are servers. Placed rail
//! by rail or at random, what they exchange goes by NICs. For placements nothing but the network takes time; beside a
//! straggler ranks compute for 0.96 ms a layer forward, as at 400 TFLOP/s, and twice that backward.

use fairrate_report::panel::{Axis, Panel};
use fairrate_sim::RankTimes;

use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve, words};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::mean_of;
use crate::points::{Point, Points};
use crate::record::{Record, seconds};

pub const FIGURE: Figure = Figure {
    id: "beyond/training",
    title: "An iteration of 64 GPUs: placements, and a straggler",
    kind: Kind::Simulation,
    quick_s: 30,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/large/m64.toml");
const PLACEMENTS: [&str; 3] = ["contiguous", "by-rail", "random"];
/// Times of the straggler, in multiples of the usual one.
const FACTORS: [&str; 5] = ["1.0", "1.05", "1.1", "1.2", "1.5"];
/// The line of messages that do not meet: each has the rate of its slowest link.
const ALONE: &str = "alone";
/// Packets and fluids, with their names.
const FIDELITIES: [(&str, &str); 2] = [("ideal", "max-min"), ("dcqcn", "DCQCN")];

// Packets and fluids are no rivals: their runs are experiments of their own.

fn placed(placement: &str, cc: &str) -> String {
    format!("placed {placement}: {cc}")
}

fn slow(factor: &str, cc: &str) -> String {
    format!("a straggler of {factor}: {cc}")
}

fn runs(scale: &Scale) -> Vec<Run> {
    let mut runs = Vec::new();
    let layers = ("traffic.0.layers", if scale.quick { "1" } else { "8" });
    for (cc, _) in FIDELITIES {
        for placement in PLACEMENTS {
            let sets = [layers, ("traffic.0.placement", placement)];
            let run = |&seed: &u64| Run::of(&placed(placement, cc), SCENARIO, cc, &sets, read).seeded(seed);
            runs.extend(scale.seeds.iter().map(run));
        }
        for factor in FACTORS {
            let sets = [
                layers,
                ("traffic.0.forward", "958us"),
                ("traffic.0.stragglers", "[\"h0\"]"),
                ("traffic.0.straggler_factor", factor),
            ];
            let run = |&seed: &u64| Run::of(&slow(factor, cc), SCENARIO, cc, &sets, read).seeded(seed);
            runs.extend(scale.seeds.iter().map(run));
            if scale.causes && cc == "ideal" {
                let sets = [&sets[..], &[("transport.ideal.rates", "alone")]].concat();
                let run = |seed| Run::of(&slow(factor, ALONE), SCENARIO, cc, &sets, read).called(ALONE).seeded(seed);
                runs.extend(scale.seeds.iter().map(|&seed| run(seed)));
            }
        }
    }
    runs
}

/// Reads the time of the iteration in ms, what the first rank computes, and the mean of what the others wait for
/// collectives.
fn read(record: &Record) -> Point {
    let iterations = record.job_iterations();
    let Some(iteration) = iterations.first() else { return Point::default() };
    let (first, others) = iteration.ranks.split_first().expect("there are ranks");
    let exposed = |rank: &RankTimes| seconds(rank.exposed);
    Point::of([
        ("ms", 1e3 * seconds(iteration.end - iteration.start)),
        ("compute", 1e3 * seconds(first.compute)),
        ("exposed", 1e3 * mean_of(others.iter().map(exposed))),
        ("drops", record.totals.drops.total() as f64),
    ])
}

/// Returns what an iteration takes longer than without a straggler over what the straggler computes longer, seed by
/// seed.
fn growth(points: &Points, factor: &str, cc: &str) -> Vec<f64> {
    let of = |factor: &str, what: &str| points.values(&slow(factor, cc), cc, what);
    let more = |what: &str| {
        of(factor, what).into_iter().zip(of(FACTORS[0], what)).map(|(slow, usual)| slow - usual).collect::<Vec<_>>()
    };
    more("ms").iter().zip(more("compute")).map(|(time, compute)| time / compute).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let of_placement = |(cc, name): (&'static str, &str)| {
        let values = PLACEMENTS.iter().map(|placement| points.values(&placed(placement, cc), cc, "ms"));
        Curve { name: name.to_owned(), cc, values: (0..).map(f64::from).zip(values).collect() }
    };
    let placement = curves::panel(
        "64 GPUs, no computation",
        words("placement", &PLACEMENTS),
        Axis::new("iteration (ms)").showing(0.0, 50.0),
        FIDELITIES.map(of_placement).into(),
    );
    let of_factor = |(what, name, cc): (&str, &str, &'static str)| {
        let at =
            |factor: &&str| (factor.parse().expect("a number"), points.values(&slow(factor, "dcqcn"), "dcqcn", what));
        Curve { name: name.to_owned(), cc, values: FACTORS.iter().map(at).collect() }
    };
    let lines = [
        ("ms", "the iteration", "dcqcn"),
        ("compute", "what the straggler computes", "hpcc"),
        ("exposed", "what others wait for collectives", "timely"),
    ];
    let straggler = curves::panel(
        "64 GPUs, one of which is slow",
        Axis::new("its time over that of the others"),
        Axis::new("time (ms)").showing(0.0, 50.0),
        lines.map(of_factor).into(),
    );
    vec![placement, straggler]
}

/// Returns our own questions. The thresholds are ours: a tenth between packets and max-min rates, and that an iteration
/// does not take longer by more than the straggler does, but for a twentieth.
fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for placement in PLACEMENTS {
        let of = |cc: &str| points.values(&placed(placement, cc), cc, "ms");
        let sentence = format!("ours: iteration of 64 GPUs placed {placement}, DCQCN");
        claims.push(Claim::mean(&format!("placed-{placement}"), &sentence, Rule::Words, "ms", of("dcqcn")));
        let sentence = format!("max-min: the same placed {placement}: its time over that of max-min rates");
        let ratio = of("dcqcn").iter().zip(of("ideal")).map(|(packets, fluid)| packets / fluid).collect();
        let id = format!("placed-{placement}-max-min");
        claims.push(Claim::mean(&id, &sentence, Rule::About(1.0, 0.1), "times", ratio));
    }
    for factor in FACTORS {
        let sentence = format!("ours: iteration of 64 GPUs with a straggler of {factor}, DCQCN");
        let values = points.values(&slow(factor, "dcqcn"), "dcqcn", "ms");
        claims.push(Claim::mean(&format!("straggler-{factor}"), &sentence, Rule::Words, "ms", values));
        if factor == FACTORS[0] {
            continue;
        }
        for (cc, name) in FIDELITIES {
            let sentence = format!(
                "ours: a straggler of {factor}, {name}: what the iteration takes longer over what the straggler computes longer"
            );
            let id = format!("straggler-{factor}-{cc}");
            let claim = Claim::mean(&id, &sentence, Rule::AtMost(1.05), "times", growth(points, factor, cc));
            let alone = growth(points, factor, ALONE);
            claims.push(claim.changing("each message has the rate of its slowest link, whatever else there is", alone));
        }
    }
    claims
}
