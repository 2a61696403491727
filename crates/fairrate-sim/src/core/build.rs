//! From a configuration to a run that is ready to start.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairrate_control::{Needs, PortScope};
use fairrate_units::{Bytes, Time};

use super::agents::{Agents, NOTICE_WORDS};
use super::allocator::{Allocator, control_flows};
use super::cluster::Parts;
use super::mail::Mail;
use super::partition::{self, Partition};
use super::paths::PathTable;
use super::tcp::SACK_WORDS;
use super::told::Story;
use super::{Connections, Constants, Convergence, Core, FlowState, NO_FLOW, Ranks};
use crate::config::{ClockRule, MarkDraws, SimConfig, TieRule, Transport, TransportConfig, Trigger};
use crate::engine::EventList;
use crate::fabric::{Discipline, Faults, Marker, Mmu, NO_HOST, Place, Port, Verdicts};
use crate::ideal::{self, Framing};
use crate::ids::{NodeId, PortId};
use crate::mrg32k3a::AutomaticStreams;
use crate::output::RunTotals;
use crate::packet::PacketPool;
use crate::routing::Routes;
use crate::topology::Tier;
use crate::transport::{NO_SENDER, Nic, Receiver, Tally};

/// Width of the event list's buckets: 2^11 ps, so that its wheel spans 8.4 us, more than a link's delay.
const BUCKET_SHIFT: u32 = 11;
const NO_HOST_NUMBER: u32 = u32::MAX;

/// What all parts of a run are built from.
pub(super) struct Plan {
    config: Arc<SimConfig>,
    constants: Constants,
    routes: Arc<Routes>,
    /// Number among hosts and number among switches of each node.
    host_of: Vec<u32>,
    switch_of: Vec<u32>,
    flows: Vec<FlowState>,
    paths: Arc<[u32]>,
    n_user_flows: u32,
    parts: Arc<Parts>,
}

/// Plans a run in up to `threads` parts.
pub(super) fn plan(mut config: SimConfig, threads: usize) -> (Plan, Partition) {
    debug_assert!(config.flows.is_sorted_by_key(|f| f.start), "flows are in order of start");
    let n_user_flows = config.flows.len() as u32;
    let control_flows = control_flows(&config);
    config.flows.extend(control_flows);
    let routes = Routes::new(&config.topology);
    let needs = config.cc.needs();
    if let Transport::Tcp(tcp) = &mut config.transport.kind {
        tcp.prr &= needs.prr;
    }
    check_packets(&config, &needs);
    let constants = constants(&config, &routes, &needs);
    let (host_of, switch_of) = number_nodes(&config);
    let mut flows: Vec<FlowState> =
        (0..).zip(&config.flows).map(|(id, f)| flow_state(id, f, &host_of, &config)).collect();
    link_successors(&config, &mut flows);
    let connections = Connections::new(&config);
    add_subflows(&config, &connections, &host_of, &mut flows);
    let paths = PathTable::new(&config, &routes, needs.ports != PortScope::None).of_all(&mut flows, &connections);
    let loads = partition::loads(&config.topology, flows.iter().map(|flow| expected(flow, &constants, &paths)));
    let partition = Partition::new(&config, &loads, threads);
    let topology = &config.topology;
    let part_of = |node: NodeId| partition.of_node[node.index()];
    let of_port = (0..topology.n_ports() as u32).map(|port| part_of(topology.from(PortId(port)))).collect();
    let parts = Arc::new(Parts { of_port, of_host: topology.hosts().map(part_of).collect() });
    let (routes, paths, config) = (Arc::new(routes), paths.into(), Arc::new(config));
    (Plan { config, constants, routes, host_of, switch_of, flows, paths, n_user_flows, parts }, partition)
}

/// About how many packets a flow puts onto each link of its path, and that path.
fn expected<'a>(flow: &FlowState, constants: &Constants, paths: &'a [u32]) -> (u64, &'a [u32]) {
    /// Of a flow without end.
    const ENDLESS: u64 = 10_000;
    let packets = if flow.endless { ENDLESS } else { flow.bytes.div_ceil(constants.mtu) };
    let start = flow.data_route as usize - 1;
    (packets, &paths[start..start + flow.n_hops as usize])
}

