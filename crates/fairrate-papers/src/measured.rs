//! The results of all runs of a figure as one table, from which the figure can be drawn without running anything.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::points::{Point, Points, thinned};
use crate::store;

/// The precision of a written table.
#[derive(Clone, Copy)]
struct Detail {
    /// Digits after the first of each number.
    digits: usize,
    /// Largest number of points of a series.
    points: usize,
}

const FULL: Detail = Detail { digits: 6, points: usize::MAX };
/// The precision for pages of documents.
const COMPACT: Detail = Detail { digits: 4, points: 240 };

/// Facts about the runs beside their numbers: the first line of the table, as JSON after `# `.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The figure, as `powertcp/fig8`.
    pub figure: String,
    /// Set when the runs were the smaller runs of `quick`.
    pub quick: bool,
    /// Number of runs.
    pub runs: usize,
    /// Time the runs took, in seconds on one core.
    pub seconds: f64,
    /// Hash of the sources that made them.
    pub sources: String,
    /// The figure whose table has the numbers that this figure's own table lacks, if it lacks any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_of: Option<String>,
}

/// A number of a run, or, with an `x`, a point of one of its series.
#[derive(Serialize, Deserialize)]
struct Row {
    run: String,
    line: String,
    seed: Option<u64>,
    what: String,
    x: Option<f64>,
    y: f64,
}

/// A run's name, line and seed.
type Key = (String, String, Option<u64>);

impl About {
    /// Returns the facts about these runs and those of `others` that these lack: together they are `runs`. Of the time
    /// of `others` the share of these runs is counted.
    #[must_use]
    pub fn with(self, others: &Self, runs: usize) -> Self {
        let kept = runs.saturating_sub(self.runs) as f64 / others.runs.max(1) as f64;
        Self { runs, seconds: (self.seconds + kept * others.seconds).round(), ..self }
    }

    /// Returns the facts about runs by this program.
    pub fn new(figure: &str, quick: bool, runs: usize, seconds: f64) -> Self {
        let (figure, sources) = (figure.to_owned(), store::sources(figure));
        Self { figure, quick, runs, seconds: seconds.round(), sources, rows_of: None }
    }
}

/// Returns the table as CSV. Of a series it has the first seed alone, unless the point keeps it
/// [of each seed](Point::of_each_seed).
pub fn write(about: &About, points: &Points) -> String {
    detailed(about, points, FULL)
}

/// Returns the same table with five digits per number and a few hundred points per series.
pub fn compact(about: &About, points: &Points) -> String {
    detailed(about, points, COMPACT)
}

fn detailed(about: &About, points: &Points, detail: Detail) -> String {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let mut last = None;
    for (run, line, seed, point) in points.iter() {
        let is_first = last.replace((run, line)) != Some((run, line));
        let row = |what: &str, x: Option<f64>, y: f64| {
            let (run, line, what) = (run.to_owned(), line.to_owned(), what.to_owned());
            Row { run, line, seed, what, x: x.map(|x| rounded(x, detail.digits)), y: rounded(y, detail.digits) }
        };
        let numbers = point.numbers.iter().map(|(what, &y)| row(what, None, y));
        let series = point.series.iter().filter(|(what, _)| is_first || point.of_each_seed.contains(*what));
        let series = series
            .flat_map(|(what, pairs)| thinned(pairs, detail.points).into_iter().map(|(x, y)| row(what, Some(x), y)));
        numbers.chain(series).for_each(|row| csv.serialize(row).expect("memory takes it"));
    }
    let table = csv.into_inner().expect("memory takes it");
    let about = serde_json::to_string(about).expect("it has no map");
    format!("# {about}\n{}", String::from_utf8_lossy(&table))
}

/// Removes the rows of `table` that `other_table` has too, and names that table's figure in the first line. Both are
/// texts of [`write()`] or [`compact`]. Returns `None` if `other_table` has fewer than half of the rows.
pub fn without_rows(table: &str, other: &About, other_table: &str) -> Option<String> {
    let (head, rows) = table.split_once('\n')?;
    let (columns, rows) = rows.split_once('\n')?;
    let theirs: HashSet<&str> = other_table.lines().skip(2).collect();
    let own: Vec<&str> = rows.lines().filter(|row| !theirs.contains(row)).collect();
    if rows.lines().count() < 2 * own.len() {
        return None;
    }
    let about: About = serde_json::from_str(head.strip_prefix("# ")?).ok()?;
    let about = About { rows_of: Some(other.figure.clone()), ..about };
    let lines = [format!("# {}", serde_json::to_string(&about).ok()?), columns.to_owned()];
    Some(lines.iter().map(String::as_str).chain(own).flat_map(|line| [line, "\n"]).collect())
}

