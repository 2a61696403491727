//! Connection matrices of htsim.

use std::collections::HashSet;

use fairrate_sim::{FileError, Milestone};

use super::triggers::{self, Triggers, Waits};
use super::{ENDLESS, held, number};

/// Largest number of nodes: more than any topology has.
const MOST_NODES: u32 = 1_000_000;

/// Keys of a connection that have a number which is read.
const KNOWN: [&str; 6] = ["id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger"];

/// The unit of starts, which differs by program of htsim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUnit {
    /// Picoseconds: the programs for NDP, RoCE and HPCC, and EQDS of csg-htsim.
    Picoseconds,
    /// Whole microseconds: the programs for UEC and Swift, and EQDS of uet-htsim.
    Microseconds,
}

/// A flow of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixFlow {
    /// Line of the file, from 1.
    pub line: usize,
    /// The sender.
    pub src: u32,
    /// The receiver.
    pub dst: u32,
    /// Its number, from 1; 0 without one.
    pub id: u32,
    /// Its start, as written; 0 if it waits for a trigger.
    pub start: u64,
    /// Its size in bytes; 0: endless.
    pub bytes: u64,
    /// The trigger that starts it, if it does not start at a time.
    pub trigger: Option<u32>,
    /// The trigger that it activates as its last byte is acknowledged.
    pub send_done: Option<u32>,
    /// The trigger that it activates as its last byte arrives.
    pub recv_done: Option<u32>,
}

/// A connection matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// Number of hosts.
    pub nodes: u32,
    /// Line of the file that says so, from 1.
    pub nodes_line: usize,
    /// All flows, in the order of the file.
    pub flows: Vec<MatrixFlow>,
    /// The flows for which flows wait.
    waits: Waits,
    /// Number of cables that are absent.
    failures: usize,
    /// `true` if a flow has a priority.
    has_priorities: bool,
}

