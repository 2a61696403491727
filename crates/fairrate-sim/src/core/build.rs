//! The construction of a run, ready to start, from its configuration.

mod constants;
mod flows;
mod switches;

use std::sync::Arc;

use fairrate_control::{Needs, NetworkNeeds, PortScope};
use fairrate_units::{Bytes, Time};

pub(crate) use self::constants::framing;
use self::constants::{check_packets, constants};
use self::switches::{attach_disciplines, attach_weights, build_switches};
pub(super) use self::switches::{shares_draws, weighted_classes};
use super::agenda::Agenda;
use super::agents::{Agents, NOTICE_WORDS};
use super::clock::Clock;
use super::density::{self, expected_packets};
use super::flow::Flow;
use super::host::{Hosts, ReceivingEnd, SendingEnd};
use super::look_ahead::LookAhead;
use super::mode::{self, Mode, Reason};
use super::network::Network;
use super::observations::Observations;
use super::parallel::{Expected, Mail, Partition, PostOffice, add_loads};
use super::paths::{PathTable, Paths};
use super::run::{Constants, PartOf, Run};
use super::share::{Links, Own};
use super::world::World;
use super::{Part, Standing};
use crate::config::{SimConfig, Successors, TieRule, Transport, TransportConfig, Trigger, check_dependencies};
use crate::engine::Event;
use crate::fabric::{Faults, Port};
use crate::huge_pages;
use crate::ids::{FlowId, HostId, NodeId, Number, PortId, PortIdx, SwitchIdx, TaskId};
use crate::packet::PacketPool;
use crate::routing::Routes;
use crate::simulation::Switching;
use crate::table::Table;
use crate::topology::{Node, Tier, Topology};
use crate::transport::{Allocator, Connections, Nic, SACK_WORDS, line_flows, start_allocator};

/// The plan of a run, from which all its parts are built.
pub(super) struct Plan {
    pub(super) run: Arc<Run>,
    /// Number of each node among the hosts, and among the switches of its part.
    host_of: Table<NodeId, HostId>,
    switch_of: Table<NodeId, SwitchIdx>,
    /// The part of each node.
    part_of: Table<NodeId, u16>,
    /// For each part, the links that touch it.
    links: Vec<Links>,
    /// The ports of all paths, each as its index in its part.
    hops: Paths<PortIdx>,
    /// Least delay of a link between parts, and of one that could be between parts, in picoseconds.
    pub(super) cut_ps: u64,
    pub(super) lookahead_ps: u64,
    /// The boxes in which parts put mail for each other.
    office: Arc<PostOffice>,
    /// The way in which switches are to proceed.
    switching: Switching,
    /// The reason for which switches go event by event even if they could go in spans.
    by_event: Option<Reason>,
}

/// Plans a run in at most `threads` parts, with switches that go in spans or event by event as `switching` asks.
pub(super) fn plan(mut config: SimConfig, threads: usize, switching: Switching) -> Plan {
    debug_assert!(config.flows.is_sorted_by_key(|f| f.start), "flows are in order of start");
    let checked = check_dependencies(&config.flows, &config.tasks, &config.dependencies, &config.topology);
    assert!(checked.is_ok(), "dependencies can be met: {checked:?}");
    let n_user_flows = complete(&mut config);
    let routes = Routes::of(&config);
    check_packets(&config);
    let (constants, mut rules) = constants(&config, &routes);
    let host_of = number_hosts(&config);
    let connections = Connections::new(&config);
    let mut flows = flows::build(&config, n_user_flows, &connections, &host_of);
    let table = PathTable::new(&config, &routes, has_ways_back(&config));
    let (paths, sports) = table.of_all(&mut flows, &connections);
    let levels = flows::levels(&config, &rules, &mut flows, &paths);
    let mut loads: Table<PortId, u64> = vec![0; config.topology.n_ports()].into();
    add_loads(&mut loads, flows.iter().map(|flow| (expected_packets(flow, &constants), flow.data_path(&paths))));
    let by_event = reason_by_event(&config, &loads, &constants, switching);
    let expect = || {
        let duration_ps = density::shortest_time_ps(&config, &loads, &constants);
        let back = flows.iter().map(|flow| (expected_packets(flow, &constants), flow.ack_path(&paths)));
        let mut of_ports = loads.clone();
        add_loads(&mut of_ports, back);
        Expected { of_ports, duration_ps }
    };
    let partition = Partition::new(&config, expect, threads);
    let parts = assign_ports(&config.topology, &partition);
    let links = links_of_parts(&config.topology, &partition);
    let flows: Table<FlowId, Flow> = flows.into();
    let hops = lay_hops(&config, &flows, &paths, &links, &parts);
    let switch_of = number_switches(&config, &partition);
    let beside = rules.split_off(1);
    let first = rules.remove(0);
    let successors = Successors::new((config.flows.len(), config.tasks.len()), &config.dependencies);
    let processing = config.processing();
    let queued_rates = config.topology.queued_rates().into_values().collect();
    let run = Arc::new(Run {
        config,
        constants,
        first,
        beside,
        routes,
        flows,
        n_user_flows,
        successors,
        paths,
        sports,
        parts,
        levels,
        processing,
        queued_rates,
    });
    Plan {
        run,
        host_of,
        switch_of,
        part_of: partition.of_node,
        office: Arc::new(PostOffice::new(links.len())),
        links,
        hops,
        cut_ps: partition.cut_ps,
        lookahead_ps: partition.lookahead_ps,
        switching,
        by_event,
    }
}

