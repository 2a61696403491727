//! The null test of claims: which of a figure's claims hold although algorithms have one another's points.
//!
//! A claim that holds then tells nothing of the algorithm that it names. Its verdict is [`Verdict::Vacuous`], and it
//! does not count as reproduced.

use std::collections::{BTreeMap, BTreeSet};

use fairrate_sim::rng::{Purpose, Stream};

use crate::claim::{Claim, Verdict};
use crate::experiment::{Run, Work};
use crate::figure::{Figure, Scale};
use crate::points::Points;

/// Largest number of algorithms of which all orders are tried, their own among them. Of more, as many are drawn.
const ALL_OF: usize = 5;
/// Number of ways in which the algorithms of an experiment exchange their points: a multiple of the orders of up to
/// [`ALL_OF`] algorithms, so that each order counts as often as any other.
const EXCHANGES: u64 = 120;
/// Number of these ways in which a claim that lets equality pass must not hold. A claim that one algorithm is not above
/// another holds in half of all orders; of 120 that are drawn, in two standard deviations less.
const BY_CHANCE: usize = 49;
/// The algorithm that controls nothing. It stands beside the one algorithm of an experiment, for this test alone.
const NOTHING: &str = "line-rate";

/// The algorithm of each line, by experiment and line.
type Algorithms = BTreeMap<(String, String), String>;
/// The algorithms of each experiment, each with the line that has its points.
type Lines<'a> = BTreeMap<&'a str, Vec<(&'a str, &'a str)>>;

/// Returns `runs` and, for each experiment, its first run with hosts that send at line rate.
pub fn with_line_rate(mut runs: Vec<Run>) -> Vec<Run> {
    let mut names = BTreeSet::new();
    let first = runs.iter().filter(|run| names.insert(run.name.clone()));
    let added: Vec<Run> = first.filter_map(|run| run.under(NOTHING)).collect();
    runs.extend(added);
    runs
}

impl Figure {
    /// Returns the claims with the values measured in `points`. Those that hold whatever the algorithm are vacuous.
    ///
    /// A claim is vacuous if it is reproduced in more than half of the ways in which algorithms exchange their points
    /// within each experiment; or, if it is also reproduced whichever algorithm's points all have, in as many as chance
    /// gives: where a rule lets equality pass, half of the orders pass it. Nothing is vacuous without two algorithms.
    pub fn judged(&self, points: &Points) -> Vec<Claim> {
        let mut claims = (self.claims)(points);
        for claim in vacuous(self, points, &claims) {
            claims[claim].is_vacuous = true;
        }
        claims
    }
}

/// Returns the places of the vacuous ones among `claims`.
fn vacuous(figure: &Figure, points: &Points, claims: &[Claim]) -> Vec<usize> {
    let algorithms = algorithms(figure);
    let lines = lines(&algorithms, points);
    let Some(most) = lines.values().map(Vec::len).max().filter(|&n| 1 < n) else { return Vec::new() };
    let passes = |assign: &dyn Fn(usize) -> Vec<usize>| {
        let claims = (figure.claims)(&assigned(points, &algorithms, &lines, assign));
        claims.iter().map(|claim| claim.verdict() == Verdict::Reproduced).collect::<Vec<bool>>()
    };
    let alike: Vec<Vec<bool>> = (0..most).map(|one| passes(&|n| vec![one % n; n])).collect();
    let exchanged: Vec<Vec<bool>> = (0..EXCHANGES).map(|seed| passes(&|n| exchange(n, seed))).collect();
    let is_vacuous = |&i: &usize| {
        let n = exchanged.iter().filter(|passing| passing[i]).count();
        let is_alike = alike.iter().all(|passing| passing[i]);
        claims[i].verdict() == Verdict::Reproduced && (exchanged.len() / 2 < n || BY_CHANCE <= n && is_alike)
    };
    (0..claims.len()).filter(is_vacuous).collect()
}

/// Returns an order of `n` numbers: for up to [`ALL_OF`] the one with number `seed`, else a random one.
fn exchange(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    if n <= ALL_OF {
        let mut number = seed as usize;
        return (1..=n).rev().map(|left| (order.remove(number % left), number /= left).0).collect();
    }
    Stream::new(seed, n as u64, Purpose::Test).shuffle(&mut order);
    order
}

/// Returns the algorithms of a figure's simulations.
fn algorithms(figure: &Figure) -> Algorithms {
    let algorithm = |run: Run| match run.work {
        Work::Scenario { overrides, .. } => Some(((run.name, run.line), overrides.cc?)),
        Work::Calculation(_) | Work::Model { .. } => None,
    };
    (figure.runs)(&Scale::new(false, vec![1])).into_iter().filter_map(algorithm).collect()
}