/// Reads a table; if it refers to another figure for some numbers, `other` returns that figure's table.
///
/// # Errors
/// If one of the texts is not such a table, or `other` fails.
pub fn read_with(text: &str, other: impl FnOnce(&str) -> Result<String, String>) -> Result<(About, Points), String> {
    let (about, own) = read(text)?;
    let Some(figure) = &about.rows_of else { return Ok((about, own)) };
    let (_, mut points) = read(&other(figure)?)?;
    points.extend(own);
    Ok((about, points))
}

/// Reads a table that [`write()`] wrote.
///
/// # Errors
/// If the text is not such a table.
pub fn read(text: &str) -> Result<(About, Points), String> {
    let (head, table) = text.split_once('\n').unwrap_or_default();
    let head = head.strip_prefix("# ").ok_or("its first line does not say what it is of")?;
    let about: About = serde_json::from_str(head).map_err(|e| format!("its first line: {e}"))?;
    let mut of_runs: Vec<(Key, Point)> = Vec::new();
    for row in csv::Reader::from_reader(table.as_bytes()).deserialize() {
        let Row { run, line, seed, what, x, y } = row.map_err(|e| e.to_string())?;
        let key = (run, line, seed);
        if of_runs.last().is_none_or(|(last, _)| *last != key) {
            of_runs.push((key, Point::default()));
        }
        let (_, point) = of_runs.last_mut().expect("there is one");
        match x {
            None => drop(point.numbers.insert(what, y)),
            Some(x) => point.series.entry(what).or_default().push((x, y)),
        }
    }
    let mut points = Points::default();
    for ((run, line, seed), mut point) in of_runs {
        point.of_each_seed = point.series.keys().cloned().collect();
        points.add(&run, &line, seed, point);
    }
    Ok((about, points))
}

fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.digits$e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let mut points = Points::default();
        for seed in [1, 2] {
            let series = vec![(0.0, 1.0), (0.5, -2e-12)];
            let point = Point::of([("a, \"b\"", 0.1 + 0.2), ("c", 1e20)]).with("s", series.clone());
            let point = point.with_each_seed("each", series);
            points.add("60 %, here", "powertcp", Some(seed), point);
        }
        points.add("law", "hpcc", None, Point::of([("a", 4.0)]));
        let about = About::new("powertcp/fig2", true, 3, 1.4);
        let text = write(&about, &points);
        let (read_about, back) = read(&text).unwrap();
        assert_eq!((read_about, write(&about, &back)), (about, text));
        assert_eq!(back.values("60 %, here", "powertcp", "a, \"b\""), [0.3, 0.3]);
        assert_eq!(back.series("60 %, here", "powertcp", "s"), [(0.0, 1.0), (0.5, -2e-12)]);
        let seeds_of = |what| back.each_seed("60 %, here", "powertcp", what).count();
        assert_eq!((seeds_of("s"), seeds_of("each")), (1, 2));
    }

    #[test]
    fn numbers_that_another_table_has_are_read_from_there() {
        let table = |figure: &str, names: &[&str]| {
            let mut points = Points::default();
            for name in names {
                points.add(name, "hpcc", Some(1), Point::of([("y", f64::from(name.as_bytes()[0]))]));
            }
            let about = About::new(figure, false, names.len(), 1.0);
            let text = write(&about, &points);
            (about, text)
        };
        let (large_about, large) = table("rocc/fig15", &["a", "b", "c"]);
        for (names, own) in [(&["a"][..], &[][..]), (&["b", "d"], &["d,hpcc,1,y,,100.0"])] {
            let (_, small) = table("rocc/fig17", names);
            let short = without_rows(&small, &large_about, &large).unwrap();
            assert_eq!(short.lines().skip(2).collect::<Vec<_>>(), own);
            let (about, points) = read_with(&short, |figure| {
                assert_eq!(figure, "rocc/fig15");
                Ok(large.clone())
            })
            .unwrap();
            assert_eq!((about.figure.as_str(), about.runs), ("rocc/fig17", names.len()));
            assert!(names.iter().all(|name| points.values(name, "hpcc", "y") == [f64::from(name.as_bytes()[0])]));
            assert!(read_with(&short, |_| Err("there is none".to_owned())).is_err());
        }
        let (_, other) = table("rocc/fig17", &["a", "d", "e"]);
        assert_eq!(without_rows(&other, &large_about, &large), None, "most of it is its own");
    }

    #[test]
    fn what_is_no_table_is_named() {
        assert!(read("run,line\n").unwrap_err().contains("first line"));
        let text = write(&About::new("powertcp/fig2", true, 0, 0.0), &Points::default());
        assert!(read(&(text + "run,line,seed,what,x,y\na,b,1,c,,d\n")).is_err());
    }
}
