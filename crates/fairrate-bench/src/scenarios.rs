//! `bench --job perm128` and others: whole scenarios, from the text to the last event. Full-bisection fat-trees with
//! links of 100 Gb/s and 1 us, packets of 1,500 bytes, PFC, shared buffers and Dynamic Thresholds as by default; the
//! shapes and sizes of htsim's usual connection matrices. `ws60` is PowerTCP's Figure 6b; `ws1024` and `ft65536` have
//! its traffic on fat-trees like those of the others. `m64` is a layer of `examples/large/m64.toml` with half of its
//! tokens: 64 GPUs in eight servers, packets of 9,000 bytes, and flows that wait for each other.

use std::path::Path;

use fairrate_experiment::run_into;
use fairrate_results::RunState;
use fairrate_scenario::{Overrides, Scenario, ScenarioError};
use fairrate_sim::{RunTotals, SimConfig};
use serde::Serialize;

use crate::predict::{Measured, Prediction};
use crate::{BenchError, aligned, median_min_max};

/// Algorithms that are timed by default.
pub const DEFAULT_CC: [&str; 4] = ["powertcp", "hpcc", "dctcp", "swift"];

/// Algorithms that are also timed on [`EXTRA_JOBS`] if no job is named: those with controllers in switches, and those
/// that need TCP.
pub const EXTRA_CC: [&str; 5] = ["rocc", "perc", "dctcp/tcp", "ratemp/tcp", "flowtune/tcp"];
/// Jobs on which they are timed.
pub const EXTRA_JOBS: [&str; 2] = ["perm128", "ws60"];

/// Jobs that are run if none is named, and those that take minutes per run. Small networks go first, because memory
/// left behind by a large network would count as theirs.
pub const DEFAULT_JOBS: [&str; 9] =
    ["incast32", "perm128", "ws60", "m64", "incast128", "perm432", "perm1024", "ws1024", "perm8192"];
/// Jobs that take minutes a run.
pub const LONG_JOBS: [&str; 1] = ["ft65536"];

/// Default number of timings of each case.
pub const DEFAULT_RUNS: usize = 5;

/// A layer of a mixture of experts on 64 GPUs.
const M64: &str = r#"
[topology]
kind = "rail"
[switch]
buffer = "32MiB"
[transport]
mtu = "9000B"
[[traffic]]
kind = "training"
layers = 1
hidden = 4096
ffn = 16384
heads = 32
vocabulary = 8000
sequence = 2048
experts = 8
tp = 8
dp = 8
ep = 4
tp_channels = 8
forward = "2ns"
"#;

/// The explanation of the table's columns.
pub const LEGEND: &str = "\
A hop is a packet of any kind put onto a link. Wall is of the run alone; build is before it: making the network, routes and
flows of a scenario that has been read. RSS is the largest of all runs of the row, with what larger ones
before it left behind.
";

/// Returns the text of a job's scenario; `None` for a job without one.
fn text(job: &str) -> Option<String> {
    Some(match job {
        "perm128" => permutation(8, "10MB"),
        "perm432" => permutation(12, "10MB"),
        "perm1024" => permutation(16, "2MB"),
        "incast32" => incast(8, 32, "10MB"),
        "incast128" => incast(12, 128, "4MB"),
        "perm8192" => permutation(32, "100KB"),
        "ws60" => format!("stop = \"all-flows-done\"\n[topology]\nkind = \"fat-tree\"\n{}", web_search("10ms")),
        "ws1024" => format!("stop = \"all-flows-done\"\n{}", fat_tree(16, &web_search("300us"))),
        "m64" => format!("stop = \"all-flows-done\"\n{M64}"),
        "ft65536" => format!("duration = \"200us\"\n{}", fat_tree(64, &web_search("200us"))),
        _ => return None,
    })
}

/// Returns the text of a fat-tree of k^3 / 4 hosts with `traffic`.
fn fat_tree(k: u32, traffic: &str) -> String {
    format!("[topology]\nkind = \"fat-tree-k\"\nk = {k}\n[transport]\nmtu = \"1452B\"\n{traffic}")
}

/// Returns the text of arrivals at 0.6 of the capacity of the ToRs' uplinks, with sizes of web search, until `until`.
fn web_search(until: &str) -> String {
    format!("[[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.6\nstop = \"{until}\"\n")
}

/// Returns the text of a permutation: every host sends to another one.
fn permutation(k: u32, bytes: &str) -> String {
    let traffic = format!("[[traffic]]\nkind = \"permutation\"\nbytes = \"{bytes}\"\n");
    format!("stop = \"all-flows-done\"\n{}", fat_tree(k, &traffic))
}

