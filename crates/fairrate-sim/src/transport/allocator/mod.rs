//! Flowtune's allocator in the network (J. Perry, H. Balakrishnan, D. Shah, MIT-CSAIL-TR-2016-011, sections 2, 5 to 7):
//! a host that receives notifications of flowlets from endpoints and sends them rates, over TCP connections that share
//! the network with data. [`AllocatorService`] and [`Endpoint`] make the decisions; this module carries their messages.
//!
//! A connection that carries messages is a line: one flow for each direction, whose number follows those of the user's
//! flows. Each of its segments takes the sequence numbers of a full one, whatever it carries (see [`Outgoing`]).

mod cargo;
mod channel;
mod conversation;
mod event;

use fairrate_allocate::{AllocatorService, LinkId, RealTime, Update};
use fairrate_control::flowtune::{Endpoint, Grant, Message};
use fairrate_units::{Bytes, Time};

pub(crate) use self::cargo::{Messages, RuledData};
pub(crate) use self::channel::LineNote;
use self::channel::{Addressed, Incoming, Outgoing};
pub(crate) use self::conversation::{follow_up, on_event, start};
use super::sender::{Segment, Sender};
use crate::config::{AllocatorConfig, FlowSpec, SimConfig, Trigger};
use crate::ids::{FlowId, HostId, LineId, NodeId};
use crate::output::AllocatorTotals;
use crate::table::Table;

/// Destination port of lines; source ports count from the next one.
const LINE_PORT: u16 = 40_000;

/// Least number of message bytes that count as news: a segment with fewer carries only signs of life, as the next
/// longer message has four.
const LEAST_NEWS: u64 = 4;

/// A packet of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinePacket {
    /// A segment with this number of bytes of messages.
    Segment(u64),
    /// An acknowledgment, which travels in the opposite direction.
    Ack,
}

/// One direction of a line. The part of its sender uses `outgoing`, the part of its receiver `incoming`.
struct Line {
    outgoing: Outgoing,
    incoming: Incoming<Addressed>,
    /// The part of its receiver, if it differs from the sender's.
    away: Option<u16>,
    from: HostId,
    to: HostId,
    /// The number of the allocator's restart to which it belongs.
    life: u32,
    /// Set when a message was written to it and its sender has not been offered data yet.
    is_written: bool,
}

/// The allocator, the endpoints and the lines between them.
pub(crate) struct Allocator {
    config: AllocatorConfig,
    service: AllocatorService,
    /// Times at which links change their rates, the latest first, as far as the service does not know of them.
    rate_changes: Vec<Time>,
    host: HostId,
    /// Number of times the allocator has restarted.
    life: u32,
    is_down: bool,
    /// Time of the next iteration in picoseconds; `u64::MAX` if none is planned.
    next_ps: u64,
    /// The flow of the first line.
    first_flow: FlowId,
    lines: Table<LineId, Line>,
    /// The lines toward and from the allocator that each host uses, or [`LineId::NONE`].
    up: Table<HostId, LineId>,
    down: Table<HostId, LineId>,
    endpoints: Table<HostId, Endpoint>,
    /// Planned time of the next check of each host's rates, in picoseconds.
    expiry_ps: Table<HostId, u64>,
    /// Number of flowlets registered at the allocator, and time of its last message, by host.
    known: Table<HostId, u32>,
    spoke_ps: Table<HostId, u64>,
    pub(crate) totals: AllocatorTotals,
    path: Vec<LinkId>,
    updates: Vec<Update>,
    grants: Vec<Grant>,
    answers: Vec<Message>,
    /// Hosts whose rates have changed and whose next check is not planned yet.
    to_look_at: Vec<HostId>,
    /// Lines with new messages, whose senders have not been offered data yet.
    written: Vec<LineId>,
    /// Notes to send to other parts: part, line, note.
    notes: Vec<(u16, LineId, LineNote)>,
}

/// Returns `true` if `host` sends data: it is neither the allocator's nor an intermediary.
fn is_server(allocator: &AllocatorConfig, host: NodeId) -> bool {
    host != allocator.host && !allocator.intermediaries.contains(&host)
}

/// Returns the ends of all lines, in pairs of both directions in the order of the flows: the way up, then the way down.
fn pairs(config: &SimConfig, allocator: &AllocatorConfig) -> Vec<(NodeId, NodeId)> {
    let relays = &allocator.intermediaries;
    let servers: Vec<NodeId> = config.topology.hosts().filter(|&host| is_server(allocator, host)).collect();
    let both = |a: NodeId, b: NodeId| [(a, b), (b, a)];
    let to_allocator = |&host: &NodeId| both(host, allocator.host);
    if relays.is_empty() {
        return servers.iter().flat_map(to_allocator).collect();
    }
    let share = servers.len().div_ceil(relays.len());
    let to_relay = |(i, &server): (usize, &NodeId)| both(server, relays[i / share]);
    relays.iter().flat_map(to_allocator).chain(servers.iter().enumerate().flat_map(to_relay)).collect()
}

