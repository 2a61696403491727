//! A trace for Perfetto: nodes with their ports, and flows.

mod event;
mod proto;

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

use fairrate_sim::{
    FlowId, PacketEvent, PacketHeader, PacketKind, PacketStep, PfcEvent, PortId, SenderEvent, SenderStep,
};
use fairrate_units::Time;

use self::event::{Arrow, Facts, Unit};
use crate::network::{Network, kind_name};
use crate::output::Output;
use crate::tracer::{End, Format};

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

/// Number of kinds of tracks, and of classes of a port.
const KINDS: usize = 9;
const CLASSES: usize = 8;

impl Track {
    /// Returns the number of the track, which is never 0.
    fn id(self) -> u64 {
        let (kind, number) = self.place();
        (kind as u64) << 48 | number as u64
    }

    /// Returns its kind and its number among those of the kind.
    fn place(self) -> (usize, usize) {
        match self {
            Self::Flows => (1, 0),
            Self::Node(node) => (2, node as usize),
            Self::Port(port) => (3, port.index()),
            Self::Queue(port) => (4, port.index()),
            Self::Pauses(port, class) => (5, port.index() * CLASSES + usize::from(class)),
            Self::Flow(flow) => (6, flow.index()),
            Self::Window(flow) => (7, flow.index()),
            Self::Rate(flow) => (8, flow.index()),
        }
    }
}

/// The state of a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The trace has no description of it yet.
    #[default]
    Unknown,
    Described,
    /// It is a counter, with this last value.
    Counts(u64),
}

/// The name of a packet: that of its flow, and its kind.
struct Name {
    /// The number of the flow; `None` for messages of an allocator.
    flow: Option<u32>,
    kind: &'static str,
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.flow {
            Some(flow) => write!(f, "flow {flow} {}", self.kind),
            None => write!(f, "allocator {}", self.kind),
        }
    }
}

/// A writer of traces for Perfetto.
pub struct Perfetto {
    network: Network,
    out: Output,
    /// The state of each track, by kind.
    states: [Vec<State>; KINDS],
    /// Lost data that was not sent again yet, each with the number of its arrow.
    lost: HashMap<(FlowId, u64), u64>,
    n_arrows: u64,
    /// Events that are not written yet.
    pending: Vec<u8>,
}

impl Perfetto {
    /// Begins a trace of a run in `network`.
    pub fn new(network: Network, out: Output) -> Self {
        let (states, lost) = (Default::default(), HashMap::new());
        Self { network, out, states, lost, n_arrows: 0, pending: Vec::new() }
    }

    fn state(&mut self, track: Track) -> &mut State {
        let (kind, number) = track.place();
        let states = &mut self.states[kind];
        if states.len() <= number {
            states.resize(number + 1, State::Unknown);
        }
        &mut states[number]
    }

    /// Returns the number of a track, which is described before its first event.
    fn track(&mut self, track: Track) -> u64 {
        let (state, id) = (self.state(track), track.id());
        if *state == State::Unknown {
            *state = State::Described;
            self.describe(track, id);
        }
        id
    }

    #[cold]
    fn describe(&mut self, track: Track, id: u64) {
        let parent = match track {
            Track::Flows | Track::Node(_) => 0,
            Track::Port(port) => self.track(Track::Node(self.network.from[port.index()].0)),
            Track::Queue(port) | Track::Pauses(port, _) => self.track(Track::Port(port)),
            Track::Flow(_) => self.track(Track::Flows),
            Track::Window(flow) | Track::Rate(flow) => self.track(Track::Flow(flow)),
        };
        let (network, buffer) = (&self.network, &mut self.pending);
        match track {
            Track::Flows => event::track(buffer, id, parent, "flows"),
            Track::Node(node) => event::track(buffer, id, parent, &network.nodes[node as usize]),
            Track::Port(port) => event::track(buffer, id, parent, &network.ports[port.index()]),
            Track::Queue(_) => event::counter_track(buffer, id, parent, "queue", Unit::Bytes),
            Track::Pauses(_, class) => event::track(buffer, id, parent, &format!("class {class} paused")),
            Track::Flow(flow) => {
                let name = network.number(flow).map_or_else(|| "allocator".to_owned(), |n| format!("flow {n}"));
                event::track(buffer, id, parent, &name);
            }
            Track::Window(_) => event::counter_track(buffer, id, parent, "window", Unit::Bytes),
            Track::Rate(_) => event::counter_track(buffer, id, parent, "rate", Unit::BitsPerSecond),
        }
    }

    /// Adds the value of a counter, if it has changed.
    fn count(&mut self, t: Time, track: Track, value: u64) {
        let id = self.track(track);
        if std::mem::replace(self.state(track), State::Counts(value)) != State::Counts(value) {
            event::value(&mut self.pending, (t, id), value);
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
        event::instant(&mut self.pending, (t, track.id()), why, None, Arrow::None);
        self.out.write_all(&self.pending)?;
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
    fn wants_headers(&self) -> bool {
        true
    }

    fn step(&mut self, event: &PacketEvent, header: Option<&PacketHeader<'_>>) -> io::Result<End> {
        let Some(header) = header else { return Ok(End::Whole) };
        let (t, port) = (event.t, event.port);
        let is_data = event.kind == PacketKind::Data;
        let track = Track::Port(port);
        let name = Name { flow: self.network.number(event.flow), kind: kind_name(event.kind) };
        let facts = Facts { seq: event.seq, bytes: event.wire_bytes, class: event.class, marked: event.marked };
        match event.step {
            PacketStep::Queued => {}
            PacketStep::Sent => {
                let is_first = self.network.is_host(port) && is_data;
                let again = if is_first { self.lost.remove(&(event.lane, event.seq)) } else { None };
                let arrow = again.map_or(Arrow::None, Arrow::Ends);
                let id = self.track(track);
                let length = self.network.tx_time(event.rate, event.wire_bytes);
                event::begin(&mut self.pending, (t, id), name, Some(facts), arrow);
                event::end(&mut self.pending, (t + length, id));
                // Subflows have windows of their own, and some algorithms none.
                if is_first && event.lane == event.flow && header.cwnd < u32::MAX && !self.network.is_homa(event.flow) {
                    self.count(t, Track::Window(event.flow), u64::from(header.cwnd));
                }
            }
            PacketStep::Dropped(_) | PacketStep::Trimmed | PacketStep::Returned => {
                let arrow = if is_data { self.lose(event.lane, event.seq) } else { Arrow::None };
                let id = self.track(track);
                let how = match event.step {
                    PacketStep::Dropped(cause) => format!("{name} dropped: {}", cause.words()),
                    PacketStep::Trimmed => format!("{name} cut to its header"),
                    _ => format!("{name} header sent back"),
                };
                event::instant(&mut self.pending, (t, id), how, Some(facts), arrow);
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
        if event.pause {
            event::begin(&mut self.pending, (event.t, id), "paused", None, Arrow::None);
        } else {
            event::end(&mut self.pending, (event.t, id));
        }
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