impl Plan {
    /// The run's configuration.
    pub(super) fn config(&self) -> Arc<SimConfig> {
        Arc::clone(&self.config)
    }

    /// Which part everything is in.
    pub(super) fn parts(&self) -> Arc<Parts> {
        Arc::clone(&self.parts)
    }
}

impl Core {
    /// Builds part number `part` of `n_parts`, and schedules what happens there first.
    pub(super) fn new(plan: &Plan, part: u16, n_parts: usize) -> Self {
        let (config, constants, parts) = (&plan.config, &plan.constants, &plan.parts);
        let needs = config.cc.needs();
        let mut ports = build_ports(config, &plan.host_of, &plan.switch_of);
        for (port, p) in (0u32..).zip(&mut ports).filter(|(port, _)| parts.of_port(*port) == usize::from(part)) {
            p.away = Some(parts.of_port(port ^ 1) as u16).filter(|&to| to != part);
        }
        let topology = &config.topology;
        let of_switch: Vec<Option<u32>> = (0..ports.len() as u32)
            .map(|p| Some(plan.switch_of[topology.from(PortId(p)).index()]).filter(|&s| s != NO_HOST_NUMBER))
            .collect();
        let n_switches = of_switch.iter().flatten().max().map_or(0, |&s| s as usize + 1);
        let wire_mtu = Bytes::new(constants.mtu + constants.data_header);
        let mmu = Mmu::new(&config.fabric, &topology.links, &of_switch, n_switches, wire_mtu);
        let marker = |port: u32| {
            let ecn = config.fabric.ecn.as_ref().filter(|_| of_switch[port as usize].is_some())?;
            Some(Marker::new(ecn, ports[port as usize].rate, config.seed, port))
        };
        let n_markers = if config.fabric.ecn.is_some() { ports.len() as u32 } else { 0 };
        let markers = (0..n_markers).map(marker).collect();
        let like_ns3 = config.fabric.ecn.as_ref().is_some_and(|ecn| ecn.draws == MarkDraws::LikeNs3);
        let shared_draws = like_ns3.then(|| Box::new(AutomaticStreams::new(1, config.seed, streams_taken(config))));
        let is_here = |id: u32| parts.of_host(plan.flows[id as usize].src_host) == usize::from(part);
        let starts_here = |id: &u32| config.flows[*id as usize].trigger == Trigger::Time && is_here(*id);
        let starts: Vec<u32> = (0..plan.n_user_flows).filter(starts_here).collect();
        let finite_left = starts.iter().filter(|&&id| !plan.flows[id as usize].endless).count() as u64;
        let agents = Agents::new(config, &ports, constants.base_rtt, wire_mtu.as_u64());
        let longest = plan.routes.longest_path() as usize;
        // Switches stamp, and a path has a switch less than links.
        let stride = if constants.int.is_some() { longest.saturating_sub(1) } else { 0 };
        let notice_words = if needs.ports == PortScope::None { 0 } else { NOTICE_WORDS };
        let header_words = constants.header_words;
        let sack_words = if config.transport.kind == Transport::Rdma { 0 } else { SACK_WORDS };
        let header_stride = (header_words + sack_words).max(notice_words);
        attach_disciplines(config, &mut ports, wire_mtu.as_u64() as u32, needs.ecn);
        let special_ports = !agents.is_empty() || ports.iter().any(Port::has_disciplines);
        let mut core = Self {
            constants: constants.clone(),
            part,
            parts: Arc::clone(parts),
            outbox: (0..n_parts).map(|_| Mail::default()).collect(),
            inbox: (0..n_parts).map(|_| Mail::default()).collect(),
            routes: Arc::clone(&plan.routes),
            now_ps: 0,
            events: EventList::new(BUCKET_SHIFT),
            ranks: Ranks { by_insertion: config.fabric.ties == TieRule::Insertion, next: 0, current: 0 },
            pool: PacketPool::new(stride, header_stride),
            header_scratch: vec![0.0; header_words],
            ports,
            markers,
            shared_draws,
            mmu,
            special_ports,
            verdicts: Verdicts::default(),
            faults: Faults::new(&config.faults, config.seed, topology.n_ports()),
            agents,
            nics: build_nics(config, &plan.routes),
            flows: plan.flows.clone(),
            connections: Connections::new(config),
            n_user_flows: plan.n_user_flows,
            allocator: Allocator::new(config, &plan.host_of, parts, plan.n_user_flows, constants.mtu),
            starts,
            next_start: 0,
            senders: Vec::new(),
            free_senders: Vec::new(),
            active: 0,
            finite_left,
            paths: Arc::clone(&plan.paths),
            last_progress_ps: 0,
            convergence: Convergence::new(config, constants.base_rtt),
            story: Story::default(),
            tells_rtts: false,
            totals: RunTotals::default(),
            config: Arc::clone(config),
        };
        core.schedule_next_start();
        core.schedule_flaps();
        core.start_agents();
        core.start_convergence();
        core.start_allocator();
        core
    }
}

