//! The data of runs for tables and figures, filled by [`crate::load`] from results directories.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;

use fairrate_results::Measured;
use fairrate_sim::Counts;

use crate::collectives::Collective;
use crate::critical_path::CriticalPath;
use crate::jobs::Job;
use crate::network::{LinkTotals, Shape};
use crate::outages::Outage;
use crate::series::value_at;
use crate::timeline::Timeline;
use crate::worst::WorstFlow;

/// Number of packets of a port in a bin of its throughput, at least: its counter jumps by each of them as it begins.
const BIN_PACKETS: f64 = 20.0;

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunData {
    /// Name of the scenario.
    pub scenario: String,
    /// Description of the scenario; may be empty.
    pub description: String,
    /// Names of the traffic blocks; empty for those without one.
    pub blocks: Vec<String>,
    /// The algorithm's name on the command line.
    pub cc: String,
    /// The algorithm's name in prose, if it is not a built-in one.
    pub cc_title: String,
    /// Name of the run in tables: the algorithm's name on the command line, and its changed parameters.
    pub label: String,
    /// The label without the point of a grid.
    pub line: String,
    /// The run's point of a grid, as `load=0.6`; empty without a grid.
    pub point: String,
    /// The point's values by key, in the order of the axes; without those in `line`.
    pub grid: Vec<(String, String)>,
    /// Seed of the run.
    pub seed: u64,
    /// `complete`, `interrupted` or `failed`; `running` if the run was killed.
    pub state: String,
    /// `true` while the run goes on, and if its process was killed: its totals are not known then.
    pub is_open: bool,
    /// Totals.
    pub totals: Totals,
    /// The measuring window, with the load offered and carried within it.
    pub measured: Measured,
    /// Every flow of the workload, ascending by number.
    pub flows: Vec<Flow>,
    /// Times at which endless flows stop, in ns, by flow; those without one last to the end of the run.
    pub stops_ns: BTreeMap<u32, f64>,
    /// Number of finite flows of each block that are not in `flows`, as their time had not come when the run ended.
    pub not_started: BTreeMap<u32, usize>,
    /// Sampled ports.
    pub ports: Vec<PortSeries>,
    /// Sampled flows.
    pub rates: Vec<FlowSeries>,
    /// Pause and resume frames, in order of time.
    pub pauses: Vec<Pause>,
    /// Failures of links.
    pub outages: Vec<Outage>,
    /// Time in base RTTs that rates took to settle after each arrival and departure of a flow; infinite if they did
    /// not. Empty without a probe.
    pub settled_rtts: Vec<f64>,
    /// Collective operations.
    pub collectives: Vec<Collective>,
    /// Training jobs.
    pub jobs: Vec<Job>,
    /// Operations of training jobs over time.
    pub timelines: Vec<Timeline>,
    /// Critical paths of training jobs and collective operations.
    pub critical_paths: Vec<CriticalPath>,
    /// The shape of the network; `None` if it is not known.
    pub shape: Option<Shape>,
    /// Bytes of the largest packet on the wire; 0 if it is not known.
    pub packet_bytes: f64,
    /// Every port over the whole run, by number; empty if it was not recorded.
    pub links: Vec<LinkTotals>,
    /// Round-trip times, if they were probed: of each range its block, its end in ns and its number of acknowledgments.
    pub rtts: Vec<(u32, f64, u64)>,
    /// The flows with the largest slowdowns, the largest first.
    pub worst: Vec<WorstFlow>,
    /// The resolved scenario.
    pub scenario_toml: String,
    /// The origin of the numbers.
    pub provenance: Provenance,
}

impl RunData {
    /// Returns the flows that started within the measuring window.
    pub fn measured_flows(&self) -> impl Iterator<Item = &Flow> {
        let (from, until) = self.window();
        self.flows.iter().filter(move |f| from <= f.start_ns && f.start_ns <= until)
    }

