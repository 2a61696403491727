//! The receivers of a run's results.

use fairrate_units::Time;

use super::{
    ConvergenceSample, FlowOutcome, HostSample, Observation, PacketEvent, PacketHeader, PfcEvent, PortSample,
    RateSample, TaskOutcome, Wants,
};
use crate::ids::FlowId;

/// A receiver of results during a run.
pub trait Sink {
    /// Returns the results that the run shall report beside those that every sink receives. The run asks at each call
    /// of [`Simulation::advance`](crate::Simulation::advance).
    fn wants(&self) -> Wants {
        Wants::default()
    }
    /// Receives the outcome of a flow that has finished: its last byte was acknowledged.
    fn flow(&mut self, _outcome: &FlowOutcome) {}
    /// Receives any other observation.
    fn observe(&mut self, _observation: &Observation) {}
    /// Receives a step of a packet, in the order of time. Steps of the same time are in the order of the kinds of
    /// events that cause them, which does not depend on the number of threads. So a packet that arrives late, by a
    /// fault, just when its port is free is reported as sent and then as queued. `header` is that of the packet, if
    /// headers were wanted when the packet took the step.
    fn packet(&mut self, _event: &PacketEvent, _header: Option<&PacketHeader<'_>>) {}
    /// Receives, at each time `t` of [`SimConfig::snapshots`](crate::SimConfig::snapshots) that the run reaches, the
    /// payload bytes in order at the receiver of each of the user's flows, if snapshots are wanted.
    fn snapshot(&mut self, _t: Time, _delivered: &mut dyn Iterator<Item = (FlowId, u64)>) {}
    /// Returns `true` if the sink keeps nothing any more, as after an error of writing: the run need not go on.
    fn is_closed(&self) -> bool {
        false
    }
}

/// Takes nothing in: for runs whose totals are enough.
impl Sink for () {}

/// Two sinks of one run, each of which receives what it would receive alone.
pub struct Both<'a>(pub &'a mut dyn Sink, pub &'a mut dyn Sink);

impl Both<'_> {
    /// Calls `f` with each sink and what it wants.
    fn each(&mut self, mut f: impl FnMut(&mut dyn Sink, Wants)) {
        for sink in [&mut *self.0, &mut *self.1] {
            let wants = sink.wants();
            f(sink, wants);
        }
    }
}

impl Sink for Both<'_> {
    fn wants(&self) -> Wants {
        let (a, b) = (self.0.wants(), self.1.wants());
        Wants {
            rtts: a.rtts || b.rtts,
            packets: a.packets || b.packets,
            headers: a.headers || b.headers,
            senders: a.senders || b.senders,
            snapshots: a.snapshots || b.snapshots,
        }
    }
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.0.flow(outcome);
        self.1.flow(outcome);
    }
    fn observe(&mut self, observation: &Observation) {
        self.each(|sink, wants| {
            if wants.has(observation) {
                sink.observe(observation);
            }
        });
    }
    fn packet(&mut self, event: &PacketEvent, header: Option<&PacketHeader<'_>>) {
        self.each(|sink, wants| {
            if wants.packets {
                sink.packet(event, header.filter(|_| wants.headers));
            }
        });
    }
    fn snapshot(&mut self, t: Time, delivered: &mut dyn Iterator<Item = (FlowId, u64)>) {
        match (self.0.wants().snapshots, self.1.wants().snapshots) {
            (true, true) => {
                // The first sink may leave some out.
                let all: Vec<_> = delivered.collect();
                self.each(|sink, _| sink.snapshot(t, &mut all.iter().copied()));
            }
            (true, false) => self.0.snapshot(t, delivered),
            (false, true) => self.1.snapshot(t, delivered),
            (false, false) => {}
        }
    }
    fn is_closed(&self) -> bool {
        self.0.is_closed() || self.1.is_closed()
    }
}

/// A sink that keeps the results that every sink receives, and snapshots, in the order they are received: samples in
/// order of time, flows as they finish. It is for runs whose samples fit into memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorder {
    /// Finished flows.
    pub flows: Vec<FlowOutcome>,
    /// Tasks that have ended.
    pub tasks: Vec<TaskOutcome>,
    /// Samples of ports.
    pub ports: Vec<PortSample>,
    /// Samples of hosts' receive buffers.
    pub hosts: Vec<HostSample>,
    /// Samples of flows.
    pub rates: Vec<RateSample>,
    /// Pauses and resumptions.
    pub pfc: Vec<PfcEvent>,
    /// Changes of the set of flows, with the convergence of rates after each.
    pub convergence: Vec<ConvergenceSample>,
    /// Times of snapshots, each with the payload bytes delivered of each flow.
    pub snapshots: Vec<(Time, Vec<u64>)>,
}

impl Sink for Recorder {
    fn wants(&self) -> Wants {
        Wants { snapshots: true, ..Wants::default() }
    }
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.flows.push(*outcome);
    }
    fn observe(&mut self, observation: &Observation) {
        match *observation {
            Observation::Task(outcome) => self.tasks.push(outcome),
            Observation::Port(sample) => self.ports.push(sample),
            Observation::Host(sample) => self.hosts.push(sample),
            Observation::Rate(sample) => self.rates.push(sample),
            Observation::Pfc(event) => self.pfc.push(event),
            Observation::Convergence(sample) => self.convergence.push(sample),
            _ => {}
        }
    }
    fn snapshot(&mut self, t: Time, delivered: &mut dyn Iterator<Item = (FlowId, u64)>) {
        self.snapshots.push((t, delivered.map(|(_, bytes)| bytes).collect()));
    }
}
