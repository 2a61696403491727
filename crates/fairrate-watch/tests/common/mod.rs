//! Runs and requests of the tests.
#![allow(dead_code)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use fairrate_results::{ResultsDir, ResultsWriter};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_watch::{Error, Server, Stop};
use tokio::sync::watch;

/// Two senders and a receiver whose port is full from the start: 1 ms, 11 samples of all ports and of flow 0.
pub const INCAST: &str = r#"
duration = "1ms"
[topology]
kind = "star"
hosts = 3
rate = "10Gbps"
[transport]
cc = "dctcp"
[[traffic]]
kind = "incast"
receiver = "h2"
senders = ["h0", "h1"]
bytes = "endless"
[[traffic]]
kind = "incast"
receiver = "h1"
senders = ["h0"]
bytes = "10KB"
[[probe]]
queue = "*->*"
every = "100us"
[[probe]]
flows = [0]
every = "100us"
"#;

/// Returns a new directory called `name`.
pub fn fresh(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("watch").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// Runs `scenario` into a new directory called `name`.
pub fn run(name: &str, scenario: &str) -> PathBuf {
    let dir = fresh(name);
    let scenario =
        Scenario::from_toml(scenario, "incast.toml", Path::new("."), &Overrides::default()).expect("it is right");
    let place = Arc::new(ResultsDir::claim(&dir).expect("it is new"));
    fairrate_experiment::drive(&scenario, &place, &[], 1, &mut ()).expect("it runs");
    dir
}

/// Begins a run into a new directory called `name`, and leaves it as a killed process does.
pub fn begun(name: &str) -> PathBuf {
    let dir = fresh(name);
    let scenario =
        Scenario::from_toml(INCAST, "incast.toml", Path::new("."), &Overrides::default()).expect("it is right");
    let writer = ResultsWriter::create(&dir, &fairrate_experiment::inputs_of(&scenario)).expect("it can be written");
    std::mem::forget(writer);
    dir
}

/// A page that is served while the value lives.
pub struct Served {
    pub at: SocketAddr,
    /// The path of the page, `/TOKEN/`.
    pub path: String,
    end: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    /// Serves the runs in `dirs`.
    pub fn new(dirs: &[PathBuf], stop: Option<Stop>) -> Result<Self, Error> {
        let (dirs, (told, heard), (end, ended)) = (dirs.to_vec(), channel(), watch::channel(false));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                match Server::new(&dirs, 0, stop).await {
                    Ok(server) => {
                        told.send(Ok(server.address().to_owned())).expect("it waits");
                        server.serve(ended).await;
                    }
                    Err(error) => told.send(Err(error)).expect("it waits"),
                }
            });
        });
        let address = heard.recv().expect("it begins")?;
        let (at, path) = address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
        Ok(Self { at: at.parse().expect("a number"), path: format!("/{path}"), end, thread: Some(thread) })
    }

    /// Returns the host that requests have to name.
    pub fn host(&self) -> String {
        format!("Host: {}", self.at)
    }

    /// Sends a request with these headers. Returns the code, the headers and the body of the answer; 0 if there is
    /// none.
    pub fn ask(&self, method: &str, path: &str, headers: &[&str]) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.at).expect("it listens");
        let headers = headers.join("\r\n");
        // A server that refuses a request may not read all of it, and then the connection is reset.
        let _ = write!(stream, "{method} {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            return (0, String::new(), Vec::new());
        };
        let head = String::from_utf8(answer[..end].to_vec()).expect("text");
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
        (code, head.to_lowercase(), answer[end + 4..].to_vec())
    }

    /// Returns the answer to a right request for `what` below the token.
    pub fn get(&self, what: &str) -> (u16, String, Vec<u8>) {
        self.ask("GET", &format!("{}{what}", self.path), &[&self.host()])
    }

    /// Returns the JSON document `what`.
    pub fn json(&self, what: &str) -> serde_json::Value {
        let (code, _, body) = self.get(what);
        assert_eq!(code, 200, "{what}");
        serde_json::from_slice(&body).expect("JSON")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.end.send(true);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}