impl Plan {
    /// Returns the number of parts.
    pub(super) fn n_parts(&self) -> usize {
        self.links.len()
    }

    /// Returns `true` if the node that `port` belongs to is in part number `part`.
    fn is_in(&self, part: u16, port: PortId) -> bool {
        self.run.parts.port(port) == part
    }

    /// Builds a table of the `value` of each of `n` flows or hosts that is in part number `part`, where `part_of`
    /// returns the part of a flow or host.
    fn own<I: Number, T>(
        &self,
        part: u16,
        n: usize,
        part_of: impl Fn(I) -> u16,
        value: impl FnMut(I) -> T,
    ) -> Own<I, T> {
        if self.n_parts() == 1 { Own::all(n, value) } else { Own::some(n, |number| part_of(number) == part, value) }
    }
}

/// Adds the flows that carry messages, rounds bursts, and leaves PRR to the algorithms that allow it; returns the
/// number of the user's flows.
fn complete(config: &mut SimConfig) -> u32 {
    let n_user_flows = config.flows.len() as u32;
    let lines = line_flows(config);
    // Changing the flows would copy them, and there may be many millions.
    if !lines.is_empty() {
        config.flows.extend(lines);
    }
    fill_bursts(config);
    allow_prr(&mut config.transport, &config.cc.needs());
    for stack in &mut config.beside {
        allow_prr(&mut stack.transport, &stack.cc.needs());
    }
    n_user_flows
}

/// Returns `true` if switches send packets back along data paths: notices of ports, or headers.
fn has_ways_back(config: &SimConfig) -> bool {
    let has_notices = config.network_needs().ports != PortScope::None;
    let returns_headers = config.fabric.admission.trim.is_some_and(|trim| trim.returns);
    // Where switches choose ports, a header goes back by the entries of acknowledgments.
    has_notices || returns_headers && !config.goes_hop_by_hop()
}

/// Returns the reason for which switches go event by event even if they could go in spans, where each port is expected
/// to send `loads` packets.
fn reason_by_event(
    config: &SimConfig,
    loads: &Table<PortId, u64>,
    constants: &Constants,
    switching: Switching,
) -> Option<Reason> {
    match switching {
        Switching::Fitting if density::is_dense(config, loads, constants) => None,
        Switching::Fitting => Some(Reason::FewPackets),
        Switching::Spans | Switching::Batches => None,
        Switching::Events => Some(Reason::Asked),
    }
}

/// Returns the part of every port and host.
fn assign_ports(topology: &Topology, partition: &Partition) -> PartOf {
    let part_of = |node: NodeId| partition.of_node[node];
    let ports = (0..topology.n_ports() as u32).map(|port| part_of(topology.from(PortId(port)))).collect();
    PartOf { ports, hosts: topology.end_points().map(part_of).collect() }
}

/// Returns the ports of all `paths`, each as its index in its part, with the hops that switches choose left open.
fn lay_hops(
    config: &SimConfig,
    flows: &Table<FlowId, Flow>,
    paths: &Paths<PortId>,
    links: &[Links],
    parts: &PartOf,
) -> Paths<PortIdx> {
    let steered = paths.clone().by_voqs(&config.topology);
    let laid = if links.len() == 1 { steered.of_one_part() } else { steered.by_place(&places(links, parts)) };
    if config.goes_hop_by_hop() { laid.sprayed(config, flows) } else { laid }
}

