//! The heat maps of a study: buffers against numbers of flows, one map for each arrangement of round-trip times and
//! classes.

use fairrate_report::format;
use fairrate_report::heat_map::{Arrangement, Layout};

use super::cases::{self, arrangements};
use super::study::{Plan, Side, bdp_bytes};

/// Returns the layout of the maps of the cases in which long flows of both are there all the time. `buffers` are values
/// of `switch.buffer`.
pub(super) fn layout(plan: &Plan, sides: [&Side; 2], buffers: &[String]) -> Layout {
    let bdp = bdp_bytes(plan);
    let head = |buffer: &String| {
        let bytes: f64 = buffer.trim_end_matches('B').parse().unwrap_or(f64::NAN);
        (buffer.clone(), format!("{} BDP", (100.0 * bytes / bdp).round() / 100.0))
    };
    let mut columns: Vec<(String, String)> = buffers.iter().map(head).collect();
    columns.dedup();
    let map = |arrangement: &cases::Arrangement| {
        let row = |flows: &(u16, u16)| (format!("{}:{}", flows.0, flows.1), arrangement.label(*flows));
        Arrangement { title: arrangement.title(sides), rows: plan.flows.iter().map(row).collect() }
    };
    Layout {
        blocks: sides.map(|side| side.block.clone()),
        key: "buffer".to_owned(),
        across: format!("buffer (BDP: {}, what the path holds)", format::bytes(bdp)),
        columns,
        maps: arrangements(plan, sides).iter().map(map).collect(),
    }
}
