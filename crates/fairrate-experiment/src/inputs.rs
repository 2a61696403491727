//! Scenarios and the results of their runs.

use fairrate_results::{Results, ResultsDir, ResultsError, RunInputs};
use fairrate_scenario::{Overrides, Scenario};

/// Returns the inputs of a run of `scenario`, for its results.
pub fn inputs_of(scenario: &Scenario) -> RunInputs<'_> {
    let window = scenario.window();
    RunInputs {
        name: scenario.name(),
        hash: scenario.hash(),
        config: scenario.sim_config(),
        measured_from: window.from,
        measured_until: window.until,
        failure: window.failure,
        messages: window.messages,
        scenario: scenario.to_toml(),
        files: scenario.files().collect(),
    }
}

/// Copies a run's `results` into `dir`, replacing results there, with the files that its scenario names.
///
/// # Errors
/// As [`Results::copy_to`].
pub fn copy_run(results: &Results, dir: &ResultsDir) -> Result<(), ResultsError> {
    let scenario = Scenario::load(&results.scenario_path(), &Overrides::default());
    let files: Vec<String> = scenario.iter().flat_map(Scenario::files).map(|(name, _)| name.to_owned()).collect();
    results.copy_to(dir, &files)
}
