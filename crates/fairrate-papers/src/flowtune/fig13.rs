//! Figure 13: normalised rates as a part of the optimum for the same flows.
//!
//! Flows send at the rates of a run's first allocator, F-NORM: with U-NORM they would accumulate, and be other flows.

use fairrate_allocate::{Method, Ned, Normaliser, RateEngine};
use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;

use super::Sizes;
use super::churn::{self, Churn, Iterates, Sends};
use super::lines::{self, Curve};
use super::methods::{NED, SIZES, Step, VARIANTS_AT, allocator, churn as traffic, loads, name, real_time, sizes};
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig13",
    title: "Throughput of normalised rates as a part of the optimum's",
    kind: Kind::Flows,
    quick_s: 15,
    runs,
    panels,
    claims,
};

/// Normalisers by the names of their results. Ratios of "F-NORM, bounded" count a flow's rate up to the largest that
/// can be sent to it.
const NORMALISERS: [(&str, Normaliser); 5] = [
    ("F-NORM", Normaliser::F_NORM),
    ("F-NORM, bounded", Normaliser::F_NORM_BOUNDED),
    ("U-NORM", Normaliser::U_NORM),
    ("F-NORM that only scales down", Normaliser::Flow { scales_up: false, bounded: false }),
    ("U-NORM that only scales down", Normaliser::Uniform { scales_up: false }),
];
/// Steps of NED that the paper calls similar, besides its 0.4.
const GAMMAS: [(f64, &str, &str); 3] =
    [(0.2, "NED, gamma 0.2", "powertcp"), (1.0, "NED, gamma 1.0", "dcqcn"), (1.5, "NED, gamma 1.5", "hpcc")];
/// More iterations in the same time.
const TIMES: u32 = 20;
const OFTEN: &str = "NED, 20 iterations";
const RT_OFTEN: &str = "NED-RT, 20 iterations";
const EACH_CHANGE: &str = "NED, an iteration a change";
/// The drawn lines: methods with normalisers, and the algorithms whose looks they have.
const SHOWN: [(&str, &str, &str); 5] = [
    ("NED", "F-NORM", "powertcp"),
    ("NED", "F-NORM, bounded", "dcqcn"),
    ("gradient", "F-NORM", "hpcc"),
    ("gradient", "U-NORM", "dctcp"),
    ("NED", "U-NORM", "timely"),
];
/// The paper's values for F-NORM with NED and with the gradient method.
const NED_PART: f64 = 0.997;
const GRADIENT_PART: f64 = 0.984;

fn runs(scale: &Scale) -> Vec<Run> {
    sizes(scale).iter().flat_map(|sizes| runs_of(scale, sizes)).collect()
}

fn runs_of(scale: &Scale, sizes: &Sizes) -> Vec<Run> {
    let step = Step::of(traffic(scale, sizes, VARIANTS_AT, 1));
    let mut runs = Vec::new();
    for tenths in loads(scale, sizes) {
        for &seed in &scale.seeds {
            let (churn, name) = (traffic(scale, sizes, tenths, seed), name(sizes, tenths));
            let run = |line, n, churn: &Churn, method: &dyn Fn() -> Box<dyn Fn() -> Method + Send + Sync>| {
                normalised(&name, line, churn.clone(), n, method())
            };
            runs.push(run("NED", NORMALISERS.len(), &churn, &|| Box::new(|| NED)));
            runs.push(run("gradient", NORMALISERS.len(), &churn, &|| {
                let step = step.clone();
                Box::new(move || step.gradient())
            }));
            for (gamma, line, _) in GAMMAS {
                runs.push(run(line, 1, &churn, &|| Box::new(move || Method::Ned(Ned { gamma }))));
            }
            let often = Churn { iterates: Iterates::ByTime(TIMES), ..churn.clone() };
            runs.push(run(OFTEN, 2, &often, &|| Box::new(|| NED)));
            if tenths == VARIANTS_AT {
                runs.push(parts(&name, RT_OFTEN, often, || vec![("F-NORM", Box::new(real_time(0.4)))]));
                let each = Churn { iterates: Iterates::ByChange, ..churn.clone() };
                runs.push(run(EACH_CHANGE, 2, &each, &|| Box::new(|| NED)));
                runs.push(parts(&name, "NED-RT", churn, || vec![("F-NORM", Box::new(real_time(0.4)))]));
            }
        }
    }
    runs
}

