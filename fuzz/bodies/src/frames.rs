//! Messages between agents and the allocator.

use std::time::Duration;

use fairrate_allocate::{LinkId, RealTime};
use fairrate_daemon::wire::{Decoder, FromAgent, FromAllocator, MAX_FRAME, Reason};
use fairrate_daemon::{Agent, Desk, DeskConfig, Identity};

/// Largest number of flows of an agent.
const MAX_FLOWS: usize = 50;

/// Checks that any bytes are messages or an error, on both sides, and that neither side grows beyond its bounds.
///
/// # Panics
/// If that does not hold.
pub fn frames(bytes: &[u8]) {
    to_allocator(bytes);
    to_agent(bytes);
}

fn to_allocator(bytes: &[u8]) {
    let lease = Duration::from_secs(1);
    let config = DeskConfig {
        instance: 1,
        lease,
        threshold: 0.01,
        max_agents: 1,
        max_sessions: 1,
        max_flows: MAX_FLOWS,
        quorum: 0,
    };
    let engine = RealTime::general(&[1e10, 1e10], 1e10, 0.4);
    let mut desk = Desk::new(config, Box::new(engine), Box::new(|_, _, path| path.extend([LinkId(0), LinkId(1)])));
    desk.watch_links(&[1e10, 1e10]);
    desk.on_connected(Duration::ZERO, 1, Identity::Peer(std::net::IpAddr::from([127, 0, 0, 1])));
    let mut decoder = Decoder::default();
    for piece in bytes.chunks(100) {
        if decoder.read(piece, |message: FromAgent| desk.on_message(Duration::ZERO, 1, message)).is_err() {
            desk.close(Duration::ZERO, 1, Reason::Protocol);
            break;
        }
        assert!(decoder.waiting() <= MAX_FRAME + 2);
        desk.iterate();
        assert!(desk.n_flows() <= MAX_FLOWS);
        assert!(desk.flows().all(|(_, rate)| rate.as_bps() <= 1e10 * 1.001));
    }
    let mut out = Vec::new();
    desk.write(Duration::ZERO, 1, &mut out, 1_000);
    Decoder::default().read(&out, |_: FromAllocator| {}).expect("the allocator speaks well");
}

fn to_agent(bytes: &[u8]) {
    let mut agent = Agent::new(Duration::ZERO, 1, 1);
    agent.on_connected(Duration::ZERO, 0);
    let mut out = Vec::new();
    agent.write(Duration::ZERO, 0, &mut out, 1_000);
    let mut is_open = true;
    let hear = |message: FromAllocator| is_open &= is_open && agent.on_message(Duration::ZERO, 0, message).is_ok();
    let _ = Decoder::default().read(bytes, hear);
    assert!(agent.n_flows() == 0 && !agent.has_grants(), "there is no flow to have a rate");
}
