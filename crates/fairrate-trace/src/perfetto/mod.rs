//! A trace for Perfetto: nodes with their ports, and flows.

mod event;
mod proto;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use fairrate_sim::{FlowId, PacketKind, PacketStep, PfcEvent, PortId, SenderEvent, SenderStep};
use fairrate_units::Time;

use self::event::{Arrow, Facts, Unit};
use crate::network::{Network, kind_name};
use crate::output::Output;
use crate::tracer::{End, Format, Step};

/// Bytes that are kept for the moment that says why the file ends.
const RESERVE: u64 = 256;

/// Tracks of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Track {
    Flows,
    Node(u32),
    Port(PortId),
    Queue(PortId),
    /// Pauses of a class.
    Pauses(PortId, u8),
    Flow(FlowId),
    Window(FlowId),
    Rate(FlowId),
}

impl Track {
    /// Returns the number of the track, which is never 0.
    fn id(self) -> u64 {
        let (kind, number, more) = match self {
            Self::Flows => (1, 0, 0),
            Self::Node(node) => (2, node, 0),
            Self::Port(port) => (3, port.0, 0),
            Self::Queue(port) => (4, port.0, 0),
            Self::Pauses(port, class) => (5, port.0, class),
            Self::Flow(flow) => (6, flow.0, 0),
            Self::Window(flow) => (7, flow.0, 0),
            Self::Rate(flow) => (8, flow.0, 0),
        };
        kind << 48 | u64::from(more) << 32 | u64::from(number)
    }
}

/// A writer of traces for Perfetto.
pub struct Perfetto {
    network: Network,
    out: Output,
    /// The tracks that are described.
    known: HashSet<Track>,
    /// The last value of each counter.
    values: HashMap<u64, u64>,
    /// Lost data that was not sent again yet, each with the number of its arrow.
    lost: HashMap<(FlowId, u64), u64>,
    n_arrows: u64,
    /// Events that are not written yet.
    pending: Vec<u8>,
}

impl Perfetto {
    /// Begins a trace of a run in `network`.
    pub fn new(network: Network, out: Output) -> Self {
        let (known, values, lost) = (HashSet::new(), HashMap::new(), HashMap::new());
        Self { network, out, known, values, lost, n_arrows: 0, pending: Vec::new() }
    }

    /// Returns the number of a track, which is described before its first event.
    fn track(&mut self, track: Track) -> u64 {
        let id = track.id();
        if !self.known.insert(track) {
            return id;
        }
        let network = &self.network;
        let described = match track {
            Track::Flows => event::track(id, 0, "flows"),
            Track::Node(node) => event::track(id, 0, &network.nodes[node as usize]),
            Track::Port(port) => {
                let name = network.ports[port.index()].clone();
                let node = self.track(Track::Node(self.network.from[port.index()].0));
                event::track(id, node, &name)
            }
            Track::Queue(port) => {
                let parent = self.track(Track::Port(port));
                event::counter_track(id, parent, "queue", Unit::Bytes)
            }
            Track::Pauses(port, class) => {
                let parent = self.track(Track::Port(port));
                event::track(id, parent, &format!("class {class} paused"))
            }
            Track::Flow(flow) => {
                let parent = self.track(Track::Flows);
                let name = self.flow_name(flow);
                event::track(id, parent, &name)
            }
            Track::Window(flow) => {
                let parent = self.track(Track::Flow(flow));
                event::counter_track(id, parent, "window", Unit::Bytes)
            }
            Track::Rate(flow) => {
                let parent = self.track(Track::Flow(flow));
                event::counter_track(id, parent, "rate", Unit::BitsPerSecond)
            }
        };
        self.pending.extend_from_slice(&described);
        id
    }

    fn flow_name(&self, flow: FlowId) -> String {
        self.network.number(flow).map_or_else(|| "allocator".to_owned(), |number| format!("flow {number}"))
    }

