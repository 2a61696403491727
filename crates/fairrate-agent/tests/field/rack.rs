//! A rack: namespaces, an allocator, agents, and connections that send as long as they are wanted.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fairrate_scenario::Overrides;
use fairrate_sim::rng::{Purpose, Stream};
use fairrate_sim::{NodeId, SimConfig};
use fairrate_testbed::namespaces::{Namespaces, inside};
use fairrate_testbed::network::lay_out;
use fairrate_testbed::paths::{Address, Ways};
use fairrate_testbed::plan::Plan;
use nix::libc;
use socket2::{Domain, Socket, Type};

/// The host that receives all. Those before it send.
const RECEIVER: u32 = 6;
/// The allocator's host.
const ALLOCATOR: u32 = 7;
/// What a link carries, bit/s.
const LINK_BPS: f64 = 100e6;
/// What the allocator gives of a link is all but the threshold's hundredth; this is what of it is payload.
pub const PAYLOAD_BPS: f64 = LINK_BPS * 0.99 * 1448.0 / 1538.0;
/// How long rates hold without a word.
pub const LEASE: Duration = Duration::from_millis(300);

const NETWORK: &str = r#"
[topology]
kind = "star"
hosts = 8
rate = "100Mbps"
delay = "0s"
[switch]
pfc = false
dt_alpha = "unlimited"
buffer = "3MB"
queue_limit = "250KB"
[transport]
kind = "tcp"
cc = "cubic"
[[traffic]]
kind = "incast"
receiver = 6
senders = [0, 1, 2, 3, 4, 5, 7]
bytes = "1MB"
"#;

/// A program that goes with the test.
pub struct Running(Child);

impl Running {
    /// Ends it at once, as `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.0.id().cast_signed()), signal);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The rack. Its namespaces go with it.
pub struct Rack {
    config: SimConfig,
    ways: Ways,
    namespaces: Namespaces,
    dir: PathBuf,
}

impl Rack {
    /// Lays it out.
    pub fn new() -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rack-{:?}", std::thread::current().id()));
        std::fs::create_dir_all(&dir).expect("the target directory can be written");
        let scenario = fairrate_scenario::Scenario::with_algorithms(&fairrate_control::Registry::new())
            .from_texts(NETWORK, "rack.toml", &[], &Overrides::default())
            .expect("the rack is a scenario");
        let config = scenario.sim_config().clone();
        let ways = Ways::new(&config);
        let (namespaces, _) = Namespaces::claim().expect("root may make namespaces");
        let rack = Self { config, ways, namespaces, dir };
        lay_out(&rack.plan(), &rack.namespaces).expect("the network can be laid out");
        rack
    }

