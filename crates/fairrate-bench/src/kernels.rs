//! `bench --job kernels`: the parts that take most of a run's time, each alone.

use std::hint::black_box;
use std::time::Instant;

use fairrate_sim::SimConfig;
use fairrate_sim::engine::hold::{self, Hold};
use serde::Serialize;

use crate::acks::{self, Acks};
use crate::timing::RUN_US;
use crate::{BenchError, aligned, median_min_max, scenarios, time_us};

/// Default number of timings of each kernel.
pub const DEFAULT_RUNS: usize = 51;

/// The explanation of the table's columns.
pub const LEGEND: &str = "\
event list: one event out and one in, with so many pending. switch: one hop of a flow through 16 switches in a line, under
line-rate and with PowerTCP's telemetry. ack: one acknowledgment with its telemetry, and the timers that are due.
";

/// The result of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the kernel.
    pub kernel: String,
    /// Median of the times in nanoseconds.
    pub ns: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Row {
    fn new(kernel: String, [ns, min, max]: [f64; 3]) -> Self {
        Self { kernel, ns, min, max }
    }
}

/// Measures all kernels.
///
/// # Errors
/// If the scenario of the switches cannot be run.
pub fn rows(runs: usize) -> Result<Vec<Row>, BenchError> {
    let mut rows: Vec<Row> = hold::SIZES.into_iter().map(|n| event_list(n, runs)).collect();
    for cc in ["line-rate", "powertcp"] {
        rows.push(switch(cc, runs)?);
    }
    rows.extend(acks::names().map(|name| ack(name, runs)));
    Ok(rows)
}

fn event_list(n_pending: u32, runs: usize) -> Row {
    let mut hold = Hold::new(n_pending);
    // Most of the initial events have been replaced.
    (0..4 * n_pending).for_each(|_| _ = hold.step());
    let us = time_us(runs, || _ = black_box(hold.step()));
    Row::new(format!("event list, {n_pending}"), us.map(|us| us * 1e3))
}

/// A flow of 1 MB through 16 switches: of 17 hops in each direction 16 leave a switch.
const SWITCHES: &str = "stop = \"all-flows-done\"\n[topology]\nkind = \"parking-lot\"\nswitches = 16\n\
                        hosts_per_switch = 1\nhost_rate = \"100Gbps\"\nlink_rate = \"100Gbps\"\n[transport]\n\
                        mtu = \"1452B\"\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h15\"\nsenders = [\"h0\"]\n\
                        bytes = \"1MB\"\n";

fn switch(cc: &str, runs: usize) -> Result<Row, BenchError> {
    let config = scenarios::config("switch", SWITCHES, cc)?;
    // The first run fills caches.
    ns_per_hop(&config, cc)?;
    let mut times = (0..runs).map(|_| ns_per_hop(&config, cc)).collect::<Result<Vec<_>, _>>()?;
    Ok(Row::new(format!("switch, {cc}"), median_min_max(&mut times)))
}

fn ns_per_hop(config: &SimConfig, cc: &str) -> Result<f64, BenchError> {
    let run = scenarios::time(config, 1);
    let run = run.map_err(|cause| BenchError::Run { job: "kernels".to_owned(), cc: cc.to_owned(), cause })?;
    Ok(run.wall_s * 1e9 / run.totals.packet_hops as f64)
}

fn ack(name: &str, runs: usize) -> Row {
    let mut acks = Acks::new(name);
    let mut batch_ns = || {
        acks.prepare();
        let start = Instant::now();
        acks.feed();
        start.elapsed().as_secs_f64() * 1e9
    };
    // The first batches fill caches and pass a flow's start.
    let warm: f64 = (0..200).map(|_| batch_ns()).sum();
    let batches = (RUN_US * 1e3 / (warm / 200.0)).clamp(1.0, 1e5) as u32;
    let mut run = || (0..batches).map(|_| batch_ns()).sum::<f64>() / f64::from(batches) / acks::BATCH as f64;
    let mut times: Vec<f64> = (0..runs).map(|_| run()).collect();
    Row::new(format!("ack, {name}"), median_min_max(&mut times))
}

/// Returns the rows in columns.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let line = |row: &Row| {
        [row.kernel.clone(), format!("{:.1}", row.ns), format!("{:.1}", row.min), format!("{:.1}", row.max)]
    };
    aligned(&["kernel", "median ns", "min", "max"], rows.iter().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_a_row() {
        let rows = rows(1).expect("the scenario runs");
        let of = |kind: &str| rows.iter().filter(|row| row.kernel.starts_with(kind)).count();
        assert_eq!((of("event list, "), of("switch, ")), (3, 2));
        assert_eq!(of("ack, "), fairrate_control::ALGORITHMS.len() - 1);
        assert!(rows.iter().all(|row| 0.0 < row.ns && row.min <= row.ns && row.ns <= row.max));
    }
}
