//! Copying of results into another directory.

use std::fs;
use std::path::Path;

use crate::dir::{ResultsDir, write_durably};
use crate::{Results, ResultsError, SCENARIO, SUMMARY, TABLES};

impl Results {
    /// Copies tables, scenario, its files with the names `files`, and summary into `dir`, replacing results there. The
    /// summary is written last: until then the results are incomplete.
    ///
    /// # Errors
    /// If something cannot be read or written.
    pub fn copy_to(&self, dir: &ResultsDir, files: &[String]) -> Result<(), ResultsError> {
        let (from, to) = (self.dir(), dir.path());
        crate::writer::remove_earlier(to)?;
        let summary = to.join(SUMMARY);
        crate::dir::remove_if_there(&summary).map_err(|e| ResultsError::io(&summary, e))?;
        let tables = TABLES.iter().map(|table| format!("{}.parquet", table.name));
        for name in tables.chain(files.iter().cloned()).chain([SCENARIO.to_owned()]) {
            copy(&from.join(&name), &to.join(&name))?;
        }
        let text = fs::read_to_string(from.join(SUMMARY)).map_err(|e| ResultsError::io(&from.join(SUMMARY), e))?;
        write_durably(&summary, &text).map_err(|e| ResultsError::io(&summary, e))
    }
}

/// Copies a file in one step: a link of the new name is replaced, not followed.
fn copy(from: &Path, to: &Path) -> Result<(), ResultsError> {
    let part = to.with_extension("new");
    fs::copy(from, &part).map_err(|e| ResultsError::io(from, e))?;
    fs::rename(&part, to).map_err(|e| ResultsError::io(to, e))
}
