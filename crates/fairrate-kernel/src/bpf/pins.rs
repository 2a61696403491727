//! The pins that keep programs in the kernel: a directory for each algorithm below `/sys/fs/bpf/fairrate`.
//!
//! An algorithm is pinned and registered in a directory `stage`, which is then renamed. Whoever attaches or detaches holds a lock on the
//! directory above. So a `stage` that somebody finds is of a process that died, and goes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::error::Error;
use crate::setup::Algorithm;

const FILE_SYSTEM: &str = "/sys/fs/bpf";
const ROOT: &str = "/sys/fs/bpf/fairrate";
const STAGE: &str = "stage";

/// Holds others off until it is dropped, or the process ends. Mounts the file system for pins if it is not.
pub(super) fn lock() -> Result<Flock<File>, Error> {
    let is_mounted = statfs(FILE_SYSTEM).is_ok_and(|s| s.filesystem_type() == BPF_FS_MAGIC);
    if !is_mounted {
        mount(Some("bpf"), FILE_SYSTEM, Some("bpf"), MsFlags::empty(), None::<&str>)
            .map_err(|e| Error::system(&format!("mount {FILE_SYSTEM}"), e))?;
    }
    fs::create_dir_all(ROOT).map_err(|e| Error::system(&format!("make {ROOT}"), e))?;
    let dir = File::open(ROOT).map_err(|e| Error::system(&format!("open {ROOT}"), e))?;
    Flock::lock(dir, FlockArg::LockExclusive).map_err(|(_, e)| Error::system(&format!("lock {ROOT}"), e))
}

/// Where the pins of an algorithm are.
pub(super) fn path(algorithm: Algorithm) -> PathBuf {
    Path::new(ROOT).join(algorithm.name)
}

/// The same if there are any.
pub(super) fn dir(algorithm: Algorithm) -> Option<PathBuf> {
    Some(path(algorithm)).filter(|p| p.exists())
}

/// An empty directory for an algorithm on its way.
pub(super) fn stage() -> Result<PathBuf, Error> {
    let stage = Path::new(ROOT).join(STAGE);
    fs::create_dir(&stage).map_err(|e| Error::system("make a directory for pins", e))?;
    Ok(stage)
}

/// The algorithm is there.
pub(super) fn publish(stage: &Path, algorithm: Algorithm) -> Result<(), Error> {
    fs::rename(stage, path(algorithm)).map_err(|e| Error::system("keep the pins", e))
}

/// Removes what a process that died has left.
pub(super) fn clean() -> Result<(), Error> {
    let stage = Path::new(ROOT).join(STAGE);
    if stage.exists() { remove(&stage) } else { Ok(()) }
}

/// Removes the pins of a directory, the congestion control first.
pub(super) fn remove(dir: &Path) -> Result<(), Error> {
    let ops = dir.join("ops");
    if ops.exists() {
        super::unregister(&ops)?;
    }
    for entry in fs::read_dir(dir).map_err(|e| Error::system("list the pins", e))?.flatten() {
        fs::remove_file(entry.path()).map_err(|e| Error::system("remove a pin", e))?;
    }
    fs::remove_dir(dir).map_err(|e| Error::system("remove a directory of pins", e))
}
