//! Tables of the numbers behind metrics: their names, words, units and values.

use crate::metrics::{GroupMetrics, Metrics, PortMetrics};
use crate::stats::Distribution;

pub(super) type Of<T> = fn(&T) -> Option<f64>;

/// Statistics of a distribution: name, words, value.
pub(super) const STATISTICS: [(&str, &str, Of<Distribution>); 6] = [
    ("mean", "mean", |d| d.mean),
    ("p50", "median", |d| d.p50),
    ("p95", "95th percentile", |d| d.p95),
    ("p99", "99th percentile", |d| d.p99),
    ("p99.9", "99.9th percentile", |d| d.p999),
    ("max", "largest", |d| d.max),
];

/// Nanoseconds of the unit of times, which is a microsecond.
pub(super) const TIME_NS: f64 = 1e3;

/// Shares of traffic blocks: name, words, label with the unit, unit, value.
pub(super) const SHARES: [(&str, &str, &str, f64, Of<GroupMetrics>); 12] = [
    ("goodput", "Goodput", "goodput (Gb/s)", 1e9, |g| Some(g.goodput_bps)),
    ("share", "Share of all goodput", "share (%)", 0.01, |g| g.share),
    ("fair-share", "Goodput of a flow over that of all", "fair share (%)", 0.01, |g| g.fair_share),
    ("rest", "Goodput over what others leave of the port", "rest of the port (%)", 0.01, |g| g.rest),
    ("settle-come", "Settled after others came", "time (µs)", TIME_NS, |g| finite(g.came?.time_ns)),
    ("level-come", "Goodput after others came", "fair share (%)", 0.01, |g| Some(g.came?.level)),
    ("settle-go", "Settled after others went", "time (µs)", TIME_NS, |g| finite(g.went?.time_ns)),
    ("level-go", "Goodput after others went", "fair share (%)", 0.01, |g| Some(g.went?.level)),
    ("jain", "Fairness of endless flows", "Jain index", 1.0, |g| g.jain),
    ("drops", "Drops", "packets", 1.0, |g| Some(g.drops)),
    ("marked", "Packets that arrived marked", "packets", 1.0, |g| Some(g.marked)),
    ("sent-again", "Payload sent again", "payload (KB)", 1e3, |g| Some(g.retransmitted_bytes)),
];

/// Names of [`SHARES`] and [`OTHERS`] that are of the measuring window; all others are of the whole run, or of a time
/// after something happened in it.
pub(super) const OF_WINDOW: [&str; 9] =
    ["goodput", "share", "fair-share", "rest", "jain", "utilisation", "queue-mean", "queue-p99", "queue-peak"];

pub(super) struct Other {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Label of an axis, with the unit.
    pub(super) label: &'static str,
    /// The unit of the label, in the unit of `value`.
    pub(super) unit: f64,
    pub(super) value: Of<Metrics>,
}

/// Returns a time, if there is one.
fn finite(ns: f64) -> Option<f64> {
    Some(ns).filter(|ns| ns.is_finite())
}

/// Returns the probed port, or all probed ports together.
fn port(m: &Metrics) -> Option<&PortMetrics> {
    m.main_port()
}

