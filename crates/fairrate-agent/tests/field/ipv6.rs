//! Flows of IPv6: two hosts and an allocator, all on one bridge with addresses of both kinds.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairrate_testbed::namespaces::inside;

use crate::rack::until;

/// Payload of a flow that is alone on a link of 100 Mb/s: all but a hundredth, without headers.
const PAYLOAD_BPS: f64 = 100e6 * 0.99 * 1428.0 / 1538.0;

/// The namespaces of three hosts and of a bridge, which are removed in the end.
pub struct Hosts(pub Vec<String>);

impl Hosts {
    pub fn new() -> Self {
        let name = |i| format!("fairrate-v6-{}-{i}", std::process::id());
        let all = Self((0..4).map(name).collect());
        let bridge = &all.0[0];
        all.0.iter().for_each(|name| ip(&["netns", "add", name]));
        ip(&["-n", bridge, "link", "add", "br0", "type", "bridge"]);
        ip(&["-n", bridge, "link", "set", "br0", "up"]);
        for (i, host) in all.0.iter().enumerate().skip(1) {
            let port = format!("p{i}");
            ip(&["link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", &port, "netns", bridge]);
            ip(&["-n", bridge, "link", "set", &port, "master", "br0", "up"]);
            ip(&["-n", host, "link", "set", "lo", "up"]);
            ip(&["-n", host, "link", "set", "eth0", "up"]);
            ip(&["-n", host, "addr", "add", &format!("fd00:1::{i}/64"), "dev", "eth0", "nodad"]);
            ip(&["-n", host, "addr", "add", &format!("10.77.0.{i}/24"), "dev", "eth0"]);
        }
        all
    }

    pub fn at<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.0[host], || Ok(work())).expect("it can be entered")
    }

    pub fn start(&self, host: usize, program: &Path, name: &str, text: &str) -> Killed {
        let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&config, text).expect("the target directory can be written");
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.0[host])).arg(program).arg("run").arg(config);
        Killed(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts"))
    }
}

impl Hosts {
    /// Returns a metric of the agent at the first host.
    fn metric(&self, name: &str) -> Option<f64> {
        let page = self.at(1, || {
            let mut stream = TcpStream::connect("[fd00:1::1]:9461").ok()?;
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
            let mut page = String::new();
            stream.read_to_string(&mut page).ok().map(|_| page)
        });
        page?.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok())
    }

    /// Starts the allocator at the third host, and at the first an agent whose configuration begins with `more`.
    fn serve(&self, more: &str) -> [Killed; 2] {
        let allocator = std::env::var_os("FAIRRATE_ALLOCATOR").expect("FAIRRATE_ALLOCATOR names the allocator");
        let text = "listen = \"[fd00:1::3]:4600\"\ninsecure = true\ninsecure_beyond_loopback = true\n\
                    hosts = [\"fd00:1::1+\", \"10.77.0.1+\"]\n[topology]\nkind = \"star\"\nhosts = 3\nrate = \"100Mbps\"\n";
        let allocator = self.start(3, Path::new(&allocator), "v6-allocator.toml", text);
        let text = format!(
            "{more}fabric = [\"fd00:1::/64\", \"10.77.0.0/24\"]\nmetrics = \"[fd00:1::1]:9461\"\n\
             allocator = {{ servers = [\"[fd00:1::3]:4600\"], insecure = true }}\n"
        );
        let agent = self.start(1, Path::new(env!("CARGO_BIN_EXE_fairrate-agent")), "v6-agent.toml", &text);
        until("the agent has its allocator", || self.metric("fairrate_agent_allocators") == Some(1.0));
        [agent, allocator]
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let later = format!("/run/netns/{}-later", self.0[3]);
        if std::fs::exists(&later).is_ok_and(|exists| exists) {
            let _ = Command::new("umount").args(["-l", &later]).status();
            let _ = std::fs::remove_file(&later);
        }
        self.0.iter().for_each(|name| _ = Command::new("ip").args(["netns", "del", name]).status());
    }
}

pub struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(args: &[&str]) {
    assert!(Command::new("ip").args(args).status().expect("there is `ip`").success(), "{args:?}");
}

/// Sends from `from` for three seconds; returns the payload rate of the last two in bit/s.
fn rate_bps(hosts: &Hosts, from: usize, to: IpAddr) -> f64 {
    let to = SocketAddr::new(to, 5_001);
    let listener = hosts.at(2, || TcpListener::bind(to).expect("the address is there"));
    let mut out = hosts.at(from, || TcpStream::connect(to).expect("it listens"));
    let (mut input, _) = listener.accept().expect("it has connected");
    let sending = std::thread::spawn(move || while out.write_all(&[0; 65_536]).is_ok() {});
    let (began, mut bytes, mut buffer) = (Instant::now(), 0, vec![0; 65_536]);
    while began.elapsed() < Duration::from_secs(3) {
        let n = input.read(&mut buffer).expect("it sends");
        if Duration::from_secs(1) <= began.elapsed() {
            bytes += n;
        }
    }
    drop(input);
    sending.join().expect("it ends");
    8.0 * bytes as f64 / 2.0
}

#[test]
fn flows_of_both_kinds_have_rates() {
    let hosts = Hosts::new();
    let _programs = hosts.serve("");
    let metric = |name: &str| hosts.metric(name);
    for to in ["fd00:1::2", "10.77.0.2"] {
        let before = metric("fairrate_agent_rates_total").expect("it is there");
        // A veth has no limit of its own: without a rate it would be far above.
        let rate = rate_bps(&hosts, 1, to.parse().expect("it is an address"));
        println!("{to}: {:.1} Mb/s of {:.1}", rate / 1e6, PAYLOAD_BPS / 1e6);
        assert!((0.5 * PAYLOAD_BPS..1.03 * PAYLOAD_BPS).contains(&rate), "{to}: {rate}");
        assert!(before < metric("fairrate_agent_rates_total").expect("it is there"), "the allocator gave it");
    }
}

/// A namespace that comes while the agent runs, as that of a container does, and goes.
#[test]
fn connections_of_further_namespaces_have_rates() {
    let hosts = Hosts::new();
    let later = format!("/run/netns/{}-later", hosts.0[3]);
    let programs = hosts.serve(&format!("namespaces = [\"{later}\"]\n"));
    let to: IpAddr = "10.77.0.2".parse().expect("it is an address");
    assert_eq!(hosts.metric("fairrate_agent_namespaces"), Some(1.0));
    std::fs::write(&later, "").expect("root may");
    let mount =
        |args: &[&str]| assert!(Command::new(args[0]).args(&args[1..]).status().expect("there is one").success());
    mount(&["mount", "--bind", &format!("/run/netns/{}", hosts.0[3]), &later]);
    until("the namespace is found", || hosts.metric("fairrate_agent_namespaces") == Some(2.0));
    let rate = rate_bps(&hosts, 3, to);
    let rates = hosts.metric("fairrate_agent_rates_total");
    println!("of a further namespace: {:.1} Mb/s of {:.1}", rate / 1e6, PAYLOAD_BPS / 1e6);
    mount(&["umount", &later]);
    std::fs::remove_file(&later).expect("root may");
    assert!((0.5 * PAYLOAD_BPS..1.03 * PAYLOAD_BPS).contains(&rate), "{rate}");
    assert!(rates.is_some_and(|rates| 0.0 < rates), "the allocator gave it");
    until("the namespace is gone", || hosts.metric("fairrate_agent_namespaces") == Some(1.0));
    let unlimited = rate_bps(&hosts, 3, to);
    assert!(1.5 * PAYLOAD_BPS < unlimited, "{unlimited}");
    drop(programs);
}
