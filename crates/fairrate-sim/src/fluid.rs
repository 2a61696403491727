//! A run in which every flow has its exact max-min rate at every moment: no packets, no queues, no feedback.
//!
//! Flows are fluids. At every arrival and departure rates are computed anew, for the flows that it can affect: those
//! that share links with it, or with others that do. In between nothing happens. Served bytes are bytes on the wire,
//! headers included, and leave all links of a path at once; acknowledgments take no capacity. When its last bit has
//! left, a flow stops competing; the rest of its way takes as long as it would take after the last bit at the slowest
//! link if the flow were alone: alone, it takes its ideal completion time to the picosecond. Meanwhile its last packet
//! counts as in flight.

mod changes;
mod links;
mod neighbours;
mod outcome;
mod probes;
mod rings;
mod sizes;
mod waits;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use fairrate_control::Oracle;
use fairrate_units::{Bytes, Rate, Time};

use self::changes::Changes;
use self::neighbours::Neighbours;
use self::rings::Rings;
use self::waits::Waits;
use crate::config::{Activity, Milestone, ProbeSpec, SimConfig, Successors, Trigger};
use crate::core::framing;
use crate::engine::{Event, EventKind};
use crate::ideal::{self, Framing};
use crate::ids::{FlowId, PortId};
use crate::optimum::Optimum;
use crate::output::{ConvergenceSample, Observation, RunTotals, Sampled, Sink};
use crate::routing::{FlowKey, Routes};
use crate::table::Table;

const NEVER: u64 = u64::MAX;
const PS_PER_S: f64 = 1e12;

/// A run.
pub(crate) struct Fluid {
    config: SimConfig,
    oracle: Oracle,
    routes: Routes,
    framing: Framing,
    now_ps: u64,
    end_ps: u64,
    /// Pending events, without the ends of flows' service.
    events: BinaryHeap<Reverse<Event>>,
    flows: Table<FlowId, FlowState>,
    /// Number of flows that start at a given time and have not started yet.
    starts_left: u64,
    finite_left: u64,
    /// The flows that are served.
    served: Vec<Served>,
    solver: Optimum,
    /// The rates that links have now.
    rates: Table<PortId, Rate>,
    neighbours: Neighbours,
    /// The times at which last bits leave at the rates of now, and those of rates that hold no more.
    ends: BinaryHeap<Reverse<Event>>,
    /// The event of the next last bit that leaves.
    next_end: Option<Event>,
    paths: Vec<PortId>,
    path_buffer: Vec<PortId>,
    /// Wire bytes sent through each port by flows that are not served any more.
    port_bytes: Table<PortId, u64>,
    changes: Changes,
    successors: Successors,
    waits: Waits,
    rings: Rings,
    totals: RunTotals,
    /// Number of the run's snapshots that were taken.
    n_snapshots: usize,
    sampled: Sampled,
}

/// One flow for the whole run.
#[derive(Clone, Debug, Default)]
struct FlowState {
    start_ps: u64,
    /// Payload bytes; `u64::MAX` while endless.
    bytes: u64,
    endless: bool,
    /// See [`FlowSpec::steps`](crate::FlowSpec::steps).
    steps: u32,
    /// The range of its ports in the table of paths; empty before it starts.
    path: Range<usize>,
    successor: Option<(FlowId, u64)>,
    /// Time from the last bit out of the sender to the last byte at the receiver; for a merged flow, that of each
    /// message. It can be below 0 where times are cut to nanoseconds: then packets are faster than their rate.
    tail_ps: i64,
    /// Time of an acknowledgment on its way back.
    back_ps: u64,
    place: Option<usize>,
    fct_ps: Option<u64>,
    /// Time at which the last bit had left.
    sent_ps: Option<u64>,
    over: bool,
}

/// A flow that is served.
#[derive(Clone, Copy, Debug)]
struct Served {
    flow: FlowId,
    /// All bits on the wire; infinite while endless.
    bits: f64,
    /// Number of bits that had left at `since_ps`, the time from which the rate holds.
    sent_bits: f64,
    since_ps: u64,
    rate_bps: f64,
    /// Time at which the last bit leaves.
    end_ps: u64,
}