/// Returns the text of an incast: senders that are spread evenly over the other hosts send to the first host.
fn incast(k: u32, senders: u32, bytes: &str) -> String {
    let others = k * k * k / 4 - 1;
    let senders: Vec<String> = (0..senders).map(|i| (1 + i * others / senders).to_string()).collect();
    let senders = senders.join(", ");
    let traffic = format!("[[traffic]]\nkind = \"incast\"\nreceiver = 0\nsenders = [{senders}]\nbytes = \"{bytes}\"\n");
    format!("stop = \"all-flows-done\"\n{}", fat_tree(k, &traffic))
}

/// The results of a scenario under an algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the job.
    pub job: String,
    /// The algorithm; with `/tcp` behind it, over TCP.
    pub cc: String,
    /// Number of threads.
    pub threads: usize,
    /// Number of packets put onto links.
    pub packet_hops: u64,
    /// Number of events.
    pub events: u64,
    /// Seconds before the run.
    pub build_s_median: f64,
    /// Seconds of the run.
    pub wall_s_median: f64,
    /// Median of the nanoseconds of a hop.
    pub ns_per_hop_median: f64,
    /// The smallest.
    pub ns_per_hop_min: f64,
    /// The largest.
    pub ns_per_hop_max: f64,
    /// Median over the runs of the ratio of the wall time with the first number of threads to that with this number;
    /// runs take turns.
    pub speedup_median: f64,
    /// Largest resident memory in megabytes, if the system reports it.
    pub rss_mb: Option<f64>,
}

/// A job under an algorithm.
pub struct Case {
    job: String,
    cc: String,
}

impl Case {
    /// Returns a job under an algorithm, after checking that scenarios can name it. That does not depend on the job, so
    /// a smallest network is read for the check: large ones are read when their turn comes, so as not to count in
    /// others' memory.
    ///
    /// # Errors
    /// Those of the scenario's reader.
    pub fn new(job: &str, cc: &str) -> Result<Self, BenchError> {
        config(job, &incast(2, 1, "1KB"), cc)?;
        Ok(Self { job: job.to_owned(), cc: cc.to_owned() })
    }

    /// Returns the name of the case.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.job, self.cc)
    }

    /// Runs the case `runs` times on each number of `threads`, and measures it as often in each number of `parts`; all
    /// take turns.
    ///
    /// # Errors
    /// Those of the simulation, and if the results depend on the number of threads or parts.
    pub fn rows(
        &self,
        threads: &[usize],
        parts: &[usize],
        runs: usize,
    ) -> Result<(Vec<Row>, Vec<Prediction>), BenchError> {
        let text = text(&self.job).expect("only jobs with a scenario are asked for");
        let config = config(&self.job, &text, &self.cc)?;
        let failed = |cause: String| BenchError::Run { job: self.job.clone(), cc: self.cc.clone(), cause };
        let mut timed: Vec<Vec<Timed>> = threads.iter().map(|_| Vec::with_capacity(runs)).collect();
        let mut measured = Measured::new(parts);
        let mut results: Vec<(u64, u64)> = Vec::new();
        for _ in 0..runs {
            for (&n, timed) in threads.iter().zip(&mut timed) {
                let run = time(&config, n).map_err(failed)?;
                results.push((run.totals.fingerprint, run.totals.packet_hops));
                timed.push(run);
            }
            results.extend(measured.run(&config).map_err(failed)?);
        }
        if results.iter().any(|of_run| *of_run != results[0]) {
            return Err(failed("results depend on the number of threads".to_owned()));
        }
        let predictions = results.first().map(|&(_, hops)| measured.predictions(&self.job, &self.cc, hops));
        let first: Vec<f64> = timed.first().into_iter().flatten().map(|t| t.wall_s).collect();
        Ok((timed.iter().map(|timed| self.row(timed, &first)).collect(), predictions.unwrap_or_default()))
    }

    fn row(&self, timed: &[Timed], first: &[f64]) -> Row {
        let each = |of: fn(&Timed) -> f64| median_min_max(&mut timed.iter().map(of).collect::<Vec<f64>>());
        let [median, min, max] = each(|t| t.wall_s);
        let mut speedups: Vec<f64> = first.iter().zip(timed).map(|(first, t)| first / t.wall_s).collect();
        let totals = timed[0].totals;
        let ns_per_hop = |seconds: f64| seconds * 1e9 / totals.packet_hops as f64;
        Row {
            job: self.job.clone(),
            cc: self.cc.clone(),
            threads: timed[0].threads,
            packet_hops: totals.packet_hops,
            events: totals.events,
            build_s_median: each(|t| t.build_s)[0],
            wall_s_median: median,
            ns_per_hop_median: ns_per_hop(median),
            ns_per_hop_min: ns_per_hop(min),
            ns_per_hop_max: ns_per_hop(max),
            speedup_median: median_min_max(&mut speedups)[0],
            rss_mb: timed.iter().filter_map(|t| t.rss_mb).reduce(f64::max),
        }
    }
}

