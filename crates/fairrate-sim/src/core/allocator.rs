//! Flowtune's allocator in the network (J. Perry, H. Balakrishnan, D. Shah, MIT-CSAIL-TR-2016-011, sections 2, 5 to 7):
//! a host that endpoints tell of their flowlets and that tells them rates, over TCP connections that share the network
//! with data. What is decided is decided by [`AllocatorService`] and by [`Endpoint`]; here are the messages on the wire.
//!
//! A control connection is a flow of its own, whose number comes behind the user's flows. Of its sequence numbers a
//! segment takes a full one's, whatever it carries (see [`Channel`]).

use fairrate_allocate::{AllocatorService, LinkId, RateEngine, RealTime, Update};
use fairrate_control::flowtune::{Endpoint, Grant, Message};
use fairrate_control::{Controller, NOTICE_VALUES, Notice};
use fairrate_units::{Bytes, Rate, Time};

use super::Core;
use super::cluster::Parts;
use crate::config::{AllocatorConfig, FlowSpec, SimConfig, TcpConfig, Trigger};
use crate::engine::EventKind;
use crate::ids::{NodeId, PortId};
use crate::output::AllocatorTotals;
use crate::routing::FlowKey;
use crate::transport::{Incoming, NO_SENDER, Note, Outgoing, Receiver, Segment, Sender, SenderControl, TcpSender};

/// What an [`EventKind::Allocate`] is about, by its number: these, then every host's rates, then every flow's idleness.
const ITERATE: u32 = 0;
const OUTAGE: u32 = 1;
const FIRST_HOST: u32 = 2;

/// Destination port of control connections; source ports count from the next one.
const CONTROL_PORT: u16 = 40_000;

/// A message on its way between a server and the allocator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressed {
    /// The server that it comes from or goes to.
    server: u32,
    message: Message,
}

/// What one part of the network tells another one of a control connection.
pub(super) type LineNote = Note<Addressed>;

/// A control connection in one direction. In the part of its sender what goes out counts, in that of its receiver what
/// comes in.
struct Line {
    outgoing: Outgoing,
    incoming: Incoming<Addressed>,
    /// The part that its receiver is in, if it is another one.
    away: Option<u16>,
    from: u32,
    to: u32,
    /// Its sender, or [`NO_SENDER`] before the run starts.
    slot: u32,
    /// The allocator's life that it belongs to.
    life: u32,
    /// Whether it has been written to, and its NIC has not looked yet.
    is_written: bool,
}

/// The allocator, the endpoints and what is between them.
pub(super) struct Allocator {
    config: AllocatorConfig,
    service: AllocatorService,
    host: u32,
    /// How often the allocator has started.
    life: u32,
    is_down: bool,
    /// The next iteration in picoseconds; `u64::MAX`: none is planned.
    next_ps: u64,
    /// The flow that is the first line.
    first_flow: u32,
    lines: Vec<Line>,
    /// By host: the lines toward and from the allocator that it uses, or [`NO_LINE`].
    up: Vec<u32>,
    down: Vec<u32>,
    endpoints: Vec<Endpoint>,
    /// When each host's rates are looked at next, in picoseconds.
    expiry_ps: Vec<u64>,
    /// Flowlets that the allocator knows of, and when it spoke last, by host.
    known: Vec<u32>,
    spoke_ps: Vec<u64>,
    pub(super) totals: AllocatorTotals,
    path: Vec<LinkId>,
    updates: Vec<Update>,
    grants: Vec<Grant>,
    answers: Vec<Message>,
    /// Lines whose NICs have not looked yet since they were written to.
    written: Vec<u32>,
    /// What other parts have to be told: part, line, note.
    notes: Vec<(u16, u32, LineNote)>,
}

const NO_LINE: u32 = u32::MAX;

/// Who talks to whom, by pairs of both directions in the order of the flows: the way up, then the way down.
fn pairs(config: &SimConfig, allocator: &AllocatorConfig) -> Vec<(NodeId, NodeId)> {
    let relays = &allocator.intermediaries;
    let is_server = |host: &NodeId| *host != allocator.host && !relays.contains(host);
    let servers: Vec<NodeId> = config.topology.hosts().filter(is_server).collect();
    let both = |a: NodeId, b: NodeId| [(a, b), (b, a)];
    let to_allocator = |&host: &NodeId| both(host, allocator.host);
    if relays.is_empty() {
        return servers.iter().flat_map(to_allocator).collect();
    }
    let share = servers.len().div_ceil(relays.len());
    let to_relay = |(i, &server): (usize, &NodeId)| both(server, relays[i / share]);
    relays.iter().flat_map(to_allocator).chain(servers.iter().enumerate().flat_map(to_relay)).collect()
}

