//! Frames and readings of RoCC's flow table.

use std::io::{self, Write};
use std::path::Path;

use fairrate_control::PortPacketKind;
use fairrate_control::rocc::{CircularTable, Recipients, RoccConfig};
use fairrate_sim::rng::{Purpose, Stream};

use super::{Counted, Source};
use crate::hardware::recorded::{Call, record};

/// Entries of the table in the bench.
const ENTRIES: usize = 64;

/// Writes `n` random clocks. Flows are drawn from more than fit, fewer than fit, and a handful that come back to back.
pub fn random(out: &mut dyn Write, n: u64) -> io::Result<Counted> {
    let mut draws = Stream::new(1, 1, Purpose::Test);
    let cases = [(200, 5), (56, 5), (6, 1), (70, 7), (16, 3)];
    let each = n / cases.len() as u64;
    for (most_flows, rounds) in cases {
        writeln!(out, "0 {rounds}")?;
        let mut table = CircularTable::new(ENTRIES, rounds);
        // Readings come in rounds of all entries, and between them sometimes alone.
        let mut reading = 0_u64;
        for _ in 0..each {
            if reading == 0 && draws.below(250) == 0 {
                reading = ENTRIES as u64;
            }
            let gets = 0 < reading && draws.below(8) != 0 || draws.below(50) == 0;
            reading = reading.saturating_sub(u64::from(gets));
            let adds = draws.below(3) != 0;
            let flow = draws.below(most_flows) as u32;
            if adds {
                table.add(flow);
            }
            let told = if gets { table.get() } else { None };
            let (adds, gets) = (u8::from(adds), u8::from(gets));
            writeln!(out, "1 {adds} {flow} {gets} {} {}", u8::from(told.is_some()), told.unwrap_or(0))?;
        }
    }
    Ok(Counted { steps: each * cases.len() as u64, source: Source::Random })
}

/// Writes the frames and the periods of the busiest port of `examples/rocc-star.toml`, whose ports have this table.
pub fn recorded(out: &mut dyn Write, root: &Path) -> Result<Counted, String> {
    let name = "examples/rocc-star.toml";
    let config = RoccConfig { table: Recipients::Circular, table_size: ENTRIES as u32, ..RoccConfig::default() };
    let recording = record(&root.join(name), config)?;
    let steps = write_recorded(out, &recording.calls).map_err(|e| e.to_string())?;
    Ok(Counted { steps, source: Source::Recorded(name) })
}

fn write_recorded(out: &mut dyn Write, calls: &[Call]) -> io::Result<u64> {
    // 200 us of 40 us periods, as the defaults have it.
    writeln!(out, "0 5")?;
    let mut steps = 0;
    for call in calls {
        match call {
            Call::Enqueue { flow, kind: PortPacketKind::Data, .. } => writeln!(out, "1 1 {flow} 0 0 0")?,
            Call::Enqueue { .. } => continue,
            Call::Timer { notices, .. } => {
                write!(out, "2 {}", notices.len())?;
                for notice in notices {
                    write!(out, " {}", notice.flow)?;
                }
                writeln!(out)?;
            }
        }
        steps += 1;
    }
    Ok(steps)
}
