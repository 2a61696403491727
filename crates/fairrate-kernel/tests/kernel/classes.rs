//! Classes by DSCP at a port.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use nix::sys::socket::{getsockopt, setsockopt, sockopt::Ipv4Tos};

use crate::traffic::{Network, inside, succeed};
use crate::{clean, done, machine, refused};

/// Returns the packets that each queue of the switch's port to the second host has sent, by handle.
fn queues(net: &Network) -> Vec<(String, u64)> {
    let (switch, device) = (net.name("s"), net.name("c"));
    let output = Command::new("tc").args(["-n", &switch, "-j", "-s", "qdisc", "show", "dev", &device]).output();
    let all: serde_json::Value = serde_json::from_slice(&output.expect("tc starts").stdout).expect("it is JSON");
    let queue = |qdisc: &serde_json::Value| {
        let handle = qdisc["handle"].as_str().unwrap_or_default().to_owned();
        (handle, qdisc["packets"].as_u64().unwrap_or(0))
    };
    all.as_array().expect("it is a list").iter().map(queue).collect()
}

/// Returns the handles of the queues of that port. Unlike counts of packets they stay the same while the kernels of
/// hosts say on their own that they are there.
fn handles(net: &Network) -> Vec<String> {
    queues(net).into_iter().map(|(handle, _)| handle).collect()
}

/// Returns the packets that the queue with this handle has sent.
fn sent(net: &Network, handle: &str) -> u64 {
    queues(net).into_iter().find(|(name, _)| name == handle).expect("there is such a queue").1
}

/// Sends `n_bytes` from the first host to the second, from a socket with this byte for DSCP and ECN.
fn send(net: &Network, tos: i32, n_bytes: usize) {
    let listener = inside(&net.name("2"), || TcpListener::bind("10.8.2.1:0")).expect("the address is there");
    let to = listener.local_addr().expect("it is bound");
    let mut stream = inside(&net.name("1"), || TcpStream::connect(to)).expect("the switch forwards");
    setsockopt(&stream, Ipv4Tos, &tos).expect("it is a socket of IPv4");
    let receiver = std::thread::spawn(move || listener.accept()?.0.read_to_end(&mut Vec::new()));
    stream.write_all(&vec![7; n_bytes]).expect("it is connected");
    drop(stream);
    assert_eq!(receiver.join().expect("no panic").expect("the connection holds"), n_bytes);
}

#[test]
fn packets_go_to_the_class_of_their_dscp_and_the_port_is_left_as_it_was() {
    let Some(_machine) = machine() else { return };
    let net = Network::new();
    let port = net.port();
    let set = format!("classes set --port {port}:100Mbps --class cs4:1 --others 1");
    // The queue of these tests' network is not this program's.
    let before = handles(&net);
    let message = refused(&set);
    assert!(message.contains("has a queue that somebody else has made, `tbf "), "{message}");
    assert!(refused(&format!("classes clear --port {port}")).contains("somebody else has made"));
    assert_eq!(handles(&net), before);
    succeed(&format!("tc -n {} qdisc del dev {} root", net.name("s"), net.name("c")));
    let empty = handles(&net);

    // All ports are looked at before one is changed.
    let message = refused(&format!("{set} --port {}/nowhere:100Mbps", net.name("s")));
    assert!(message.contains(&format!("there is no device `{}/nowhere`", net.name("s"))), "{message}");
    assert_eq!(handles(&net), empty);

    assert_eq!(done(&set), format!("{port} has 2 classes\n"));
    send(&net, 0x80, 300_000);
    let marked = sent(&net, "fa21:");
    assert!(200 <= marked && sent(&net, "faff:") < 20, "{:?}", queues(&net));
    // The bits of ECN do not matter.
    send(&net, 0x81, 300_000);
    assert!(marked + 200 <= sent(&net, "fa21:"), "{:?}", queues(&net));
    send(&net, 0x28, 300_000);
    assert!(200 <= sent(&net, "faff:"), "{:?}", queues(&net));

    // Other classes take the place of those that are there.
    done(&format!("classes set --port {port}:100Mbps --class af11:3 --class ef:1:20KB --others 2"));
    assert_eq!(handles(&net), ["fa00:", "faff:", "fa0b:", "fa2f:"]);
    done(&format!("classes clear --port {port}"));
    assert_eq!(handles(&net), empty);
    assert!(refused(&format!("classes clear --port {port}")).contains("has no classes"));
}

#[test]
fn telemetry_is_that_of_a_class_that_there_is() {
    let Some(_machine) = machine() else { return };
    let net = Network::new();
    let port = net.port();
    let hosts = format!("--netns {0}1 --netns {0}2", net.name(""));
    let attach = format!("attach powertcp --tau 500us {hosts} --switch-port {port}:100Mbps@cs4");
    let message = refused(&attach);
    assert!(message.contains(&format!("`{}` has no class of DSCP cs4", net.name("c"))), "{message}");
    assert!(clean::is_clean());
    succeed(&format!("tc -n {} qdisc del dev {} root", net.name("s"), net.name("c")));
    done(&format!("classes set --port {port}:100Mbps --class cs4:1 --others 1"));
    done(&attach);
    send(&net, 0x80, 1_000_000);
    assert!(600 <= sent(&net, "fa21:"), "{:?}", queues(&net));
    done("detach --force");
    drop(net);
    assert!(clean::is_clean());
}

#[test]
fn connections_get_the_dscp_of_their_algorithm_and_lose_it_with_it() {
    let Some(_machine) = machine() else { return };
    let net = Network::new();
    let listener = inside(&net.name("2"), || TcpListener::bind("10.8.2.1:0")).expect("the address is there");
    let to = listener.local_addr().expect("it is bound");
    let connect = || inside(&net.name("1"), || TcpStream::connect(to)).expect("the switch forwards");
    let tos = |stream: &TcpStream| getsockopt(stream, Ipv4Tos).expect("it is a socket of IPv4");
    let message = refused(&format!("attach theta-powertcp --netns {} --dscp 64", net.name("1")));
    assert!(message.contains("in `--dscp 64`: `64` is no DSCP"), "{message}");
    done(&format!("attach theta-powertcp --netns {} --dscp cs4", net.name("1")));
    let marked = connect();
    assert_eq!(tos(&marked), 0x80);
    // A program's own choice holds.
    let chosen = inside(&net.name("1"), || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.set_tos_v4(0x28)?;
        socket.connect(&to.into()).map(|()| TcpStream::from(socket))
    });
    let chosen = chosen.expect("the switch forwards");
    assert_eq!(tos(&chosen), 0x28);
    // Without the option, later connections get none.
    done(&format!("attach theta-powertcp --netns {}", net.name("1")));
    assert_eq!(tos(&connect()), 0);
    done(&format!("attach theta-powertcp --netns {} --dscp cs4", net.name("1")));
    done(&format!("detach theta-powertcp --netns {} --force", net.name("1")));
    assert_eq!((tos(&marked), tos(&chosen)), (0, 0x28));
    drop(net);
    assert!(clean::is_clean());
}
