//! `[[traffic]]`: senders, receivers, sizes and start times of flows. Each block is one generator of the simulator.

mod collective;
mod generate;
pub(super) mod hosts;
mod kinds;
mod ranks;
mod trace;
mod training;

use fairrate_control::{HeaderWords, Needs};
use fairrate_sim::workload::{
    AllToAll, Churn, ClosedLoop, Collective, Deadlines, Incast, IncastQueries, Job, Peers, Permutation, Poisson,
    Spread, Staggered, Stride, Training,
};
use fairrate_sim::{Burst, Connection, Transport};
use fairrate_text::one_of;
use fairrate_units::{Bytes, Rate, Time};

use super::algorithms_that;
use super::files::{Files, Text};
use super::names::NodeName;
use super::probe::Probe;
use super::stacks::Stacks;
use super::tcp::checked_subflows;
use super::transport::check_class;
use crate::error::Report;
use crate::reader::{Anchor, OrWord, Output, Section};
use crate::tree::{Node, Value};

pub(super) use generate::build;
use kinds::read_kind;
use ranks::Ranks;

/// A block that was read.
pub(super) struct Block<'a> {
    anchor: Anchor<'a>,
    /// The name in tables; empty without one.
    pub name: String,
    kind: Kind,
    /// Number of the transport and algorithm of its flows.
    stack: u8,
    /// Those of the algorithms that a list names.
    named: Vec<(String, u8)>,
    class: Option<u8>,
    weight: f64,
    demand: Rate,
    deadlines: Option<Deadlines>,
    subflows: Option<u8>,
    burst: Option<Burst>,
    connection: Connection,
}

/// Largest number of characters of a block's name.
const LONGEST_NAME: usize = 32;

/// The senders in the file.
enum SenderNames {
    Hosts(Vec<NodeName>),
    Count { n: u32, from: Peers },
}

/// A generator whose nodes are still names.
enum Kind {
    Poisson { poisson: Poisson, hosts: Option<Vec<NodeName>>, receivers: Option<Vec<NodeName>> },
    ClosedLoop { loops: ClosedLoop, senders: Option<Vec<NodeName>>, receivers: Option<Vec<NodeName>> },
    Incast { incast: Incast, receiver: NodeName, senders: SenderNames },
    IncastQueries(IncastQueries),
    Staggered { staggered: Staggered, receiver: NodeName, senders: SenderNames },
    Permutation { permutation: Permutation, hosts: Option<Vec<NodeName>> },
    Stride { stride: Stride, hosts: Option<Vec<NodeName>> },
    AllToAll { all: AllToAll, hosts: Option<Vec<NodeName>> },
    Churn { churn: Churn, hosts: Option<Vec<NodeName>> },
    Collective { collective: Collective, ranks: Ranks },
    Trace { job: Box<Job>, start: Time, ranks: Ranks },
    Training { training: Box<Training>, ranks: Ranks },
    List { file: Text, ignore_columns: Vec<String> },
}

impl Block<'_> {
    /// Returns `true` if flows arrive at random or listed times, one after the other, as load on the network.
    pub fn has_arrivals(&self) -> bool {
        matches!(self.kind, Kind::Poisson { .. } | Kind::IncastQueries(_) | Kind::List { .. })
    }
}

/// Reads all blocks. `end` is the default time at which arrivals stop.
pub(super) fn read<'a>(
    root: &mut Section<'a>,
    files: &Files<'_>,
    end: Option<Time>,
    shape: &str,
    stacks: &Stacks,
) -> Vec<Block<'a>> {
    let given = root.has("traffic");
    let sections = root.children("traffic");
    if sections.is_empty() && !given {
        let help = "add `[[traffic]]` and below it for instance `kind = \"poisson\"`, `sizes = \"websearch\"` and `load = 0.6`";
        root.report.problem(
            "scenario::missing_key",
            root.anchor.site,
            "the scenario needs `[[traffic]]`",
            "none in here",
            help,
        );
    }
    let (mut blocks, mut out) = (Vec::new(), Vec::new());
    for (at, mut s) in sections.into_iter().enumerate() {
        let stack = stacks.of_block(at);
        let transport = stacks.all[usize::from(stack)].transport.kind;
        read_stack(&mut s, stacks.output(at));
        let Some(kind) = read_kind(&mut s, files, end, shape) else { continue };
        read_algorithms(&mut s, &kind, stacks.named(at));
        let name = read_name(&mut s, &blocks);
        let is_list = matches!(kind, Kind::List { .. });
        let (class, weight) = if is_list { (None, 1.0) } else { read_treatment(&mut s) };
        let (demand, subflows) = (read_demand(&mut s), read_subflows(&mut s, transport));
        let deadlines = if is_list { None } else { read_deadline(&mut s) };
        let burst = read_burst(&mut s, subflows, transport);
        let connection = match kind {
            Kind::Poisson { .. }
            | Kind::ClosedLoop { .. }
            | Kind::Collective { .. }
            | Kind::Training { .. }
            | Kind::Trace { .. }
            | Kind::List { .. } => read_connection(&mut s, transport, deadlines.is_some()),
            _ => Connection::PerFlow,
        };
        blocks.push(Block {
            anchor: s.anchor,
            name,
            kind,
            stack,
            named: stacks.named(at).iter().map(|(name, stack, _)| (name.clone(), *stack)).collect(),
            class,
            weight,
            demand,
            deadlines,
            subflows,
            burst,
            connection,
        });
        out.push(s.finish());
    }
    root.out.arrays.push(("traffic".into(), out));
    blocks
}

