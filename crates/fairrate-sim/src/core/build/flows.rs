//! The flows of a run: the fixed properties of each, its transport, its subflows, and its successor.

use crate::config::{FlowSpec, SimConfig, Transport, Trigger};
use crate::core::flow::Flow;
use crate::core::paths::Paths;
use crate::core::run::Rules;
use crate::ids::{FlowId, HostId, NodeId, PortId};
use crate::table::Table;
use crate::transport::{Connections, Kind, Levels};

/// Builds all flows, and their subflows behind them, without their paths. The first `n_user_flows` are the user's.
pub(super) fn build(
    config: &SimConfig,
    n_user_flows: u32,
    connections: &Connections,
    host_of: &Table<NodeId, HostId>,
) -> Vec<Flow> {
    let of_spec = |(id, spec)| {
        let transport = transport_of(config, id, n_user_flows, connections.first_subflow(id).is_some());
        flow(id, spec, transport, host_of, config)
    };
    let mut flows: Vec<Flow> = (0..).map(FlowId).zip(&config.flows).map(of_spec).collect();
    link_successors(config, &mut flows);
    add_subflows(config, connections, host_of, &mut flows);
    flows
}

/// Returns the fixed properties of a flow, without its paths.
fn flow(id: FlowId, spec: &FlowSpec, transport: Kind, host_of: &Table<NodeId, HostId>, config: &SimConfig) -> Flow {
    let class = config.class_of(spec);
    Flow::new(id, (host_of[spec.src], host_of[spec.dst]), spec.bytes.as_u64(), class, spec.stack, transport)
}

/// Returns the transport of a flow; `has_subflows`: it is a connection of several subflows.
fn transport_of(config: &SimConfig, id: FlowId, n_user_flows: u32, has_subflows: bool) -> Kind {
    let stack = config.flows[id.index()].stack;
    let (transport, cc) = config.stack(stack);
    match transport.kind {
        _ if n_user_flows <= id.0 => Kind::Line,
        Transport::Rdma if cc.needs().feedback.grants.is_some() => Kind::Homa,
        Transport::Rdma => Kind::Rdma,
        Transport::Uet { .. } => Kind::Uet,
        Transport::Tcp(_) if has_subflows => Kind::Mptcp,
        Transport::Tcp(_) if config.allocator.is_some() => Kind::Ruled,
        Transport::Tcp(_) => Kind::Tcp,
    }
}

/// Returns the packet classes of a transport whose receivers grant, and assigns them to `flows`.
pub(super) fn levels(config: &SimConfig, rules: &[Rules], flows: &mut [Flow], paths: &Paths<PortId>) -> Option<Levels> {
    let mut stacks = config.stacks().zip(rules).filter(|((transport, _), _)| transport.kind == Transport::Rdma);
    let (grants, rules) = stacks.find_map(|((_, cc), rules)| Some((cc.needs().feedback.grants?, rules)))?;
    let mut levels = Levels::new(config, &grants, rules.base_rtt, rules.data_header);
    levels.assign(config, &grants, flows, paths);
    Some(levels)
}

/// Appends the subflows of all flows.
fn add_subflows(config: &SimConfig, connections: &Connections, host_of: &Table<NodeId, HostId>, flows: &mut Vec<Flow>) {
    for (id, spec) in (0..).map(FlowId).zip(&config.flows) {
        let subflow = |(subflow, _)| flow(id, spec, Kind::Mptcp, host_of, config).with_subflow(subflow);
        flows.extend((0..).zip(connections.subflow_ids(id)).map(subflow));
    }
}

/// Stores in every flow that another flow waits for that flow, its successor, and the delay.
fn link_successors(config: &SimConfig, flows: &mut [Flow]) {
    for (id, spec) in (0..).map(FlowId).zip(&config.flows) {
        if let Trigger::After(before, delay) = spec.trigger {
            let before = &mut flows[before.index()];
            debug_assert!(before.successor.is_none(), "one flow has one successor");
            (before.successor, before.successor_delay_ps) = (id, delay.as_ps());
        }
    }
}
