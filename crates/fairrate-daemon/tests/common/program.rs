//! The program, run on configurations of its own.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Returns the program, with an environment that does not depend on the user who runs the tests.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairrate-allocator"));
    command.env_remove("RUST_LOG").env_remove("NOTIFY_SOCKET").env("NO_COLOR", "1");
    command
}

/// Writes a file of a test and returns its path.
pub fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the target directory can be written");
    path
}

/// A configuration in which both ports are free ones.
pub const ANY_PORT: &str = "listen = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:0\"";

/// Returns the usual configuration with this `listen` line.
fn listening(listen: &str) -> String {
    super::INSECURE.replace("listen = \"127.0.0.1:0\"", listen)
}

/// A process that is killed when the test ends.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that runs until the test ends.
pub struct Program {
    pub child: Killed,
    pub address: SocketAddr,
    pub metrics: SocketAddr,
}

impl Program {
    /// Starts it and waits until it reports the addresses on which it listens.
    pub fn start(name: &str, listen: &str) -> Self {
        Self::start_with_reader(name, &listening(listen), program())
    }

    /// Starts it with this configuration.
    pub fn start_with_text(name: &str, text: &str) -> Self {
        Self::start_with_reader(name, text, program())
    }

    /// Starts it; then its log is closed, and cannot be read any more.
    pub fn start_with_closed_log(name: &str, listen: &str) -> Self {
        let (child, address, metrics, log) = Self::start_with_log(name, &listening(listen), program());
        drop(log);
        Self { child, address, metrics }
    }

    /// Starts it with at most `n_descriptors` file descriptors.
    pub fn start_limited(name: &str, text: &str, n_descriptors: u32) -> Self {
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {n_descriptors}; exec \"$0\" \"$@\"");
        command.args(["-c", &script]).arg(program().get_program()).env_remove("RUST_LOG").env("NO_COLOR", "1");
        Self::start_with_reader(name, text, command)
    }

    fn start_with_reader(name: &str, text: &str, command: Command) -> Self {
        let (child, address, metrics, lines) = Self::start_with_log(name, text, command);
        // Its later log lines must be read.
        std::thread::spawn(move || lines.lines().map_while(Result::ok).for_each(drop));
        Self { child, address, metrics }
    }

    fn start_with_log(
        name: &str,
        text: &str,
        mut command: Command,
    ) -> (Killed, SocketAddr, SocketAddr, BufReader<std::process::ChildStderr>) {
        let config = file(name, text);
        let mut child = Killed(command.arg("run").arg(config).stderr(Stdio::piped()).spawn().expect("it starts"));
        let mut log = BufReader::new(child.0.stderr.take().expect("it is piped"));
        let address = address_after(&mut log, "ready");
        let metrics = address_after(&mut log, "metrics");
        (child, address, metrics, log)
    }

    pub fn signal(&self, signal: &str) {
        let id = self.child.0.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().expect("there is `kill`");
        assert!(status.success());
    }

    /// Returns the answer of the metrics port at this path, with its headers.
    pub fn get(&self, path: &str) -> String {
        get(self.metrics, path)
    }

    /// Returns the number of its open file descriptors.
    pub fn n_descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.0.id())).expect("it runs").count()
    }
}

fn address_after(log: &mut impl BufRead, what: &str) -> SocketAddr {
    let mut lines = log.lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains(what)).unwrap_or_else(|| panic!("it does not say `{what}`"));
    let (_, rest) = line.split_once("address=").expect("it says where");
    rest.split(' ').next().and_then(|address| address.parse().ok()).expect("an address")
}

/// Returns the answer of a server of pages at this path, with its headers.
pub fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("there is room");
    all_of(&mut stream)
}

/// Reads until the other side closes the connection. The limit is far longer than that takes: only a failure reaches
/// it.
pub fn all_of(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("it can be set");
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => panic!("the connection stays open"),
        // A reset after the answer is an end too.
        _ => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// Returns a log file that is always full.
pub fn full_disk() -> Stdio {
    File::options().write(true).open("/dev/full").expect("Linux has it").into()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