/// The flows that carry the conversation, to be added behind the user's.
pub(super) fn control_flows(config: &SimConfig) -> Vec<FlowSpec> {
    let Some(allocator) = &config.allocator else { return Vec::new() };
    let flow = |(i, (src, dst)): (usize, (NodeId, NodeId))| FlowSpec {
        src,
        dst,
        bytes: Bytes::MAX,
        start: Time::ZERO,
        trigger: Trigger::Change,
        stop: Time::MAX,
        sport: CONTROL_PORT.wrapping_add(1).wrapping_add(i as u16),
        dport: CONTROL_PORT,
        class: Some(allocator.class),
        weight: 1.0,
        demand: Rate::MAX,
        subflows: Some(1),
        burst: None,
        group: u32::MAX,
        id: FlowSpec::NO_ID,
    };
    pairs(config, allocator).into_iter().enumerate().map(flow).collect()
}

/// The optimiser, for links that keep a share of their capacity for what it does not tell.
fn engine(config: &SimConfig, allocator: &AllocatorConfig) -> Box<dyn RateEngine> {
    let ports = (0..config.topology.n_ports() as u32).map(PortId);
    let share = 1.0 - allocator.threshold;
    let capacities: Vec<f64> = ports.map(|port| config.topology.link(port).rate.as_bps_f64() * share).collect();
    let hosts = config.topology.hosts().filter(|&host| host != allocator.host);
    let nic = |host| config.topology.links.iter().find(|link| link.a == host || link.b == host);
    let unit = hosts.filter_map(nic).map(|link| link.rate.as_bps_f64()).fold(f64::INFINITY, f64::min);
    Box::new(RealTime::general(&capacities, unit * share, allocator.gamma))
}

impl Allocator {
    /// The allocator of a run, if it has one; `first_flow` is the first of its flows.
    pub(super) fn new(
        config: &SimConfig,
        host_of: &[u32],
        parts: &Parts,
        first_flow: u32,
        mss: u64,
    ) -> Option<Box<Self>> {
        let allocator = config.allocator.as_ref()?;
        let n_hosts = config.topology.hosts().count();
        let host = host_of[allocator.host.index()];
        let (mut up, mut down) = (vec![NO_LINE; n_hosts], vec![NO_LINE; n_hosts]);
        let mut lines = Vec::new();
        for (i, pair) in (0..).zip(pairs(config, allocator).chunks_exact(2)) {
            let (below, above) = (host_of[pair[0].0.index()], host_of[pair[0].1.index()]);
            (up[below as usize], down[below as usize]) = (2 * i, 2 * i + 1);
            let line = |from, to| Line {
                outgoing: Outgoing::new(mss),
                incoming: Incoming::new(mss),
                away: Some(parts.of_host(to) as u16).filter(|to| usize::from(*to) != parts.of_host(from)),
                from,
                to,
                slot: NO_SENDER,
                life: 0,
                is_written: false,
            };
            lines.extend([line(below, above), line(above, below)]);
        }
        Some(Box::new(Self {
            service: AllocatorService::new(engine(config, allocator), allocator.threshold),
            config: allocator.clone(),
            host,
            life: 0,
            is_down: false,
            next_ps: u64::MAX,
            first_flow,
            lines,
            up,
            down,
            endpoints: vec![Endpoint::new(allocator.lifetime); n_hosts],
            expiry_ps: vec![u64::MAX; n_hosts],
            known: vec![0; n_hosts],
            spoke_ps: vec![0; n_hosts],
            totals: AllocatorTotals::default(),
            path: Vec::new(),
            updates: Vec::new(),
            grants: Vec::new(),
            answers: Vec::new(),
            written: Vec::new(),
            notes: Vec::new(),
        }))
    }

    /// How control connections behave.
    pub(super) fn tcp(&self) -> &TcpConfig {
        &self.config.tcp
    }

    /// Least bytes on the wire of a packet of a control connection.
    pub(super) fn min_wire(&self) -> u16 {
        self.config.min_packet.as_u64() as u16
    }

