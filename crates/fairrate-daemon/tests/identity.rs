//! One key that connects too often: others are accepted, and operators are informed of it.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use common::log::{collect, lines_with};
use common::{ALONE_BPS, Running, all_words, client_with, connect_from, files, host, is_near, keys_in, secure, until};
use fairrate_daemon::keys::{self, Request};
use fairrate_daemon::wire::{self, FromAgent, FromAllocator, Reason, Start, VERSION};
use fairrate_daemon::{Client, KeyFiles, Weight};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Returns the client's end of TLS with these keys.
fn tls(files: &KeyFiles) -> ClientConnection {
    connection(&tls_config(files))
}

fn connection(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::IpAddress(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST).into());
    ClientConnection::new(Arc::clone(config), name).expect("a name")
}

fn tls_config(files: &KeyFiles) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.ca).expect("it is there")).expect("it is one");
    let certificate = CertificateDer::from_pem_file(&files.certificate).expect("it is there");
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("it is there");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("there are some").with_root_certificates(roots);
    Arc::new(builder.with_client_auth_cert(vec![certificate], key).expect("they fit"))
}

fn hello_and_start(session: u64) -> Vec<u8> {
    let start = Start { flow: 1, src: host(1), dst: host(4), weight: Weight::ONE };
    let mut bytes = Vec::new();
    wire::encode([FromAgent::Hello { version: VERSION, session }, FromAgent::Start(start)], &mut bytes);
    bytes
}

#[test]
fn a_key_that_connects_without_end_keeps_nobody_out() {
    collect();
    let dir = keys_in("one-key");
    let server = Running::start(&(secure(&dir) + "[limits]\nagents = 6\n"), 1);
    let greedy: Vec<Client> = (0..12).map(|_| client_with(files(&dir, host(1)), &server)).collect();
    for client in &greedy {
        client.begin(1, host(1), host(4), 1.0);
    }
    let refused = || {
        server.metric("fairrate_connections_closed_total{why=\"TooManySessions\"}")
            + server.metric("fairrate_turned_away_total{why=\"too-many-of-one-agent\"}")
    };
    until("many are refused", || 20.0 <= refused());
    assert_eq!(server.metric("fairrate_agents"), 4.0, "they are as many as they may be");
    let honest = client_with(files(&dir, host(2)), &server);
    honest.begin(1, host(2), host(3), 1.0);
    until("another host gets in", || is_near(honest.rate_bps(1), ALONE_BPS));
    until("it is an agent too", || server.metric("fairrate_agents") == 5.0);
    let of_it = "(certificate of 10.0.0.1)";
    until("it is logged whose they were", || {
        0 < lines_with(&["WARN", "127.0.0.1:", of_it, "too many agents or connections"])
    });
    drop((greedy, honest));
    server.stop();
}

#[test]
fn an_address_that_begins_handshakes_without_end_keeps_no_other_out() {
    let dir = keys_in("handshakes");
    let server = Running::start(&(secure(&dir) + "[limits]\nconnections = 40\n"), 1);
    let mut silent: Vec<TcpStream> = (0..100).map(|_| connect_from(7, server.address)).collect();
    let turned_away = |why: &str| server.metric(&format!("fairrate_turned_away_total{{why=\"{why}\"}}"));
    until("most are closed", || 84.0 <= turned_away("too-many-handshakes"));
    let honest = client_with(files(&dir, host(2)), &server);
    honest.begin(1, host(2), host(3), 1.0);
    until("another host gets in", || {
        // The silent connections that were accepted end with the lease; new ones take their places.
        silent.drain(..10);
        silent.extend((0..10).map(|_| connect_from(7, server.address)));
        is_near(honest.rate_bps(1), ALONE_BPS)
    });
    assert_eq!(turned_away("too-many-connections"), 0.0);
    server.stop();
}

