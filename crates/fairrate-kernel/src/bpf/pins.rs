//! The pins that keep programs in the kernel: a directory for each algorithm below `/sys/fs/bpf/fairrate`.
//!
//! An algorithm is pinned and registered in a directory `stage`, which is then renamed. Processes that attach or detach
//! hold a lock on the directory above. So a `stage` that is found is left from a process that died, and is removed.
//! Only root can open these directories.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sys::statfs::BPF_FS_MAGIC;

use super::directory::Directory;
use super::lock;
use crate::error::Error;
use crate::setup::Algorithm;

const FILE_SYSTEM: &str = "/sys/fs/bpf";
const NAME: &str = "fairrate";
const STAGE: &str = "stage";
/// The lock of processes that mount the file system, so that it is not mounted twice, and of those that change classes
/// at ports.
const MOUNT_LOCK: &str = "/run/fairrate-kernel.lock";
/// Pins that an algorithm may have. The congestion control itself is `ops`, and is removed last.
const PINS: [&str; 10] =
    ["params", "marks", "namespaces", "sockets", "ports", "points", "connections", "port", "options", "ops"];

/// The directory of all pins.
pub(super) struct Pins {
    root: Directory,
    /// The file system that contains it, and the lock; `None` for read-only use.
    held: Option<(Directory, File)>,
}

impl Drop for Pins {
    fn drop(&mut self) {
        if let Some((file_system, _lock)) = &self.held {
            // The directory stays as long as there are pins in it.
            let _ = file_system.remove_child(NAME);
        }
    }
}

impl Pins {
    /// Opens the directory of pins for reading; returns `None` if there is none.
    ///
    /// # Errors
    /// If others than root can change it.
    pub fn look() -> Result<Option<Self>, Error> {
        let Some(file_system) = Directory::mounted(Path::new(FILE_SYSTEM), BPF_FS_MAGIC)? else { return Ok(None) };
        Ok(file_system.child(NAME)?.map(|root| Self { root, held: None }))
    }

    /// Opens the directory of pins and locks it until this value is dropped, or the process ends. Makes the directory
    /// if it does not exist, and mounts the file system for pins if it is not mounted.
    ///
    /// # Errors
    /// If others than root can change the directory, or another process holds the lock for longer than `wait`.
    pub fn lock(wait: Duration) -> Result<Self, Error> {
        let deadline = Instant::now() + wait;
        let file_system = file_system(deadline)?;
        loop {
            let root = file_system.own_child(NAME)?;
            let fd = root.as_fd().try_clone_to_owned();
            let lock = File::from(fd.map_err(|e| Error::system("open the directory of pins", e))?);
            lock::exclusively(&lock, &root.path().display().to_string(), deadline)?;
            // The former holder of the lock may have removed the directory.
            let present = file_system.child(NAME)?.map(|present| present.identity()).transpose()?;
            if present == Some(root.identity()?) {
                return Ok(Self { root, held: Some((file_system, lock)) });
            }
        }
    }

    /// Opens the directory of an algorithm; returns `None` if there is none.
    pub fn of(&self, algorithm: Algorithm) -> Result<Option<Directory>, Error> {
        self.root.child(algorithm.name)
    }

    /// Makes an empty directory for an algorithm that is being attached.
    pub fn stage(&self) -> Result<Directory, Error> {
        self.root.own_child(STAGE)
    }

    /// Renames the stage to the algorithm's name, which completes the attachment.
    pub fn publish(&self, algorithm: Algorithm) -> Result<(), Error> {
        self.root.rename_child(STAGE, algorithm.name)
    }

    /// Removes the remains of a process that died while it attached.
    pub fn clear_stage(&self) -> Result<(), Error> {
        match self.root.child(STAGE)? {
            Some(stage) => self.remove_all(&stage, STAGE),
            None => Ok(()),
        }
    }

    /// Removes an algorithm's pins, the congestion control first.
    pub fn remove(&self, algorithm: Algorithm) -> Result<(), Error> {
        match self.of(algorithm)? {
            Some(dir) => self.remove_all(&dir, algorithm.name),
            None => Ok(()),
        }
    }

    /// Removes `dir`, whose name is `name`, with its pins. Nothing is removed if anything else is in it.
    fn remove_all(&self, dir: &Directory, name: &str) -> Result<(), Error> {
        let there: Vec<&str> = PINS.into_iter().filter(|pin| dir.has(pin)).collect();
        if let Some(other) = dir.names()?.iter().find(|found| !there.iter().any(|pin| *found == pin)) {
            return Err(dir.foreign(&format!("has something in it that is no pin of fairrate, `{}`", other.display())));
        }
        if there.contains(&"ops") {
            super::unregister(dir)?;
        }
        there.iter().try_for_each(|pin| dir.unpin(pin))?;
        self.root.remove_child(name)
    }
}

/// Opens the file system for pins. It is mounted for root only if it is not mounted.
fn file_system(deadline: Instant) -> Result<Directory, Error> {
    let path = Path::new(FILE_SYSTEM);
    if let Some(mounted) = Directory::mounted(path, BPF_FS_MAGIC)? {
        return Ok(mounted);
    }
    let _lock = one_at_a_time(deadline)?;
    if let Some(mounted) = Directory::mounted(path, BPF_FS_MAGIC)? {
        return Ok(mounted);
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // Without a mode all users could write there.
    mount(Some("bpf"), FILE_SYSTEM, Some("bpf"), flags, Some("mode=0700"))
        .map_err(|e| Error::system(&format!("mount {FILE_SYSTEM}"), e))?;
    let mounted = Directory::mounted(path, BPF_FS_MAGIC)?;
    mounted.ok_or_else(|| Error::system(&format!("mount {FILE_SYSTEM}"), "another file system is there"))
}

/// Waits until no other process mounts the file system or changes classes at ports, as long as the returned file is
/// open.
///
/// # Errors
/// If another process has the lock at `deadline`, or the file cannot be trusted.
pub(super) fn one_at_a_time(deadline: Instant) -> Result<File, Error> {
    let lock = mount_lock().map_err(|e| Error::system(&format!("open {MOUNT_LOCK}"), e))?;
    lock::exclusively(&lock, MOUNT_LOCK, deadline)?;
    Ok(lock)
}

/// Opens a file that only root can open, and so lock.
fn mount_lock() -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = options.open(MOUNT_LOCK)?;
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != 0 || found.mode() & 0o077 != 0 {
        return Err(std::io::Error::other("it is not a file of root's alone: remove it"));
    }
    Ok(file)
}
