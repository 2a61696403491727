//! Connection matrices of htsim.

use std::collections::HashSet;

use fairrate_sim::FileError;

use super::{ENDLESS, held, number};

/// Largest number of nodes: more than any topology has.
const MOST_NODES: u32 = 1_000_000;

/// Keys of a connection that have a number which is read.
const KNOWN: [&str; 3] = ["id", "start", "size"];
/// Keys of a connection that wait for another one, or tell another one.
const OF_TRIGGERS: [&str; 4] = ["trigger", "send_done_trigger", "recv_done_trigger", "msg"];

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
    /// The sender.
    pub src: u32,
    /// The receiver.
    pub dst: u32,
    /// Its number, from 1; 0 without one.
    pub id: u32,
    /// Its start, as written.
    pub start: u64,
    /// Its size in bytes; 0: endless.
    pub bytes: u64,
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
    /// Number of cables that are absent.
    failures: usize,
    /// `true` if a flow has a priority.
    has_priorities: bool,
}

impl Matrix {
    /// Reads a matrix.
    ///
    /// # Errors
    /// If a line is not understood, a count is wrong, or flows wait for triggers.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let mut matrix = Self { nodes_line: 1, ..Self::default() };
        let (mut nodes, mut announced, mut announced_line) = (None, None, 1);
        let mut ids = HashSet::new();
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
                "Connections" => {
                    (announced, announced_line) = (Some(number::<usize>(at, "Connections", words.next())?), at);
                }
                name @ ("Triggers" | "Failures") => {
                    let n: usize = number(at, name, words.next())?;
                    if name == "Triggers" && 0 < n {
                        return Err(waits(at));
                    }
                }
                "trigger" => return Err(waits(at)),
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
        match announced {
            Some(n) if n == matrix.flows.len() => Ok(matrix),
            Some(n) => {
                let message = format!("{n} connections are announced, {} follow", matrix.flows.len());
                Err(FileError::new(announced_line, message))
            }
            None => Err(FileError::new(1, "the matrix has no line `Connections`")),
        }
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
        let [mut id, mut start, mut bytes] = [None; 3];
        while let Some(key) = words.next() {
            let slot = match key {
                "id" => &mut id,
                "start" => &mut start,
                "size" => &mut bytes,
                "prio" => {
                    self.has_priorities = true;
                    number::<u64>(at, key, words.next())?;
                    continue;
                }
                key if OF_TRIGGERS.contains(&key) => return Err(waits(at)),
                key => {
                    let message = format!("a connection has no key `{}`", key.escape_debug());
                    let near = fairrate_text::nearest(key, KNOWN);
                    let help = near.map_or_else(
                        || format!("its keys are {}", KNOWN.join(", ")),
                        |near| format!("did you mean `{near}`?"),
                    );
                    return Err(FileError::new(at, message).help(help));
                }
            };
            if slot.replace(number::<u64>(at, key, words.next())?).is_some() {
                return Err(FileError::new(at, format!("`{key}` is there twice")));
            }
        }
        let needs = |what: &str| FileError::new(at, format!("the connection has no `{what}`"));
        let id = u32::try_from(id.unwrap_or(0)).map_err(|_| FileError::new(at, "this id is too large"))?;
        let (start, bytes) = (start.ok_or_else(|| needs("start"))?, bytes.ok_or_else(|| needs("size"))?);
        if ENDLESS <= bytes {
            return Err(FileError::new(at, format!("`size {bytes}` is more than a connection has")));
        }
        Ok(MatrixFlow { src, dst, id, start, bytes })
    }

    /// Returns `true` if all flows start at 0, so that the unit of starts does not matter.
    pub fn starts_at_once(&self) -> bool {
        self.flows.iter().all(|flow| flow.start == 0)
    }

    /// Returns sentences about what a list of flows cannot say.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut all = Vec::new();
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
        let with_ids = self.flows.iter().all(|flow| flow.id != 0);
        let mut lines = vec![if with_ids { "start_ns,src,dst,bytes,id" } else { "start_ns,src,dst,bytes" }.to_owned()];
        lines.extend(self.flows.iter().map(|flow| {
            let start = match unit {
                StartUnit::Microseconds => (u128::from(flow.start) * 1_000).to_string(),
                StartUnit::Picoseconds if flow.start.is_multiple_of(1_000) => (flow.start / 1_000).to_string(),
                StartUnit::Picoseconds => format!("{}.{:03}", flow.start / 1_000, flow.start % 1_000),
            };
            let bytes = if flow.bytes == 0 { ENDLESS } else { flow.bytes };
            let id = if with_ids { format!(",{}", flow.id) } else { String::new() };
            format!("{start},h{},h{},{bytes}{id}", flow.src, flow.dst)
        }));
        lines.join("\n") + "\n"
    }
}

/// Returns the error of flows that wait for others.
fn waits(at: usize) -> FileError {
    FileError::new(at, "flows of this job wait for each other, by triggers")
        .help("only jobs whose flows have a `start` can be imported")
}
