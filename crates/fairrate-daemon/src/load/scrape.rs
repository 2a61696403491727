//! The reader of an allocator's metrics.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Some of the allocator's metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub cpu_s: f64,
    pub resident_bytes: f64,
    pub iterations: f64,
    pub rates: f64,
    pub received_bytes: f64,
    pub sent_bytes: f64,
}

/// Requests the metrics page and returns its numbers.
pub(super) async fn numbers(address: SocketAddr) -> io::Result<Numbers> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let number = |name: &str| {
        let mut values =
            text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
        values.next_back().ok_or_else(|| io::Error::other(format!("there is no `{name}`")))
    };
    Ok(Numbers {
        cpu_s: number("fairrate_cpu_seconds")?,
        resident_bytes: number("process_resident_memory_bytes")?,
        iterations: number("fairrate_iterations_total")?,
        rates: number("fairrate_rates_total")?,
        received_bytes: number("fairrate_received_bytes_total")?,
        sent_bytes: number("fairrate_sent_bytes_total")?,
    })
}
