//! Sends UDP datagrams for ten seconds at the rate that the allocator gives:
//!
//! ```sh
//! cargo run -p fairrate-daemon --example paced-sender -- 127.0.0.1:4600 10.0.0.1 10.0.0.2 127.0.0.1:9
//! ```
//!
//! The arguments are the allocator, the addresses of sender and receiver in its topology, and the target of the
//! datagrams.

use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use fairrate_daemon::{Client, ClientOptions, Security};

/// Rate without an allocator, chosen to be low.
const ALONE_BPS: f64 = 1e6;
const DATAGRAM: [u8; 1400] = [0; 1400];
/// Bytes on the wire with headers of UDP, IPv4 and Ethernet, preamble and gap: rates are on the wire.
const ON_THE_WIRE: usize = DATAGRAM.len() + 66;
/// Largest number of datagrams between two looks at the rate, if the machine cannot keep up.
const BURST: usize = 64;
const FLOW: u32 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [allocator, src, dst, target] = arguments.as_slice() else {
        return Err("give the allocator, the source, the destination, and where datagrams go".into());
    };
    let client = Client::connect(&[allocator.parse()?], Security::Insecure, ClientOptions::default())?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    client.begin(FLOW, src.parse()?, dst.parse()?, 1.0);
    let (began, mut rate_bps, mut next) = (Instant::now(), ALONE_BPS, Instant::now());
    while began.elapsed() < Duration::from_secs(10) {
        // Waits for a new rate as long as the current one allows nothing to be sent.
        for grant in client.grants(next.saturating_duration_since(Instant::now())) {
            rate_bps = if 0.0 < grant.rate_bps { grant.rate_bps } else { ALONE_BPS };
            println!("{:8.3} s: {:.1} Mbit/s", began.elapsed().as_secs_f64(), rate_bps / 1e6);
        }
        // Datagrams missed in a pause are not sent in a burst.
        if next + Duration::from_millis(1) < Instant::now() {
            next = Instant::now();
        }
        for _ in 0..BURST {
            if Instant::now() < next {
                break;
            }
            // A missing receiver does not matter here.
            let _ = socket.send_to(&DATAGRAM, target);
            next += Duration::from_secs_f64(ON_THE_WIRE as f64 * 8.0 / rate_bps);
        }
    }
    client.end(FLOW);
    Ok(())
}
