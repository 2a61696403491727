//! Periodic samples of ports and flows.

use fairrate_units::Time;

use super::Core;
use crate::config::ProbeSpec;
use crate::engine::EventKind;
use crate::ids::{FlowId, PortId};
use crate::output::{PortSample, RateSample, Sink};

impl Core {
    /// Probe number `index` samples, and comes again.
    pub(super) fn on_probe(&mut self, index: u32, sink: &mut dyn Sink) {
        let every = match &self.config.probes[index as usize] {
            ProbeSpec::Ports { ports, every } => {
                for &port in ports {
                    sink.port(&self.sample_port(port));
                }
                *every
            }
            ProbeSpec::Flows { flows: Some(flows), every } => {
                flows.iter().filter_map(|f| self.sample_flow(f.0)).for_each(|sample| sink.rate(&sample));
                *every
            }
            ProbeSpec::Flows { flows: None, every } => {
                let flows = self.senders.iter().flatten().map(|s| &self.flows[s.flow as usize]);
                let active = flows.filter(|f| f.subflow == 0).map(|f| f.spec).filter(|&f| f < self.n_user_flows);
                active.filter_map(|f| self.sample_flow(f)).for_each(|sample| sink.rate(&sample));
                *every
            }
            ProbeSpec::Convergence { .. } => return,
        };
        let at = self.now_ps.saturating_add(every.as_ps());
        self.schedule(at, EventKind::Probe, index);
    }

    fn sample_port(&self, port: PortId) -> PortSample {
        let p = &self.ports[port.index()];
        PortSample {
            t: self.now(),
            port,
            qlen_bytes: p.queued_bytes,
            tx_bytes: p.tx_bytes,
            drops: p.drops,
            ecn_marks: p.ecn_marks,
            pfc_pause: Time::from_ps(p.pause_ps(self.now_ps)),
        }
    }

    fn sample_flow(&self, id: u32) -> Option<RateSample> {
        let flow = &self.flows[id as usize];
        let sender = self.senders.get(flow.sender as usize)?.as_ref()?;
        let (cwnd_bytes, rate_bps) = self.sum_of_subflows(id).unwrap_or((sender.cwnd, sender.rate.as_bps()));
        Some(RateSample {
            t: self.now(),
            flow: FlowId(id),
            cwnd_bytes,
            rate_bps,
            delivered_bytes: flow.receiver.expected,
        })
    }
}