/// Sizes of packets on the wire.
pub(crate) fn framing(config: &SimConfig) -> Framing {
    let (t, needs) = (&config.transport, config.cc.needs());
    Framing { mtu: t.mtu, header: t.data_header(&needs), ack: t.ack + t.ack_overhead.unwrap_or(needs.ack_overhead) }
}

/// Checks that the longest packets have lengths of 16 bits.
fn check_packets(config: &SimConfig, needs: &Needs) {
    let (t, framing) = (&config.transport, framing(config));
    let control = needs.control.unwrap_or_default();
    for bytes in [framing.mtu + framing.header, framing.ack, t.cnp, config.fabric.pfc_frame, control] {
        assert!(bytes <= TransportConfig::MAX_PACKET, "a packet of {bytes} is too long");
    }
}

fn constants(config: &SimConfig, routes: &Routes, needs: &Needs) -> Constants {
    let (t, framing) = (&config.transport, framing(config));
    let base_rtt =
        ideal::network_base_rtt(&config.topology, routes, config.fabric.clock, framing, config.transport.base_rtt);
    Constants {
        framing,
        mtu: framing.mtu.as_u64(),
        data_header: framing.header.as_u64(),
        ack_wire: framing.ack.as_u64() as u16,
        cnp_wire: t.cnp.as_u64() as u16,
        control_wire: needs.control.map(|bytes| bytes.as_u64() as u16),
        control_class: t.control_class,
        reaction_ps: t.reaction_delay.as_ps(),
        header_words: usize::from(needs.header.fixed)
            + usize::from(needs.header.per_hop) * routes.longest_path() as usize,
        pfc_wire: config.fabric.pfc_frame.as_u64() as u16,
        ack_class: t.ack_class,
        nack_interval_ps: t.nack_interval.as_ps(),
        cnp_interval_ps: needs.cnp_interval.map(Time::as_ps),
        rto_ps: t.rto.filter(|_| t.kind == Transport::Rdma).map_or(u64::MAX, Time::as_ps),
        fixed_rto: needs
            .rto_rtts
            .map(|rtts| Time::from_ps((rtts * base_rtt.as_ps() as f64) as u64).max(Time::from_ns(1))),
        whole_ns: config.fabric.clock == ClockRule::WholeNanoseconds,
        repace: needs.repace_on_change,
        pacing_credit: u64::from(needs.pacing_credit),
        first_ack_only_stored: needs.first_ack_only_stored,
        int: needs.int.map(|counter| (counter, needs.int_format)),
        base_rtt,
    }
}

/// Numbers hosts and switches apart: for each node its host number and its switch number.
fn number_nodes(config: &SimConfig) -> (Vec<u32>, Vec<u32>) {
    let (mut hosts, mut switches) = (0, 0);
    let mut number = |is_host: bool| {
        let count = if is_host { &mut hosts } else { &mut switches };
        *count += 1;
        *count - 1
    };
    let nodes = config.topology.nodes.iter().map(|n| n.tier == Tier::Host);
    nodes.map(|is_host| if is_host { (number(true), NO_HOST_NUMBER) } else { (NO_HOST_NUMBER, number(false)) }).unzip()
}

/// How many of ns-3's random streams the artifact takes before anything happens: nine a node for the protocols of its
/// internet stack, one for an error model and one for the variable that model is given. Found by comparing runs.
fn streams_taken(config: &SimConfig) -> u64 {
    9 * config.topology.nodes.len() as u64 + 2
}

