//! A results directory as a place: its owner, its lock, and files that appear in it whole.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{ResultsError, SUMMARY};

/// The file that marks a directory as one for results, and whose lock a writer of results holds.
const LOCK: &str = ".fairrate.lock";
/// Text of the lock file, for people who find it.
const LOCK_TEXT: &str = "This directory is for results of fairrate, which may replace what is in it.\n";
/// Name of the index of a comparison.
const INDEX: &str = "compare.json";

/// A results directory that only this process writes to, as long as the value lives. The lock is released when the
/// process ends, however it ends.
#[derive(Debug)]
pub struct ResultsDir {
    path: PathBuf,
    /// Absent on file systems without locks.
    _lock: Option<File>,
}

impl ResultsDir {
    /// Creates the directory of a run or a figure if it does not exist, and takes its lock.
    ///
    /// # Errors
    /// [`ResultsError::InUse`] if another process writes to it; the errors of [`ResultsDir::check`]; and errors of the
    /// operating system.
    pub fn claim(path: &Path) -> Result<Self, ResultsError> {
        Self::check(path)?;
        Self::take(path)
    }

    /// Creates the directory of a comparison if it does not exist, and takes its lock.
    ///
    /// # Errors
    /// As [`ResultsDir::claim`], by [`ResultsDir::check_comparison`].
    pub fn claim_comparison(path: &Path) -> Result<Self, ResultsError> {
        Self::check_comparison(path)?;
        Self::take(path)
    }

    fn take(path: &Path) -> Result<Self, ResultsError> {
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

    /// Makes a directory for the runs of a comparison, unless it is one for results already.
    ///
    /// # Errors
    /// As [`ResultsDir::claim_comparison`].
    pub fn make(path: &Path) -> Result<(), ResultsError> {
        if path.join(LOCK).exists() { Ok(()) } else { Self::claim_comparison(path).map(|_| ()) }
    }

    /// Checks that the results of a run or a figure may be written to a directory: it does not exist, is empty, or was
    /// made by fairrate for something else than a comparison. Writes nothing.
    ///
    /// # Errors
    /// [`ResultsError::Occupied`] if it contains other files, or is a file; [`ResultsError::OtherKind`] if it contains
    /// a comparison.
    pub fn check(path: &Path) -> Result<(), ResultsError> {
        Self::check_owner(path)?;
        let (found, wanted) = ("a comparison", "a single run");
        if has(path, INDEX) { Err(ResultsError::OtherKind { path: path.to_owned(), found, wanted }) } else { Ok(()) }
    }

    /// Checks that a comparison may be written to a directory: it does not exist, is empty, or was made by fairrate for
    /// something else than a run. Writes nothing.
    ///
    /// # Errors
    /// [`ResultsError::Occupied`] if it contains other files, or is a file; [`ResultsError::OtherKind`] if it contains
    /// a run.
    pub fn check_comparison(path: &Path) -> Result<(), ResultsError> {
        Self::check_owner(path)?;
        let (found, wanted) = ("a single run", "a comparison");
        if has(path, SUMMARY) { Err(ResultsError::OtherKind { path: path.to_owned(), found, wanted }) } else { Ok(()) }
    }

    fn check_owner(path: &Path) -> Result<(), ResultsError> {
        if fs::symlink_metadata(path).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
        let mut entries = fs::read_dir(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotADirectory => ResultsError::Occupied { path: path.to_owned() },
            _ => ResultsError::io(path, e),
        })?;
        if entries.next().is_none() || is_ours(path) {
            Ok(())
        } else {
            Err(ResultsError::Occupied { path: path.to_owned() })
        }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens the lock file. If it is a link, which may point anywhere, or no file, returns an error.
fn open_lock(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => Err(io::Error::other("it is no file")),
        _ => OpenOptions::new().read(true).append(true).create(true).open(path),
    }
}

/// Returns `true` if a directory has an entry `name`.
fn has(dir: &Path, name: &str) -> bool {
    fs::symlink_metadata(dir.join(name)).is_ok()
}

/// Returns `true` if fairrate made a directory: it contains the lock file, or a readable summary or index.
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

/// Writes a file in one step: `path` has its old content, or all of `content`. A link of that name is replaced, not
/// followed.
///
/// # Errors
/// Those of the operating system; nothing new is left then.
pub fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    put(path, content.as_ref(), |_| Ok(()))
}

/// Writes a file in one step, as [`write_whole`], and syncs it to disk, so that it survives a loss of power.
///
/// # Errors
/// Those of the operating system.
pub fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    put(path, text.as_bytes(), File::sync_all)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Writes a file in one step; `finish` is called once it has its content, and before it has its name.
fn put(path: &Path, content: &[u8], finish: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!("{name}.new"));
    remove_if_there(&part)?;
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        file.write_all(content)?;
        finish(&file)?;
        fs::rename(&part, path)
    };
    let done = write();
    if done.is_err() {
        // An error of the removal is ignored: the first error is returned.
        let _ = remove_if_there(&part);
    }
    done
}

/// Removes a file, if it exists.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Syncs a directory to disk, so that the names of its files survive a loss of power.
fn sync_dir(path: &Path) -> io::Result<()> {
    // Not every system can open or sync directories; without that, there is nothing more to do.
    match sync_file(path) {
        Err(e) if cfg!(unix) && e.kind() != io::ErrorKind::InvalidInput => Err(e),
        _ => Ok(()),
    }
}

/// Syncs a file to disk.
pub(super) fn sync_file(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