    fn plan(&self) -> Plan<'_> {
        Plan::new(&self.config, &self.ways, self.namespaces.mark())
    }

    fn namespace(&self, host: u32) -> String {
        self.plan().namespace(NodeId(host))
    }

    /// The address of a host.
    pub fn address(host: u32) -> Ipv4Addr {
        Address { host: NodeId(host), alias: 0 }.ip()
    }

    fn start(&self, host: u32, program: &Path, config: &Path) -> Running {
        // `ip netns exec` would hide control groups; this one becomes the program, so what is killed is that.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace(host))).arg(program).arg("run").arg(config);
        Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the program starts"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, text).expect("the target directory can be written");
        path
    }

    /// Starts an allocator that listens at this port of its host.
    pub fn allocator(&self, port: u16) -> Running {
        let program = std::env::var_os("FAIRRATE_ALLOCATOR").expect("FAIRRATE_ALLOCATOR names the allocator");
        let (listen, lease) = (Self::address(ALLOCATOR), LEASE.as_millis());
        let text = format!(
            "listen = \"{listen}:{port}\"\ninsecure = true\ninsecure_beyond_loopback = true\nlease = \"{lease}ms\"\nhosts = \"{}+\"\n[engine]\ninterval = \"200us\"\n\
             [topology]\nkind = \"star\"\nhosts = 8\nrate = \"100Mbps\"\n",
            Self::address(0)
        );
        self.start(ALLOCATOR, Path::new(&program), &self.write(&format!("allocator-{port}.toml"), &text))
    }

    /// Starts an agent at a host; more tables of its configuration follow.
    pub fn agent(&self, host: u32, ports: &[u16], more: &str) -> Running {
        let servers: Vec<String> =
            ports.iter().map(|port| format!("\"{}:{port}\"", Self::address(ALLOCATOR))).collect();
        let text = format!(
            "fabric = [\"10.0.0.{}/32\"]\n[allocator]\nservers = [{}]\ninsecure = true\n{more}",
            RECEIVER + 1,
            servers.join(", ")
        );
        let program = Path::new(env!("CARGO_BIN_EXE_fairrate-agent"));
        self.start(host, program, &self.write(&format!("agent-{host}.toml"), &text))
    }

    /// A place where everything that is sent to `port` of the receiver is taken and counted.
    pub fn receiver(&self, port: u16) -> Receiver {
        let listen = || {
            let at = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
            TcpListener::bind(at).map_err(|e| fairrate_testbed::failure::Failure::system("listening", e))
        };
        Receiver { listener: inside(&self.namespace(RECEIVER), listen).expect("the receiver listens") }
    }

    /// A connection from `host` that sends without end, until it is told to stop.
    pub fn flow(&self, host: u32, receiver: &Receiver) -> Flow {
        let block = vec![0; 1 << 14];
        self.connection(host, receiver, move |mut stream| while stream.write_all(&block).is_ok() {})
    }

    /// A connection from `host` that sends messages of `bytes` at random times (Poisson), `bps` of payload in the mean.
    pub fn messages(&self, host: u32, receiver: &Receiver, bytes: usize, bps: f64) -> Flow {
        let mut draw = Stream::new(1, host.into(), Purpose::Test);
        let mean = bytes as f64 * 8.0 / bps;
        let message = vec![0; bytes];
        self.connection(host, receiver, move |mut stream| {
            let mut next = Instant::now();
            while stream.write_all(&message).is_ok() {
                next += Duration::from_secs_f64(-mean * (1.0 - draw.uniform()).ln());
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        })
    }

    /// A connection from `host` to which `send` writes on a thread of its own.
    fn connection(&self, host: u32, receiver: &Receiver, send: impl FnOnce(TcpStream) + Send + 'static) -> Flow {
        let to = SocketAddrV4::new(Self::address(RECEIVER), receiver.port());
        let connect = || {
            let connected = || -> std::io::Result<Socket> {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
                socket.set_tcp_congestion(b"cubic")?;
                socket.connect(&to.into())?;
                Ok(socket)
            };
            connected().map_err(|e| fairrate_testbed::failure::Failure::system("connecting", e))
        };
        let socket: TcpStream = inside(&self.namespace(host), connect).expect("the receiver is there").into();
        let (accepted, _) = receiver.listener.accept().expect("it was connected to");
        let received = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&received);
        let taking = std::thread::spawn(move || take(accepted, &counted));
        let writing = socket.try_clone().expect("a socket can be cloned");
        let sending = std::thread::spawn(move || send(writing));
        Flow { socket, received, threads: vec![sending, taking] }
    }
}

/// Where connections end.
pub struct Receiver {
    listener: TcpListener,
}

impl Receiver {
    fn port(&self) -> u16 {
        self.listener.local_addr().expect("it listens").port()
    }
}

/// A connection that sends.
pub struct Flow {
    socket: TcpStream,
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Flow {
    /// Bytes that have come so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The rate that the agent has given it (`SO_MAX_PACING_RATE`), bit/s; infinite before.
    pub fn limit_bps(&self) -> f64 {
        let (mut bytes_per_s, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
        let to = (&raw mut bytes_per_s).cast();
        let fd = self.socket.as_raw_fd();
        // SAFETY: `to` is valid for `length` bytes, any of which may be any value, and the descriptor is open.
        #[allow(unsafe_code)]
        let code = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, to, &raw mut length) };
        assert_eq!(code, 0, "a socket has a limit");
        if bytes_per_s == u64::MAX { f64::INFINITY } else { bytes_per_s as f64 * 8.0 }
    }

    /// Whether it still sends.
    pub fn lives(&self) -> bool {
        self.threads.iter().all(|thread| !thread.is_finished())
    }

    /// Sends no more.
    pub fn stop(self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        self.threads.into_iter().for_each(|thread| thread.join().expect("it only sends or takes"));
    }
}

fn take(mut from: TcpStream, counted: &AtomicU64) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(n) => {
                counted.fetch_add(n as u64, Ordering::Relaxed);
            }
        }
    }
}

/// Payload of each flow in bit/s over a time from now.
pub fn rates(flows: &[&Flow], time: Duration) -> Vec<f64> {
    let (began, before): (_, Vec<u64>) = (Instant::now(), flows.iter().map(|flow| flow.received()).collect());
    std::thread::sleep(time);
    let seconds = began.elapsed().as_secs_f64();
    flows.iter().zip(before).map(|(flow, before)| (flow.received() - before) as f64 * 8.0 / seconds).collect()
}
