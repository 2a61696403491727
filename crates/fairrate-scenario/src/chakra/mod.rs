//! Reader of execution traces of MLCommons Chakra, the input of ASTRA-sim: a file a rank, `PREFIX.RANK.et`, of nodes
//! that wait for each other.
//!
//! The format is that of `et_def.proto` 0.0.4 (github.com/mlcommons/chakra), and sizes mean what ASTRA-sim's
//! collectives take them for: `comm_size` is the input of a rank, so of an all-gather its own part.

mod attributes;
mod groups;
mod node;
mod rank;
mod records;
mod wire;

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Read;

use fairrate_sim::workload::{TraceDefaults, parse_trace};

use self::groups::Groups;
pub use self::groups::read_groups;
use self::rank::{Content, Lines, Message};
use crate::ImportedJob;

/// Most nodes of all ranks: more would not fit into memory.
const MOST_NODES: usize = 20_000_000;
/// Header of the list of operations.
const HEADER: &str = "kind,rank,id,name,after,duration_ns,group,bytes,peer,channels,ranks\n";

/// The choices that traces leave open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// Process groups by name, as [`read_groups`] gives them.
    pub groups: HashMap<String, Vec<u32>>,
    /// Sizes of the logical dimensions, the first one innermost; their product is the number of ranks. May be empty.
    pub logical_dims: Vec<u32>,
    /// Operations of a rank, in 10^12 a second, for computations that have operations and no time.
    pub tflops: Option<f64>,
    /// Memory bandwidth of a rank in 10^9 bytes a second, which bounds the rate of those computations; `None`: it does
    /// not.
    pub memory_gbytes_per_s: Option<f64>,
}

/// The trace of a rank.
pub struct Source<'a> {
    /// Name of the file, for messages.
    pub name: String,
    /// Opens it.
    #[allow(clippy::type_complexity)] // A reader and its error.
    pub open: Box<dyn Fn() -> std::io::Result<Box<dyn Read>> + 'a>,
}

