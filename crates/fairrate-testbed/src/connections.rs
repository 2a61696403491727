//! The TCP connections of all flows, made before the first of them starts.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use fairrate_sim::{NodeId, SimConfig};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::failure::Failure;
use crate::field::MSS;
use crate::namespaces::inside;
use crate::paths::{Ends, Ways, n_subflows};
use crate::plan::Plan;
use crate::tcp_info::{self, TcpInfo};

/// Port on which receivers listen.
const PORT: u16 = 5_001;
/// Payload that waits unsent in the kernel: enough for any burst of acknowledgments, and little to copy ahead.
const UNSENT: u32 = 256 * 1024;
/// Bytes that wait at a sender of several subflows. The kernel's own value depends on their windows, and the bytes of
/// the faster subflows would wait for those on the slower ones.
const MULTIPATH_UNACKNOWLEDGED: usize = 4 << 20;
/// Time limit for making a connection, a round trip, or a subflow's join: more than a round trip over some links with a
/// delay of a second, the longest of scenarios.
const PATIENCE: Duration = Duration::from_secs(15);

/// Both ends of a flow's connection.
#[derive(Debug)]
pub struct Connection {
    /// The sender's socket.
    pub sender: Socket,
    /// The receiver's socket.
    pub receiver: Socket,
    /// Number of subflows besides the first.
    pub more_subflows: u8,
    /// Counters of the sender before the flow began.
    pub before: TcpInfo,
    /// Counters of the receiver before the flow began.
    pub received_before: TcpInfo,
}

/// Makes a connection for each flow, with the kernel's algorithm `cc`, and uses it for `rounds` round trips, so that
/// TCP has estimates of the path.
///
/// # Errors
/// If the kernel does not allow the algorithm, or a connection cannot be made.
pub fn connect_all(
    plan: &Plan<'_>,
    config: &SimConfig,
    ways: &Ways,
    cc: &str,
    rounds: u32,
) -> Result<Vec<Connection>, Failure> {
    let mut made: Vec<Option<Connection>> = Vec::new();
    made.resize_with(config.flows.len(), || None);
    let listeners = listen_all(plan, config)?;
    for src in plan.nodes() {
        let flows = || config.flows.iter().enumerate().filter(|(_, flow)| flow.src == src);
        if flows().next().is_none() {
            continue;
        }
        let connected = inside(&plan.namespace(src), || {
            let connect = |(i, flow): (usize, &fairrate_sim::FlowSpec)| {
                let listener = listeners[flow.dst.index()].as_ref().expect("every receiver listens");
                Ok((i, connect(ways.ends[i], ways.more[i].len() as u8, listener, cc, rounds)?))
            };
            flows().map(connect).collect::<Result<Vec<_>, Failure>>()
        })?;
        for (i, connection) in connected {
            made[i] = Some(connection);
        }
    }
    Ok(made.into_iter().flatten().collect())
}

/// Opens a listening socket at each receiver; returns them by node.
fn listen_all(plan: &Plan<'_>, config: &SimConfig) -> Result<Vec<Option<Socket>>, Failure> {
    let listens = |node: NodeId| config.flows.iter().any(|flow| flow.dst == node);
    // A listener of MPTCP accepts connections of plain TCP as well.
    let is_multipath = |node: NodeId| config.flows.iter().any(|flow| flow.dst == node && 1 < n_subflows(config, flow));
    let listen = |protocol| -> std::io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, protocol)?;
        socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT).into())?;
        socket.listen(1_024)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(socket)
    };
    let at = |node| {
        let protocol = is_multipath(node).then_some(Protocol::MPTCP);
        let made = || listen(protocol).map_err(|e| Failure::system("listening in a namespace", e));
        listens(node).then(|| inside(&plan.namespace(node), made)).transpose()
    };
    plan.nodes().map(at).collect()
}

