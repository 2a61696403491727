//! Connections that the programs control, between namespaces of these tests.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::{clean, done, machine, refused};

/// Two hosts and a switch whose port to the second sends 100 Mb/s; they are removed with this value.
pub struct Network {
    tag: String,
}

impl Network {
    pub fn new() -> Self {
        let tag = format!("frt{}", std::process::id());
        let net = Self { tag };
        let t = &net.tag;
        let mut lines: Vec<String> = ["1", "s", "2"].iter().map(|n| format!("ip netns add {t}{n}")).collect();
        lines.push(format!("ip link add name {t}a netns {t}1 type veth peer name {t}b netns {t}s"));
        lines.push(format!("ip link add name {t}c netns {t}s type veth peer name {t}d netns {t}2"));
        for (n, device, address) in
            [("1", "a", "10.8.1.1"), ("s", "b", "10.8.1.2"), ("s", "c", "10.8.2.2"), ("2", "d", "10.8.2.1")]
        {
            lines.push(format!("ip -n {t}{n} addr add {address}/24 dev {t}{device}"));
            lines.push(format!("ip -n {t}{n} link set {t}{device} up gso_max_segs 1"));
        }
        lines.push(format!("ip -n {t}1 route add default via 10.8.1.2"));
        lines.push(format!("ip -n {t}2 route add default via 10.8.2.2"));
        lines.push(format!("tc -n {t}s qdisc add dev {t}c root tbf rate 100mbit burst 4k limit 500000"));
        for line in &lines {
            succeed(line);
        }
        inside(&format!("{t}s"), || fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("it is a setting");
        net
    }

    pub fn name(&self, which: &str) -> String {
        format!("{}{which}", self.tag)
    }

    /// Returns the port of the switch to the second host.
    pub fn port(&self) -> String {
        format!("{0}s/{0}c", self.tag)
    }

    /// Sends `n_bytes` from the first host to the second with congestion control `cc`; returns the output of `status`
    /// meanwhile.
    pub fn send(&self, cc: &str, n_bytes: usize) -> String {
        let listener = inside(&self.name("2"), || TcpListener::bind("10.8.2.1:0")).expect("the address is there");
        let to = listener.local_addr().expect("it is bound");
        let receiver = thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes)
        });
        let mut stream = inside(&self.name("1"), || TcpStream::connect(to)).expect("the switch forwards");
        assert_eq!(congestion_control(&stream), cc);
        stream.write_all(&vec![7; n_bytes / 2]).expect("it is connected");
        let status = done("status");
        stream.write_all(&vec![7; n_bytes - n_bytes / 2]).expect("it is connected");
        drop(stream);
        let received = receiver.join().expect("the receiver does not panic").expect("the connection holds");
        assert_eq!(received, n_bytes);
        status
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for n in ["1", "s", "2"] {
            let _ = Command::new("ip").args(["netns", "del", &self.name(n)]).status();
        }
    }
}

/// Runs a command that must succeed.
#[track_caller]
pub fn succeed(line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    assert!(Command::new(words[0]).args(&words[1..]).status().is_ok_and(|s| s.success()), "{line}");
}

/// Runs `f` in a namespace.
pub fn inside<T: Send>(namespace: &str, f: impl FnOnce() -> std::io::Result<T> + Send) -> std::io::Result<T> {
    let file = fs::File::open(format!("/run/netns/{namespace}"))?;
    let enter = || {
        setns(&file, CloneFlags::CLONE_NEWNET)?;
        f()
    };
    thread::scope(|scope| scope.spawn(enter).join()).expect("no panic")
}

/// Returns the default congestion control of a namespace.
pub fn default_of(namespace: &str) -> String {
    let read = || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    inside(namespace, read).expect("there is TCP").trim().to_owned()
}

fn congestion_control(stream: &TcpStream) -> String {
    use nix::sys::socket::{getsockopt, sockopt::TcpCongestion};
    getsockopt(stream, TcpCongestion).expect("it is TCP").to_string_lossy().trim_end_matches('\0').to_owned()
}

#[test]
fn a_namespace_gets_its_default_and_has_it_back() {
    let Some(_machine) = machine() else { return };
    let net = Network::new();
    let (host, before) = (net.name("1"), default_of(&net.name("1")));
    done(&format!("attach theta-powertcp --tau 300us --netns {host}"));
    assert_eq!(default_of(&host), "fr_theta");
    assert_ne!(default_of(&net.name("2")), "fr_theta");
    let status = net.send("fr_theta", 2_000_000);
    assert!(status.contains("(fr_theta): 1 connections"), "{status}");
    assert!(status.contains(&format!("default of namespace {host}: theta-powertcp\n")), "{status}");
    // Again, with other parameters: the default before is still remembered.
    done(&format!("attach theta-powertcp:gamma=0.5 --netns {host}"));
    net.send("fr_theta", 500_000);
    done("detach theta-powertcp --force");
    assert_eq!(default_of(&host), before);
    drop(net);
    assert!(clean::is_clean());
}

