//! Figure 6: Bode diagrams for two and for ten flows, with gains of 0.3 and 3.

use fairrate_report::panel::{Axis, Panel};

use super::stability::Loop;
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_level};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "rocc/fig6",
    title: "More flows make RoCC's loop faster, and unstable with fixed gains",
    kind: Kind::Calculation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

/// Flows, and the algorithms whose looks their lines have.
const FLOWS: [(f64, &str); 2] = [(2.0, "powertcp"), (10.0, "hpcc")];
/// Limits of the frequencies in rad/s, by their logarithms.
const FROM: f64 = 2.0;
const TO: f64 = 5.5;

fn name(flows: f64) -> String {
    format!("N = {flows}")
}

fn runs(_: &Scale) -> Vec<Run> {
    let run = |(flows, _): (f64, &str)| {
        Run::calculated("bode", &name(flows), move || {
            let open = Loop::new(0.3, 3.0, flows);
            let omegas = || (0..=350).map(|i| libm::pow(10.0, FROM + (TO - FROM) * f64::from(i) / 350.0));
            Point::of([("margin", open.margin())])
                .with("gain", omegas().map(|omega| (omega, 20.0 * libm::log10(open.gain(omega)))).collect())
                .with("phase", omegas().map(|omega| (omega, open.phase(omega))).collect())
        })
    };
    FLOWS.map(run).into()
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, y: Axis, what: &str, level: f64| {
        let line = |(flows, look): (f64, &'static str)| {
            let name = name(flows);
            Line { name: name.clone(), ..Line::of(look, points.series("bode", &name, what)) }
        };
        let panel = panel(title, Axis::new("frequency (rad/s)").logarithmic(), y, FLOWS.map(line).into());
        with_level(panel, &format!("{level}"), level, (libm::pow(10.0, FROM), libm::pow(10.0, TO)))
    };
    vec![
        draw("gain", Axis::new("gain (dB)").showing(-40.0, 80.0), "gain", 0.0),
        draw("phase", Axis::new("phase (degrees)").showing(-360.0, -90.0), "phase", -180.0),
    ]
}

/// Returns the claims. The paper's margins are round: a tenth is ours.
fn claims(points: &Points) -> Vec<Claim> {
    let claim = |id: &str, flows: f64, says: f64| {
        let sentence = format!("with {flows} flows the phase margin is {says} degrees");
        Claim::exact(id, &sentence, Rule::About(says, 0.1), "degrees", points.mean("bode", &name(flows), "margin"))
    };
    let ten = claim("margin-10", 10.0, -50.0);
    vec![
        claim("margin-2", 2.0, 50.0),
        ten.because("No cause is known: the formula gives this, and it gives the margin of two flows."),
    ]
}
