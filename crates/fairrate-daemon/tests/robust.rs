//! Agents that misbehave: the rates of others do not move, and memory stays bounded.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::{ALONE_BPS, INSECURE, Running, client, connect_from, host, is_near, until};
use fairrate_daemon::wire::{self, AgentStamp, Decoder, Epoch, FromAgent, FromAllocator, Reason, Start, VERSION};
use fairrate_daemon::{Client, Weight};
use socket2::{Domain, Socket, Type};

/// An honest agent whose flow is alone on its link.
struct Honest {
    client: Client,
    rate_bps: Option<f64>,
}

impl Honest {
    fn on(server: &Running) -> Self {
        let client = client(&[server.address]);
        client.begin(1, host(7), host(8), 1.0);
        until("the honest one has its link", || is_near(client.rate_bps(1), ALONE_BPS));
        client.grants(Duration::ZERO);
        Self { rate_bps: client.rate_bps(1), client }
    }

    /// Checks that its rate has not moved, and that the allocator still answers it.
    fn check(&self) {
        assert_eq!(self.client.rate_bps(1), self.rate_bps);
        assert_eq!(self.client.grants(Duration::ZERO), []);
        self.client.begin(2, host(6), host(5), 1.0);
        until("a new flow has a rate", || is_near(self.client.rate_bps(2), ALONE_BPS));
        self.client.end(2);
        self.client.grants(Duration::ZERO);
    }
}

fn start(flow: u32, src: u8, dst: u8) -> FromAgent {
    FromAgent::Start(Start { flow, src: host(src), dst: host(dst), weight: Weight::ONE })
}

fn bytes(messages: impl IntoIterator<Item = FromAgent>) -> Vec<u8> {
    let mut out = Vec::new();
    wire::encode(messages, &mut out);
    out
}

fn hello(session: u64) -> FromAgent {
    FromAgent::Hello { version: VERSION, session }
}

/// Returns the allocator's messages until it closes the connection. The limit is far longer than it takes.
fn all_words(stream: &mut TcpStream) -> Vec<FromAllocator> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it can be set");
    common::all_words(stream)
}

/// The memory of this process, the allocator and its attackers together, since this value was made.
struct Memory {
    before: u64,
}

impl Memory {
    fn now() -> Self {
        Self { before: Self::resident_bytes() }
    }

    fn resident_bytes() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
        statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number of pages") * 4096
    }

    /// Checks that little memory was added. The bound is our choice.
    fn check(&self, attack: &str) {
        let grown = Self::resident_bytes().saturating_sub(self.before);
        println!("{attack}: {:.1} MiB more", grown as f64 / f64::from(1 << 20));
        assert!(grown < 48 << 20, "{attack}: {grown} bytes more");
    }
}

#[test]
fn who_does_not_speak_the_protocol_hears_so() {
    let server = Running::start(INSECURE, 1);
    let honest = Honest::on(&server);
    for (words, reason) in [
        (vec![0, 0], Reason::Protocol),
        (vec![0xff, 0xff, 1], Reason::Protocol),
        (bytes([FromAgent::Alive]), Reason::Protocol),
        (bytes([hello(5), hello(5)]), Reason::Protocol),
        (bytes([FromAgent::Hello { version: 99, session: 1 }]), Reason::Version),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Reason::Protocol),
    ] {
        let mut stream = TcpStream::connect(server.address).expect("it listens");
        stream.write_all(&words).expect("there is room");
        assert_eq!(all_words(&mut stream).last(), Some(&FromAllocator::Bye(reason)), "{words:?}");
    }
    honest.check();
    server.stop();
}

#[test]
fn half_open_connections_end_with_the_lease() {
    let server = Running::start(INSECURE, 1);
    let honest = Honest::on(&server);
    let memory = Memory::now();
    // Some send nothing, some half a message, some only HELLO and a flow.
    let mut streams: Vec<TcpStream> = (0..200).map(|i| connect_from(i, server.address)).collect();
    for (i, stream) in (0..).zip(&mut streams) {
        match i % 3 {
            0 => {}
            1 => stream.write_all(&[0, 10, 1]).expect("there is room"),
            _ => stream.write_all(&bytes([hello(i), start(1, 1, 2)])).expect("there is room"),
        }
    }
    memory.check("200 half-open connections");
    until("all are closed", || server.metric("fairrate_connections_closed_total{why=\"Silent\"}") == 200.0);
    until("their flows are over", || server.metric("fairrate_flows") == 1.0);
    assert_eq!(all_words(&mut streams[0]), [FromAllocator::Bye(Reason::Silent)]);
    honest.check();
    server.stop();
}

