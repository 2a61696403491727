//! Network namespaces, and their default congestion control.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::error::Error;

const NAMED: &str = "/run/netns";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// `SO_NETNS_COOKIE` of Linux.
const NETNS_COOKIE: libc::c_int = 71;

/// A network namespace. It is held open, since the process of its path may end at any time.
#[derive(Clone, Debug)]
pub struct Namespace {
    path: PathBuf,
    file: Arc<File>,
    cookie: u64,
}

impl Namespace {
    /// Opens the namespace of `ip netns` with this name, or at this path if it has a `/`.
    ///
    /// # Errors
    /// If there is no such namespace.
    pub fn named(name: &str) -> Result<Self, Error> {
        let path = if name.contains('/') { PathBuf::from(name) } else { Path::new(NAMED).join(name) };
        if !path.exists() {
            let message = format!("there is no network namespace `{name}`");
            return Err(Error::refused(message, "`ip netns` lists them"));
        }
        Self::at(path)
    }

    /// Opens the namespace of this process.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn here() -> Result<Self, Error> {
        Self::at("/proc/self/ns/net".into())
    }

    fn at(path: PathBuf) -> Result<Self, Error> {
        let file = File::open(&path).map_err(|e| unusable(&path, e))?;
        Self::opened(path, file)
    }

    fn opened(path: PathBuf, file: File) -> Result<Self, Error> {
        let cookie = inside(&file, cookie).map_err(|e| unusable(&path, e))?;
        Ok(Self { path, file: Arc::new(file), cookie })
    }

    /// Returns its number, which no other namespace has had since the machine started.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Returns its name, if `ip netns` has one for it.
    pub(super) fn name(&self) -> Option<String> {
        self.path.strip_prefix(NAMED).ok().map(|name| name.display().to_string())
    }

    /// Returns a path by which it can be found again; empty if its path is that of a process.
    pub(super) fn lasting_path(&self) -> String {
        if self.path.starts_with("/proc") { String::new() } else { self.path.display().to_string() }
    }

    /// Runs `f` in the namespace.
    pub(super) fn inside<T: Send>(&self, f: impl FnOnce() -> std::io::Result<T> + Send) -> Result<T, Error> {
        inside(&self.file, f).map_err(|e| unusable(&self.path, e))
    }

    /// Returns the congestion control of new sockets.
    pub(super) fn default(&self) -> Result<String, Error> {
        self.inside(|| fs::read_to_string(DEFAULT)).map(|name| name.trim().to_owned())
    }

    pub(super) fn set_default(&self, name: &str) -> Result<(), Error> {
        self.inside(|| fs::write(DEFAULT, name))
    }
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => write!(f, "namespace `{name}`"),
            None => write!(f, "the namespace of {}", self.path.display()),
        }
    }
}

/// Calls `f` with each namespace that has a name or a process. Only one is open at a time: users may make more of them
/// than a process may have files.
///
/// # Errors
/// The errors of `f`, and an error if files cannot be opened.
pub(super) fn each(mut f: impl FnMut(&Namespace) -> Result<(), Error>) -> Result<(), Error> {
    let entries = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let processes = entries("/proc").filter(|p| p.file_name().is_some_and(is_number)).map(|p| p.join("ns/net"));
    let mut seen = BTreeSet::new();
    // If several paths lead to a namespace, the first counts: its name.
    for path in entries(NAMED).chain(processes) {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if too_many(&e) => return Err(unusable(&path, e)),
            // A namespace that disappears meanwhile is not an error.
            Err(_) => continue,
        };
        let Ok(inode) = file.metadata().map(|m| m.ino()) else { continue };
        if seen.insert(inode)
            && let Ok(namespace) = Namespace::opened(path, file)
        {
            f(&namespace)?;
        }
    }
    Ok(())
}

fn is_number(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
}

fn too_many(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}

/// Returns the namespaces with these numbers that can be found by a path, a name or a process.
///
/// # Errors
/// If files cannot be opened.
pub(super) fn find(wanted: &BTreeMap<u64, String>) -> Result<BTreeMap<u64, Namespace>, Error> {
    let mut found = BTreeMap::new();
    for (&cookie, path) in wanted.iter().filter(|(_, path)| !path.is_empty()) {
        if let Some(namespace) = Namespace::at(path.into()).ok().filter(|n| n.cookie == cookie) {
            found.insert(cookie, namespace);
        }
    }
    if found.len() < wanted.len() {
        each(|namespace| {
            if wanted.contains_key(&namespace.cookie) {
                found.entry(namespace.cookie).or_insert_with(|| namespace.clone());
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// Returns the number of the namespace from which new ones take their default: that of the first process or, where that
/// is hidden, that of this process.
pub(super) fn first() -> Option<u64> {
    let first = ["/proc/1/ns/net", "/proc/self/ns/net"].into_iter().find_map(|path| Namespace::at(path.into()).ok());
    first.map(|first| first.cookie)
}

/// Runs `f` in a namespace, on a thread of its own.
fn inside<T: Send>(namespace: &File, f: impl FnOnce() -> std::io::Result<T> + Send) -> std::io::Result<T> {
    let enter = || {
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        f()
    };
    let result = std::thread::scope(|scope| scope.spawn(enter).join());
    result.unwrap_or_else(|_| Err(std::io::Error::other("the thread panicked")))
}

fn unusable(path: &Path, error: std::io::Error) -> Error {
    Error::system(&format!("use the network namespace {}", path.display()), error)
}

/// Returns the cookie of the thread's namespace.
fn cookie() -> std::io::Result<u64> {
    let fd = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    let (value, n) = ((&raw mut cookie).cast(), &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to `cookie`.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, NETNS_COOKIE, value, n) };
    if result == 0 { Ok(cookie) } else { Err(std::io::Error::last_os_error()) }
}