    fn line_of(&mut self, flow: u32) -> &mut Line {
        &mut self.lines[(flow - self.first_flow) as usize]
    }

    /// What a segment of a control connection carries: always some bytes of messages.
    pub(super) fn carry(&mut self, flow: u32, sender: &mut Sender, segment: Segment) -> u64 {
        let number = flow - self.first_flow;
        let outgoing = &mut self.line_of(flow).outgoing;
        let (len, note) = outgoing.carry(segment.seq);
        let is_more = outgoing.has_new();
        if let Some(note) = note {
            self.note(number, note);
        }
        sender.offer(is_more);
        if let Some(tcp) = sender.tcp.as_mut().filter(|_| !is_more) {
            tcp.note_last();
        }
        len
    }

    /// Counts a packet of a control connection: its data, or an acknowledgment, which goes the other way.
    pub(super) fn count(&mut self, flow: u32, wire: u16, is_ack: bool) {
        let host = self.host;
        let line = self.line_of(flow);
        let (from, to) = if is_ack { (line.to, line.from) } else { (line.from, line.to) };
        let count = if from == host {
            &mut self.totals.from_allocator_bytes
        } else if to == host {
            &mut self.totals.to_allocator_bytes
        } else {
            &mut self.totals.relayed_bytes
        };
        *count += u64::from(wire);
    }

    /// Whether a packet of a control connection comes to an allocator that is not there.
    pub(super) fn is_lost(&self, host: u32) -> bool {
        self.is_down && host == self.host
    }

    /// An acknowledgment of a control connection.
    pub(super) fn on_ack(&mut self, flow: u32, ack: u64) {
        self.line_of(flow).outgoing.on_ack(ack);
    }

    fn write(&mut self, line: u32, addressed: Addressed) {
        let entry = &mut self.lines[line as usize];
        let note = entry.outgoing.write(addressed, addressed.message.bytes());
        if !std::mem::replace(&mut entry.is_written, true) {
            self.written.push(line);
        }
        self.note(line, note);
    }

    /// Lets the receiving end of a line know what is sent.
    fn note(&mut self, line: u32, note: LineNote) {
        match self.lines[line as usize].away {
            Some(part) => self.notes.push((part, line, note)),
            None => self.take_note(line, note),
        }
    }

    /// Takes note of what is sent to a host of this part.
    pub(super) fn take_note(&mut self, line: u32, note: LineNote) {
        self.lines[line as usize].incoming.take_note(note);
    }

    /// What there is to tell another part since the last time.
    pub(super) fn notes_for(&mut self, part: u16) -> impl Iterator<Item = (u32, LineNote)> + '_ {
        self.notes.extract_if(.., move |(to, ..)| *to == part).map(|(_, line, note)| (line, note))
    }

    /// The allocator says something to a server.
    fn tell(&mut self, server: u32, message: Message, now_ps: u64) {
        match message {
            Message::Update { .. } => self.totals.updates += 1,
            _ => self.totals.signs_of_life += 1,
        }
        self.spoke_ps[server as usize] = now_ps;
        let line = self.line_down(self.host, server);
        self.write(line, Addressed { server, message });
    }

    /// A server says something to the allocator.
    fn notify(&mut self, server: u32, message: Message) {
        match message {
            Message::Start { .. } => self.totals.starts += 1,
            _ => self.totals.ends += 1,
        }
        let line = self.up[server as usize];
        self.write(line, Addressed { server, message });
    }

    /// The line by which a message for `server` leaves `host`.
    fn line_down(&self, host: u32, server: u32) -> u32 {
        let direct = self.down[server as usize];
        let above = self.lines[direct as usize].from;
        if above == host { direct } else { self.down[above as usize] }
    }
}

impl Core {
    /// Whether a flow is a control connection.
    #[inline]
    pub(super) fn is_control_flow(&self, flow: u32) -> bool {
        self.n_user_flows <= flow && self.allocator.is_some()
    }

