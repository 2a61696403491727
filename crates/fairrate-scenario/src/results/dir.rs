//! A results directory as a place: whose it is, who is writing to it, and files that appear in it whole.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{ResultsError, SUMMARY};

/// The file that says a directory is for results. Whoever writes there holds its lock.
const LOCK: &str = ".fairrate.lock";
/// What is in it, for people who wonder.
const LOCK_TEXT: &str = "This directory is for results of fairrate, which may replace what is in it.\n";
/// Name of the index of a comparison.
const INDEX: &str = "compare.json";

/// A results directory that this process alone writes to, as long as the value lives. The lock goes with the process,
/// however it ends.
#[derive(Debug)]
pub struct ResultsDir {
    path: PathBuf,
    /// Absent on file systems without locks.
    _lock: Option<File>,
}

impl ResultsDir {
    /// Makes the directory if it is not there, and takes its lock.
    ///
    /// # Errors
    /// [`ResultsError::InUse`] if another process writes to it; what [`ResultsDir::check`] refuses; and what the operating
    /// system says.
    pub fn claim(path: &Path) -> Result<Self, ResultsError> {
        Self::check(path)?;
        fs::create_dir_all(path).map_err(|e| ResultsError::io(path, e))?;
        let lock_path = path.join(LOCK);
        let io = |e| ResultsError::io(&lock_path, e);
        let mut file = open_lock(&lock_path).map_err(io)?;
        let lock = match file.try_lock() {
            Ok(()) => {
                if file.metadata().map_err(io)?.len() == 0 {
                    file.write_all(LOCK_TEXT.as_bytes()).map_err(io)?;
                }
                Some(file)
            }
            Err(TryLockError::WouldBlock) => return Err(ResultsError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => None,
            Err(TryLockError::Error(e)) => return Err(io(e)),
        };
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Whether results may go to a directory: it is not there, or empty, or fairrate's own. Writes nothing.
    ///
    /// # Errors
    /// [`ResultsError::Occupied`] if there is something else.
    pub fn check(path: &Path) -> Result<(), ResultsError> {
        if fs::symlink_metadata(path).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
        let mut entries = fs::read_dir(path).map_err(|e| ResultsError::io(path, e))?;
        if entries.next().is_none() || is_ours(path) {
            Ok(())
        } else {
            Err(ResultsError::Occupied { path: path.to_owned() })
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A lock that is a link may lie anywhere, so it is not opened.
fn open_lock(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => Err(io::Error::other("it is no file")),
        _ => OpenOptions::new().read(true).append(true).create(true).open(path),
    }
}

/// Whether fairrate made a directory: its lock is there, or a summary or an index that reads.
fn is_ours(path: &Path) -> bool {
    let json = |name: &str| {
        let text = fs::read_to_string(path.join(name)).ok()?;
        serde_json::from_str::<serde_json::Value>(&text).ok()
    };
    let has = |name: &str, key: &str| json(name).is_some_and(|value| value.get(key).is_some());
    fs::symlink_metadata(path.join(LOCK)).is_ok_and(|meta| meta.is_file())
        || has(SUMMARY, "scenario_hash")
        || json(INDEX).is_some_and(|value| value["schema"].as_str().is_some_and(|s| s.starts_with("fairrate.compare/")))
}

/// Puts a file in place in one step: under its name is what was there before, or all of `content`. A link of that name is
/// replaced, not followed.
///
/// # Errors
/// What the operating system says; nothing new is left then.
pub fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    put(path, content.as_ref(), false)
}

/// The same, also after a loss of power.
///
/// # Errors
/// What the operating system says; nothing new is left then.
pub fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    put(path, text.as_bytes(), true)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

fn put(path: &Path, content: &[u8], durably: bool) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!("{name}.new"));
    remove_if_there(&part)?;
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        file.write_all(content)?;
        if durably {
            file.sync_all()?;
        }
        fs::rename(&part, path)
    };
    let done = write();
    if done.is_err() {
        // The error is told; of the removal nobody needs to know.
        let _ = remove_if_there(&part);
    }
    done
}

/// Removes a file; none is fine.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Makes names of files in a directory outlast a loss of power.
fn sync_dir(path: &Path) -> io::Result<()> {
    // Directories cannot be opened, or not synced, everywhere; where they cannot, there is nothing more to do.
    match sync_file(path) {
        Err(e) if cfg!(unix) && e.kind() != io::ErrorKind::InvalidInput => Err(e),
        _ => Ok(()),
    }
}

/// Waits until a file is on the disk to stay.
pub(super) fn sync_file(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
