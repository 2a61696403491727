//! Periodic samples of ports and flows, taken between two epochs: before anything else of that time.

use std::sync::Mutex;

use fairrate_units::Time;

use super::Core;
use super::cluster::{Parts, lock};
use crate::config::{ProbeSpec, SimConfig};
use crate::ids::{FlowId, PortId};
use crate::output::{PortSample, RateSample, Sink};

/// When each probe samples next.
pub(super) struct Probes {
    /// By number, in picoseconds; `u64::MAX`: never.
    next_ps: Vec<u64>,
}

impl Probes {
    /// The probes of a run, which all sample at its start.
    pub(super) fn new(config: &SimConfig) -> Self {
        let first = |probe: &ProbeSpec| if period(probe).is_some() { 0 } else { u64::MAX };
        Self { next_ps: config.probes.iter().map(first).collect() }
    }

    /// When the next probe samples, in picoseconds; `u64::MAX`: none will.
    pub(super) fn next_ps(&self) -> u64 {
        self.next_ps.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// All probes that are due at `now_ps` sample. How many did.
    pub(super) fn sample(
        &mut self,
        now_ps: u64,
        config: &SimConfig,
        parts: &Parts,
        cores: &[Mutex<Core>],
        sink: &mut dyn Sink,
    ) -> u64 {
        let mut n = 0;
        for (probe, next_ps) in config.probes.iter().zip(&mut self.next_ps) {
            let Some(every) = period(probe).filter(|_| *next_ps == now_ps) else { continue };
            n += 1;
            *next_ps = now_ps.saturating_add(every.as_ps());
            sample(probe, now_ps, parts, cores, sink);
        }
        n
    }
}

fn period(probe: &ProbeSpec) -> Option<Time> {
    match *probe {
        ProbeSpec::Ports { every, .. } | ProbeSpec::Flows { every, .. } => {
            debug_assert!(every > Time::ZERO, "a probe has a period");
            Some(every)
        }
        ProbeSpec::Convergence { .. } => None,
    }
}

fn sample(probe: &ProbeSpec, now_ps: u64, parts: &Parts, cores: &[Mutex<Core>], sink: &mut dyn Sink) {
    match probe {
        ProbeSpec::Ports { ports, .. } => {
            for &port in ports {
                sink.port(&lock(&cores[parts.of_port(port.0)]).sample_port(port, now_ps));
            }
        }
        ProbeSpec::Flows { flows: Some(flows), .. } => {
            flows.iter().filter_map(|f| sample_flow(cores, f.0, now_ps)).for_each(|sample| sink.rate(&sample));
        }
        ProbeSpec::Flows { flows: None, .. } => {
            let mut active: Vec<u32> = cores.iter().flat_map(|core| lock(core).active_flows()).collect();
            active.sort_unstable();
            active.iter().filter_map(|&f| sample_flow(cores, f, now_ps)).for_each(|sample| sink.rate(&sample));
        }
        ProbeSpec::Convergence { .. } => {}
    }
}

fn sample_flow(cores: &[Mutex<Core>], id: u32, now_ps: u64) -> Option<RateSample> {
    let (sends, receives) = lock(&cores[0]).parts_of_flow(id);
    let delivered_bytes = lock(&cores[receives]).flows[id as usize].receiver.expected;
    let (cwnd_bytes, rate_bps) = lock(&cores[sends]).window_and_rate(id)?;
    Some(RateSample { t: Time::from_ps(now_ps), flow: FlowId(id), cwnd_bytes, rate_bps, delivered_bytes })
}

impl Core {
    fn sample_port(&self, port: PortId, now_ps: u64) -> PortSample {
        let p = &self.ports[port.index()];
        PortSample {
            t: Time::from_ps(now_ps),
            port,
            qlen_bytes: p.queued_bytes,
            tx_bytes: p.tx_bytes,
            drops: p.drops,
            ecn_marks: p.ecn_marks,
            pfc_pause: Time::from_ps(p.pause_ps(now_ps)),
        }
    }

    /// The user's flows that send here, in no order.
    fn active_flows(&self) -> Vec<u32> {
        let flows = self.senders.iter().flatten().map(|s| &self.flows[s.flow as usize]);
        flows.filter(|f| f.subflow == 0).map(|f| f.spec).filter(|&f| f < self.n_user_flows).collect()
    }

    /// Congestion window and rate of a flow that is active here.
    fn window_and_rate(&self, id: u32) -> Option<(u64, u64)> {
        let sender = self.senders.get(self.flows[id as usize].sender as usize)?.as_ref()?;
        Some(self.sum_of_subflows(id).unwrap_or((sender.cwnd, sender.rate.as_bps())))
    }
}
