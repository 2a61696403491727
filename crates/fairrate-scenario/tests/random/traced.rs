//! A traced run is the run, whatever is written of it.

use std::io;

use fairrate_sim::{SimConfig, Switching};
use fairrate_trace::{Filter, Format, Network, Output, Pcapng, Perfetto, Table, Tracer};

use super::check::{Run, run_into};

/// Checks that a run is the same when it is traced, and that the trace has each packet-hop. The number of flows chooses
/// the format, and if it is odd the trace ends in the middle of the run.
pub fn check(config: &SimConfig, first: &Run) -> Result<(), String> {
    let n = config.flows.len();
    let (network, limit) = (Network::new(config), if n.is_multiple_of(2) { u64::MAX } else { 20_000 });
    let out = Output::new(Box::new(io::sink()), limit);
    let begun: io::Result<Box<dyn Format>> = match n / 2 % 3 {
        0 => Pcapng::new(network, out, "").map(|format| Box::new(format) as _),
        1 => Ok(Box::new(Perfetto::new(network, out))),
        _ => Table::new(network, out, "").map(|format| Box::new(format) as _),
    };
    let mut tracer = Tracer::new(begun.map_err(|error| error.to_string())?, Filter::ALL);
    // A sink that wants no more steps says so between two pieces of a run.
    let piece = if limit == u64::MAX { u64::MAX } else { 1_009 };
    let (totals, ..) = run_into(&mut tracer, config, 1, piece, Switching::Events);
    if totals != first.totals {
        return Err("the run is another one when it is traced".to_owned());
    }
    let (counts, bytes, _) = tracer.finish().map_err(|error| error.to_string())?;
    if limit < bytes {
        return Err(format!("the trace has {bytes} bytes"));
    }
    // Frames that pause or resume are hops too, and some of them are not obeyed.
    if limit == u64::MAX && totals.packet_hops < counts.sent {
        return Err(format!("{} packets of {} hops were traced", counts.sent, totals.packet_hops));
    }
    Ok(())
}