/// Takes note of `cc` and `transport`, which have been read; `out`: the block's own transport.
fn read_stack(s: &mut Section<'_>, out: Option<Output>) {
    s.given::<String>("cc");
    s.node("transport");
    if let Some(out) = out {
        s.out.tables.push(("transport".into(), out));
    }
}

/// Takes note of `algorithms`, which have been read: they are for lists, whose column `cc` names them.
fn read_algorithms(s: &mut Section<'_>, kind: &Kind, named: &[(String, u8, Output)]) {
    if !matches!(kind, Kind::List { .. }) {
        if s.peek("algorithms").is_some() {
            let help = "give the block one `cc`, or write a list of flows with a column `cc`";
            s.problem_at("scenario::conflict", "algorithms", "only flows of a list have algorithms of their own", help);
            s.node("algorithms");
        }
        return;
    }
    s.node("algorithms");
    if !named.is_empty() {
        let tables = named.iter().map(|(name, _, out)| (name.clone(), out.clone())).collect();
        s.out.tables.push(("algorithms".into(), Output { tables, ..Output::default() }));
    }
}

/// Classes of sizes, which metrics name as they name blocks.
const CLASS_NAMES: [&str; 5] = ["all", "short", "10-100KB", "medium", "long"];

/// Returns `true` if metrics have another meaning of a name: a class of sizes, or a block by its number.
fn is_reserved(name: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    CLASS_NAMES.contains(&name) || name.strip_prefix("block").is_some_and(is_number)
}

/// Reads the name of a block, which must not be that of an earlier one.
fn read_name(s: &mut Section<'_>, earlier: &[Block<'_>]) -> String {
    let Some(name) = s.optional::<String>("name") else { return String::new() };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.value.is_empty() || !name.value.chars().all(is_plain) || LONGEST_NAME < name.value.len() {
        let message = format!("`{}` is no name of a block", name.value.escape_debug());
        let help = format!("use up to {LONGEST_NAME} letters, digits, `-` and `_`, for instance `incast`");
        s.report.problem("scenario::bad_name", name.site, message, "this name", help);
    } else if is_reserved(&name.value) {
        let message =
            format!("`{}` means something else in metrics: a class of sizes, or a block by number", name.value);
        s.report.problem("scenario::bad_name", name.site, message, "this name", "choose another, as `incast`");
    } else if earlier.iter().any(|block| block.name == name.value) {
        let message = format!("two blocks are called `{}`", name.value);
        s.report.problem("scenario::bad_name", name.site, message, "taken already", "give each a name of its own");
    }
    name.value
}

