//! A server on loopback, and functions that wait for a condition.
#![allow(dead_code, reason = "each test uses some of it")]

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairrate_daemon::config::Config;
use fairrate_daemon::keys::{self, Request};
use fairrate_daemon::wire::{Decoder, FromAllocator};
use fairrate_daemon::{Client, ClientOptions, Desk, KeyError, KeyFiles, Metrics, Security, Server};
use socket2::{Domain, Socket, Type};
use tokio::runtime::Runtime;

pub mod log;
pub mod program;

/// Hosts of the star, and the rate of its links.
pub const N_HOSTS: u8 = 8;
pub const CAPACITY_BPS: f64 = 10e9;
/// Tolerance besides the threshold of 1 %: prices that still move, and rounding.
pub const TOLERANCE: f64 = 0.012;

pub const INSECURE: &str = "listen = \"127.0.0.1:0\"\ninsecure = true\nlease = \"300ms\"\nhosts = \"10.0.0.1+\"\n\
                            [topology]\nkind = \"star\"\nhosts = 8\nrate = \"10Gbps\"\n";

pub fn host(i: u8) -> IpAddr {
    [10, 0, 0, i].into()
}

/// Returns a path of a directory that does not exist.
pub fn new_dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

/// Makes a directory of its own with keys for an allocator on loopback and three agents.
pub fn keys_in(name: &str) -> PathBuf {
    let dir = new_dir(name);
    let request = Request::new(&[Ipv4Addr::LOCALHOST.into()], &[host(1), host(2), host(3)]);
    keys::make(&dir, &request).expect("the directory can be written");
    dir
}

/// Returns the keys of an agent in a directory of [`keys_in`].
pub fn files(dir: &Path, agent: IpAddr) -> KeyFiles {
    let file = |suffix: &str| dir.join(format!("{agent}.{suffix}"));
    KeyFiles { ca: dir.join("ca.pem"), certificate: file("pem"), key: file("key") }
}

/// Returns [`INSECURE`] with the keys of a directory in place of plain TCP.
pub fn secure(dir: &Path) -> String {
    let file = |name: &str| dir.join(name).display().to_string();
    let (ca, certificate, key) = (file("ca.pem"), file("allocator.pem"), file("allocator.key"));
    let keys = format!("[keys]\nca = \"{ca}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n");
    INSECURE.replace("insecure = true\n", "") + &keys
}

/// A server and the threads it runs on.
pub struct Running {
    runtime: Runtime,
    server: Option<Server>,
    pub metrics: Arc<Metrics>,
    pub address: SocketAddr,
}

impl Running {
    pub fn start(toml: &str, instance: u64) -> Self {
        let (config, network) = Config::from_toml(toml, Path::new("allocator.toml")).expect("it is right");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
        let engine = network.engine(&config.engine);
        let capacities_bps = network.capacities_bps().to_vec();
        let mut desk = Desk::new(config.desk(instance), engine, network.into_paths());
        desk.watch_links(&capacities_bps);
        let metrics = Arc::new(Metrics::new());
        let entered = runtime.enter();
        let server = Server::start(config.server(), desk, Arc::clone(&metrics)).expect("it starts");
        drop(entered);
        let address = server.address();
        Self { runtime, server: Some(server), metrics, address }
    }

    /// Loads the keys again.
    pub fn rekey(&self) -> Result<(), KeyError> {
        self.runtime.block_on(self.server.as_ref().expect("it runs").rekey())
    }

    /// Ends the server normally.
    pub fn stop(mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
    }

    /// Returns the value of a metric.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.metrics.text();
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        values.next_back().unwrap_or(0.0)
    }
}

/// Connects from a loopback address of its own: the allocator accepts few connections from one address.
pub fn connect_from(i: u8, server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 2, 0, i], 0)).into()).expect("all of 127.0.0.0/8 is this machine's");
    socket.connect(&server.into()).expect("it listens");
    socket.into()
}

pub fn client(servers: &[SocketAddr]) -> Client {
    Client::connect(servers, Security::Insecure, ClientOptions::default()).expect("there are threads")
}

/// Creates a client with keys of its own.
pub fn client_with(files: KeyFiles, server: &Running) -> Client {
    let client = Client::connect(&[server.address], Security::Tls(files), ClientOptions::default());
    client.expect("the keys are right")
}

/// Returns the allocator's messages until it closes the connection.
pub fn all_words(stream: &mut impl Read) -> Vec<FromAllocator> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    let _ = stream.read_to_end(&mut all);
    Decoder::default().read(&all, |word| words.push(word)).expect("the allocator speaks well");
    words
}

/// Waits until `holds` returns `true`. The limit is far longer than it takes: only a failure reaches it.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "it does not come to pass: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn is_near(rate_bps: Option<f64>, expected_bps: f64) -> bool {
    rate_bps.is_some_and(|rate_bps| (rate_bps / expected_bps - 1.0).abs() <= TOLERANCE)
}

/// Rate of a flow alone on a link: links leave a threshold free.
pub const ALONE_BPS: f64 = CAPACITY_BPS * 0.99;
