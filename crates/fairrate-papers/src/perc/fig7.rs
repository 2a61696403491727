//! Figure 7: a chain of three bottlenecks under synchronous PERC. All flows start at once, on idle links.

use fairrate_allocate::SyncPerc;
use fairrate_report::panel::{Axis, Panel};

use super::chain::{FLOWS, OPTIMUM, chain, iterations, with_optimum, worst_overload_bps};
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "perc/fig7",
    title: "A chain of three bottlenecks: rates by synchronous PERC",
    kind: Kind::Calculation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

const RTT_US: f64 = 24.0;
const SHOWN: usize = 5;

fn runs(_: &Scale) -> Vec<Run> {
    vec![Run::calculated("chain", "perc", synchronous)]
}

fn synchronous() -> Point {
    let chain = chain();
    let perc = SyncPerc::new(&chain).expect("it is sound");
    let settled = perc.clone().settle(100).expect("this chain settles in three iterations");
    let offered = perc.clone().take(settled.iterations).map(|i| worst_overload_bps(&chain, &i.rates_bps));
    let mut numbers =
        Point::of([("us", settled.iterations as f64 * RTT_US), ("overload", offered.fold(0.0, f64::max) * 1e-9)])
            .numbers;
    let rates = FLOWS.iter().zip(&settled.last.rates_bps);
    numbers.extend(rates.map(|((name, _), rate)| ((*name).to_owned(), rate * 1e-9)));
    Point { numbers, ..iterations(&perc, SHOWN, &FLOWS.map(|(name, _)| (name, 0.0))) }
}

fn panels(points: &Points) -> Vec<Panel> {
    let line = |(name, look): (&str, &'static str)| {
        let rates: Vec<_> = points.series("chain", "perc", name).iter().map(|&(i, rate)| (i * RTT_US, rate)).collect();
        Line { name: name.to_owned(), ..Line::of(look, &rates) }
    };
    let y = Axis::new("rate (Gb/s)").showing(0.0, 60.0);
    let title = "A and B on 60 Gb/s, B and C on 30, C and D on 10";
    let mut panel = panel(title, Axis::new("time at an iteration a round trip (us)"), y, FLOWS.map(line).into());
    panel.series.iter_mut().for_each(|series| series.step = true);
    vec![with_optimum(panel, (0.0, SHOWN as f64 * RTT_US))]
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |what: &str| points.mean("chain", "perc", what);
    let rate = |((name, _), want): ((&str, &str), f64)| {
        let sentence = format!("the rate of {name} is its max-min rate");
        Claim::exact(&name.to_lowercase(), &sentence, Rule::About(want, 0.0), "Gb/s", of(name))
    };
    let mut claims: Vec<Claim> = FLOWS.into_iter().zip(OPTIMUM).map(rate).collect();
    let time = "all flows are at their rates \"within 100 us\", at 24 us an iteration";
    claims.push(Claim::exact("us", time, Rule::AtMost(100.0), "us", of("us")));
    let most = "the most that is offered beyond a link on the way";
    claims.push(Claim::exact("overload", most, Rule::Words, "Gb/s", of("overload")));
    claims
}