    /// Returns the shortest time in ns over which the throughput of a probed port means something, that of
    /// twenty packets; `None` if the rate of its link is not known.
    pub fn shortest_bin_ns(&self, port: &str) -> Option<f64> {
        let found = self.ports.iter().find(|found| found.name == port)?;
        found.capacity_bps.map(|bps| BIN_PACKETS * self.packet_bytes * 8e9 / bps)
    }

    /// Returns the ends of the measuring window, in ns.
    pub fn window(&self) -> (f64, f64) {
        (self.measured.from_ns as f64, self.measured.until_ns as f64)
    }
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Simulated time at the end, in ns.
    pub end_ns: f64,
    /// Wall-clock time the run took, in s.
    pub wall_s: f64,
    /// Packets of any kind serialised onto a link.
    pub packet_hops: u64,
    /// Payload bits that receivers got in order, per second of simulated time.
    pub goodput_bps: f64,
    /// Data packets dropped.
    pub drops: u64,
    /// Numbers of other things that happened.
    pub counts: Counts,
    /// Bytes of data packets that switches cut to their headers, before they did.
    pub trimmed_bytes: u64,
    /// Bytes of notices and control packets on the wire.
    pub control_bytes: u64,
    /// Bytes of data packets on the wire.
    pub data_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Payload bytes of multipath connections that waited for bytes before them.
    pub reordered_bytes: u64,
    /// Time such a byte waited, on average, in ns.
    pub reordering_mean_ns: f64,
    /// The longest wait, in ns.
    pub reordering_max_ns: f64,
    /// Time from the first failure of a link until goodput was back, in ns; infinite if it was not, `None` without a
    /// failure.
    pub recovery_ns: Option<f64>,
    /// Goodput at the end of the windows after that failure over goodput before it; `None` without a failure, or with
    /// too few windows.
    pub settled: Option<f64>,
    /// Flows that finished.
    pub flows_done: u64,
    /// Finite flows that did not finish.
    pub flows_unfinished: u64,
    /// Deadlines met and missed, if some flows have one.
    pub deadlines: Option<fairrate_results::Deadlines>,
}

/// The data needed to repeat a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Version of fairrate.
    pub version: String,
    /// Commit it was built from, or empty.
    pub commit: String,
    /// Hash of the resolved scenario.
    pub scenario_hash: String,
    /// Hash of the order of events.
    pub fingerprint: String,
}

/// A number that may be missing, in eight bytes: NaN stands for none.
#[derive(Clone, Copy)]
pub struct Maybe(f64);

impl Maybe {
    /// No number.
    pub const NONE: Self = Self(f64::NAN);

    /// Returns the place of a number that is known.
    pub const fn of(number: f64) -> Self {
        Self(number)
    }

    /// Returns the number, if there is one.
    pub fn get(self) -> Option<f64> {
        Some(self.0).filter(|number| !number.is_nan())
    }
}

impl From<Option<f64>> for Maybe {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::NONE, Self)
    }
}

impl Default for Maybe {
    fn default() -> Self {
        Self::NONE
    }
}

impl PartialEq for Maybe {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Maybe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The outcome of one flow. A run may have many millions, so it is small.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Number of the flow.
    pub id: u32,
    /// Number of its traffic block, from 0, or the group that its flow list gives it.
    pub block: u32,
    /// Id of the receiver.
    pub dst: u32,
    /// Bytes by which the furthest packet was ahead of the latest of those that it had overtaken, at most [`u32::MAX`];
    /// 0 without disorder.
    pub reorder_extent: u32,
    /// Payload bytes; `None` for an endless flow.
    pub bytes: Option<NonZeroU64>,
    /// Start, in ns.
    pub start_ns: f64,
    /// Time from the start to the last byte at the receiver, in ns; none if unfinished.
    pub fct_ns: Maybe,
    /// `fct_ns` over that of the flow alone on an idle network; none if unfinished.
    pub slowdown: Maybe,
    /// The least slowdown that an unfinished flow will have: that of its time until the run ended, and at least 1.
    pub at_least: Maybe,
}

