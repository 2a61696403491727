//! The measures of probed ports: one by one, the worst, and all together.

use serde::Serialize;

use crate::model::{PortSeries, RunData, is_host_buffer};
use crate::stats::{self, Held};

/// The measures of a probed port within the measuring window; NaN, and `null` in JSON, with fewer than two samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortMetrics {
    /// The port as `from->to`.
    pub port: String,
    /// Bits sent over the link's capacity, headers included.
    pub utilisation: Option<f64>,
    /// Bits sent per second, headers included.
    pub throughput_bps: f64,
    /// Mean queue, weighted by time.
    pub qlen_mean_bytes: f64,
    /// Queue length that was not exceeded for 99 % of the time.
    pub qlen_p99_bytes: f64,
    /// Largest sample of the queue.
    pub qlen_peak_bytes: f64,
    /// Packets dropped before they were queued.
    pub drops: f64,
    /// Packets marked.
    pub ecn_marks: f64,
    /// Time the port was paused, in ns.
    pub pfc_pause_ns: f64,
}

/// Returns the measures of every port of the first run, averaged over the runs.
pub(super) fn ports(runs: &[RunData]) -> Vec<PortMetrics> {
    let Some(first) = runs.first() else { return Vec::new() };
    let average = |port: &PortSeries| {
        let of_run =
            |r: &RunData| Some(port_metrics(&r.ports.iter().find(|p| p.name == port.name)?.within(r.window())));
        mean_of_ports(&runs.iter().filter_map(of_run).collect::<Vec<_>>())
    };
    first.ports.iter().filter_map(average).collect()
}

/// Returns the mean over several runs of a port's measures; `None` without any.
pub(super) fn mean_of_ports(each: &[PortMetrics]) -> Option<PortMetrics> {
    let mean = |f: &dyn Fn(&PortMetrics) -> f64| each.iter().map(f).sum::<f64>() / each.len() as f64;
    let utilised: Vec<f64> = each.iter().filter_map(|p| p.utilisation).collect();
    Some(PortMetrics {
        port: each.first()?.port.clone(),
        utilisation: stats::mean(&utilised),
        throughput_bps: mean(&|p| p.throughput_bps),
        qlen_mean_bytes: mean(&|p| p.qlen_mean_bytes),
        qlen_p99_bytes: mean(&|p| p.qlen_p99_bytes),
        qlen_peak_bytes: mean(&|p| p.qlen_peak_bytes),
        drops: mean(&|p| p.drops),
        ecn_marks: mean(&|p| p.ecn_marks),
        pfc_pause_ns: mean(&|p| p.pfc_pause_ns),
    })
}

/// Returns the measures of all ports of links of a run as a single port, averaged over the runs.
pub(super) fn all_ports(runs: &[RunData]) -> Option<PortMetrics> {
    let several = runs.iter().filter(|r| 1 < r.links().count());
    let pooled = |r: &RunData| port_metrics(&pool(&r.links().cloned().collect::<Vec<_>>(), r.window()));
    let each: Vec<PortMetrics> = several.map(pooled).collect();
    let mut all = mean_of_ports(&each)?;
    let n = runs.iter().map(|r| r.links().count()).max().unwrap_or(0);
    all.port = format!("all {n} ports");
    Some(all)
}

/// Returns the port with the largest 99th percentile of its queue; `None` unless there are several.
pub(super) fn worst_port(ports: &[PortMetrics]) -> Option<PortMetrics> {
    // Of equal ones the first that was probed.
    let links = || ports.iter().filter(|port| !is_host_buffer(&port.port) && !port.qlen_p99_bytes.is_nan());
    let worst = links().rev().max_by(|a, b| a.qlen_p99_bytes.total_cmp(&b.qlen_p99_bytes));
    worst.filter(|_| 1 < links().count()).cloned()
}

/// Joins the samples of several ports within a window one after another, as if of one port of their mean rate.
fn pool(ports: &[PortSeries], window: (f64, f64)) -> PortSeries {
    let mut all = PortSeries { name: "all".into(), capacity_bps: Some(0.0), ..PortSeries::default() };
    let (mut t_end, mut tx_end) = (0.0, 0.0);
    for port in ports.iter().map(|port| port.within(window)) {
        let (t0, tx0) = (port.t_ns.first().copied().unwrap_or(0.0), port.tx_bytes.first().copied().unwrap_or(0.0));
        all.t_ns.extend(port.t_ns.iter().map(|t| t_end + t - t0));
        all.tx_bytes.extend(port.tx_bytes.iter().map(|b| tx_end + b - tx0));
        all.qlen_bytes.extend(&port.qlen_bytes);
        (t_end, tx_end) = (all.t_ns.last().copied().unwrap_or(0.0), all.tx_bytes.last().copied().unwrap_or(0.0));
        all.capacity_bps = all.capacity_bps.zip(port.capacity_bps).map(|(a, b)| a + b / ports.len() as f64);
        all.drops += port.drops;
        all.ecn_marks += port.ecn_marks;
        all.pfc_pause_ns += port.pfc_pause_ns;
    }
    all
}

/// Returns the measures of a port whose samples are those of the measuring window. Fewer than two tell nothing: all
/// measures are NaN then.
pub(super) fn port_metrics(port: &PortSeries) -> PortMetrics {
    let queue = Held::new(&port.t_ns, &port.qlen_bytes);
    let ends = |v: &[f64]| v.last().zip(v.first()).map_or(0.0, |(last, first)| last - first);
    let (bytes, span_ns) = (ends(&port.tx_bytes), ends(&port.t_ns));
    let known = |value: f64| if 0.0 < span_ns { value } else { f64::NAN };
    let throughput_bps = known(bytes * 8e9 / span_ns);
    PortMetrics {
        port: port.name.clone(),
        utilisation: port.capacity_bps.map(|c| throughput_bps / c).filter(|share| !share.is_nan()),
        throughput_bps,
        qlen_mean_bytes: known(queue.mean().unwrap_or(f64::NAN)),
        qlen_p99_bytes: known(queue.percentile(0.99).unwrap_or(f64::NAN)),
        qlen_peak_bytes: known(queue.peak().unwrap_or(f64::NAN)),
        drops: known(port.drops as f64),
        ecn_marks: known(port.ecn_marks as f64),
        pfc_pause_ns: known(port.pfc_pause_ns),
    }
}
