//! The trace of a rank, and its lines in the list of operations.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use super::attributes::Attribute;
use super::groups::{self, Groups, Named};
use super::node::{self, Kind, Node};
use super::records::Records;
use super::{Choices, Counts, Problem, Source, plain};

/// Collectives by their numbers; those without a name in lists of operations are refused.
const COLLECTIVES: [(&str, Option<&str>); 10] = [
    ("all-reduce", Some("all-reduce")),
    ("reduce", None),
    ("all-gather", Some("all-gather")),
    ("gather", None),
    ("scatter", None),
    ("broadcast", Some("broadcast")),
    ("all-to-all", Some("all-to-all")),
    ("reduce-scatter", Some("reduce-scatter")),
    ("reduce-scatter-block", None),
    ("barrier", None),
];
/// Most nodes that those of a rank wait for: more would not fit into memory.
const MOST_DEPENDENCIES: usize = 20_000_000;
/// Nodes of a circle that a message names.
const MOST_NAMED: usize = 6;

/// The nodes of a rank in an order in which each comes after those that it waits for, and the groups that its metadata
/// has.
pub(super) struct Trace {
    nodes: Vec<Node>,
    order: Vec<usize>,
    named: Named,
}

/// Reads the trace of a rank, of up to `most` nodes. An error comes with the number of its record.
pub(super) fn read(
    source: &Source<'_>,
    n_ranks: u32,
    (choices, most): (&Choices, usize),
    content: &mut Content,
) -> Result<Trace, (Problem, Option<usize>)> {
    let unreadable = |message: String| Problem::new("", message);
    let file = (source.open)().map_err(|error| (unreadable(error.to_string()), None))?;
    let mut records = Records::of(file).map_err(|message| (unreadable(message), None))?;
    let (mut nodes, mut places, mut named) = (Vec::new(), HashMap::new(), choices.groups.clone());
    let mut n_deps = 0;
    for at in 1.. {
        let in_record = |problem: Problem| (problem, Some(at));
        let Some(record) = records.next().map_err(|message| in_record(unreadable(message)))? else { break };
        if at == 1 {
            node::check_metadata(record).map_err(|problem| {
                in_record(
                    problem.help(
                        "convert the trace to the schema of `et_def.proto` 0.0.4, as chakra's converter writes it",
                    ),
                )
            })?;
            continue;
        }
        if nodes.len() == most {
            return Err(in_record(unreadable(format!("{} nodes of all ranks are too many", super::MOST_NODES))));
        }
        let mut node = Node::read(record, &mut content.skipped).map_err(in_record)?;
        if node.kind == Kind::Metadata {
            groups::add_of_metadata(&node, n_ranks, &mut named).map_err(in_record)?;
            node.values = String::new();
        }
        n_deps += node.deps.len();
        if MOST_DEPENDENCIES < n_deps {
            let message = format!("the nodes up to here wait for more than {MOST_DEPENDENCIES} others");
            return Err(in_record(node.problem("data_deps", &message)));
        }
        if places.insert(node.id, nodes.len()).is_some() {
            return Err(in_record(node.problem("id", "another node has this id already")));
        }
        nodes.push(node);
    }
    if nodes.is_empty() {
        return Err((unreadable("the trace has no nodes".to_owned()), None));
    }
    let order = order(&nodes, &places).map_err(|problem| (problem, None))?;
    Ok(Trace { nodes, order, named })
}

