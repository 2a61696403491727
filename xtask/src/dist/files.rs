//! Files of a release, with errors that name them.

use std::path::{Path, PathBuf};

/// Makes the directory `dir`, without the files of an earlier release.
///
/// # Errors
/// If it cannot be emptied or made.
pub fn empty(dir: &Path) -> Result<(), String> {
    if dir.exists() {
        std::fs::remove_dir_all(dir).map_err(|e| format!("cannot empty {}: {e}", dir.display()))?;
    }
    std::fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))
}

/// Copies a file, and makes the directories it lies in.
///
/// # Errors
/// If it cannot be read or written.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_parent(to)?;
    std::fs::copy(from, to).map(|_| ()).map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

/// Copies the files of a directory, and not those of its directories.
///
/// # Errors
/// If one cannot be read or written.
pub fn copy_files_of(from: &Path, to: &Path) -> Result<(), String> {
    list(from)?.iter().filter(|path| path.is_file()).try_for_each(|path| copy(path, &to.join(name(path))))
}

/// Copies all files below a directory, and not those in files and directories named `but`.
///
/// # Errors
/// If one cannot be read or written.
pub fn copy_below(from: &Path, to: &Path, but: &[&str]) -> Result<(), String> {
    for path in list(from)?.iter().filter(|path| !but.contains(&name(path).as_str())) {
        let to = to.join(name(path));
        if path.is_dir() { copy_below(path, &to, but)? } else { copy(path, &to)? }
    }
    Ok(())
}

/// Returns the text of a file.
///
/// # Errors
/// If it cannot be read, or is no text.
pub fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Writes a file, and makes the directories it lies in.
///
/// # Errors
/// If it cannot be written.
pub fn write(to: &Path, bytes: &[u8]) -> Result<(), String> {
    make_parent(to)?;
    std::fs::write(to, bytes).map_err(|e| format!("cannot write {}: {e}", to.display()))
}

/// Returns the paths of what lies in a directory.
///
/// # Errors
/// If it cannot be read.
pub fn list(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("cannot read {}: {e}", dir.display());
    std::fs::read_dir(dir).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect()
}

/// Returns the paths of all files below a directory, sorted.
///
/// # Errors
/// If a directory cannot be read.
pub fn all_below(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for path in list(dir)? {
        if path.is_dir() { all.extend(all_below(&path)?) } else { all.push(path) }
    }
    all.sort();
    Ok(all)
}

/// Returns the last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the paths of the files in a directory whose names end with `.` and `extension`.
///
/// # Errors
/// If it cannot be read.
pub fn with_extension(dir: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    Ok(list(dir)?.into_iter().filter(|path| path.extension().is_some_and(|of| of == extension)).collect())
}

fn make_parent(path: &Path) -> Result<(), String> {
    let Some(parent) = path.parent() else { return Ok(()) };
    std::fs::create_dir_all(parent).map_err(|e| format!("cannot make {}: {e}", parent.display()))
}
