//! The quotas of one identity, however often it connects: at the desk, without sockets and clocks.

use std::net::IpAddr;
use std::time::Duration;

use fairrate_allocate::{LinkId, RealTime};
use fairrate_daemon::wire::{FromAgent, Reason, Start, VERSION};
use fairrate_daemon::{ConnectionId, Desk, DeskConfig, Identity, Refusal, Weight};

const MAX_FLOWS: usize = 100;
const MAX_SESSIONS: usize = 3;
const MAX_AGENTS: usize = 8;
const LEASE: Duration = Duration::from_secs(1);

/// A desk and the connections made so far.
struct World {
    desk: Desk,
    now: Duration,
    connections: ConnectionId,
}

fn host(i: u8) -> IpAddr {
    [10, 0, 0, i].into()
}

impl World {
    fn new() -> Self {
        let config = DeskConfig {
            instance: 1,
            quorum: 0,
            lease: LEASE,
            threshold: 0.01,
            max_agents: MAX_AGENTS,
            max_sessions: MAX_SESSIONS,
            max_flows: MAX_FLOWS,
        };
        let engine = RealTime::general(&[9.9e9; 2], 10e9, 0.4);
        let paths = Box::new(|_, _, out: &mut Vec<LinkId>| out.extend([LinkId(0), LinkId(1)]));
        Self { desk: Desk::new(config, Box::new(engine), paths), now: Duration::ZERO, connections: 0 }
    }

    /// Connects the agent of a host; the error is the reason of a refusal.
    fn connect(&mut self, of: u8, session: u64) -> Result<ConnectionId, Reason> {
        self.connections += 1;
        let id = self.connections;
        self.desk.on_connected(self.now, id, Identity::Addresses(vec![host(of)]));
        self.desk.on_message(self.now, id, FromAgent::Hello { version: VERSION, session });
        let mut closed = Vec::new();
        self.desk.take_closed(&mut closed);
        closed.iter().find(|(closed, _)| *closed == id).map_or(Ok(id), |(_, reason)| Err(*reason))
    }

    fn start(&mut self, id: ConnectionId, of: u8, flows: std::ops::Range<u32>) {
        for flow in flows {
            let start = Start { flow, src: host(of), dst: host(200), weight: Weight::ONE };
            self.desk.on_message(self.now, id, FromAgent::Start(start));
        }
    }

    fn flows_of(&self, of: u8) -> usize {
        self.desk.flows().filter(|(start, _)| start.src == host(of)).count()
    }

    fn pass(&mut self, time: Duration) {
        for _ in 0..10 {
            self.now += time / 10;
            self.desk.tick(self.now);
        }
    }
}

#[test]
fn a_session_that_never_says_synced_has_no_more_flows_than_another() {
    let mut world = World::new();
    for round in 0..50 {
        let id = world.connect(1, 7).expect("it is let in");
        world.start(id, 1, round * 1_000..round * 1_000 + 2 * MAX_FLOWS as u32);
        assert!(world.desk.n_flows() <= MAX_FLOWS, "{} flows", world.desk.n_flows());
        world.desk.on_disconnected(world.now, id);
    }
}

#[test]
fn sessions_of_an_identity_share_its_flows() {
    let mut world = World::new();
    for session in 0..MAX_SESSIONS as u64 {
        let id = world.connect(1, session).expect("it is let in");
        world.start(id, 1, 0..MAX_FLOWS as u32);
    }
    assert_eq!(world.desk.n_flows(), MAX_FLOWS);
    assert_eq!(world.desk.counts().refused_for(Refusal::TooManyFlows), (MAX_SESSIONS as u64 - 1) * MAX_FLOWS as u64);
    // Another identity has its own quota.
    let id = world.connect(2, 1).expect("it is let in");
    world.start(id, 2, 0..MAX_FLOWS as u32);
    assert_eq!((world.flows_of(1), world.flows_of(2)), (MAX_FLOWS, MAX_FLOWS));
}

#[test]
fn sessions_of_an_identity_are_few_and_others_get_in() {
    let mut world = World::new();
    for session in 0..100 {
        let expected = session < MAX_SESSIONS as u64;
        let result = world.connect(1, session);
        assert_eq!(result.is_ok(), expected, "session {session}: {result:?}");
        assert!(expected || result == Err(Reason::TooManySessions));
    }
    world.connect(2, 1).expect("another agent gets in");
    assert_eq!(world.desk.n_agents(), MAX_SESSIONS + 1);
}

#[test]
fn all_agents_together_are_limited_too() {
    let mut world = World::new();
    for of in 0..MAX_AGENTS as u8 {
        world.connect(of, 1).expect("it is let in");
    }
    assert_eq!(world.connect(100, 1), Err(Reason::TooManyAgents));
}

#[test]
fn an_agent_that_was_started_anew_has_all_its_flows_at_once() {
    let mut world = World::new();
    // It dies repeatedly, each time with all its flows, and reconnects within the lease.
    for session in 0..20 {
        let id = world.connect(1, session).expect("a dead session gives way");
        world.start(id, 1, 0..MAX_FLOWS as u32);
        world.desk.on_message(world.now, id, FromAgent::Synced);
        assert_eq!(world.flows_of(1), MAX_FLOWS);
        world.desk.on_disconnected(world.now, id);
        world.pass(LEASE / 10);
    }
    assert_eq!(world.desk.counts().refused_for(Refusal::TooManyFlows), 0);
    assert!(world.desk.n_agents() <= MAX_SESSIONS);
    world.pass(LEASE * 2);
    assert_eq!((world.desk.n_flows(), world.desk.n_agents()), (0, 0));
}

#[test]
fn an_agent_that_comes_back_with_other_flows_has_them_all() {
    let mut world = World::new();
    let most = MAX_FLOWS as u32;
    let id = world.connect(1, 7).expect("it is let in");
    world.start(id, 1, 0..most);
    world.desk.on_disconnected(world.now, id);
    // Half of them have ended meanwhile, and as many have begun. It sends the new ones first.
    let id = world.connect(1, 7).expect("it is let in");
    world.start(id, 1, most..most + most / 2);
    world.start(id, 1, 0..most / 2);
    world.desk.on_message(world.now, id, FromAgent::Synced);
    let mut flows: Vec<u32> = world.desk.flows().map(|(start, _)| start.flow).collect();
    flows.sort_unstable();
    assert_eq!(flows, (0..most / 2).chain(most..most + most / 2).collect::<Vec<u32>>());
    assert_eq!(world.desk.counts().refused_for(Refusal::TooManyFlows), 0);
}

#[test]
fn only_the_first_synced_ends_flows() {
    let mut world = World::new();
    let id = world.connect(1, 7).expect("it is let in");
    world.start(id, 1, 0..10);
    (0..3).for_each(|_| world.desk.on_message(world.now, id, FromAgent::Synced));
    assert_eq!(world.desk.n_flows(), 10);
}