/// Returns the nodes in an order in which each comes after those that it waits for; of free ones the smallest id is
/// first.
fn order(nodes: &[Node], places: &HashMap<u64, usize>) -> Result<Vec<usize>, Problem> {
    let mut waiters: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut left = vec![0_usize; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        for (id, field) in &node.deps {
            let Some(&before) = places.get(id) else {
                return Err(node.problem(field, &format!("there is no node {id}")));
            };
            waiters[before].push(at);
            left[at] += 1;
        }
    }
    let free = (0..nodes.len()).filter(|&at| left[at] == 0);
    let mut free: BinaryHeap<Reverse<(u64, usize)>> = free.map(|at| Reverse((nodes[at].id, at))).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse((_, at))) = free.pop() {
        order.push(at);
        for &waiter in &waiters[at] {
            left[waiter] -= 1;
            if left[waiter] == 0 {
                free.push(Reverse((nodes[waiter].id, waiter)));
            }
        }
    }
    let Some(first) = (0..nodes.len()).find(|&at| 0 < left[at]) else { return Ok(order) };
    // Each node that is left waits for one that is left: the way back ends in a circle.
    let (mut way, mut seen, mut at) = (Vec::new(), HashSet::new(), first);
    while seen.insert(at) {
        way.push(at);
        let before = nodes[at].deps.iter().filter_map(|(id, _)| places.get(id)).find(|&&before| 0 < left[before]);
        at = before.copied().unwrap_or(at);
    }
    let circle = &way[way.iter().position(|&place| place == at).unwrap_or(0)..];
    let mut ids: Vec<String> = circle.iter().take(MOST_NAMED).map(|&at| nodes[at].id.to_string()).collect();
    if MOST_NAMED < circle.len() {
        ids.push("...".to_owned());
    }
    let node = &nodes[circle[0]];
    let field = node.deps.first().map_or("data_deps", |(_, field)| field);
    Err(node.problem(field, &format!("nodes wait for each other in a circle: {}", ids.join(", "))))
}

/// An end of a message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Sender and receiver.
    pub(super) ends: (u32, u32),
    pub(super) tag: i128,
    pub(super) is_sent: bool,
    pub(super) bytes: u64,
    pub(super) node: u64,
    /// Its line in the list.
    pub(super) line: String,
}

/// The list of operations while it is written: first all but messages, in the order of ranks and of their nodes.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) text: String,
    /// Rank and node of each line of `text`.
    origins: Vec<(u32, u64)>,
    pub(super) messages: Vec<Message>,
}

impl Lines {
    /// Returns the number of nodes so far.
    pub(super) fn n_nodes(&self) -> usize {
        self.origins.len() + self.messages.len()
    }

    /// Returns rank and node of a line, from 0.
    pub(super) fn origin(&self, line: usize) -> Option<(u32, u64)> {
        let of_message =
            |message: &Message| (if message.is_sent { message.ends.0 } else { message.ends.1 }, message.node);
        let messages = || self.messages.get(line.checked_sub(self.origins.len())?).map(of_message);
        self.origins.get(line).copied().or_else(messages)
    }

    /// Sorts messages by sender, receiver and tag: lists match the n-th ones from one rank to another, whatever their
    /// tags.
    pub(super) fn sort_messages(&mut self) {
        self.messages.sort_by_key(|message| (message.ends, message.tag));
    }

    /// Adds the nodes of a rank.
    pub(super) fn add(
        &mut self,
        rank: u32,
        trace: &Trace,
        (n_ranks, choices): (u32, &Choices),
        groups: &mut Groups,
        content: &mut Content,
    ) -> Result<(), Problem> {
        for &at in &trace.order {
            let node = &trace.nodes[at];
            let after: Vec<String> = node.deps.iter().map(|(id, _)| id.to_string()).collect();
            let (id, name, after) = (node.id, plain(&node.name), after.join(";"));
            let is_communication = matches!(node.kind, Kind::Send | Kind::Receive | Kind::Collective);
            let on_cpu = node.attribute("is_cpu_op", Attribute::truth)?;
            if is_communication && on_cpu == Some(true) {
                return Err(node.problem("is_cpu_op", "communication is not of the CPU"));
            }
            if is_communication {
                content.measured += u64::from(0 < node.duration_us);
            }
            let line = match node.kind {
                Kind::Metadata => format!("compute,{rank},{id},{name},{after},0,,,,,\n"),
                Kind::Memory | Kind::Compute => {
                    let ns = time_ns(node, choices, content)?;
                    content.cpu += u64::from(on_cpu == Some(true));
                    content.add(if node.kind == Kind::Memory { "accesses to memory" } else { "computations" }, ns);
                    format!("compute,{rank},{id},{name},{after},{ns},,,,,\n")
                }
                Kind::Send | Kind::Receive => {
                    let (message, peer) = message(node, rank, n_ranks)?;
                    let kind = if message.is_sent { "send" } else { "receive" };
                    if message.is_sent {
                        content.add("messages", message.bytes);
                    }
                    let line = format!("{kind},{rank},{id},{name},{after},,,{},{peer},,\n", message.bytes);
                    self.messages.push(Message { line, ..message });
                    continue;
                }
                Kind::Collective => {
                    let kind = collective(node)?;
                    let (group, ranks) = groups::of_collective(node, rank, (n_ranks, &trace.named), choices)?;
                    let group = groups.number(&group, &ranks);
                    let bytes = bytes_of(node, kind, ranks.len() as u64)?;
                    content.priorities +=
                        u64::from(0 != node.attribute("comm_priority", Attribute::signed)?.unwrap_or(0));
                    if ranks.len() < 2 {
                        content.alone += 1;
                        format!("compute,{rank},{id},{name},{after},0,,,,,\n")
                    } else {
                        content.add_collective((group, kind), rank == ranks[0], bytes);
                        format!("{kind},{rank},{id},{name},{after},,{},{bytes},,,\n", plain(&groups.all[group].0))
                    }
                }
            };
            self.text.push_str(&line);
            self.origins.push((rank, id));
        }
        Ok(())
    }
}

