//! Programs that send over UDP and ask for their rates.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use nix::libc;

use crate::rack::{PAYLOAD_BPS, RECEIVER, Rack, agents_metrics, until};

/// The level and the name of the option in which a program reads its rate.
const SOL_FAIRRATE: libc::c_int = 0xfa17;
const FAIRRATE_RATE: libc::c_int = 1;

/// Port to which the programs send.
const PORT: u16 = 5_002;

/// Payload of a datagram in bytes.
const DATAGRAM: usize = 1_472;

/// Reads the rate of a socket in bit/s, as a program does that asks for one; infinite if it has none.
fn read_rate(socket: &impl AsRawFd) -> io::Result<f64> {
    let (mut bytes_per_s, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    let (fd, to) = (socket.as_raw_fd(), (&raw mut bytes_per_s).cast());
    // SAFETY: `to` is valid for `length` bytes, any of which may be any value, and the descriptor is open.
    #[allow(unsafe_code)]
    let code = unsafe { libc::getsockopt(fd, SOL_FAIRRATE, FAIRRATE_RATE, to, &raw mut length) };
    match code {
        0 if bytes_per_s == u64::MAX => Ok(f64::INFINITY),
        0 => Ok(bytes_per_s as f64 * 8.0),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the error of an option that does not exist.
fn is_unknown(result: io::Result<f64>) -> bool {
    // Kernels differ.
    result.is_err_and(|error| [libc::ENOPROTOOPT, libc::EOPNOTSUPP].map(Some).contains(&error.raw_os_error()))
}

/// Connects a socket of UDP from a host to the receiver.
fn connect(rack: &Rack, host: u32) -> UdpSocket {
    rack.at(host, || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(SocketAddrV4::new(Rack::address(RECEIVER), PORT))?;
        Ok(socket)
    })
}

/// A program that sends datagrams, at the rate that it reads every millisecond; without one, a datagram a millisecond.
struct Program {
    socket: Arc<UdpSocket>,
    n_bytes: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Program {
    fn start(rack: &Rack, host: u32) -> Self {
        let socket = Arc::new(connect(rack, host));
        let (n_bytes, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (sends, counted, ends) = (Arc::clone(&socket), Arc::clone(&n_bytes), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let (mut last, mut may_send) = (Instant::now(), 0.0);
            while !ends.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(1));
                let rate_bps = read_rate(&*sends).expect("an agent runs");
                let rate_bps = if rate_bps.is_finite() { rate_bps } else { DATAGRAM as f64 * 8e3 };
                let now = Instant::now();
                // After a long sleep it sends no more than a fiftieth of a second's worth.
                may_send += (now - last).as_secs_f64().min(0.02) * rate_bps / 8.0;
                last = now;
                while DATAGRAM as f64 <= may_send {
                    may_send -= DATAGRAM as f64;
                    // A full queue refuses a datagram.
                    if sends.send(&[0; DATAGRAM]).is_ok() {
                        counted.fetch_add(DATAGRAM as u64, Ordering::Relaxed);
                    }
                }
            }
        });
        Self { socket, n_bytes, is_over, thread }
    }

    /// Returns the number of bytes sent so far.
    fn sent(&self) -> u64 {
        self.n_bytes.load(Ordering::Relaxed)
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("it only sends");
    }
}

fn is_near(rate_bps: f64, wanted_bps: f64) -> bool {
    (rate_bps / wanted_bps - 1.0).abs() < 0.05
}

#[test]
fn a_program_that_asks_shares_the_link_with_tcp() {
    let rack = Rack::new().with_agents([0, 1], &(agents_metrics() + "udp = true\n"));
    let sink = rack.at(RECEIVER, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)));
    let tcp = rack.flow(0);
    until("TCP has the link", || is_near(tcp.limit_bps(), PAYLOAD_BPS));
    // One that does not ask has no flowlet.
    let silent = connect(&rack, 1);
    silent.send(&[0; DATAGRAM]).expect("it is connected");
    let program = Program::start(&rack, 1);
    until("both have half", || {
        let rate = read_rate(&*program.socket).expect("an agent runs");
        is_near(tcp.limit_bps(), PAYLOAD_BPS / 2.0) && is_near(rate, PAYLOAD_BPS / 2.0)
    });
    until("the socket that does not ask has no flowlet", || rack.allocator_metric("fairrate_flows") == 2.0);
    let (began, before) = (Instant::now(), [tcp.received(), program.sent()]);
    sleep(Duration::from_secs(2));
    let seconds = began.elapsed().as_secs_f64();
    let measured = [tcp.received() - before[0], program.sent() - before[1]].map(|n| n as f64 * 8.0 / seconds);
    println!("TCP and UDP of {:.1} Mb/s each: {:.1?} Mb/s", PAYLOAD_BPS / 2e6, measured.map(|bps| bps / 1e6));
    assert!(measured.iter().all(|bps| (0.8..1.03).contains(&(bps / (PAYLOAD_BPS / 2.0)))), "{measured:?}");
    // A flowlet ends when nothing is sent, though its socket stays open, and begins again.
    let socket = Arc::clone(&program.socket);
    program.stop();
    until("TCP has the link again", || is_near(tcp.limit_bps(), PAYLOAD_BPS));
    assert!(read_rate(&*socket).is_ok_and(f64::is_infinite));
    // On a busy machine it may end before the agent writes to the allocator, which then hears nothing of it.
    let starts = || rack.agent_metric(1, "fairrate_agent_flow_starts_total");
    let before = starts();
    let _ = socket.send(&[0; DATAGRAM]);
    until("a flowlet of one datagram has come and gone", || {
        before < starts() && rack.allocator_metric("fairrate_flows") == 1.0
    });
    // The close of a socket ends its flowlet too, and a look at all sockets keeps those that go on.
    let program = Program::start(&rack, 1);
    until("both have half again", || is_near(tcp.limit_bps(), PAYLOAD_BPS / 2.0));
    sleep(Duration::from_millis(2_500));
    assert!(is_near(tcp.limit_bps(), PAYLOAD_BPS / 2.0), "{}", tcp.limit_bps());
    program.stop();
    until("TCP has the link once more", || is_near(tcp.limit_bps(), PAYLOAD_BPS));
    tcp.stop();
    drop((sink, silent));
}

#[test]
fn only_udp_asks_and_only_where_an_agent_allows_it() {
    let rack = Rack::new().with_agents([0], "udp = true\n");
    assert!(read_rate(&connect(&rack, 0)).is_ok_and(f64::is_infinite));
    let tcp = rack.at(0, || std::net::TcpStream::connect(rack.receiver.address()));
    assert!(is_unknown(read_rate(&tcp)), "Linux does not know the option");
    drop(tcp);
    drop(rack);
    let rack = Rack::new().with_agents([0], "");
    assert!(is_unknown(read_rate(&connect(&rack, 0))), "the agent does not serve UDP");
}
