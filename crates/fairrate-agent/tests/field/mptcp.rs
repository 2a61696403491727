//! Subflows of MPTCP, each of which is a flow.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::rack::{PAYLOAD_BPS, RECEIVER, Rack, until};

/// Port of the connection, and that of its second subflow.
const PORTS: [u16; 2] = [5_003, 5_004];

/// Runs `ip mptcp` at a host.
fn manage(rack: &Rack, host: u32, args: &[&str]) {
    let namespace = rack.namespace(host);
    let command = [&["-n", &namespace, "mptcp"], args].concat();
    assert!(Command::new("ip").args(&command).status().expect("there is `ip`").success(), "{command:?}");
}

fn mptcp() -> std::io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP))
}

#[test]
fn each_subflow_has_the_rate_of_a_flow() {
    let rack = Rack::new().with_agents([0, 1], "");
    if rack.at(0, || Ok(mptcp().is_err())) {
        println!("not run: this kernel has no MPTCP");
        return;
    }
    for host in [0, RECEIVER] {
        manage(&rack, host, &["limits", "set", "subflows", "2", "add_addr_accepted", "2"]);
    }
    let to = Rack::address(RECEIVER);
    manage(&rack, RECEIVER, &["endpoint", "add", &to.to_string(), "port", &PORTS[1].to_string(), "signal"]);
    let listener: TcpListener = rack
        .at(RECEIVER, || {
            let socket = mptcp()?;
            socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORTS[0]).into())?;
            socket.listen(1)?;
            Ok(socket)
        })
        .into();
    let connect = || {
        let socket = mptcp()?;
        socket.connect(&SocketAddrV4::new(to, PORTS[0]).into())?;
        Ok(socket)
    };
    let mut out: TcpStream = rack.at(0, connect).into();
    let end = out.try_clone().expect("a socket can be cloned");
    let (mut input, _) = listener.accept().expect("it has connected");
    let received = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&received);
    let sending = std::thread::spawn(move || while out.write_all(&[0; 65_536]).is_ok() {});
    let taking = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(1..) = input.read(&mut buffer).inspect(|&n| _ = counted.fetch_add(n as u64, Ordering::Relaxed)) {}
    });
    until("both subflows are flows", || rack.allocator_metric("fairrate_flows") == 2.0);
    let tcp = rack.flow(1);
    until("three flows share the link", || (tcp.limit_bps() / (PAYLOAD_BPS / 3.0) - 1.0).abs() < 0.05);
    sleep(Duration::from_millis(500));
    let (began, before) = (Instant::now(), [tcp.received(), received.load(Ordering::Relaxed)]);
    sleep(Duration::from_secs(2));
    let after = [tcp.received(), received.load(Ordering::Relaxed)];
    let seconds = began.elapsed().as_secs_f64();
    let [of_tcp, of_both] = [0, 1].map(|i| (after[i] - before[i]) as f64 * 8.0 / seconds);
    println!(
        "TCP {:.1} Mb/s, two subflows {:.1} Mb/s, a third is {:.1}",
        of_tcp / 1e6,
        of_both / 1e6,
        PAYLOAD_BPS / 3e6
    );
    assert!((0.85..1.05).contains(&(of_tcp / (PAYLOAD_BPS / 3.0))), "{of_tcp}");
    assert!((0.85..1.05).contains(&(of_both / (PAYLOAD_BPS * 2.0 / 3.0))), "{of_both}");
    tcp.stop();
    end.shutdown(Shutdown::Both).expect("it is connected");
    [sending, taking].into_iter().for_each(|thread| thread.join().expect("it only sends or takes"));
}
