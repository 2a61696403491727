//! `bench --job perm128` and others: whole scenarios, from the text to the last event. Full-bisection fat-trees with links of
//! 100 Gb/s and 1 us, packets of 1,500 bytes, PFC, shared buffers and Dynamic Thresholds as by default; the shapes and sizes
//! of htsim's usual connection matrices. `ws60` is PowerTCP's Figure 6b.

use std::path::Path;
use std::time::Instant;

use fairrate_scenario::{Overrides, Scenario, ScenarioError};
use fairrate_sim::{FlowOutcome, PfcEvent, PortSample, RateSample, SimConfig, Simulation, Sink};
use serde::Serialize;

use super::{aligned, median_min_max};
use crate::failure::Failure;

/// Algorithms that are timed unless others are asked for.
pub(super) const DEFAULT_CC: [&str; 4] = ["powertcp", "hpcc", "dctcp", "swift"];

/// How often each is timed unless said otherwise.
pub(super) const DEFAULT_RUNS: usize = 5;

pub(super) const LEGEND: &str = "\
A hop is a packet of any kind put onto a link. Times are of the run alone, without reading the scenario and building the
network. RSS is the largest of all runs of the row, with all before in the process that was not given back.
";

/// A job's scenario.
pub(super) fn text(job: &str) -> Option<String> {
    Some(match job {
        "perm128" => permutation(8, "10MB"),
        "perm432" => permutation(12, "10MB"),
        "perm1024" => permutation(16, "2MB"),
        "incast32" => incast(8, 32, "10MB"),
        "incast128" => incast(12, 128, "4MB"),
        "ws60" => "stop = \"all-flows-done\"\n[topology]\nkind = \"fat-tree\"\n[[traffic]]\nkind = \"poisson\"\n\
                   sizes = \"websearch\"\nload = 0.6\nstop = \"10ms\"\n"
            .to_owned(),
        _ => return None,
    })
}

fn fat_tree(k: u32, traffic: &str) -> String {
    format!(
        "stop = \"all-flows-done\"\n[topology]\nkind = \"fat-tree-k\"\nk = {k}\n[transport]\nmtu = \"1452B\"\n\
         [[traffic]]\n{traffic}\n"
    )
}

/// Every host sends to another one.
fn permutation(k: u32, bytes: &str) -> String {
    fat_tree(k, &format!("kind = \"permutation\"\nbytes = \"{bytes}\""))
}

/// Hosts that are spread evenly over the others send to the first one.
fn incast(k: u32, senders: u32, bytes: &str) -> String {
    let others = k * k * k / 4 - 1;
    let senders: Vec<String> = (0..senders).map(|i| (1 + i * others / senders).to_string()).collect();
    fat_tree(k, &format!("kind = \"incast\"\nreceiver = 0\nsenders = [{}]\nbytes = \"{bytes}\"", senders.join(", ")))
}

/// A scenario under an algorithm.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    job: String,
    /// The algorithm; `/tcp` behind it: over TCP.
    cc: String,
    threads: u32,
    packet_hops: u64,
    events: u64,
    wall_s_median: f64,
    ns_per_hop_median: f64,
    ns_per_hop_min: f64,
    ns_per_hop_max: f64,
    /// Largest resident memory in megabytes, where the system tells.
    rss_mb: Option<f64>,
}

/// Times a job under all of `ccs`.
///
/// # Errors
/// What the scenario's reader or the simulation says.
pub(super) fn rows(job: &str, text: &str, ccs: &[String], runs: usize) -> Result<Vec<Row>, Failure> {
    // All are read before any is run.
    let configs = ccs.iter().map(|cc| Ok((cc, config(job, text, cc)?))).collect::<Result<Vec<_>, ScenarioError>>()?;
    configs.into_iter().map(|(cc, config)| row(job, cc, &config, runs)).collect()
}