    /// Opens the control connections, and plans what happens to the allocator.
    pub(super) fn start_allocator(&mut self) {
        let Some(allocator) = &self.allocator else { return };
        let (n_lines, first, host) = (allocator.lines.len() as u32, allocator.first_flow, allocator.host);
        let cc = allocator.config.cc.clone();
        let outages: Vec<(Time, Time)> = allocator.config.outages.clone();
        for line in 0..n_lines {
            let id = first + line;
            if !self.has_host(self.flows[id as usize].src_host) {
                continue;
            }
            let context = self.flow_context(id);
            let mut control = cc.build(&context);
            let allowance = control.on_start(self.now());
            let mut sender = Sender::new(id, 0, SenderControl::Own(control));
            let (mtu, path_rtt) = (self.constants.mtu, context.path_base_rtt);
            sender.tcp = self.allocator.as_ref().map(|a| Box::new(TcpSender::new(a.tcp(), mtu, path_rtt)));
            let slot = self.add_sender(sender);
            if let Some(allocator) = &mut self.allocator {
                allocator.lines[line as usize].slot = slot;
            }
            self.apply(slot, allowance);
        }
        if !self.has_host(host) {
            return;
        }
        for (down, up) in outages {
            self.schedule(down.as_ps(), EventKind::Allocate, OUTAGE);
            if up < Time::MAX {
                self.schedule(up.as_ps(), EventKind::Allocate, OUTAGE);
            }
        }
        self.add_external_flows();
    }

    /// Tells the allocator of the flows that stand for traffic it does not rule.
    fn add_external_flows(&mut self) {
        let Some(allocator) = &mut self.allocator else { return };
        for (number, external) in (self.flows.len() as u32..).zip(&allocator.config.external) {
            let key = FlowKey { src: external.src, dst: external.dst, sport: 0, dport: 0 };
            let mut path = Vec::new();
            self.routes.path(self.config.fabric.ecmp, self.config.seed, key, &mut path);
            allocator.path.clear();
            allocator.path.extend(path.iter().map(|port| LinkId(port.0)));
            allocator.service.start(number, &allocator.path, external.weight, external.rate.as_bps_f64());
        }
    }

    /// A flow that the allocator rules has something to send.
    pub(super) fn begin_flowlet(&mut self, id: u32) {
        let Some(allocator) = &mut self.allocator else { return };
        if allocator.config.external_groups.contains(&self.config.flows[id as usize].group) {
            return;
        }
        let server = self.flows[id as usize].src_host;
        if let Some(message) = allocator.endpoints[server as usize].begin(id) {
            allocator.notify(server, message);
            self.send_written();
        }
        self.plan_expiry(server);
    }

    /// The last byte of a flow has been sent for the first time: the flowlet is over, unless there is more in time.
    pub(super) fn note_idle(&mut self, id: u32) {
        let Some(allocator) = &self.allocator else { return };
        let gap = allocator.config.flowlet_gap;
        if gap == Time::ZERO {
            self.end_flowlet(id);
        } else {
            let first_flow = FIRST_HOST + allocator.endpoints.len() as u32;
            self.schedule(self.now_ps + gap.as_ps(), EventKind::Allocate, first_flow + id);
        }
    }

    /// A flowlet is over.
    pub(super) fn end_flowlet(&mut self, id: u32) {
        let Some(allocator) = &mut self.allocator else { return };
        let server = self.flows[id as usize].src_host;
        if let Some(message) = allocator.endpoints[server as usize].end(id) {
            allocator.notify(server, message);
            self.send_written();
        }
    }

    /// The time of an event of the allocator or of an endpoint has come.
    pub(super) fn on_allocate(&mut self, entity: u32) {
        let n_hosts = self.nics.len() as u32;
        match entity {
            ITERATE => self.iterate(),
            OUTAGE => self.on_outage(),
            host if host < FIRST_HOST + n_hosts => self.on_expiry(host - FIRST_HOST),
            flow => {
                let id = flow - FIRST_HOST - n_hosts;
                let gap_ps = self.allocator.as_ref().map_or(0, |allocator| allocator.config.flowlet_gap.as_ps());
                let sender = self.senders.get(self.flows[id as usize].sender as usize).and_then(Option::as_ref);
                // What has been sent since has an event of its own.
                let is_idle = |s: &Sender| s.bytes <= s.snd_nxt && s.last_start_ps + gap_ps <= self.now_ps;
                if sender.is_none_or(is_idle) {
                    self.end_flowlet(id);
                }
            }
        }
    }

