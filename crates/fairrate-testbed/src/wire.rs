//! Packet sockets: packets as they leave and enter a device.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::sys::socket::sockopt::{GetStruct, RcvBufForce, ReceiveTimestampns, SetBool};
use nix::sys::socket::{ControlMessageOwned, GetSockOpt as _, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::failure::Failure;

/// Room for packets that have not been read. Several hundred full packets wait if a thread of this program is late by
/// 50 ms.
const UNREAD: usize = 16 << 20;
/// IPv4 as frames encode it. Programs of `tc` have handled a packet before a socket of a single protocol gets it.
const IPV4: u16 = libc::ETH_P_IP as u16;

/// The option to pass the kernel's checksum state with each packet, since checksums are not computed between
/// namespaces.
#[derive(Clone, Copy, Debug)]
struct WithHeader;
nix::setsockopt_impl!(WithHeader, libc::SOL_PACKET, libc::PACKET_VNET_HDR, bool, SetBool);

/// The option to read a socket's counters since the last read.
#[derive(Clone, Copy, Debug)]
struct Statistics;
nix::getsockopt_impl!(
    Statistics,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats,
    GetStruct<libc::tpacket_stats>
);

/// A socket that receives the packets entering a device, and sends packets out of it.
#[derive(Debug)]
pub struct WireEnd {
    socket: Socket,
}

impl WireEnd {
    /// Opens a socket at a device of the thread's namespace.
    ///
    /// # Errors
    /// If there is no such device, or without root.
    pub fn open(device: &str) -> Result<Self, Failure> {
        let open = || -> io::Result<Self> {
            let index = nix::net::if_::if_nametoindex(device)?;
            // No packet arrives before it is bound: the protocol is given there.
            let socket = Socket::new(Domain::PACKET, Type::RAW, None::<Protocol>)?;
            socket.set_nonblocking(true)?;
            setsockopt(&socket, RcvBufForce, &UNREAD)?;
            setsockopt(&socket, ReceiveTimestampns, &true)?;
            setsockopt(&socket, WithHeader, &true)?;
            socket.bind(&address(index)?)?;
            Ok(Self { socket })
        };
        open().map_err(|e| Failure::system(format!("opening `{device}` for packets"), e))
    }

    /// Receives the next packet into `packet`; returns its length and its arrival time by the kernel's clock, or `None`
    /// if there is no packet.
    ///
    /// # Errors
    /// If the device is removed.
    pub fn receive(&self, packet: &mut [u8], control: &mut [u8]) -> io::Result<Option<(usize, Instant)>> {
        let mut parts = [IoSliceMut::new(packet)];
        let received = recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(control), MsgFlags::empty());
        let message = match received {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let stamp = message.cmsgs()?.find_map(|cmsg| match cmsg {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
            _ => None,
        });
        Ok(Some((message.bytes, arrival(stamp))))
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// If the kernel does not accept it.
    pub fn send(&self, packet: &[IoSlice<'_>]) -> io::Result<()> {
        self.socket.send_vectored(packet).map(drop)
    }

    /// Returns the number of packets dropped since the last call because they were not read in time.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn take_drops(&self) -> io::Result<u64> {
        Ok(u64::from(Statistics.get(&self.socket)?.tp_drops))
    }
}

impl AsFd for WireEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns a buffer for the control data of a packet.
pub fn control() -> Vec<u8> {
    nix::cmsg_space!(TimeSpec)
}

/// Returns the arrival time. The kernel stamps packets by the time of day; the age of the stamp is subtracted from the
/// present.
fn arrival(stamp: Option<TimeSpec>) -> Instant {
    let now = Instant::now();
    let age = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + Duration::from(stamp?)).ok();
    age().and_then(|age| now.checked_sub(age)).unwrap_or(now)
}

/// Returns the address for all IPv4 packets at a device.
fn address(index: u32) -> io::Result<SockAddr> {
    let link = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: IPV4.to_be(),
        sll_ifindex: index.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let write = |storage: *mut socket2::SockAddrStorage, length: *mut libc::socklen_t| {
        // SAFETY: a `sockaddr_ll` is shorter than the storage of all addresses, and as aligned; both pointers are
        // valid.
        #[allow(unsafe_code)]
        unsafe {
            storage.cast::<libc::sockaddr_ll>().write(link);
            length.write(size_of::<libc::sockaddr_ll>() as libc::socklen_t);
        }
        Ok(())
    };
    // SAFETY: `write` initialises an address of the family in it, and its length.
    #[allow(unsafe_code)]
    let ((), address) = unsafe { SockAddr::try_init(write) }?;
    Ok(address)
}
