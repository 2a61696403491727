//! Writer of `report.html` and its figures in results directories.

use std::io;
use std::path::{Path, PathBuf};

use fairrate_results::write_whole;

use crate::comparison::Comparison;
use crate::figures::Selection;
use crate::metrics::Metrics;
use crate::model::{RunData, Variant, variants};
use crate::{export, figures, heat_map, html};

/// The failure to read or write a file of a report.
#[derive(Debug, thiserror::Error)]
#[error("{doing} `{}` failed: {source}", path.display())]
pub struct PublishError {
    /// The operation that failed.
    pub doing: &'static str,
    /// The path it failed on.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl PublishError {
    fn of(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self { doing, path: path.to_owned(), source }
    }
}

/// A switch for figures as separate files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pictures {
    /// Figures are written as separate files.
    Yes,
    /// Figures are only in the page.
    No,
}

/// Writes `dir/report.html` about one run, and returns the run and its numbers.
///
/// # Errors
/// If a file cannot be written.
pub fn run(dir: &Path, run: RunData, pictures: Pictures) -> Result<(RunData, Metrics), PublishError> {
    let mut variants = variants(vec![run]);
    let mut comparison = Comparison::of(variants.iter().map(Metrics::of).collect());
    page(dir, &variants, &comparison, &Selection::default(), pictures)?;
    Ok((variants.remove(0).runs.remove(0), comparison.metrics.remove(0)))
}

/// Writes `dir/report.html`, and its figures as files below `dir/figures`.
///
/// # Errors
/// If a file cannot be written.
pub fn page(
    dir: &Path,
    variants: &[Variant],
    comparison: &Comparison,
    selection: &Selection,
    pictures: Pictures,
) -> Result<(), PublishError> {
    let chapters = figures::all(variants, comparison, selection);
    let layout = selection.heat_maps.as_ref();
    let heat = layout.map(|layout| (layout, layout.fill(variants, &comparison.metrics)));
    let section = heat.as_ref().map_or_else(String::new, |(layout, maps)| heat_map::section(layout, maps));
    write(&dir.join("report.html"), &html::page(variants, comparison, &section, &chapters))?;
    let titled = heat.as_ref().map(|(layout, maps)| (heat_map::chapter(layout), maps));
    let heat = titled.as_ref().map(|(title, maps)| (title.as_str(), maps.as_slice()));
    match pictures {
        Pictures::Yes => write_figures(&dir.join("figures"), &export::files(&chapters, heat, html::pictures(variants))),
        Pictures::No => Ok(()),
    }
}

/// Writes the files of a report's figures, and removes those of its former figures.
fn write_figures(dir: &Path, files: &[export::File]) -> Result<(), PublishError> {
    std::fs::create_dir_all(dir).map_err(|e| PublishError::of("making", dir, e))?;
    let before = std::fs::read_to_string(dir.join(export::LIST)).unwrap_or_default();
    for name in export::listed(&before).iter().filter(|name| files.iter().all(|f| f.name != **name)) {
        // A file that is missing already is no error.
        let _ = std::fs::remove_file(dir.join(name));
    }
    files.iter().try_for_each(|file| write(&dir.join(&file.name), &file.text))
}

/// Writes a file as a whole: a partial file never has its name.
fn write(path: &Path, text: &str) -> Result<(), PublishError> {
    write_whole(path, text).map_err(|e| PublishError::of("writing", path, e))
}
