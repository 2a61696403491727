//! Figure 3: the trajectories of window and queue under the laws of section 2, from different initial states.
//!
//! Eq. 3 and 4, without the feedback's delay, in bandwidth-delay products and round-trip times. γ = 0.9, with one
//! update per round trip; β is not in the paper: a hundredth of a BDP, for all flows together.

use fairrate_report::panel::{Axis, Panel};

use super::{CURRENT, Feedback, LAWS, POWER, VOLTAGE};
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_level, with_marks};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig3",
    title: "Phase plots: voltage overshoots, current has no equilibrium, power has neither fault",
    kind: Kind::Calculation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

const GAMMA: f64 = 0.9;
const BETA: f64 = 0.01;
/// 100 Gb/s and 20 us: a bandwidth-delay product of 250 KB.
const BDP_KB: f64 = 250.0;
/// Windows at the start, in BDP. The part above 1 is in the queue.
const INITIAL: [f64; 6] = [0.4, 0.7, 1.3, 1.8, 2.5, 3.2];
/// Length of a step, and end of the calculation, in round-trip times.
const STEP: f64 = 1e-3;
const END: f64 = 400.0;
/// Largest number of points drawn of a trajectory: the rest is at its end.
const SHOWN: usize = 1_500;
/// Share of a BDP below which a window counts as losing throughput.
const LOSES: f64 = 0.995;

/// Returns dw/dt and dq/dt in BDP a round trip: eq. 3 and 4 with λ = w/θ, θ = 1 + q.
fn slopes(law: &Feedback, w: f64, q: f64) -> (f64, f64) {
    let arriving = w / (1.0 + q);
    let q_dot = if 0.0 < q || 1.0 < arriving { arriving - 1.0 } else { 0.0 };
    // Without a queue, telemetry still reports the sending rate; a gradient of RTTs does not.
    let current = if 0.0 < q || 1.0 < arriving || law.cc == CURRENT.cc { q_dot } else { arriving - 1.0 };
    (GAMMA * (w / (law.of)(q, current) - w + BETA), q_dot)
}

/// Returns the trajectory of (window, queue) by Heun's method.
fn trajectory(law: &Feedback, w: f64) -> Vec<(f64, f64)> {
    let (mut w, mut q) = (w, (w - 1.0).max(0.0));
    let mut states = vec![(w, q)];
    for _ in 0..(END / STEP) as usize {
        let (w1, q1) = slopes(law, w, q);
        let (w2, q2) = slopes(law, w + STEP * w1, (q + STEP * q1).max(0.0));
        w += STEP * (w1 + w2) / 2.0;
        q = (q + STEP * (q1 + q2) / 2.0).max(0.0);
        states.push((w, q));
    }
    states
}

fn runs(_: &Scale) -> Vec<Run> {
    let run = |law: Feedback| {
        Run::calculated("phase", law.name, move || {
            let all = INITIAL.map(|w| trajectory(&law, w));
            let ends = all.each_ref().map(|states| *states.last().expect("it has a start"));
            // Only trajectories that begin with a full pipe count.
            let full: Vec<_> = all.iter().filter(|states| 1.0 <= states[0].0).collect();
            let losing = full.iter().filter(|states| states.iter().any(|state| state.0 < LOSES)).count();
            let point = Point::of([
                ("range of w", range(ends.map(|end| end.0))),
                ("range of q", range(ends.map(|end| end.1))),
                ("w", ends[0].0),
                ("q", ends[0].1),
                ("losing", losing as f64 / full.len() as f64),
            ]);
            let in_kb = |states: &Vec<(f64, f64)>| {
                let (first, last) = (states[0], *states.last().expect("it has a start"));
                let some = states.iter().copied().step_by(10).take(SHOWN);
                let ends = [first].into_iter().chain(some).chain([last]);
                ends.map(|(w, q)| (q * BDP_KB, w * BDP_KB)).collect()
            };
            (0..).zip(&all).fold(point, |point, (i, states)| point.with(&format!("from {i}"), in_kb(states)))
        })
    };
    LAWS.map(run).into()
}

