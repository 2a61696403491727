//! `report.html` and its figures, into results directories.

use std::io;
use std::path::{Path, PathBuf};

use fairrate_scenario::write_whole;

use crate::comparison::Comparison;
use crate::metric::Metric;
use crate::metrics::Metrics;
use crate::model::{RunData, Variant, variants};
use crate::{export, figures, html};

/// Why a page is not written.
#[derive(Debug, thiserror::Error)]
#[error("{doing} `{}` failed: {source}", path.display())]
pub struct PublishError {
    /// What was being done.
    pub doing: &'static str,
    /// To what.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

impl PublishError {
    fn of(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self { doing, path: path.to_owned(), source }
    }
}

/// Whether figures are written as files of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pictures {
    /// They are.
    Yes,
    /// They are not.
    No,
}

/// Writes `dir/report.html` about one run, and says its numbers.
///
/// # Errors
/// If it cannot be written.
pub fn run(dir: &Path, run: RunData, pictures: Pictures) -> Result<(RunData, Metrics), PublishError> {
    let mut variants = variants(vec![run]);
    let mut comparison = Comparison::of(variants.iter().map(Metrics::of).collect());
    page(dir, &variants, &comparison, &[], pictures)?;
    Ok((variants.remove(0).runs.remove(0), comparison.metrics.remove(0)))
}

/// Writes `dir/report.html`, and its figures as files below `dir/figures`.
///
/// # Errors
/// If they cannot be written.
pub fn page(
    dir: &Path,
    variants: &[Variant],
    comparison: &Comparison,
    metrics: &[Metric],
    pictures: Pictures,
) -> Result<(), PublishError> {
    let chapters = figures::all(variants, comparison, metrics);
    write(&dir.join("report.html"), &html::page(variants, comparison, &chapters))?;
    match pictures {
        Pictures::Yes => write_figures(&dir.join("figures"), &export::files(&chapters)),
        Pictures::No => Ok(()),
    }
}

/// Writes the files of a report's figures, and removes those of the figures it had before.
fn write_figures(dir: &Path, files: &[export::File]) -> Result<(), PublishError> {
    std::fs::create_dir_all(dir).map_err(|e| PublishError::of("making", dir, e))?;
    let before = std::fs::read_to_string(dir.join(export::LIST)).unwrap_or_default();
    for name in export::listed(&before).iter().filter(|name| files.iter().all(|f| f.name != **name)) {
        // One that somebody has removed already is as it should be.
        let _ = std::fs::remove_file(dir.join(name));
    }
    files.iter().try_for_each(|file| write(&dir.join(&file.name), &file.text))
}

/// Writes a file in one piece: never half of it under its name.
fn write(path: &Path, text: &str) -> Result<(), PublishError> {
    write_whole(path, text).map_err(|e| PublishError::of("writing", path, e))
}
