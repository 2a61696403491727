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

/// Where receivers listen.
const PORT: u16 = 5_001;
/// Payload that waits unsent in the kernel: enough for any burst of acknowledgments, and little to copy ahead.
const UNSENT: u32 = 256 * 1024;
/// Bytes that wait at a sender of several subflows. What the kernel finds by itself goes by their windows, and those of the faster
/// subflows would wait for what is on the slower ones.
const MULTIPATH_UNACKNOWLEDGED: usize = 4 << 20;
/// How long a connection may take to be made, a round trip to come back, or a subflow to join: more than a round trip over some links
/// of a second, the longest that scenarios have.
const PATIENCE: Duration = Duration::from_secs(15);

/// Both ends of a flow's connection.
#[derive(Debug)]
pub struct Connection {
    /// The sender's socket.
    pub sender: Socket,
    /// The receiver's socket.
    pub receiver: Socket,
    /// Subflows besides the first.
    pub more_subflows: u8,
    /// What the sender had counted before the flow began.
    pub before: TcpInfo,
    /// The same at the receiver.
    pub received_before: TcpInfo,
}

/// Makes a connection for each flow, under the kernel's algorithm of this name, and uses it for so many round trips, by which it
/// knows its path.
///
/// # Errors
/// If the kernel lets nobody use the algorithm, or a connection cannot be made.
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

/// A listening socket at each receiver, by node.
fn listen_all(plan: &Plan<'_>, config: &SimConfig) -> Result<Vec<Option<Socket>>, Failure> {
    let listens = |node: NodeId| config.flows.iter().any(|flow| flow.dst == node);
    // A listener of MPTCP takes connections of plain TCP as well.
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
    // What a run leaves unsent goes with it, and nothing holds the algorithm any longer.
    socket.set_linger(Some(Duration::ZERO))?;
    receiver.set_linger(Some(Duration::ZERO))?;
    Ok((socket, receiver))
}

impl Connection {
    /// Sends a full packet there and a byte back, a few times.
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

    /// Subflows join when the connection has carried data.
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

    /// What the sender has counted since the flow began; state as it is.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn sent(&self) -> Result<TcpInfo, Failure> {
        Ok(self.info(&self.sender)?.since(&self.before))
    }

    /// What the receiver has counted since the flow began.
    ///
    /// # Errors
    /// If the kernel does not tell.
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
