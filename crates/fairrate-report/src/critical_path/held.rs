//! The reasons for which messages take longer than on an idle network, as far as tables and the scenario have them.

use std::collections::HashMap;

use fairrate_explain::{outages, slow};
use fairrate_results::PfcRow;
use fairrate_sim::routing::{FlowKey, Routes};
use fairrate_sim::{FlowId, PortId, SimConfig};
use fairrate_units::{Rate, Time};

use super::NOTED;
use crate::format;

/// The network of a run, with the pauses of its ports.
pub struct Network<'a> {
    config: &'a SimConfig,
    routes: Routes,
    /// The times for which a class of a port was paused, ascending and apart, in ns.
    pauses: HashMap<(String, u8), Vec<(u64, u64)>>,
}

impl<'a> Network<'a> {
    /// Returns the network of a run that ended at `end_ns`, with the pause and resume frames of `rows`, in order of
    /// time.
    pub fn new(config: &'a SimConfig, rows: &[PfcRow], end_ns: u64) -> Self {
        let mut open: HashMap<(String, u8), u64> = HashMap::new();
        let mut pauses: HashMap<(String, u8), Vec<(u64, u64)>> = HashMap::new();
        for row in rows {
            let key = (row.port.to_string(), row.class);
            if row.pause {
                open.entry(key).or_insert(row.t_ns);
            } else if let Some(from) = open.remove(&key) {
                pauses.entry(key).or_default().push((from, row.t_ns));
            }
        }
        for (key, from) in open {
            pauses.entry(key).or_default().push((from, end_ns.max(from)));
        }
        Self { config, routes: Routes::of(config), pauses }
    }

    /// Returns the rate of the port of a flow's sender.
    pub fn rate_of_sender(&self, flow: FlowId) -> Option<Rate> {
        let port = self.routes.host_port(self.config.flows[flow.index()].src)?;
        Some(self.config.topology.link(port).rate)
    }

    /// Returns the ports of a flow's path; none if packets choose their paths.
    fn path(&self, flow: FlowId) -> Vec<PortId> {
        let mut path = Vec::new();
        if !self.config.fabric.balance.is_by_packet() {
            let (fabric, spec) = (&self.config.fabric, &self.config.flows[flow.index()]);
            self.routes.path(fabric.ecmp, self.config.seed, FlowKey::of(spec), &mut path);
        }
        path
    }

    /// Returns the time between `from` and `to` for which a port of the flow's path was paused, in ns, and the reasons
    /// for `rest_ns` of that time, in words.
    pub fn held(&self, flow: FlowId, (from, to): (Time, Time), rest_ns: f64) -> (f64, String) {
        let path = self.path(flow);
        let paused = self.paused(flow, &path, (from.as_ns(), to.as_ns()));
        let all: Vec<(u64, u64)> = paused.iter().flat_map(|(_, spans)| spans.iter().copied()).collect();
        let paused_ns = (covered(all) as f64).min(rest_ns.max(0.0));
        if rest_ns < NOTED * (to.saturating_sub(from)).as_ns_f64() {
            return (paused_ns, String::new());
        }
        let mut reasons = Vec::new();
        let most = paused.into_iter().map(|(port, spans)| (covered(spans), port)).max_by_key(|&(ns, _)| ns);
        if let Some((ns, port)) = most.filter(|&(ns, _)| NOTED * rest_ns < ns as f64) {
            reasons.push(format!("{} in PFC pauses of {port}", format::time_ns(ns as f64)));
        }
        let n_pauses = reasons.len();
        for &port in &path {
            let name = self.config.topology.port_name(port);
            if !outages(self.config, port, from, to).is_empty() {
                reasons.push(format!("{name} down for a time"));
            }
            if let Some(slow) = slow(self.config, port, from, to).first() {
                reasons.push(format!("{name} at {} of its rate", format::percent(slow.share)));
            }
        }
        let is_told = n_pauses < reasons.len() || (1.0 - NOTED) * rest_ns < paused_ns;
        if !is_told {
            reasons.push("queues, windows or rates".to_owned());
        }
        (paused_ns, reasons.join("; "))
    }

    /// Returns the pauses of each port of a path between two times, in the class of a flow's data.
    fn paused(&self, flow: FlowId, path: &[PortId], (from, to): (u64, u64)) -> Vec<(String, Vec<(u64, u64)>)> {
        if self.pauses.is_empty() {
            return Vec::new();
        }
        let spec = &self.config.flows[flow.index()];
        let class = spec.class.unwrap_or(self.config.stack(spec.stack).0.data_class);
        let of_port = |&port: &PortId| {
            let key = (self.config.topology.port_name(port), class);
            let all = self.pauses.get(&key)?;
            let first = all.partition_point(|&(_, end)| end <= from);
            let spans = all[first..].iter().take_while(|(start, _)| *start < to);
            let spans = spans.map(|&(start, end)| (start.max(from), end.min(to))).collect();
            Some((key.0, spans))
        };
        path.iter().filter_map(of_port).collect()
    }
}

/// Returns the time that spans cover together.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut sum, mut covered_to) = (0, 0);
    for (from, to) in spans {
        sum += to.max(covered_to) - from.max(covered_to);
        covered_to = covered_to.max(to);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_count_once() {
        assert_eq!(covered(vec![(50, 70), (0, 10), (5, 20), (60, 65)]), 40);
    }
}
