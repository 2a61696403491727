//! A directory of keys, handled as root must: other users may have put files there before.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{Gid, UnlinkatFlags, fchown, geteuid, unlinkat};

use super::KeysError;

/// The mode bits by which others could do harm: all bits of others, and the group's write and execute bits.
const OPEN: u32 = 0o037;

/// Largest number of bytes of a file; a longer file holds no key.
const MAX_LEN: u64 = 1 << 20;

/// A directory that is opened once. Its files are opened relative to it, and no link is followed.
#[derive(Debug)]
pub(super) struct KeyDir {
    dir: File,
    path: PathBuf,
}

/// An existing file, and its permissions.
#[derive(Debug)]
pub(super) struct Found {
    pub text: String,
    mode: u32,
    group: Gid,
}

/// The users, besides the owner, who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// All users.
    All,
    /// No other user.
    Owner,
    /// A group.
    Group(Gid),
}

impl KeyDir {
    /// Opens the directory at `path`, and makes it if there is none.
    ///
    /// # Errors
    /// If it cannot be opened, or others may put files into it.
    pub fn open(path: &Path) -> Result<Self, KeysError> {
        let fail = |cause| KeysError::File { path: path.to_owned(), cause };
        // Parent directories are made accessible to all, and the last one to its owner.
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(fail)?;
        }
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(fail(e)),
            _ => {}
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let dir = nix::fcntl::open(path, flags, Mode::empty()).map_err(|e| fail(e.into()))?;
        let dir = File::from(dir);
        let metadata = dir.metadata().map_err(fail)?;
        let refuse = |why: &str| Err(KeysError::Place { path: path.to_owned(), why: why.to_owned() });
        if metadata.uid() != geteuid().as_raw() {
            return refuse("the directory belongs to another user: name one of your own");
        }
        if metadata.mode() & 0o022 != 0 {
            return refuse("others may write to the directory: `chmod 700` it after a look at what is there");
        }
        Ok(Self { dir, path: path.to_owned() })
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn error(&self, name: &str) -> impl Fn(io::Error) -> KeysError + use<> {
        let path = self.path_of(name);
        move |cause| KeysError::File { path: path.clone(), cause }
    }

    /// Allows `group` to find files in the directory.
    pub fn open_to(&self, group: Gid) -> Result<(), KeysError> {
        let opened = fchown(&self.dir, None, Some(group))
            .and_then(|()| fchmod(&self.dir, Mode::S_IRWXU | Mode::S_IRGRP | Mode::S_IXGRP));
        let why = |e| format!("cannot be given to the group {group}: {e}; root can do that");
        opened.map_err(|e| KeysError::Place { path: self.path.clone(), why: why(e) })
    }

    /// Lets a group read a file.
    pub fn open_key_to(&self, name: &str, group: Gid) -> Result<(), KeysError> {
        let Some(file) = self.open_file(name)? else { return Err(self.no_file(name)) };
        open_to(&file, Readers::Group(group)).map_err(self.error(name))
    }

    /// Returns the names of all files.
    pub fn names(&self) -> Result<Vec<String>, KeysError> {
        let entries = std::fs::read_dir(&self.path).map_err(self.error(""))?;
        // A name that is not UTF-8 is not the name of a key.
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    fn open_file(&self, name: &str) -> Result<Option<File>, KeysError> {
        // Without `O_NONBLOCK` opening a pipe would block.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match openat(&self.dir, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(nix::errno::Errno::ENOENT) => return Ok(None),
            Err(nix::errno::Errno::ELOOP) => return Err(self.no_file(name)),
            Err(e) => return Err(self.error(name)(e.into())),
        };
        if file.metadata().map_err(self.error(name))?.is_file() { Ok(Some(file)) } else { Err(self.no_file(name)) }
    }

    fn no_file(&self, name: &str) -> KeysError {
        let why = "this is a link or no file at all, and is not followed: remove it".to_owned();
        KeysError::Place { path: self.path_of(name), why }
    }

    /// Reads a file; returns `None` if there is none.
    pub fn read(&self, name: &str) -> Result<Option<Found>, KeysError> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let metadata = file.metadata().map_err(self.error(name))?;
        let mut text = String::new();
        file.take(MAX_LEN).read_to_string(&mut text).map_err(self.error(name))?;
        Ok(Some(Found { text, mode: metadata.mode(), group: Gid::from_raw(metadata.gid()) }))
    }

    /// Writes a file that does not exist.
    pub fn create(&self, name: &str, text: &str, readers: Readers) -> Result<(), KeysError> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&self.dir, name, flags, Mode::S_IRUSR | Mode::S_IWUSR);
        let mut file = File::from(file.map_err(|e| self.error(name)(e.into()))?);
        let written =
            file.write_all(text.as_bytes()).and_then(|()| open_to(&file, readers)).and_then(|()| file.sync_all());
        if written.is_err() {
            self.remove(name);
        }
        written.map_err(self.error(name))
    }

    /// Replaces a file, if there is one, atomically.
    pub fn replace(&self, name: &str, text: &str, readers: Readers) -> Result<(), KeysError> {
        let new = format!(".{name}.new");
        // A file that may be left from a run that was killed.
        self.remove(&new);
        self.create(&new, text, readers)?;
        renameat(&self.dir, new.as_str(), &self.dir, name).map_err(|e| self.error(name)(e.into()))
    }

    /// Removes a file that this run has made; it may be missing.
    pub fn remove(&self, name: &str) {
        let _ = unlinkat(&self.dir, name, UnlinkatFlags::NoRemoveDir);
    }

    /// Removes all permissions of others from a file; returns its former mode if there were any.
    pub fn close_to_others(&self, name: &str) -> Result<Option<u32>, KeysError> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let mode = file.metadata().map_err(self.error(name))?.mode() & 0o777;
        if mode & OPEN == 0 {
            return Ok(None);
        }
        fchmod(&file, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|e| self.error(name)(e.into()))?;
        Ok(Some(mode))
    }
}

impl Found {
    /// Returns the readers, besides the owner, of a file that replaces this one: the group, but never others.
    pub fn readers(&self) -> Readers {
        if self.mode & 0o040 != 0 && self.mode & OPEN == 0 { Readers::Group(self.group) } else { Readers::Owner }
    }
}

fn open_to(file: &File, readers: Readers) -> io::Result<()> {
    let owner = Mode::S_IRUSR | Mode::S_IWUSR;
    match readers {
        Readers::Owner => {}
        Readers::All => fchmod(file, owner | Mode::S_IRGRP | Mode::S_IROTH)?,
        Readers::Group(group) => {
            fchown(file, None, Some(group))?;
            fchmod(file, owner | Mode::S_IRGRP)?;
        }
    }
    Ok(())
}
