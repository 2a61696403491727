//! The native half of the Python package `fairrate`: it reads scenarios, runs them and hands their tables to Python.
//! The functions for users are written in Python, in `python/fairrate`, over those here.

#![allow(clippy::needless_pass_by_value)] // Python hands arguments over by value.

mod asking;
mod cli;
mod coexist;
mod controller;
mod errors;
mod explain;
mod parameters;
mod picture;
mod plan;
mod port;
mod report;
mod results;
mod run;
mod scenario;
mod stats;
mod table;
mod trace;
mod tune;
mod views;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::PyModuleMethods;
    #[pymodule_export]
    use super::asking::{not_of_flows, values_at};
    #[pymodule_export]
    use super::cli::main;
    #[pymodule_export]
    use super::coexist::{coexistence, coexistence_metrics, coexistence_share, coexistence_verdict};
    #[pymodule_export]
    use super::controller::{PlugIn, PyAllowance};
    #[pymodule_export]
    use super::explain::{explain, explain_iteration};
    #[pymodule_export]
    use super::picture::picture;
    #[pymodule_export]
    use super::plan::{Cache, Column, columns};
    #[pymodule_export]
    use super::report::{rewrite_report, runs_of_comparison, write_report};
    #[pymodule_export]
    use super::results::{copy, metric_units, metrics, publish, summary, unknown_metric};
    #[pymodule_export]
    use super::run::run;
    #[pymodule_export]
    use super::scenario::{Scenario, json_schema, toml_document, toml_value};
    #[pymodule_export]
    use super::stats::{difference, estimate, jain, mean, percentile, student_half_width};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::trace::trace;
    #[pymodule_export]
    use super::tune::tune_ranges;
    #[pymodule_export]
    use super::views::{Ack, Flow, IntHop, Packet, Port};

    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        module.add("SOURCES", fairrate_results::SOURCES)
    }
}