fn row(job: &str, cc: &str, config: &SimConfig, runs: usize) -> Result<Row, Failure> {
    forget_peak();
    let (mut times, mut totals) = (Vec::with_capacity(runs), None);
    for _ in 0..runs {
        let mut simulation = Simulation::new(config.clone());
        let start = Instant::now();
        let failed = |cause| Failure::Bench { job: job.to_owned(), cc: cc.to_owned(), cause };
        simulation.run(&mut Nobody).map_err(failed)?;
        times.push(start.elapsed().as_secs_f64());
        totals = Some(simulation.totals());
    }
    let totals = totals.expect("at least one run");
    let [median, min, max] = median_min_max(&mut times);
    let ns_per_hop = |seconds: f64| seconds * 1e9 / totals.packet_hops as f64;
    Ok(Row {
        job: job.to_owned(),
        cc: cc.to_owned(),
        threads: 1,
        packet_hops: totals.packet_hops,
        events: totals.events,
        wall_s_median: median,
        ns_per_hop_median: ns_per_hop(median),
        ns_per_hop_min: ns_per_hop(min),
        ns_per_hop_max: ns_per_hop(max),
        rss_mb: peak_mb(),
    })
}

fn config(job: &str, text: &str, cc: &str) -> Result<SimConfig, ScenarioError> {
    let (cc, kind) = cc.strip_suffix("/tcp").map_or((cc, "rdma"), |cc| (cc, "tcp"));
    let sets = vec![("transport.kind".to_owned(), kind.to_owned())];
    let overrides = Overrides { sets, cc: Some(cc.to_owned()), ..Overrides::default() };
    let scenario = Scenario::from_toml(text, &format!("{job}.toml"), Path::new("."), &overrides)?;
    Ok(scenario.into_sim_config())
}

/// The next peak is that from here on. Systems that cannot do this tell the peak of the whole process.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024e-6)
}

/// Listens to nothing.
struct Nobody;

impl Sink for Nobody {
    fn flow(&mut self, _: &FlowOutcome) {}
    fn port(&mut self, _: &PortSample) {}
    fn rate(&mut self, _: &RateSample) {}
    fn pfc(&mut self, _: &PfcEvent) {}
}

/// The rows in columns.
pub(super) fn table(rows: &[Row]) -> String {
    let titles = ["job", "cc", "hops M", "events/hop", "wall s", "ns/hop", "min", "max", "RSS MB"];
    let line = |row: &Row| {
        [
            row.job.clone(),
            row.cc.clone(),
            format!("{:.2}", row.packet_hops as f64 * 1e-6),
            format!("{:.2}", row.events as f64 / row.packet_hops as f64),
            format!("{:.2}", row.wall_s_median),
            format!("{:.1}", row.ns_per_hop_median),
            format!("{:.1}", row.ns_per_hop_min),
            format!("{:.1}", row.ns_per_hop_max),
            row.rss_mb.map_or_else(|| "-".to_owned(), |mb| format!("{mb:.0}")),
        ]
    };
    aligned(&titles, rows.iter().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(job: &str, cc: &str) -> Result<SimConfig, ScenarioError> {
        config(job, &text(job).expect("a job"), cc)
    }

    #[test]
    fn jobs_are_what_they_are_called() {
        for (job, hosts, flows) in [
            ("perm128", 128, 128),
            ("perm432", 432, 432),
            ("perm1024", 1_024, 1_024),
            ("incast32", 128, 32),
            ("incast128", 432, 128),
        ] {
            let config = read(job, "powertcp").expect("it reads");
            assert_eq!((config.topology.hosts().count(), config.flows.len()), (hosts, flows), "{job}");
        }
        assert!(read("ws60", "dctcp/tcp").is_ok() && read("ws60", "flowtune/tcp").is_ok());
        assert!(read("ws60", "flowtune").is_err());
        // As in htsim's matrix.
        let senders: Vec<u32> = read("incast32", "hpcc").expect("it reads").flows.iter().map(|f| f.src.0).collect();
        assert_eq!(senders[..5], [1, 4, 8, 12, 16]);
    }
}
