//! Detection of hangs, which are errors, with a description of the stuck flows and ports.

mod finite;
mod work;

pub(super) use finite::FiniteWatch;

use std::sync::{Arc, Mutex};

use fairrate_units::{Rate, Time};

use super::parallel::{lock, next_ps};
use super::run::Run;
use super::{Part, deadlock};
use crate::config::{Transport, TransportConfig};
use crate::ids::{FlowId, PortId};
use crate::simulation::SimError;
use crate::transport::Kind;

/// Simulated time without a newly acknowledged byte after which a run with active flows counts as stalled, ...
const PATIENCE: Time = Time::from_ms(500);
/// ... unless this number of the longest retransmission timeouts or base RTTs, which a flow may be waiting for, takes
/// longer.
const TIMEOUTS: u64 = 4;
/// Number of stuck entities named in the message.
const NAMED: usize = 3;

/// Returns an error if flows are active and make no progress any more.
pub(super) fn check_progress(parts: &[Mutex<Part>]) -> Result<(), SimError> {
    let active: u64 = parts.iter().map(|part| lock(part).hosts.counts().0).sum();
    let latest = |of: fn(&Part) -> u64| parts.iter().map(|part| of(&lock(part))).max().unwrap_or(0);
    let idle = Time::from_ps(
        latest(|part| part.world.clock.reached_ps()).saturating_sub(latest(|part| part.hosts.last_progress_ps)),
    );
    let nothing_pending = next_ps(parts) == u64::MAX;
    let patience = parts.first().map_or(PATIENCE, |part| patience(&lock(part).world.run));
    if active == 0 || (idle < patience && !nothing_pending) {
        return Ok(());
    }
    Err(stalled(parts))
}

fn patience(run: &Run) -> Time {
    let timeout = |transport: &TransportConfig| match transport.kind {
        Transport::Tcp(tcp) => tcp.rto_max,
        Transport::Rdma | Transport::Uet { .. } => transport.rto.unwrap_or(Time::ZERO),
    };
    let timeouts = run.config.stacks().map(|(transport, _)| timeout(transport));
    let longest = timeouts.fold(run.constants.base_rtt, Time::max);
    PATIENCE.max(Time::from_ps(longest.as_ps().saturating_mul(TIMEOUTS)))
}

/// Returns an error if a run without an end time has run out of events before its flows were done.
pub(super) fn check_end(parts: &[Mutex<Part>]) -> Result<(), SimError> {
    let nothing_pending = next_ps(parts) == u64::MAX;
    let finite_left: u64 = parts.iter().map(|part| lock(part).hosts.counts().1).sum();
    if nothing_pending && 0 < finite_left { Err(stalled(parts)) } else { Ok(()) }
}

/// Returns descriptions of the first [`NAMED`] flows under way that `is_meant` accepts.
fn stuck_flows(parts: &[Mutex<Part>], is_meant: impl Fn(&Run, FlowId) -> bool) -> Vec<String> {
    let mut flows: Vec<(FlowId, usize)> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let part = lock(part);
        let meant = part.hosts.senders.iter().flatten().filter(|s| is_meant(&part.world.run, s.flow));
        flows.extend(meant.map(|s| (s.flow, number)));
    }
    flows.sort_unstable();
    let describe = |(id, number): (FlowId, usize)| {
        let run = Arc::clone(&lock(&parts[number]).world.run);
        let (user_flow, receives) = (run.flow(id).parent, run.parts_of_flow(id).1);
        let arrived = lock(&parts[receives]).received(user_flow).bytes;
        lock(&parts[number]).describe_flow(id, arrived)
    };
    flows.into_iter().take(NAMED).map(describe).collect()
}

