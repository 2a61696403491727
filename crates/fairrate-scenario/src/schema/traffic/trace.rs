//! The keys of `kind = "trace"`.

use fairrate_sim::workload::{MAX_CHANNELS, TraceDefaults, parse_trace};
use fairrate_units::Time;

use super::super::files::{Files, file_problem};
use super::Kind;
use super::collective::count;
use super::ranks::read_ranks;
use crate::reader::Section;

/// Most chunks of a message.
const MOST: u32 = 1_000_000;

pub(super) fn read_trace(s: &mut Section<'_>, files: &Files<'_>) -> Option<Kind> {
    let file = files.read(s, "operations", "csv");
    let defaults = TraceDefaults { channels: count(s, "channels", MAX_CHANNELS), chunks: count(s, "chunks", MOST) };
    let start = s.get("start", Time::ZERO).value;
    let ranks = read_ranks(s, files);
    let fallback = "correct this line, or leave it out";
    let file = file?;
    let job = parse_trace(&file.text, defaults)
        .map_err(|e| file_problem(s.report, "scenario::operations_file", &file, &e, fallback))
        .ok()?;
    Some(Kind::Trace { job: Box::new(job), start, ranks })
}
