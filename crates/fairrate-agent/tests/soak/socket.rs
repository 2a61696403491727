//! The kernel's view of a sending socket.

use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use nix::libc;

/// Length of the part of `struct tcp_info` that is read; the fields are those of `linux/tcp.h`.
const LENGTH: usize = 148;

/// State of a socket.
pub struct State {
    /// Limit of its rate, payload in bit/s (`SO_MAX_PACING_RATE`); infinite without one.
    pub limit_bps: f64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Time since the last acknowledgment.
    pub since_ack: Duration,
    /// `true` if bytes wait to be sent or acknowledged.
    pub has_data: bool,
    /// Number of times that the retransmission timeout has doubled since the last acknowledgment.
    pub backoff: u8,
}

/// Returns the state of a socket; `None` if it has none any more.
pub fn state(socket: &TcpStream) -> Option<State> {
    let mut info = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: `info` is valid for `length` bytes, any of which may be any value, and the descriptor is open.
    #[allow(unsafe_code)]
    let code = unsafe {
        let to = info.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length)
    };
    if code != 0 || (length as usize) < LENGTH {
        return None;
    }
    let word = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().expect("it has four bytes"));
    let limit = u64::from_ne_bytes(info[112..120].try_into().expect("it has eight bytes"));
    // tcpi_unacked, tcpi_notsent_bytes; tcpi_rtt in us, tcpi_last_ack_recv in ms; tcpi_backoff.
    Some(State {
        limit_bps: if limit == u64::MAX { f64::INFINITY } else { limit as f64 * 8.0 },
        rtt: Duration::from_micros(word(68).into()),
        since_ack: Duration::from_millis(word(56).into()),
        has_data: word(24) != 0 || word(144) != 0,
        backoff: info[4],
    })
}