fn links_of_parts(topology: &Topology, partition: &Partition) -> Vec<Links> {
    match partition.n_parts {
        1 => vec![Links::default()],
        n => (0..n as u16).map(|number| Links::of_part(topology, &partition.of_node, number)).collect(),
    }
}

/// Returns the index of every port in the part that it belongs to.
fn places(links: &[Links], parts: &PartOf) -> Table<PortId, PortIdx> {
    let mut places: Table<PortId, PortIdx> = vec![PortIdx(0); parts.ports.len()].into();
    for (number, links) in (0..).zip(links) {
        for (place, id) in (0..).zip(links.port_ids(parts.ports.len())) {
            if parts.port(id) == number {
                places[id] = PortIdx(place);
            }
        }
    }
    places
}

/// Leaves PRR to the algorithms that allow it.
fn allow_prr(transport: &mut TransportConfig, needs: &Needs) {
    if let Transport::Tcp(tcp) = &mut transport.kind {
        tcp.prr &= needs.feedback.prr;
    }
}

/// Rounds bursts up to whole segments with TCP, whose scoreboard counts in segments.
fn fill_bursts(config: &mut SimConfig) {
    if config.flows.iter().all(|flow| flow.burst.is_none()) {
        return;
    }
    let mtu = config.transport.mtu.as_u64();
    let is_tcp: Vec<bool> = config.stacks().map(|(t, _)| matches!(t.kind, Transport::Tcp(_))).collect();
    for flow in config.flows.iter_mut().filter(|flow| is_tcp[usize::from(flow.stack)]) {
        let Some(burst) = &mut flow.burst else { continue };
        burst.bytes = Bytes::new(burst.bytes.as_u64().div_ceil(mtu).saturating_mul(mtu));
    }
}

impl Part {
    /// Builds part number `number`, and schedules its first events.
    pub(super) fn new(plan: &Plan, number: u16) -> Self {
        let run = &plan.run;
        let (config, constants, parts) = (&run.config, &run.constants, &run.parts);
        let needs = config.network_needs();
        let links = plan.links[usize::from(number)].clone();
        let ids: Table<PortIdx, PortId> = links.port_ids(config.topology.n_ports()).collect();
        let mut ports = build_ports(plan, number, &ids);
        let crossings = build_crossings(plan, number, &ids, &mut ports);
        let wire_mtu = Bytes::new(constants.wire_mtu);
        attach_disciplines(config, &ids, &mut ports, wire_mtu.as_u64() as u32);
        attach_weights(config, &mut ports, wire_mtu.as_u64() as u32);
        let own_ports = || ids.iter().zip(&ports).map(|(&id, port)| plan.is_in(number, id).then_some((id, port)));
        let agents = Agents::new(run, own_ports());
        let of_switch = switches_of_ports(plan, number, &ids);
        let mut switches = build_switches(run, &of_switch, &ids, &mut ports, wire_mtu);
        let own: Vec<PortId> = ids.iter().copied().filter(|&id| plan.is_in(number, id)).collect();
        switches.attach_circuits(run, &links, &own, ports.len());
        let (agenda, mode) = build_agenda(plan, &of_switch, &mut ports, &agents);
        let starts_here = |&id: &FlowId| {
            config.flows[id.index()].trigger == Trigger::Time && parts.host(run.flow(id).src_host) == number
        };
        let starts: Vec<FlowId> = (0..run.n_user_flows).map(FlowId).filter(starts_here).collect();
        let part_of_host = |host| parts.host(host);
        let allocator = Allocator::new(config, &plan.host_of, part_of_host, FlowId(run.n_user_flows), constants.mtu);
        let ends = (
            build_nics(plan, number),
            plan.own(number, run.flows.len(), |id| parts.host(run.flow(id).src_host), |_| SendingEnd::IDLE),
            plan.own(number, run.flows.len(), |id| parts.host(run.flow(id).dst_host), |_| ReceivingEnd::new()),
        );
        let hosts = Hosts::new(run, ends, starts, allocator);
        let net = Network {
            pool: build_pool(run, &needs),
            agenda,
            paths: plan.hops.clone(),
            telemetry: constants.telemetry,
            faults: Faults::new(&config.faults, config.seed, ports.len(), |port| links.place_of(port)),
            has_plain_wires: config.faults.is_empty(),
            crossings,
            mail: (0..plan.n_parts()).map(|_| Mail::default()).collect(),
            ports,
            links,
        };
        let clock = Clock::new(config.fabric.ties == TieRule::Insertion);
        let observed = Observations::new(run, clock.is_by_insertion());
        let world = World { run: Arc::clone(run), clock, net, agents, observed };
        let standing = Standing { next: Event::LAST, has_news: false, is_done: false };
        let (office, spare) = (Arc::clone(&plan.office), Mail::default());
        let n_ends = parts.hosts.iter().filter(|&&part| part == number).count();
        let ahead = if plan.switching == Switching::Batches {
            LookAhead::everything()
        } else {
            let n_ports = (world.net.ports.len(), config.topology.n_ports());
            LookAhead::new(n_ports, n_ends, !config.dependencies.is_empty())
        };
        let in_batches = ahead.in_batches && mode.switches.is_empty();
        let mode = Mode { in_batches, ..mode };
        let mut part = Self { number, world, switches, hosts, mode, ahead, office, spare, standing };
        part.begin();
        let is_here = |&id: &TaskId| part.hosts.has(plan.host_of[config.tasks[id.index()].host]);
        let tasks: Vec<TaskId> = (0..config.tasks.len() as u32).map(TaskId).filter(is_here).collect();
        part.hosts.schedule_tasks(&mut part.world, &tasks);
        part.standing = part.standing(u64::MAX);
        part
    }

