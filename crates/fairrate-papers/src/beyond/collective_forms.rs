//! Closed forms of rings, from the sizes of a run's packets.

use crate::record::{Record, seconds};

/// Two links in a row of the same rate, with a delay each.
#[derive(Clone, Copy)]
struct Path {
    bps: f64,
    delay_s: f64,
}

/// The bytes of packets: payload of a full one, and what is around it.
struct Packets {
    payload: f64,
    extra: f64,
    ack: f64,
}

impl Packets {
    fn of(record: &Record) -> Self {
        let transport = &record.config.transport;
        let payload = transport.mtu.as_f64();
        Self { payload, extra: payload * (record.wire_factor() - 1.0), ack: transport.ack.as_f64() }
    }

    /// Returns the seconds of a message of `bytes` on the wire of a link.
    fn wire(&self, bytes: f64, bps: f64) -> f64 {
        8.0 * (bytes + (bytes / self.payload).ceil() * self.extra) / bps
    }

    /// Returns the seconds of a message over two idle links: its time on the wire, and once more a full packet, or all
    /// of it if that is less.
    fn message(&self, bytes: f64, path: Path) -> f64 {
        let again = 8.0 * (bytes.min(self.payload) + self.extra) / path.bps;
        self.wire(bytes, path.bps) + again + 2.0 * path.delay_s
    }

    /// Returns the seconds of `steps` messages one after the other, each but the first behind the acknowledgment of the
    /// one before.
    fn steps(&self, steps: f64, bytes: f64, path: Path) -> f64 {
        steps * self.message(bytes, path) + (steps - 1.0) * 8.0 * self.ack / path.bps
    }
}

/// Returns the path over the switch at the other end of `from`'s link, as its rate and delay say.
fn path(record: &Record, from: &str, to: &str) -> Path {
    let topology = &record.config.topology;
    let port = topology.node(from).zip(topology.node(to)).and_then(|(from, to)| topology.port(from, to));
    let link = topology.link(port.expect("the network has this link"));
    Path { bps: link.rate.as_bps_f64(), delay_s: seconds(link.delay) }
}

/// Returns the seconds of an all-reduce in a ring of all hosts of a star: 2(N - 1) messages of S/N.
pub fn ring(record: &Record) -> f64 {
    let spec = &record.config.collectives[0];
    let n = spec.ranks.len() as f64;
    Packets::of(record).steps(2.0 * (n - 1.0), spec.bytes.as_f64() / n, path(record, "h0", "sw0"))
}

/// Returns the seconds of an all-reduce over g ranks in each of n servers: 2(g - 1) messages of S/g inside, and
/// 2(n - 1) of S/(g n) across. Where the first NIC's link has `share` of its rate and is the slowest of its ring, it is
/// busy all the time.
pub fn two_levels(record: &Record, share: f64) -> f64 {
    let (spec, packets) = (&record.config.collectives[0], Packets::of(record));
    let servers = record.config.topology.servers.as_ref().expect("there are servers");
    let (g, n) = (servers.size() as f64, servers.n_servers() as f64);
    let (inside, across) = (spec.bytes.as_f64() / g, spec.bytes.as_f64() / (g * n));
    let (up, nic) = (path(record, "h0.up", "nvswitch0"), path(record, "h8", "tor0"));
    let slow = Path { bps: share * nic.bps, ..nic };
    let steps = 2.0 * (n - 1.0);
    let whole = packets.steps(steps, across, nic);
    let held = (steps - 1.0) * packets.wire(across, slow.bps) + packets.message(across, slow);
    packets.steps(2.0 * (g - 1.0), inside, up) + whole.max(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packets of 1,000 bytes and headers of 48, at 100 Gb/s and 1 us a link.
    #[test]
    fn a_message_takes_its_wire_and_a_packet_more() {
        let packets = Packets { payload: 1_000.0, extra: 48.0, ack: 60.0 };
        let path = Path { bps: 100e9, delay_s: 1e-6 };
        let of = |n: f64| n * 1_048.0 * 8.0 / 100e9;
        assert!((packets.message(2_000.0, path) - of(3.0) - 2e-6).abs() < 1e-15);
        assert!((packets.message(500.0, path) - 2.0 * 548.0 * 8.0 / 100e9 - 2e-6).abs() < 1e-15);
        let three = 3.0 * packets.message(2_000.0, path) + 2.0 * 60.0 * 8.0 / 100e9;
        assert!((packets.steps(3.0, 2_000.0, path) - three).abs() < 1e-15);
    }
}
