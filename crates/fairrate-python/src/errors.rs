//! Errors of fairrate as exceptions of the package: the classes are in `python/fairrate/_errors.py`.

use std::path::Path;

use fairrate_experiment::columns::ColumnsError;
use fairrate_report::index::IndexError;
use fairrate_report::publish::PublishError;
use fairrate_results::ResultsError;
use fairrate_scenario::{ProblemParts, ScenarioError};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Creates an instance of a class of `_errors.py`, with attributes.
fn raise(py: Python<'_>, class: &str, message: &str, attributes: &Bound<'_, PyDict>) -> PyErr {
    let made = py.import("fairrate._errors").and_then(|m| m.getattr(class)?.call((message,), Some(attributes)));
    made.map_or_else(|error| error, PyErr::from_value)
}

fn dict<'py>(py: Python<'py>, items: &[(&str, Option<&str>)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in items {
        dict.set_item(key, value)?;
    }
    Ok(dict)
}

/// Creates an exception of a class with code, path and suggestion.
fn plain(py: Python<'_>, class: &str, message: &str, code: &str, path: Option<&Path>, suggestion: &str) -> PyErr {
    let path = path.map(|p| p.display().to_string());
    let attributes = [("code", Some(code)), ("path", path.as_deref()), ("suggestion", Some(suggestion))];
    match dict(py, &attributes) {
        Ok(attributes) => raise(py, class, message, &attributes),
        Err(error) => error,
    }
}

/// Creates a `fairrate.ScenarioError`, with every problem.
pub fn of_scenario(py: Python<'_>, error: &ScenarioError) -> PyErr {
    let mut problems = error.problems().into_iter().map(|problem| of_problem(py, &problem)).collect::<Vec<_>>();
    let others = problems.split_off(1);
    let first = problems.remove(0);
    match first.value(py).setattr("others", others.iter().map(|e| e.value(py)).collect::<Vec<_>>()) {
        Ok(()) => first,
        Err(error) => error,
    }
}

fn of_problem(py: Python<'_>, problem: &ProblemParts) -> PyErr {
    // A position in an argument is not one in a file.
    let in_file = problem.source.as_deref().is_some_and(|source| !source.starts_with("--"));
    let texts = [
        ("code", Some(problem.code)),
        ("path", problem.source.as_deref().filter(|_| in_file)),
        ("key", problem.key.as_deref()),
        ("suggestion", Some(problem.help.as_str())),
    ];
    let attributes = dict(py, &texts).and_then(|attributes| {
        attributes.set_item("line", problem.line.filter(|_| in_file))?;
        attributes.set_item("column", problem.column.filter(|_| in_file))?;
        Ok(attributes)
    });
    attributes.map_or_else(|error| error, |attributes| raise(py, "ScenarioError", &problem.message, &attributes))
}

/// Creates a `fairrate.ResultsError`.
pub fn of_results(py: Python<'_>, error: &ResultsError) -> PyErr {
    use miette::Diagnostic;
    let text = |part: Option<Box<dyn std::fmt::Display + '_>>| part.map(|p| p.to_string()).unwrap_or_default();
    plain(py, "ResultsError", &error.to_string(), &text(error.code()), Some(error.path()), &text(error.help()))
}

/// Creates a `fairrate.ResultsError`, for results in `dir` of which a command has failed.
pub fn of_diagnostic(py: Python<'_>, error: &(dyn miette::Diagnostic + Send + Sync), dir: &Path) -> PyErr {
    let text = |part: Option<Box<dyn std::fmt::Display + '_>>| part.map(|p| p.to_string()).unwrap_or_default();
    plain(py, "ResultsError", &error.to_string(), &text(error.code()), Some(dir), &text(error.help()))
}

/// Creates a `fairrate.ScenarioError` about an argument that is not part of the scenario.
pub fn of_columns(py: Python<'_>, error: &ColumnsError) -> PyErr {
    let code = match error {
        ColumnsError::UnknownName { .. } => "cli::unknown_name",
        ColumnsError::Usage { .. } => "cli::usage",
    };
    plain(py, "ScenarioError", &error.to_string(), code, None, error.help())
}

/// Creates a `fairrate.RunError`, for a failed run.
pub fn of_run(py: Python<'_>, cause: &str, dir: &Path) -> PyErr {
    plain(py, "RunError", &format!("the run failed: {cause}"), "run::failed", Some(dir), "")
}

/// Creates a `fairrate.ResultsError`, for a picture that cannot be made.
pub fn of_picture(py: Python<'_>, error: &fairrate_picture::Error) -> PyErr {
    plain(py, "ResultsError", &error.to_string(), "picture::failed", None, "")
}

/// Creates an `OSError`, for a page that cannot be written.
pub fn of_publish(error: &PublishError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// Creates the exception of a comparison that cannot be read or written.
pub fn of_index(py: Python<'_>, error: &IndexError) -> PyErr {
    match error {
        IndexError::File(error) => of_publish(error),
        IndexError::Results(error) => of_results(py, error),
    }
}

/// Creates a `fairrate.ResultsError`, for a comparison in `dir` without a run that has ended.
pub fn of_empty(py: Python<'_>, dir: &Path) -> PyErr {
    let message = format!("`{}` has no run that has ended", dir.display());
    plain(py, "ResultsError", &message, "results::empty", Some(dir), "run the same comparison again")
}
