//! The TCP connections of all flows, made before the first of them starts.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use fairrate_sim::{NodeId, SimConfig};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::algorithm::Names;
use crate::classes::Classes;
use crate::failure::Failure;
use crate::field::MSS;
use crate::namespaces::inside;
use crate::paths::{Ends, Ways, n_subflows};
use crate::plan::Plan;
use crate::tcp_info::{self, TcpInfo};

/// Port on which receivers listen for flows of the first stack; those of the others follow it.
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

/// Makes a connection for each flow, with the algorithm of its stack in `names`, and uses it for `rounds` round trips,
/// so that TCP has estimates of the path.
///
/// # Errors
/// If the kernel does not allow the algorithm, or a connection cannot be made.
pub fn connect_all(
    plan: &Plan<'_>,
    config: &SimConfig,
    ways: &Ways,
    names: &Names,
    rounds: u32,
) -> Result<Vec<Connection>, Failure> {
    let mut made: Vec<Option<Connection>> = Vec::new();
    made.resize_with(config.flows.len(), || None);
    let listeners = listen_all(plan, config, names)?;
    let classes = Classes::of(config);
    for src in plan.nodes() {
        let flows = || config.flows.iter().enumerate().filter(|(_, flow)| flow.src == src);
        if flows().next().is_none() {
            continue;
        }
        let connected = inside(&plan.namespace(src), || {
            let connect = |(i, flow): (usize, &fairrate_sim::FlowSpec)| {
                let listener = listeners.get(&(flow.dst, flow.stack)).expect("every receiver listens");
                let to = SocketAddrV4::new(ways.ends[i].dst.ip(), port(flow.stack));
                let socket = socket(ways.more[i].len() as u8, &names[&flow.stack])?;
                let tos = classes.as_ref().map_or(0, |classes| classes.tos(config, flow));
                Ok((i, connect(ways.ends[i], to, ways.more[i].len() as u8, (socket, tos), listener, rounds)?))
            };
            flows().map(connect).collect::<Result<Vec<_>, Failure>>()
        })?;
        for (i, connection) in connected {
            made[i] = Some(connection);
        }
    }
    Ok(made.into_iter().flatten().collect())
}

/// Opens a listening socket at each receiver for each stack of its flows.
fn listen_all(plan: &Plan<'_>, config: &SimConfig, names: &Names) -> Result<BTreeMap<(NodeId, u8), Socket>, Failure> {
    // By receiver and stack, `true` if a flow has several subflows: a listener of MPTCP accepts plain TCP as well.
    let mut wanted: BTreeMap<(NodeId, u8), bool> = BTreeMap::new();
    for flow in &config.flows {
        *wanted.entry((flow.dst, flow.stack)).or_default() |= 1 < n_subflows(config, flow);
    }
    let listen = |stack: u8, is_multipath: bool| -> std::io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, is_multipath.then_some(Protocol::MPTCP))?;
        if 1 < names.len() {
            // A host has one default, and receivers of several algorithms.
            socket.set_tcp_congestion(names[&stack].as_bytes())?;
        }
        socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port(stack)).into())?;
        socket.listen(1_024)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(socket)
    };
    let at = |((node, stack), is_multipath): ((NodeId, u8), bool)| {
        let made = || listen(stack, is_multipath).map_err(|e| Failure::system("listening in a namespace", e));
        Ok(((node, stack), inside(&plan.namespace(node), made)?))
    };
    wanted.into_iter().map(at).collect()
}

/// Returns the port on which receivers listen for the flows of a stack.
fn port(stack: u8) -> u16 {
    PORT + u16::from(stack)
}

/// Makes the socket of a sender, with the kernel's algorithm `cc`.
fn socket(more_subflows: u8, cc: &str) -> Result<Socket, Failure> {
    let protocol = (0 < more_subflows).then_some(Protocol::MPTCP);
    let socket =
        Socket::new(Domain::IPV4, Type::STREAM, protocol).map_err(|e| Failure::system("making a socket", e))?;
    if 0 < more_subflows {
        let result = socket.set_send_buffer_size(MULTIPATH_UNACKNOWLEDGED);
        result.map_err(|e| Failure::system("giving a socket its buffer", e))?;
    }
    socket.set_tcp_congestion(cc.as_bytes()).map_err(|e| no_such_algorithm(cc, &e))?;
    Ok(socket)
}

fn connect(
    ends: Ends,
    to: SocketAddrV4,
    more_subflows: u8,
    (socket, tos): (Socket, u32),
    listener: &Socket,
    rounds: u32,
) -> Result<Connection, Failure> {
    let failed = |e| Failure::system(format!("connecting {} to {}", ends.src.ip(), ends.dst.ip()), e);
    let (sender, receiver) = join(ends, to, (socket, tos), listener).map_err(failed)?;
    let mut connection =
        Connection { sender, receiver, more_subflows, before: TcpInfo::default(), received_before: TcpInfo::default() };
    connection.warm_up(rounds).map_err(failed)?;
    connection.wait_for_subflows()?;
    connection.before = connection.info(&connection.sender)?;
    connection.received_before = connection.info(&connection.receiver)?;
    Ok(connection)
}

fn join(
    ends: Ends,
    to: SocketAddrV4,
    (socket, tos): (Socket, u32),
    listener: &Socket,
) -> std::io::Result<(Socket, Socket)> {
    socket.set_tos_v4(tos)?;
    socket.bind(&SocketAddrV4::new(ends.src.ip(), 0).into())?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    socket.connect_timeout(&SockAddr::from(to), PATIENCE)?;
    let (receiver, _) = listener.accept()?;
    receiver.set_tos_v4(tos)?;
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
