//! Samples of ports and flows.

use fairrate_units::Time;

use super::Fluid;
use crate::config::ProbeSpec;
use crate::engine::EventKind;
use crate::ids::{FlowId, PortId};
use crate::output::{Drops, Observation, PortSample, PortTotals, RateSample, Sink, Watched};
use crate::table::Table;

impl Fluid {
    /// Takes the samples of probe `index`, but for those that another probe has taken at this time, and schedules the
    /// next ones.
    pub(super) fn on_probe(&mut self, index: u32, sink: &mut dyn Sink) {
        let now_ps = self.now_ps;
        let every = match &self.config.probes[index as usize] {
            ProbeSpec::Ports { ports, every } => {
                let mut ports = ports.clone();
                ports.retain(|&port| self.sampled.is_first(now_ps, Watched::Port(port)));
                let every = *every;
                self.sample_ports(&ports, sink);
                every
            }
            ProbeSpec::Flows { flows, every } => {
                let served = || self.served.iter().map(|served| served.flow).collect();
                let mut flows = flows.clone().unwrap_or_else(served);
                flows.retain(|&flow| self.sampled.is_first(now_ps, Watched::Flow(flow)));
                let samples = flows.iter().filter_map(|&flow| self.sample_flow(flow));
                samples.for_each(|sample| sink.observe(&Observation::Rate(sample)));
                *every
            }
            // Fluids wait at no host, and have no acknowledgments.
            ProbeSpec::Hosts { .. } | ProbeSpec::Rtts | ProbeSpec::Convergence { .. } => return,
        };
        self.schedule(self.now_ps.saturating_add(every.as_ps()), EventKind::Probe, index);
    }

    /// Takes the snapshots that are due up to `until_ps`, before which no event happens.
    pub(super) fn take_snapshots(&mut self, until_ps: u64, sink: &mut dyn Sink) {
        while let Some(&t) = self.config.snapshots.get(self.n_snapshots).filter(|t| t.as_ps() <= until_ps) {
            self.n_snapshots += 1;
            self.now_ps = t.as_ps();
            let mut delivered = self.flows.numbers().map(|flow| (flow, self.delivered_bytes(flow)));
            if sink.wants().snapshots {
                sink.snapshot(t, &mut delivered);
            }
        }
    }

    /// Returns the counters of all ports so far, by number: fluids are neither dropped nor marked.
    pub(crate) fn port_totals(&self) -> Vec<PortTotals> {
        let bytes = self.port_bytes_now();
        let of = |port| PortTotals {
            port,
            tx_bytes: bytes[port],
            drops: Drops::default(),
            ecn_marks: 0,
            pfc_pause: Time::ZERO,
        };
        bytes.numbers().map(of).collect()
    }

    /// Returns the bytes that each port has sent up to now.
    fn port_bytes_now(&self) -> Table<PortId, u64> {
        let mut bytes = self.port_bytes.clone();
        for served in &self.served {
            let sent = served.sent_bytes_at(self.now_ps);
            for &port in &self.paths[self.flows[served.flow].path.clone()] {
                bytes[port] += sent;
            }
        }
        bytes
    }

    fn sample_ports(&self, ports: &[PortId], sink: &mut dyn Sink) {
        let bytes = self.port_bytes_now();
        for &port in ports {
            sink.observe(&Observation::Port(PortSample {
                t: self.now(),
                port,
                qlen_bytes: 0,
                tx_bytes: bytes[port],
                drops: 0,
                ecn_marks: 0,
                pfc_pause: Time::ZERO,
            }));
        }
    }

    fn sample_flow(&self, id: FlowId) -> Option<RateSample> {
        let served = &self.served[self.flows[id].place?];
        let rate_bps = (served.rate_bps + 0.5) as u64;
        let delivered_bytes = self.delivered_bytes(id);
        Some(RateSample { t: self.now(), flow: id, cwnd_bytes: u64::MAX, rate_bps, delivered_bytes, measured: None })
    }
}