/// Reads class and weight of the block's flows; those of a list are columns.
fn read_treatment(s: &mut Section<'_>) -> (Option<u8>, f64) {
    let class = match s.value_or::<u8>("class", &["data"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(class) => {
            check_class(s, "class", class);
            Some(class)
        }
    };
    let weight = s.get("weight", 1.0).value;
    if !(0.0 < weight && weight <= 1e9) {
        let help = "write a number above zero, as `weight = 2.0`";
        s.problem_at("scenario::out_of_range", "weight", format!("`weight = {weight}` is out of range"), help);
    }
    (class, weight)
}

/// Reads the rate that the application of each flow offers at most.
fn read_demand(s: &mut Section<'_>) -> Rate {
    match s.value_or::<Rate>("demand", &["unlimited"], OrWord::Word(0)).value {
        OrWord::Word(_) => Rate::MAX,
        OrWord::Value(Rate::ZERO) => {
            let help = "write a rate above zero, as `demand = \"9Gbps\"`, or \"unlimited\"";
            s.problem_at("scenario::out_of_range", "demand", "flows that want nothing", help);
            Rate::MAX
        }
        OrWord::Value(demand) => demand,
    }
}

/// Reads the deadline of each flow, from its start: one time for all, or a distribution to draw from. Deadlines of a
/// list are a column.
fn read_deadline(s: &mut Section<'_>) -> Option<Deadlines> {
    let node = s.node("deadline")?;
    let (deadlines, shortest) = if let Value::Table(table) = &node.value {
        let mut d = Section::new(s.report, node.site, "`deadline`", Some(table));
        let mean = d.require::<Time>("mean", "\"20ms\"").value;
        let spread = d.choice("distribution", Spread::NAMES, Spread::Exponential).value;
        let least = d.get("least", Time::ZERO).value;
        s.out.push("deadline", d.finish().render_inline());
        (Deadlines::Drawn { spread, mean, least }, mean)
    } else {
        match s.value_or::<Time>("deadline", &["none"], OrWord::Word(0)).value {
            OrWord::Word(_) => return None,
            OrWord::Value(deadline) => (Deadlines::Fixed(deadline), deadline),
        }
    };
    if shortest == Time::ZERO {
        let help = "write a time above zero, as `deadline = \"5ms\"` or `deadline = { mean = \"20ms\" }`";
        s.problem_at("scenario::out_of_range", "deadline", "a deadline at the start of its flow", help);
    }
    Some(deadlines)
}

/// Reads the number of subflows of each flow; `None` for that of the transport.
fn read_subflows(s: &mut Section<'_>, transport: Transport) -> Option<u8> {
    if !matches!(transport, Transport::Tcp(_)) {
        if s.node("subflows").is_some() {
            let help = "write `kind = \"tcp\"` in `[transport]`, or remove `subflows`";
            s.problem_at("scenario::conflict", "subflows", "subflows need TCP, and the transport is another", help);
        }
        return None;
    }
    match s.value_or::<u8>("subflows", &["transport"], OrWord::Word(0)).value {
        OrWord::Word(_) => None,
        OrWord::Value(subflows) => Some(checked_subflows(s, subflows)),
    }
}

/// Reads `burst = "100KB"` and `pause = "50us"`, for endless flows.
fn read_burst(s: &mut Section<'_>, subflows: Option<u8>, transport: Transport) -> Option<Burst> {
    let conflict = |s: &Section<'_>, key: &str, message: &str, help: &str| {
        s.problem_at("scenario::conflict", key, message, help);
    };
    let Some(bytes) = s.optional::<Bytes>("burst") else {
        if s.node("pause").is_some() {
            conflict(s, "pause", "a `pause` between no bursts", "say how much is written at once: `burst = \"100KB\"`");
        }
        return None;
    };
    let pause = s.require::<Time>("pause", "\"50us\"").value;
    let is_endless = matches!(s.node("bytes"), Some(Node { value: Value::Text(text), .. }) if text == "endless");
    let paths = match transport {
        Transport::Tcp(tcp) => subflows.unwrap_or(tcp.multipath.subflows),
        Transport::Rdma | Transport::Uet { .. } => 1,
    };
    if matches!(transport, Transport::Uet { .. }) {
        conflict(s, "burst", "messages of Ultra Ethernet are written at once", "write `kind = \"rdma\"` or `\"tcp\"`");
    }
    if bytes.value == Bytes::ZERO {
        s.problem_at("scenario::out_of_range", "burst", "bursts of no bytes", "write for instance `burst = \"100KB\"`");
    } else if !is_endless {
        conflict(s, "burst", "`burst` is how endless flows write", "add `bytes = \"endless\"`");
    } else if 1 < paths {
        conflict(s, "burst", "bursts go over a single path", "add `subflows = 1`");
    }
    Some(Burst { bytes: bytes.value, pause })
}

/// Reads `connection`: a connection for each flow, or one for all flows of a pair of hosts.
fn read_connection(s: &mut Section<'_>, transport: Transport, has_deadlines: bool) -> Connection {
    let connection = s.choice("connection", Connection::NAMES, Connection::PerFlow).value;
    let conflict = |message, help| s.problem_at("scenario::conflict", "connection", message, help);
    if connection == Connection::PerFlow {
        return connection;
    }
    if transport != Transport::Rdma {
        conflict(
            "flows share connections over RDMA only",
            "write `kind = \"rdma\"` in `[transport]`, or remove `connection`",
        );
    } else if has_deadlines {
        conflict("the controller of a shared connection knows one deadline", "remove `deadline`, or `connection`");
    }
    connection
}

