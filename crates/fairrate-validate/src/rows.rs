//! The rows of a comparison with another simulator: numbers of theirs and ours, tolerances, verdicts and known causes.

use std::path::Path;

use fairrate_report::stats::{mean, sorted};
use serde::{Deserialize, Serialize};

/// Tolerance for the difference between ours and theirs: the larger of a part of their value and an absolute amount.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    pub relative: f64,
    pub absolute: f64,
}

impl Tolerance {
    /// Returns the tolerance of a part of their value.
    pub const fn relative(relative: f64) -> Self {
        Self { relative, absolute: 0.0 }
    }

    /// Returns the tolerance of an amount.
    pub const fn absolute(absolute: f64) -> Self {
        Self { relative: 0.0, absolute }
    }

    /// Returns `true` if `ours` is within the tolerance of `reference`.
    pub fn allows(self, reference: f64, ours: f64) -> bool {
        (ours - reference).abs() <= self.allowed(reference)
    }

    /// Returns the largest difference from `reference` that is within the tolerance.
    pub fn allowed(self, reference: f64) -> f64 {
        // A little slack, so that a difference of exactly the tolerance is inside despite rounding.
        (self.relative * reference.abs()).max(self.absolute) * (1.0 + 1e-9)
    }
}

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Inside,
    Outside,
    /// A metric without a tolerance; the row does not count.
    NoTolerance,
}

/// One line of the result.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub scenario: String,
    pub algorithm: String,
    pub metric: String,
    pub unit: &'static str,
    /// Their value.
    pub theirs: f64,
    /// Mean over our runs; `None` (or null) without a value, because a run failed or a flow did not finish.
    pub ours: Option<f64>,
    /// Smallest and largest value of our runs, if there are several.
    pub range: Option<(f64, f64)>,
    pub tolerance: Option<Tolerance>,
    pub verdict: Verdict,
    /// The cause if the row is outside, or what was tried to find it.
    pub cause: Option<String>,
}

/// The part of the range of our runs in a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// A value of theirs within the range is inside.
    Counts,
    /// The range is shown, and has no part.
    Shown,
}

impl Row {
    /// Returns the row of a metric with its unit, in a scenario under an algorithm: `theirs` beside the values of
    /// `ours` in each run. It is inside if the mean of ours is within `tolerance`, or `range` counts and has theirs.
    pub fn of(
        (scenario, algorithm): (&str, &str),
        (metric, unit): (&str, &'static str),
        (theirs, ours): (f64, &[f64]),
        tolerance: Option<Tolerance>,
        range: Range,
    ) -> Self {
        let average = mean(ours).filter(|average| average.is_finite());
        let values = sorted(ours.iter().copied());
        let extremes = average.and_then(|_| values.first().copied().zip(values.last().copied()));
        let is_between = range == Range::Counts && extremes.is_some_and(|(low, high)| low <= theirs && theirs <= high);
        let verdict = match tolerance {
            None => Verdict::NoTolerance,
            Some(_) if is_between => Verdict::Inside,
            Some(tolerance) if average.is_some_and(|ours| tolerance.allows(theirs, ours)) => Verdict::Inside,
            Some(_) => Verdict::Outside,
        };
        Self {
            scenario: scenario.to_owned(),
            algorithm: algorithm.to_owned(),
            metric: metric.to_owned(),
            unit,
            theirs,
            ours: average,
            range: extremes.filter(|_| 1 < values.len()),
            tolerance,
            verdict,
            cause: None,
        }
    }
}

/// Known causes of rows that are outside. They explain; they do not make a row count as inside.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Findings {
    #[serde(default)]
    finding: Vec<Finding>,
}

/// The cause of some rows; names may end in `*`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    scenario: String,
    algorithm: String,
    metric: String,
    /// The reason why rows are outside.
    pub cause: String,
    /// Keys of the scenario, as for `--set`, that reproduce the cause in our simulator, so that it can be measured.
    #[serde(default)]
    pub set: Vec<String>,
}

impl Findings {
    /// Reads the file of findings.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = crate::suite::read(path)?;
        toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Returns the finding that explains a row outside, if there is one.
    pub fn explain(&self, scenario: &str, algorithm: &str, metric: &str) -> Option<&Finding> {
        let fits = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        let mine =
            |f: &&Finding| fits(&f.scenario, scenario) && fits(&f.algorithm, algorithm) && fits(&f.metric, metric);
        self.finding.iter().find(mine)
    }

    /// Sets the causes of the rows that are outside.
    pub fn explain_all(&self, rows: &mut [Row]) {
        for row in rows.iter_mut().filter(|row| row.verdict == Verdict::Outside) {
            row.cause = self.explain(&row.scenario, &row.algorithm, &row.metric).map(|finding| finding.cause.clone());
        }
    }
}