fn range(values: [f64; INITIAL.len()]) -> f64 {
    let most = values.into_iter().fold(f64::MIN, f64::max);
    most - values.into_iter().fold(f64::MAX, f64::min)
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |(letter, law): (char, &Feedback)| {
        let all: Vec<&[(f64, f64)]> =
            (0..INITIAL.len()).map(|i| points.series("phase", law.name, &format!("from {i}"))).collect();
        let line = |(i, states): (usize, &&[(f64, f64)])| Line {
            name: if i == 0 { "trajectory".to_owned() } else { String::new() },
            ..Line::of(law.cc, states)
        };
        let lines = all.iter().enumerate().map(line).collect();
        let (x, y) = (Axis::new("queue (KB)"), Axis::new("window of all flows (KB)").showing(0.0, 1_000.0));
        let mut panel = panel(format!("({letter}) {}", law.name), x.showing(0.0, 800.0), y, lines);
        // All trajectories are of one law: they look the same.
        let style = panel.series[0].style;
        panel.series.iter_mut().for_each(|series| series.style = style);
        let panel = with_level(panel, "BDP", BDP_KB, (0.0, 800.0));
        let starts: Vec<_> = all.iter().filter_map(|states| states.first().copied()).collect();
        let ends: Vec<_> = all.iter().filter_map(|states| states.last().copied()).collect();
        let panel = with_marks(panel, "start", 0, &starts);
        with_marks(panel, "end", 2, &ends)
    };
    ('a'..).zip(&LAWS).map(draw).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |law: &Feedback, what: &str| points.mean("phase", law.name, what);
    let exact = |id, sentence, rule, value| Claim::exact(id, sentence, rule, "BDP", value);
    // The axis is three BDP long: ends within a hundredth of a BDP are one point on it.
    let one_point = Rule::AtMost(0.01);
    let equilibrium = |more: f64| Rule::About(more, 0.01);
    vec![
        exact("a-unique", "voltage: one equilibrium (range of final queues)", one_point, of(&VOLTAGE, "range of q")),
        exact(
            "b-many",
            "current: no unique equilibrium (range of final queues)",
            Rule::AtLeast(0.1),
            of(&CURRENT, "range of q"),
        ),
        exact("c-unique", "power: one equilibrium (range of final queues)", one_point, of(&POWER, "range of q")),
        exact("c-w", "power: w_e = b\u{3c4} + \u{3b2} (Theorem 1)", equilibrium(1.0 + BETA), of(&POWER, "w")),
        exact("c-q", "power: q_e = \u{3b2} (Theorem 1)", equilibrium(BETA), of(&POWER, "q")),
        Claim::exact(
            "a-loses",
            "voltage: loses throughput \"almost for every initial point\" (share of those with a full pipe)",
            Rule::AtLeast(0.75),
            "",
            of(&VOLTAGE, "losing"),
        ),
        Claim::exact("c-loses", "power: loses none", Rule::AtMost(0.0), "", of(&POWER, "losing")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eq. 7 with eq. 6 is dw/dt = γ(1 + β - w) where the pipe is full (Property 1): an exponential.
    #[test]
    fn power_is_the_window() {
        let states = trajectory(&POWER, 2.5);
        for (i, (w, _)) in states.iter().enumerate().take(10_000).step_by(500) {
            let closed = 1.0 + BETA + (2.5 - 1.0 - BETA) * (-GAMMA * STEP * i as f64).exp();
            assert!((w - closed).abs() < 1e-5, "{i}: {w} {closed}");
        }
    }

    /// Near its equilibrium voltage-based control is s\u{b2} + s + \u{3b3} = 0, whose roots are complex: it overshoots.
    #[test]
    fn voltage_overshoots_and_power_does_not() {
        let least = |law| trajectory(law, 2.5).iter().map(|state| state.0).fold(f64::MAX, f64::min);
        assert!(least(&VOLTAGE) < 0.9 && 1.0 < least(&POWER));
    }
}
