//! The kernel's information on a connection: `TCP_INFO`, in the layout of `linux/tcp.h`. The C library's layout is
//! older.

use std::os::fd::{AsFd, AsRawFd as _};

use crate::failure::Failure;

/// `struct tcp_info` up to `tcpi_total_rto`. Older kernels fill less of it; missing fields are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    bytes: [u8; 8],
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last: [u32; 4],
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
    rcv_wnd: u32,
    rehash: u32,
    total_rto: u16,
    total_rto_recoveries: u16,
    total_rto_time: u32,
}

/// State and counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: u32,
    /// Least round-trip time in microseconds.
    pub min_rtt_us: u32,
    /// Window in bytes of payload.
    pub cwnd_bytes: u64,
    /// Rate at which the kernel paces, or would pace; `None`: no limit.
    pub pacing_bps: Option<u64>,
    /// Payload bytes sent, including retransmissions.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Number of segments with payload sent.
    pub segments_sent: u64,
    /// Number of segments with payload received.
    pub segments_received: u64,
    /// Segments with payload that the sender knows to have arrived, retransmissions included.
    pub segments_delivered: u64,
    /// Segments that are under way, as TCP estimates it: neither acknowledged nor taken for lost.
    pub segments_in_flight: u64,
    /// Segments whose acknowledgments said that they were marked (ECN).
    pub segments_marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Time, in microseconds, during which the receiver's window was the limit.
    pub receiver_limited_us: u64,
}

impl TcpInfo {
    /// Reads the information of a TCP socket.
    ///
    /// # Errors
    /// If it is not a TCP socket.
    pub fn of(socket: &impl AsFd) -> Result<Self, Failure> {
        let mut layout = Layout::default();
        get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut layout)?;
        Ok(Self::from(&layout))
    }

    /// Reads the information of an MPTCP socket: windows, rates and counters are sums over its subflows, and round-trip
    /// times the longest.
    ///
    /// # Errors
    /// If it is not an MPTCP socket.
    pub fn of_subflows(socket: &impl AsFd) -> Result<Self, Failure> {
        let all = subflows(socket)?;
        Ok(all.infos[..all.n()].iter().map(Self::from).reduce(Self::joined).unwrap_or_default())
    }

    /// Returns the sum of two subflows.
    fn joined(self, other: Self) -> Self {
        Self {
            rtt_us: self.rtt_us.max(other.rtt_us),
            min_rtt_us: self.min_rtt_us.max(other.min_rtt_us),
            cwnd_bytes: self.cwnd_bytes + other.cwnd_bytes,
            pacing_bps: self.pacing_bps.zip(other.pacing_bps).map(|(a, b)| a + b),
            bytes_sent: self.bytes_sent + other.bytes_sent,
            bytes_retransmitted: self.bytes_retransmitted + other.bytes_retransmitted,
            segments_sent: self.segments_sent + other.segments_sent,
            segments_received: self.segments_received + other.segments_received,
            segments_delivered: self.segments_delivered + other.segments_delivered,
            segments_in_flight: self.segments_in_flight + other.segments_in_flight,
            segments_marked: self.segments_marked + other.segments_marked,
            timeouts: self.timeouts + other.timeouts,
            receiver_limited_us: self.receiver_limited_us.max(other.receiver_limited_us),
        }
    }
}

impl From<&Layout> for TcpInfo {
    fn from(layout: &Layout) -> Self {
        Self {
            rtt_us: layout.rtt,
            min_rtt_us: layout.min_rtt,
            cwnd_bytes: u64::from(layout.snd_cwnd) * u64::from(layout.snd_mss),
            pacing_bps: Some(layout.pacing_rate).filter(|&rate| rate < u64::MAX / 8).map(|rate| rate * 8),
            bytes_sent: layout.bytes_sent,
            bytes_retransmitted: layout.bytes_retrans,
            segments_sent: u64::from(layout.data_segs_out),
            segments_received: u64::from(layout.data_segs_in),
            segments_delivered: u64::from(layout.delivered),
            segments_in_flight: (u64::from(layout.unacked) + u64::from(layout.retrans))
                .saturating_sub(u64::from(layout.sacked) + u64::from(layout.lost)),
            segments_marked: u64::from(layout.delivered_ce),
            timeouts: u32::from(layout.total_rto),
            receiver_limited_us: layout.rwnd_limited,
        }
    }
}