/// Returns the run of a method under the first `n` normalisers.
fn normalised(name: &str, line: &str, churn: Churn, n: usize, method: Box<dyn Fn() -> Method + Send + Sync>) -> Run {
    parts(name, line, churn, move || {
        let (method, of) = (method(), &NORMALISERS[..n]);
        let engine = |normaliser| -> Box<dyn RateEngine> { Box::new(allocator(method, normaliser)) };
        of.iter().map(|&(name, normaliser)| (name, engine(normaliser))).collect()
    })
}

type Named = Vec<(&'static str, Box<dyn RateEngine>)>;

/// Returns the run that compares the allocators' rates with the optimum's.
fn parts(name: &str, line: &str, churn: Churn, allocators: impl Fn() -> Named + Send + Sync + 'static) -> Run {
    let seed = churn.seed;
    let run = Run::modelled(name, line, format!("{line} {churn:?}"), move || {
        let (names, made): (Vec<_>, Vec<_>) = allocators().into_iter().unzip();
        let outcome = churn::run(&churn, Sends::AsAllocated, made, Some(allocator(NED, Normaliser::None)));
        let mut point =
            Point::of([("flows", outcome.mean_flows), ("without optimum", f64::from(outcome.without_optimum))]);
        for (name, allocated) in names.iter().zip(&outcome.allocated) {
            let parts = &allocated.of_optimum;
            point.numbers.extend(stats::mean(parts).map(|mean| ((*name).to_owned(), mean)));
            let most = parts.iter().copied().reduce(f64::max);
            point.numbers.extend(most.map(|most| (format!("{name}, most"), most)));
        }
        point
    });
    run.seeded(seed)
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: String, y: Axis, sizes: &Sizes, shown: &[(&str, &str, &'static str)]| {
        let line = |&(line, what, look): &(&str, &str, &'static str)| Curve {
            name: format!("{line}, {what}"),
            cc: look,
            values: by_load(|load| points.values(&name(sizes, load), line, what)),
        };
        let panel = lines::means(title, lines::loads(), y, shown.iter().map(line).collect());
        let panel = with_level(panel, "paper: NED 0.997", NED_PART, (0.1, 0.9));
        with_level(panel, "paper: gradient 0.984", GRADIENT_PART, (0.1, 0.9))
    };
    let part = |from| Axis::new("part of the optimum").showing(from, 1.0);
    let mut panels = Vec::new();
    for sizes in SIZES.iter().filter(|sizes| !points.values(&name(sizes, VARIANTS_AT), "NED", "flows").is_empty()) {
        panels.push(draw(sizes.title.to_owned(), part(0.3), sizes, &SHOWN));
        panels.push(draw(format!("{}: F-NORM alone", sizes.title), part(0.9), sizes, &SHOWN[..3]));
        let throughput = Axis::new("throughput over that with gamma 0.4").showing(0.7, 1.05);
        panels.push(gammas(points, sizes, "F-NORM", throughput));
        let completion = Axis::new("mean completion time over that with gamma 0.4").showing(0.8, 2.0);
        panels.push(gammas(points, sizes, "flows", completion));
    }
    panels
}

fn by_load(values: impl Fn(u32) -> Vec<f64>) -> Vec<(f64, Vec<f64>)> {
    (2..=9).map(|load| (f64::from(load) / 10.0, values(load))).collect()
}

/// Draws NED with other steps over NED with the paper's.
fn gammas(points: &Points, sizes: &Sizes, what: &str, y: Axis) -> Panel {
    let line = |&(_, line, look): &(f64, &'static str, &'static str)| Curve {
        name: line.to_owned(),
        cc: look,
        values: by_load(|load| points.ratios(&name(sizes, load), line, "NED", what)),
    };
    let title = format!("{}: other steps of NED with F-NORM", sizes.title);
    let panel = lines::means(title, lines::loads(), y, GAMMAS.iter().map(line).collect());
    with_level(panel, "as with 0.4", 1.0, (0.1, 0.9))
}

fn claims(points: &Points) -> Vec<Claim> {
    let at = |sizes: &'static Sizes| {
        let loads = if sizes.title == "Web" { (2..=9).collect() } else { vec![4, VARIANTS_AT] };
        let of_load =
            move |tenths| [normalised_claims(points, sizes, tenths), gamma_claims(points, sizes, tenths)].concat();
        loads.into_iter().flat_map(of_load).chain(variant_claims(points, sizes)).collect::<Vec<_>>()
    };
    SIZES.iter().flat_map(at).collect()
}

/// Returns a function that makes claims about `sizes` at the load.
fn maker(sizes: &Sizes, tenths: u32) -> impl Fn(&str, &str, Rule, Vec<f64>) -> Claim + '_ {
    move |id, text, rule, values| {
        let sentence = format!("{}, load 0.{tenths}: {text}", sizes.title);
        Claim::mean(&format!("{}-0.{tenths}-{id}", sizes.name), &sentence, rule, "", values)
    }
}

