//! A rack: namespaces, an allocator, agents, and connections that send as long as a test needs them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::ops::Deref;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
use nix::sys::signal::Signal;
use socket2::{Domain, Socket, Type};

/// The host that receives from all. The hosts before it send.
pub const RECEIVER: u32 = 6;
/// The allocator's host.
pub const ALLOCATOR: u32 = 7;
/// Ports of the first allocator and of the one on standby.
pub const PORT: u16 = 4_600;
pub const STANDBY: u16 = 4_601;
/// Port to which flows connect.
const FLOW_PORT: u16 = 5_001;
/// Port of the metrics of an allocator and an agent, at their host's address.
const METRICS: u16 = 9_460;
const AGENTS_METRICS: u16 = 9_461;
/// Capacity of a link in bit/s.
const LINK_BPS: f64 = 100e6;
/// Payload rate that the allocator gives on a link: all but the threshold's hundredth, without headers.
pub const PAYLOAD_BPS: f64 = LINK_BPS * 0.99 * 1448.0 / 1538.0;
/// Lifetime of rates without a message.
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

/// A program that ends with the test.
pub struct Running(Child);

impl Running {
    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Kills it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.id().cast_signed()), signal);
    }

    /// Asks it to end, and waits until it has.
    pub fn end(mut self) -> std::process::ExitStatus {
        self.signal(Signal::SIGTERM);
        self.0.wait().expect("it was started")
    }

    /// Closes its stderr, so that it cannot write any more.
    pub fn close_stderr(&mut self) {
        self.0.stderr = None;
    }

    /// Waits for its end; returns its exit code and its stderr, if that was kept.
    pub fn output(&mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            stderr.read_to_string(&mut text).expect("it writes text");
        }
        (self.0.wait().expect("it was started").code(), text)
    }

    /// Returns its processor time so far, of all threads.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it lives");
        // After the name, which may contain parentheses: utime and stime are fields 14 and 15.
        let fields: Vec<&str> = stat.rsplit_once(')').expect("it has a name").1.split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().expect("it is a number")).sum();
        // Linux reports times to programs in hundredths of a second.
        Duration::from_millis(10 * ticks)
    }

    /// Returns the number of times that its threads have gone to sleep.
    pub fn wake_ups(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).expect("it lives");
        let sleeps = |task: std::io::Result<std::fs::DirEntry>| {
            let status = std::fs::read_to_string(task.expect("it lives").path().join("status")).expect("it lives");
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.expect("Linux counts them").trim().parse::<u64>().expect("it is a number")
        };
        tasks.map(sleeps).sum()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The rack. Its namespaces are removed with it.
pub struct Rack {
    /// The receiver of its flows.
    pub receiver: Receiver,
    config: SimConfig,
    ways: Ways,
    namespaces: Namespaces,
    dir: PathBuf,
}

impl Rack {
    /// Lays out the rack of the tests.
    pub fn new() -> Self {
        Self::of(NETWORK, RECEIVER)
    }