/// `SOL_MPTCP` and `MPTCP_TCPINFO` of `linux/mptcp.h`.
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_TCPINFO: libc::c_int = 2;
/// Largest number of subflows that the kernel reports.
const MOST_SUBFLOWS: usize = 16;

/// `struct mptcp_subflow_data`, followed by the information of each subflow.
#[repr(C, align(8))]
#[derive(Debug)]
struct Subflows {
    size: u32,
    n: u32,
    size_of_kernels: u32,
    size_of_each: u32,
    infos: [Layout; MOST_SUBFLOWS],
}

impl Subflows {
    fn n(&self) -> usize {
        (self.n as usize).min(MOST_SUBFLOWS)
    }
}

fn subflows(socket: &impl AsFd) -> Result<Subflows, Failure> {
    let size_of_each = size_of::<Layout>() as u32;
    let infos = [Layout::default(); MOST_SUBFLOWS];
    let mut all = Subflows { size: 16, n: 0, size_of_kernels: 0, size_of_each, infos };
    get(socket, SOL_MPTCP, MPTCP_TCPINFO, &mut all)?;
    Ok(all)
}

/// Returns the present number of subflows of an MPTCP socket.
///
/// # Errors
/// If it is not an MPTCP socket.
pub fn n_subflows(socket: &impl AsFd) -> Result<usize, Failure> {
    Ok(subflows(socket)?.n())
}

/// Reads a socket option into `value`, which may hold any bytes.
fn get<T>(socket: &impl AsFd, level: libc::c_int, option: libc::c_int, value: &mut T) -> Result<(), Failure> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let to = std::ptr::from_mut(value).cast();
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `to` is valid for `length` bytes, any of which may be any value, and the descriptor is open.
    #[allow(unsafe_code)]
    let code = unsafe { libc::getsockopt(fd, level, option, to, &raw mut length) };
    if code == 0 { Ok(()) } else { Err(Failure::system("reading TCP_INFO", std::io::Error::last_os_error())) }
}

impl TcpInfo {
    /// Returns the same state with counters from `before` on.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        Self {
            bytes_sent: self.bytes_sent - before.bytes_sent,
            bytes_retransmitted: self.bytes_retransmitted - before.bytes_retransmitted,
            segments_sent: self.segments_sent - before.segments_sent,
            segments_received: self.segments_received - before.segments_received,
            segments_delivered: self.segments_delivered - before.segments_delivered,
            segments_marked: self.segments_marked - before.segments_marked,
            timeouts: self.timeouts - before.timeouts,
            receiver_limited_us: self.receiver_limited_us - before.receiver_limited_us,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_kernel_has_them() {
        // `pahole` on Linux 6.18: tcpi_pacing_rate at 104, tcpi_min_rtt at 148, tcpi_bytes_sent at 200, tcpi_total_rto
        // at 240.
        let at = |field: usize| field;
        assert_eq!(at(std::mem::offset_of!(Layout, pacing_rate)), 104);
        assert_eq!(at(std::mem::offset_of!(Layout, min_rtt)), 148);
        assert_eq!(at(std::mem::offset_of!(Layout, bytes_sent)), 200);
        assert_eq!(at(std::mem::offset_of!(Layout, total_rto)), 240);
    }

    #[test]
    fn a_connection_on_loopback_counts_what_it_sends() {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[0; 700]).unwrap();
        far.read_exact(&mut [0; 700]).unwrap();
        let (near, far) = (TcpInfo::of(&near).unwrap(), TcpInfo::of(&far).unwrap());
        assert_eq!((near.bytes_sent, near.segments_sent, near.bytes_retransmitted), (700, 1, 0));
        assert_eq!(far.segments_received, 1);
        assert!(0 < near.cwnd_bytes);
    }
}