/// The change that may be a cause: prices follow changes late.
const SOONER: &str = "there are 20 iterations every 10 us";

fn normalised_claims(points: &Points, sizes: &Sizes, tenths: u32) -> Vec<Claim> {
    let claim = maker(sizes, tenths);
    let values = |line: &str, what: &str| points.values(&name(sizes, tenths), line, what);
    let (ned, gradient) = (Rule::AtLeast(NED_PART), Rule::About(GRADIENT_PART, 0.01));
    let more = values("gradient", "U-NORM").iter().zip(values("NED", "U-NORM")).map(|(a, b)| a - b).collect();
    vec![
        claim("ned-f", "NED with F-NORM, of the optimum", ned, values("NED", "F-NORM"))
            .changing(SOONER, values(OFTEN, "F-NORM")),
        claim(
            "ned-most",
            "NED \"occasionally\" exceeds it: the most",
            Rule::AtLeast(1.0),
            values("NED", "F-NORM, most"),
        ),
        claim(
            "gradient-f",
            "gradient with F-NORM (within a hundredth is ours)",
            gradient,
            values("gradient", "F-NORM"),
        ),
        claim("ned-bounded", "NED with bounded F-NORM", ned, values("NED", NORMALISERS[1].0))
            .changing(SOONER, values(OFTEN, NORMALISERS[1].0)),
        claim("gradient-bounded", "gradient with bounded F-NORM", gradient, values("gradient", "F-NORM, bounded")),
        claim(
            "ned-u",
            "NED with U-NORM is \"low in comparison\" (0.9 is ours)",
            Rule::AtMost(0.9),
            values("NED", "U-NORM"),
        ),
        claim("gradient-u", "gradient \"suffers less\" from U-NORM: its part less NED's", Rule::AtLeast(0.0), more),
    ]
}

/// Returns claims about the "similar performance" for gamma from 0.2 to 1.5 (section 6.2).
fn gamma_claims(points: &Points, sizes: &Sizes, tenths: u32) -> Vec<Claim> {
    let claim = maker(sizes, tenths);
    let of = |(gamma, line, _): (f64, &str, &str)| {
        let similar = |what: &str, text: &str| {
            let values = points.ratios(&name(sizes, tenths), line, "NED", what);
            let text = format!("gamma {gamma} is \"similar\" to 0.4: {text} (a twentieth is ours)");
            claim(&format!("gamma-{gamma}-{what}"), &text, Rule::About(1.0, 0.05), values)
        };
        [similar("F-NORM", "part of the optimum"), similar("flows", "mean completion time")]
    };
    GAMMAS.into_iter().flat_map(of).collect()
}

/// Returns claims about the lines that were run at one load only.
fn variant_claims(points: &Points, sizes: &Sizes) -> Vec<Claim> {
    let claim = maker(sizes, VARIANTS_AT);
    let values = |line: &str, what: &str| points.values(&name(sizes, VARIANTS_AT), line, what);
    let ned = Rule::AtLeast(NED_PART);
    vec![
        claim("ned-rt", "NED-RT with F-NORM", ned, values("NED-RT", "F-NORM"))
            .changing(SOONER, values(RT_OFTEN, "F-NORM")),
        claim("each", "NED with F-NORM, an iteration for each change", ned, values(EACH_CHANGE, "F-NORM")),
        claim("each-bounded", "the same, bounded", ned, values(EACH_CHANGE, "F-NORM, bounded")),
        claim("ned-f-down", "NED with F-NORM that only scales down", Rule::Words, values("NED", NORMALISERS[3].0)),
        claim("ned-u-down", "NED with U-NORM that only scales down", Rule::Words, values("NED", NORMALISERS[4].0)),
        claim("without", "optima that were not reached, NED", Rule::Words, values("NED", "without optimum")),
    ]
}
