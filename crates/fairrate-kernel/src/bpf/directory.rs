//! Directories that root alone can change, held by descriptors.
//!
//! All users may write to `/sys/fs/bpf` where it was mounted without a mode. So a name there proves nothing: a user may
//! have made the directory, put a link in its place, or do so between a check and the next step. A [`Directory`] is
//! opened once, without following links, and checked afterwards by its descriptor. Everything in it is then named
//! relative to the descriptor.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::sys::statfs::{BPF_FS_MAGIC, FsType, fstatfs};
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::error::Error;

/// Permissions of this program's directories: others can neither list nor lock them.
const OWNERS_ALONE: Mode = Mode::S_IRWXU;
/// Permissions by which others than the owner could change the contents of a directory.
const OTHERS_WRITE: u32 = 0o022;

/// An open directory, and its name in messages.
#[derive(Debug)]
pub(super) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens the mount point `path`; returns `None` if there is no file system of type `kind`.
    ///
    /// All users may write there, if the sticky bit prevents them from renaming root's files.
    pub fn mounted(path: &Path, kind: FsType) -> Result<Option<Self>, Error> {
        let open = openat2(nix::fcntl::AT_FDCWD, path, how(ResolveFlag::RESOLVE_NO_SYMLINKS));
        let fd = open.map_err(|e| unusable(path, e))?;
        if fstatfs(&fd).map_err(|e| unusable(path, e))?.filesystem_type() != kind {
            return Ok(None);
        }
        let found = Self { fd, path: path.to_owned() };
        let (stat, mode) = found.stat()?;
        if stat.st_uid != 0 {
            return Err(found.foreign(&format!("belongs to user {}", stat.st_uid)));
        }
        if mode & OTHERS_WRITE != 0 && mode & Mode::S_ISVTX.bits() == 0 {
            return Err(found.foreign(&format!("lets others rename what is root's (mode {mode:04o})")));
        }
        Ok(Some(found))
    }

    /// Opens the directory `name` in this one; returns `None` if there is nothing of that name.
    ///
    /// # Errors
    /// If it is a link or no directory, or if others than root can change its contents.
    pub fn child(&self, name: &str) -> Result<Option<Self>, Error> {
        let path = self.path.join(name);
        let within = ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_XDEV;
        let fd = match openat2(&self.fd, name, how(within)) {
            Ok(fd) => fd,
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP) => return Err(foreign(&path, "is a symbolic link")),
            Err(Errno::ENOTDIR) => return Err(foreign(&path, "is no directory")),
            Err(e) => return Err(unusable(&path, e)),
        };
        let found = Self { fd, path };
        let (stat, mode) = found.stat()?;
        if stat.st_uid != 0 {
            return Err(found.foreign(&format!("belongs to user {}", stat.st_uid)));
        }
        if mode & OTHERS_WRITE != 0 {
            return Err(found.foreign(&format!("can be written by others than root (mode {mode:04o})")));
        }
        if fstatfs(&found.fd).map_err(|e| unusable(&found.path, e))?.filesystem_type() != BPF_FS_MAGIC {
            return Err(found.foreign("is on another file system"));
        }
        Ok(Some(found))
    }

    /// Opens the directory `name` in this one, and makes it if it does not exist. Others than root cannot open it.
    pub fn own_child(&self, name: &str) -> Result<Self, Error> {
        match mkdirat(&self.fd, name, OWNERS_ALONE) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(e) => return Err(Error::system(&format!("make {}", self.path.join(name).display()), e)),
        }
        let child = self.child(name)?.ok_or_else(|| unusable(&self.path.join(name), Errno::ENOENT))?;
        // An earlier version allowed others to open it, and so to hold its lock.
        fchmod(&child.fd, OWNERS_ALONE).map_err(|e| unusable(&child.path, e))?;
        Ok(child)
    }

    /// Returns the path of `pin`, through the descriptor: it leads into this directory, even if its name is replaced.
    pub fn pin(&self, pin: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{pin}", self.fd.as_raw_fd()))
    }

    /// Returns `true` if `pin` exists, and is neither a link nor a directory.
    pub fn has(&self, pin: &str) -> bool {
        fstatat(&self.fd, pin, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|stat| is_pin(&stat))
    }

    /// Returns the names of everything in it.
    pub fn names(&self) -> Result<Vec<OsString>, Error> {
        let entries = fs::read_dir(self.pin("")).map_err(|e| unusable(&self.path, e))?;
        entries.map(|entry| Ok(entry.map_err(|e| unusable(&self.path, e))?.file_name())).collect()
    }

    /// Removes a pin.
    pub fn unpin(&self, pin: &str) -> Result<(), Error> {
        let result = unlinkat(&self.fd, pin, UnlinkatFlags::NoRemoveDir);
        result.map_err(|e| Error::system(&format!("remove the pin {}", self.path.join(pin).display()), e))
    }

    /// Removes the directory `name` in this one, which must be empty.
    pub fn remove_child(&self, name: &str) -> Result<(), Error> {
        let result = unlinkat(&self.fd, name, UnlinkatFlags::RemoveDir);
        result.map_err(|e| Error::system(&format!("remove {}", self.path.join(name).display()), e))
    }

    /// Renames the directory `from` in this one to `to`.
    pub fn rename_child(&self, from: &str, to: &str) -> Result<(), Error> {
        let result = nix::fcntl::renameat(&self.fd, from, &self.fd, to);
        result.map_err(|e| Error::system(&format!("rename {}", self.path.join(from).display()), e))
    }

    /// Returns device and inode, which are unique as long as this directory is open.
    pub fn identity(&self) -> Result<(u64, u64), Error> {
        self.stat().map(|(stat, _)| (stat.st_dev, stat.st_ino))
    }

    /// Returns the error that this directory, or `what` in it, was not made by this program.
    pub fn foreign(&self, what: &str) -> Error {
        foreign(&self.path, what)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory's state, and its permission bits.
    fn stat(&self) -> Result<(FileStat, u32), Error> {
        let stat = fstat(&self.fd).map_err(|e| unusable(&self.path, e))?;
        Ok((stat, stat.st_mode & 0o7777))
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns `true` if `stat` is of a pin of root: on a file system for pins only objects of the kernel are regular
/// files.
fn is_pin(stat: &FileStat) -> bool {
    stat.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits() && stat.st_uid == 0
}

fn how(resolve: ResolveFlag) -> OpenHow {
    OpenHow::new().flags(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).resolve(resolve)
}

fn unusable(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::system(&format!("open {}", path.display()), error)
}

fn foreign(path: &Path, what: &str) -> Error {
    let (parent, path) = (path.parent().unwrap_or(path).display(), path.display());
    let help = format!(
        "see what it is with `ls -ld {path}` and remove it; after `chmod go-w {parent}` only root can put it there"
    );
    Error::refused(format!("`{path}` {what}, so it is not used"), help)
}