const _: () = assert!(size_of::<Flow>() == 56);

impl Flow {
    /// Returns the slowdown, or its lower bound if the flow is unfinished.
    pub fn slowdown_or_bound(&self) -> Option<f64> {
        self.slowdown.get().or(self.at_least.get())
    }
}

/// Samples of one egress port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortSeries {
    /// The port as `from->to`.
    pub name: String,
    /// Rate of the port, in bit/s, if known.
    pub capacity_bps: Option<f64>,
    /// Times, in ns.
    pub t_ns: Vec<f64>,
    /// Bytes queued.
    pub qlen_bytes: Vec<f64>,
    /// Bytes sent since the start.
    pub tx_bytes: Vec<f64>,
    /// Drops within the measuring window.
    pub drops: u64,
    /// ECN marks within it.
    pub ecn_marks: u64,
    /// Time paused within it, in ns.
    pub pfc_pause_ns: f64,
}

impl RunData {
    /// Returns the probed ports of links, without the receive buffers of hosts.
    pub fn links(&self) -> impl Iterator<Item = &PortSeries> {
        self.ports.iter().filter(|port| !is_host_buffer(&port.name))
    }
}

/// Returns `true` if a name in the table of ports is that of a host's receive buffer, as `host-rx->h3`.
pub fn is_host_buffer(name: &str) -> bool {
    name.starts_with("host-rx->")
}

impl PortSeries {
    /// Returns the samples between two times, with an added sample at each end: queues hold their value between
    /// samples, and counters grow evenly.
    #[must_use]
    pub fn within(&self, (from, until): (f64, f64)) -> Self {
        let (first, last) = (self.t_ns.first().copied(), self.t_ns.last().copied());
        let (Some(first), Some(last)) = (first, last) else { return self.clone() };
        let (from, until) = (from.clamp(first, last), until.clamp(first, last));
        let inside = self.t_ns.partition_point(|t| *t <= from)..self.t_ns.partition_point(|t| *t < until);
        let inside = inside.start..inside.end.max(inside.start);
        let held = |t: f64| self.qlen_bytes[self.t_ns.partition_point(|s| *s <= t).max(1) - 1];
        let grown = |t: f64| value_at(&self.t_ns, &self.tx_bytes, t).unwrap_or(0.0);
        let with_ends = |values: &[f64], at: &dyn Fn(f64) -> f64| [&[at(from)], values, &[at(until)]].concat();
        Self {
            t_ns: with_ends(&self.t_ns[inside.clone()], &|t| t),
            qlen_bytes: with_ends(&self.qlen_bytes[inside.clone()], &held),
            tx_bytes: with_ends(&self.tx_bytes[inside], &grown),
            ..self.clone()
        }
    }
}

/// Samples of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSeries {
    /// The flow's number.
    pub flow: u32,
    /// Name in legends, as `0: h0->h16`.
    pub name: String,
    /// Times, in ns.
    pub t_ns: Vec<f64>,
    /// Congestion window in payload bytes; NaN if there is none.
    pub cwnd_bytes: Vec<f64>,
    /// Pacing rate in bit/s.
    pub rate_bps: Vec<f64>,
    /// Payload bytes the receiver has in order.
    pub delivered_bytes: Vec<f64>,
}

/// A pause or resume frame that took effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pause {
    /// Time, in ns.
    pub t_ns: f64,
    /// The egress port that stops or continues, as `from->to`.
    pub port: String,
    /// The class that stops or continues.
    pub class: u8,
    /// `true` for a pause, `false` for a resume.
    pub pause: bool,
}

/// All runs of one algorithm (or one setting of it): the seeds of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Name in the terminal's tables: the algorithm's name on the command line.
    pub label: String,
    /// Name in figures: the algorithm's name in prose.
    pub title: String,
    /// The title without the point of a grid: all points with the same `line` are one line.
    pub line: String,
    /// The runs, ascending by seed; never empty.
    pub runs: Vec<RunData>,
}