/// Returns the algorithms of each experiment in `points`. The line of an algorithm is that of its own name, or the
/// first.
fn lines<'a>(algorithms: &'a Algorithms, points: &'a Points) -> Lines<'a> {
    let mut lines = Lines::new();
    for (name, line, ..) in points.iter() {
        let Some(algorithm) = algorithms.get(&(name.to_owned(), line.to_owned())) else { continue };
        let known = lines.entry(name).or_default();
        match known.iter_mut().find(|(other, _)| other == algorithm) {
            None => known.push((algorithm, line)),
            Some((_, of)) if line == algorithm => *of = line,
            Some(_) => {}
        }
    }
    lines
}

/// Returns the points in which all lines of algorithm `i` of an experiment with `n` algorithms have the points of
/// algorithm `assign(n)[i]`.
fn assigned(
    points: &Points,
    algorithms: &Algorithms,
    lines: &Lines<'_>,
    assign: &dyn Fn(usize) -> Vec<usize>,
) -> Points {
    let stand_in = |name: &str, line: &str| {
        let algorithm = algorithms.get(&(name.to_owned(), line.to_owned()))?;
        let known = &lines[name];
        let i = known.iter().position(|(other, _)| other == algorithm)?;
        let j = assign(known.len())[i];
        (i != j).then(|| known[j].1)
    };
    let mut all = Points::default();
    for (name, line, seed, point) in points.iter() {
        let stand_in = stand_in(name, line);
        let theirs = stand_in.map_or(Some(point), |other| points.of_seed(name, other, seed));
        if let Some(point) = theirs {
            all.add(name, line, seed, point.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use fairrate_report::panel::Panel;

    use super::*;
    use crate::claim::Rule;
    use crate::figure::Kind;
    use crate::points::Point;

    const TOML: &str = "duration = \"1ms\"";

    #[test]
    fn few_algorithms_exchange_in_all_ways() {
        for n in 2..=ALL_OF {
            let n_orders: usize = (1..=n).product();
            let orders: BTreeSet<Vec<usize>> = (0..EXCHANGES).map(|seed| exchange(n, seed)).collect();
            assert_eq!(orders.len(), n_orders, "{n}: {orders:?}");
            let own = (0..EXCHANGES).filter(|&seed| exchange(n, seed).is_sorted()).count();
            assert_eq!(own * n_orders, EXCHANGES as usize, "each order counts as often");
        }
    }

    fn runs(_: &Scale) -> Vec<Run> {
        let of = |cc: &str| Run::of("here", TOML, cc, &[], |_| Point::default());
        vec![of("powertcp"), of("hpcc"), of("powertcp").called("powertcp, changed"), of("timely")]
    }

    /// Returns three claims: a queue of half of HPCC's, a queue below a bound that all keep, and a queue with one thing
    /// changed.
    fn claims(points: &Points) -> Vec<Claim> {
        let queue = |line: &str| points.mean("here", line, "queue");
        let ratio = queue("powertcp").zip(queue("hpcc")).map(|(a, b)| a / b);
        let changed = queue("powertcp, changed").zip(queue("powertcp")).map(|(a, b)| a / b);
        vec![
            Claim::exact("half", "", Rule::AtMost(0.6), "", ratio),
            Claim::exact("bound", "", Rule::AtMost(100.0), "KB", queue("powertcp")),
            Claim::exact("changed", "", Rule::AtMost(0.9), "", changed),
        ]
    }

    const FIGURE: Figure = Figure { id: "a/b", title: "", kind: Kind::Simulation, quick_s: 1, runs, panels, claims };

    fn panels(_: &Points) -> Vec<Panel> {
        Vec::new()
    }

    #[test]
    fn a_claim_that_any_algorithm_bears_out_is_vacuous() {
        let mut points = Points::default();
        for (line, queue) in [("powertcp", 10.0), ("hpcc", 20.0), ("timely", 90.0), ("powertcp, changed", 5.0)] {
            points.add("here", line, None, Point::of([("queue", queue)]));
        }
        let verdicts: Vec<Verdict> = FIGURE.judged(&points).iter().map(Claim::verdict).collect();
        // Of the six orders of three queues, two leave the first at 0.6 of the second or below it; a claim on two
        // readings of one algorithm is about neither.
        assert_eq!(verdicts, [Verdict::Reproduced, Verdict::Vacuous, Verdict::Reproduced]);
    }

    #[test]
    fn of_many_algorithms_orders_are_drawn() {
        let orders: BTreeSet<Vec<usize>> = (0..EXCHANGES).map(|seed| exchange(9, seed)).collect();
        assert!(100 < orders.len());
        assert_eq!((exchange(1, 0), exchange(0, 0)), (vec![0], vec![]));
    }

    #[test]
    fn each_experiment_gets_one_run_at_line_rate() {
        let runs = with_line_rate(runs(&Scale::new(false, vec![1])));
        assert_eq!(runs.iter().map(|run| run.line.as_str()).filter(|&line| line == NOTHING).count(), 1);
    }
}
