//! The thread that samples queues and connections.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use fairrate_sim::{FlowId, MeasuredSender, NodeId, PortId, PortSample, ProbeSpec, RateSample, SimConfig};
use fairrate_units::Time;

use crate::failure::Failure;
use crate::field::LEAST_INTERVAL;
use crate::plan::Plan;
use crate::qdisc::{PortCounters, Queues};
use crate::shared::{Message, Phase, Shared};

/// A probe: its interval, its next time, and the sampled object.
struct Probe {
    every: Time,
    next: Time,
    what: What,
}

enum What {
    Ports(Vec<Queues>),
    Flows(Vec<FlowId>),
}

/// All probes of a scenario.
pub struct Sampler<'a> {
    shared: &'a Shared,
    told: Sender<Message>,
    probes: Vec<Probe>,
    /// Packets dropped and bytes sent before the start.
    before: BTreeMap<PortId, PortCounters>,
}

impl<'a> Sampler<'a> {
    /// Opens the probes of a scenario.
    ///
    /// # Errors
    /// If a port's device does not exist.
    pub fn new(
        shared: &'a Shared,
        config: &SimConfig,
        plan: &Plan<'_>,
        before: BTreeMap<PortId, PortCounters>,
        told: Sender<Message>,
    ) -> Result<Self, Failure> {
        let probe = |spec: &ProbeSpec| {
            let (every, what) = match spec {
                ProbeSpec::Ports { ports, every } => (every, What::Ports(open(config, plan, ports)?)),
                ProbeSpec::Flows { flows, every } => {
                    let all = || (0..config.flows.len() as u32).map(FlowId).collect();
                    (every, What::Flows(flows.clone().unwrap_or_else(all)))
                }
                ProbeSpec::Hosts { .. } | ProbeSpec::Rtts | ProbeSpec::Convergence { .. } => return Ok(None),
            };
            Ok(Some(Probe { every: (*every).max(LEAST_INTERVAL), next: Time::ZERO, what }))
        };
        let probes = config.probes.iter().filter_map(|spec| probe(spec).transpose()).collect::<Result<_, Failure>>()?;
        Ok(Self { shared, told, probes, before })
    }

    /// Samples until the run is over.
    ///
    /// # Errors
    /// If the kernel does not report its counters.
    pub fn run(mut self) -> Result<(), Failure> {
        // Sleeps then end on time, and not 50 us later.
        nix::sys::prctl::set_timerslack(1).map_err(|e| Failure::system("setting the timer slack", e))?;
        loop {
            let Some(next) = self.probes.iter().map(|probe| probe.next).min() else { return Ok(()) };
            let now = std::time::Instant::now();
            std::thread::sleep(self.shared.clock.at(next).saturating_duration_since(now));
            if self.shared.is_over() {
                return Ok(());
            }
            self.tell(Message::SampledLate(self.shared.clock.now().saturating_sub(next)));
            for i in 0..self.probes.len() {
                if self.probes[i].next <= next {
                    self.sample(i)?;
                    let now = self.shared.clock.now();
                    let probe = &mut self.probes[i];
                    // Samples whose time has passed are left out.
                    let periods = now.saturating_sub(probe.next).as_ps() / probe.every.as_ps() + 1;
                    probe.next += probe.every * periods;
                }
            }
        }
    }

    fn sample(&mut self, probe: usize) -> Result<(), Failure> {
        let Self { shared, told, probes, before } = self;
        let tell = |told: &Sender<Message>, what| {
            // The channel is closed only once the run is over.
            let _ = told.send(what);
        };
        match &mut probes[probe].what {
            What::Ports(all) => {
                for queues in all {
                    let t = shared.clock.now();
                    queues.read(|port, counters| {
                        let before = before.get(&port).copied().unwrap_or_default();
                        tell(told, Message::Port(port_sample(t, port, counters, before)));
                    })?;
                }
            }
            What::Flows(flows) => {
                for &flow in flows.iter().filter(|flow| shared.progress[flow.index()].phase() == Phase::Active) {
                    tell(told, Message::Rate(rate_sample(shared, flow)?));
                }
            }
        }
        Ok(())
    }

    fn tell(&self, told: Message) {
        // The channel is closed only once the run is over.
        let _ = self.told.send(told);
    }
}

/// Opens the queues of ports, by namespace.
///
/// # Errors
/// If a port's device does not exist.
pub fn open(config: &SimConfig, plan: &Plan<'_>, ports: &[PortId]) -> Result<Vec<Queues>, Failure> {
    let mut by_node: BTreeMap<NodeId, Vec<PortId>> = BTreeMap::new();
    for &port in ports {
        by_node.entry(config.topology.from(port)).or_default().push(port);
    }
    by_node.iter().map(|(node, ports)| Queues::open(&plan.namespace(*node), ports)).collect()
}

fn port_sample(t: Time, port: PortId, now: PortCounters, before: PortCounters) -> PortSample {
    PortSample {
        t,
        port,
        qlen_bytes: now.backlog_bytes,
        tx_bytes: now.tx_bytes - before.tx_bytes,
        drops: now.drops - before.drops,
        ecn_marks: 0,
        pfc_pause: Time::ZERO,
    }
}

fn rate_sample(shared: &Shared, flow: FlowId) -> Result<RateSample, Failure> {
    let t = shared.clock.now();
    let info = shared.connections[flow.index()].sent()?;
    let delivered = shared.progress[flow.index()].delivered.load(std::sync::atomic::Ordering::Acquire);
    Ok(RateSample {
        t,
        flow,
        cwnd_bytes: info.cwnd_bytes,
        rate_bps: info.pacing_bps.unwrap_or(0),
        delivered_bytes: delivered,
        measured: Some(MeasuredSender {
            rtt: Time::from_us(u64::from(info.rtt_us)),
            retransmitted_bytes: info.bytes_retransmitted,
        }),
    })
}
