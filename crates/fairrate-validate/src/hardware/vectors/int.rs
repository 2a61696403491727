//! Packets that join and leave a port, and the telemetry with which they leave.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use fairrate_control::{IntCounter, IntFormat, IntHop, PortRate};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::rng::{Purpose, Stream};
use fairrate_sim::{PacketEvent, PacketHeader, PacketKind, PacketStep, PortId, Sink, Wants};
use fairrate_units::Time;

use super::{Counted, Source};
use crate::to_end::run_to_end;

/// The code of the port's rate in the vectors.
const RATE_CODE: u64 = 5;

/// Returns the 64 bits of a record, as HPCC's public code lays them out.
fn bits(hop: IntHop) -> u64 {
    let hop = hop.encoded(IntFormat::Packed);
    RATE_CODE << 61 | hop.ts.as_ns() << 37 | (hop.tx_bytes / 128) << 17 | (u64::from(hop.qlen) / 80)
}

/// The counters of a port.
#[derive(Default)]
struct Port {
    queue: u64,
    sent: u64,
    queued: u64,
}

impl Port {
    /// Lets a packet of `joining` bytes join and one of `leaving` bytes leave; 0: none. Returns the record of the
    /// latter.
    fn step(&mut self, now: Time, joining: u64, leaving: u64, counter: IntCounter) -> IntHop {
        self.queued += joining;
        self.queue = self.queue + joining - leaving;
        let tx_bytes = match counter {
            IntCounter::Transmitted => self.sent,
            IntCounter::Enqueued => self.queued,
        };
        self.sent += leaving;
        IntHop { ts: now, tx_bytes, qlen: self.queue as u32, rate: PortRate::default() }
    }
}

/// Writes the configuration.
fn configure(out: &mut dyn Write, counter: IntCounter) -> io::Result<()> {
    writeln!(out, "0 {RATE_CODE} {}", u8::from(counter == IntCounter::Enqueued))
}

/// Writes a clock.
fn clock(out: &mut dyn Write, now: Time, (joining, leaving): (u64, u64), hop: IntHop) -> io::Result<()> {
    writeln!(out, "1 {} {joining} {leaving} {}", now.as_ns() % (1 << 24), bits(hop))
}

/// Writes `n` random clocks, in which queues grow beyond what 17 bits of 80 bytes hold, and all counters wrap.
pub fn random(out: &mut dyn Write, n: u64) -> io::Result<Counted> {
    let mut draws = Stream::new(1, 2, Purpose::Test);
    for counter in [IntCounter::Transmitted, IntCounter::Enqueued] {
        configure(out, counter)?;
        let (mut port, mut now_ns, mut grows) = (Port::default(), 0, true);
        for _ in 0..n / 2 {
            now_ns += draws.below(200);
            if draws.below(5_000) == 0 {
                grows = !grows;
            }
            let joining = if draws.below(4) < if grows { 3 } else { 1 } { 1 + draws.below(9_216) } else { 0 };
            let leaves = draws.below(4) < if grows { 1 } else { 3 };
            let leaving = if leaves { (1 + draws.below(9_216)).min(port.queue + joining) } else { 0 };
            let now = Time::from_ns(now_ns);
            let hop = port.step(now, joining, leaving, counter);
            clock(out, now, (joining, leaving), hop)?;
        }
    }
    Ok(Counted { steps: n / 2 * 2, source: Source::Random })
}

/// Writes the packets of the busiest port of `examples/incast10.toml` under PowerTCP.
pub fn recorded(out: &mut dyn Write, root: &Path) -> Result<Counted, String> {
    let name = "examples/incast10.toml";
    let packed = ("transport.powertcp.int_format".to_owned(), "packed".to_owned());
    let overrides = Overrides { sets: vec![packed], cc: Some("powertcp".to_owned()), ..Overrides::default() };
    let scenario = Scenario::load(&root.join(name), &overrides).map_err(|e| e.to_string())?;
    let mut packets = Packets::default();
    run_to_end(scenario.into_sim_config(), &mut packets)?;
    let busiest = packets.ports.into_values().max_by_key(Vec::len).ok_or("no port has stamped a packet")?;
    let steps = replay(out, &busiest).map_err(|e| e.to_string())?;
    let steps = steps.ok_or_else(|| format!("{name}: a stamp of the simulation differs from the law"))?;
    Ok(Counted { steps, source: Source::Recorded(name) })
}

/// Writes the steps of a port. Returns their number; `None` if a stamp of the simulation differs from the law.
fn replay(out: &mut dyn Write, steps: &[(PacketEvent, Option<IntHop>)]) -> io::Result<Option<u64>> {
    configure(out, IntCounter::Transmitted)?;
    let (mut port, mut n_steps) = (Port::default(), 0);
    for (event, stamp) in steps {
        let bytes = u64::from(event.wire_bytes);
        let sizes = if event.step == PacketStep::Queued { (bytes, 0) } else { (0, bytes) };
        let hop = port.step(event.t, sizes.0, sizes.1, IntCounter::Transmitted);
        if stamp.is_some_and(|stamp| bits(stamp) != bits(hop)) {
            return Ok(None);
        }
        clock(out, event.t, sizes, hop)?;
        n_steps += 1;
    }
    Ok(Some(n_steps))
}

/// A sink that keeps the steps of packets at each port, with the stamp of data that leaves.
#[derive(Default)]
struct Packets {
    ports: BTreeMap<PortId, Vec<(PacketEvent, Option<IntHop>)>>,
}

impl Sink for Packets {
    fn wants(&self) -> Wants {
        Wants { packets: true, headers: true, ..Wants::default() }
    }
    fn packet(&mut self, event: &PacketEvent, header: Option<&PacketHeader<'_>>) {
        let stamps = event.step == PacketStep::Sent && event.kind == PacketKind::Data;
        let stamp = header.and_then(|header| header.telemetry.last().copied()).filter(|_| stamps);
        self.ports.entry(event.port).or_default().push((*event, stamp));
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Rate;

    use super::*;

    /// 161 bytes are two units of 80, 16,777,300 ns are 84 beyond 2^24, and 256 bytes two units of 128.
    #[test]
    fn a_record_by_hand() {
        let rate = PortRate::new(Rate::from_gbps(25));
        let hop = IntHop { ts: Time::from_ns(16_777_300), tx_bytes: 256, qlen: 161, rate };
        assert_eq!(bits(hop), 5 << 61 | 84 << 37 | 2 << 17 | 2);
    }
}
