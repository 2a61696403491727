//! Figure 2: the decrease of a window by laws of one dimension, for a queue and its slope.

use fairrate_report::panel::{Axis, Panel};

use super::LAWS;
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig2",
    title: "Laws of one dimension see the queue or its slope, and not both",
    kind: Kind::Calculation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

/// Upper end of slopes in link rates, and of queues in bandwidth-delay products; both begin at 0.
const MOST: f64 = 8.0;
const STEPS: u32 = 80;

fn runs(_: &Scale) -> Vec<Run> {
    let along = || (0..=STEPS).map(|i| MOST * f64::from(i) / f64::from(STEPS));
    LAWS.map(|law| {
        Run::calculated("factor", law.name, move || {
            // In (a) there is a queue of one bandwidth-delay product, in (b) a queue that does not grow.
            Point::default()
                .with("of slope", along().map(|slope| (slope, (law.of)(1.0, slope))).collect())
                .with("of queue", along().map(|queue| (queue, (law.of)(queue, 0.0))).collect())
        })
    })
    .into()
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, x: &str, what: &str| {
        let line = |law: &super::Feedback| Line {
            name: law.name.to_owned(),
            ..Line::of(law.cc, points.series("factor", law.name, what))
        };
        panel(title, Axis::new(x), Axis::new("decrease of the window (factor)"), LAWS.iter().map(line).collect())
    };
    vec![
        draw("(a) for the slope of a queue of one BDP", "slope of the queue (link rates)", "of slope"),
        draw("(b) for a queue that does not grow", "queue (BDP)", "of queue"),
    ]
}

fn claims(points: &Points) -> Vec<Claim> {
    // The last point over the first: 1 if the law does not depend on it.
    let grows = |law: &super::Feedback, what: &str| {
        let series = points.series("factor", law.name, what);
        Some(series.last()?.1 / series.first()?.1)
    };
    // They follow from the laws' formulas, so nothing is judged.
    let exact = |id, sentence, value| Claim::exact(id, sentence, Rule::Words, "", value);
    let [voltage, current, _] = &LAWS;
    vec![
        exact("a-current", "current-based laws react in proportion to the slope", grows(current, "of slope")),
        exact("a-voltage", "voltage-based laws react alike to any slope", grows(voltage, "of slope")),
        exact("b-voltage", "voltage-based laws react in proportion to the queue", grows(voltage, "of queue")),
        exact("b-current", "current-based laws react alike to any queue", grows(current, "of queue")),
    ]
}
