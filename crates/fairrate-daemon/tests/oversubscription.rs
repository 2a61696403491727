//! The rates sent to flows, summed up link by link.

use std::net::Ipv4Addr;
use std::time::Duration;

use fairrate_allocate::{LinkId, RealTime};
use fairrate_daemon::wire::{FromAgent, Start, VERSION};
use fairrate_daemon::{ConnectionId, Desk, DeskConfig, Identity, LinkLoad, Urgency, Weight};

const LINK_BPS: f64 = 10e9;
const LEASE: Duration = Duration::from_secs(1);

/// Creates a desk with two agents whose flows share a link.
fn desk() -> Desk {
    let config = DeskConfig { epoch: 1, lease: LEASE, threshold: 0.01, max_agents: 9, max_sessions: 9, max_flows: 100 };
    let engine = RealTime::general(&[0.99 * LINK_BPS; 2], LINK_BPS, 0.4);
    let paths = |_, _, out: &mut Vec<LinkId>| out.push(LinkId(1));
    let mut desk = Desk::new(config, Box::new(engine), Box::new(paths));
    desk.watch_links(vec![LINK_BPS; 2]);
    for id in [1, 2] {
        desk.on_connected(Duration::ZERO, id, Identity::Peer([127, 0, 0, 1].into()));
        desk.on_message(Duration::ZERO, id, FromAgent::Hello { version: VERSION, session: id });
    }
    desk
}

fn start(desk: &mut Desk, id: ConnectionId, flow: u32) {
    let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    desk.on_message(Duration::ZERO, id, FromAgent::Start(Start { flow, src, dst, weight: Weight::ONE }));
}

fn settle(desk: &mut Desk) {
    (0..200).for_each(|_| _ = desk.iterate());
}

fn tell(desk: &mut Desk, id: ConnectionId) {
    desk.write(Duration::ZERO, id, &mut Vec::new(), 10_000);
}

fn share(desk: &Desk) -> f64 {
    desk.link_load().largest_share
}

#[test]
fn an_agent_that_was_not_told_yet_keeps_its_rate() {
    let mut desk = desk();
    start(&mut desk, 1, 1);
    settle(&mut desk);
    assert_eq!(desk.link_load(), LinkLoad::default(), "nothing was told");
    tell(&mut desk, 1);
    assert!((0.98..=1.0).contains(&share(&desk)), "{}", share(&desk));
    // The second agent gets its half before the first one gets its own.
    start(&mut desk, 2, 1);
    settle(&mut desk);
    tell(&mut desk, 2);
    assert!((1.47..=1.51).contains(&share(&desk)), "{}", share(&desk));
    assert_eq!(desk.link_load().n_oversubscribed, 1);
    tell(&mut desk, 1);
    assert!((0.98..=1.0).contains(&share(&desk)), "{}", share(&desk));
    assert_eq!(desk.link_load().n_oversubscribed, 0);
}

#[test]
fn sums_go_back_to_nothing() {
    let mut desk = desk();
    for round in 0..50 {
        for flow in 0..20 {
            start(&mut desk, 1 + u64::from(flow % 2), round * 7 + flow);
        }
        (0..5).for_each(|_| _ = desk.iterate());
        tell(&mut desk, 1);
        (0..7).for_each(|flow| desk.on_message(Duration::ZERO, 1, FromAgent::End(round * 7 + flow)));
        tell(&mut desk, 2);
    }
    assert!(0.0 < share(&desk));
    // One agent sends BYE, and the other one's lease ends.
    desk.on_message(Duration::ZERO, 1, FromAgent::Bye(fairrate_daemon::wire::Reason::Shutdown));
    (0..40).for_each(|i| desk.tick(LEASE * i / 10));
    assert_eq!((desk.n_flows(), desk.link_load()), (0, LinkLoad::default()));
    assert!(desk.next_listed(Urgency::Now).is_none());
}
