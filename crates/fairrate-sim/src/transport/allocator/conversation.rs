//! The conversation between servers and the allocator, event by event: flowlets begin and end, the optimiser iterates,
//! rates take effect and expire, the allocator fails and restarts.

use fairrate_allocate::LinkId;
use fairrate_control::flowtune::{Grant, Message};
use fairrate_control::{NOTICE_VALUES, Notice};
use fairrate_units::{Rate, Time};

use super::Line;
use super::channel::Addressed;
use super::event::AllocatorEvent;
use crate::core::{Hosts, World};
use crate::ids::{FlowId, HostId, LineId};
use crate::routing::FlowKey;
use crate::transport::receiver::Receiver;
use crate::transport::sender::Sender;
use crate::transport::tcp::TcpSender;

/// Schedules the allocator's outages and adds its external flows, if it is in this part.
pub(crate) fn start(hosts: &mut Hosts, w: &mut World) {
    let Some(allocator) = &hosts.allocator else { return };
    if !hosts.has(allocator.host) {
        return;
    }
    for &(down, up) in &allocator.config.outages {
        for at in [down, up].into_iter().filter(|at| *at < Time::MAX) {
            allocator.schedule(w, at.as_ps(), AllocatorEvent::Outage);
        }
    }
    add_external_flows(hosts, w);
}

/// Registers the flows that stand for traffic outside the allocator's control.
fn add_external_flows(hosts: &mut Hosts, w: &mut World) {
    let Some(allocator) = &mut hosts.allocator else { return };
    for (number, external) in (w.run.flows.len() as u32..).zip(&allocator.config.external) {
        let key = FlowKey { src: external.src, dst: external.dst, sport: 0, dport: 0 };
        let mut path = Vec::new();
        w.run.routes.path(w.run.config.fabric.ecmp, w.run.config.seed, key, &mut path);
        allocator.path.clear();
        allocator.path.extend(path.iter().map(|port| LinkId(port.0)));
        allocator.service.start(number, &allocator.path, external.weight, external.rate.as_bps_f64());
    }
}

/// Starts a flowlet: a flow under the allocator's control has data to send.
pub(super) fn begin_flowlet(hosts: &mut Hosts, w: &mut World, id: FlowId) {
    let Some(allocator) = &mut hosts.allocator else { return };
    if allocator.config.external_groups.contains(&w.run.config.flows[id.index()].group) {
        return;
    }
    let server = w.run.flow(id).src_host;
    if let Some(message) = allocator.endpoints[server].begin(id.0) {
        allocator.notify(server, message);
        send_written(hosts);
    }
    look_at_rates_of(hosts, server);
}

/// Ends a flowlet whose last byte has been sent for the first time: at once, or after the flowlet gap if no more data
/// follows.
pub(super) fn note_idle(hosts: &mut Hosts, w: &mut World, id: FlowId) {
    let Some(allocator) = &hosts.allocator else { return };
    let gap = allocator.config.flowlet_gap;
    if gap == Time::ZERO {
        end_flowlet(hosts, w, id);
    } else {
        let end_ps = w.clock.now_ps + gap.as_ps();
        allocator.schedule(w, end_ps, AllocatorEvent::Gap(id));
    }
}

/// Ends a flowlet: its server notifies the allocator.
pub(super) fn end_flowlet(hosts: &mut Hosts, w: &mut World, id: FlowId) {
    let Some(allocator) = &mut hosts.allocator else { return };
    let server = w.run.flow(id).src_host;
    if let Some(message) = allocator.endpoints[server].end(id.0) {
        allocator.notify(server, message);
        send_written(hosts);
    }
    if hosts.sending[id].sender.is_none() {
        forget_rate(hosts, w, id);
    }
}

/// Forgets the rate of a flow that is over.
pub(super) fn forget_rate(hosts: &mut Hosts, w: &World, id: FlowId) {
    if let Some(allocator) = &mut hosts.allocator {
        allocator.endpoints[w.run.flow(id).src_host].forget(id.0);
    }
}

/// Handles an event of the allocator or of an endpoint; `entity` is its number.
pub(crate) fn on_event(hosts: &mut Hosts, w: &mut World, entity: u32) {
    let Some(allocator) = &hosts.allocator else { return };
    match AllocatorEvent::of(entity, allocator.endpoints.len() as u32) {
        AllocatorEvent::Iterate => iterate(hosts, w),
        AllocatorEvent::Outage => on_outage(hosts, w),
        AllocatorEvent::Expiry(server) => on_expiry(hosts, w, server),
        AllocatorEvent::Gap(id) => on_gap(hosts, w, id),
    }
}

/// Ends the flowlet of a flow whose gap has passed. Data sent since then has its own event.
fn on_gap(hosts: &mut Hosts, w: &mut World, id: FlowId) {
    let gap_ps = hosts.allocator.as_ref().map_or(0, |allocator| allocator.config.flowlet_gap.as_ps());
    let is_idle = |s: &Sender| s.bytes <= s.snd_nxt && s.last_start_ps + gap_ps <= w.clock.now_ps;
    if hosts.sender_of(id).is_none_or(|(_, sender)| is_idle(sender)) {
        end_flowlet(hosts, w, id);
    }
}

