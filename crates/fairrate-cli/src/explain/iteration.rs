//! `explain --iteration`: the critical path of an iteration of a job or of a collective operation.

use std::collections::HashMap;

use fairrate_explain::{Doing, Explanation, Iterated, Stage};
use fairrate_report::format;
use fairrate_sim::routing::{FlowKey, Routes};
use fairrate_sim::{FlowId, FlowSpec, Milestone, PortId, SimConfig};
use fairrate_text::aligned;
use fairrate_units::Time;
use serde::Serialize;

use super::json::Entry;
use super::names::Names;
use super::rows::rows;
use super::source::Source;

/// Largest number of messages that are shown.
const MESSAGES: usize = 8;
/// Largest number of reasons that are shown.
const REASONS: usize = 12;

/// The critical path of an iteration.
#[derive(Serialize)]
pub struct Critical {
    schema: &'static str,
    scenario: String,
    block: String,
    iteration: u32,
    #[serde(skip)]
    has_servers: bool,
    start_ps: u64,
    /// The time of the iteration: the sum of all stages.
    time_ps: u64,
    stages: Vec<Shown>,
    /// The reasons of all messages, the longest time first.
    #[serde(skip)]
    held: Vec<Held>,
}

/// A stage.
#[derive(Serialize)]
struct Shown {
    /// `computes`, `moves` (a message on its way), `leaves` (a message until its last byte is at the NIC), `adds` or
    /// `waits`.
    doing: &'static str,
    /// The name of the operation; empty in a block that is one collective operation.
    operation: String,
    /// `compute`, `message`, or the collective operation.
    kind: &'static str,
    rank: u32,
    start_ps: u64,
    ps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    /// The reasons of the message, as in the chain of its flow; empty if the flow cannot be explained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<Entry>,
    /// The reason with the longest time, in words.
    #[serde(skip)]
    longest: String,
}

/// The time of all messages with the same reason.
struct Held {
    label: String,
    ps: u64,
    stages: usize,
}

/// A message.
#[derive(Serialize)]
struct Message {
    flow: u32,
    from: String,
    to: String,
    bytes: u64,
    /// The slowest link of its path; none if packets choose their paths one by one.
    link: Option<String>,
    is_inside_server: bool,
}

impl Critical {
    /// Returns the path with the stages of an iteration, and the accounts of their messages.
    pub fn new(
        source: &Source,
        (of, iteration): (Iterated, u32),
        stages: &[Stage],
        messages: &HashMap<FlowId, Explanation>,
    ) -> Self {
        let (config, names) = (source.config(), source.names());
        let routes = Routes::of(config);
        let start = stages.first().map_or(Time::ZERO, |stage| stage.start);
        let mut held: Vec<Held> = Vec::new();
        let shown = |stage: &Stage| {
            let mut shown = shown((config, of), stage, |flow, on| message(config, &names, &routes, flow, on));
            let account = stage.doing.message().and_then(|flow| Some((flow, messages.get(&flow)?)));
            if let Some((flow, account)) = account {
                let pieces = stage.part_of(&account.chain);
                shown.reasons = Entry::all(&pieces, names.number(flow), &names);
                let rows = rows(&pieces);
                shown.longest = rows.first().map_or_else(String::new, |row| {
                    format!("{}, {}", row.label(&names), format::time_ns(row.time.as_ns_f64()))
                });
                for row in rows {
                    let (label, ps) = (row.label(&names), row.time.as_ps());
                    match held.iter_mut().find(|held| held.label == label) {
                        Some(held) => (held.ps, held.stages) = (held.ps + ps, held.stages + 1),
                        None => held.push(Held { label, ps, stages: 1 }),
                    }
                }
            }
            shown
        };
        let shown: Vec<Shown> = stages.iter().map(shown).collect();
        held.sort_by(|a, b| b.ps.cmp(&a.ps).then_with(|| a.label.cmp(&b.label)));
        let total: u64 = stages.iter().map(|stage| (stage.end - stage.start).as_ps()).sum();
        Self {
            schema: "fairrate.explain-iteration/1",
            scenario: source.results.summary.scenario.clone(),
            block: names.block(of.group(config)),
            iteration,
            has_servers: config.topology.servers.is_some(),
            start_ps: start.as_ps(),
            time_ps: total,
            stages: shown,
            held,
        }
    }