    /// Schedules the first events of the part.
    fn begin(&mut self) {
        self.switches.plan_circuits(&mut self.world);
        self.hosts.schedule_next_start(&mut self.world);
        self.schedule_flaps();
        self.world.agents.plan_all(&mut self.world.clock);
        self.hosts.start_convergence(&mut self.world);
        let run = Arc::clone(&self.world.run);
        for id in (run.n_user_flows..run.config.flows.len() as u32).map(FlowId) {
            self.hosts.open_line(&mut self.world, id);
        }
        start_allocator(&mut self.hosts, &mut self.world);
    }
}

/// Returns, for each port of part number `number`, the switch it belongs to, if there is one and it is in the part.
fn switches_of_ports(plan: &Plan, number: u16, ids: &Table<PortIdx, PortId>) -> Table<PortIdx, Option<SwitchIdx>> {
    let topology = &plan.run.config.topology;
    let switch = |&id: &PortId| plan.switch_of[topology.from(id)];
    let of_port = |id| Some(switch(id)).filter(|&switch| !switch.is_none() && plan.is_in(number, *id));
    ids.iter().map(of_port).collect()
}

/// Builds the agenda of switches and hosts that go in spans; it is empty if switches go event by event, for the reasons
/// in the returned mode.
fn build_agenda(
    plan: &Plan,
    of_switch: &Table<PortIdx, Option<SwitchIdx>>,
    ports: &mut Table<PortIdx, Port>,
    agents: &Agents,
) -> (Agenda, Mode) {
    let (run, one_part) = (&plan.run, mode::one_part(&plan.run.config));
    let mut switches: Vec<Reason> = plan.by_event.into_iter().collect();
    switches.extend(mode::switches_by_event(run, ports, agents));
    let hosts = mode::hosts_by_event(run);
    if switches.is_empty() {
        let n_hosts = hosts.is_empty().then(|| run.config.topology.end_points().count());
        match Agenda::new(of_switch, ports, n_hosts) {
            Ok(agenda) => return (agenda, Mode { switches, hosts, one_part, ..Mode::default() }),
            Err(reason) => switches.push(reason),
        }
    }
    switches.sort_unstable();
    (Agenda::default(), Mode { switches, hosts: vec![Reason::SwitchesByEvent], one_part, ..Mode::default() })
}

/// Builds the pool of packets, with room for the telemetry and header words that they carry.
fn build_pool(run: &Run, needs: &NetworkNeeds) -> PacketPool {
    // Switches add telemetry, and a path has one switch less than links.
    let longest = run.routes.longest_path() as usize;
    let stride = if run.constants.telemetry.is_some() { longest.saturating_sub(1) } else { 0 };
    let notice_words = if needs.ports == PortScope::None { 0 } else { NOTICE_WORDS };
    let has_tcp = run.config.is_any(|transport, _| matches!(transport.kind, Transport::Tcp(_)));
    let sack_words = if has_tcp { SACK_WORDS } else { 0 };
    PacketPool::new(stride, (run.constants.header_words + sack_words).max(notice_words))
}

