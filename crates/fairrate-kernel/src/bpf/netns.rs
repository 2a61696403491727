//! Network namespaces: which there are, and their default congestion control.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
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

/// A network namespace. It is held open: the process whose path led there may be gone the next moment.
#[derive(Clone, Debug)]
pub struct Namespace {
    path: PathBuf,
    file: Arc<File>,
    cookie: u64,
}

impl Namespace {
    /// The one of `ip netns` with this name, or at this path if it has a `/`.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Self, Error> {
        let path = if name.contains('/') { PathBuf::from(name) } else { Path::new(NAMED).join(name) };
        if !path.exists() {
            let message = format!("there is no network namespace `{name}`");
            return Err(Error::refused(message, "`ip netns` lists them"));
        }
        Self::at(path)
    }

    /// The one of this process.
    ///
    /// # Errors
    /// If the kernel does not tell.
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

    /// The number that no other namespace has had since the machine started.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Its name, if `ip netns` has one for it.
    pub(super) fn name(&self) -> Option<String> {
        self.path.strip_prefix(NAMED).ok().map(|name| name.display().to_string())
    }

    /// Runs `f` in it.
    pub(super) fn inside<T: Send>(&self, f: impl FnOnce() -> std::io::Result<T> + Send) -> Result<T, Error> {
        inside(&self.file, f).map_err(|e| unusable(&self.path, e))
    }

    /// The congestion control of new sockets.
    pub(super) fn default(&self) -> Result<String, Error> {
        self.inside(|| fs::read_to_string(DEFAULT)).map(|name| name.trim().to_owned())
    }

    pub(super) fn set_default(&self, name: &str) -> Result<(), Error> {
        self.inside(|| fs::write(DEFAULT, name))
    }
}

/// All that have a name or a process.
pub(super) fn all() -> Vec<Namespace> {
    let entries = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let processes = entries("/proc").map(|p| p.join("ns/net"));
    // What goes away meanwhile is no error.
    let opened = processes.chain(entries(NAMED)).filter_map(|path| {
        let file = File::open(&path).ok()?;
        Some((file.metadata().ok()?.ino(), (path, file)))
    });
    // Of several paths to one the last counts: its name.
    let unique: BTreeMap<u64, (PathBuf, File)> = opened.collect();
    unique.into_values().filter_map(|(path, file)| Namespace::opened(path, file).ok()).collect()
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

/// The cookie of the thread's namespace.
fn cookie() -> std::io::Result<u64> {
    let fd = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    let (value, n) = ((&raw mut cookie).cast(), &raw mut length);
    // SAFETY: the kernel writes at most `length` bytes to `cookie`.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, NETNS_COOKIE, value, n) };
    if result == 0 { Ok(cookie) } else { Err(std::io::Error::last_os_error()) }
}
