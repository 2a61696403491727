//! A hang is an error: detect it, and say what is stuck.

use std::sync::Mutex;

use fairrate_units::{Rate, Time};

use super::cluster::{lock, next_ps};
use super::{Core, deadlock};
use crate::config::{Transport, TransportConfig};
use crate::ids::{FlowId, PortId};
use crate::simulation::SimError;

/// Simulated time without a newly acknowledged byte after which a run with active flows counts as stalled, ...
const PATIENCE: Time = Time::from_ms(500);
/// ... unless that is less than so many of the longest retransmission timeouts, which a flow may be waiting for.
const TIMEOUTS: u64 = 4;
/// Stuck entities named in the message.
const NAMED: usize = 3;

/// An error if flows are active and nothing moves any more.
pub(super) fn check_progress(cores: &[Mutex<Core>]) -> Result<(), SimError> {
    let active: u64 = cores.iter().map(|core| lock(core).active).sum();
    let latest = |of: fn(&Core) -> u64| cores.iter().map(|core| of(&lock(core))).max().unwrap_or(0);
    let idle = Time::from_ps(latest(|core| core.now_ps).saturating_sub(latest(|core| core.last_progress_ps)));
    let nothing_pending = next_ps(cores) == u64::MAX;
    let patience = cores.first().map_or(PATIENCE, |core| patience(&lock(core).config.transport));
    if active == 0 || (idle < patience && !nothing_pending) {
        return Ok(());
    }
    Err(stalled(cores))
}

fn patience(transport: &TransportConfig) -> Time {
    let longest = match transport.kind {
        Transport::Tcp(tcp) => tcp.rto_max,
        Transport::Rdma => transport.rto.unwrap_or(Time::ZERO),
    };
    PATIENCE.max(Time::from_ps(longest.as_ps().saturating_mul(TIMEOUTS)))
}

/// An error if a run without an end time has run out of events before its flows were done.
pub(super) fn check_end(cores: &[Mutex<Core>]) -> Result<(), SimError> {
    let nothing_pending = next_ps(cores) == u64::MAX;
    let finite_left: u64 = cores.iter().map(|core| lock(core).finite_left).sum();
    if nothing_pending && 0 < finite_left { Err(stalled(cores)) } else { Ok(()) }
}

fn stalled(cores: &[Mutex<Core>]) -> SimError {
    let mut flows: Vec<(u32, usize)> = Vec::new();
    for (part, core) in cores.iter().enumerate() {
        flows.extend(lock(core).senders.iter().flatten().map(|s| (s.flow, part)));
    }
    flows.sort_unstable();
    let flows = flows.into_iter().take(NAMED).map(|(id, part)| {
        let core = lock(&cores[part]);
        let (spec, receives) = (core.flows[id as usize].spec, core.parts_of_flow(id).1);
        drop(core);
        let arrived = lock(&cores[receives]).flows[spec as usize].receiver.expected;
        lock(&cores[part]).describe_flow(id, arrived)
    });
    let mut ports: Vec<(u32, String)> = cores.iter().flat_map(|core| lock(core).paused_ports()).collect();
    ports.sort();
    let ports = ports.into_iter().take(NAMED).map(|(_, text)| text);
    let circle = deadlock::describe(cores);
    let stuck = circle.into_iter().chain(flows).chain(ports).collect::<Vec<_>>().join("; ");
    let since_ps = cores.iter().map(|core| lock(core).last_progress_ps).max().unwrap_or(0);
    let unfinished = cores.iter().map(|core| lock(core).active).sum();
    SimError::Stalled { since: Time::from_ps(since_ps), unfinished, stuck }
}

impl Core {
    /// What is the matter with a flow that is active here, of whose data so much has arrived.
    fn describe_flow(&self, id: u32, arrived: u64) -> String {
        let name = |n: crate::ids::NodeId| &self.config.topology.nodes[n.index()].name;
        let flow = &self.flows[id as usize];
        let s = self.senders[flow.sender as usize].as_ref().expect("an active flow has a sender");
        let spec = &self.config.flows[flow.spec as usize];
        let why = match (s.paused, s.is_open()) {
            (true, _) => "is paused by its switch",
            (false, true) => "waits for its NIC",
            (false, false) if s.rate == Rate::ZERO => "its rate is zero",
            (false, false) => "its window is closed",
        };
        let (src, dst) = (name(spec.src), name(spec.dst));
        let flow_name = spec.name(FlowId(flow.spec));
        if flow.spec != id {
            let subflow = flow.subflow;
            return format!("subflow {subflow} of flow {flow_name} ({src} to {dst}, {arrived} bytes arrived): {why}");
        }
        format!("flow {flow_name} ({src} to {dst}) has {} of {} bytes acknowledged and {why}", s.snd_una, s.bytes)
    }

    /// Whether an egress port belongs to this part.
    pub(super) fn has_port(&self, port: u32) -> bool {
        self.parts.of_port(port) == usize::from(self.part)
    }

    /// The ports of this part that may not send, some of them at least.
    fn paused_ports(&self) -> Vec<(u32, String)> {
        let ports = (0u32..).zip(&self.ports).filter(|&(id, p)| p.paused != 0 && self.has_port(id)).take(NAMED);
        let describe = |(id, p): (u32, &crate::fabric::Port)| {
            let (from, to) = (self.config.topology.from(PortId(id)), self.config.topology.to(PortId(id)));
            let name = |n: crate::ids::NodeId| &self.config.topology.nodes[n.index()].name;
            let why = if p.is_down() { "down" } else { "paused" };
            (id, format!("port {}->{} is {why} with {} bytes waiting", name(from), name(to), p.queued_bytes))
        };
        ports.map(describe).collect()
    }
}
