//! File descriptors: agents' connections leave enough of them to the metrics port, the log, and the loading of keys.

use fairrate_daemon::http::MAX_OPEN;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The number of descriptors reserved for purposes other than connections of agents.
const RESERVE: u64 = MAX_OPEN as u64 + 48;

/// Raises the limit of descriptors as far as allowed, and returns the number of connections that it allows, at most
/// `wanted`.
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