fn connect(ends: Ends, more_subflows: u8, listener: &Socket, cc: &str, rounds: u32) -> Result<Connection, Failure> {
    let protocol = (0 < more_subflows).then_some(Protocol::MPTCP);
    let socket =
        Socket::new(Domain::IPV4, Type::STREAM, protocol).map_err(|e| Failure::system("making a socket", e))?;
    if 0 < more_subflows {
        let result = socket.set_send_buffer_size(MULTIPATH_UNACKNOWLEDGED);
        result.map_err(|e| Failure::system("giving a socket its buffer", e))?;
    }
    socket.set_tcp_congestion(cc.as_bytes()).map_err(|e| no_such_algorithm(cc, &e))?;
    let failed = |e| Failure::system(format!("connecting {} to {}", ends.src.ip(), ends.dst.ip()), e);
    let (sender, receiver) = join(ends, socket, listener).map_err(failed)?;
    let mut connection =
        Connection { sender, receiver, more_subflows, before: TcpInfo::default(), received_before: TcpInfo::default() };
    connection.warm_up(rounds).map_err(failed)?;
    connection.wait_for_subflows()?;
    connection.before = connection.info(&connection.sender)?;
    connection.received_before = connection.info(&connection.receiver)?;
    Ok(connection)
}

fn join(ends: Ends, socket: Socket, listener: &Socket) -> std::io::Result<(Socket, Socket)> {
    socket.bind(&SocketAddrV4::new(ends.src.ip(), 0).into())?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    socket.connect_timeout(&SockAddr::from(SocketAddrV4::new(ends.dst.ip(), PORT)), PATIENCE)?;
    let (receiver, _) = listener.accept()?;
    // Unsent data of a run is discarded at close, so that nothing keeps the algorithm in use.
    socket.set_linger(Some(Duration::ZERO))?;
    receiver.set_linger(Some(Duration::ZERO))?;
    Ok((socket, receiver))
}

impl Connection {
    /// Sends a full packet to the receiver and a byte back, `rounds` times.
    fn warm_up(&mut self, rounds: u32) -> std::io::Result<()> {
        self.sender.set_read_timeout(Some(PATIENCE))?;
        self.receiver.set_read_timeout(Some(PATIENCE))?;
        let mut packet = [0; MSS as usize];
        for _ in 0..rounds {
            (&self.sender).write_all(&packet)?;
            (&self.receiver).read_exact(&mut packet)?;
            (&self.receiver).write_all(&[0])?;
            (&self.sender).read_exact(&mut packet[..1])?;
        }
        self.sender.set_nonblocking(true)?;
        self.receiver.set_nonblocking(true)
    }

    /// Waits until all subflows have joined, which happens after the connection has carried data.
    fn wait_for_subflows(&self) -> Result<(), Failure> {
        if self.more_subflows == 0 {
            return Ok(());
        }
        let (began, wanted) = (Instant::now(), usize::from(self.more_subflows) + 1);
        loop {
            let n = tcp_info::n_subflows(&self.sender)?;
            if n == wanted {
                return Ok(());
            }
            if PATIENCE < began.elapsed() {
                return Err(Failure::system("making subflows", format!("MPTCP made {n} of {wanted}")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn info(&self, end: &Socket) -> Result<TcpInfo, Failure> {
        if self.more_subflows == 0 { TcpInfo::of(end) } else { TcpInfo::of_subflows(end) }
    }

    /// Returns the sender's counters since the flow began, with its present state.
    ///
    /// # Errors
    /// If the kernel does not report them.
    pub fn sent(&self) -> Result<TcpInfo, Failure> {
        Ok(self.info(&self.sender)?.since(&self.before))
    }

    /// Returns the receiver's counters since the flow began.
    ///
    /// # Errors
    /// If the kernel does not report them.
    pub fn received(&self) -> Result<TcpInfo, Failure> {
        Ok(self.info(&self.receiver)?.since(&self.received_before))
    }
}

fn no_such_algorithm(cc: &str, error: &std::io::Error) -> Failure {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    Failure::Algorithm {
        message: format!("TCP of this kernel cannot use `{cc}`: {error}"),
        help: format!("this kernel has {}", known.trim().replace(' ', ", ")),
    }
}
