//! Figure 7: phase margin and bandwidth of the loop for six pairs of gains, and, beyond the paper, with its automatic
//! choice among them.

use fairrate_report::panel::{Axis, Panel};

use super::stability::{Loop, auto_tuned};
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_level};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "rocc/fig7",
    title: "Lower gains keep RoCC's loop stable for more flows, and make it slower",
    kind: Kind::Calculation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

/// Numbers of halvings of the gains 0.3 and 3, and the algorithms whose looks the lines have.
const HALVINGS: [(i32, &str); 6] =
    [(0, "powertcp"), (1, "theta-powertcp"), (2, "hpcc"), (3, "timely"), (4, "dcqcn"), (5, "dctcp")];
const MOST_FLOWS: u32 = 128;
/// Least margin that is drawn, in degrees.
const LEAST_SHOWN: f64 = -100.0;
/// Gains of the simulations at 40 Gb/s, whose rates are up to 4,000 in units of 10 Mb/s.
const TUNED: (f64, f64, f64) = (0.3, 1.5, 4_000.0);
const TUNED_NAME: &str = "auto-tuned from 0.3:1.5";
const TUNED_FLOWS: u32 = 400;

fn gains(halvings: i32) -> (f64, f64) {
    (libm::ldexp(0.3, -halvings), libm::ldexp(3.0, -halvings))
}

fn name(halvings: i32) -> String {
    let (a, b) = gains(halvings);
    format!("{a:.4}:{b:.4}")
}

fn runs(_: &Scale) -> Vec<Run> {
    let fixed = |(halvings, _): (i32, &str)| {
        let (a, b) = gains(halvings);
        Run::calculated("loop", &name(halvings), move || of_flows(MOST_FLOWS, |flows| Loop::new(a, b, flows)))
    };
    let (a, b, fmax) = TUNED;
    let tuned =
        Run::calculated("loop", TUNED_NAME, move || of_flows(TUNED_FLOWS, |flows| auto_tuned(a, b, flows, fmax)));
    HALVINGS.map(fixed).into_iter().chain([tuned]).collect()
}

fn of_flows(most: u32, open: impl Fn(f64) -> Loop) -> Point {
    let flows = || (2..=most).map(f64::from);
    let margins: Vec<(f64, f64)> = flows().map(|n| (n, open(n).margin())).collect();
    let least =
        |up_to: f64| margins.iter().filter(|(n, _)| *n <= up_to).map(|(_, margin)| *margin).fold(f64::MAX, f64::min);
    Point::of([("least", least(f64::from(MOST_FLOWS))), ("least of all", least(f64::MAX))])
        .with("margin", margins.into_iter().filter(|(_, margin)| LEAST_SHOWN <= *margin).collect())
        .with("bandwidth", flows().map(|n| (n, open(n).bandwidth_hz() / 1e3)).collect())
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, y: Axis, what: &str| {
        let line = |(halvings, look): (i32, &'static str)| {
            let name = name(halvings);
            Line { name: name.clone(), ..Line::of(look, points.series("loop", &name, what)) }
        };
        panel(title, Axis::new("flows"), y, HALVINGS.map(line).into())
    };
    let margin = draw("(a) phase margin", Axis::new("phase margin (degrees)").showing(-100.0, 90.0), "margin");
    let bandwidth = draw("(b) loop bandwidth", Axis::new("bandwidth (kHz)").logarithmic(), "bandwidth");
    let tuned = Line::of("rocc", points.series("loop", TUNED_NAME, "margin"));
    let tuned = Line { name: TUNED_NAME.to_owned(), ..tuned };
    let y = Axis::new("phase margin (degrees)");
    let beyond = panel("beyond the paper: with automatic tuning at 40 Gb/s", Axis::new("flows"), y, vec![tuned]);
    let zero = |panel, most: u32| with_level(panel, "unstable below", 0.0, (0.0, f64::from(most)));
    vec![zero(margin, MOST_FLOWS), bandwidth, zero(beyond, TUNED_FLOWS)]
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |line: &str, what: &str| points.mean("loop", line, what);
    let exact = |id, sentence, rule, value| Claim::exact(id, sentence, rule, "degrees", value);
    let lowest = "0.0093:0.0937 has a phase margin above 20 degrees for 2 to 128 flows";
    vec![
        exact("lowest", lowest, Rule::AtLeast(20.0), of(&name(5), "least")),
        exact("highest", "0.3:3 becomes unstable as flows grow", Rule::AtMost(0.0), of(&name(0), "least")),
        exact(
            "tuned",
            "six levels keep the margin for all N (up to 128)",
            Rule::AtLeast(20.0),
            of(TUNED_NAME, "least"),
        ),
        exact(
            "tuned-400",
            "beyond the paper: the least margin up to 400 flows",
            Rule::Words,
            of(TUNED_NAME, "least of all"),
        ),
    ]
}
