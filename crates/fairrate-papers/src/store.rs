//! The results of runs in files, so that no run is repeated, and their results directories.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fairrate_experiment::Watch;
use fairrate_experiment::cache::{self, Key, complete_run_of};
use fairrate_experiment::crew::Planned;
use fairrate_scenario::Scenario;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::experiment::Run;
use crate::figure::Figure;
use crate::points::Point;

/// For each figure, and each paper for the runs its figures share, a hash of the sources by which runs are made and
/// read.
const READERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The kept results of a figure's runs.
pub struct Store {
    own: Place,
    /// The place of runs that several figures of the paper have.
    shared: Place,
    /// Set if simulations leave results directories.
    keeps_runs: bool,
}

/// A directory of runs, with the hash of the sources that read them.
struct Place {
    dir: PathBuf,
    readers: &'static str,
}

/// The result of a run, and the time it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The result.
    pub point: Point,
    /// Time the run took, in seconds on one core.
    pub seconds: f64,
}

/// Returns a hash of all sources that the runs of `figure` depend on.
pub fn sources(figure: &str) -> String {
    format!("{}-{}", fairrate_results::SOURCES, readers(figure))
}

/// Returns a hash of the sources that read the runs of a figure, or those that a paper's figures share.
fn readers(figure_or_paper: &str) -> &'static str {
    READERS.iter().find(|(id, _)| *id == figure_or_paper).map_or("unknown", |(_, hash)| hash)
}

impl Store {
    /// Returns the store of `figure` below `out`, the directory of all figures. If `keeps_runs`, it has results
    /// directories of all simulations too.
    pub fn new(out: &Path, figure: &Figure, keeps_runs: bool) -> Self {
        let place = |name: &str| Place { dir: out.join(name).join("runs"), readers: readers(name) };
        Self { own: place(figure.id), shared: place(figure.paper()), keeps_runs }
    }

    fn place(&self, run: &Run) -> &Place {
        if run.is_shared { &self.shared } else { &self.own }
    }

    /// Returns the results directory of `run`, beside which its result is: its label, and a hash of it, as labels may
    /// have any characters.
    pub fn dir(&self, run: &Run) -> PathBuf {
        let label = run.label();
        let hash = XxHash64::oneshot(0, label.as_bytes());
        let plain = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        self.place(run).dir.join(format!("{plain}-{:08x}", hash as u32))
    }

    /// Returns the plan of `run`: its result is known if it was kept with the same key, unless `fresh`.
    pub fn planned(&self, run: &Run, fresh: bool) -> Planned<Option<Kept>> {
        let kept = self.key(run).and_then(|key| cache::kept::<Kept>(&self.file(run), &key));
        let priority = kept.as_ref().map_or(f64::INFINITY, |(kept, _)| kept.seconds);
        let known = kept.filter(|(_, is_valid)| *is_valid && !fresh && self.has_dir(run));
        Planned { known: known.map(|(kept, _)| Some(kept)), priority }
    }

    /// Does `run` and keeps its result, unless it is a short calculation; returns `None` if `watch` interrupts it.
    ///
    /// # Errors
    /// If the run fails, or something cannot be written.
    pub fn run(&self, run: &Run, watch: &mut dyn Watch) -> Result<Option<Kept>, String> {
        let (start, dir) = (Instant::now(), self.keeps_runs.then(|| self.dir(run)));
        let Some(point) = run.watched(dir.as_deref(), watch)? else { return Ok(None) };
        let kept = Kept { point, seconds: start.elapsed().as_secs_f64() };
        if let Some(key) = self.key(run) {
            let file = self.file(run);
            cache::keep(&file, &key, &kept).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        Ok(Some(kept))
    }

    fn key(&self, run: &Run) -> Option<Key> {
        Some(run.key()?.read_by(self.place(run).readers))
    }

    fn file(&self, run: &Run) -> PathBuf {
        self.dir(run).with_added_extension("json")
    }

    /// Returns `true` if the results directory of `run` is there, or not wanted.
    fn has_dir(&self, run: &Run) -> bool {
        let is_complete = |scenario: Scenario| complete_run_of(&self.dir(run), &scenario).is_some();
        !self.keeps_runs || run.scenario().is_ok_and(|scenario| scenario.is_none_or(is_complete))
    }
}

#[cfg(test)]
mod tests {
    use crate::list::FIGURES;

    use super::*;

    #[test]
    fn every_figure_has_sources() {
        assert!(FIGURES.iter().all(|figure| readers(figure.id) != "unknown" && readers(figure.paper()) != "unknown"));
    }
}
