//! A hang is an error: detect it, and say what is stuck.

use fairrate_units::Time;

use super::Core;
use crate::ids::PortId;
use crate::simulation::SimError;

/// Simulated time without a newly acknowledged byte after which a run with active flows counts as stalled.
const PATIENCE: Time = Time::from_ms(500);
/// Stuck entities named in the message.
const NAMED: usize = 3;

impl Core {
    /// An error if flows are active and nothing moves any more.
    pub(crate) fn check_progress(&self) -> Result<(), SimError> {
        if self.active == 0 {
            return Ok(());
        }
        let idle = Time::from_ps(self.now_ps - self.last_progress_ps);
        let only_probes = self.events.len() <= self.probe_events;
        if idle < PATIENCE && !only_probes {
            return Ok(());
        }
        let since = Time::from_ps(self.last_progress_ps);
        Err(SimError::Stalled { since, unfinished: self.active, stuck: self.describe_stuck() })
    }

    /// An error if a run without an end time has run out of events before its flows were done.
    pub(crate) fn check_end(&self) -> Result<(), SimError> {
        if self.events.is_empty() && self.finite_left > 0 {
            let since = Time::from_ps(self.last_progress_ps);
            return Err(SimError::Stalled { since, unfinished: self.active, stuck: self.describe_stuck() });
        }
        Ok(())
    }

    fn describe_stuck(&self) -> String {
        let name = |n: crate::ids::NodeId| &self.config.topology.nodes[n.index()].name;
        let flows = self.senders.iter().flatten().take(NAMED).map(|s| {
            let flow = &self.flows[s.flow as usize];
            let spec = &self.config.flows[flow.spec as usize];
            let why = match (s.paused, s.is_open()) {
                (true, _) => "is paused by its switch",
                (false, true) => "waits for its NIC",
                (false, false) => "its window is closed",
            };
            let (src, dst) = (name(spec.src), name(spec.dst));
            if flow.spec != s.flow {
                let (id, subflow, data) = (flow.spec, flow.subflow, self.flows[flow.spec as usize].receiver.expected);
                return format!("subflow {subflow} of flow {id} ({src} to {dst}, {data} bytes arrived): {why}");
            }
            format!("flow {} ({src} to {dst}) has {} of {} bytes acknowledged and {why}", s.flow, s.snd_una, s.bytes)
        });
        let ports = (0u32..).zip(&self.ports).filter(|(_, p)| p.paused != 0).take(NAMED).map(|(id, p)| {
            let (from, to) = (self.config.topology.from(PortId(id)), self.config.topology.to(PortId(id)));
            let (from, to) = (name(from), name(to));
            let why = if p.is_down() { "down" } else { "paused" };
            format!("port {from}->{to} is {why} with {} bytes waiting", p.queued_bytes)
        });
        flows.chain(ports).collect::<Vec<_>>().join("; ")
    }
}
