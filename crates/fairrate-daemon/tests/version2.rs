//! Peers of version 2: byte transcripts of its programs, and the programs themselves if there are some.
//!
//! `version2/session.txt` is a session of an agent and an allocator of version 2, a frame a line. It was recorded from
//! `fairrate-allocator run` and `load`. Clocks, and numbers of marks, are those of the recording; the tests replace the
//! echoes of the other side by their own.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::program::{ANY_PORT, Killed, Program, file};
use crate::common::{ALONE_BPS, INSECURE, client, host, is_near, until};
use fairrate_daemon::config::Config;
use fairrate_daemon::wire::{Decoder, Flow, FromAgent, FromAllocator, Message, Reason, Start, VERSION, Versions};
use fairrate_daemon::{Agent, Desk, Identity, Urgency, Weight};

const SESSION: &str = include_str!("version2/session.txt");
/// The answer of an allocator of version 2 to the HELLO of a later version.
const REFUSAL: &[u8] = &[0, 2, 19, 3];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("it is hex")).collect()
}

fn decoded<M: Message>(bytes: &[u8]) -> Vec<M> {
    let mut all = Vec::new();
    Decoder::default().read(bytes, |message| all.push(message)).expect("it is well formed");
    all
}

/// Returns the kinds of the frames.
fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [high, low, kind, ..] = bytes {
        kinds.push(*kind);
        bytes = &bytes[2 + usize::from(u16::from_be_bytes([*high, *low]))..];
    }
    kinds
}

/// The frames of the session: `true` for those of the agent.
fn session() -> impl Iterator<Item = (bool, Vec<u8>)> {
    SESSION.lines().map(|line| {
        let (who, hex) = line.split_once(' ').expect("a side and a frame");
        (who == "agent", bytes(hex))
    })
}

/// Returns the rate that each flow has when the session ends.
fn last_rates() -> HashMap<Flow, f64> {
    let mut rates = HashMap::new();
    for (is_agent, frame) in session() {
        if is_agent {
            for message in decoded::<FromAgent>(&frame) {
                if let FromAgent::End(flow) = message {
                    rates.remove(&flow);
                }
            }
        } else {
            for message in decoded::<FromAllocator>(&frame) {
                if let FromAllocator::Rate { flow, rate } = message {
                    rates.insert(flow, rate.as_bps());
                }
            }
        }
    }
    rates
}

/// The messages of the recorded agent to a desk, which knows it by the recorded numbers.
#[test]
fn an_agent_of_version_2_gets_its_rates() {
    let instance = session().filter(|(is_agent, _)| !is_agent).find_map(|(_, frame)| match decoded(&frame).first() {
        Some(FromAllocator::Hello { instance, .. }) => Some(*instance),
        _ => None,
    });
    let (config, network) = Config::from_toml(INSECURE, Path::new("allocator.toml")).expect("it is right");
    let engine = network.engine(&config.engine);
    let capacities_bps = network.capacities_bps().to_vec();
    let mut desk = Desk::new(config.desk(instance.expect("it answers")), engine, network.into_paths());
    desk.watch_links(&capacities_bps);
    desk.tick(Duration::ZERO);
    let mut now = Duration::from_secs(2);
    desk.on_connected(now, 1, Identity::Peer([127, 0, 0, 1].into()));
    let (mut last_stamp, mut last_mark, mut version, mut rates) = (0, 0, None, HashMap::new());
    for (is_agent, frame) in session() {
        if is_agent {
            for message in decoded::<FromAgent>(&frame) {
                let message = match message {
                    FromAgent::Stamp(stamp) => FromAgent::Stamp(fairrate_daemon::wire::AgentStamp {
                        ack: if stamp.ack == 0 { 0 } else { last_stamp },
                        ..stamp
                    }),
                    FromAgent::Ack(_) => FromAgent::Ack(last_mark),
                    other => other,
                };
                if let FromAgent::End(flow) = message {
                    rates.remove(&flow);
                }
                desk.on_message(now, 1, message);
            }
        }
        for _ in 0..5 {
            now += Duration::from_millis(1);
            desk.tick(now);
            (0..20).for_each(|_| _ = desk.iterate());
            let (mut out, mut closed) = (Vec::new(), Vec::new());
            desk.take_closed(&mut closed);
            assert!(closed.iter().all(|(_, reason)| *reason == Reason::Shutdown), "{closed:?}");
            for urgency in [Urgency::Now, Urgency::Soon] {
                while desk.next_listed(urgency).is_some() {
                    desk.write(now, 1, &mut out, 1_000);
                }
            }
            assert!(kinds(&out).iter().all(|kind| (17..=22).contains(kind)), "version 2 has no other");
            for message in decoded::<FromAllocator>(&out) {
                match message {
                    FromAllocator::Hello { version: chosen, .. } => version = Some(chosen),
                    FromAllocator::Stamp(stamp) => last_stamp = stamp.sent,
                    FromAllocator::Mark(mark) => last_mark = mark,
                    FromAllocator::Rate { flow, rate } => _ = rates.insert(flow, rate.as_bps()),
                    FromAllocator::Seen(_) | FromAllocator::Bye(_) => {}
                }
            }
        }
    }
    assert_eq!(version, Some(2));
    let recorded = last_rates();
    assert_eq!(rates.len(), recorded.len());
    for (flow, rate_bps) in recorded {
        let now_bps = rates[&flow];
        assert!((now_bps / rate_bps - 1.0).abs() < 0.02, "flow {flow} had {rate_bps}, and has {now_bps}");
    }
}