/// Returns the flows that carry the conversation, to be appended to the user's.
pub(crate) fn line_flows(config: &SimConfig) -> Vec<FlowSpec> {
    let Some(allocator) = &config.allocator else { return Vec::new() };
    let flow = |(i, (src, dst)): (usize, (NodeId, NodeId))| FlowSpec {
        trigger: Trigger::Change,
        sport: LINE_PORT.wrapping_add(1).wrapping_add(i as u16),
        dport: LINE_PORT,
        class: Some(allocator.class),
        subflows: Some(1),
        group: u32::MAX,
        ..FlowSpec::new(src, dst, Bytes::MAX, Time::ZERO)
    };
    pairs(config, allocator).into_iter().enumerate().map(flow).collect()
}

/// Returns the capacities of all links at `t`, without the share `threshold` that is reserved for rate changes that are
/// not announced.
fn capacities(config: &SimConfig, allocator: &AllocatorConfig, t: Time) -> Vec<f64> {
    let share = 1.0 - allocator.threshold;
    config.rates_at(t).iter().map(|rate| rate.as_bps_f64() * share).collect()
}

/// Returns the service of an allocator that starts at `now`.
fn service(config: &SimConfig, allocator: &AllocatorConfig, now: Time) -> AllocatorService {
    let share = 1.0 - allocator.threshold;
    let capacities = capacities(config, allocator, now);
    let links = config.topology.host_links().filter(|&(host, _)| is_server(allocator, host));
    let unit = links.map(|(_, link)| link.rate.as_bps_f64()).fold(f64::INFINITY, f64::min);
    let engine = RealTime::general(&capacities, unit * share, allocator.gamma);
    AllocatorService::new(Box::new(engine), allocator.threshold)
}

impl Allocator {
    /// Returns the allocator of a run, if it has one; `first_flow` is the first of its flows.
    pub(crate) fn new(
        config: &SimConfig,
        host_of: &Table<NodeId, HostId>,
        part_of_host: impl Fn(HostId) -> u16,
        first_flow: FlowId,
        mss: u64,
    ) -> Option<Box<Self>> {
        let allocator = config.allocator.as_ref()?;
        let slow = config.faults.iter().filter(|fault| fault.changes_rate());
        let mut rate_changes: Vec<Time> = slow.flat_map(|fault| [fault.start, fault.stop]).collect();
        rate_changes.sort_unstable_by(|a, b| b.cmp(a));
        let n_hosts = config.topology.hosts().count();
        let host = host_of[allocator.host];
        let mut up: Table<HostId, LineId> = vec![LineId::NONE; n_hosts].into();
        let mut down = up.clone();
        let mut lines = Table::default();
        for pair in pairs(config, allocator).chunks_exact(2) {
            let (below, above) = (host_of[pair[0].0], host_of[pair[0].1]);
            let line = |from, to| Line {
                outgoing: Outgoing::new(mss),
                incoming: Incoming::new(mss),
                away: Some(part_of_host(to)).filter(|&to| to != part_of_host(from)),
                from,
                to,
                life: 0,
                is_written: false,
            };
            up[below] = lines.push(line(below, above));
            down[below] = lines.push(line(above, below));
        }
        Some(Box::new(Self {
            service: service(config, allocator, Time::ZERO),
            rate_changes,
            config: allocator.clone(),
            host,
            life: 0,
            is_down: false,
            next_ps: u64::MAX,
            first_flow,
            lines,
            up,
            down,
            endpoints: vec![Endpoint::new(allocator.lifetime); n_hosts].into(),
            expiry_ps: vec![u64::MAX; n_hosts].into(),
            known: vec![0; n_hosts].into(),
            spoke_ps: vec![0; n_hosts].into(),
            totals: AllocatorTotals::default(),
            path: Vec::new(),
            updates: Vec::new(),
            grants: Vec::new(),
            answers: Vec::new(),
            to_look_at: Vec::new(),
            written: Vec::new(),
            notes: Vec::new(),
        }))
    }

    /// Returns the smallest size of a line's packet on the wire, in bytes.
    fn min_wire(&self) -> u16 {
        self.config.min_packet.as_u64() as u16
    }

    /// Returns the line that `flow` carries.
    fn line_id(&self, flow: FlowId) -> LineId {
        LineId(flow.0 - self.first_flow.0)
    }

    /// Returns the flow that carries `line`.
    fn flow_of(&self, line: LineId) -> FlowId {
        FlowId(self.first_flow.0 + line.0)
    }

    fn line_of(&mut self, flow: FlowId) -> &mut Line {
        let line = self.line_id(flow);
        &mut self.lines[line]
    }