/// Numbers hosts; returns the number of each node among them, or [`HostId::NONE`] for a switch.
fn number_hosts(config: &SimConfig) -> Table<NodeId, HostId> {
    let mut numbers = (0..).map(HostId);
    let nodes = config.topology.nodes.iter();
    nodes
        .map(|node| if node.tier == Tier::Host { numbers.next().unwrap_or(HostId::NONE) } else { HostId::NONE })
        .collect()
}

/// Numbers the switches of each part; returns the number of each node in its part, or [`SwitchIdx::NONE`] for a host.
fn number_switches(config: &SimConfig, partition: &Partition) -> Table<NodeId, SwitchIdx> {
    let mut counts = vec![0; partition.n_parts];
    let number = |(node, &part): (&Node, &u16)| {
        if node.tier == Tier::Host {
            return SwitchIdx::NONE;
        }
        let count: &mut u32 = &mut counts[usize::from(part)];
        *count += 1;
        SwitchIdx(*count - 1)
    };
    config.topology.nodes.iter().zip(&partition.of_node).map(number).collect()
}

fn build_ports(plan: &Plan, number: u16, ids: &Table<PortIdx, PortId>) -> Table<PortIdx, Port> {
    let config = &plan.run.config;
    let topology = &config.topology;
    let rates = config.rates_at(Time::ZERO);
    let port = |&id: &PortId| {
        let link = topology.link(id);
        let (from, to) = (topology.from(id), topology.to(id));
        let mut port =
            Port::new(rates[id.index()], link.delay.as_ps(), config.fabric.clock, config.fabric.frame_overhead);
        port.set_to_host(plan.host_of[to]);
        port.of_host = plan.host_of[from];
        port.of_switch = if plan.is_in(number, id) { plan.switch_of[from] } else { SwitchIdx::NONE };
        port
    };
    let mut ports = huge_pages::with_capacity(ids.len());
    ports.extend(ids.iter().map(port));
    ports.into()
}

/// Returns, for each port whose wire leads to another part, that part and the port's index there; stores the index of
/// that entry in the port.
fn build_crossings(plan: &Plan, number: u16, ids: &Table<PortIdx, PortId>, ports: &mut [Port]) -> Vec<(u16, PortIdx)> {
    let topology = &plan.run.config.topology;
    let mut crossings = Vec::new();
    for (&id, port) in ids.iter().zip(ports) {
        let to = plan.part_of[topology.to(id)];
        if let Some(place) = plan.links[usize::from(to)].place_of(id).filter(|_| to != number) {
            port.set_crossing(crossings.len() as u32);
            crossings.push((to, place));
        }
    }
    crossings.shrink_to_fit();
    crossings
}

fn build_nics(plan: &Plan, number: u16) -> Own<HostId, Nic> {
    let (run, links) = (&plan.run, &plan.links[usize::from(number)]);
    let hosts: Table<HostId, NodeId> = run.config.topology.end_points().collect();
    let nic = |host: HostId| {
        let port = run.routes.host_port(hosts[host]).and_then(|port| links.place_of(port));
        Nic::new(port.expect("every host of a topology has a link"))
    };
    plan.own(number, hosts.len(), |host| run.parts.host(host), nic)
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;
    use crate::fabric::Marker;
    use crate::packet::Packet;
    use crate::transport::{NicFlow, Sender, TcpSender};

    /// These types have many instances: docs/performance.md gives their numbers and total sizes.
    #[test]
    fn hot_structs_fit_cache_lines() {
        // One for every port and host of a network, in every part.
        assert!(size_of::<Port>() <= 256 && size_of::<Option<Marker>>() <= 64 && size_of::<Nic>() <= 128);
        // A NIC's second line has the notices that it holds.
        assert!(offset_of!(Nic, port) < 64 && 44 <= offset_of!(Nic, held));
        // One for every flow of a run, and one for each in every part.
        assert!(size_of::<Flow>() <= 56 && size_of::<SendingEnd>() + size_of::<ReceivingEnd>() <= 80);
        // One for every active flow.
        assert!(size_of::<Option<Sender>>() <= 448 && size_of::<NicFlow>() <= 16 && size_of::<TcpSender>() <= 424);
        assert!(size_of::<Packet>() <= 64);
    }
}
