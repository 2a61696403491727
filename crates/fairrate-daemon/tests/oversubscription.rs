//! The rates that may be in force, summed up link by link: they fit into the links whatever agents do.

use std::net::IpAddr;
use std::time::Duration;

use fairrate_allocate::{LinkId, RealTime};
use fairrate_daemon::wire::{AgentStamp, Decoder, Epoch, FromAgent, FromAllocator, Reason, Start, VERSION};
use fairrate_daemon::{ConnectionId, Desk, DeskConfig, Identity, LinkLoad, Urgency, Weight, WireRate};

const LINK_BPS: f64 = 10e9;
const LEASE: Duration = Duration::from_secs(1);

/// A desk with two agents whose flows share a link, and its clock.
struct Bench {
    desk: Desk,
    now: Duration,
    epoch: Epoch,
}

impl Bench {
    fn new() -> Self {
        let config = DeskConfig {
            instance: 1,
            lease: LEASE,
            threshold: 0.01,
            max_agents: 9,
            max_sessions: 9,
            max_flows: 100,
            quorum: 0,
        };
        let engine = RealTime::general(&[0.99 * LINK_BPS; 2], LINK_BPS, 0.4);
        let paths = |_, _, out: &mut Vec<LinkId>| out.push(LinkId(1));
        let mut desk = Desk::new(config, Box::new(engine), Box::new(paths));
        desk.watch_links(&[LINK_BPS; 2]);
        desk.tick(Duration::ZERO);
        let mut bench = Self { desk, now: Duration::ZERO, epoch: Epoch::NONE };
        for id in [1, 2] {
            bench.desk.on_connected(bench.now, id, Identity::Peer([127, 0, 0, 1].into()));
            bench.say(id, FromAgent::Hello { version: VERSION, session: id });
            bench.stamp(id);
        }
        bench
    }

    fn say(&mut self, id: ConnectionId, message: FromAgent) {
        self.desk.on_message(self.now, id, message);
    }

    /// Advances the time.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.desk.tick(self.now);
    }

    /// Sends a stamp by which the agent accepts the allocator, or wants it to decide.
    fn stamp(&mut self, id: ConnectionId) {
        let is_reported = self.epoch != Epoch::NONE;
        let sent = self.now.as_nanos() as u64;
        let stamp = AgentStamp { sent, epoch: self.epoch, is_willing: !is_reported, is_reported, ..Default::default() };
        self.say(id, FromAgent::Stamp(stamp));
    }

    /// Lets the allocator decide, with both agents on board.
    fn begin(&mut self) {
        self.pass(Duration::from_millis(1));
        self.hear(1);
        assert_ne!(self.epoch, Epoch::NONE, "it asks");
        self.board(1);
        self.board(2);
        // All agents are new: an allocator before it may have given rates to others.
        for _ in 0..3 {
            self.pass(LEASE / 2);
            self.stamp(1);
            self.stamp(2);
        }
    }

    fn board(&mut self, id: ConnectionId) {
        self.say(id, FromAgent::Reported);
        self.stamp(id);
    }

    fn start(&mut self, id: ConnectionId, flow: u32) {
        let (src, dst) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        self.say(id, FromAgent::Start(Start { flow, src, dst, weight: Weight::ONE }));
    }

    fn settle(&mut self) {
        (0..200).for_each(|_| _ = self.desk.iterate());
    }

    /// Returns the rates that the allocator sends, and the last mark.
    fn hear(&mut self, id: ConnectionId) -> (Vec<f64>, Option<u32>) {
        let (mut out, mut rates, mut last) = (Vec::new(), Vec::new(), None);
        self.desk.write(self.now, id, &mut out, 10_000);
        let hear = |message: FromAllocator| match message {
            FromAllocator::Rate { rate, .. } => rates.push(rate.as_bps() / LINK_BPS),
            FromAllocator::Mark(mark) => last = Some(mark),
            FromAllocator::Stamp(stamp) => self.epoch = stamp.epoch,
            _ => {}
        };
        Decoder::default().read(&out, hear).expect("the allocator speaks well");
        (rates, last)
    }

    fn acknowledge(&mut self, id: ConnectionId, mark: Option<u32>) {
        self.say(id, FromAgent::Ack(mark.expect("rates have a mark")));
    }

    fn share(&self) -> f64 {
        self.desk.link_load().largest_share
    }
}

fn is_about(share: f64, expected: f64) -> bool {
    (share / expected - 1.0).abs() < 0.012
}

