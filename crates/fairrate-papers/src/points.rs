//! The results of runs: numbers and series, by name.

use std::collections::{BTreeMap, BTreeSet};

use fairrate_report::bootstrap::Estimate;
use fairrate_report::series::peaks;
use serde::{Deserialize, Serialize};

/// The result of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Numbers by name; values that are not finite are left out.
    pub numbers: BTreeMap<String, f64>,
    /// Pairs of x and y.
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
    /// Names of the series that a written table has from this seed even if it is not the first.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub of_each_seed: BTreeSet<String>,
}

impl Point {
    /// Returns a point with those of `numbers` that are finite.
    pub fn of<const N: usize>(numbers: [(&str, f64); N]) -> Self {
        let finite = numbers.into_iter().filter(|(_, value)| value.is_finite());
        Self { numbers: finite.map(|(name, value)| (name.to_owned(), value)).collect(), ..Self::default() }
    }

    /// Returns the point with a series.
    #[must_use]
    pub fn with(mut self, name: &str, series: Vec<(f64, f64)>) -> Self {
        self.series.insert(name.to_owned(), series);
        self
    }

    /// Returns the point with a series that is kept of each seed, for the range over seeds. Its x are those of all
    /// seeds.
    #[must_use]
    pub fn with_each_seed(mut self, name: &str, series: Vec<(f64, f64)>) -> Self {
        self.of_each_seed.insert(name.to_owned());
        self.with(name, series)
    }

    /// Returns the point with its numbers alone, for a run that is not drawn.
    #[must_use]
    pub fn without_series(self) -> Self {
        Self { numbers: self.numbers, ..Self::default() }
    }
}

/// Returns about `most` points of a series, at its [`peaks`].
pub fn thinned(series: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let y: Vec<f64> = series.iter().map(|point| point.1).collect();
    peaks(&y, most).into_iter().map(|i| series[i]).collect()
}

/// A point with its seed.
type Seeded = (Option<u64>, Point);

/// The results of all runs of a figure: by name of the run and of the line, in the order of seeds.
#[derive(Clone, Debug, Default)]
pub struct Points {
    points: BTreeMap<(String, String), Vec<Seeded>>,
}

impl Points {
    /// Adds the result of a run.
    pub fn add(&mut self, name: &str, line: &str, seed: Option<u64>, point: Point) {
        let of_line = self.points.entry((name.to_owned(), line.to_owned())).or_default();
        of_line.push((seed, point));
        of_line.sort_by_key(|(seed, _)| *seed);
    }

    /// Adds all points of `others`, whose numbers and series replace those of the same name here.
    pub fn extend(&mut self, others: Self) {
        for ((name, line), of_line) in others.points {
            for (seed, point) in of_line {
                let here = self.points.entry((name.clone(), line.clone())).or_default();
                match here.iter_mut().find(|(other, _)| *other == seed) {
                    None => self.add(&name, &line, seed, point),
                    Some((_, here)) => {
                        here.numbers.extend(point.numbers);
                        here.series.extend(point.series);
                        here.of_each_seed.extend(point.of_each_seed);
                    }
                }
            }
        }
    }

    /// Returns `true` if there is a point of this run and line from `seed`.
    pub fn has(&self, name: &str, line: &str, seed: Option<u64>) -> bool {
        let of_line = self.points.get(&(name.to_owned(), line.to_owned()));
        of_line.is_some_and(|of_line| of_line.iter().any(|(other, _)| *other == seed))
    }

