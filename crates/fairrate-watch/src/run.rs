//! A run, read from its results directory.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fairrate_results::{Results, ResultsError, Summary};
use serde::Serialize;

use crate::files;
use crate::flows::Flows;
use crate::network::Network;
use crate::samples::{SAMPLES_MAX, Samples};

/// Largest length of a summary, in bytes.
const SUMMARY_BYTES_MAX: u64 = 256 << 20;
/// The tables that are read.
const TABLES: [&str; 3] = ["flows", "ports", "rates"];

/// A reason why a directory cannot be shown.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Problem(String);

impl Problem {
    /// Returns the problem with the file or directory `path`.
    pub fn new(path: &Path, why: &str) -> Self {
        Self(format!("`{}`: {why}", path.display()))
    }
}

impl From<ResultsError> for Problem {
    fn from(error: ResultsError) -> Self {
        let text = error.to_string();
        // Some messages begin with the path of the file, others have it in their sentence.
        match text.strip_prefix(&format!("{}: ", error.path().display())) {
            Some(why) => Self::new(error.path(), why),
            None => Self(text),
        }
    }
}

/// A run in memory.
#[derive(Clone, Debug)]
pub struct Run {
    /// The directory.
    dir: PathBuf,
    /// The results.
    pub results: Results,
    /// The network.
    pub network: Network,
    /// The samples of ports.
    pub samples: Samples,
    /// The flows.
    pub flows: Flows,
    /// Times at which the files were written.
    written: Vec<Option<SystemTime>>,
    /// The number of times that it has been read.
    pub generation: u32,
}

/// Facts of a run for the head of the page.
#[derive(Clone, Debug, Serialize)]
pub struct About<'a> {
    /// The directory.
    pub dir: String,
    /// Name of the scenario.
    pub scenario: &'a str,
    /// Name of the algorithm.
    pub cc: &'a str,
    /// The seed.
    pub seed: u64,
    /// `complete`, `interrupted`, `failed` or `running`.
    pub state: &'a str,
    /// Simulated time at the end, in ns; 0 until it has ended.
    pub end_ns: f64,
    /// The number of times that the run has been read: a page with another number is out of date.
    pub generation: u32,
    /// The number of times of sampling of which one is kept.
    pub stride: u32,
    /// Times of samples.
    pub n_times: usize,
    /// Numbers of ports with samples, and of all ports.
    pub n_sampled: usize,
    /// The number of ports of the network.
    pub n_ports: usize,
}

impl Run {
    /// Reads the results directory `dir`.
    ///
    /// # Errors
    /// If it has no results, or they are damaged.
    pub fn open(dir: &Path) -> Result<Self, Problem> {
        Self::read(dir, None)
    }

    /// Reads the run once more if its files have changed. Returns `None` if they have not.
    ///
    /// # Errors
    /// As [`Run::open`].
    pub fn reopened(&self) -> Result<Option<Self>, Problem> {
        if written(&self.dir) == self.written { Ok(None) } else { Self::read(&self.dir, Some(self)).map(Some) }
    }

    fn read(dir: &Path, before: Option<&Self>) -> Result<Self, Problem> {
        // Before the files are read, so that what is written meanwhile is seen the next time.
        let written = written(dir);
        if dir.join("compare.json").exists() && !dir.join("summary.json").exists() {
            let why = "it is a comparison: give one or two of the directories in it, a run each";
            return Err(Problem::new(dir, why));
        }
        if dir.join("summary.json").exists() {
            files::text(dir, "summary.json", SUMMARY_BYTES_MAX)?;
        }
        let results = Results::open(dir)?;
        for table in TABLES {
            files::plain(&dir.join(format!("{table}.parquet")))?;
        }
        let network = before.map_or_else(|| Network::read(dir), |before| Ok(before.network.clone()))?;
        let samples = Samples::collect(&network, SAMPLES_MAX, |each| results.each_port(each))?;
        let flows = Flows::read(&results)?;
        let generation = before.map_or(0, |before| before.generation) + 1;
        Ok(Self { dir: dir.to_owned(), results, network, samples, flows, written, generation })
    }

    /// Returns `true` if the run has not ended.
    pub fn is_running(&self) -> bool {
        !self.summary().has_ended()
    }

    /// Returns the facts for the head of the page.
    pub fn about(&self) -> About<'_> {
        let summary = self.summary();
        About {
            dir: self.dir.display().to_string(),
            scenario: &summary.scenario,
            cc: &summary.cc,
            seed: summary.seed,
            state: &summary.state,
            end_ns: summary.sim_s * 1e9,
            generation: self.generation,
            stride: self.samples.stride(),
            n_times: self.samples.times().len(),
            n_sampled: self.samples.sampled().len(),
            n_ports: self.network.links.len() * 2,
        }
    }

    fn summary(&self) -> &Summary {
        &self.results.summary
    }
}

/// Returns the times at which the files in `dir` were written that are read.
fn written(dir: &Path) -> Vec<Option<SystemTime>> {
    let names = TABLES.iter().map(|table| format!("{table}.parquet")).chain(["summary.json".to_owned()]);
    names.map(|name| dir.join(name).metadata().and_then(|meta| meta.modified()).ok()).collect()
}
