//! The ways in which a run is simulated, and the reasons for which a faster one is not taken.
//!
//! These choices are made before a run, from its configuration alone. They change its speed and nothing that it
//! computes:
//!
//! - Switches process what arrives in spans of time, many packets at once, or event by event. In networks of many ports
//!   the spans of several switches are a batch.
//! - Hosts do so too, where switches do.
//! - The network is cut into parts with a thread each, or is one part.

use super::agents::Agents;
use super::build::shares_draws;
use super::look_ahead::MANY_PORTS;
use super::run::{Rules, Run};
use super::switch::rules_of;
use crate::config::{ProbeSpec, SimConfig, TieRule};
use crate::fabric::Port;

/// A reason for which a faster way to simulate is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A caller asked for events.
    Asked,
    /// Flows are fluids at rates of an oracle: there are no packets.
    Fluids,
    /// The algorithm has agents at switch ports, which see each packet in turn.
    PortAgents,
    /// Switches have a rule of admission that sees each packet in turn, named by a clause.
    Admission(&'static str),
    /// Packets choose ports by queues, or by earlier choices.
    Balance,
    /// Events of the same time are processed in the order in which they were scheduled, as in ns-3.
    InsertionTies,
    /// All switches draw marks from one random stream, as in ns-3.
    SharedDraws,
    /// Links have faults, so packets may be late or lost on a wire.
    Faults,
    /// A link is so fast that its shortest packet takes no time.
    InstantPackets,
    /// A link of a switch has no delay.
    InstantLinks,
    /// A switch has more ports than a span can sort.
    WideSwitch,
    /// Few packets are expected in a span.
    FewPackets,
    /// Switches go event by event.
    SwitchesByEvent,
    /// The network has so many ports that fetching ahead for events pays more.
    ManyPorts,
    /// A central allocator sends to hosts.
    Allocator,
    /// Flows start when others end.
    Successors,
    /// Hosts are not ideal: they act on packets later than these arrive, or send more slowly than their links.
    ImperfectHosts,
    /// Rates are compared with the optimum of the whole network.
    Convergence,
    /// The scenario changes external flows during the run.
    Changes,
    /// The allocator has outages, which break all its connections at once.
    AllocatorOutages,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Asked => "events were asked for",
            Self::Fluids => "flows are fluids, without packets",
            Self::PortAgents => "the algorithm has agents at ports",
            Self::Admission(rule) => rule,
            Self::Balance => "packets choose ports by queues or by earlier choices",
            Self::InsertionTies => "ties are broken as in ns-3",
            Self::SharedDraws => "marks are drawn as in ns-3",
            Self::Faults => "links have faults",
            Self::InstantPackets => "some packets take no time to send",
            Self::InstantLinks => "a link of a switch has no delay",
            Self::WideSwitch => "a switch has too many ports",
            Self::FewPackets => "few packets are expected at a time",
            Self::SwitchesByEvent => "switches go event by event",
            Self::ManyPorts => "the network has many ports",
            Self::Allocator => "there is a central allocator",
            Self::Successors => "flows start when others end",
            Self::ImperfectHosts => "hosts are not ideal",
            Self::Convergence => "a probe looks for convergence",
            Self::Changes => "external flows change",
            Self::AllocatorOutages => "the allocator has outages",
        })
    }
}

/// The ways in which a run is simulated. Each list has the reasons against the faster way, sorted; it is empty where
/// that is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// The reasons for which switches go event by event and not in spans.
    pub switches: Vec<Reason>,
    /// `true` if switches go in spans, and the spans of several are a batch, as pays in networks of many ports.
    pub in_batches: bool,
    /// The reasons for which hosts go event by event and not in spans.
    pub hosts: Vec<Reason>,
    /// The reasons for which all nodes are in one part, whatever number of threads is asked for.
    pub one_part: Vec<Reason>,
}

impl Mode {
    /// Returns the only mode of fluids, which is none of the faster ways.
    pub(crate) fn fluids() -> Self {
        let reasons = || vec![Reason::Fluids];
        Self { switches: reasons(), in_batches: false, hosts: reasons(), one_part: reasons() }
    }
}

/// Returns the reasons whose conditions hold.
fn those_that_hold<const N: usize>(conditions: [(Reason, bool); N]) -> Vec<Reason> {
    conditions.into_iter().filter_map(|(reason, holds)| holds.then_some(reason)).collect()
}

/// Returns the reasons for which the switches with `ports` have to go event by event. Spans need that only switches
/// concern themselves with their ports, that each packet arrives after the one before it, and that nothing depends on
/// the order of two switches.
pub(super) fn switches_by_event(run: &Run, ports: &[Port], agents: &Agents) -> Vec<Reason> {
    let (config, c) = (&run.config, &run.constants);
    let of_stack = |rules: &Rules| rules.ack_wire.min(rules.cnp_wire).min(rules.data_header as u16 + 1);
    let shortest = run.all_rules().map(of_stack).chain([c.pfc_wire]).min().unwrap_or(0);
    let mut reasons = those_that_hold([
        (Reason::PortAgents, !agents.is_empty()),
        (Reason::Balance, config.fabric.balance.has_state()),
        (Reason::InsertionTies, config.fabric.ties == TieRule::Insertion),
        (Reason::SharedDraws, shares_draws(config)),
        (Reason::Faults, !config.faults.is_empty()),
        (Reason::InstantPackets, ports.iter().any(|port| port.tx_ps(shortest) == 0)),
    ]);
    reasons.extend(rules_of(config, ports).map(|rule| Reason::Admission(rule.reason)));
    reasons.sort_unstable();
    reasons
}

/// Returns the reasons for which hosts have to go event by event where switches go in spans: something at a host may
/// happen at the very time of something at another one; or the network is so large that hosts gain more by what is
/// fetched ahead for events (as measured, 1,024 hosts gain nothing by spans on one thread and lose on two).
pub(super) fn hosts_by_event(run: &Run) -> Vec<Reason> {
    let config = &run.config;
    let mut reasons = those_that_hold([
        (Reason::ManyPorts, MANY_PORTS <= config.topology.n_ports()),
        (Reason::Allocator, config.allocator.is_some()),
        (Reason::ImperfectHosts, !config.hosts.is_empty()),
        (Reason::Successors, run.flows.iter().any(|flow| !flow.successor.is_none())),
    ]);
    reasons.extend(one_part(config));
    reasons.sort_unstable();
    reasons
}

/// Returns the reasons for which something in a run concerns all nodes at once.
pub(super) fn one_part(config: &SimConfig) -> Vec<Reason> {
    let is_convergence = |probe: &ProbeSpec| matches!(probe, ProbeSpec::Convergence { .. });
    those_that_hold([
        (Reason::InsertionTies, config.fabric.ties == TieRule::Insertion),
        (Reason::SharedDraws, shares_draws(config)),
        (Reason::Convergence, config.probes.iter().any(is_convergence)),
        (Reason::Changes, !config.changes.is_empty()),
        (Reason::AllocatorOutages, config.allocator.as_ref().is_some_and(|allocator| !allocator.outages.is_empty())),
    ])
}