/// A run that was timed.
pub(crate) struct Timed {
    threads: usize,
    build_s: f64,
    /// Time from the first event to the last.
    pub wall_s: f64,
    rss_mb: Option<f64>,
    /// The totals of the run.
    pub totals: RunTotals,
}

/// Runs `config` and measures how long that takes.
///
/// # Errors
/// If the run fails.
pub(crate) fn time(config: &SimConfig, threads: usize) -> Result<Timed, String> {
    forget_peak();
    let ended = run_into(config.clone(), threads, &mut (), &mut ());
    if let RunState::Failed(cause) = ended.state {
        return Err(cause);
    }
    let [build_s, wall_s] = [ended.build, ended.wall].map(|time| time.as_secs_f64());
    Ok(Timed { threads: ended.threads, build_s, wall_s, rss_mb: peak_mb(), totals: ended.totals })
}

/// Reads a scenario's text under an algorithm, over TCP if `cc` ends with `/tcp`.
///
/// # Errors
/// Those of the scenario's reader.
pub(crate) fn config(job: &str, text: &str, cc: &str) -> Result<SimConfig, ScenarioError> {
    let (cc, kind) = cc.strip_suffix("/tcp").map_or((cc, "rdma"), |cc| (cc, "tcp"));
    let sets = vec![("transport.kind".to_owned(), kind.to_owned())];
    let overrides = Overrides { sets, cc: Some(cc.to_owned()), ..Overrides::default() };
    let scenario = Scenario::from_toml(text, &format!("{job}.toml"), Path::new("."), &overrides)?;
    Ok(scenario.into_sim_config())
}

/// Resets the peak of resident memory. On systems without this, the peak is that of the whole process.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024e-6)
}

/// Returns the rows in columns.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let titles = [
        "job",
        "cc",
        "threads",
        "hops M",
        "events/hop",
        "build s",
        "wall s",
        "ns/hop",
        "min",
        "max",
        "speed-up",
        "RSS MB",
    ];
    let line = |row: &Row| {
        [
            row.job.clone(),
            row.cc.clone(),
            row.threads.to_string(),
            format!("{:.2}", row.packet_hops as f64 * 1e-6),
            format!("{:.2}", row.events as f64 / row.packet_hops as f64),
            format!("{:.2}", row.build_s_median),
            format!("{:.2}", row.wall_s_median),
            format!("{:.1}", row.ns_per_hop_median),
            format!("{:.1}", row.ns_per_hop_min),
            format!("{:.1}", row.ns_per_hop_max),
            format!("{:.2}", row.speedup_median),
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
        assert!(DEFAULT_JOBS.iter().chain(&LONG_JOBS).all(|job| text(job).is_some()));
        assert!(EXTRA_JOBS.iter().all(|job| DEFAULT_JOBS.contains(job)));
        for (job, hosts, flows) in [
            ("perm128", 128, 128),
            ("perm432", 432, 432),
            ("perm1024", 1_024, 1_024),
            ("perm8192", 8_192, 8_192),
            ("incast32", 128, 32),
            ("incast128", 432, 128),
        ] {
            let config = read(job, "powertcp").expect("it reads");
            assert_eq!((config.topology.hosts().count(), config.flows.len()), (hosts, flows), "{job}");
        }
        let m64 = read("m64", "powertcp").expect("it reads");
        let inside = m64.flows.iter().filter(|flow| m64.topology.is_scale_up(flow.src)).count();
        assert!(m64.topology.hosts().count() == 64 && 0 < inside && inside < m64.flows.len() && m64.jobs.len() == 1);
        assert!(read("ws60", "dctcp/tcp").is_ok() && read("ws60", "flowtune/tcp").is_ok());
        assert!(read("ws60", "flowtune").is_err() && Case::new("ws60", "flowtune").is_err());
        assert_eq!(read("ws1024", "swift").expect("it reads").topology.hosts().count(), 1_024);
        let all = DEFAULT_CC.iter().chain(&EXTRA_CC);
        assert!(all.into_iter().all(|cc| Case::new("perm128", cc).is_ok() && read("perm128", cc).is_ok()));
        // The same senders as in htsim's matrix.
        let senders: Vec<u32> = read("incast32", "hpcc").expect("it reads").flows.iter().map(|f| f.src.0).collect();
        assert_eq!(senders[..5], [1, 4, 8, 12, 16]);
    }
}
