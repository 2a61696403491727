//! The pins that keep programs in the kernel: a directory for each algorithm below `/sys/fs/bpf/fairrate`.
//!
//! An algorithm is pinned and registered in a directory `stage`, which is then renamed. Whoever attaches or detaches holds a lock on the
//! directory above. So a `stage` that somebody finds is of a process that died, and goes.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::error::Error;
use crate::setup::Algorithm;

const FILE_SYSTEM: &str = "/sys/fs/bpf";
const ROOT: &str = "/sys/fs/bpf/fairrate";
const STAGE: &str = "stage";

/// Holds others off; the directory goes with it if no algorithm is left.
pub(super) struct Lock(#[allow(dead_code)] Flock<File>);

impl Drop for Lock {
    fn drop(&mut self) {
        // It stays as long as there are pins in it.
        let _ = fs::remove_dir(ROOT);
    }
}

/// Holds others off until it is dropped, or the process ends. Mounts the file system for pins if it is not.
pub(super) fn lock() -> Result<Lock, Error> {
    let is_mounted = statfs(FILE_SYSTEM).is_ok_and(|s| s.filesystem_type() == BPF_FS_MAGIC);
    if !is_mounted {
        mount(Some("bpf"), FILE_SYSTEM, Some("bpf"), MsFlags::empty(), None::<&str>)
            .map_err(|e| Error::system(&format!("mount {FILE_SYSTEM}"), e))?;
    }
    loop {
        fs::create_dir_all(ROOT).map_err(|e| Error::system(&format!("make {ROOT}"), e))?;
        let dir = File::open(ROOT).map_err(|e| Error::system(&format!("open {ROOT}"), e))?;
        let lock = Flock::lock(dir, FlockArg::LockExclusive);
        let lock = lock.map_err(|(_, e)| Error::system(&format!("lock {ROOT}"), e))?;
        // Who had the lock may have removed the directory.
        let inode = |m: std::io::Result<fs::Metadata>| m.map(|m| m.ino()).ok();
        if inode(fs::metadata(ROOT)) == inode(lock.metadata()) {
            return Ok(Lock(lock));
        }
    }
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
