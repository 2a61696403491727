//! Periodic samples of ports and flows, taken between two epochs: before all other events of that time.

use std::borrow::Cow;
use std::sync::Mutex;

use fairrate_units::Time;

use super::Part;
use super::parallel::lock;
use super::run::Run;
use crate::config::{ProbeSpec, SimConfig};
use crate::ids::{FlowId, NodeId, PortId};
use crate::output::{HostSample, Observation, PortSample, RateSample, Sampled, Sink, Watched};

/// The next sampling time of each probe.
pub(super) struct Probes {
    /// By number of the probe, in picoseconds; `u64::MAX`: never.
    next_ps: Vec<u64>,
    sampled: Sampled,
}

impl Probes {
    /// Creates the probes of a run, all of which take their first sample at time 0.
    pub(super) fn new(config: &SimConfig) -> Self {
        let first = |probe: &ProbeSpec| if period(probe).is_some() { 0 } else { u64::MAX };
        Self { next_ps: config.probes.iter().map(first).collect(), sampled: Sampled::new(&config.probes) }
    }

    /// Returns the time of the next sample in picoseconds; `u64::MAX`: there is none.
    pub(super) fn next_ps(&self) -> u64 {
        self.next_ps.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// Takes the samples of all probes that are due at `now_ps`; returns their number. A port, host or flow that
    /// several of them watch is sampled once.
    pub(super) fn sample(&mut self, now_ps: u64, run: &Run, parts: &[Mutex<Part>], sink: &mut dyn Sink) -> u64 {
        let mut n = 0;
        for (probe, next_ps) in run.config.probes.iter().zip(&mut self.next_ps) {
            let Some(every) = period(probe).filter(|_| *next_ps == now_ps) else { continue };
            n += 1;
            *next_ps = now_ps.saturating_add(every.as_ps());
            let mut is_first = |what| self.sampled.is_first(now_ps, what);
            sample(probe, now_ps, (run, parts), &mut is_first, sink);
        }
        n
    }
}

fn period(probe: &ProbeSpec) -> Option<Time> {
    match *probe {
        ProbeSpec::Ports { every, .. } | ProbeSpec::Hosts { every, .. } | ProbeSpec::Flows { every, .. } => {
            debug_assert!(every > Time::ZERO, "a probe has a period");
            Some(every)
        }
        ProbeSpec::Rtts | ProbeSpec::Convergence { .. } => None,
    }
}

/// Takes the samples of a probe, but for those of which `is_first` says that they have been taken at this time.
fn sample(
    probe: &ProbeSpec,
    now_ps: u64,
    (run, parts): (&Run, &[Mutex<Part>]),
    is_first: &mut impl FnMut(Watched) -> bool,
    sink: &mut dyn Sink,
) {
    match probe {
        ProbeSpec::Ports { ports, .. } => {
            for &port in ports.iter().filter(|&&port| is_first(Watched::Port(port))) {
                let sample = lock(&parts[usize::from(run.parts.port(port))]).sample_port(port, now_ps);
                sink.observe(&Observation::Port(sample));
            }
        }
        ProbeSpec::Hosts { hosts, .. } => {
            for &host in hosts.iter().filter(|&&host| is_first(Watched::Host(host))) {
                let port = run.routes.host_port(host).expect("every host of a topology has a link");
                let sample = lock(&parts[usize::from(run.parts.port(port))]).sample_host(host, port, now_ps);
                sink.observe(&Observation::Host(sample));
            }
        }
        ProbeSpec::Flows { flows, .. } => {
            let active = || {
                let mut active: Vec<FlowId> = parts.iter().flat_map(|p| lock(p).hosts.active_flows(run)).collect();
                active.sort_unstable();
                active
            };
            let wanted = flows.as_ref().map_or_else(|| Cow::Owned(active()), Cow::Borrowed);
            for &flow in wanted.iter().filter(|&&flow| is_first(Watched::Flow(flow))) {
                if let Some(sample) = sample_flow(run, parts, flow, now_ps) {
                    sink.observe(&Observation::Rate(sample));
                }
            }
        }
        ProbeSpec::Rtts | ProbeSpec::Convergence { .. } => {}
    }
}

fn sample_flow(run: &Run, parts: &[Mutex<Part>], id: FlowId, now_ps: u64) -> Option<RateSample> {
    let (sends, receives) = run.parts_of_flow(id);
    let delivered_bytes = lock(&parts[receives]).received(id).bytes;
    let part = lock(&parts[sends]);
    let (cwnd_bytes, rate_bps) = part.hosts.window_and_rate(&part.world, id)?;
    Some(RateSample { t: Time::from_ps(now_ps), flow: id, cwnd_bytes, rate_bps, delivered_bytes, measured: None })
}

impl Part {
    fn sample_host(&self, node: NodeId, port: PortId, now_ps: u64) -> HostSample {
        let host = self.world.net.port_of(port).expect("a host is sampled where it is").of_host;
        self.hosts.sample(host, node, now_ps)
    }

    fn sample_port(&self, port: PortId, now_ps: u64) -> PortSample {
        let p = self.world.net.port_of(port).expect("a port is sampled where it is");
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
}