/// Runs one iteration of the optimiser and sends the rates that have changed by enough.
fn iterate(hosts: &mut Hosts, w: &mut World) {
    let Some(allocator) = &mut hosts.allocator else { return };
    allocator.next_ps = u64::MAX;
    if allocator.is_down {
        return;
    }
    allocator.follow_links(&w.run.config, w.clock.now());
    allocator.totals.iterations += 1;
    let mut updates = std::mem::take(&mut allocator.updates);
    allocator.service.iterate(&mut updates);
    for update in updates.drain(..).filter(|update| w.run.is_users(FlowId(update.flow))) {
        let server = w.run.flow(FlowId(update.flow)).src_host;
        let message = Message::Update { flow: update.flow, rate_bps: update.rate_bps };
        allocator.tell(server, message, w.clock.now_ps);
    }
    allocator.updates = updates;
    let quiet_ps = allocator.config.sign_of_life.as_ps();
    for server in allocator.known.numbers() {
        if 0 < allocator.known[server] && allocator.spoke_ps[server] + quiet_ps <= w.clock.now_ps {
            allocator.tell(server, Message::Alive, w.clock.now_ps);
        }
    }
    plan_iteration(hosts, w);
    send_written(hosts);
}

/// Plans the next iteration, at a multiple of the interval, if there is anything to allocate.
fn plan_iteration(hosts: &mut Hosts, w: &mut World) {
    let Some(allocator) = &mut hosts.allocator else { return };
    if allocator.next_ps < u64::MAX || allocator.service.n_flows() <= allocator.config.external.len() {
        return;
    }
    let interval = allocator.config.interval.as_ps();
    let at = (w.clock.now_ps / interval + 1) * interval;
    allocator.next_ps = at;
    allocator.schedule(w, at, AllocatorEvent::Iterate);
}

/// Reads the messages of a line whose segments have arrived in order. Messages written meanwhile are sent once rates
/// are in force.
pub(super) fn read_messages(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
    let expected = hosts.receiving[flow].receiver.expected;
    let Some(allocator) = &mut hosts.allocator else { return };
    let (to, host) = (allocator.line_of(flow).to, allocator.host);
    while let Some(Addressed { server, message }) =
        hosts.allocator.as_mut().and_then(|allocator| allocator.line_of(flow).incoming.read(expected))
    {
        if to == host {
            on_notification_of(hosts, w, server, message);
        } else {
            if message == Message::Hello {
                renew_line_up(hosts, w, to);
            }
            if to == server {
                on_word_of_allocator(hosts, w, server, message);
            } else {
                relay(hosts, to, server, message);
            }
        }
    }
    hosts.deferred.is_to_follow_up = true;
}

/// Forwards a message at an intermediary.
fn relay(hosts: &mut Hosts, host: HostId, server: HostId, message: Message) {
    let Some(allocator) = &mut hosts.allocator else { return };
    let is_up = matches!(message, Message::Start { .. } | Message::End { .. });
    let line = if is_up { allocator.up[host] } else { allocator.line_down(host, server) };
    allocator.write(line, Addressed { server, message });
}

/// Handles a server's message at the allocator.
fn on_notification_of(hosts: &mut Hosts, w: &mut World, server: HostId, message: Message) {
    let Some(allocator) = &mut hosts.allocator else { return };
    let known = &mut allocator.known[server];
    match message {
        Message::Start { flow } => {
            let spec = &w.run.config.flows[flow as usize];
            allocator.path.clear();
            allocator.path.extend(w.run.path_of(FlowId(flow)).map(|port| LinkId(port.0)));
            let demand = if spec.demand == Rate::MAX { f64::INFINITY } else { spec.demand.as_bps_f64() };
            *known += u32::from(allocator.service.start(flow, &allocator.path, spec.weight, demand));
        }
        Message::End { flow } => *known -= u32::from(allocator.service.end(flow)),
        Message::Update { .. } | Message::Alive | Message::Hello => {}
    }
    plan_iteration(hosts, w);
}

/// Handles the allocator's message at an endpoint.
fn on_word_of_allocator(hosts: &mut Hosts, w: &World, server: HostId, message: Message) {
    let now = w.clock.now();
    let Some(allocator) = &mut hosts.allocator else { return };
    let (mut grants, mut answers) = (std::mem::take(&mut allocator.grants), std::mem::take(&mut allocator.answers));
    allocator.endpoints[server].on_message(now, message, &mut grants, &mut answers);
    answers.drain(..).for_each(|message| allocator.notify(server, message));
    allocator.answers = answers;
    grant(hosts, server, grants);
}

/// Requests that granted rates of a server's flows take effect.
fn grant(hosts: &mut Hosts, server: HostId, mut grants: Vec<Grant>) {
    for Grant { flow, rate_bps } in grants.drain(..) {
        let mut values = [0.0; NOTICE_VALUES];
        values[0] = rate_bps;
        let notice = Notice { flow, port: u32::MAX, values };
        hosts.deferred.notify(notice);
    }
    if let Some(allocator) = &mut hosts.allocator {
        allocator.grants = grants;
    }
    look_at_rates_of(hosts, server);
}

