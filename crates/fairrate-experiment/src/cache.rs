//! Results that were computed before: the key by which they are known, and where they are.
//!
//! Results with the same [`Key`] are the same, so a run is not repeated if there are results with its key: a results
//! directory ([`complete_run_of`]), or a value that was kept in a file ([`kept`]).

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use fairrate_results::{Results, ResultsDir, ResultsError, SOURCES, write_whole};
use fairrate_scenario::Scenario;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::columns::file_name;

/// The key of a result: a hash of all inputs, and one of the sources that compute the result from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    inputs: String,
    sources: String,
}

impl Key {
    /// Returns the key of the results of `scenario`. A run of an algorithm that the program registered itself has none:
    /// its sources are in no hash.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        (!scenario.is_of_own_algorithm()).then(|| Self::of_hash(scenario.hash()))
    }

    /// Returns the key of a calculation with these `inputs`.
    pub fn of_inputs(inputs: &str) -> Self {
        Self::of_hash(XxHash64::oneshot(0, inputs.as_bytes()))
    }

    fn of_hash(hash: u64) -> Self {
        Self { inputs: format!("{hash:016x}"), sources: SOURCES.to_owned() }
    }

    /// Returns the key of a value that further sources, with the hash `readers`, compute from the results.
    #[must_use]
    pub fn read_by(self, readers: &str) -> Self {
        Self { sources: format!("{}-{readers}", self.sources), ..self }
    }
}

/// Returns the results in `dir`, if they are undamaged and those of a complete simulation of `scenario` with its key:
/// the run would give the same results again.
pub fn complete_run_of(dir: &Path, scenario: &Scenario) -> Option<Results> {
    let (key, results) = (Key::of(scenario)?, Results::open(dir).ok()?);
    let summary = &results.summary;
    let has_key = summary.scenario_hash == key.inputs && summary.sources == key.sources;
    (has_key && summary.is_complete_simulation() && results.verify().is_ok()).then_some(results)
}

/// Returns the time that the complete run with results in `dir` took, in seconds; infinite without such results.
pub fn seconds_before(dir: &Path) -> f64 {
    let complete = Results::open(dir).ok().filter(|results| results.summary.is_complete_simulation());
    complete.map_or(f64::INFINITY, |results| results.summary.wall_s)
}

/// A value in a file.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    key: Key,
    value: T,
}

/// Returns the value that was kept in `file`, and `true` if it has the key `key`. An outdated value still tells how
/// long it took.
pub fn kept<T: DeserializeOwned>(file: &Path, key: &Key) -> Option<(T, bool)> {
    let kept: Kept<T> = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    Some((kept.value, kept.key == *key))
}

/// Keeps `value` in `file`. A reader at the same time finds the whole file or none.
///
/// # Errors
/// Those of the operating system, and if the value cannot be written as JSON.
pub fn keep<T: Serialize>(file: &Path, key: &Key, value: &T) -> std::io::Result<()> {
    let text = serde_json::to_vec(&Kept { key: key.clone(), value })?;
    std::fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    write_whole(file, text)
}

/// A directory such as `runs`, with the directories of runs and of comparisons in it. Runs are found by their keys, and
/// put where `fairrate compare` puts them.
pub struct Cache {
    /// The directory of the comparison.
    comparison: PathBuf,
    /// The results directories, by the hash of their scenario.
    by_hash: HashMap<String, Vec<PathBuf>>,
    /// Directories of runs to be done.
    taken: HashSet<PathBuf>,
}

impl Cache {
    /// Opens the cache `root` for a comparison of the scenario `name`. Writes nothing.
    ///
    /// # Errors
    /// If the comparison's directory has something else in it.
    pub fn open(root: &Path, name: &str) -> Result<Self, ResultsError> {
        let comparison = root.join(file_name(&format!("{name}-compare")));
        ResultsDir::check_comparison(&comparison)?;
        let mut by_hash: HashMap<String, Vec<PathBuf>> = HashMap::new();
        let below = |dir: &Path| {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            let mut dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
            dirs.sort();
            dirs
        };
        let runs = below(root);
        let of_comparisons = runs.iter().flat_map(|dir| below(dir)).collect::<Vec<_>>();
        for dir in runs.into_iter().chain(of_comparisons) {
            if let Some(hash) = scenario_hash(&dir) {
                by_hash.entry(hash).or_default().push(dir);
            }
        }
        Ok(Self { comparison, by_hash, taken: HashSet::new() })
    }

    /// Returns the directory where the run `name` of `scenario` belongs, and the one where it is already, if there is
    /// one.
    ///
    /// # Errors
    /// If its directory has something else in it, or the comparison's cannot be made.
    pub fn place(&mut self, name: &str, scenario: &Scenario) -> Result<(PathBuf, Option<PathBuf>), ResultsError> {
        let hash = format!("{:016x}", scenario.hash());
        let known = self.by_hash.get(&hash).map_or(&[][..], Vec::as_slice);
        let mut dir = self.comparison.join(name);
        if dir.join("summary.json").exists() && !known.contains(&dir) {
            // A run of another scenario has the name, and stays.
            dir = self.comparison.join(format!("{name}-{}", &hash[..8]));
        }
        if let Some(found) = known.iter().find(|found| complete_run_of(found, scenario).is_some()) {
            return Ok((dir, Some(found.clone())));
        }
        if self.taken.is_empty() {
            ResultsDir::make(&self.comparison)?;
        }
        if self.taken.contains(&dir) {
            dir = self.comparison.join(format!("{name}-{}", self.taken.len()));
        }
        ResultsDir::check(&dir)?;
        self.taken.insert(dir.clone());
        Ok((dir, None))
    }
}

/// Returns the hash of the scenario in a summary, which may be of another version, or damaged.
fn scenario_hash(dir: &Path) -> Option<String> {
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(dir.join("summary.json")).ok()?).ok()?;
    Some(summary["scenario_hash"].as_str()?.to_owned())
}