impl Served {
    fn sent_bits_at(&self, now_ps: u64) -> f64 {
        let more = self.rate_bps * (now_ps - self.since_ps) as f64 / PS_PER_S;
        (self.sent_bits + more).min(self.bits)
    }

    fn sent_bytes_at(&self, now_ps: u64) -> u64 {
        (self.sent_bits_at(now_ps) / 8.0) as u64
    }

    /// Serves the flow at `rate_bps` from now on. Returns `true` if that changes the rate.
    fn serve_at(&mut self, rate_bps: f64, now_ps: u64) -> bool {
        // An unchanged rate is not applied again: nothing is rounded because other flows arrive and depart elsewhere.
        if rate_bps.to_bits() == self.rate_bps.to_bits() {
            return false;
        }
        self.sent_bits = self.sent_bits_at(now_ps);
        (self.since_ps, self.rate_bps) = (now_ps, rate_bps);
        self.end_ps = now_ps.saturating_add(duration_ps(self.bits - self.sent_bits, rate_bps));
        true
    }
}

fn duration_ps(bits: f64, rate_bps: f64) -> u64 {
    (bits * PS_PER_S / rate_bps + 0.5) as u64
}

impl Fluid {
    pub(crate) fn new(config: SimConfig, oracle: Oracle) -> Self {
        let routes = Routes::of(&config);
        let framing = framing(&config);
        let (clock, rule) = (config.fabric.clock, config.transport.base_rtt);
        let base_rtt = ideal::network_base_rtt(&config.topology, &routes, clock, framing, rule, &[]);
        let (flows, rates) = (flow_states(&config), config.rates_at(Time::ZERO));
        let timed = || config.flows.iter().zip(&flows).filter(|(spec, _)| spec.trigger == Trigger::Time);
        let mut fluid = Self {
            now_ps: 0,
            end_ps: config.stop.at.map_or(NEVER, Time::as_ps),
            events: BinaryHeap::new(),
            starts_left: timed().count() as u64,
            finite_left: (config.flows.iter().filter(|spec| spec.trigger.is_sure() && spec.bytes < Bytes::MAX).count()
                + config.tasks.len()) as u64,
            served: Vec::new(),
            solver: Optimum::new(&config, oracle, &rates),
            rates: rates.into(),
            neighbours: Neighbours::new(config.topology.n_ports(), flows.len()),
            ends: BinaryHeap::new(),
            next_end: None,
            paths: Vec::new(),
            path_buffer: Vec::new(),
            port_bytes: vec![0; config.topology.n_ports()].into(),
            changes: Changes { settled_ps: NEVER, ..Changes::default() },
            successors: Successors::new((config.flows.len(), config.tasks.len()), &config.dependencies),
            waits: Waits::new(&config),
            rings: Rings::default(),
            totals: RunTotals::default(),
            n_snapshots: 0,
            sampled: Sampled::new(&config.probes),
            routes,
            framing,
            flows,
            oracle,
            config,
        };
        fluid.schedule_first_events(base_rtt);
        fluid
    }

    fn schedule_first_events(&mut self, base_rtt: Time) {
        for id in self.flows.numbers() {
            if self.config.flows[id.index()].trigger == Trigger::Time {
                self.schedule(self.flows[id].start_ps, EventKind::FlowStart, id);
            }
        }
        self.schedule_tasks();
        self.schedule_slow_links();
        for index in 0..self.config.probes.len() as u32 {
            if let ProbeSpec::Convergence { hold_rtts, .. } = self.config.probes[index as usize] {
                self.changes.observed = true;
                self.changes.hold_ps = base_rtt.as_ps().saturating_mul(u64::from(hold_rtts));
            } else {
                self.schedule(0, EventKind::Probe, index);
            }
        }
        if self.starts_left == 0 && !self.config.changes.is_empty() {
            self.settle_at(0);
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_ps(self.now_ps)
    }

    pub(crate) fn config(&self) -> &SimConfig {
        &self.config
    }

    /// Returns the number of packets serialised, which is zero, and of flows done.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.totals.packet_hops, self.totals.flows_done)
    }

