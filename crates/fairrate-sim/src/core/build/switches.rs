//! The construction of switches: buffers, markers, disciplines, weights of classes.

use std::collections::{BTreeMap, BTreeSet};

use fairrate_units::{Bytes, Rate, Time};

use super::super::balance::Balancer;
use super::super::run::Run;
use super::super::switch::{Admission, Markers, Marking, Switches};
use crate::config::{EcnConfig, MarkBy, MarkDraws, Pfc, SimConfig};
use crate::fabric::{BacklogPfc, Discipline, Marker, Mmu, Place, Port, WeightedClasses, quanta};
use crate::ids::{PortId, PortIdx, SwitchIdx};
use crate::mrg32k3a::AutomaticStreams;
use crate::table::Table;

/// Returns the rate at which the queue of `port` usually drains: the rate of its link, or for a VOQ, which has a
/// circuit for only a day a week, that of its ToR's uplink.
fn usual_rate(config: &SimConfig, port: PortId) -> Rate {
    let topology = &config.topology;
    let Some(circuits) = topology.circuits.as_ref().filter(|circuits| circuits.has(port)) else {
        return config.rate_at(port, Time::ZERO);
    };
    let uplink = topology.port(topology.from(port), circuits.core).expect("every ToR has an uplink");
    topology.link(uplink).rate
}

/// Returns `true` if all switches draw marks from one random stream.
pub(in crate::core) fn shares_draws(config: &SimConfig) -> bool {
    config.fabric.all_ecn().any(|ecn| ecn.draws != MarkDraws::PerPort)
}

/// Builds the switches of a part, with their buffers and markers, for ports with numbers `ids` that belong to switches
/// `of_switch`.
pub(super) fn build_switches(
    run: &Run,
    of_switch: &Table<PortIdx, Option<SwitchIdx>>,
    ids: &Table<PortIdx, PortId>,
    ports: &mut Table<PortIdx, Port>,
    wire_mtu: Bytes,
) -> Switches {
    let config = &run.config;
    let links = ids.iter().map(|&id| config.topology.buffered_link(id));
    let buffers = Mmu::new(&config.fabric, links, of_switch, wire_mtu, &lossless_classes(run));
    let marker = |port: PortIdx, class: Option<u8>| {
        let leads_to_host = !ports[port].to_host().is_none() || config.topology.is_queue(config.topology.to(ids[port]));
        let marks = |ecn: &EcnConfig| of_switch[port].is_some() && (ecn.to_hosts || !leads_to_host);
        let ecn = class.map_or(config.fabric.ecn, |class| config.fabric.class(class).ecn).filter(marks)?;
        let share = if ecn.by == MarkBy::Share { share_of(config, class) } else { 1.0 };
        Some(Marker::new(&ecn, (usual_rate(config, ids[port]), share), config.seed, (ids[port], class)))
    };
    let markers = Markers::new(&config.fabric, of_switch.len(), marker);
    // Where other queues than that of the class decide, its length says nothing.
    let sees_all = config.fabric.all_ecn().any(|ecn| matches!(ecn.by, MarkBy::Port | MarkBy::Round));
    for (id, port) in ports.numbers().zip(ports.iter_mut()) {
        let from = markers.see_from(id);
        port.mark_from = if sees_all && from < u32::MAX { 0 } else { from };
    }
    let shared_draws =
        shares_draws(config).then(|| Box::new(AutomaticStreams::of_artifact(config.seed, config.topology.nodes.len())));
    let marking = Marking::new(&config.fabric, markers, shared_draws);
    let n_switches = of_switch.iter().flatten().max().map_or(0, |&last| last.index() + 1);
    let backlog_pfc = match config.fabric.pfc {
        Pfc::Egress(levels) => {
            let levels = ports.iter().map(|port| levels.at(port.rate)).collect();
            Some(Box::new(BacklogPfc::new(levels, n_switches)))
        }
        Pfc::Off | Pfc::Ingress | Pfc::IngressLevels(_) => None,
    };
    let admission = Admission::new(config, ids, ports);
    Switches::new(buffers, backlog_pfc, marking, Balancer::new(config), admission, ports)
}

/// Returns the classes for which ports have headroom if PFC goes by ingress ports: those of flows, as only data needs
/// headroom.
fn lossless_classes(run: &Run) -> Vec<u8> {
    let (fabric, usual) = (&run.config.fabric, run.config.transport.data_class);
    if let Some(levels) = &run.levels {
        return (0..levels.n_classes() as u8).collect();
    }
    let mut classes: BTreeSet<u8> = run.config.flows.iter().map(|flow| run.config.class_of(flow)).collect();
    if classes.is_empty() {
        classes.insert(usual);
    }
    classes.into_iter().filter(|&class| fabric.class(class).pfc).collect()
}

/// Returns the share of `class` of all weights; 1 without a weight.
fn share_of(config: &SimConfig, class: Option<u8>) -> f64 {
    let weights = || config.fabric.classes.values().filter_map(|class| class.weight);
    let own = class.and_then(|class| config.fabric.class(class).weight);
    own.map_or(1.0, |own| own / weights().sum::<f64>())
}

/// Attaches the configured discipline to each class that flows send in, at the egress ports of switches.
pub(super) fn attach_disciplines(config: &SimConfig, ids: &Table<PortIdx, PortId>, ports: &mut [Port], wire_mtu: u32) {
    // A class is marked if all of its flows go by marks.
    let mut classes: BTreeMap<u8, bool> = BTreeMap::new();
    for flow in &config.flows {
        let (transport, cc) = config.stack(flow.stack);
        let all = classes.entry(flow.class.unwrap_or(transport.data_class)).or_insert(true);
        *all &= cc.needs().network.ecn;
    }
    for (id, p) in ids.iter().zip(ports).filter(|(_, p)| p.of_host.is_none() && !p.of_switch.is_none()) {
        for (&class, &ecn_capable) in &classes {
            let place = Place { port: *id, class, rate: p.rate, wire_mtu, ecn_capable, seed: config.seed };
            if let Some(discipline) = Discipline::new(&config.fabric.queue, &place) {
                p.set_discipline(class, discipline);
            }
        }
    }
}

/// Lets classes with weights share the egress ports of switches.
pub(super) fn attach_weights(config: &SimConfig, ports: &mut [Port], wire_mtu: u32) {
    let Some(weighted) = weighted_classes(config, wire_mtu) else { return };
    for port in ports.iter_mut().filter(|port| port.of_host.is_none() && !port.of_switch.is_none()) {
        port.set_weights(weighted);
    }
}

/// Returns the classes with weights, before any has something to send, if there are any. The one of the least weight
/// sends a full packet of `wire_mtu` bytes in each of its turns.
pub(in crate::core) fn weighted_classes(config: &SimConfig, wire_mtu: u32) -> Option<WeightedClasses> {
    let classes = config.fabric.all_classes();
    let weights = classes.map(|class| class.weight);
    let own = (0..).zip(classes).filter(|(_, class)| class.own_telemetry).fold(0, |mask, (class, _)| mask | 1 << class);
    weights.iter().any(Option::is_some).then(|| WeightedClasses::new(quanta(weights, wire_mtu), own))
}