fn stalled(parts: &[Mutex<Part>]) -> SimError {
    let flows = stuck_flows(parts, |_, _| true);
    let mut ports: Vec<(PortId, String)> = parts.iter().flat_map(|part| lock(part).paused_ports()).collect();
    ports.sort();
    let ports = ports.into_iter().take(NAMED).map(|(_, text)| text);
    let mut waiting: Vec<(FlowId, String)> = parts.iter().flat_map(|part| lock(part).waiting_flows()).collect();
    waiting.sort();
    let waiting = waiting.into_iter().take(NAMED).map(|(_, text)| text);
    let circle = deadlock::describe(parts);
    let stuck = circle.into_iter().chain(flows).chain(ports).chain(waiting).collect::<Vec<_>>().join("; ");
    let since_ps = parts.iter().map(|part| lock(part).hosts.last_progress_ps).max().unwrap_or(0);
    let unfinished = parts.iter().map(|part| lock(part).hosts.counts().0).sum();
    SimError::Stalled { since: Time::from_ps(since_ps), unfinished, stuck }
}

impl Part {
    /// Describes the state of a flow that is active here, with `arrived` bytes at its receiver.
    fn describe_flow(&self, id: FlowId, arrived: u64) -> String {
        let run = &self.world.run;
        let name = |n: crate::ids::NodeId| &run.config.topology.nodes[n.index()].name;
        let flow = run.flow(id);
        let s = self.hosts.sender(self.hosts.sending[id].sender);
        let spec = &run.config.flows[flow.parent.index()];
        let why = match (s.paused, s.is_open()) {
            (true, _) => "is paused by its switch",
            (false, true) => "waits for its NIC",
            (false, false) if s.rate == Rate::ZERO => "its rate is zero",
            (false, false) => "its window is closed",
        };
        let (src, dst) = (name(spec.src), name(spec.dst));
        let flow_name = spec.name(flow.parent);
        if flow.parent != id {
            let subflow = flow.subflow();
            return format!("subflow {subflow} of flow {flow_name} ({src} to {dst}, {arrived} bytes arrived): {why}");
        }
        // HOMA's senders count only the bytes that they may send.
        let bytes = if s.transport == Kind::Homa { flow.bytes } else { s.bytes };
        let work = work::of_flow(&run.config, flow.parent);
        format!("flow {flow_name} ({src} to {dst}{work}) has {} of {bytes} bytes acknowledged and {why}", s.snd_una)
    }

    /// Describes up to [`NAMED`] flows of this part that wait for others.
    fn waiting_flows(&self) -> Vec<(FlowId, String)> {
        let config = &self.world.run.config;
        let name = |id: FlowId| {
            let spec = &config.flows[id.index()];
            let node = |n: crate::ids::NodeId| &config.topology.nodes[n.index()].name;
            let work = work::of_flow(config, id);
            format!("flow {} ({} to {}{work})", spec.name(id), node(spec.src), node(spec.dst))
        };
        let describe = |id: FlowId| {
            let unmet = self.hosts.waits_for(&self.world.run, id);
            let &(before, on) = unmet.first()?;
            let more = match unmet.len() - 1 {
                0 => String::new(),
                n => format!(", and for {n} more"),
            };
            let until = match (before.flow(), before.task()) {
                (None, Some(task)) => {
                    let host = config.tasks[task.index()].host;
                    let name = &config.topology.nodes[host.index()].name;
                    work::of_task(config, task).unwrap_or_else(|| format!("{name} is done with a task"))
                }
                (flow, _) => format!("{} has {}", flow.map_or_else(String::new, name), on.verb()),
            };
            let text = format!("{} waits until {until}{more}", name(id));
            Some((id, text))
        };
        self.hosts.waiting().into_iter().take(NAMED).filter_map(describe).collect()
    }

    /// Describes up to [`NAMED`] ports of this part that may not send.
    fn paused_ports(&self) -> Vec<(PortId, String)> {
        let topology = &self.world.run.config.topology;
        let ports = self.own_ports().filter(|(_, p)| p.paused != 0).take(NAMED);
        let describe = |(id, p): (PortId, &crate::fabric::Port)| {
            let (from, to) = (topology.from(id), topology.to(id));
            let name = |n: crate::ids::NodeId| &topology.nodes[n.index()].name;
            let why = if p.is_down() { "down" } else { "paused" };
            (id, format!("port {}->{} is {why} with {} bytes waiting", name(from), name(to), p.queued_bytes))
        };
        ports.map(describe).collect()
    }
}