#[test]
fn connections_beyond_the_limits_are_closed() {
    let limits = "[limits]\nagents = 3\nconnections = 12\nflows_per_agent = 5\n";
    let server = Running::start(&(INSECURE.to_owned() + limits), 1);
    let honest = Honest::on(&server);
    let mut busy = connect_from(9, server.address);
    let flows = (0..20).map(|flow| start(flow, 1, 2));
    busy.write_all(&bytes(std::iter::once(hello(9)).chain(flows))).expect("there is room");
    let mut holds = |what: &str, metric: &str, expected: f64| {
        until(what, || {
            busy.write_all(&bytes([FromAgent::Alive])).expect("it is let in");
            server.metric(metric) == expected
        });
    };
    holds("it has five flows", "fairrate_flows", 1.0 + 5.0);
    holds("the others are counted", "fairrate_refused_total{why=\"too-many-flows\"}", 15.0);
    let mut third = TcpStream::connect(server.address).expect("it listens");
    third.write_all(&bytes([hello(3)])).expect("there is room");
    holds("it is an agent", "fairrate_agents", 3.0);
    let mut fourth = TcpStream::connect(server.address).expect("it listens");
    fourth.write_all(&bytes([hello(4)])).expect("there is room");
    assert_eq!(all_words(&mut fourth), [FromAllocator::Bye(Reason::TooManyAgents)]);
    let many: Vec<TcpStream> = (0..30).map(|i| connect_from(i, server.address)).collect();
    until("some are turned away", || 18.0 <= server.metric("fairrate_turned_away_total{why=\"too-many-connections\"}"));
    drop(many);
    honest.check();
    server.stop();
}

#[test]
fn a_slow_reader_is_closed_and_costs_nobody_else() {
    let server = Running::start(INSECURE, 1);
    let honest = Honest::on(&server);
    let memory = Memory::now();
    // It has many flows, keeps sending ALIVE, and reads nothing.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("it can be set");
    socket.connect(&server.address.into()).expect("it listens");
    let mut slow = TcpStream::from(socket);
    // It accepts the allocator, and then neither reads nor acknowledges.
    let stamp = |epoch| AgentStamp { sent: 1, epoch, is_reported: true, ..AgentStamp::default() };
    slow.write_all(&bytes([hello(9), FromAgent::Stamp(stamp(Epoch::NONE))])).expect("there is room");
    let (mut decoder, mut epoch) = (Decoder::default(), Epoch::NONE);
    while epoch == Epoch::NONE {
        let mut buffer = [0; 512];
        let n = slow.read(&mut buffer).expect("the allocator answers");
        let hear = |message| {
            if let FromAllocator::Stamp(stamp) = message {
                epoch = stamp.epoch;
            }
        };
        decoder.read(&buffer[..n], hear).expect("the allocator speaks well");
    }
    slow.set_nonblocking(true).expect("it can be set");
    let flows = (0..5_000).map(|flow| start(flow, 1, 2));
    let news = flows.chain([FromAgent::Reported, FromAgent::Stamp(stamp(epoch))]);
    slow.write_all(&bytes(news)).expect("there is room");
    let rival = client(&[server.address]);
    let closed = || server.metric("fairrate_connections_closed_total{why=\"Slow\"}");
    let mut is_there = false;
    until("it is closed", || {
        // All its rates change by more than the threshold.
        is_there = !is_there;
        (0..1_000).for_each(|flow| if is_there { rival.begin(flow, host(1), host(2), 1.0) } else { rival.end(flow) });
        let _ = slow.write(&bytes([FromAgent::Alive]));
        closed() == 1.0
    });
    memory.check("a slow reader of 5,000 flows");
    drop(rival);
    honest.check();
    server.stop();
}

#[test]
fn a_flood_is_slowed_down_and_costs_nobody_else() {
    let limits = "[limits]\nflows_per_agent = 1000\nupdates_per_second = 20000\n";
    let server = Running::start(&(INSECURE.to_owned() + limits), 1);
    let honest = Honest::on(&server);
    let memory = Memory::now();
    let flood = connect_from(9, server.address);
    let mut output = flood.try_clone().expect("a handle");
    let writer = std::thread::spawn(move || {
        let _ = output.write_all(&bytes([hello(8)]));
        // A million flows, each begun again and again. It ends when the connection does.
        (0_u32..2_000_000).all(|i| {
            let first = (i * 5) % 1_000_000;
            output.write_all(&bytes((first..first + 5).map(|flow| start(flow, 1, 2)))).is_ok()
        })
    });
    until("the flood is there", || 1_000.0 <= server.metric("fairrate_refused_total{why=\"too-many-flows\"}"));
    (0..10).for_each(|_| honest.check());
    assert!(server.metric("fairrate_flows") <= 1_000.0 + 2.0, "an agent has as many flows as it may");
    memory.check("a flood of two million flowlets of one agent");
    let _ = flood.shutdown(std::net::Shutdown::Both);
    assert!(!writer.join().expect("it does not panic"), "it could not say all in this time");
    until("its flows end with its lease", || server.metric("fairrate_flows") == 1.0);
    server.stop();
}
