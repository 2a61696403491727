//! Columns that cannot be run: all of them are named at once, each with its reason.

use fairrate_experiment::columns::Column;
use fairrate_report::index::RefusedColumn;
use fairrate_scenario::ScenarioError;

use crate::failure::Failure;

/// Largest number of columns with the same reason that are named.
const MAX_NAMED: usize = 8;

/// The columns of a comparison that the scenario refuses, in their order.
#[derive(Default)]
pub struct Refused {
    columns: Vec<(String, ScenarioError)>,
}

impl Refused {
    /// Records the error of a column, unless there is one of it already.
    pub fn add(&mut self, column: &Column, error: ScenarioError) {
        let name =
            [&column.label, column.cc.as_ref().unwrap_or(&column.name)].into_iter().find(|name| !name.is_empty());
        let name = name.map_or_else(|| "the scenario".to_owned(), String::clone);
        if !self.columns.iter().any(|(known, _)| *known == name) {
            self.columns.push((name, error));
        }
    }

    /// Returns `true` if no column is refused.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the columns for `compare.json`.
    pub fn entries(&self) -> Vec<RefusedColumn> {
        let entry = |(label, error): &(String, ScenarioError)| RefusedColumn {
            label: label.clone(),
            reason: error.to_string(),
        };
        self.columns.iter().map(entry).collect()
    }

    /// Returns a sentence a reason, for warnings.
    pub fn sentences(&self) -> Vec<String> {
        self.by_reason().iter().map(|(names, error)| format!("left out: {}: {error}", named(names))).collect()
    }

    /// Returns the failure of a comparison of `n_columns`. If all are refused for the same reason, it is the scenario's
    /// own. Where `may_skip` is set, it advises `--skip-refused` if there are other columns.
    pub fn failure(self, n_columns: usize, may_skip: bool) -> Failure {
        let reasons = self.by_reason();
        if let [(names, error)] = reasons.as_slice()
            && names.len() == n_columns
        {
            return Failure::Scenario((*error).clone());
        }
        let each = reasons.iter().map(|(names, error)| {
            let help =
                if error.first_help().is_empty() { String::new() } else { format!("\n  {}", error.first_help()) };
            format!("{}: {}{error}{help}", named(names), place(error))
        });
        let each = each.collect::<Vec<_>>().join("\n");
        let has_rest = may_skip && self.columns.len() < n_columns;
        let rest = if has_rest { "\nleave them out, or go on without them: --skip-refused" } else { "" };
        Failure::Refused { n_refused: self.columns.len(), n_columns, each: each + rest }
    }

    /// Returns the reasons, each with the names of its columns, in their order.
    fn by_reason(&self) -> Vec<(Vec<&str>, &ScenarioError)> {
        let mut all: Vec<(Vec<&str>, &ScenarioError)> = Vec::new();
        for (name, error) in &self.columns {
            match all.iter_mut().find(|(_, known)| known.to_string() == error.to_string()) {
                Some((names, _)) => names.push(name),
                None => all.push((vec![name], error)),
            }
        }
        all
    }
}

/// Returns the file, line and column of the first problem, before a colon; empty without a place.
fn place(error: &ScenarioError) -> String {
    let problems = error.problems();
    let place = problems.first().and_then(|p| Some((p.source.as_ref()?, p.line?, p.column?)));
    place.map_or_else(String::new, |(source, line, column)| format!("{source}:{line}:{column}: "))
}

/// Returns names in a row, the first ones of many.
fn named(names: &[&str]) -> String {
    let (shown, more) = names.split_at(names.len().min(MAX_NAMED));
    let rest = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!("{}{rest}", shown.join(", "))
}