    /// Adds the value of a counter, if it has changed.
    fn count(&mut self, t: Time, track: Track, value: u64) {
        let id = self.track(track);
        if self.values.insert(id, value) != Some(value) {
            self.pending.extend_from_slice(&event::value(t, id, value));
        }
    }

    /// Writes what is pending, if there is room. If not, writes a moment that says so.
    fn put(&mut self, t: Time, track: Track) -> io::Result<End> {
        if self.out.has_room(self.pending.len() as u64 + RESERVE) {
            self.out.write_all(&self.pending)?;
            self.pending.clear();
            return Ok(End::Whole);
        }
        self.pending.clear();
        let why = "the trace ends here: the file has reached its largest size";
        // A track that is not described is shown all the same.
        self.out.write_all(&event::instant(t, track.id(), why, None, Arrow::None))?;
        Ok(End::Limit)
    }

    /// Returns the arrow that data which was lost starts.
    fn lose(&mut self, lane: FlowId, seq: u64) -> Arrow {
        self.n_arrows += 1;
        self.lost.insert((lane, seq), self.n_arrows);
        Arrow::Starts(self.n_arrows)
    }
}

impl Format for Perfetto {
    fn step(&mut self, step: Step<'_>) -> io::Result<End> {
        let (event, header) = (step.event, step.header);
        let (t, port) = (event.t, event.port);
        let is_data = event.kind == PacketKind::Data;
        let track = Track::Port(port);
        let name = format!("{} {}", self.flow_name(event.flow), kind_name(event.kind));
        let facts = Facts { seq: event.seq, bytes: event.wire_bytes, class: event.class, marked: event.marked };
        match event.step {
            PacketStep::Queued => {}
            PacketStep::Sent => {
                let is_first = self.network.is_host(port) && is_data;
                let again = if is_first { self.lost.remove(&(header.lane, event.seq)) } else { None };
                let arrow = again.map_or(Arrow::None, Arrow::Ends);
                let id = self.track(track);
                let length = self.network.tx_time(event.rate, event.wire_bytes);
                self.pending.extend_from_slice(&event::begin(t, id, &name, Some(facts), arrow));
                self.pending.extend_from_slice(&event::end(t + length, id));
                // Subflows have windows of their own, and some algorithms none.
                if is_first && header.lane == event.flow && header.cwnd < u32::MAX && !self.network.is_homa(event.flow)
                {
                    self.count(t, Track::Window(event.flow), u64::from(header.cwnd));
                }
            }
            PacketStep::Dropped(_) | PacketStep::Trimmed | PacketStep::Returned => {
                let arrow = if is_data { self.lose(header.lane, event.seq) } else { Arrow::None };
                let id = self.track(track);
                let how = match event.step {
                    PacketStep::Dropped(cause) => format!("{name} dropped: {}", cause.words()),
                    PacketStep::Trimmed => format!("{name} cut to its header"),
                    _ => format!("{name} header sent back"),
                };
                self.pending.extend_from_slice(&event::instant(t, id, &how, Some(facts), arrow));
            }
        }
        if event.step != PacketStep::Dropped(fairrate_sim::DropCause::Host) {
            self.count(t, Track::Queue(port), event.queued_bytes);
        }
        self.put(t, track)
    }

    fn pfc(&mut self, event: &PfcEvent) -> io::Result<End> {
        let track = Track::Pauses(event.port, event.class);
        let id = self.track(track);
        let begins = event::begin(event.t, id, "paused", None, Arrow::None);
        self.pending.extend_from_slice(&if event.pause { begins } else { event::end(event.t, id) });
        self.put(event.t, track)
    }

    fn wants_senders(&self) -> bool {
        true
    }

    fn sender(&mut self, event: &SenderEvent) -> io::Result<End> {
        let SenderStep::Send { rate, .. } = event.step else { return Ok(End::Whole) };
        if self.network.has_subflows(event.flow) {
            return Ok(End::Whole);
        }
        self.count(event.t, Track::Rate(event.flow), rate.as_bps());
        self.put(event.t, Track::Rate(event.flow))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn written(&self) -> u64 {
        self.out.written()
    }
}
