//! The results of runs in files, so that no run is repeated.

use std::hash::Hasher;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::experiment::{Run, Work};
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
}

/// A directory of runs, with the hash of the sources that make them.
struct Place {
    dir: PathBuf,
    sources: String,
}

/// The result of a run, and the time it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The result.
    pub point: Point,
    /// Time the run took, in seconds on one core.
    pub seconds: f64,
}

/// A file's content.
#[derive(Serialize, Deserialize)]
struct OnDisk {
    /// Hash of the resolved scenario, or of a model's inputs; empty for short calculations, which are repeated each
    /// time.
    scenario_hash: String,
    /// Hash of the sources that made the result.
    sources: String,
    #[serde(flatten)]
    kept: Kept,
}

/// Returns a hash of all sources that the runs of a figure depend on, or those that a paper's figures share.
pub fn sources(figure_or_paper: &str) -> String {
    let readers = READERS.iter().find(|(id, _)| *id == figure_or_paper).map_or("unknown", |(_, hash)| hash);
    format!("{}-{readers}", fairrate_results::SOURCES)
}

impl Store {
    /// Returns the store of `figure` below `out`, the directory of all figures.
    pub fn new(out: &Path, figure: &Figure) -> Self {
        let place = |name: &str| Place { dir: out.join(name).join("runs"), sources: sources(name) };
        Self { own: place(figure.id), shared: place(figure.paper()) }
    }

    fn place(&self, run: &Run) -> &Place {
        if run.is_shared { &self.shared } else { &self.own }
    }

    /// Returns the file of a run: its label, and a hash of it, as labels may have any characters.
    fn file(&self, run: &Run) -> PathBuf {
        let label = run.label();
        let mut hash = XxHash64::with_seed(0);
        hash.write(label.as_bytes());
        let plain = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        self.place(run).dir.join(format!("{plain}-{:08x}.json", hash.finish() as u32))
    }

    /// Returns the kept result of `run`, if it is of the same scenario and made by the same sources.
    pub fn get(&self, run: &Run) -> Option<Kept> {
        let found: OnDisk = serde_json::from_slice(&std::fs::read(self.file(run)).ok()?).ok()?;
        let hash = scenario_hash(run).ok()?;
        (!hash.is_empty() && found.scenario_hash == hash && found.sources == self.place(run).sources)
            .then_some(found.kept)
    }

    /// Keeps the result of a run, unless it is a short calculation.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&self, run: &Run, kept: &Kept) -> Result<(), String> {
        let kept =
            OnDisk { scenario_hash: scenario_hash(run)?, sources: self.place(run).sources.clone(), kept: kept.clone() };
        if kept.scenario_hash.is_empty() {
            return Ok(());
        }
        let (file, text) = (self.file(run), serde_json::to_vec(&kept).map_err(|e| e.to_string())?);
        let failed = |e: std::io::Error| format!("{}: {e}", file.display());
        std::fs::create_dir_all(&self.place(run).dir).map_err(failed)?;
        // A concurrent reader sees the whole file or none.
        let draft = file.with_extension("draft");
        std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, &file)).map_err(failed)
    }
}

fn scenario_hash(run: &Run) -> Result<String, String> {
    if let Work::Model { inputs, .. } = &run.work {
        let mut hash = XxHash64::with_seed(0);
        hash.write(inputs.as_bytes());
        return Ok(format!("{:016x}", hash.finish()));
    }
    Ok(run.scenario()?.map_or(String::new(), |scenario| format!("{:016x}", scenario.hash())))
}

#[cfg(test)]
mod tests {
    use crate::list::FIGURES;

    use super::*;

    #[test]
    fn every_figure_has_sources() {
        assert!(FIGURES.iter().all(|figure| !sources(figure.id).ends_with("unknown")));
    }
}
