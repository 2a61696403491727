//! Files of results directories. Names are fixed or checked by the caller, links are not followed, and lengths are
//! bounded.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use crate::run::Problem;

/// Reads the file `name` in `dir` as text, which may have up to `bytes_max` bytes.
///
/// # Errors
/// If it is missing, no plain file, too long, or no text.
pub fn text(dir: &Path, name: &str, bytes_max: u64) -> Result<String, Problem> {
    let path = dir.join(name);
    plain(&path)?;
    let fail = |why: String| Problem::new(&path, &why);
    let file = File::open(&path).map_err(|e| fail(e.to_string()))?;
    let mut text = String::new();
    file.take(bytes_max + 1).read_to_string(&mut text).map_err(|e| fail(e.to_string()))?;
    if bytes_max < text.len() as u64 {
        return Err(fail(format!("it is longer than {} MiB", bytes_max >> 20)));
    }
    Ok(text)
}

/// Checks that `path` is a plain file and no link, which may lead out of its directory.
///
/// # Errors
/// If it is missing or something else.
pub fn plain(path: &Path) -> Result<(), Problem> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(_) => Err(Problem::new(path, "it is no plain file")),
        Err(e) => Err(Problem::new(path, &e.to_string())),
    }
}
