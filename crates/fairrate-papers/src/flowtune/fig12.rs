//! Figure 12: the rates above the links' capacities without normalisation.

use fairrate_allocate::{Method, Normaliser, RateEngine};
use fairrate_report::panel::{Axis, Panel};

use super::churn::{self, Churn, SERVERS_BPS, Sends};
use super::lines::{self, Curve};
use super::methods::{NED, SIZES, Step, VARIANTS_AT, allocator, churn as traffic, loads, name, real_time, sizes};
use super::{Sizes, WEB};
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::mean;
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig12",
    title: "What optimisers exceed the capacity of links by without normalisation",
    kind: Kind::Flows,
    quick_s: 3,
    runs,
    panels,
    claims,
};

const LINES: [&str; 5] = ["NED", "NED-RT", "gradient", "gradient-RT", "FGM"];
/// The lines in double precision.
const METHODS: [&str; 3] = [LINES[0], LINES[2], LINES[4]];
/// Algorithms whose looks the lines have.
const LOOKS: [&str; 5] = ["powertcp", "dcqcn", "hpcc", "dctcp", "timely"];
/// NED and FGM whose flows may want a hundred times what the links of their paths carry, with Web alone.
const FAR: [&str; 2] = ["NED, flows that want 100 times as much", "FGM, flows that want 100 times as much"];
const REACH: f64 = 100.0;
/// Suffix of lines whose flows send also the part of their rates that links do not carry.
const ALL_OF_IT: &str = ", all of it sent";

/// Returns the allocator of a line.
fn engine(line: &str, step: &Step) -> Box<dyn RateEngine> {
    let method = |method| -> Box<dyn RateEngine> { Box::new(allocator(method, Normaliser::None)) };
    match line {
        "NED" => method(NED),
        "NED-RT" => Box::new(real_time(0.4).raw()),
        "gradient" => method(step.gradient()),
        line if line == FAR[0] => Box::new(allocator(NED, Normaliser::None).reaching(REACH)),
        line if line == FAR[1] => Box::new(allocator(Method::Fgm, Normaliser::None).reaching(REACH)),
        "gradient-RT" => Box::new(real_time(step.gamma()).gradient().raw()),
        _ => method(Method::Fgm),
    }
}

fn runs(scale: &Scale) -> Vec<Run> {
    sizes(scale).iter().flat_map(|sizes| runs_of(scale, sizes)).collect()
}

fn runs_of(scale: &Scale, sizes: &Sizes) -> Vec<Run> {
    let step = Step::of(traffic(scale, sizes, VARIANTS_AT, 1));
    let mut runs = vec![step_run(sizes, &step)];
    for tenths in loads(scale, sizes) {
        for &seed in &scale.seeds {
            let churn = traffic(scale, sizes, tenths, seed);
            let run = |line: &'static str, sends| over(&name(sizes, tenths), line, churn.clone(), sends, &step);
            runs.extend(LINES.map(|line| run(line, Sends::AsCarried)));
            if sizes.name == WEB.name {
                runs.extend(FAR.map(|line| run(line, Sends::AsCarried)));
            }
            if tenths == VARIANTS_AT {
                let as_allocated = |line| {
                    let run = run(line, Sends::AsAllocated);
                    run.called(&format!("{line}{ALL_OF_IT}"))
                };
                runs.extend(METHODS.map(as_allocated));
            }
        }
    }
    runs
}

fn step_run(sizes: &Sizes, step: &Step) -> Run {
    let of = step.clone();
    Run::modelled(sizes.name, "step", step.inputs(), move || Point::of([("gamma", of.gamma())]))
}

fn over(name: &str, line: &'static str, churn: Churn, sends: Sends, step: &Step) -> Run {
    let (seed, step) = (churn.seed, step.clone());
    let run = Run::modelled(name, line, format!("{line} {sends:?} {churn:?}"), move || {
        let outcome = churn::run(&churn, sends, vec![engine(line, &step)], None);
        let gbps: Vec<f64> = outcome.allocated[0].over_bps.iter().map(|bps| bps / 1e9).collect();
        Point::of([("over", mean(&gbps))])
    });
    run.seeded(seed)
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |sizes: &Sizes| {
        let line = |(line, look): (&&'static str, &'static str)| Curve {
            name: (*line).to_owned(),
            cc: look,
            values: (2..=9)
                .map(|load| (f64::from(load) / 10.0, points.values(&name(sizes, load), line, "over")))
                .collect(),
        };
        let y = Axis::new("over-capacity (Gb/s)").showing(0.0, 300.0);
        lines::means(sizes.title, lines::loads(), y, LINES.iter().zip(LOOKS).map(line).collect())
    };
    let panels = lines::filled(SIZES.iter().map(of));
    panels.into_iter().map(|panel| with_level(panel, "paper: NED up to 140 Gb/s", 140.0, (0.1, 0.9))).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    SIZES.iter().flat_map(|sizes| claims_of(points, sizes)).collect()
}

fn claims_of(points: &Points, sizes: &Sizes) -> Vec<Claim> {
    let title = sizes.title;
    let values = |tenths: u32, line: &str| points.values(&name(sizes, tenths), line, "over");
    let loads: Vec<u32> = if title == "Web" { (2..=9).collect() } else { vec![4, VARIANTS_AT] };
    let worst = |line: &str| {
        let of_loads = loads.iter().map(|&load| values(load, line)).filter(|values| !values.is_empty());
        of_loads.max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or_default()
    };
    let claim = |id: &str, text: &str, rule, unit, values| {
        Claim::mean(&format!("{}-{id}", sizes.name), &format!("{title}{text}"), rule, unit, values)
    };
    // The paper does not say what a flow takes at prices of 0.
    let further = "flows may want 100 times what their path carries";
    let most = ": NED exceeds links by \"up to 140 Gb/s\" (mean of the worst load, within a quarter; both ours)";
    let ned = claim("ned", most, Rule::About(140.0, 0.25), "Gb/s", worst("NED"));
    let mut claims = vec![ned.changing(further, worst(FAR[0]))];
    for &tenths in &loads {
        let over = |line: &str| points_over(&values(tenths, line), &values(tenths, "gradient"));
        let text = format!(", load 0.{tenths}: NED over-allocates more than gradient: over its");
        let ratio = claim(&format!("ratio-0.{tenths}"), &text, Rule::AtLeast(1.0), "", over("NED"));
        claims.push(ratio.changing(further, over(FAR[0])));
        if 5 <= tenths {
            let part = |line: &str| values(tenths, line).iter().map(|gbps| gbps * 1e9 / SERVERS_BPS).collect();
            let text = format!(", load 0.{tenths}: FGM is \"unrealistic\": of all servers' capacity (a half is ours)");
            let fgm = claim(&format!("fgm-0.{tenths}"), &text, Rule::AtLeast(0.5), "", part("FGM"));
            claims.push(fgm.changing(further, part(FAR[1])));
        }
    }
    for line in METHODS {
        let line = format!("{line}{ALL_OF_IT}");
        let text = format!(", load 0.8: {line}, whether links carry it or not");
        claims.push(claim(&line, &text, Rule::Words, "Gb/s", values(VARIANTS_AT, &line)));
    }
    let step = points.mean(sizes.name, "step", "gamma");
    let text = format!("{title}: largest step of the gradient method that does not oscillate");
    claims.push(Claim::exact(&format!("{}-step", sizes.name), &text, Rule::Words, "", step));
    claims
}

fn points_over(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| above / below).collect()
}