/// The messages of the recorded allocator to an agent, which first offers more.
#[test]
fn an_allocator_of_version_2_is_understood_after_it_has_refused_a_later_one() {
    let mut now = Duration::from_secs(1);
    let mut agent = Agent::new(now, 7, 1);
    let mut out = Vec::new();
    agent.on_connected(now, 0);
    agent.write(now, 0, &mut out, 1_000);
    let offered = match decoded::<FromAgent>(&out)[..] {
        [FromAgent::Hello { version, .. }] => Versions::from_byte(version),
        _ => None,
    };
    assert_eq!(offered, Some(Versions { least: 2, most: VERSION }));
    let mut refused = Ok(());
    Decoder::default().read(REFUSAL, |message| refused = agent.on_message(now, 0, message)).expect("it is a frame");
    assert_eq!(refused, Err(Reason::Version));
    agent.on_cut(0);
    assert_eq!((agent.take_fallback(0), agent.take_fallback(0)), (Some(2), None), "once, and not in a loop");
    agent.on_connected(now, 0);

    // A flow that version 2 has no record for.
    let foreign =
        Start { flow: 99, src: "fd00::1".parse().unwrap(), dst: "fd00::2".parse().unwrap(), weight: Weight::ONE };
    agent.begin(foreign);
    let (mut last_stamp, mut hello) = (0, None);
    for (is_agent, frame) in session() {
        now += Duration::from_millis(1);
        for message in if is_agent { decoded::<FromAgent>(&frame) } else { Vec::new() } {
            match message {
                FromAgent::Start(start) => agent.begin(start),
                FromAgent::End(flow) => agent.end(flow),
                FromAgent::Bye(_) => break,
                _ => {}
            }
        }
        for message in if is_agent { Vec::new() } else { decoded::<FromAllocator>(&frame) } {
            let message = match message {
                FromAllocator::Stamp(stamp) => {
                    FromAllocator::Stamp(fairrate_daemon::wire::AllocatorStamp { echo: last_stamp, ..stamp })
                }
                other => other,
            };
            if !matches!(message, FromAllocator::Bye(_)) {
                agent.on_message(now, 0, message).expect("it is understood");
            }
        }
        out.clear();
        agent.write(now, 0, &mut out, 1_000);
        assert!(kinds(&out).iter().all(|kind| (1..=9).contains(kind)), "version 2 has no other");
        for message in decoded::<FromAgent>(&out) {
            match message {
                FromAgent::Hello { version, .. } => hello = Some((version, out.len())),
                FromAgent::Stamp(stamp) => last_stamp = stamp.sent,
                FromAgent::Start(start) => assert_ne!(start.flow, foreign.flow),
                _ => {}
            }
        }
    }
    assert_eq!(hello, Some((2, 12)), "as in the recording");
    assert_eq!(agent.version(0), Some(2));
    for (flow, rate_bps) in last_rates() {
        assert_eq!(agent.rate_bps(flow), Some(rate_bps), "flow {flow}");
    }
    assert_eq!(agent.rate_bps(foreign.flow), None);
}

/// `FAIRRATE_OLD_ALLOCATOR` is the path of a `fairrate-allocator` of version 2.
#[test]
fn programs_of_version_2_work_with_those_of_today() {
    let Some(old) = std::env::var_os("FAIRRATE_OLD_ALLOCATOR") else {
        return println!("not run: set FAIRRATE_OLD_ALLOCATOR to the program of an older version");
    };
    // The old allocator and a client of today.
    let port = 41_700 + std::process::id() % 1_000;
    let text = INSECURE.replace("127.0.0.1:0", &format!("127.0.0.1:{port}"));
    let config = file("old.toml", &text);
    let child = Command::new(&old).arg("run").arg(config).stderr(Stdio::null()).spawn().expect("it starts");
    let server = Killed(child);
    let today = client(&[([127, 0, 0, 1], port as u16).into()]);
    today.begin(1, host(1), host(2), 1.0);
    until("a rate of the old allocator", || is_near(today.rate_bps(1), ALONE_BPS));
    drop((today, server));
    // Agents of the old program and the allocator of today.
    let server = Program::start("of-today.toml", ANY_PORT);
    let mut load = Command::new(&old);
    load.args(["load", "--agents", "4", "--flows", "20", "--churn", "50", "--time", "2s", "--hosts", "8", "--server"]);
    let output = load.arg(server.address.to_string()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("without one at the end: 0"), "{said}{output:?}");
    println!("{said}");
}
