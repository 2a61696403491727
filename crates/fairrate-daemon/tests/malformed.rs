//! A million invalid frames.

use std::net::IpAddr;
use std::time::Duration;

use fairrate_allocate::{LinkId, RealTime};
use fairrate_daemon::wire::{self, Decoder, FromAgent, MAX_FRAME, Reason, Start, VERSION};
use fairrate_daemon::{Desk, DeskConfig, Identity, Weight, WireRate};
use fairrate_sim::rng::{Purpose, Stream};

const FRAMES: u64 = 1_000_000;
const LEASE: Duration = Duration::from_secs(1);

fn desk() -> Desk {
    let config = DeskConfig {
        instance: 1,
        lease: LEASE,
        threshold: 0.01,
        max_agents: 10,
        max_sessions: 10,
        max_flows: 100,
        quorum: 0,
    };
    let engine = RealTime::general(&[9.9e9; 4], 10e9, 0.4);
    let path =
        |src: IpAddr| if src == IpAddr::from([10, 0, 0, 1]) { [LinkId(0), LinkId(1)] } else { [LinkId(2), LinkId(3)] };
    Desk::new(config, Box::new(engine), Box::new(move |src, _, out| out.extend(path(src))))
}

fn settle(desk: &mut Desk) {
    for _ in 0..100 {
        desk.iterate();
    }
}

fn some_start(draw: &mut Stream) -> FromAgent {
    let (flow, weight) = (draw.below(300) as u32, Weight::from_f64(draw.uniform() * 100.0));
    FromAgent::Start(Start { flow, src: [9, 0, 0, 1].into(), dst: [9, 0, 0, 2].into(), weight })
}

/// Returns a valid frame with some bytes changed, or random bytes.
fn some_frame(draw: &mut Stream) -> Vec<u8> {
    let mut frame = Vec::new();
    match draw.below(4) {
        0 => {
            let len = draw.below(40) as usize;
            frame.extend((0..len).map(|_| draw.below(256) as u8));
            return frame;
        }
        1 => wire::encode((0..=draw.below(3)).map(|_| some_start(draw)), &mut frame),
        2 => wire::encode([FromAgent::End(draw.below(300) as u32), FromAgent::Synced], &mut frame),
        _ => wire::encode([FromAgent::Hello { version: VERSION, session: draw.below(20) }], &mut frame),
    }
    for _ in 0..draw.below(3) {
        let at = draw.below(frame.len() as u64) as usize;
        match draw.below(3) {
            0 => frame[at] ^= 1 << draw.below(8),
            1 => frame[at] = draw.below(256) as u8,
            _ => frame.truncate(at + 1),
        }
    }
    frame
}

#[test]
fn a_million_malformed_frames_do_no_harm() {
    let mut draw = Stream::new(1, 0, Purpose::Test);
    let mut desk = desk();
    let now = Duration::from_millis(1);
    desk.on_connected(now, 0, Identity::Peer([10, 0, 0, 1].into()));
    desk.on_message(now, 0, FromAgent::Hello { version: VERSION, session: 1_000 });
    let weight = Weight::ONE;
    let own = Start { flow: 1, src: [10, 0, 0, 1].into(), dst: [10, 0, 0, 2].into(), weight };
    desk.on_message(now, 0, FromAgent::Start(own));
    settle(&mut desk);
    let rate_of_own = |desk: &Desk| desk.flows().find(|(start, _)| *start == own).map(|(_, rate)| rate);
    let before = rate_of_own(&desk);
    assert!(before.is_some_and(|rate| rate != WireRate::NONE));

    let (mut id, mut n_malformed) = (0, 0);
    while n_malformed < FRAMES {
        id += 1;
        let mut decoder = Decoder::default();
        desk.on_connected(now, id, Identity::Peer([9, 0, 0, 1].into()));
        if draw.below(2) == 0 {
            desk.on_message(now, id, FromAgent::Hello { version: VERSION, session: draw.below(20) });
        }
        let result = decoder.read(&some_frame(&mut draw), |message| desk.on_message(now, id, message));
        assert!(decoder.waiting() <= MAX_FRAME + 2);
        if result.is_err() {
            desk.close(now, id, Reason::Protocol);
        }
        let mut closed = Vec::new();
        desk.take_closed(&mut closed);
        let reason = closed.iter().find(|(closed, _)| *closed == id).map(|(_, reason)| *reason);
        assert!(result.is_ok() || reason.is_some(), "an error ends the connection, with a reason");
        n_malformed += u64::from(reason == Some(Reason::Protocol));
        desk.on_disconnected(now, id);
        assert!(desk.n_connections() == 1 && desk.n_agents() <= 10 && desk.n_flows() <= 101);
    }
    settle(&mut desk);
    assert_eq!(rate_of_own(&desk), before, "nobody else's rate has moved");
}
