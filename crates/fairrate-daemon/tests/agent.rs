//! Agents at their edges: those that leave before they have said who they are, allocators with hardly any lease, and
//! one allocator at two addresses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{ALONE_BPS, INSECURE, Running, client, host, is_near, until};
use fairrate_daemon::Agent;
use fairrate_daemon::wire::{self, Decoder, FromAgent, FromAllocator, Reason};

/// The time in which connections are counted.
const WHILE: Duration = Duration::from_secs(2);

/// Returns the agent's next messages to its only server, and `true` if it stays.
fn said(agent: &mut Agent, now: Duration) -> (Vec<FromAgent>, bool) {
    let (mut out, mut words) = (Vec::new(), Vec::new());
    let stays = agent.write(now, 0, &mut out, 1 << 14);
    Decoder::default().read(&out, |word| words.push(word)).expect("the agent speaks well");
    (words, stays)
}

#[test]
fn an_agent_that_leaves_before_hello_says_nothing() {
    let now = Duration::ZERO;
    let mut agent = Agent::new(now, 1, 1);
    agent.on_connected(now, 0);
    agent.leave();
    assert_eq!(said(&mut agent, now), (vec![], false));
    // After HELLO it says BYE, answered or not.
    let mut agent = Agent::new(now, 1, 1);
    agent.on_connected(now, 0);
    assert!(matches!(said(&mut agent, now).0[..], [FromAgent::Hello { .. }]));
    agent.leave();
    assert_eq!(said(&mut agent, now), (vec![FromAgent::Bye(Reason::Shutdown)], false));
}

/// An allocator that answers HELLO with a lease of `lease`, and nothing else. Returns its address and the number of
/// connections so far.
fn brief_allocator(lease: Duration) -> (SocketAddr, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let (address, n) = (listener.local_addr().expect("an address"), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&n);
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut hello = Vec::new();
            wire::encode([FromAllocator::Hello { version: 3, instance: 1, lease }], &mut hello);
            let _ = stream.read(&mut [0; 100]);
            let _ = stream.write_all(&hello);
            while stream.read(&mut [0; 100]).is_ok_and(|n| 0 < n) {}
        }
    });
    (address, n)
}

/// An agent waits for at least half of 50, 100, 200, and then 400 ms: four connections in the first 0.18 s, and ten
/// more until 2 s are over.
#[test]
fn an_allocator_with_hardly_any_lease_is_left_alone() {
    for lease in [0, 1, 9] {
        let (address, n) = brief_allocator(Duration::from_millis(lease));
        let client = client(&[address]);
        std::thread::sleep(WHILE);
        let n = n.load(Ordering::Relaxed);
        assert!((1..=16).contains(&n), "lease {lease} ms: {n} connections");
        assert_eq!(client.n_connected(), 0);
    }
    // The least lease that an allocator may have: its silence ends connections, less and less often.
    let (address, n) = brief_allocator(Duration::from_millis(10));
    let _client = client(&[address]);
    std::thread::sleep(WHILE);
    let n = n.load(Ordering::Relaxed);
    assert!((1..=16).contains(&n), "lease 10 ms: {n} connections");
}

#[test]
fn one_allocator_at_two_addresses_has_one_connection() {
    let everywhere =
        INSECURE.replace("127.0.0.1:0", "0.0.0.0:0").replace("\nlease", "\ninsecure_beyond_loopback = true\nlease");
    let server = Running::start(&everywhere, 1);
    let addresses = [[127, 0, 0, 1], [127, 0, 0, 2]].map(|ip| SocketAddr::from((ip, server.address.port())));
    let client = client(&addresses);
    client.begin(1, host(1), host(3), 1.0);
    until("the flow has its rate", || is_near(client.rate_bps(1), ALONE_BPS));
    let replaced = || server.metric("fairrate_connections_closed_total{why=\"Replaced\"}");
    std::thread::sleep(WHILE);
    let n = replaced();
    // Two connections that are made at the same time may replace each other a few times.
    assert!(n <= 5.0, "{n}");
    assert_eq!(client.n_connected(), 1);
    assert!(is_near(client.rate_bps(1), ALONE_BPS));
    server.stop();
}