    /// One iteration of the optimiser; rates that have changed by enough go out.
    fn iterate(&mut self) {
        let Some(allocator) = &mut self.allocator else { return };
        allocator.next_ps = u64::MAX;
        if allocator.is_down {
            return;
        }
        allocator.totals.iterations += 1;
        let mut updates = std::mem::take(&mut allocator.updates);
        allocator.service.iterate(&mut updates);
        for update in updates.drain(..).filter(|update| update.flow < self.n_user_flows) {
            let server = self.flows[update.flow as usize].src_host;
            let message = Message::Update { flow: update.flow, rate_bps: update.rate_bps };
            allocator.tell(server, message, self.now_ps);
        }
        allocator.updates = updates;
        let quiet_ps = allocator.config.sign_of_life.as_ps();
        for server in 0..allocator.known.len() {
            if 0 < allocator.known[server] && allocator.spoke_ps[server] + quiet_ps <= self.now_ps {
                allocator.tell(server as u32, Message::Alive, self.now_ps);
            }
        }
        self.plan_iteration();
        self.send_written();
    }

    /// Plans the next iteration, at a multiple of the interval, if there is anything to allocate.
    fn plan_iteration(&mut self) {
        let Some(allocator) = &mut self.allocator else { return };
        if allocator.next_ps < u64::MAX || allocator.service.n_flows() <= allocator.config.external.len() {
            return;
        }
        let interval = allocator.config.interval.as_ps();
        let at = (self.now_ps / interval + 1) * interval;
        allocator.next_ps = at;
        self.schedule(at, EventKind::Allocate, ITERATE);
    }

    /// Segments of a control connection have arrived in order: its messages are read.
    pub(super) fn read_messages(&mut self, flow: u32) {
        let expected = self.flows[flow as usize].receiver.expected;
        let Some(allocator) = &mut self.allocator else { return };
        let (to, host) = (allocator.line_of(flow).to, allocator.host);
        while let Some(Addressed { server, message }) =
            self.allocator.as_mut().and_then(|allocator| allocator.line_of(flow).incoming.read(expected))
        {
            if to == host {
                self.on_notification_of(server, message);
            } else {
                if message == Message::Hello {
                    self.renew_line_up(to);
                }
                if to == server {
                    self.on_word_of_allocator(server, message);
                } else {
                    self.relay(to, server, message);
                }
            }
        }
        self.send_written();
    }

    /// An intermediary passes a message on.
    fn relay(&mut self, host: u32, server: u32, message: Message) {
        let Some(allocator) = &mut self.allocator else { return };
        let is_up = matches!(message, Message::Start { .. } | Message::End { .. });
        let line = if is_up { allocator.up[host as usize] } else { allocator.line_down(host, server) };
        allocator.write(line, Addressed { server, message });
    }

    /// The allocator hears of a flowlet.
    fn on_notification_of(&mut self, server: u32, message: Message) {
        let Some(allocator) = &mut self.allocator else { return };
        let known = &mut allocator.known[server as usize];
        match message {
            Message::Start { flow } => {
                let (state, spec) = (&self.flows[flow as usize], &self.config.flows[flow as usize]);
                let first = state.data_route as usize - 1;
                allocator.path.clear();
                let path = &self.paths[first..first + state.n_hops as usize];
                allocator.path.extend(path.iter().map(|&port| LinkId(port)));
                let demand = if spec.demand == Rate::MAX { f64::INFINITY } else { spec.demand.as_bps_f64() };
                *known += u32::from(allocator.service.start(flow, &allocator.path, spec.weight, demand));
            }
            Message::End { flow } => *known -= u32::from(allocator.service.end(flow)),
            Message::Update { .. } | Message::Alive | Message::Hello => {}
        }
        self.plan_iteration();
    }

    /// An endpoint hears from the allocator.
    fn on_word_of_allocator(&mut self, server: u32, message: Message) {
        let now = self.now();
        let Some(allocator) = &mut self.allocator else { return };
        let (mut grants, mut answers) = (std::mem::take(&mut allocator.grants), std::mem::take(&mut allocator.answers));
        allocator.endpoints[server as usize].on_message(now, message, &mut grants, &mut answers);
        answers.drain(..).for_each(|message| allocator.notify(server, message));
        allocator.answers = answers;
        self.grant(grants);
        self.plan_expiry(server);
    }

    /// Puts rates into force.
    fn grant(&mut self, mut grants: Vec<Grant>) {
        let now = self.now();
        for Grant { flow, rate_bps } in grants.drain(..) {
            let mut values = [0.0; NOTICE_VALUES];
            values[0] = rate_bps;
            let notice = Notice { flow, port: u32::MAX, values };
            self.control(flow, |control| control.on_notice(now, &notice));
        }
        if let Some(allocator) = &mut self.allocator {
            allocator.grants = grants;
        }
    }

