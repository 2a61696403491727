//! Locks with a limited wait, and errors that name their holder.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use nix::sys::stat::{major, minor};

use crate::error::Error;

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Locks `file`, which messages call `name`, until it is closed. It must be accessible to root only, as any user who
/// can open it can lock it.
///
/// # Errors
/// If another process has the lock at `deadline`; the error names the process.
pub(super) fn exclusively(file: &File, name: &str, deadline: Instant) -> Result<(), Error> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err(busy(file, name)),
            Err(TryLockError::Error(e)) => return Err(Error::system(&format!("lock {name}"), e)),
        }
    }
}

fn busy(file: &File, name: &str) -> Error {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let place = file.metadata().map(|m| format!("{:02x}:{:02x}:{}", major(m.dev()), minor(m.dev()), m.ino()));
    let holder = place.ok().and_then(|place| holder(&locks, &place)).filter(|&process| process != 0);
    let who = match holder {
        Some(process) => {
            let program = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            format!("process {process} (`{}`)", program.trim())
        }
        None => "another process".to_owned(),
    };
    Error::Busy {
        message: format!("{who} holds the lock of {name}"),
        help: "try again when it has ended; `--wait 300s` waits longer".to_owned(),
    }
}

/// Returns the process that holds the lock of the file at `place`, in the kernel's list of locks. The list has waiting
/// processes too.
fn holder(locks: &str, place: &str) -> Option<u32> {
    let mut holders = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = holders.find(|words| words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&place))?;
    line.get(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_not_one_that_waits() {
        let locks = "1: FLOCK  ADVISORY  WRITE 7 00:1d:5 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 8 00:1d:6 0 EOF\n\
                     3: POSIX  ADVISORY  WRITE 9 00:1d:6 0 EOF\n4: FLOCK  ADVISORY  READ 10 00:1d:6 0 EOF\n";
        assert_eq!(holder(locks, "00:1d:6"), Some(10));
        assert_eq!(holder(locks, "00:1d:4"), None);
    }
}
