//! The conversation between servers and the allocator, event by event: flowlets begin and end, the optimiser iterates,
//! rates come into force and expire, the allocator dies and comes back.

use fairrate_allocate::LinkId;
use fairrate_control::flowtune::{Grant, Message};
use fairrate_control::{Controller, NOTICE_VALUES, Notice};
use fairrate_units::{Rate, Time};

use super::{Addressed, Line, NO_LINE};
use crate::core::Core;
use crate::engine::EventKind;
use crate::routing::FlowKey;
use crate::transport::{NO_SENDER, Receiver, Sender, SenderControl, TcpSender};

/// What an [`EventKind::Allocate`] is about, by its number: these, then every host's rates, then every flow's idleness.
const ITERATE: u32 = 0;
const OUTAGE: u32 = 1;
const FIRST_HOST: u32 = 2;

impl Core {
    /// Whether a flow is a control connection.
    #[inline]
    pub(in crate::core) fn is_control_flow(&self, flow: u32) -> bool {
        self.n_user_flows <= flow && self.allocator.is_some()
    }

    /// Opens the control connections, and plans what happens to the allocator.
    pub(in crate::core) fn start_allocator(&mut self) {
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
    pub(in crate::core) fn begin_flowlet(&mut self, id: u32) {
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
    pub(in crate::core) fn note_idle(&mut self, id: u32) {
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
    pub(in crate::core) fn end_flowlet(&mut self, id: u32) {
        let Some(allocator) = &mut self.allocator else { return };
        let server = self.flows[id as usize].src_host;
        if let Some(message) = allocator.endpoints[server as usize].end(id) {
            allocator.notify(server, message);
            self.send_written();
        }
    }

    /// The time of an event of the allocator or of an endpoint has come.
    pub(in crate::core) fn on_allocate(&mut self, entity: u32) {
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
    pub(in crate::core) fn read_messages(&mut self, flow: u32) {
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