    /// Returns the totals so far; checks that bytes are conserved.
    pub(crate) fn totals(&self) -> RunTotals {
        let mut totals = self.totals;
        totals.end = self.now();
        totals.flows_unfinished = self.unfinished_ids().filter(|&id| !self.flows[id].endless).count() as u64;
        let served: u64 = self.served.iter().map(|served| served.sent_bytes_at(self.now_ps)).sum();
        totals.sent_bytes += served;
        totals.in_flight_bytes = self.flows.iter().map(|flow| self.in_flight(flow).wire).sum();
        assert!(totals.in_flight_bytes <= totals.sent_bytes, "bytes are conserved: sent = delivered + in flight");
        totals.delivered_bytes = totals.sent_bytes - totals.in_flight_bytes;
        totals
    }

    /// Processes up to `max_events` events; returns `true` if the run is over.
    pub(crate) fn advance(&mut self, max_events: u64, sink: &mut dyn Sink) -> bool {
        for _ in 0..max_events {
            if self.neighbours.is_stale() && self.next_event().is_none_or(|event| self.now_ps < event.time_ps) {
                self.compute_rates(sink);
            }
            let Some(event) = self.next_event() else {
                if self.end_ps < NEVER {
                    self.take_snapshots(self.end_ps, sink);
                    self.now_ps = self.end_ps;
                }
                return true;
            };
            debug_assert!(self.now_ps <= event.time_ps, "time never runs backward");
            self.take_snapshots(event.time_ps.min(self.end_ps), sink);
            if self.end_ps < event.time_ps {
                self.now_ps = self.end_ps;
                return true;
            }
            self.now_ps = event.time_ps;
            self.totals.events += 1;
            self.totals.fingerprint = self.totals.fingerprint.wrapping_add(event.print());
            self.handle(event, sink);
            if self.is_over() {
                return true;
            }
        }
        false
    }

    fn is_over(&self) -> bool {
        let changes_are_done =
            self.changes.n_done == self.config.changes.len() && !self.changes.is_starting && !self.is_settling();
        self.config.stop.when_flows_done && self.finite_left == 0 && self.starts_left == 0 && changes_are_done
    }

    fn next_event(&self) -> Option<Event> {
        let scheduled = self.events.peek().map(|event| event.0);
        scheduled.into_iter().chain(self.next_end).min()
    }

    fn handle(&mut self, event: Event, sink: &mut dyn Sink) {
        let entity = event.entity();
        if event.kind() == EventKind::TxDone {
            self.on_last_bit(FlowId(entity));
            return;
        }
        self.events.pop();
        match event.kind() {
            EventKind::FlowStart => self.on_start(Activity::from_entity(entity), sink),
            EventKind::FlowStop => self.on_flow_stop(FlowId(entity)),
            EventKind::Arrive => self.on_last_ack(FlowId(entity), sink),
            EventKind::Probe => self.on_probe(entity, sink),
            EventKind::Settled => self.on_settled(),
            EventKind::Flap => self.on_slow_links(entity as usize),
            _ => unreachable!("a fluid has no {:?}", event.kind()),
        }
    }

    fn schedule(&mut self, time_ps: u64, kind: EventKind, entity: impl Into<u32>) {
        self.events.push(Reverse(Event::new(time_ps, kind, entity.into())));
    }

    fn on_flow_start(&mut self, id: FlowId) {
        let spec = &self.config.flows[id.index()];
        self.starts_left -= u64::from(spec.trigger == Trigger::Time);
        let stop = spec.stop;
        self.lay_path(id);
        let flow = &mut self.flows[id];
        flow.start_ps = self.now_ps;
        flow.place = Some(self.served.len());
        let (bytes, endless, steps) = (flow.bytes, flow.endless, flow.steps);
        let bits = if endless { f64::INFINITY } else { self.wire_bytes_of(bytes, steps) as f64 * 8.0 };
        let (sent_bits, rate_bps) = (0.0, 0.0);
        self.served.push(Served { flow: id, bits, sent_bits, since_ps: self.now_ps, rate_bps, end_ps: NEVER });
        self.neighbours.join(id, &self.paths[self.flows[id].path.clone()]);
        self.changes.is_starting = false;
        self.changes.last = Some((id, true));
        if stop < Time::MAX && endless {
            self.schedule(stop.as_ps().max(self.now_ps), EventKind::FlowStop, id);
        }
    }