    /// Plans a look at a host's rates when they may have expired, unless one is planned, which will look again.
    fn plan_expiry(&mut self, server: u32) {
        let Some(allocator) = &mut self.allocator else { return };
        let at = allocator.endpoints[server as usize].deadline().as_ps();
        let planned = &mut allocator.expiry_ps[server as usize];
        if at < *planned {
            *planned = at;
            let at = at.max(self.now_ps);
            self.schedule(at, EventKind::Allocate, FIRST_HOST + server);
        }
    }

    /// The rates of a host may have expired.
    fn on_expiry(&mut self, server: u32) {
        let now = self.now();
        let Some(allocator) = &mut self.allocator else { return };
        allocator.expiry_ps[server as usize] = u64::MAX;
        let mut grants = std::mem::take(&mut allocator.grants);
        allocator.endpoints[server as usize].on_timer(now, &mut grants);
        allocator.totals.expired += grants.len() as u64;
        self.grant(grants);
        self.plan_expiry(server);
    }

    /// The allocator dies, or comes back knowing nothing.
    fn on_outage(&mut self) {
        let Some(allocator) = &mut self.allocator else { return };
        allocator.is_down = !allocator.is_down;
        if allocator.is_down {
            allocator.service.forget_flows();
            allocator.known.fill(0);
            return;
        }
        allocator.life += 1;
        let (host, life, now_ps) = (allocator.host, allocator.life, self.now_ps);
        let of_allocator = (0..).zip(&allocator.lines).filter(|(_, line)| line.from == host).map(|(line, _)| line);
        for line in of_allocator.collect::<Vec<u32>>() {
            self.renew_line(line, life);
        }
        self.add_external_flows();
        let Some(allocator) = &mut self.allocator else { return };
        for server in 0..allocator.down.len() as u32 {
            if allocator.down[server as usize] != NO_LINE {
                allocator.tell(server, Message::Hello, now_ps);
            }
        }
        self.send_written();
    }

    /// A host that talks to the allocator itself has heard that it is a new one: so is the connection to it.
    fn renew_line_up(&mut self, host: u32) {
        let Some(allocator) = &self.allocator else { return };
        let (line, life) = (allocator.up[host as usize], allocator.life);
        let Line { to, life: of, .. } = allocator.lines[line as usize];
        if to == allocator.host && of < life {
            self.renew_line(line, life);
        }
    }

    /// Replaces a connection by a new one. Its sequence numbers go on, so that what is left of the old one on the way
    /// counts as already received.
    fn renew_line(&mut self, line: u32, life: u32) {
        let Some(allocator) = &self.allocator else { return };
        let (slot, tcp) = (allocator.lines[line as usize].slot, allocator.config.tcp);
        let path_rtt = self.flow_context(allocator.first_flow + line).path_base_rtt;
        let Some(allocator) = &mut self.allocator else { return };
        let sender = self.senders[slot as usize].as_mut().expect("control connections stay");
        let seq = sender.snd_nxt;
        (sender.snd_una, sender.bytes) = (seq, seq);
        sender.tcp = Some(Box::new(TcpSender::starting_at(&tcp, self.constants.mtu, path_rtt, seq)));
        self.flows[sender.flow as usize].receiver = Receiver::starting_at(seq);
        let line = &mut allocator.lines[line as usize];
        line.life = life;
        line.outgoing.reset(seq);
        line.incoming.reset(seq);
        self.refresh_open(slot);
    }

    /// Lets NICs look at the control connections that have been written to.
    fn send_written(&mut self) {
        let Some(allocator) = &mut self.allocator else { return };
        let mut written = std::mem::take(&mut allocator.written);
        for &line in &written {
            let slot = self.allocator.as_ref().map_or(NO_SENDER, |a| a.lines[line as usize].slot);
            let sender = self.senders[slot as usize].as_mut().expect("control connections stay");
            sender.offer(true);
            self.refresh_open(slot);
        }
        for line in written.drain(..) {
            let Some(allocator) = &mut self.allocator else { return };
            let line = &mut allocator.lines[line as usize];
            line.is_written = false;
            let from = line.from;
            self.nic_send(from);
        }
        if let Some(allocator) = &mut self.allocator {
            allocator.written = written;
        }
    }
}