/// Returns the time of a computation in ns.
fn time_ns(node: &Node, choices: &Choices, content: &mut Content) -> Result<u64, Problem> {
    let n_ops = node.attribute("num_ops", |value| value.whole(u64::MAX))?.unwrap_or(0);
    let tensor = node.attribute("tensor_size", |value| value.whole(u64::MAX))?.unwrap_or(0);
    if 0 < node.duration_us {
        return Ok(node.duration_us * 1_000);
    }
    if node.kind == Kind::Memory {
        let problem = node.problem("duration_micros", "an access to memory has no time");
        return Err(problem.help("there is no model of memory here: give the node a time"));
    }
    if n_ops == 0 {
        content.instant += 1;
        return Ok(1);
    }
    let Some(tflops) = choices.tflops else {
        let problem = node.problem("duration_micros", &format!("the node has {n_ops} operations and no time"));
        return Err(problem.help("add `--tflops N`, the operations of a rank in 10^12 a second"));
    };
    let by_memory = choices.memory_gbytes_per_s.filter(|_| 0 < tensor).map_or(0.0, |rate| tensor as f64 / rate);
    let ns = (n_ops as f64 / (1e3 * tflops)).max(by_memory);
    if (u64::MAX / 1_000_000) as f64 <= ns {
        return Err(node.problem("num_ops", &format!("{n_ops} operations take too long")));
    }
    content.by_operations += 1;
    Ok((ns.round() as u64).max(1))
}

/// Returns the end of a message, and the rank at its other end.
fn message(node: &Node, rank: u32, n_ranks: u32) -> Result<(Message, u32), Problem> {
    let is_sent = node.kind == Kind::Send;
    let (own, other) = if is_sent { ("comm_src", "comm_dst") } else { ("comm_dst", "comm_src") };
    let most = u64::from(n_ranks) - 1;
    let peer = node.needed(other, |value| value.whole(most))? as u32;
    let here = node.attribute(own, |value| value.whole(most))?;
    if here.is_some_and(|here| here != u64::from(rank)) {
        return Err(node.problem(own, &format!("{} is not the rank of this trace, {rank}", here.unwrap_or(0))));
    }
    if peer == rank {
        return Err(node.problem(other, "the message is for its own rank"));
    }
    let tag = node.attribute("comm_tag", Attribute::signed)?.unwrap_or(0);
    let ends = if is_sent { (rank, peer) } else { (peer, rank) };
    Ok((Message { ends, tag, is_sent, bytes: node.size()?, node: node.id, line: String::new() }, peer))
}

/// Returns the name of a collective in lists of operations.
fn collective(node: &Node) -> Result<&'static str, Problem> {
    let number = node.needed("comm_type", |value| value.whole(u64::MAX))?;
    let at = usize::try_from(number).unwrap_or(usize::MAX);
    match COLLECTIVES.get(at) {
        Some((_, Some(name))) => Ok(name),
        found => {
            let message = match found {
                Some((name, _)) => format!("{name} is not simulated"),
                None => format!("{number} is no collective operation"),
            };
            let known: Vec<&str> = COLLECTIVES.iter().filter_map(|(_, name)| *name).collect();
            Err(node.problem("comm_type", &message).help(&format!("there are {}", known.join(", "))))
        }
    }
}