#[test]
fn strangers_are_logged_by_address_and_certificate() {
    collect();
    let (dir, other) = (keys_in("logged"), keys_in("logged-other"));
    let server = Running::start(&secure(&dir), 1);
    let stranger = KeyFiles { ca: dir.join("ca.pem"), ..files(&other, host(3)) };
    let attempt = |files: &KeyFiles| {
        let stream = connect_from(8, server.address);
        let _ = StreamOwned::new(tls(files), stream).write_all(&hello_and_start(1));
    };
    attempt(&stranger);
    let turned_away = ["WARN", "connection turned away", "peer=127.2.0.8:", "why=\"handshake\""];
    let with = |parts: &[&'static str]| lines_with(&[&turned_away[..], parts].concat());
    until("a wrong authority is logged", || 0 < with(&["(certificate of 10.0.0.3)", "invalid peer certificate"]));
    let mut plain = connect_from(8, server.address);
    plain.write_all(&hello_and_start(1)).expect("there is room");
    until("plain TCP is logged", || 0 < with(&["InvalidContentType"]));
    let _silent = connect_from(9, server.address);
    until("silence is logged", || 0 < lines_with(&["WARN", "peer=127.2.0.9:", "why=\"slow-handshake\""]));
    // A flow of another host.
    let hostile = client_with(files(&dir, host(2)), &server);
    hostile.begin(1, host(3), host(4), 1.0);
    let refused = ["WARN", "flows refused", "(certificate of 10.0.0.2)", "why=\"unauthorised\"", "last.src=10.0.0.3"];
    until("a foreign source is logged", || 0 < lines_with(&refused));
    // A connection that is closed at once.
    let mut short = StreamOwned::new(tls(&files(&dir, host(3))), connect_from(10, server.address));
    short.write_all(&hello_and_start(9)).expect("it is let in");
    short.flush().expect("there is room");
    drop(short);
    let refused = ["WARN", "flows refused", "peer=127.2.0.10:", "(certificate of 10.0.0.3)", "last.src=10.0.0.1"];
    until("who is gone is logged too", || 0 < lines_with(&refused));
    // A flood leads to few lines.
    for _ in 0..100 {
        attempt(&stranger);
    }
    assert!(with(&["(certificate of 10.0.0.3)"]) < 20, "{}", with(&["(certificate of 10.0.0.3)"]));
    server.stop();
}

#[test]
fn a_connection_ends_with_its_certificate() {
    // On a busy machine a second may pass before the connection is there: then the certificate gets a longer lifetime.
    for seconds in [2, 10, 60] {
        let dir = keys_in("short");
        let server = Running::start(&secure(&dir), 1);
        let short = Request { lifetime: Duration::from_secs(seconds), renew: true, ..Request::new(&[], &[host(1)]) };
        let short = Request { allocators: vec![Ipv4Addr::LOCALHOST.into()], ..short };
        let own = std::fs::read(dir.join("allocator.pem")).expect("it is there");
        keys::make(&dir, &short).expect("the directory is ours");
        std::fs::write(dir.join("allocator.pem"), own).expect("it is ours");
        let client = client_with(files(&dir, host(1)), &server);
        client.begin(1, host(1), host(2), 1.0);
        let expired = || server.metric("fairrate_connections_closed_total{why=\"Expired\"}");
        let mut was_there = false;
        until("the certificate's time is over", || {
            was_there |= client.rate_bps(1).is_some();
            expired() == 1.0 || 1.0 <= server.metric("fairrate_turned_away_total{why=\"handshake\"}")
        });
        if expired() == 1.0 {
            assert!(was_there);
            until("it does not come back", || {
                client.rate_bps(1).is_none() && 1.0 <= server.metric("fairrate_turned_away_total{why=\"handshake\"}")
            });
            return server.stop();
        }
        server.stop();
    }
    panic!("a minute was too short for a connection");
}

#[test]
fn a_handshake_with_old_keys_does_not_outlive_them() {
    let dir = keys_in("old-handshake");
    let server = Running::start(&secure(&dir), 1);
    let (mut old, mut stream) = (tls(&files(&dir, host(1))), connect_from(1, server.address));
    // The server has answered, so it uses the old keys; the client's certificate is still missing.
    old.write_tls(&mut stream).expect("there is room");
    old.read_tls(&mut stream).expect("it answers");
    old.process_new_packets().expect("its certificate is right");
    for name in ["ca.pem", "ca.key"] {
        std::fs::remove_file(dir.join(name)).expect("it is there");
    }
    let renewal = Request { renew: true, ..Request::new(&[Ipv4Addr::LOCALHOST.into()], &[host(1)]) };
    keys::make(&dir, &renewal).expect("the directory is ours");
    server.rekey().expect("the keys are right");
    let mut stream = StreamOwned::new(old, stream);
    let _ = stream.write_all(&hello_and_start(1));
    assert_eq!(all_words(&mut stream), [FromAllocator::Bye(Reason::Rekeyed)]);
    assert_eq!(server.metric("fairrate_flow_starts_total"), 0.0);
    server.stop();
}

#[test]
fn a_certificate_is_looked_at_for_every_connection() {
    let dir = keys_in("resumption");
    let server = Running::start(&secure(&dir), 1);
    let config = tls_config(&files(&dir, host(1)));
    for session in 0..3 {
        let mut stream = StreamOwned::new(connection(&config), connect_from(1, server.address));
        stream.write_all(&hello_and_start(session)).expect("it is let in");
        // Its answer follows the message that would let the client resume this session.
        stream.read_exact(&mut [0; 10]).expect("it answers");
        assert_eq!(stream.conn.handshake_kind(), Some(rustls::HandshakeKind::Full));
    }
    server.stop();
}
