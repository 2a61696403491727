//! The log lines of a client about allocators that it cannot reach, at the default level.

mod common;

use std::io::Write;

use common::log::{collect, lines_with};
use common::{INSECURE, Running, client, client_with, files, host, keys_in, secure, until};
use fairrate_daemon::logging::Throttle;
use fairrate_daemon::wire::{self, FromAllocator};
use fairrate_daemon::{Client, ClientOptions, Security};

#[test]
fn an_allocator_that_is_not_there_is_logged_now_and_then() {
    collect();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback").local_addr().expect("an address");
    let options = ClientOptions { retry: std::time::Duration::from_millis(2), ..ClientOptions::default() };
    let client = Client::connect(&[free], Security::Insecure, options).expect("there are threads");
    let address = format!("address={free}");
    let of_it = ["WARN", "no connection to the allocator", &address, "Connection refused"];
    until("it is logged", || 5 <= lines_with(&of_it));
    assert_eq!(client.n_connected(), 0);
    let server = Running::start(&INSECURE.replace("127.0.0.1:0", &free.to_string()), 1);
    until("that it is back is logged too", || 1 == lines_with(&["INFO", "connected to the allocator", &address]));
    assert_eq!(client.n_connected(), 1);
    server.stop();
    // Hundreds of attempts have failed meanwhile on a busy machine; a line in ten seconds is logged about them.
    assert!(lines_with(&of_it) < Throttle::BURST as usize + 30, "{}", lines_with(&of_it));
}

#[test]
fn a_certificate_of_somebody_else_is_logged() {
    collect();
    let (dir, other) = (keys_in("client-log"), keys_in("client-log-other"));
    let server = Running::start(&secure(&dir), 1);
    let _client = client_with(files(&other, host(1)), &server);
    let address = format!("address={}", server.address);
    until("it is logged", || 0 < lines_with(&["WARN", &address, "invalid peer certificate"]));
    server.stop();
}

#[test]
fn a_weight_beyond_the_ends_is_logged() {
    collect();
    let server = Running::start(INSECURE, 1);
    let client = client(&[server.address]);
    client.begin(1, host(1), host(3), 100_000.0);
    assert_eq!(lines_with(&["WARN", "weight=100000", "in_force=255.99609375"]), 1);
    client.begin(2, host(2), host(3), f64::NAN);
    assert_eq!(lines_with(&["WARN", "weight=NaN", "in_force=0.00390625"]), 1);
    until("both have a rate", || client.rate_bps(1).is_some() && client.rate_bps(2).is_some());
    server.stop();
}

#[test]
fn another_version_is_logged() {
    collect();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut hello = Vec::new();
            let lease = std::time::Duration::from_secs(1);
            wire::encode([FromAllocator::Hello { version: 99, instance: 1, lease }], &mut hello);
            let _ = stream.write_all(&hello);
            let _ = std::io::Read::read(&mut stream, &mut [0; 100]);
        }
    });
    let _client = client(&[address]);
    let address = format!("address={address}");
    until("it is logged", || 0 < lines_with(&["WARN", &address, "the protocol's version is another one"]));
}