    /// Finds the flow's path, and the delays that follow from it.
    fn lay_path(&mut self, id: FlowId) {
        let spec = &self.config.flows[id.index()];
        let key = FlowKey::of(spec);
        let (ecmp, seed, clock) = (self.config.fabric.ecmp, self.config.seed, self.config.fabric.clock);
        self.routes.path(ecmp, seed, key.reversed(), &mut self.path_buffer);
        let back = self.hops(&self.path_buffer);
        let back = back.iter().map(|hop| ideal::tx_time(clock, hop.rate, self.framing.ack) + hop.delay);
        let back_ps = back.fold(Time::ZERO, |sum, time| sum + time).as_ps();
        self.routes.path(ecmp, seed, key, &mut self.path_buffer);
        let start = self.paths.len();
        self.paths.extend(&self.path_buffer);
        let hops = self.hops(&self.path_buffer);
        let FlowState { bytes, steps, .. } = self.flows[id];
        let tail_ps = if self.flows[id].endless {
            // Packets are not distinguished: the way of a full packet that has left the first link already.
            let full = self.framing.mtu + self.framing.header;
            let way = hops.iter().fold(Time::ZERO, |sum, hop| sum + ideal::tx_time(clock, hop.rate, full) + hop.delay);
            (way - ideal::tx_time(clock, hops[0].rate, full)).as_ps().cast_signed()
        } else {
            self.tail_ps(&hops, bytes, steps)
        };
        let flow = &mut self.flows[id];
        (flow.path, flow.tail_ps, flow.back_ps) = (start..self.paths.len(), tail_ps, back_ps);
    }

    /// Handles the last bit of a flow that leaves its sender.
    fn on_last_bit(&mut self, id: FlowId) {
        self.remove(id);
        if 1 < self.flows[id].steps {
            self.on_merged(id);
            return;
        }
        self.arrive(id, self.now_ps.saturating_add_signed(self.flows[id].tail_ps));
    }

    /// Plans the end of a flow whose last bit has left, and whose last byte arrives at `at_receiver_ps`.
    fn arrive(&mut self, id: FlowId, at_receiver_ps: u64) {
        let flow = &self.flows[id];
        let at_sender_ps = at_receiver_ps.saturating_add(flow.back_ps).max(self.now_ps);
        let fct_ps = at_receiver_ps - flow.start_ps.min(at_receiver_ps);
        self.flows[id].fct_ps = Some(fct_ps);
        self.flows[id].sent_ps = Some(self.now_ps);
        self.schedule(at_sender_ps, EventKind::Arrive, id);
        self.release(id.into(), Milestone::Arrived, at_receiver_ps);
        self.release(id.into(), Milestone::Sent, self.now_ps);
        self.release(id.into(), Milestone::Acknowledged, at_sender_ps);
    }

    /// Stops an endless flow, which sends no new data from now on.
    fn on_flow_stop(&mut self, id: FlowId) {
        let Some(place) = self.flows[id].place else { return };
        let sent = self.served[place].sent_bytes_at(self.now_ps);
        self.flows[id].bytes = self.payload_bytes(sent);
        self.remove(id);
        let flow = &self.flows[id];
        let at_sender_ps = self.now_ps.saturating_add_signed(flow.tail_ps).saturating_add(flow.back_ps);
        self.schedule(at_sender_ps, EventKind::Arrive, id);
    }