    /// Lays out the star in the scenario `network`, with a receiver at the host `receiver`.
    pub fn of(network: &str, receiver: u32) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rack-{:?}", std::thread::current().id()));
        std::fs::create_dir_all(&dir).expect("the target directory can be written");
        let scenario = fairrate_scenario::Scenario::with_algorithms(&fairrate_control::Registry::new())
            .from_texts(network, "rack.toml", &[], &Overrides::default())
            .expect("the rack is a scenario");
        let config = scenario.sim_config().clone();
        let ways = Ways::new(&config);
        let (namespaces, _) = Namespaces::claim().expect("root may make namespaces");
        let plan = Plan::new(&config, &ways, namespaces.mark());
        lay_out(&plan, &namespaces).expect("the network can be laid out");
        let receiver = Receiver::open(&plan.namespace(NodeId(receiver)), FLOW_PORT);
        Self { receiver, config, ways, namespaces, dir }
    }

    /// Starts an allocator, and an agent with the further configuration `more` at each of `hosts`. Waits until the
    /// allocator has all of them.
    pub fn with_agents(self, hosts: impl IntoIterator<Item = u32>, more: &str) -> Served {
        self.with_allocators(&[PORT], hosts, more)
    }

    /// Does the same as [`Rack::with_agents`] with an allocator on each of `ports`. The agents prefer the first.
    pub fn with_allocators(self, ports: &[u16], hosts: impl IntoIterator<Item = u32>, more: &str) -> Served {
        let allocators = ports.iter().map(|port| self.allocator(*port)).collect();
        let agents: Vec<Running> = hosts.into_iter().map(|host| self.agent(host, ports, more)).collect();
        self.wait_for_agents(agents.len() as u32);
        Served { agents, allocators, rack: self }
    }

    /// Returns the namespace of a host, or of the switch, whose number follows those of the hosts.
    pub fn namespace(&self, host: u32) -> String {
        Plan::new(&self.config, &self.ways, self.namespaces.mark()).namespace(NodeId(host))
    }

    /// Returns the address of a host.
    pub fn address(host: u32) -> Ipv4Addr {
        Address { host: NodeId(host), alias: 0 }.ip()
    }

    /// Starts `program` at a host with the file `config`, after `change` of its command.
    pub fn start(&self, host: u32, program: &Path, config: &Path, change: impl FnOnce(&mut Command)) -> Running {
        // `ip netns exec` would hide control groups; `nsenter` becomes the program, so that a kill reaches it.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace(host))).arg(program).arg("run").arg(config);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        change(&mut command);
        Running(command.spawn().expect("the program starts"))
    }

    /// Runs `work` at a host, in a thread of its own.
    pub fn at<T: Send>(&self, host: u32, work: impl FnOnce() -> std::io::Result<T> + Send) -> T {
        at(&self.namespace(host), work)
    }

    /// Writes a file in the directory of the rack, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, text).expect("the target directory can be written");
        path
    }

    /// Starts an allocator that listens on `port` of its host.
    pub fn allocator(&self, port: u16) -> Running {
        let (listen, lease) = (Self::address(ALLOCATOR), LEASE.as_millis());
        let text = format!(
            "listen = \"{listen}:{port}\"\nmetrics = \"{listen}:{}\"\ninsecure = true\ninsecure_beyond_loopback = true\nlease = \"{lease}ms\"\nhosts = \"{}+\"\n[engine]\ninterval = \"200us\"\n\
             [topology]\nkind = \"star\"\nhosts = 8\nrate = \"100Mbps\"\n",
            METRICS + port - PORT,
            Self::address(0)
        );
        self.start(ALLOCATOR, &allocator_program(), &self.write(&format!("allocator-{port}.toml"), &text), |_| {})
    }

    /// Starts an agent at a host; `more` has further tables of its configuration.
    pub fn agent(&self, host: u32, ports: &[u16], more: &str) -> Running {
        self.changed_agent(host, ports, more, |_| {})
    }

    /// Starts an agent as [`Rack::agent`] does, with the command changed by `change` before it is run.
    pub fn changed_agent(&self, host: u32, ports: &[u16], more: &str, change: impl FnOnce(&mut Command)) -> Running {
        let servers: Vec<String> =
            ports.iter().map(|port| format!("\"{}:{port}\"", Self::address(ALLOCATOR))).collect();
        let servers = servers.join(", ");
        // All hosts, so the allocator too: as a usual configuration would have it.
        let text =
            format!("fabric = [\"10.0.0.0/24\"]\nallocator = {{ servers = [{servers}], insecure = true }}\n{more}");
        let program = Path::new(env!("CARGO_BIN_EXE_fairrate-agent"));
        self.start(host, program, &self.write(&format!("agent-{host}.toml"), &text), change)
    }

    /// Returns a metric of the first allocator.
    pub fn allocator_metric(&self, metric: &str) -> f64 {
        self.metric(ALLOCATOR, METRICS, metric)
    }

    /// Returns a metric of an agent whose configuration has [`agents_metrics`].
    pub fn agent_metric(&self, host: u32, metric: &str) -> f64 {
        self.metric(host, AGENTS_METRICS, metric)
    }

    /// Returns a metric that is served at `port` of a host.
    pub fn metric(&self, host: u32, port: u16, metric: &str) -> f64 {
        let at = SocketAddrV4::new(Self::address(host), port);
        let mut answer = None;
        until("metrics are served", || {
            answer = self.at(host, || Ok(page(at, "/metrics").ok()));
            answer.is_some()
        });
        let page = answer.unwrap_or_default();
        let value = page.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("there is no {metric} in {page}"))
    }

    /// Waits until the allocator has `n` agents.
    pub fn wait_for_agents(&self, n: u32) {
        until("all agents are there", || self.allocator_metric("fairrate_agents") == f64::from(n));
    }

    /// Opens a receiver on a further port of the receiving host.
    pub fn further_receiver(&self, port: u16) -> Receiver {
        Receiver::open(&self.namespace(RECEIVER), port)
    }

    /// Makes short connections from `host` to `receiver`, one after the other without a pause, as long as `goes_on`
    /// returns `true` for the number made so far.
    pub fn short_connections(&self, host: u32, receiver: &Receiver, goes_on: impl Fn(u32) -> bool + Sync) {
        let connect = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_linger(Some(Duration::ZERO))?;
            socket.connect(&receiver.address().into())?;
            let (accepted, _) = receiver.accept()?;
            socket.send(b"hi")?;
            drop((socket, accepted));
            Ok(())
        };
        self.at(host, || (0..).take_while(|made| goes_on(*made)).try_for_each(|_| connect()));
    }

    /// Makes a connection from `host` that sends without end, until it is stopped.
    pub fn flow(&self, host: u32) -> Flow {
        let block = vec![0; 1 << 14];
        self.connection(
            host,
            move |mut stream, is_paused| {
                while !is_paused.load(Ordering::Relaxed) && stream.write_all(&block).is_ok() {}
            },
        )
    }

    /// Makes a connection from `host` that sends messages of `bytes` at random times (Poisson), `bps` of payload in the
    /// mean.
    pub fn messages(&self, host: u32, bytes: usize, bps: f64) -> Flow {
        let mut draw = Stream::new(1, host.into(), Purpose::Test);
        let mean = bytes as f64 * 8.0 / bps;
        let message = vec![0; bytes];
        self.connection(host, move |mut stream, _| {
            let mut next = Instant::now();
            while stream.write_all(&message).is_ok() {
                next += Duration::from_secs_f64(-mean * (1.0 - draw.uniform()).ln());
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        })
    }

    /// Makes a connection from `host` to which `send` writes on a thread of its own.
    fn connection(&self, host: u32, send: impl FnOnce(TcpStream, &AtomicBool) + Send + 'static) -> Flow {
        let connect = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_tcp_congestion(b"cubic")?;
            socket.connect(&self.receiver.address().into())?;
            Ok(socket)
        };
        let socket: TcpStream = self.at(host, connect).into();
        let (accepted, _) = self.receiver.accept().expect("it was connected to");
        let received = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&received);
        let taking = std::thread::spawn(move || take(accepted, &counted));
        let writing = socket.try_clone().expect("a socket can be cloned");
        let is_paused = Arc::new(AtomicBool::new(false));
        let paused = Arc::clone(&is_paused);
        let sending = std::thread::spawn(move || send(writing, &paused));
        Flow { socket, received, is_paused, threads: vec![sending, taking] }
    }
}