impl Matrix {
    /// Reads a matrix.
    ///
    /// # Errors
    /// If a line is not understood, a count is wrong, or a flow waits for what its sender does not see.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let mut matrix = Self { nodes_line: 1, ..Self::default() };
        let (mut nodes, mut connections, mut n_triggers) = (None, None, (0, 1));
        let (mut ids, mut triggers) = (HashSet::new(), Triggers::new());
        for (at, line) in held(text) {
            let mut words = line.split_whitespace();
            match words.next().unwrap_or_default() {
                "Nodes" => {
                    let n = number(at, "Nodes", words.next())?;
                    if !(2..=MOST_NODES).contains(&n) {
                        return Err(FileError::new(at, format!("there are 2 to {MOST_NODES} nodes, not {n}")));
                    }
                    (nodes, matrix.nodes_line) = (Some(n), at);
                }
                "Connections" => connections = Some((number(at, "Connections", words.next())?, at)),
                "Triggers" => n_triggers = (number(at, "Triggers", words.next())?, at),
                "Failures" => drop(number::<usize>(at, "Failures", words.next())?),
                "trigger" => triggers::read(&mut triggers, at, &mut words)?,
                "failure" => matrix.failures += 1,
                pair if pair.contains("->") => {
                    let nodes = nodes.ok_or_else(|| {
                        FileError::new(at, "a connection before `Nodes`")
                            .help("begin with `Nodes 16`, the number of hosts")
                    })?;
                    let flow = matrix.flow(at, pair, words, nodes)?;
                    if flow.id != 0 && !ids.insert(flow.id) {
                        return Err(FileError::new(at, format!("id {} is of an earlier flow, too", flow.id)));
                    }
                    matrix.flows.push(flow);
                }
                other => {
                    let message = format!("`{}` begins no line of a connection matrix", other.escape_debug());
                    let help = "lines are `Nodes 16`, `Connections 1` and, for each flow, `0->13 start 0 size 2000000`";
                    return Err(FileError::new(at, message).help(help));
                }
            }
        }
        matrix.nodes = nodes.ok_or_else(|| FileError::new(1, "the matrix has no line `Nodes`"))?;
        let connections = connections.ok_or_else(|| FileError::new(1, "the matrix has no line `Connections`"))?;
        let counts = [("connections", connections, matrix.flows.len()), ("triggers", n_triggers, triggers.len())];
        if let Some((what, (n, at), follow)) = counts.into_iter().find(|&(_, (n, _), follow)| n != follow) {
            return Err(FileError::new(at, format!("{n} {what} are announced, {follow} follow")));
        }
        matrix.waits = triggers::waits(&matrix.flows, &triggers)?;
        Ok(matrix)
    }

    /// Reads a connection `pair`, as `0->13`, with the keys and numbers in `words`.
    fn flow<'a>(
        &mut self,
        at: usize,
        pair: &str,
        mut words: impl Iterator<Item = &'a str>,
        nodes: u32,
    ) -> Result<MatrixFlow, FileError> {
        let host = |text: &str| {
            let id: u32 = number(at, "->", Some(text))?;
            let message = format!("host {id} is not among the {nodes} nodes, which begin at 0");
            if id < nodes { Ok(id) } else { Err(FileError::new(at, message)) }
        };
        let (src, dst) = pair.split_once("->").unwrap_or_default();
        let (src, dst) = (host(src)?, host(dst)?);
        if src == dst {
            return Err(FileError::new(at, format!("host {src} sends to itself")));
        }
        let [mut id, mut start, mut bytes, mut trigger, mut send_done, mut recv_done] = [None; 6];
        while let Some(key) = words.next() {
            let slot = match key {
                "id" => &mut id,
                "start" => &mut start,
                "size" => &mut bytes,
                "trigger" => &mut trigger,
                "send_done_trigger" => &mut send_done,
                "recv_done_trigger" => &mut recv_done,
                "msg" => {
                    let message = "this flow is a message on the connection of another one (`msg`)";
                    return Err(FileError::new(at, message).help("only flows of their own can be imported"));
                }
                "prio" => {
                    self.has_priorities = true;
                    number::<u64>(at, key, words.next())?;
                    continue;
                }
                key => {
                    let message = format!("a connection has no key `{}`", key.escape_debug());
                    let help = fairrate_text::did_you_mean(key, KNOWN)
                        .unwrap_or_else(|| format!("its keys are {}", KNOWN.join(", ")));
                    return Err(FileError::new(at, message).help(help));
                }
            };
            if slot.replace(number::<u64>(at, key, words.next())?).is_some() {
                return Err(FileError::new(at, format!("`{key}` is there twice")));
            }
        }
        let needs = |what: &str| FileError::new(at, format!("the connection has no `{what}`"));
        let small = |name: &str, value: Option<u64>| {
            let fits =
                |value| u32::try_from(value).map_err(|_| FileError::new(at, format!("this `{name}` is too large")));
            value.map(fits).transpose()
        };
        let start = match (start, trigger) {
            (Some(_), Some(_)) => return Err(FileError::new(at, "the connection has a `start` and a `trigger`")),
            (None, None) => return Err(needs("start").help("or `trigger`, if it waits for other flows")),
            (start, _) => start.unwrap_or(0),
        };
        let bytes = bytes.ok_or_else(|| needs("size"))?;
        if ENDLESS <= bytes {
            return Err(FileError::new(at, format!("`size {bytes}` is more than a connection has")));
        }
        Ok(MatrixFlow {
            line: at,
            src,
            dst,
            id: small("id", id)?.unwrap_or(0),
            start,
            bytes,
            trigger: small("trigger", trigger)?,
            send_done: small("send_done_trigger", send_done)?,
            recv_done: small("recv_done_trigger", recv_done)?,
        })
    }

    /// Returns `true` if all flows start at 0, so that the unit of starts does not matter.
    pub fn starts_at_once(&self) -> bool {
        self.flows.iter().all(|flow| flow.start == 0)
    }

    /// Returns sentences about what a list of flows cannot say.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut all = self.waits.differences();
        if self.has_priorities {
            all.push("The priorities of flows, which only some programs of htsim use.".to_owned());
        }
        if 0 < self.failures {
            all.push(format!(
                "{} cables between aggregation and core that are absent: use `[[fault]]`.",
                self.failures
            ));
        }
        all
    }

    /// Returns the flows as a list of ours.
    pub(super) fn to_csv(&self, unit: StartUnit) -> String {
        let with_waits = self.flows.iter().any(|flow| flow.trigger.is_some());
        let with_ids = with_waits || self.flows.iter().all(|flow| flow.id != 0);
        let ids = self.ids();
        let mut header = "start_ns,src,dst,bytes".to_owned();
        header.push_str(if with_ids { ",id" } else { "" });
        header.push_str(if with_waits { ",after" } else { "" });
        let mut lines = vec![header];
        lines.extend(self.flows.iter().enumerate().map(|(at, flow)| {
            let start = match unit {
                StartUnit::Microseconds => (u128::from(flow.start) * 1_000).to_string(),
                StartUnit::Picoseconds if flow.start.is_multiple_of(1_000) => (flow.start / 1_000).to_string(),
                StartUnit::Picoseconds => format!("{}.{:03}", flow.start / 1_000, flow.start % 1_000),
            };
            let bytes = if flow.bytes == 0 { ENDLESS } else { flow.bytes };
            let id = if with_ids { format!(",{}", ids[at]) } else { String::new() };
            let after = if with_waits { format!(",{}", self.after(at, &ids)) } else { String::new() };
            format!("{start},h{},h{},{bytes}{id}{after}", flow.src, flow.dst)
        }));
        lines.join("\n") + "\n"
    }

    /// Returns the ids of all flows; those without one have the next ones that no flow has.
    fn ids(&self) -> Vec<u32> {
        let mut last = self.flows.iter().map(|flow| flow.id).max().unwrap_or(0);
        let id_of = |flow: &MatrixFlow| {
            let has_none = flow.id == 0;
            // A list of flows refuses an id that is there twice.
            last = last.saturating_add(u32::from(has_none));
            if has_none { last } else { flow.id }
        };
        self.flows.iter().map(id_of).collect()
    }

    /// Returns the flows for which the one at position `at` waits, as lists of flows have them.
    fn after(&self, at: usize, ids: &[u32]) -> String {
        let each = self.waits.before[at].iter().map(|&(before, moment)| match moment {
            Milestone::Arrived => ids[before].to_string(),
            Milestone::Sent => format!("{}:sent", ids[before]),
            Milestone::Acknowledged => format!("{}:acked", ids[before]),
        });
        each.collect::<Vec<_>>().join(";")
    }
}