/// Checks that flows share connections only under an algorithm that allows it.
pub(super) fn check_connections(report: &Report, blocks: &[Block<'_>], stacks: &Stacks) {
    for block in blocks.iter().filter(|block| block.connection == Connection::PerPair) {
        let cc = &stacks.all[usize::from(block.stack)].cc;
        if can_share(&cc.needs()) {
            continue;
        }
        let message = format!("under `{}` every flow has a connection of its own", cc.info().name);
        let help = format!("remove `connection`, or set `cc` to {}", one_of(&algorithms_that(can_share)));
        report.problem("scenario::conflict", block.anchor.site_of("connection"), message, "`connection`", help);
    }
}

/// Returns `false` if links or receivers keep state of single flows, if packets identify their flow, or if an oracle or
/// allocator sets rates.
fn can_share(needs: &Needs) -> bool {
    let tells_of_flow = needs.wire.header != HeaderWords::NONE || needs.wire.control.is_some();
    !tells_of_flow && needs.feedback.grants.is_none() && needs.feedback.oracle.is_none() && !needs.feedback.allocator
}

/// Returns `true` if the run has no packets, and an oracle sets the rates of its flows.
fn has_oracle(stacks: &Stacks) -> bool {
    stacks.first().cc.needs().feedback.oracle.is_some()
}

/// Reports settings that do not go with bursts.
pub(super) fn check_bursts(report: &Report, blocks: &[Block<'_>], stacks: &Stacks, probes: &[Probe]) {
    for block in blocks.iter().filter(|block| block.burst.is_some()) {
        let problem = |message, help| {
            report.problem("scenario::conflict", block.anchor.site_of("burst"), message, "`burst`", help);
        };
        if has_oracle(stacks) {
            problem(
                "the exact rates of `ideal` are for flows that always have data",
                "remove `burst`, or choose another `cc`",
            );
        } else if probes.iter().any(Probe::is_convergence) {
            let help = "remove `burst`, or the probe of `convergence`";
            problem("what rates flows converge to is defined for flows that always have data", help);
        }
    }
}

/// Checks that rings are merged only in runs without packets.
pub(super) fn check_merged_rings(report: &Report, blocks: &[Block<'_>], stacks: &Stacks) {
    let merges = |kind: &Kind| match kind {
        Kind::Collective { collective, .. } => collective.merged_rings,
        Kind::Training { training, .. } => training.merged_rings,
        _ => false,
    };
    for block in blocks.iter().filter(|block| merges(&block.kind) && !has_oracle(stacks)) {
        let message = "rings are merged only in runs without packets";
        let help = "remove `merged_rings`, or set `cc = \"ideal\"`";
        report.problem("scenario::conflict", block.anchor.site_of("merged_rings"), message, "`merged_rings`", help);
    }
}

/// Checks that flows under an allocator have one path. The transport's number of subflows is checked with the
/// allocator.
pub(super) fn check_subflows(report: &Report, blocks: &[Block<'_>], stacks: &Stacks) {
    let cc = &stacks.first().cc;
    let split = |block: &&Block<'_>| block.subflows.is_some_and(|subflows| 1 < subflows);
    for block in blocks.iter().filter(split).filter(|_| cc.needs().feedback.allocator) {
        let message = format!("`{}` has one path a flow", cc.info().name);
        let help = "remove `subflows`, or choose another `cc`";
        report.problem("scenario::conflict", block.anchor.site_of("subflows"), message, "`subflows`", help);
    }
}

/// Checks that churn, which waits until rates have converged, has a probe of convergence, and that there is only one
/// churn block, as a change by another one would disturb its wait.
pub(super) fn check_churn(report: &Report, blocks: &[Block<'_>], probes: &[Probe]) {
    let mut churns = blocks.iter().filter(|b| matches!(b.kind, Kind::Churn { .. }));
    let Some(first) = churns.next() else { return };
    let problem = |site, message, help| report.problem("scenario::conflict", site, message, "`churn`", help);
    if !probes.iter().any(Probe::is_convergence) {
        let help = "add `[[probe]]` and below it `convergence = true`";
        problem(first.anchor.site_of("kind"), "flows change once rates have converged, but nothing tells", help);
    }
    if let Some(second) = churns.next() {
        problem(second.anchor.site_of("kind"), "there is `churn` already", "raise `changes` of the first one");
    }
}