fn build_ports(config: &SimConfig, host_of: &[u32], switch_of: &[u32]) -> Vec<Port> {
    let topology = &config.topology;
    let port = |id: u32| {
        let link = topology.link(PortId(id));
        let (from, to) = (topology.from(PortId(id)).index(), topology.to(PortId(id)).index());
        let mut port = Port::new(link.rate, link.delay.as_ps(), config.fabric.clock);
        (port.to_host, port.of_host, port.of_switch) = (host_of[to], host_of[from], switch_of[from]);
        port
    };
    (0..topology.n_ports() as u32).map(port).collect()
}

/// Puts the classes that flows send in under the configured discipline, at the egress ports of switches.
fn attach_disciplines(config: &SimConfig, ports: &mut [Port], wire_mtu: u32, ecn_capable: bool) {
    let classes = config.flows.iter().map(|f| f.class.unwrap_or(config.transport.data_class));
    let classes: BTreeSet<u8> = classes.collect();
    for (port, p) in (0..).zip(ports).filter(|(_, p)| p.of_host == NO_HOST) {
        for &class in &classes {
            let place = Place { port, class, rate: p.rate, wire_mtu, ecn_capable, seed: config.seed };
            if let Some(discipline) = Discipline::new(&config.fabric.queue, &place) {
                p.set_discipline(class, discipline);
            }
        }
    }
}

fn build_nics(config: &SimConfig, routes: &Routes) -> Vec<Nic> {
    let port = |host| routes.host_port(host).expect("every host of a topology has a link").0;
    config.topology.hosts().map(|host| Nic::new(port(host))).collect()
}

fn flow_state(id: u32, spec: &crate::config::FlowSpec, host_of: &[u32], config: &SimConfig) -> FlowState {
    let bytes = spec.bytes.as_u64();
    FlowState {
        spec: id,
        subflow: 0,
        src_host: host_of[spec.src.index()],
        dst_host: host_of[spec.dst.index()],
        bytes,
        endless: bytes == u64::MAX,
        start_ps: spec.start.as_ps(),
        class: spec.class.unwrap_or(config.transport.data_class),
        n_hops: 0,
        data_route: 0,
        ack_route: 0,
        notice_route: 0,
        successor: NO_FLOW,
        successor_delay_ps: 0,
        sender: NO_SENDER,
        receiver: Receiver::default(),
        arrived_ps: u64::MAX,
        fct_ack_ps: u64::MAX,
        connected_ps: u64::MAX,
        tally: Tally::NEW,
        has_started: false,
        over: false,
    }
}

/// Adds the subflows of all flows behind them.
fn add_subflows(config: &SimConfig, connections: &Connections, host_of: &[u32], flows: &mut Vec<FlowState>) {
    for (id, spec) in (0..).zip(&config.flows) {
        let subflow = |(subflow, _)| FlowState { subflow, ..flow_state(id, spec, host_of, config) };
        flows.extend((0..).zip(connections.subflow_ids(id)).map(subflow));
    }
}

/// Tells every flow that another waits for which one that is.
fn link_successors(config: &SimConfig, flows: &mut [FlowState]) {
    for (id, spec) in (0..).zip(&config.flows) {
        if let Trigger::After(before, delay) = spec.trigger {
            let before = &mut flows[before.index()];
            debug_assert!(before.successor == NO_FLOW, "one flow has one successor");
            (before.successor, before.successor_delay_ps) = (id, delay.as_ps());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::transport::{NicFlow, Sender, TcpSender};

    /// There are many of these: docs/performance.md says how many, and what they add up to.
    #[test]
    fn what_there_is_much_of_is_small() {
        // Of every port and host of a network, in every part.
        assert!(size_of::<Port>() <= 256 && size_of::<Option<Marker>>() <= 64 && size_of::<Nic>() <= 88);
        // Of every flow of a run, in every part.
        assert!(size_of::<FlowState>() <= 120);
        // Of an active flow.
        assert!(size_of::<Option<Sender>>() <= 448 && size_of::<NicFlow>() <= 16 && size_of::<TcpSender>() <= 424);
        assert!(size_of::<Packet>() <= 64);
    }
}
