//! The permissions of peers by their certificates.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::Path;

use crate::common::{ALONE_BPS, Running, client_with, files, host, is_near, keys_in, secure, until};
use fairrate_daemon::keys::{self, Request};
use fairrate_daemon::{Client, ClientOptions, KeyFiles, Security};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn start(dir: &Path) -> Running {
    Running::start(&secure(dir), 1)
}

#[test]
fn an_agent_speaks_for_its_own_addresses_alone() {
    let dir = keys_in("own-addresses");
    let server = start(&dir);
    let honest = client_with(files(&dir, host(2)), &server);
    honest.begin(1, host(2), host(4), 1.0);
    until("the honest one has the link", || is_near(honest.rate_bps(1), ALONE_BPS));
    let before = honest.rate_bps(1);
    honest.grants(std::time::Duration::ZERO);

    // It claims a thousand flows of the other's host, and has one of its own.
    let hostile = client_with(files(&dir, host(1)), &server);
    (0..1_000).for_each(|flow| hostile.begin(flow, host(2), host(4), 255.0));
    hostile.begin(1_000, host(1), host(3), 1.0);
    until("its own flow has a rate", || is_near(hostile.rate_bps(1_000), ALONE_BPS));
    until("all claims are counted", || server.metric("fairrate_refused_total{why=\"unauthorised\"}") == 1_000.0);
    assert!((0..1_000).all(|flow| hostile.rate_bps(flow).is_none()));
    assert_eq!(honest.rate_bps(1), before, "nobody else's rate has moved");
    assert_eq!(honest.grants(std::time::Duration::ZERO), [], "nor was it told again");
    assert_eq!(server.metric("fairrate_flows"), 2.0);
    server.stop();
}

#[test]
fn strangers_come_to_nothing() {
    let dir = keys_in("strangers");
    let server = start(&dir);
    // Plain TCP.
    let mut plain = TcpStream::connect(server.address).expect("it listens");
    plain.write_all(&[0, 10, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1]).expect("there is room");
    until("it is turned away", || server.metric("fairrate_turned_away_total{why=\"handshake\"}") == 1.0);
    // A certificate of another authority. The client does not trust the server either.
    let other = keys_in("other-authority");
    let stranger = client_with(KeyFiles { ca: dir.join("ca.pem"), ..files(&other, host(1)) }, &server);
    stranger.begin(1, host(1), host(2), 1.0);
    let mistrustful = client_with(files(&other, host(1)), &server);
    mistrustful.begin(1, host(1), host(2), 1.0);
    until("they are turned away", || 5.0 <= server.metric("fairrate_turned_away_total{why=\"handshake\"}"));
    assert_eq!((stranger.rate_bps(1), mistrustful.rate_bps(1)), (None, None));
    assert_eq!(server.metric("fairrate_agents"), 0.0);
    server.stop();
}

#[test]
fn keys_change_without_a_restart() {
    let dir = keys_in("rotation");
    let server = start(&dir);
    let client = client_with(files(&dir, host(1)), &server);
    client.begin(1, host(1), host(2), 1.0);
    until("the flow has a rate", || is_near(client.rate_bps(1), ALONE_BPS));
    let old = std::fs::read(dir.join("ca.pem")).expect("it is there");
    // The agent's key is stolen: a new authority signs new keys.
    for name in ["ca.pem", "ca.key"] {
        std::fs::remove_file(dir.join(name)).expect("it is there");
    }
    std::fs::rename(dir.join("10.0.0.3.pem"), dir.join("stolen.pem")).expect("it is there");
    std::fs::rename(dir.join("10.0.0.3.key"), dir.join("stolen.key")).expect("it is there");
    let renewal = Request { renew: true, ..Request::new(&[LOOPBACK], &[host(1)]) };
    keys::make(&dir, &renewal).expect("the directory can be written");
    assert_ne!(std::fs::read(dir.join("ca.pem")).expect("it is there"), old);
    server.rekey().expect("the keys are right");
    until("connections are made anew", || server.metric("fairrate_connections_closed_total{why=\"Rekeyed\"}") == 1.0);
    until("the agent is back", || server.metric("fairrate_connections") == 1.0);
    assert!(is_near(client.rate_bps(1), ALONE_BPS), "its rate has held meanwhile");

    let stolen = KeyFiles { ca: dir.join("ca.pem"), certificate: dir.join("stolen.pem"), key: dir.join("stolen.key") };
    let thief = client_with(stolen, &server);
    thief.begin(1, host(3), host(4), 1.0);
    until("the old key opens nothing", || 1.0 <= server.metric("fairrate_turned_away_total{why=\"handshake\"}"));
    assert_eq!(thief.rate_bps(1), None);
    server.stop();
}

#[test]
fn wrong_keys_leave_the_old_ones() {
    let dir = keys_in("wrong-rotation");
    let server = start(&dir);
    let client = client_with(files(&dir, host(1)), &server);
    client.begin(1, host(1), host(2), 1.0);
    until("the flow has a rate", || is_near(client.rate_bps(1), ALONE_BPS));
    std::fs::write(dir.join("allocator.key"), "no key").expect("it can be written");
    server.rekey().expect_err("there is no key");
    assert_eq!(server.metric("fairrate_keys_loaded_total{result=\"error\"}"), 1.0);
    let other = client_with(files(&dir, host(2)), &server);
    other.begin(1, host(2), host(3), 1.0);
    until("new connections are made with the old keys", || is_near(other.rate_bps(1), ALONE_BPS));
    assert_eq!(server.metric("fairrate_connections_closed_total{why=\"Rekeyed\"}"), 0.0);
    server.stop();
}

#[test]
fn keys_that_are_none_are_refused_at_once() {
    let dir = keys_in("wrong-files");
    let wrong = KeyFiles { key: dir.join("10.0.0.2.key"), ..files(&dir, host(1)) };
    let address = "127.0.0.1:4600".parse().expect("an address");
    let connect = |files| Client::connect(&[address], Security::Tls(files), ClientOptions::default());
    let error = connect(wrong).expect_err("the key is another's").to_string();
    assert!(error.contains("do not fit"), "{error}");
    let missing = KeyFiles { ca: dir.join("none.pem"), ..files(&dir, host(1)) };
    let error = connect(missing).expect_err("there is no such file").to_string();
    assert!(error.contains("none.pem"), "{error}");
}

#[test]
fn agents_of_ipv6_speak_for_their_own_addresses_alone() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return println!("not run: this machine has no IPv6");
    }
    let dir = crate::common::new_dir("own-addresses-v6");
    let address = |text: &str| text.parse::<IpAddr>().expect("it is one");
    let (own, other, to) = (address("fd00::1"), address("fd00::2"), address("fd00::3"));
    keys::make(&dir, &Request::new(&[address("::1")], &[own])).expect("the directory can be written");
    let text = secure(&dir).replace("127.0.0.1:0", "[::1]:0").replace("\"10.0.0.1+\"", "[\"fd00::1+\", \"10.0.0.1+\"]");
    let server = Running::start(&text, 1);
    let client = client_with(files(&dir, own), &server);
    client.begin(1, own, to, 1.0);
    client.begin(2, other, to, 1.0);
    client.begin(3, host(1), host(3), 1.0);
    until("its own flow has a rate", || is_near(client.rate_bps(1), ALONE_BPS));
    until("the others are counted", || server.metric("fairrate_refused_total{why=\"unauthorised\"}") == 2.0);
    assert_eq!((client.rate_bps(2), client.rate_bps(3)), (None, None));
    server.stop();
}