    /// Returns the path in words.
    pub fn to_text(&self) -> String {
        let time = |ps: u64| format::time_ns(ps as f64 / 1e3);
        let share = |ps: u64| format::percent(ps as f64 / self.time_ps.max(1) as f64);
        let mut text = format!(
            "{}: iteration {} of block {} took {}, by its critical path of {} stages\n\n",
            self.scenario,
            self.iteration,
            self.block,
            time(self.time_ps),
            self.stages.len()
        );
        let mut kinds = vec![["doing", "time", "share", "stages"].map(String::from)];
        for (title, is_of) in KINDS {
            let of: Vec<&Shown> = self.stages.iter().filter(|stage| is_of(stage)).collect();
            let sum: u64 = of.iter().map(|stage| stage.ps).sum();
            let title = if self.has_servers || !title.starts_with("messages") { title } else { &"messages" };
            if !of.is_empty() {
                kinds.push([(*title).to_owned(), time(sum), share(sum), of.len().to_string()]);
            }
        }
        text += &aligned(&kinds, 1);
        let mut operations: Vec<(String, u64, usize)> = Vec::new();
        for stage in &self.stages {
            let name = stage.title();
            match operations.iter_mut().find(|(other, ..)| *other == name) {
                Some((_, ps, n)) => (*ps, *n) = (*ps + stage.ps, *n + 1),
                None => operations.push((name, stage.ps, 1)),
            }
        }
        operations.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut rows = vec![["operation", "time", "share", "stages"].map(String::from)];
        rows.extend(operations.iter().map(|(name, ps, n)| [name.clone(), time(*ps), share(*ps), n.to_string()]));
        text.push('\n');
        text += &aligned(&rows, 1);
        if !self.held.is_empty() {
            let mut rows = vec![["messages, by reason", "time", "share", "stages"].map(String::from)];
            let row = |held: &Held| [held.label.clone(), time(held.ps), share(held.ps), held.stages.to_string()];
            rows.extend(self.held.iter().take(REASONS).map(row));
            let rest = self.held.get(REASONS..).unwrap_or_default();
            if !rest.is_empty() {
                let sum = rest.iter().map(|held| held.ps).sum();
                rows.push([format!("{} shorter ones", rest.len()), time(sum), share(sum), String::new()]);
            }
            text.push('\n');
            text += &aligned(&rows, 1);
        }
        let mut messages: Vec<(&Shown, &Message)> =
            self.stages.iter().filter_map(|stage| Some((stage, stage.message.as_ref()?))).collect();
        messages.sort_by_key(|(stage, message)| (std::cmp::Reverse(stage.ps), message.flow));
        if !messages.is_empty() {
            let titles = ["longest messages", "operation", "slowest link", "longest part", "flow", "bytes", "time"];
            let row = |(stage, message): &(&Shown, &Message)| {
                let link = message.link.clone().unwrap_or_default();
                let bytes = format::bytes(message.bytes as f64);
                let longest = stage.longest.clone();
                [message.ends(), stage.title(), link, longest, message.flow.to_string(), bytes, time(stage.ps)]
            };
            let titles = titles.map(String::from);
            let rows: Vec<[String; 7]> = [titles].into_iter().chain(messages.iter().take(MESSAGES).map(row)).collect();
            text.push('\n');
            text += &aligned(&rows, 4);
        }
        text
    }
}

type IsOf = fn(&Shown) -> bool;

/// The kinds of stages, for sums.
const KINDS: &[(&str, IsOf)] = &[
    ("computation", |stage| stage.doing == "computes"),
    ("messages inside servers", Shown::is_inside_server),
    ("messages between servers", Shown::is_between_servers),
    ("sums", |stage| stage.doing == "adds"),
    ("latency of steps", |stage| stage.doing == "begins"),
    ("before the start", |stage| stage.doing == "waits"),
];

impl Shown {
    fn title(&self) -> String {
        match &*self.operation {
            "" => self.kind.to_owned(),
            operation if ["compute", "message"].contains(&self.kind) => operation.to_owned(),
            operation => format!("{operation} {}", self.kind),
        }
    }

    fn is_inside_server(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.is_inside_server)
    }

    fn is_between_servers(&self) -> bool {
        self.message.as_ref().is_some_and(|message| !message.is_inside_server)
    }
}

impl Message {
    fn ends(&self) -> String {
        format!("{} to {}", self.from, self.to)
    }
}

fn shown((config, of): (&SimConfig, Iterated), stage: &Stage, message: impl Fn(FlowId, Milestone) -> Message) -> Shown {
    let (operation, kind) = of.operation(config, stage);
    let (doing, flow) = match stage.doing {
        Doing::Computes => ("computes", None),
        Doing::Moves(flow) => ("moves", Some((flow, Milestone::Arrived))),
        Doing::Leaves(flow) => ("leaves", Some((flow, Milestone::Sent))),
        Doing::Adds => ("adds", None),
        Doing::Begins => ("begins", None),
        Doing::Waits => ("waits", None),
    };
    Shown {
        doing,
        operation: operation.to_owned(),
        kind,
        rank: stage.rank,
        start_ps: stage.start.as_ps(),
        ps: (stage.end - stage.start).max(Time::ZERO).as_ps(),
        message: flow.map(|(flow, on)| message(flow, on)),
        reasons: Vec::new(),
        longest: String::new(),
    }
}

fn message(config: &SimConfig, names: &Names<'_>, routes: &Routes, flow: FlowId, on: Milestone) -> Message {
    let spec = &config.flows[flow.index()];
    Message {
        flow: names.number(flow),
        from: names.node(spec.src),
        to: names.node(spec.dst),
        bytes: spec.bytes.as_u64(),
        link: slowest_link(config, routes, spec, on == Milestone::Sent).map(|port| names.port(port)),
        is_inside_server: config.topology.is_scale_up(spec.src),
    }
}

/// Returns the slowest link of a flow's path, the last one of equal ones; that of the sender if only it matters. `None`
/// if packets choose their paths.
fn slowest_link(config: &SimConfig, routes: &Routes, flow: &FlowSpec, is_of_sender: bool) -> Option<PortId> {
    if is_of_sender {
        return routes.host_port(flow.src);
    }
    let mut path = Vec::new();
    routes.path(config.fabric.ecmp, config.seed, FlowKey::of(flow), &mut path);
    let slowest = path.into_iter().rev().min_by_key(|&port| config.topology.link(port).rate);
    slowest.filter(|_| !config.fabric.balance.is_by_packet())
}