/// Requests that a check of a host's rates is planned once rates are in force and NICs have sent.
fn look_at_rates_of(hosts: &mut Hosts, server: HostId) {
    if let Some(allocator) = &mut hosts.allocator {
        allocator.to_look_at.push(server);
        hosts.deferred.is_to_follow_up = true;
    }
}

/// Plans a check of a host's rates at the time they may expire, unless an earlier one is planned, which plans the next.
fn plan_expiry(hosts: &mut Hosts, w: &mut World, server: HostId) {
    let Some(allocator) = &mut hosts.allocator else { return };
    let at = allocator.endpoints[server].deadline().as_ps();
    let planned = &mut allocator.expiry_ps[server];
    if at < *planned {
        *planned = at;
        let at = at.max(w.clock.now_ps);
        allocator.schedule(w, at, AllocatorEvent::Expiry(server));
    }
}

/// Handles rates of a host that may have expired.
fn on_expiry(hosts: &mut Hosts, w: &mut World, server: HostId) {
    let now = w.clock.now();
    let Some(allocator) = &mut hosts.allocator else { return };
    allocator.expiry_ps[server] = u64::MAX;
    let mut grants = std::mem::take(&mut allocator.grants);
    allocator.endpoints[server].on_timer(now, &mut grants);
    allocator.totals.expired += grants.len() as u64;
    grant(hosts, server, grants);
}

/// Stops the allocator, or restarts it without any state.
fn on_outage(hosts: &mut Hosts, w: &mut World) {
    let Some(allocator) = &mut hosts.allocator else { return };
    allocator.is_down = !allocator.is_down;
    if allocator.is_down {
        allocator.forget(&w.run.config, w.clock.now());
        return;
    }
    allocator.life += 1;
    let (host, life, now_ps) = (allocator.host, allocator.life, w.clock.now_ps);
    let of_allocator = allocator.lines.numbered().filter(|(_, line)| line.from == host).map(|(line, _)| line);
    for line in of_allocator.collect::<Vec<LineId>>() {
        renew_line(hosts, w, line, life);
    }
    add_external_flows(hosts, w);
    let Some(allocator) = &mut hosts.allocator else { return };
    for server in allocator.down.numbers() {
        if !allocator.down[server].is_none() {
            allocator.tell(server, Message::Hello, now_ps);
        }
    }
    send_written(hosts);
}

/// Renews the line from `host` to the allocator, if it has one, when it receives the message that the allocator has
/// restarted.
fn renew_line_up(hosts: &mut Hosts, w: &mut World, host: HostId) {
    let Some(allocator) = &hosts.allocator else { return };
    let (line, life) = (allocator.up[host], allocator.life);
    let Line { to, life: of, .. } = allocator.lines[line];
    if to == allocator.host && of < life {
        renew_line(hosts, w, line, life);
    }
}

/// Replaces a line by a new one. Its sequence numbers continue, so that packets of the old one still on their way count
/// as already received.
fn renew_line(hosts: &mut Hosts, w: &mut World, line: LineId, life: u32) {
    let Some(allocator) = &hosts.allocator else { return };
    let (id, tcp) = (allocator.flow_of(line), allocator.config.tcp);
    let slot = hosts.sending[id].sender;
    let path_rtt = w.run.flow_context(id, w.clock.now()).path_base_rtt;
    let sender = hosts.sender_mut(slot);
    let seq = sender.snd_nxt;
    (sender.snd_una, sender.bytes) = (seq, seq);
    sender.tcp = Some(Box::new(TcpSender::starting_at(&tcp, w.run.constants.mtu, path_rtt, seq)));
    hosts.receiving[id].receiver = Receiver::starting_at(seq);
    hosts.refresh(slot);
    let Some(allocator) = &mut hosts.allocator else { return };
    let line = &mut allocator.lines[line];
    line.life = life;
    line.outgoing.reset(seq);
    line.incoming.reset(seq);
}

/// Runs what follows once granted rates are in force: plans checks of rates, and sends the messages written meanwhile.
pub(crate) fn follow_up(hosts: &mut Hosts, w: &mut World) {
    while let Some(server) = hosts.allocator.as_mut().and_then(|allocator| allocator.to_look_at.pop()) {
        plan_expiry(hosts, w, server);
    }
    send_written(hosts);
}

/// Offers the new messages of lines to their senders, and requests that the NICs send.
fn send_written(hosts: &mut Hosts) {
    let Some(allocator) = &mut hosts.allocator else { return };
    let mut written = std::mem::take(&mut allocator.written);
    for line in written.drain(..) {
        let allocator = hosts.allocator.as_mut().expect("lines belong to an allocator");
        allocator.lines[line].is_written = false;
        let slot = hosts.sending[allocator.flow_of(line)].sender;
        let sender = hosts.sender_mut(slot);
        sender.offer_more();
        let host = sender.host;
        hosts.refresh(slot);
        hosts.deferred.look(host);
    }
    if let Some(allocator) = &mut hosts.allocator {
        allocator.written = written;
    }
}