pub(super) const OTHERS: [Other; 24] = [
    Other {
        name: "goodput",
        title: "Goodput of all flows",
        label: "goodput (Gb/s)",
        unit: 1e9,
        value: |m| Some(m.goodput_bps),
    },
    Other {
        name: "utilisation",
        title: "Utilisation of the probed ports",
        label: "utilisation (%)",
        unit: 0.01,
        value: |m| port(m)?.utilisation,
    },
    Other {
        name: "queue-mean",
        title: "Mean queue of the probed ports",
        label: "queue (KB)",
        unit: 1e3,
        value: |m| Some(port(m)?.qlen_mean_bytes),
    },
    Other {
        name: "queue-p99",
        title: "99th percentile of the queue of the probed ports",
        label: "queue (KB)",
        unit: 1e3,
        value: |m| Some(port(m)?.qlen_p99_bytes),
    },
    Other {
        name: "queue-peak",
        title: "Peak queue of the probed ports",
        label: "queue (KB)",
        unit: 1e3,
        value: |m| Some(port(m)?.qlen_peak_bytes),
    },
    Other { name: "jain", title: "Fairness of long flows", label: "Jain index", unit: 1.0, value: |m| m.jain },
    Other {
        name: "convergence-p50",
        title: "Convergence of rates, median",
        label: "time (base RTTs)",
        unit: 1.0,
        value: |m| m.convergence?.p50_rtts,
    },
    Other {
        name: "convergence-p99",
        title: "Convergence of rates, 99th percentile",
        label: "time (base RTTs)",
        unit: 1.0,
        value: |m| m.convergence?.p99_rtts,
    },
    Other {
        name: "recovery",
        title: "Recovery after a failure",
        label: "time (µs)",
        unit: TIME_NS,
        value: |m| m.recovery_ns.filter(|ns| ns.is_finite()),
    },
    Other {
        name: "settled",
        title: "Goodput settled after a failure",
        label: "goodput before (%)",
        unit: 0.01,
        value: |m| m.settled,
    },
    Other {
        name: "pfc-pauses",
        title: "PFC pauses",
        label: "pause frames",
        unit: 1.0,
        value: |m| Some(m.counts.pfc_pauses),
    },
    Other { name: "drops", title: "Drops", label: "packets", unit: 1.0, value: |m| Some(m.drops) },
    Other {
        name: "trims",
        title: "Packets cut to their headers",
        label: "packets",
        unit: 1.0,
        value: |m| Some(m.counts.trims),
    },
    Other {
        name: "returns",
        title: "Headers sent back",
        label: "packets",
        unit: 1.0,
        value: |m| Some(m.counts.returns),
    },
    Other { name: "ecn-marks", title: "ECN marks", label: "packets", unit: 1.0, value: |m| Some(m.counts.ecn_marks) },
    Other {
        name: "sent-again",
        title: "Payload sent again",
        label: "payload (KB)",
        unit: 1e3,
        value: |m| Some(m.retransmitted_bytes),
    },
    Other {
        name: "control-traffic",
        title: "Control traffic over data",
        label: "share of data (%)",
        unit: 0.01,
        value: |m| Some(m.control_share.unwrap_or(0.0)),
    },
    Other {
        name: "flows-done",
        title: "Flows that finished",
        label: "flows",
        unit: 1.0,
        value: |m| Some(m.flows_done),
    },
    Other {
        name: "unfinished",
        title: "Flows that did not finish",
        label: "flows",
        unit: 1.0,
        value: |m| Some(m.flows_unfinished),
    },
    Other {
        name: "deadlines-missed",
        title: "Deadlines missed",
        label: "flows with a deadline (%)",
        unit: 0.01,
        value: |m| m.deadlines?.missed_share,
    },
    Other {
        name: "collective-time",
        title: "Time of a collective operation, mean of its iterations",
        label: "time (µs)",
        unit: TIME_NS,
        value: |m| m.collectives.first()?.time_ns,
    },
    Other {
        name: "busbw",
        title: "Bus bandwidth of a collective operation",
        label: "busbw (GB/s)",
        unit: 1e9,
        value: |m| m.collectives.first()?.busbw_bytes_per_s,
    },
    Other {
        name: "iteration-time",
        title: "Time of a training iteration, mean",
        label: "time (µs)",
        unit: TIME_NS,
        value: |m| m.jobs.first()?.time_ns,
    },
    Other {
        name: "exposed-time",
        title: "Exposed communication of a training iteration, mean over ranks",
        label: "time (µs)",
        unit: TIME_NS,
        value: |m| m.jobs.first()?.exposed_ns,
    },
];

/// Names of the metrics that are drawn by default, unless all their values are zero.
pub(super) const USUAL: [&str; 20] = [
    "slowdown-p50:all",
    "slowdown-p99:all",
    "slowdown-p99.9:short",
    "slowdown-p99:long",
    "queue-p99",
    "utilisation",
    "goodput",
    "jain",
    "collective-time",
    "busbw",
    "iteration-time",
    "exposed-time",
    "convergence-p99",
    "recovery",
    "settled",
    "pfc-pauses",
    "drops",
    "trims",
    "unfinished",
    "deadlines-missed",
];
