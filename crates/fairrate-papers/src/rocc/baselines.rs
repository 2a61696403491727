//! The algorithms that RoCC is compared with, and variants of them.

use crate::claim::{Claim, Rule};
use crate::experiment::Run;
use crate::figure::Scale;
use crate::points::Points;
use crate::variant::Variant;

/// The forms of the OMNeT++ code of RoCC's authors.
pub const OMNET: (&str, &str) = ("profile", "rocc-omnet");
/// Their DCQCN and HPCC act on feedback at once.
pub const AT_ONCE: (&str, &str) = ("transport.reaction_delay", "0s");

pub const DCQCN: Variant = Variant::of("dcqcn");
/// DCQCN as in the public code of RoCC's authors.
pub const DCQCN_AUTHORS: Variant = DCQCN.with(
    "dcqcn-authors",
    "dcqcn, authors' code",
    &[
        ("transport.dcqcn.ai", "4Mbps"),
        ("switch.ecn.kmin", "5KB"),
        ("switch.ecn.kmax", "200KB"),
        ("switch.ecn.pmax", "0.01"),
    ],
);
pub const DCQCN_PI: Variant = Variant::of("dcqcn-pi");
pub const TIMELY: Variant = Variant::of("timely");
pub const QCN: Variant = Variant::of("qcn");
pub const HPCC: Variant = Variant::of("hpcc");
/// HPCC with the additive increase by the formula of its paper, for ten flows: ten meet in Figures 11 and 12a, seven in
/// 12b.
pub const HPCC_BY_LINE_RATE: Variant = HPCC.with(
    "hpcc-by-line-rate",
    "hpcc, by line rate",
    &[("transport.hpcc.increase", "by-line-rate"), ("transport.hpcc.expected_flows", "10.0")],
);
pub const PACC: Variant = Variant::of("pacc");
pub const BFC: Variant = Variant::of("bfc");

/// Returns `true` if an algorithm draws random numbers in networks without random traffic and with one path.
pub fn is_random(variant: &Variant) -> bool {
    ["dcqcn", "dcqcn-pi", "qcn", "pacc"].contains(&variant.cc)
}

/// Returns a run of each variant: one from each seed, if the variant is random.
pub fn by_seeds(scale: &Scale, variants: &[Variant], run: impl Fn(&Variant) -> Run) -> Vec<Run> {
    let of = |variant: &Variant| {
        if is_random(variant) {
            scale.seeds.iter().map(|&seed| run(variant).seeded(seed)).collect()
        } else {
            vec![run(variant)]
        }
    };
    variants.iter().flat_map(of).collect()
}

/// The parts of a claim besides its variant and its number: id, text, rule and unit.
pub type Says<'a> = (&'a str, String, Rule, &'static str);

/// Returns a claim about a number of a run under a variant.
pub fn claim(points: &Points, run: &str, variant: &Variant, what: &str, (id, text, rule, unit): Says<'_>) -> Claim {
    let (id, sentence) = (format!("{id}-{}", variant.id), format!("{}: {text}", variant.line));
    let values = points.values(run, variant.line, what);
    if is_random(variant) {
        Claim::mean(&id, &sentence, rule, unit, values)
    } else {
        Claim::exact(&id, &sentence, rule, unit, values.first().copied())
    }
}

/// Returns the ratio of two variants' numbers, seed by seed; a number without seeds is the same for all seeds of the
/// other.
pub fn ratios(points: &Points, run: &str, variant: &Variant, over: &Variant, what: &str) -> Vec<f64> {
    let (values, base) = (points.values(run, variant.line, what), points.values(run, over.line, what));
    let n = if values.is_empty() || base.is_empty() { 0 } else { values.len().max(base.len()) };
    (0..n).map(|i| values[i % values.len()] / base[i % base.len()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Point;

    #[test]
    fn what_has_no_seeds_is_held_against_each() {
        let mut points = Points::default();
        points.add("run", HPCC.line, None, Point::of([("x", 6.0)]));
        for (seed, x) in [(1, 2.0), (2, 3.0)] {
            points.add("run", DCQCN.line, Some(seed), Point::of([("x", x)]));
        }
        assert_eq!(ratios(&points, "run", &HPCC, &DCQCN, "x"), [3.0, 2.0]);
        assert!(ratios(&points, "run", &HPCC, &QCN, "x").is_empty());
    }
}