    /// Loses all that the allocator knows at `now`: flows and prices.
    fn forget(&mut self, config: &SimConfig, now: Time) {
        self.service = service(config, &self.config, now);
        self.known.fill(0);
    }

    /// Gives the optimiser the capacities of links at `now`, if any have changed since the last call.
    fn follow_links(&mut self, config: &SimConfig, now: Time) {
        let n_left = self.rate_changes.partition_point(|at| now < *at);
        if n_left < self.rate_changes.len() {
            self.rate_changes.truncate(n_left);
            for (link, capacity_bps) in (0..).map(LinkId).zip(capacities(config, &self.config, now)) {
                self.service.engine_mut().set_capacity(link, capacity_bps);
            }
        }
    }

    /// Returns the payload of a line's segment: always some bytes of messages.
    fn carry(&mut self, flow: FlowId, sender: &mut Sender, segment: Segment) -> u64 {
        let line = self.line_id(flow);
        let outgoing = &mut self.line_of(flow).outgoing;
        let (len, note) = outgoing.carry(segment.seq);
        let is_more = outgoing.has_new();
        if let Some(note) = note {
            self.note(line, note);
        }
        sender.offer(is_more);
        if let Some(tcp) = sender.tcp.as_mut().filter(|_| !is_more) {
            tcp.note_last();
        }
        len
    }

    /// Adds a packet of a line to the totals.
    fn count(&mut self, flow: FlowId, wire: u16, packet: LinePacket) {
        let (host, wire) = (self.host, u64::from(wire));
        let line = self.line_of(flow);
        let (from, to) = if packet == LinePacket::Ack { (line.to, line.from) } else { (line.from, line.to) };
        let totals = &mut self.totals;
        if from == host {
            totals.from_allocator_bytes += wire;
            match packet {
                LinePacket::Ack => totals.from_allocator_ack_bytes += wire,
                LinePacket::Segment(len) if len < LEAST_NEWS => totals.sign_of_life_bytes += wire,
                LinePacket::Segment(_) => {}
            }
        } else if to == host {
            totals.to_allocator_bytes += wire;
            totals.to_allocator_ack_bytes += if packet == LinePacket::Ack { wire } else { 0 };
        } else {
            totals.relayed_bytes += wire;
        }
    }

    /// Returns `true` if a packet of the line of `flow` is lost at `host`: the allocator there is down, or has
    /// restarted since the line was opened. A real machine answers segments of such a connection with a reset.
    fn is_lost(&self, host: HostId, flow: FlowId) -> bool {
        host == self.host && (self.is_down || self.lines[self.line_id(flow)].life < self.life)
    }

    /// Handles an acknowledgment of a line.
    fn on_ack(&mut self, flow: FlowId, ack: u64) {
        self.line_of(flow).outgoing.on_ack(ack);
    }

    fn write(&mut self, line: LineId, addressed: Addressed) {
        let entry = &mut self.lines[line];
        let note = entry.outgoing.write(addressed, addressed.message.bytes());
        if !std::mem::replace(&mut entry.is_written, true) {
            self.written.push(line);
        }
        self.note(line, note);
    }

    /// Passes a note about what is sent on a line to its receiving end, here or in another part.
    fn note(&mut self, line: LineId, note: LineNote) {
        match self.lines[line].away {
            Some(part) => self.notes.push((part, line, note)),
            None => self.take_note(line, note),
        }
    }

    /// Stores a note about what is sent to a host of this part.
    pub(crate) fn take_note(&mut self, line: LineId, note: LineNote) {
        self.lines[line].incoming.take_note(note);
    }

    /// Removes and returns the notes for another part since the last call.
    pub(crate) fn notes_for(&mut self, part: u16) -> impl Iterator<Item = (LineId, LineNote)> + '_ {
        self.notes.extract_if(.., move |(to, ..)| *to == part).map(|(_, line, note)| (line, note))
    }

    /// Sends a message of the allocator to a server.
    fn tell(&mut self, server: HostId, message: Message, now_ps: u64) {
        match message {
            Message::Update { .. } => self.totals.updates += 1,
            _ => self.totals.signs_of_life += 1,
        }
        self.spoke_ps[server] = now_ps;
        let line = self.line_down(self.host, server);
        self.write(line, Addressed { server, message });
    }

    /// Sends a message of a server to the allocator.
    fn notify(&mut self, server: HostId, message: Message) {
        match message {
            Message::Start { .. } => self.totals.starts += 1,
            _ => self.totals.ends += 1,
        }
        let line = self.up[server];
        self.write(line, Addressed { server, message });
    }

    /// Returns the line on which a message for `server` leaves `host`.
    fn line_down(&self, host: HostId, server: HostId) -> LineId {
        let direct = self.down[server];
        let above = self.lines[direct].from;
        if above == host { direct } else { self.down[above] }
    }
}