/// Returns the path of the program `fairrate-allocator`.
pub fn allocator_program() -> PathBuf {
    std::env::var_os("FAIRRATE_ALLOCATOR").expect("FAIRRATE_ALLOCATOR names the allocator").into()
}

/// Runs `work` in a namespace, in a thread of its own.
pub fn at<T: Send>(namespace: &str, work: impl FnOnce() -> std::io::Result<T> + Send) -> T {
    let work = || work().map_err(|e| fairrate_testbed::failure::Failure::system("working", e));
    inside(namespace, work).expect("it works")
}

/// A rack with allocators and agents, which end before its namespaces are removed.
pub struct Served {
    pub agents: Vec<Running>,
    pub allocators: Vec<Running>,
    rack: Rack,
}

impl Deref for Served {
    type Target = Rack;

    fn deref(&self) -> &Rack {
        &self.rack
    }
}

/// The receiving end of connections.
pub struct Receiver {
    listener: TcpListener,
}

impl Receiver {
    fn open(namespace: &str, port: u16) -> Self {
        let listen = || TcpListener::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
        Self { listener: at(namespace, listen) }
    }

    /// Returns the address to which hosts connect.
    pub fn address(&self) -> SocketAddrV4 {
        let port = self.listener.local_addr().expect("it listens").port();
        SocketAddrV4::new(Rack::address(RECEIVER), port)
    }

    /// Waits for a connection.
    pub fn accept(&self) -> std::io::Result<(TcpStream, SocketAddr)> {
        self.listener.accept()
    }
}

/// A sending connection.
pub struct Flow {
    socket: TcpStream,
    received: Arc<AtomicU64>,
    is_paused: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Flow {
    /// Returns the number of bytes received so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Returns the rate that the agent has set (`SO_MAX_PACING_RATE`) in bit/s; infinite before.
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

    /// Limits its rate as its program would (`SO_MAX_PACING_RATE`).
    pub fn set_limit_bps(&self, limit_bps: f64) {
        let bytes_per_s: u64 = if limit_bps.is_infinite() { u64::MAX } else { (limit_bps / 8.0) as u64 };
        let (from, length) = ((&raw const bytes_per_s).cast(), size_of::<u64>() as libc::socklen_t);
        let fd = self.socket.as_raw_fd();
        // SAFETY: `from` is valid for `length` bytes, and the descriptor is open.
        #[allow(unsafe_code)]
        let code = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, from, length) };
        assert_eq!(code, 0, "a socket has a limit");
    }

    /// Returns `true` if it still sends.
    pub fn lives(&self) -> bool {
        self.threads.iter().all(|thread| !thread.is_finished())
    }

    /// Stops writing, and keeps the connection.
    pub fn pause(&self) {
        self.is_paused.store(true, Ordering::Relaxed);
    }

    /// Ends the connection.
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

/// Returns the line of an agent's configuration that gives it metrics.
pub fn agents_metrics() -> String {
    format!("metrics = \"0.0.0.0:{AGENTS_METRICS}\"\n")
}

/// Requests a page, and returns the whole answer.
pub fn page(at: SocketAddrV4, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(at)?;
    write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Waits until `is_so` returns `true`, longer than any machine should take.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "not in 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Measures the payload rate of each flow, in bit/s, for `time` from now.
pub fn rates(flows: &[&Flow], time: Duration) -> Vec<f64> {
    let (began, before): (_, Vec<u64>) = (Instant::now(), flows.iter().map(|flow| flow.received()).collect());
    std::thread::sleep(time);
    let seconds = began.elapsed().as_secs_f64();
    flows.iter().zip(before).map(|(flow, before)| (flow.received() - before) as f64 * 8.0 / seconds).collect()
}