    /// Returns all points: by name of the run and of the line, in the order of seeds.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, Option<u64>, &Point)> {
        self.points.iter().flat_map(|((name, line), of_line)| {
            of_line.iter().map(|(seed, point)| (name.as_str(), line.as_str(), *seed, point))
        })
    }

    /// Returns the point of `seed` of a line in a run.
    pub fn of_seed(&self, name: &str, line: &str, seed: Option<u64>) -> Option<&Point> {
        let of_line = self.points.get(&(name.to_owned(), line.to_owned()))?;
        of_line.iter().find(|(other, _)| *other == seed).map(|(_, point)| point)
    }

    fn of(&self, name: &str, line: &str) -> impl Iterator<Item = &Point> {
        self.points.get(&(name.to_owned(), line.to_owned())).into_iter().flatten().map(|(_, point)| point)
    }

    /// Returns the number `what` of a line in a run, one value per seed. Seeds without it are left out.
    pub fn values(&self, name: &str, line: &str, what: &str) -> Vec<f64> {
        self.of(name, line).filter_map(|point| point.numbers.get(what).copied()).collect()
    }

    /// Returns the ratios of the number `what` of `line` to that of the line `over`, seed by seed.
    pub fn ratios(&self, name: &str, line: &str, over: &str, what: &str) -> Vec<f64> {
        let (values, base) = (self.values(name, line, what), self.values(name, over, what));
        values.iter().zip(&base).filter(|(_, base)| **base != 0.0).map(|(value, base)| value / base).collect()
    }

    /// Returns the mean over seeds of the number `what`.
    pub fn mean(&self, name: &str, line: &str, what: &str) -> Option<f64> {
        Estimate::of(&self.values(name, line, what)).map(|estimate| estimate.mean)
    }

    /// Returns the series `what` of the first seed that has it.
    pub fn series(&self, name: &str, line: &str, what: &str) -> &[(f64, f64)] {
        self.each_seed(name, line, what).next().map_or(&[], Vec::as_slice)
    }

    /// Returns the series `what` of each seed that has it.
    pub fn each_seed(&self, name: &str, line: &str, what: &str) -> impl Iterator<Item = &Vec<(f64, f64)>> {
        self.of(name, line).filter_map(move |point| point.series.get(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_thinned_to_its_peaks() {
        let series: Vec<(f64, f64)> = (0..1_000).map(|i| (f64::from(i), if i == 777 { 5.0 } else { 1.0 })).collect();
        assert_eq!(thinned(&series, 1_000), series);
        let thin = thinned(&series, 20);
        assert!(thin.len() <= 22 && thin.contains(&(777.0, 5.0)), "{thin:?}");
        assert!(thin.is_sorted_by_key(|point| point.0));
    }

    #[test]
    fn others_are_added_and_their_numbers_stand() {
        let of = |runs: &[(&str, u64, &str, f64)]| {
            let mut points = Points::default();
            for &(name, seed, what, y) in runs {
                points.add(name, "hpcc", Some(seed), Point::of([(what, y)]));
            }
            points
        };
        let mut points = of(&[("a", 1, "x", 1.0), ("a", 3, "x", 3.0), ("b", 1, "x", 4.0)]);
        points.extend(of(&[("a", 2, "x", 2.0), ("a", 3, "x", 5.0), ("b", 1, "y", 6.0)]));
        assert_eq!(points.values("a", "hpcc", "x"), [1.0, 2.0, 5.0]);
        assert_eq!((points.values("b", "hpcc", "x"), points.values("b", "hpcc", "y")), (vec![4.0], vec![6.0]));
        assert!(
            points.has("a", "hpcc", Some(2)) && !points.has("b", "hpcc", Some(2)) && !points.has("a", "rocc", Some(1))
        );
    }

    #[test]
    fn points_are_in_the_order_of_seeds_and_ratios_are_paired() {
        let mut points = Points::default();
        for (seed, a, b) in [(2, 6.0, 2.0), (1, 8.0, 4.0)] {
            points.add("run", "a", Some(seed), Point::of([("x", a), ("y", f64::NAN)]));
            points.add("run", "b", Some(seed), Point::of([("x", b)]));
        }
        assert_eq!(points.values("run", "a", "x"), [8.0, 6.0]);
        assert_eq!(points.ratios("run", "a", "b", "x"), [2.0, 3.0]);
        assert_eq!((points.mean("run", "b", "x"), points.values("run", "a", "y")), (Some(3.0), vec![]));
        assert!(points.series("run", "a", "x").is_empty() && points.values("run", "c", "x").is_empty());
    }
}
