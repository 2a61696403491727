//! Generation of the flows of all blocks.

use std::collections::HashSet;

use fairrate_control::AlgorithmConfig;
use fairrate_sim::topology::Topology;
use fairrate_sim::workload::{
    AllToAll, Churn, ClosedLoop, Collective, Incast, ListStacks, Pace, Permutation, Poisson, Senders, Staggered,
    Stride, Training, Workload, merge, parse_flow_list, share_connections,
};
use fairrate_sim::{Connection, FieldError, FlowSpec, NodeId};
use fairrate_text::one_of;
use fairrate_units::Bytes;

use super::super::algorithms_that;
use super::super::files::{Text, file_problem};
use super::super::names::{Names, NodeName};
use super::ranks::Ranks;
use super::{Block, Kind, SenderNames, Stacks};
use crate::error::{Report, ScenarioError};
use crate::memory::{FLOW_BYTES, available_memory, shown_bytes};

/// Largest number of flows: more are a slip, not a workload, and would not fit into memory.
const MAX_FLOWS: usize = 50_000_000;

/// Approximate memory of a connection of several flows, kept to the end of the run: a controller and an entry of a
/// table.
const CONNECTION_BYTES: f64 = 1_000.0;

/// Generates the flows of all blocks, in order of start.
pub(in crate::schema) fn build(
    report: &Report,
    blocks: &[Block<'_>],
    topology: &Topology,
    names: &Names<'_>,
    seed: u64,
    stacks: &Stacks,
) -> Result<Workload, ScenarioError> {
    let mut made: Vec<Workload> = Vec::new();
    for (block, group) in blocks.iter().zip(0u32..) {
        let earlier: usize = made.iter().map(|w| w.flows.len()).sum();
        if !fits(report, block, topology, names, earlier) {
            break;
        }
        let mut workload = Generator { report, block, topology, names, seed, group }.workload();
        workload.flows.iter_mut().for_each(|flow| treat(flow, block));
        if block.connection == Connection::PerPair {
            share_connections(&mut workload.flows);
            check_shared(report, block, &workload.flows);
        }
        if let Some(deadlines) = &block.deadlines {
            deadlines.assign(&mut workload.flows, seed, group);
        }
        check_weights(report, block, &workload, &stacks.all[usize::from(block.stack)].cc);
        check_deadlines(report, block, &workload);
        made.push(workload);
        let n: usize = made.iter().map(|w| w.flows.len()).sum();
        if MAX_FLOWS < n {
            let message = format!("with this block there are {n} flows");
            let help = format!("fairrate takes up to {MAX_FLOWS}: shorten the run, or set `max_flows`");
            report.problem("scenario::too_many_flows", block.anchor.site, message, "too many flows", help);
            break;
        }
    }
    check_ids(report, blocks, &made);
    check_groups(report, blocks, &made);
    let mut workload = merge(made);
    topology.spread_over_ports(&mut workload.flows, seed);
    report.check()?;
    if workload.flows.is_empty() {
        let site = blocks.first().map_or_else(|| report.start(), |b| b.anchor.site);
        let has_draws = blocks.iter().any(|block| !matches!(block.kind, Kind::List { .. }));
        let help = if has_draws {
            "let it run longer (`duration`, or `stop` of the block), or raise the load"
        } else {
            "write a line for each flow below the head of the list"
        };
        report.problem("scenario::no_flows", site, "this workload has no flows", "no flows", help);
        report.check()?;
    }
    Ok(workload)
}

/// Reports ids that occur in more than one list.
fn check_ids(report: &Report, blocks: &[Block<'_>], made: &[Workload]) {
    let mut taken = HashSet::new();
    for (block, workload) in blocks.iter().zip(made) {
        let mut ids = workload.flows.iter().map(|flow| flow.id).filter(|&id| id != FlowSpec::NO_ID);
        if let Some(id) = ids.find(|&id| !taken.insert(id)) {
            let message = format!("id {id} is of a flow of another list, too");
            let help = "give each flow an id of its own, or write `ignore_columns = [\"id\"]`";
            report.problem("scenario::conflict", block.anchor.site_of("path"), message, "`path`", help);
        }
    }
}

/// Checks that no group of a list is the number of another block, whose flows it would count among.
fn check_groups(report: &Report, blocks: &[Block<'_>], made: &[Workload]) {
    for ((block, workload), own) in blocks.iter().zip(made).zip(0u32..) {
        let is_taken = |group: u32| group != own && (group as usize) < blocks.len();
        let taken = workload.flows.iter().map(|flow| flow.group).find(|&group| is_taken(group));
        if let Some(group) = taken.filter(|_| matches!(block.kind, Kind::List { .. })) {
            let name = match blocks[group as usize].name.as_str() {
                "" => format!("number {group}"),
                name => format!("`{name}`"),
            };
            let message = format!("group {group} of this list is the number of another block, {name}");
            let help = format!("number groups from {} on, or write `ignore_columns = [\"group\"]`", blocks.len());
            report.problem("scenario::conflict", block.anchor.site_of("path"), message, "`path`", help);
        }
    }
}

/// Checks that flows of one connection differ in nothing that its controller knows from the start.
fn check_shared(report: &Report, block: &Block<'_>, flows: &[FlowSpec]) {
    let problem = |column: &str| {
        let message = format!("the controller of a shared connection knows one `{column}`");
        let help = format!("remove the column `{column}`, or `connection`");
        report.problem("scenario::conflict", block.anchor.site_of("connection"), message, "`connection`", help);
    };
    // Blocks that are no lists are checked as they are read.
    if flows.iter().any(|flow| flow.deadline.is_some()) {
        problem("deadline_ns");
    }
    if flows.windows(2).any(|pair| pair[0].weight != pair[1].weight) {
        problem("weight");
    }
}

/// Reports weights if the algorithm ignores them.
fn check_weights(report: &Report, block: &Block<'_>, workload: &Workload, cc: &AlgorithmConfig) {
    if cc.needs().feedback.weights || workload.flows.iter().all(|flow| flow.weight == 1.0) {
        return;
    }
    let key = if matches!(block.kind, Kind::List { .. }) { "path" } else { "weight" };
    let known = algorithms_that(|needs| needs.feedback.weights);
    let message = format!("`{}` knows no weights", cc.info().name);
    let help = format!("leave weights out, or set `cc` to {}", one_of(&known));
    report.problem("scenario::conflict", block.anchor.site_of(key), message, format!("`{key}`"), help);
}

/// Reports deadlines of endless flows. Those of a list have been reported with their lines.
fn check_deadlines(report: &Report, block: &Block<'_>, workload: &Workload) {
    if workload.flows.iter().any(|flow| flow.bytes == Bytes::MAX && flow.deadline.is_some()) {
        let help = "remove `deadline`, or say how much each flow sends";
        let site = block.anchor.site_of("deadline");
        report.problem("scenario::conflict", site, "an endless flow meets no deadline", "`deadline`", help);
    }
}

/// Returns `true` if there is memory for the flows of a block and the `earlier` ones; reports a problem otherwise.
fn fits(report: &Report, block: &Block<'_>, topology: &Topology, names: &Names<'_>, earlier: usize) -> bool {
    // Problems of a block are reported only once, when its flows are generated.
    let expected = report.quietly(|| expected_flows(report, block, topology, names)).flatten();
    let flows = expected.unwrap_or(0.0) + earlier as f64;
    let Some(available) = available_memory() else { return true };
    let pairs = if block.connection == Connection::PerPair { (topology.hosts().count() as f64).powi(2) } else { 0.0 };
    let needed = (flows * FLOW_BYTES as f64 + pairs.min(flows) * CONNECTION_BYTES) as u64;
    if needed <= available || !report.is_clean() {
        return true;
    }
    let message = format!(
        "about {flows:.0} flows take {} of memory, and there are {}",
        shown_bytes(needed),
        shown_bytes(available)
    );
    let help = "shorten the run, lower the load, or set `max_flows`";
    report.problem("scenario::too_little_memory", block.anchor.site, message, "too many flows", help);
    false
}

/// Returns the approximate number of flows of a block; `None` if it cannot be computed, or for the other kinds, which
/// have as many flows as hosts or lines.
fn expected_flows(report: &Report, block: &Block<'_>, topology: &Topology, names: &Names<'_>) -> Option<f64> {
    let in_racks = |list: &[NodeName]| list.iter().flat_map(|h| names.hosts(h, report)).collect::<Vec<_>>();
    match &block.kind {
        Kind::Poisson { poisson, hosts, .. } => {
            let hosts = hosts.as_deref().map(in_racks);
            Poisson { hosts, ..poisson.clone() }.expected_flows(topology).ok()
        }
        Kind::ClosedLoop { loops, senders, receivers } => {
            let (senders, receivers) = (senders.as_deref().map(in_racks), receivers.as_deref().map(in_racks));
            ClosedLoop { senders, receivers, ..loops.clone() }.expected_flows(topology).ok()
        }
        Kind::IncastQueries(queries) => Some(queries.expected_flows(topology)),
        Kind::Collective { collective, ranks } => {
            let hosts = ranks.hosts.as_deref().map(in_racks);
            Collective { hosts, ..collective.clone() }.expected_flows(topology).ok()
        }
        Kind::Training { training, .. } => training.expected_flows().ok(),
        Kind::Trace { job, .. } => Some(job.expected_flows()),
        Kind::AllToAll { hosts, .. } => {
            let hosts = hosts.as_deref().map_or_else(|| topology.hosts().count(), |list| in_racks(list).len());
            Some((hosts as f64).powi(2))
        }
        _ => None,
    }
}

/// Sets the properties that a block gives to its flows. Class, weight and stack of flows of a list are in the list.
fn treat(flow: &mut FlowSpec, block: &Block<'_>) {
    (flow.demand, flow.subflows, flow.burst) = (block.demand, block.subflows, block.burst);
    if !matches!(block.kind, Kind::List { .. }) {
        (flow.class, flow.weight, flow.stack) = (block.class, block.weight, block.stack);
    }
}

/// A block, and the network that it is generated for.
struct Generator<'a> {
    report: &'a Report,
    block: &'a Block<'a>,
    topology: &'a Topology,
    names: &'a Names<'a>,
    seed: u64,
    /// Number of the block.
    group: u32,
}

impl Generator<'_> {
    /// Returns the flows of the block, and its tasks if it is a job; nothing if it cannot be used, which is reported.
    fn workload(&self) -> Workload {
        let (topology, seed, group) = (self.topology, self.seed, self.group);
        let made = match &self.block.kind {
            Kind::Poisson { poisson, hosts, receivers } => {
                let (hosts, receivers) = (self.hosts(hosts.as_deref()), self.hosts(receivers.as_deref()));
                let poisson = Poisson { hosts, receivers, ..poisson.clone() };
                self.check_link_set(&poisson.link_set);
                self.flows(|| poisson.generate(topology, seed, group))
            }
            Kind::ClosedLoop { loops, senders, receivers } => {
                let (senders, receivers) = (self.hosts(senders.as_deref()), self.hosts(receivers.as_deref()));
                let loops = ClosedLoop { senders, receivers, ..loops.clone() };
                self.flows(|| loops.generate(topology, seed, group))
            }
            Kind::Incast { incast, receiver, senders } => {
                let receiver = self.names.host(receiver, self.report);
                let incast = Incast { receiver, senders: self.senders(senders, receiver), ..incast.clone() };
                self.flows(|| incast.generate(topology, seed, group))
            }
            Kind::Staggered { staggered, receiver, senders } => {
                let receiver = self.names.host(receiver, self.report);
                let staggered = Staggered { receiver, senders: self.senders(senders, receiver), ..staggered.clone() };
                self.flows(|| staggered.generate(topology, seed, group))
            }
            Kind::IncastQueries(queries) => queries.generate(topology, seed, group).map(Workload::from),
            Kind::Permutation { permutation, hosts } => {
                let permutation = Permutation { hosts: self.hosts(hosts.as_deref()), ..permutation.clone() };
                self.flows(|| permutation.generate(topology, seed, group))
            }
            Kind::Stride { stride, hosts } => {
                let stride = Stride { hosts: self.hosts(hosts.as_deref()), ..stride.clone() };
                self.flows(|| stride.generate(topology, seed, group))
            }
            Kind::AllToAll { all, hosts } => {
                let all = AllToAll { hosts: self.hosts(hosts.as_deref()), ..all.clone() };
                self.flows(|| all.generate(topology, seed, group))
            }
            Kind::Churn { churn, hosts } => {
                let churn = Churn { hosts: self.hosts(hosts.as_deref()), ..churn.clone() };
                let made = self.guarded(|| churn.generate(topology, seed, group));
                made.map(|(flows, changes)| Workload { flows, changes, ..Workload::default() })
            }
            Kind::Collective { collective, ranks } => self.on_ranks(ranks, |hosts, pace| {
                Collective { hosts: Some(hosts), pace, ..collective.clone() }.generate(topology, seed, group)
            }),
            Kind::Training { training, ranks } => self.on_ranks(ranks, |hosts, pace| {
                Training { hosts: Some(hosts), pace, ..(**training).clone() }.generate(topology, seed, group)
            }),
            Kind::Trace { job, start, ranks } => {
                self.on_ranks(ranks, |hosts, pace| job.generate(topology, &hosts, group, *start, &pace))
            }
            Kind::List { file, ignore_columns } => Ok(self.read_list(file, ignore_columns)),
        };
        made.unwrap_or_else(|error| self.unusable(error))
    }

    /// Returns the hosts that `names` stand for; `None` if there are no names.
    fn hosts(&self, names: Option<&[NodeName]>) -> Option<Vec<NodeId>> {
        names.map(|names| self.hosts_of(names))
    }

    /// Returns the hosts that `names` stand for.
    fn hosts_of(&self, names: &[NodeName]) -> Vec<NodeId> {
        names.iter().flat_map(|name| self.names.hosts(name, self.report)).collect()
    }

    /// Returns the senders to `receiver` that `names` stand for.
    fn senders(&self, names: &SenderNames, receiver: NodeId) -> Senders {
        match names {
            SenderNames::Hosts(list) => {
                Senders::Hosts(list.iter().flat_map(|name| self.others(name, receiver)).collect())
            }
            SenderNames::Count { n, from } => Senders::Count { n: *n, from: *from },
        }
    }

    /// Returns the senders that a name stands for: hosts, of which one that is named alone may be the receiver, which
    /// is an error later.
    fn others(&self, name: &NodeName, receiver: NodeId) -> Vec<NodeId> {
        let mut hosts = self.names.hosts(name, self.report);
        if 1 < hosts.len() {
            hosts.retain(|&host| host != receiver);
        }
        hosts
    }

    /// Reports a link set that the topology does not have.
    fn check_link_set(&self, name: &str) {
        if self.topology.link_sets.contains_key(name) {
            return;
        }
        let sets: Vec<&str> = self.topology.link_sets.keys().map(String::as_str).collect();
        let message = format!("this topology has no link set `{name}`");
        let help = format!("set `link_set` to {}", one_of(&sets));
        let site = self.block.anchor.site_of("link_set");
        self.report.problem("scenario::unknown_name", site, message, "`link_set`", help);
    }

    /// Calls `generate` only if there is no problem so far: an unknown name stands for host 0.
    fn guarded<T: Default>(&self, generate: impl FnOnce() -> Result<T, FieldError>) -> Result<T, FieldError> {
        if self.report.is_clean() { generate() } else { Ok(T::default()) }
    }

    /// Returns the flows that `generate` returns, as a workload that has nothing else.
    fn flows(&self, generate: impl FnOnce() -> Result<Vec<FlowSpec>, FieldError>) -> Result<Workload, FieldError> {
        self.guarded(generate).map(Workload::from)
    }

    /// Returns the workload that `generate` returns for the hosts of `ranks` and their pace.
    fn on_ranks(
        &self,
        ranks: &Ranks,
        generate: impl FnOnce(Vec<NodeId>, Pace) -> Result<Workload, FieldError>,
    ) -> Result<Workload, FieldError> {
        self.guarded(|| {
            let found = ranks.on(self.topology, |names| self.hosts_of(names), self.seed, self.group);
            // An unknown name, which is reported by now, stands for host 0, which may be named too.
            self.guarded(|| found.and_then(|(hosts, pace)| generate(hosts, pace)))
        })
    }

    /// Reads the flows of a list, without its `ignore_columns`.
    fn read_list(&self, file: &Text, ignore_columns: &[String]) -> Workload {
        let stacks = ListStacks { usual: self.block.stack, named: &self.block.named };
        let read = parse_flow_list(&file.text, self.topology, ignore_columns, stacks);
        let mut workload = read.unwrap_or_else(|error| {
            let fallback = "correct this line, or leave it out";
            file_problem(self.report, "scenario::flow_list", file, &error, fallback);
            Workload::default()
        });
        // The flows of a list without groups get the group of the block.
        if workload.flows.iter().all(|flow| flow.group == 0) {
            workload.flows.iter_mut().for_each(|flow| flow.group = self.group);
        }
        workload
    }

    /// Reports that the block cannot be used; returns a workload without flows.
    fn unusable(&self, e: FieldError) -> Workload {
        let help = e.help.unwrap_or_else(|| format!("correct `{}` of this block", e.field));
        let site = self.block.anchor.site_of(e.field);
        self.report.problem("scenario::bad_traffic", site, e.message, format!("`{}`", e.field), help);
        Workload::default()
    }
}
