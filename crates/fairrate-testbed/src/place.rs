//! A check that root may write results to a directory.
//!
//! A user who can write there can replace a folder of results by a link, and so redirect root's writes and removals.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::failure::Failure;

/// The user and group whose directories root may write to, besides root: those of the caller of `sudo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trusted {
    user: u32,
    group: u32,
}

impl Trusted {
    /// Returns the caller of `sudo` by its environment variables; root if there are none.
    fn here() -> Self {
        let id = |name: &str| std::env::var(name).ok().and_then(|id| id.parse().ok()).unwrap_or(0);
        Self { user: id("SUDO_UID"), group: id("SUDO_GID") }
    }

    /// Returns the other user or group who can write to a directory, in words.
    fn stranger(self, user: u32, group: u32, mode: u32) -> Option<String> {
        if user != 0 && user != self.user {
            Some(format!("user {user}"))
        } else if mode & 0o020 != 0 && group != 0 && group != self.group {
            Some(format!("group {group}"))
        } else {
            (mode & 0o002 != 0).then(|| "everybody".to_owned())
        }
    }
}

/// Refuses a directory for results that users other than root and the caller of `sudo` can write to. A missing
/// directory is accepted.
///
/// # Errors
/// If others can write to the directory.
pub fn check(dir: &Path) -> Result<(), Failure> {
    let found: Metadata = match fs::metadata(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|e| Failure::io("looking at", dir, e))?,
    };
    match Trusted::here().stranger(found.uid(), found.gid(), found.mode()) {
        Some(stranger) => Err(Failure::Usage {
            message: format!("{stranger} can write to `{}`, and so lead what root writes elsewhere", dir.display()),
            help: "choose a directory of root's or of yours with `--out`, or one that is not there".to_owned(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_those_who_are_neither_root_nor_called_sudo() {
        let alone = Trusted { user: 0, group: 0 };
        let alice = Trusted { user: 1000, group: 1000 };
        assert_eq!(alone.stranger(0, 0, 0o755), None);
        assert_eq!(alone.stranger(0, 0, 0o775), None);
        assert_eq!(alice.stranger(1000, 1000, 0o775), None);
        assert_eq!(alone.stranger(1000, 1000, 0o755).as_deref(), Some("user 1000"));
        assert_eq!(alice.stranger(1001, 1000, 0o755).as_deref(), Some("user 1001"));
        assert_eq!(alice.stranger(1000, 50, 0o775).as_deref(), Some("group 50"));
        assert_eq!(alice.stranger(1000, 50, 0o755), None);
        assert_eq!(alone.stranger(0, 0, 0o1777).as_deref(), Some("everybody"));
    }
}
