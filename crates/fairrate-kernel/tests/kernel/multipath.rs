//! RateMP over the subflows of an MPTCP connection.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::socket::{Backlog, SockaddrIn, bind, connect, listen};

use crate::traffic::{inside, succeed};
use crate::{clean, done, machine};

fn server_address() -> SockaddrIn {
    SockaddrIn::new(10, 6, 1, 2, 5_000)
}

/// Two hosts with two links, which are removed with this value.
struct Hosts(String);

impl Hosts {
    fn new() -> Self {
        let hosts = Self(format!("frm{}", std::process::id()));
        let t = &hosts.0;
        succeed(&format!("ip netns add {t}1"));
        succeed(&format!("ip netns add {t}2"));
        for i in 1..=2 {
            succeed(&format!("ip link add name {t}a{i} netns {t}1 type veth peer name {t}b{i} netns {t}2"));
            for (n, end) in [(1, "a"), (2, "b")] {
                succeed(&format!("ip -n {t}{n} addr add 10.6.{i}.{n}/24 dev {t}{end}{i}"));
                succeed(&format!("ip -n {t}{n} link set {t}{end}{i} up"));
            }
        }
        succeed(&format!("ip -n {t}1 mptcp limits set subflow 2 add_addr_accepted 2"));
        succeed(&format!("ip -n {t}2 mptcp limits set subflow 2 add_addr_accepted 2"));
        succeed(&format!("ip -n {t}1 mptcp endpoint add 10.6.2.1 dev {t}a2 subflow"));
        succeed(&format!("ip -n {t}2 mptcp endpoint add 10.6.2.2 signal"));
        hosts
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        succeed(&format!("ip netns del {}1", self.0));
        succeed(&format!("ip netns del {}2", self.0));
    }
}

fn mptcp_socket() -> std::io::Result<OwnedFd> {
    // SAFETY: the call takes numbers, and the descriptor that it returns has no other owner.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, libc::IPPROTO_MPTCP);
        if fd < 0 { Err(std::io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Returns the number of subflows that have joined each connection of the program.
fn joined() -> Vec<u32> {
    let map = MapHandle::from_pinned_path("/sys/fs/bpf/fairrate/ratemp/connections").expect("it is attached");
    let values = map.keys().filter_map(|key| map.lookup(&key, MapFlags::ANY).expect("it is a map"));
    values.map(|v| u32::from_ne_bytes(v[64..68].try_into().expect("four bytes"))).collect()
}

/// Tries `is_so` for some seconds: subflows join after the connection.
fn soon(is_so: impl Fn() -> bool) -> bool {
    (0..500).any(|_| {
        is_so() || {
            thread::sleep(Duration::from_millis(10));
            false
        }
    })
}

#[test]
fn the_rates_of_a_connections_subflows_are_added_up() {
    let Some(_machine) = machine() else { return };
    if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        println!("not run: needs MPTCP");
        return;
    }
    let hosts = Hosts::new();
    let t = &hosts.0;
    done(&format!("attach ratemp --line-rate 1Gbps --netns {t}1 --netns {t}2"));
    let server = inside(&format!("{t}2"), || {
        let fd = mptcp_socket()?;
        bind(fd.as_raw_fd(), &server_address())?;
        listen(&fd, Backlog::new(1)?)?;
        Ok(TcpListener::from(fd))
    });
    let server = server.expect("there is MPTCP");
    let receiver = thread::spawn(move || server.accept()?.0.read_to_end(&mut Vec::new()));
    let client = inside(&format!("{t}1"), || {
        let fd = mptcp_socket()?;
        connect(fd.as_raw_fd(), &server_address())?;
        Ok(TcpStream::from(fd))
    });
    let mut client = client.expect("the server listens");
    client.write_all(&vec![7; 1_000_000]).expect("it is connected");
    // The client's connection and the server's have two subflows each.
    assert!(soon(|| joined() == [2, 2]), "{:?}", joined());
    client.write_all(&vec![7; 1_000_000]).expect("it is connected");
    drop(client);
    assert_eq!(receiver.join().expect("no panic").expect("the connection holds"), 2_000_000);
    assert!(soon(|| joined().is_empty()), "{:?}", joined());
    done("detach --force");
    drop(hosts);
    assert!(clean::is_clean());
}