#[test]
fn a_rate_grows_when_those_it_depends_on_have_fallen() {
    let mut bench = Bench::new();
    bench.begin();
    bench.start(1, 1);
    bench.settle();
    assert_eq!(bench.desk.link_load(), LinkLoad::default(), "nothing was told");
    let (rates, mark) = bench.hear(1);
    assert!(rates.len() == 1 && is_about(rates[0], 0.99), "{rates:?}");
    bench.acknowledge(1, mark);
    // The second agent's flow waits for the first one's, whether that is told or not.
    bench.start(2, 1);
    bench.settle();
    assert!(bench.hear(2).0.is_empty());
    let (rates, mark) = bench.hear(1);
    assert!(rates.len() == 1 && is_about(rates[0], 0.495), "{rates:?}");
    assert!(bench.hear(2).0.is_empty());
    assert!(is_about(bench.share(), 0.99));
    bench.acknowledge(1, mark);
    let (rates, _) = bench.hear(2);
    assert!(rates.len() == 1 && is_about(rates[0], 0.495), "{rates:?}");
    assert!(is_about(bench.share(), 0.99) && bench.desk.link_load().n_oversubscribed == 0);
}

#[test]
fn a_flow_that_waits_for_an_agent_that_hangs_gets_a_little_and_then_its_share() {
    let mut bench = Bench::new();
    bench.begin();
    bench.start(1, 1);
    bench.settle();
    let (_, mark) = bench.hear(1);
    bench.acknowledge(1, mark);
    bench.start(2, 1);
    bench.settle();
    bench.hear(1);
    assert!(bench.hear(2).0.is_empty(), "the first agent does not acknowledge its lower rate");
    let mut seen = Vec::new();
    for _ in 0..24 {
        bench.pass(LEASE / 16);
        bench.stamp(2);
        bench.settle();
        let (rates, mark) = bench.hear(2);
        seen.extend(rates);
        if mark.is_some() {
            bench.acknowledge(2, mark);
        }
        assert!(bench.share() < 1.01, "{}", bench.share());
    }
    assert!(0.0 < seen[0] && seen[0] < 0.01, "{seen:?}");
    assert!(seen.last().is_some_and(|last| is_about(*last, 0.99)), "it has the link after the lease: {seen:?}");
}

/// A liar reports 100 flows of ten times the link: it has its own link, and no more.
#[test]
fn a_reported_rate_is_no_more_than_the_link() {
    let mut bench = Bench::new();
    bench.begin();
    for flow in 0..100 {
        bench.start(1, flow);
        bench.say(1, FromAgent::InForce { flow, rate: WireRate::from_bps(10.0 * LINK_BPS) });
    }
    assert!(bench.share() < 1.01, "{}", bench.share());
}

/// An agent that claims a huge epoch goes by no allocator; the others stay.
#[test]
fn no_agent_moves_the_epoch_of_others() {
    let mut bench = Bench::new();
    bench.begin();
    bench.hear(1);
    let before = bench.epoch;
    let sent = bench.now.as_nanos() as u64;
    let stamp = AgentStamp { sent, epoch: Epoch(u64::MAX), is_willing: true, is_grown: true, ..Default::default() };
    for _ in 0..50 {
        bench.say(2, FromAgent::Stamp(stamp));
        bench.stamp(1);
        bench.pass(LEASE / 16);
        bench.hear(1);
        assert_eq!(bench.epoch, before);
    }
    assert_eq!((bench.desk.reign().decides, bench.desk.reign().n_elsewhere), (true, 1));
    // An acknowledgment of a stamp that was never sent ends the connection.
    bench.say(2, FromAgent::Stamp(AgentStamp { ack: u64::MAX, ..stamp }));
    let mut closed = Vec::new();
    bench.desk.take_closed(&mut closed);
    assert_eq!(closed, [(2, Reason::Protocol)]);
}

#[test]
fn sums_go_back_to_nothing() {
    let mut bench = Bench::new();
    bench.begin();
    for round in 0..50 {
        for flow in 0..20 {
            bench.start(1 + u64::from(flow % 2), round * 7 + flow);
        }
        (0..5).for_each(|_| _ = bench.desk.iterate());
        let (_, mark) = bench.hear(1);
        if mark.is_some() {
            bench.acknowledge(1, mark);
        }
        (0..7).for_each(|flow| bench.say(1, FromAgent::End(round * 7 + flow)));
        bench.hear(2);
    }
    assert!(0.0 < bench.share());
    // One agent sends BYE, and the other one's lease ends.
    bench.say(1, FromAgent::Bye(Reason::Shutdown));
    (0..40).for_each(|_| bench.pass(LEASE / 10));
    assert_eq!((bench.desk.n_flows(), bench.desk.link_load()), (0, LinkLoad::default()));
    assert!(bench.desk.next_listed(Urgency::Now).is_none());
}
