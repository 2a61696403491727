//! Clients of the metrics port: the port has limits of its own, and agents keep their descriptors.

use std::io::Write;
use std::net::TcpStream;

use crate::common::program::{ANY_PORT, Program, all_of};
use crate::common::{ALONE_BPS, INSECURE, client, connect_from, host, is_near, until};

/// Largest number of descriptors that the port may use: its connections and a margin.
const BUDGET: usize = 32;

fn half_open(server: &Program) -> TcpStream {
    let mut stream = TcpStream::connect(server.metrics).expect("it listens");
    let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-a: ");
    stream
}

#[test]
fn half_open_requests_take_no_descriptors_of_agents() {
    let server = Program::start("half-open-requests.toml", ANY_PORT);
    let before = server.n_descriptors();
    let held: Vec<TcpStream> = (0..200).map(|_| half_open(&server)).collect();
    assert!(server.get("/metrics").contains("\nfairrate_flows 0\n"), "it still answers");
    let more = server.n_descriptors().saturating_sub(before);
    assert!(more <= BUDGET, "{more} descriptors for {} connections", held.len());
    let client = client(&[server.address]);
    client.begin(1, host(1), host(2), 1.0);
    until("an agent gets in", || is_near(client.rate_bps(1), ALONE_BPS));
}

#[test]
fn agents_take_no_descriptors_of_the_port() {
    let text = INSECURE.replace("listen = \"127.0.0.1:0\"", ANY_PORT).replace("300ms", "30s");
    let server = Program::start_limited("few-descriptors.toml", &text, 100);
    // They send nothing, and may wait for a lease.
    let _silent: Vec<TcpStream> = (0..200).map(|i| connect_from(i, server.address)).collect();
    let page = || server.get("/metrics");
    until("the last ones are turned away", || {
        page().contains("fairrate_turned_away_total{why=\"too-many-connections\"} 1")
    });
    assert!(page().contains("fairrate_turned_away_total{why=\"accept\"} 0\n"), "there are descriptors left");
}

#[test]
fn half_a_request_is_not_waited_for_long() {
    let server = Program::start("half-a-request.toml", ANY_PORT);
    assert_eq!(all_of(&mut half_open(&server)), "", "it is closed without an answer");
    let mut silent = TcpStream::connect(server.metrics).expect("it listens");
    assert_eq!(all_of(&mut silent), "");
}

#[test]
fn what_is_no_request_for_a_page_is_refused() {
    let server = Program::start("no-requests.toml", ANY_PORT);
    let endless = format!("GET /metrics HTTP/1.1\r\nX-a: {}\r\n\r\n", "a".repeat(100_000));
    for (request, status) in [
        ("GET /nothing HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
        ("\x16\x03\x01\x02\r\n\r\n", "400"),
        (endless.as_str(), "431"),
    ] {
        let mut stream = TcpStream::connect(server.metrics).expect("it listens");
        let _ = stream.write_all(request.as_bytes());
        let answer = all_of(&mut stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
    }
    let page = server.get("/metrics?a=b");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("Content-Type: text/plain; version=0.0.4\r\n"));
    assert!(server.get("/healthz").ends_with("\r\n\r\nok\n"));
}
