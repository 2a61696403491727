//! Figure 5: the phase margin for gains α and β, with two flows.

use fairrate_report::panel::{Axis, Panel};

use super::stability::Loop;
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_level};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "rocc/fig5",
    title: "Phase margin of RoCC's loop for its two gains",
    kind: Kind::Calculation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

const FLOWS: f64 = 2.0;
/// Values of α, and the algorithms whose looks their lines have.
const ALPHAS: [(f64, &str); 5] =
    [(0.1, "powertcp"), (0.2, "theta-powertcp"), (0.3, "hpcc"), (0.6, "timely"), (1.2, "dcqcn")];
const MOST_BETA: f64 = 10.0;

fn runs(_: &Scale) -> Vec<Run> {
    let run = |(alpha, _): (f64, &str)| {
        Run::calculated("margin", &name(alpha), move || {
            let betas = (1..=200).map(|i| MOST_BETA * f64::from(i) / 200.0);
            let margin = |beta| Loop::new(alpha, beta, FLOWS).margin();
            Point::of([("used", margin(3.0))]).with("margin", betas.map(|beta| (beta, margin(beta))).collect())
        })
    };
    ALPHAS.map(run).into()
}

fn name(alpha: f64) -> String {
    format!("\u{3b1} = {alpha}")
}

fn panels(points: &Points) -> Vec<Panel> {
    let line = |(alpha, look): (f64, &'static str)| {
        let name = name(alpha);
        Line { name: name.clone(), ..Line::of(look, points.series("margin", &name, "margin")) }
    };
    let (x, y) = (Axis::new("\u{3b2}"), Axis::new("phase margin (degrees)"));
    let panel = panel("T = 40 us, N = 2", x, y, ALPHAS.map(line).into());
    vec![with_level(panel, "unstable below", 0.0, (0.0, MOST_BETA))]
}

fn claims(points: &Points) -> Vec<Claim> {
    let margin = points.mean("margin", &name(0.3), "used");
    vec![Claim::exact("used", "gains of 0.3 and 3 have a margin above 0", Rule::AtLeast(0.0), "degrees", margin)]
}