/// Returns the bytes of a collective as lists count them: of an all-gather the whole, which is the input of all its
/// ranks.
fn bytes_of(node: &Node, kind: &str, n_ranks: u64) -> Result<u64, Problem> {
    let size = node.size()?;
    let whole = if kind == "all-gather" { size.checked_mul(n_ranks) } else { Some(size) };
    whole
        .filter(|bytes| *bytes <= 1_000_000_000_000_000)
        .ok_or_else(|| node.problem("comm_size", &format!("{size} bytes from each rank are too many")))
}

/// The content of all traces.
#[derive(Default)]
pub(super) struct Content {
    pub(super) skipped: Counts,
    /// By kind of operation: their number, and the sum of their bytes or ns.
    sums: BTreeMap<&'static str, (u64, u128)>,
    /// By group and kind: the number of collectives, and the sum of their bytes.
    collectives: BTreeMap<(usize, &'static str), (u64, u128)>,
    cpu: u64,
    instant: u64,
    by_operations: u64,
    measured: u64,
    priorities: u64,
    alone: u64,
}

impl Content {
    fn add(&mut self, kind: &'static str, amount: u64) {
        let sum = self.sums.entry(kind).or_default();
        *sum = (sum.0 + 1, sum.1 + u128::from(amount));
    }

    fn add_collective(&mut self, key: (usize, &'static str), is_first: bool, bytes: u64) {
        if is_first {
            let sum = self.collectives.entry(key).or_default();
            *sum = (sum.0 + 1, sum.1 + u128::from(bytes));
        }
    }

    /// Returns the content in words.
    pub(super) fn words(&self, n_ranks: u32, groups: &[(String, Vec<u32>)]) -> Vec<String> {
        let mut lines = vec![format!(
            "{n_ranks} ranks; times read in us and written in ns, sizes in bytes: `comm_size` is the input of a rank, of an all-gather its part"
        )];
        for (kind, (n, sum)) in &self.sums {
            let unit = if *kind == "messages" { "bytes" } else { "ns" };
            lines.push(format!("{kind}: {n}, of {sum} {unit} in all"));
        }
        for ((group, kind), (n, sum)) in &self.collectives {
            let (name, ranks) = &groups[*group];
            lines.push(format!("{}, {} ranks: {n} {kind} of {sum} bytes in all", name.escape_debug(), ranks.len()));
        }
        let mut more = |n: u64, what: &str| {
            if 0 < n {
                lines.push(format!("{n} {what}"));
            }
        };
        more(self.by_operations, "computations get their time from `num_ops`");
        more(self.instant, "computations without time and operations take 1 ns each, as in ASTRA-sim");
        lines
    }

    /// Returns what the scenario lacks, a sentence each.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut all = vec![
            "The network: a star of 400 Gb/s stands in for it; set `[topology]`, and `hosts` of the block for the placement of ranks."
                .to_owned(),
            "One computation and one collective of a rank at a time, as ASTRA-sim has it: here all that waits for nothing goes on."
                .to_owned(),
        ];
        let mut more = |n: u64, what: &str| {
            if 0 < n {
                all.push(format!("{n} {what}"));
            }
        };
        more(self.cpu, "computations of the CPU (`is_cpu_op`) are computations as all others.");
        more(self.measured, "times of communication (`duration_micros`), which the network decides.");
        more(self.priorities, "priorities of collectives (`comm_priority`).");
        more(self.alone, "collectives of groups with a single rank, which have nothing to send.");
        more(self.skipped.unknown_attributes, "attributes of other names.");
        more(self.skipped.unknown_fields, "fields of other numbers.");
        let has_broadcast = self.collectives.keys().any(|(_, kind)| *kind == "broadcast");
        let root = "The root of broadcasts, which traces do not have: the first rank of the group sends.";
        all.extend(has_broadcast.then(|| root.to_owned()));
        all
    }
}
