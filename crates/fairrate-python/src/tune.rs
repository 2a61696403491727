//! Suggested ranges of parameters, for `fairrate.tune`.

use fairrate_control::{ALGORITHMS, AlgorithmConfig, Param, ParamKind, Parameters, Profile, Scale};
use pyo3::prelude::*;

/// A suggested range: its ends as written in TOML, and `true` for a logarithmic scale.
type Suggestion = (&'static str, &'static str, bool);

/// Returns the numeric parameters of a built-in algorithm, each with its suggested range; `None` if no algorithm is
/// called `name`.
#[pyfunction]
pub fn tune_ranges(name: &str) -> Option<Vec<(&'static str, Option<Suggestion>)>> {
    let info = ALGORITHMS.iter().find(|info| info.name == name)?;
    let params = AlgorithmConfig::by_name(info.name, Profile::Paper)?.params();
    let is_numeric = |p: &Param| !matches!(p.kind, ParamKind::Bool | ParamKind::Choice(_));
    let suggestion = |p: Param| (p.name, p.tune.map(|t| (t.low, t.high, t.scale == Scale::Log)));
    Some(params.into_iter().filter(is_numeric).map(suggestion).collect())
}