/// An error in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Name of the file.
    pub file: String,
    /// The node; `None` where there is none.
    pub node: Option<u64>,
    /// The record of the file, from 1, where no node is known.
    pub record: Option<usize>,
    /// The field or attribute; may be empty.
    pub field: String,
    /// The problem.
    pub message: String,
    /// A suggestion.
    pub help: Option<Box<str>>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.file)?;
        match (self.node, self.record) {
            (Some(node), _) => write!(f, ", node {node}")?,
            (None, Some(record)) => write!(f, ", record {record}")?,
            (None, None) => {}
        }
        if !self.field.is_empty() {
            write!(f, ", `{}`", self.field.escape_debug())?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Error {}

/// An error before its file is known.
#[derive(Debug)]
struct Problem {
    node: Option<u64>,
    field: String,
    message: String,
    help: Option<String>,
}

impl Problem {
    fn new(field: &str, message: String) -> Self {
        Self { node: None, field: field.to_owned(), message, help: None }
    }

    fn at(self, node: u64) -> Self {
        Self { node: Some(node), ..self }
    }

    fn help(self, help: &str) -> Self {
        Self { help: Some(help.to_owned()), ..self }
    }

    fn in_file(self, file: &str, record: Option<usize>) -> Error {
        let Self { node, field, message, help } = self;
        let help = help.map(String::into_boxed_str);
        Error { file: file.to_owned(), node, record: record.filter(|_| node.is_none()), field, message, help }
    }
}

/// Parts of files that were skipped.
#[derive(Debug, Default)]
struct Counts {
    unknown_fields: u64,
    unknown_attributes: u64,
}

/// Returns the traces of all ranks, in their order, as the scenario `name`.
///
/// # Errors
/// A trace cannot be read, or the ranks do not agree on an operation.
pub fn import(name: &str, sources: &[Source<'_>], choices: &Choices) -> Result<ImportedJob, Error> {
    let n_ranks = sources.len() as u32;
    let of_all = |message: String, help: &str| Error {
        file: name.to_owned(),
        node: None,
        record: None,
        field: String::new(),
        message,
        help: Some(help.into()),
    };
    if sources.is_empty() {
        return Err(of_all("there are no traces".to_owned(), "a trace is a file PREFIX.0.et, PREFIX.1.et, ..."));
    }
    let product: u64 = choices.logical_dims.iter().fold(1, |all, &size| all.saturating_mul(u64::from(size)));
    if !choices.logical_dims.is_empty() && product != u64::from(n_ranks) {
        let message = format!("logical dimensions of {product} ranks, and there are {n_ranks}");
        return Err(of_all(message, "correct `--logical-dims`"));
    }
    let (mut groups, mut lines, mut content) = (Groups::default(), Lines::default(), Content::default());
    for (rank, source) in (0..).zip(sources) {
        let in_file = |(problem, record): (Problem, Option<usize>)| problem.in_file(&source.name, record);
        let trace =
            rank::read(source, n_ranks, (choices, MOST_NODES - lines.n_nodes()), &mut content).map_err(in_file)?;
        lines.add(rank, &trace, (n_ranks, choices), &mut groups, &mut content).map_err(|p| in_file((p, None)))?;
    }
    check_messages(&lines.messages, sources)?;
    lines.sort_messages();
    let mut operations = HEADER.to_owned();
    for (name, ranks) in &groups.all {
        let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
        let _ = writeln!(operations, "group,,,{},,,,,,,{}", plain(name), ranks.join(";"));
    }
    let n_before = 1 + groups.all.len();
    operations.push_str(&lines.text);
    lines.messages.iter().for_each(|message| operations.push_str(&message.line));
    // What ranks have to agree on is checked where lists are read; a line there is a node here.
    if let Err(error) = parse_trace(&operations, TraceDefaults { channels: 1, chunks: 1 }) {
        let Some((rank, node)) = lines.origin(error.line.saturating_sub(n_before + 1)) else {
            return Err(of_all(error.message, "let the ranks of a group have the same collectives in the same order"));
        };
        let message = by_nodes(&error.message, |line| {
            let (rank, node) = lines.origin(line.checked_sub(n_before + 1)?)?;
            Some(format!("node {node} of `{}`", sources[rank as usize].name))
        });
        let help = "let the ranks of a group have the same collectives, with the same sizes, in the same order";
        let problem = Problem::new("", message).at(node).help(error.help.as_deref().unwrap_or(help));
        return Err(problem.in_file(&sources[rank as usize].name, None));
    }
    let left_out = content.left_out();
    Ok(ImportedJob {
        scenario: scenario(name, n_ranks, &left_out),
        operations,
        content: content.words(n_ranks, &groups.all),
        left_out,
    })
}

/// Checks that each message is sent and received with the same size. They match by sender, receiver and tag, in the
/// order of each rank.
fn check_messages(messages: &[Message], sources: &[Source<'_>]) -> Result<(), Error> {
    type Ends<'a> = HashMap<(u32, u32, i128), Vec<&'a Message>>;
    let (mut sent, mut received) = (Ends::new(), Ends::new());
    for message in messages {
        let all = if message.is_sent { &mut sent } else { &mut received };
        all.entry((message.ends.0, message.ends.1, message.tag)).or_default().push(message);
    }
    let error = |message: &Message, field: &str, what: String| {
        let rank = if message.is_sent { message.ends.0 } else { message.ends.1 };
        Problem::new(field, what).at(message.node).in_file(&sources[rank as usize].name, None)
    };
    let mut n_so_far: HashMap<(u32, u32, i128, bool), usize> = HashMap::new();
    // In the order of the files, so that the first error does not depend on the order of a map.
    for message in messages {
        let key = (message.ends.0, message.ends.1, message.tag);
        let n = n_so_far.entry((key.0, key.1, key.2, message.is_sent)).or_default();
        let at = *n;
        *n += 1;
        let other = if message.is_sent { &received } else { &sent };
        match other.get(&key).and_then(|all| all.get(at)) {
            None => {
                let done = if message.is_sent { "received" } else { "sent" };
                let what =
                    format!("the message from rank {} to rank {} with tag {} is not {done}", key.0, key.1, key.2);
                return Err(error(message, "comm_tag", what));
            }
            Some(end) if end.bytes != message.bytes => {
                let what = format!("{} bytes, and node {} at the other end has {}", message.bytes, end.node, end.bytes);
                return Err(error(message, "comm_size", what));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Returns a message with nodes in place of the lines that it names, where `node` has one.
fn by_nodes(message: &str, node: impl Fn(usize) -> Option<String>) -> String {
    let mut parts = message.split("line ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.chars().take_while(char::is_ascii_digit).count();
        match part[..digits].parse().ok().and_then(&node) {
            Some(node) => text += &(node + &part[digits..]),
            None => text.extend(["line ", part]),
        }
    }
    text
}

/// Returns a text without what a list of operations cannot have.
fn plain(text: &str) -> String {
    let text: String = text.chars().map(|c| if c == ',' || c.is_control() { ' ' } else { c }).take(200).collect();
    text.trim().trim_start_matches('#').to_owned()
}

fn scenario(name: &str, n_ranks: u32, left_out: &[String]) -> String {
    let mut scenario = format!("# The traces {} of Chakra. Not carried over:\n", plain(name));
    for sentence in left_out {
        let _ = writeln!(scenario, "# - {sentence}");
    }
    let (hosts, only) = if n_ranks < 2 { (2, "hosts = \"h0\"\n") } else { (n_ranks, "") };
    let _ = write!(
        scenario,
        "stop = \"all-flows-done\"\n\n[topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"400Gbps\"\ndelay = \"500ns\"\n\n\
         [transport]\ncc = \"dcqcn\"\nmtu = \"9000B\"\n\n[[traffic]]\nkind = \"trace\"\npath = \"operations.csv\"\n{only}"
    );
    scenario
}

#[cfg(test)]
mod tests;
