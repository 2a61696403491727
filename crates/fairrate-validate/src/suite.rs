//! Suites of runs of an author's code: their list of cases, the options of their comparisons, and their simulations.

use std::path::Path;

use clap::Args;
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::SimConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Options of a comparison with an author's code.
#[derive(Args)]
pub struct Options {
    /// Only cases whose name starts with this, as `incast`
    #[arg(long, value_name = "CASE")]
    pub only: Option<String>,
    /// Keys of a scenario file in place of the authors', as `transport.homa.counts=messages`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Rows as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Simulations at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    pub jobs: u64,
}

/// The list of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite<C> {
    /// Name of the scenario file of all cases.
    pub scenario: String,
    /// The cases.
    pub case: Vec<C>,
}

impl<C: DeserializeOwned> Suite<C> {
    /// Reads `suite.toml` in `dir`.
    pub fn read(dir: &Path) -> Result<Self, String> {
        let path = dir.join("suite.toml");
        let text = read(&path)?;
        toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Reads the scenario file, which is in `dir` too.
    pub fn read_scenario(&self, dir: &Path) -> Result<String, String> {
        read(&dir.join(&self.scenario))
    }
}

/// Reads the file at `path`.
pub fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Returns the simulation of the scenario `text`, which is called `file` and is in `dir`, with the keys in `sets`
/// changed.
pub fn configure(dir: &Path, file: &str, text: &str, sets: Vec<(String, String)>) -> Result<SimConfig, String> {
    let overrides = Overrides { sets, ..Overrides::default() };
    Ok(Scenario::from_toml(text, file, dir, &overrides).map_err(|e| e.to_string())?.into_sim_config())
}

/// Splits `KEY=VALUE` of `--set`.
pub fn key_and_value(set: impl AsRef<str>) -> Option<(String, String)> {
    set.as_ref().split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
}