impl Variant {
    /// Returns the run whose series are drawn: the one with the lowest seed.
    pub fn first(&self) -> &RunData {
        &self.runs[0]
    }

    /// Drops samples that no figure shows: with them a comparison of many runs would not fit into memory. Metrics must
    /// be computed before.
    pub fn forget_undrawn(&mut self) {
        for run in self.runs.iter_mut().skip(1) {
            (run.rates, run.pauses, run.scenario_toml) = (Vec::new(), Vec::new(), String::new());
            (run.timelines, run.critical_paths) = (Vec::new(), Vec::new());
            (run.shape, run.links, run.worst) = (None, Vec::new(), Vec::new());
            // The queues of several ports are drawn together, over all seeds.
            if run.ports.len() < 2 {
                run.ports = Vec::new();
            }
        }
    }
}

/// Returns a label with the algorithm's name in prose; `powertcp:gamma=0.5` becomes `PowerTCP gamma=0.5`. A label that
/// only begins with the same letters stays as it is.
fn title(run: &RunData, label: &str) -> String {
    let built_in = || fairrate_control::ALGORITHMS.iter().find(|a| a.name == run.cc).map(|a| a.title);
    let own = Some(run.cc_title.as_str()).filter(|title| !title.is_empty());
    let (first, rest) = label.split_at(label.find(' ').unwrap_or(label.len()));
    match (own.or_else(built_in), first.strip_prefix(&run.cc)) {
        (Some(title), Some(parameters)) if parameters.is_empty() || parameters.starts_with([':', '@']) => {
            format!("{title}{}{rest}", parameters.replace(':', " "))
        }
        _ => label.to_owned(),
    }
}

/// Groups runs by label, in the order the labels first appear.
pub fn variants(runs: Vec<RunData>) -> Vec<Variant> {
    let mut all: Vec<Variant> = Vec::new();
    for run in runs {
        if let Some(variant) = all.iter_mut().find(|v| v.label == run.label) {
            variant.runs.push(run);
            continue;
        }
        let line = if run.line.is_empty() { &run.label } else { &run.line };
        let (title, line) = (title(&run, &run.label), title(&run, line));
        all.push(Variant { label: run.label.clone(), title, line, runs: vec![run] });
    }
    for variant in &mut all {
        variant.runs.sort_by_key(|r| r.seed);
    }
    all
}

/// Returns the name of the traffic block with the number `block` among the `names` of all; `None`: it has no name.
pub(crate) fn own_name(names: &[String], block: u32) -> Option<&String> {
    names.get(block as usize).filter(|name| !name.is_empty())
}

/// Returns the name of the traffic block with the number `block`, or, if `names` has none, its number in words.
pub(crate) fn block_name(names: &[String], block: u32) -> String {
    own_name(names, block).cloned().unwrap_or_else(|| format!("traffic {block}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_without_a_name_has_its_number() {
        let names = [String::new(), "bursts".to_owned()];
        assert_eq!([0, 1, 2].map(|block| block_name(&names, block)), ["traffic 0", "bursts", "traffic 2"]);
        assert_eq!([0, 1].map(|block| own_name(&names, block)), [None, Some(&names[1])]);
    }

    #[test]
    fn only_the_names_of_algorithms_become_prose() {
        let run = RunData { cc: "swift".into(), ..RunData::default() };
        for (label, want) in [
            ("swift", "Swift"),
            ("swift:hop_target=30us:x=1", "Swift hop_target=30us x=1"),
            ("swift@ns3 load=0.4", "Swift@ns3 load=0.4"),
            ("swifter: 1/4", "swifter: 1/4"),
            ("swift 10:1", "Swift 10:1"),
            ("lossy swift", "lossy swift"),
        ] {
            assert_eq!(title(&run, label), want);
        }
    }
}
