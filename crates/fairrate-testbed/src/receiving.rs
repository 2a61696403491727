//! The thread that receives data, and answers once a flow is complete.

use std::io::{ErrorKind, Write as _};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::Ordering;

use fairrate_sim::FlowSpec;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, recv};

use crate::failure::Failure;
use crate::shared::Shared;

/// Number of bytes received at once.
const MOST: usize = 1 << 20;
/// Milliseconds between two checks whether the run is over.
const LOOK: u8 = 20;

/// Receives data and answers until the run is over.
///
/// # Errors
/// If a connection breaks.
pub fn receive(shared: &Shared, flows: &[FlowSpec]) -> Result<(), Failure> {
    let failed = |e| Failure::system("waiting for receivers", e);
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
    for (i, connection) in shared.connections.iter().enumerate() {
        epoll.add(&connection.receiver, EpollEvent::new(EpollFlags::EPOLLIN, i as u64)).map_err(failed)?;
    }
    let mut buffer = vec![0; MOST];
    let mut events = [EpollEvent::empty(); 256];
    while !shared.is_over() {
        let n = match epoll.wait(&mut events, EpollTimeout::from(LOOK)) {
            Ok(n) => n,
            Err(Errno::EINTR) => 0,
            Err(e) => return Err(failed(e)),
        };
        for event in &events[..n] {
            take(shared, event.data() as usize, flows, &mut buffer)?;
        }
    }
    Ok(())
}

/// Receives the available data of a flow. The bytes themselves stay in the kernel, which discards them.
fn take(shared: &Shared, i: usize, flows: &[FlowSpec], buffer: &mut [u8]) -> Result<(), Failure> {
    let receiver = &shared.connections[i].receiver;
    let n = match recv(receiver.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC) {
        Ok(n) => n as u64,
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(()),
        Err(e) => return Err(Failure::system(format!("receiving flow {i}"), e)),
    };
    let progress = &shared.progress[i];
    let has = progress.delivered.fetch_add(n, Ordering::AcqRel) + n;
    if has == flows[i].bytes.as_u64() && 0 < n {
        progress.arrived_ns.store(shared.clock.now().as_ns(), Ordering::Release);
        let mut socket = receiver;
        match socket.write(&[1]) {
            Err(e) if e.kind() != ErrorKind::WouldBlock => {
                return Err(Failure::system(format!("answering flow {i}"), e));
            }
            _ => {}
        }
    }
    Ok(())
}