    /// Removes a flow from those that are served.
    fn remove(&mut self, id: FlowId) {
        let Some(place) = self.flows[id].place.take() else { return };
        let served = self.served.swap_remove(place);
        if let Some(moved) = self.served.get(place) {
            self.flows[moved.flow].place = Some(place);
        }
        let whole = served.end_ps <= self.now_ps;
        let bytes = if whole { (served.bits / 8.0) as u64 } else { served.sent_bytes_at(self.now_ps) };
        self.totals.sent_bytes += bytes;
        let path = &self.paths[self.flows[id].path.clone()];
        for &port in path {
            self.port_bytes[port] += bytes;
        }
        self.neighbours.leave(id, path);
        self.changes.last = Some((id, false));
        self.find_next_end();
    }

    fn find_next_end(&mut self) {
        let holds = |event: &Event| {
            let place = self.flows[FlowId(event.entity())].place;
            place.is_some_and(|place| self.served[place].end_ps == event.time_ps)
        };
        while self.ends.peek().is_some_and(|Reverse(event)| !holds(event)) {
            self.ends.pop();
        }
        self.next_end = self.ends.peek().map(|event| event.0);
    }

    /// Finishes a flow whose last acknowledgment has returned.
    fn on_last_ack(&mut self, id: FlowId, sink: &mut dyn Sink) {
        let flow = &mut self.flows[id];
        flow.over = true;
        if !flow.endless {
            self.finite_left -= 1;
            self.totals.flows_done += 1;
        }
        if let Some((successor, delay_ps)) = flow.successor {
            let at = self.now_ps.saturating_add(delay_ps);
            if at < self.config.flows[successor.index()].stop.as_ps() {
                self.finite_left += u64::from(!self.flows[successor].endless);
                self.schedule(at, EventKind::FlowStart, successor);
            }
        }
        sink.flow(&self.outcome(id));
    }

    /// Computes the rates of the flows that arrivals and departures since the last time can affect.
    fn compute_rates(&mut self, sink: &mut dyn Sink) {
        let affected = match self.oracle {
            Oracle::MaxMin => self.neighbours.take_affected(|flow| &self.paths[self.flows[flow].path.clone()]),
            Oracle::Alone => self.neighbours.take_joined(),
        };
        let mut places: Vec<usize> = affected.iter().filter_map(|&flow| self.flows[flow].place).collect();
        // In the order in which they are served, so that equal flows get equal bits whoever else there is.
        places.sort_unstable();
        self.solver.clear();
        for &place in &places {
            let flow = self.served[place].flow;
            let path = &self.paths[self.flows[flow].path.clone()];
            self.solver.add(&self.config, &self.config.flows[flow.index()], path.iter().copied());
        }
        for (&place, &rate_bps) in places.iter().zip(self.solver.solve()) {
            let served = &mut self.served[place];
            if served.serve_at(rate_bps, self.now_ps) && served.end_ps < NEVER {
                self.ends.push(Reverse(Event::new(served.end_ps, EventKind::TxDone, served.flow.into())));
            }
        }
        self.find_next_end();
        let change = self.changes.last.take();
        if let Some((flow, arrival)) = change.filter(|_| self.changes.observed) {
            if !self.served.is_empty() {
                sink.observe(&Observation::Convergence(ConvergenceSample {
                    t: self.now(),
                    flow,
                    arrival,
                    n_flows: self.served.len() as u32,
                    time: Some(Time::ZERO),
                    rtts: Some(0.0),
                }));
            }
            if !self.config.changes.is_empty() {
                self.settle_at(self.now_ps.saturating_add(self.changes.hold_ps));
            }
        }
    }
}

/// Returns the state of the flows before the first event.
fn flow_states(config: &SimConfig) -> Table<FlowId, FlowState> {
    let state = |spec: &crate::config::FlowSpec| {
        let bytes = spec.bytes.as_u64();
        FlowState {
            start_ps: spec.start.as_ps(),
            bytes,
            endless: bytes == u64::MAX,
            steps: spec.steps.into(),
            ..FlowState::default()
        }
    };
    let mut flows: Table<FlowId, FlowState> = config.flows.iter().map(state).collect();
    for (id, spec) in (0..).map(FlowId).zip(&config.flows) {
        if let Trigger::After(before, delay) = spec.trigger {
            flows[before].successor = Some((id, delay.as_ps()));
        }
    }
    flows
}