#[test]
fn it_stays_while_connections_use_it() {
    let Some(_machine) = machine() else { return };
    let net = Network::new();
    done(&format!("attach dctcp --netns {0}1 --netns {0}2", net.tag));
    let listener = inside(&net.name("2"), || TcpListener::bind("10.8.2.1:0")).expect("the address is there");
    let to = listener.local_addr().expect("it is bound");
    let stream = inside(&net.name("1"), || TcpStream::connect(to)).expect("the switch forwards");
    let (other, _) = listener.accept().expect("it has connected");
    let message = refused("detach dctcp");
    assert!(message.starts_with("error: 2 connections use `dctcp`\n  help: close them, or give --force"), "{message}");
    assert_eq!(congestion_control(&stream), "fr_dctcp");
    done("detach dctcp --force");
    drop((stream, other, listener, net));
    assert!(clean::is_clean());
}

/// An algorithm without its ports gets no new information. So connections continue with the namespace's default, and
/// nothing of the algorithm is left although both ends are still open.
#[test]
fn live_connections_take_the_default_when_their_algorithm_goes() {
    let Some(_machine) = machine() else { return };
    let net = Network::new();
    let listener = inside(&net.name("2"), || TcpListener::bind("10.8.2.1:0")).expect("the address is there");
    let before = default_of(&net.name("1"));
    let hosts = format!("--netns {0}1 --netns {0}2", net.tag);
    let rocc = "rocc:period=16ms,rate_unit=25kbps,min_rate=250kbps,rise_interval=22ms,thresholds=given";
    for (setup, name, setting) in [
        ("powertcp --line-rate 1Gbps", "fr_powertcp", "100Mbps"),
        (rocc, "fr_rocc", "100Mbps"),
        ("ratemp --line-rate 100Mbps", "fr_ratemp", "40KB"),
        ("dctcp", "fr_dctcp", "30KB"),
        ("perc --line-rate 1Gbps", "fr_perc", "100Mbps"),
    ] {
        done(&format!("attach {setup} {hosts} --switch-port {}:{setting}", net.port()));
        let to = listener.local_addr().expect("it is bound");
        let mut stream = inside(&net.name("1"), || TcpStream::connect(to)).expect("the switch forwards");
        let (mut other, _) = listener.accept().expect("it has connected");
        assert_eq!([congestion_control(&stream), congestion_control(&other)], [name, name]);
        let receiver = thread::spawn(move || {
            let mut bytes = vec![0; 3_000_000];
            other.read_exact(&mut bytes).map(|()| other)
        });
        stream.write_all(&vec![7; 1_000_000]).expect("it is connected");
        done("detach --force");
        assert_eq!(congestion_control(&stream), before);
        assert!(clean::is_clean(), "{name}");
        stream.write_all(&vec![7; 2_000_000]).expect("it is connected");
        let other = receiver.join().expect("the receiver does not panic").expect("the connection holds");
        assert_eq!(congestion_control(&other), default_of(&net.name("2")));
    }
}

/// A listening socket that was given the algorithm by its name would pass it on to its connections.
#[test]
fn a_listening_socket_does_not_hand_on_what_is_gone() {
    use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
    let Some(_machine) = machine() else { return };
    let net = Network::new();
    done("attach theta-powertcp");
    let listener = inside(&net.name("2"), || TcpListener::bind("10.8.2.1:0")).expect("the address is there");
    setsockopt(&listener, TcpCongestion, &"fr_theta".into()).expect("it is attached");
    done("detach theta-powertcp");
    assert!(clean::is_clean());
    let to = listener.local_addr().expect("it is bound");
    let _stream = inside(&net.name("1"), || TcpStream::connect(to)).expect("the switch forwards");
    let (other, _) = listener.accept().expect("it has connected");
    assert_eq!(congestion_control(&other), default_of(&net.name("2")));
}

#[test]
fn ports_mark_and_stamp_and_are_left_as_they_were() {
    let Some(_machine) = machine() else { return };
    let net = Network::new();
    let qdiscs = || {
        let show = |n: &str| Command::new("tc").args(["-n", &net.name(n), "qdisc"]).output().expect("tc starts").stdout;
        [show("s"), show("2")].concat().windows(6).filter(|w| w == b"clsact").count()
    };
    let hosts = format!("--netns {0}1 --netns {0}2", net.tag);
    done(&format!("attach dctcp {hosts} --switch-port {}:30KB", net.port()));
    assert_eq!(qdiscs(), 1);
    net.send("fr_dctcp", 2_000_000);
    done("detach dctcp --force");
    assert_eq!(qdiscs(), 0);
    let others = [
        ("ratemp --line-rate 100Mbps", "fr_ratemp", "40KB"),
        ("powertcp --tau 500us", "fr_powertcp", "100Mbps"),
        (
            "rocc:period=16ms,rate_unit=25kbps,min_rate=250kbps,rise_interval=22ms,thresholds=given",
            "fr_rocc",
            "100Mbps",
        ),
        ("perc --line-rate 1Gbps", "fr_perc", "100Mbps"),
    ];
    for (setup, name, setting) in others {
        done(&format!("attach {setup} {hosts} --switch-port {}:{setting}", net.port()));
        assert_eq!(qdiscs(), 1);
        net.send(name, 2_000_000);
        done("detach --force");
        assert_eq!(qdiscs(), 0);
    }
    let message = refused(&format!("attach powertcp {hosts} --switch-port {0}s/nowhere:1Gbps", net.tag));
    assert!(message.contains("has no device `nowhere`"), "{message}");
    done("detach");
    drop(net);
    assert!(clean::is_clean());
}
