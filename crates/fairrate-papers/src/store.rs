//! What runs have come to, in files, so that nothing is run twice.

use std::hash::Hasher;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::experiment::{Run, Work};
use crate::points::Point;

/// A directory of points.
pub struct Store {
    dir: PathBuf,
}

/// A point on disk, with what it was made from.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Of the resolved scenario, or of what a model depends on; empty for short calculations, which are made anew.
    scenario_hash: String,
    program: String,
    point: Point,
}

/// What made the points: the version, and the commit it was built from.
fn program() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), fairrate_scenario::COMMIT)
}

impl Store {
    /// In a directory, which is made when the first point is kept.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The file of a run: its label, and a hash of it, as labels may have any characters.
    fn file(&self, run: &Run) -> PathBuf {
        let label = run.label();
        let mut hash = XxHash64::with_seed(0);
        hash.write(label.as_bytes());
        let plain = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        self.dir.join(format!("{plain}-{:08x}.json", hash.finish() as u32))
    }

    /// The point of a run of the same scenario by the same program.
    pub fn get(&self, run: &Run) -> Option<Point> {
        let kept: Kept = serde_json::from_slice(&std::fs::read(self.file(run)).ok()?).ok()?;
        let hash = scenario_hash(run).ok()?;
        (!hash.is_empty() && kept.scenario_hash == hash && kept.program == program()).then_some(kept.point)
    }

    /// Keeps the point of a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&self, run: &Run, point: &Point) -> Result<(), String> {
        let kept = Kept { scenario_hash: scenario_hash(run)?, program: program(), point: point.clone() };
        if kept.scenario_hash.is_empty() {
            return Ok(());
        }
        let (file, text) = (self.file(run), serde_json::to_vec(&kept).map_err(|e| e.to_string())?);
        let failed = |e: std::io::Error| format!("{}: {e}", file.display());
        std::fs::create_dir_all(&self.dir).map_err(failed)?;
        // Whoever reads it meanwhile sees the whole of it or nothing.
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
