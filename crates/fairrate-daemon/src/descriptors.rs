//! File descriptors: agents' connections leave some to the metrics port, the log, and keys that are loaded again.

use fairrate_daemon::http::MAX_OPEN;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The descriptors that are not for connections of agents.
const RESERVE: u64 = MAX_OPEN as u64 + 48;

/// Raises the number of descriptors as far as it may be, and returns how many connections there is room for, `wanted` at most.
pub fn room_for(wanted: usize) -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return wanted };
    let most = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    };
    let room = usize::try_from(most.saturating_sub(RESERVE)).unwrap_or(usize::MAX).max(1);
    if room < wanted {
        tracing::warn!(wanted, room, "too few file descriptors for `limits.connections`: raise `LimitNOFILE`");
    }
    wanted.min(room)
}
