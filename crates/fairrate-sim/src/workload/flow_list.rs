//! Reader of flow lists: CSV with a header, columns in any order. Lists that begin with a number of flows are read by
//! `hpcc_list`.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use fairrate_units::{Bytes, Time};

use super::flow_waits::Waits;
use super::{ENDLESS_FROM, Workload, default_ports, hpcc_list};
use crate::config::{FlowSpec, Trigger};
use crate::ids::NodeId;
use crate::input_error::FileError;
use crate::topology::Topology;

/// A column with a known meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Start,
    Src,
    Dst,
    Bytes,
    Id,
    Sport,
    Dport,
    Priority,
    Weight,
    Group,
    Deadline,
    After,
    Delay,
    Algorithm,
    Ignored,
}

const COLUMNS: &[(&str, Column)] = &[
    ("start_ns", Column::Start),
    ("src", Column::Src),
    ("dst", Column::Dst),
    ("bytes", Column::Bytes),
    ("size_bytes", Column::Bytes),
    ("id", Column::Id),
    ("sport", Column::Sport),
    ("dport", Column::Dport),
    ("priority", Column::Priority),
    ("weight", Column::Weight),
    ("group", Column::Group),
    ("deadline_ns", Column::Deadline),
    ("after", Column::After),
    ("delay_ns", Column::Delay),
    ("cc", Column::Algorithm),
];

/// Columns that every flow list must have.
const REQUIRED: [(&str, Column); 4] =
    [("start_ns", Column::Start), ("src", Column::Src), ("dst", Column::Dst), ("bytes", Column::Bytes)];

/// The transports and algorithms of the flows of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListStacks<'a> {
    /// [`FlowSpec::stack`] of flows that name none.
    pub usual: u8,
    /// The names that the column `cc` may have, each with its stack.
    pub named: &'a [(String, u8)],
}

/// Reads a flow list: `start_ns,src,dst,bytes` and optionally
/// `id,sport,dport,priority,weight,group,deadline_ns,after,delay_ns,cc`.
///
/// Hosts are given by name or by decimal id; `size_bytes` is another name for `bytes`; a terabyte (10^12) or more is an
/// endless flow. An empty field of an optional column is the same as no such column. Flows are ordered by their start
/// times, then by their ids, which must all differ, then by lines. They keep their ids. Default ports are numbered by
/// pair as those of the generators. A flow with ids in `after` starts `delay_ns` after the last of these flows has
/// arrived at its sender (`7:sent`, `7:acked`: after it has been sent or acknowledged, for flows of the same sender),
/// and not before `start_ns`. Blank lines and lines that begin with `#` are skipped.
///
/// A list whose first line is a number is one of the HPCC ns-3 code: that number of lines `src dst priority dport bytes
/// start` follow, with the start in seconds.
///
/// # Errors
/// Gives line and column of the first error.
pub fn parse_flow_list(
    text: &str,
    topology: &Topology,
    ignore_columns: &[String],
    stacks: ListStacks<'_>,
) -> Result<Workload, FileError> {
    let held = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| held(line));
    let Some((header_line, header)) = lines.next() else {
        return Err(FileError::new(1, "the file is empty").help("the first line is `start_ns,src,dst,bytes`"));
    };
    if let Some(n_flows) = hpcc_list::announced(header) {
        let mut flows = hpcc_list::parse(lines, header_line, n_flows, topology)?;
        for flow in &mut flows {
            flow.stack = stacks.usual;
        }
        return Ok(Workload::from(flows));
    }
    if let Some(message) = connection_matrix(header) {
        return Err(FileError::new(header_line, message)
            .help("`fairrate import htsim FILE --out DIR` makes a scenario of it, with a list of its flows"));
    }
    let columns = parse_header(header_line, header, ignore_columns)?;
    let (hosts, waits) = (Hosts::new(topology), Waits::default());
    let mut reader = Reader { hosts, columns, stacks, ids: HashSet::new(), pairs: HashMap::new(), n_rows: 0, waits };
    let rows = lines.map(|(at, line)| reader.row(at, line)).collect::<Result<Vec<FlowSpec>, _>>()?;
    reader.waits.apply(rows, topology)
}

/// Returns the error message for a file that begins like a connection matrix of htsim: with `Nodes` and a number.
fn connection_matrix(header: &str) -> Option<String> {
    let mut words = header.split_whitespace();
    let is_one = words.next() == Some("Nodes") && words.next()?.parse::<u64>().is_ok() && words.next().is_none();
    is_one.then(|| format!("this is a connection matrix of htsim (`{}`), which is not read here", header.trim()))
}

fn parse_header(at: usize, header: &str, ignore_columns: &[String]) -> Result<Vec<Column>, FileError> {
    let mut columns: Vec<Column> = Vec::new();
    for (name, range) in fields(header) {
        let name = name.trim_start_matches('\u{feff}'); // the byte order mark that some spreadsheets write
        let error = |message: String| FileError::new(at, message).at(range.clone());
        let known = COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, column)| *column);
        let ignored = ignore_columns.iter().any(|ignored| ignored == name).then_some(Column::Ignored);
        let Some(column) = ignored.or(known) else {
            let help = match fairrate_text::did_you_mean(name, COLUMNS.iter().map(|(known, _)| *known)) {
                Some(question) => format!("{question} other columns must be listed in `ignore_columns`"),
                None => format!("to leave it out, write `ignore_columns = [\"{name}\"]`"),
            };
            return Err(error(format!("unknown column `{name}`")).help(help));
        };
        if column != Column::Ignored && columns.contains(&column) {
            return Err(error(format!("column `{name}` comes a second time")));
        }
        columns.push(column);
    }
    if columns.contains(&Column::After) && !columns.contains(&Column::Id) {
        let message = "`after` names flows by their ids, and there is no column `id`";
        return Err(FileError::new(at, message).help("add a column `id` with a number for each flow"));
    }
    match REQUIRED.iter().find(|(_, column)| !columns.contains(column)) {
        None => Ok(columns),
        Some((missing, _)) => Err(FileError::new(at, format!("column `{missing}` is missing"))
            .help("a flow list begins with a header such as `start_ns,src,dst,bytes`")),
    }
}

/// The hosts of a network by name and by id.
pub(super) struct Hosts<'a> {
    topology: &'a Topology,
    names: HashMap<&'a str, NodeId>,
}

impl<'a> Hosts<'a> {
    /// Returns the hosts of a network.
    pub(super) fn new(topology: &'a Topology) -> Self {
        let names = (0..).map(NodeId).zip(&topology.nodes).map(|(id, node)| (node.name.as_str(), id)).collect();
        Self { topology, names }
    }

    /// Returns the host that a field names.
    pub(super) fn find(&self, field: &Field<'_>) -> Result<NodeId, FileError> {
        let text = field.text;
        let by_id = || text.parse().ok().map(NodeId).filter(|id| id.index() < self.topology.nodes.len());
        let Some(node) = self.names.get(text).copied().or_else(by_id) else {
            let error = field.error(format!("there is no host `{text}`"));
            let hosts: Vec<NodeId> = self.topology.hosts().collect();
            let name = |host: &NodeId| &*self.topology.nodes[host.index()].name;
            return Err(match (hosts.first(), hosts.last()) {
                (Some(first), Some(last)) => error.help(format!("hosts go from `{}` to `{}`", name(first), name(last))),
                _ => error,
            });
        };
        if let Some((kind, host)) = self.topology.hidden_end(node) {
            return Err(field.error(format!("`{text}` is {kind}")).help(format!("name its host, `{}`", host.name)));
        }
        if self.topology.is_host(node) {
            return Ok(node);
        }
        Err(field.error(format!("`{text}` is a switch, not a host")))
    }
}

/// The state of reading lines.
struct Reader<'a> {
    hosts: Hosts<'a>,
    columns: Vec<Column>,
    stacks: ListStacks<'a>,
    ids: HashSet<u32>,
    pairs: HashMap<(NodeId, NodeId), u32>,
    n_rows: usize,
    waits: Waits,
}

impl Reader<'_> {
    fn row(&mut self, at: usize, line: &str) -> Result<FlowSpec, FileError> {
        let fields: Vec<Field<'_>> = fields(line).map(|(text, range)| Field::new(text, at, range)).collect();
        if fields.len() != self.columns.len() {
            let message = format!("{} fields under a header of {} columns", fields.len(), self.columns.len());
            return Err(FileError::new(at, message));
        }
        let find = |column| self.columns.iter().position(|&c| c == column).map(|i| &fields[i]);
        let required = |column| find(column).ok_or_else(|| FileError::new(at, "a column is missing"));
        let field = |column| find(column).filter(|field| !field.text.is_empty());
        let (from, to) = (required(Column::Src)?, required(Column::Dst)?);
        let (src, dst) = (self.hosts.find(from)?, self.hosts.find(to)?);
        if src == dst {
            return Err(to.error(format!("a flow from host `{}` to itself", to.text)));
        }
        let bytes = required(Column::Bytes)?.bytes()?;
        let start = required(Column::Start)?.start()?;
        let id = field(Column::Id).map(Field::id).transpose()?;
        let sport = field(Column::Sport).map(|f| f.integer("a port")).transpose()?;
        let dport = field(Column::Dport).map(|f| f.integer("a port")).transpose()?;
        let class = field(Column::Priority).map(Field::class).transpose()?;
        let weight = field(Column::Weight).map_or(Ok(1.0), Field::weight)?;
        let group = field(Column::Group).map_or(Ok(0), |f| f.integer("a group"))?;
        let deadline = field(Column::Deadline).map(|f| f.deadline(bytes)).transpose()?;
        if let (Some(id), Some(field)) = (id, field(Column::Id))
            && !self.ids.insert(id)
        {
            return Err(field.error(format!("id {id} comes a second time")));
        }
        let stack = field(Column::Algorithm).map_or(Ok(self.stacks.usual), |field| field.stack(self.stacks))?;
        let delay = field(Column::Delay).map(|f| f.nanoseconds("no delay")).transpose()?;
        let mut trigger = Trigger::Time;
        if let Some(after) = field(Column::After) {
            self.waits.read(self.n_rows, at, after, delay.unwrap_or(Time::ZERO))?;
            trigger = Trigger::Dependencies;
        } else if let (Some(_), Some(field)) = (delay, field(Column::Delay)) {
            return Err(field
                .error("a delay after no flow".to_owned())
                .help("name flows in `after`, or leave it empty"));
        }
        self.n_rows += 1;
        let count = self.pairs.entry((src, dst)).or_default();
        let default = default_ports(*count, 0);
        *count = count.wrapping_add(1);
        let (sport, dport) = (sport.unwrap_or(default.0), dport.unwrap_or(default.1));
        let id = id.unwrap_or(FlowSpec::NO_ID);
        let flow = FlowSpec::new(src, dst, bytes, start);
        Ok(FlowSpec { trigger, sport, dport, class, weight, deadline, group, stack, id, ..flow })
    }
}

/// A field of a line, and the position for its errors.
pub(super) struct Field<'a> {
    /// The text as written.
    pub(super) text: &'a str,
    error: FileError,
}

impl<'a> Field<'a> {
    /// Returns the field `text`, at `range` in line `at`.
    pub(super) fn new(text: &'a str, at: usize, range: Range<usize>) -> Self {
        Self { text, error: FileError::new(at, String::new()).at(range) }
    }
}

impl Field<'_> {
    /// Returns the place of the field in its line.
    pub(super) fn range(&self) -> Range<usize> {
        self.error.column.map_or(0..0, |(from, to)| from..to)
    }

    pub(super) fn error(&self, message: String) -> FileError {
        FileError { message, ..self.error.clone() }
    }

    pub(super) fn integer<T: std::str::FromStr>(&self, what: &str) -> Result<T, FileError> {
        self.text.parse().map_err(|_| self.error(format!("`{}` is not {what}", self.text)))
    }

    fn id(&self) -> Result<u32, FileError> {
        let id = self.integer::<u64>("an id")?;
        u32::try_from(id).ok().filter(|&id| id != FlowSpec::NO_ID).ok_or_else(|| {
            let most = FlowSpec::NO_ID - 1;
            self.error(format!("id {id} is too large"))
                .help(format!("ids go up to {most}; to leave them out, write `ignore_columns = [\"id\"]`"))
        })
    }

    /// Returns the stack that the field names.
    fn stack(&self, stacks: ListStacks<'_>) -> Result<u8, FileError> {
        let found = stacks.named.iter().find(|(name, _)| *name == self.text);
        found.map(|&(_, stack)| stack).ok_or_else(|| {
            let names: Vec<&str> = stacks.named.iter().map(|(name, _)| name.as_str()).collect();
            let error = self.error(format!("`{}` is none of the block's `algorithms`", self.text));
            error.help(match fairrate_text::did_you_mean(self.text, names.iter().copied()) {
                Some(question) => question,
                None if names.is_empty() => {
                    format!("add `algorithms = {{ {} = \"cubic/tcp\" }}` to the `[[traffic]]` block", self.text)
                }
                None => format!("they are {}", fairrate_text::one_of(&names)),
            })
        })
    }

    fn start(&self) -> Result<Time, FileError> {
        self.nanoseconds("no start time")
    }

    /// Returns the deadline of a flow of `bytes` bytes.
    fn deadline(&self, bytes: Bytes) -> Result<Time, FileError> {
        let deadline = self.nanoseconds("no deadline")?;
        if deadline == Time::ZERO {
            return Err(self.error("a deadline at the start".to_owned()).help("leave the field empty for none"));
        }
        if bytes == Bytes::MAX {
            return Err(self.error("an endless flow meets no deadline".to_owned()).help("leave the field empty"));
        }
        Ok(deadline)
    }

    fn nanoseconds(&self, what: &str) -> Result<Time, FileError> {
        let number = self.text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let time = number.then(|| format!("{}ns", self.text).parse().ok()).flatten();
        time.ok_or_else(|| {
            self.error(format!("`{}` is {what}", self.text)).help("write nanoseconds without a unit, such as 1000000")
        })
    }

    pub(super) fn bytes(&self) -> Result<Bytes, FileError> {
        let help = "write a whole number of bytes, 1 or more; 1000000000000 is endless";
        let bytes = self.integer::<u64>("a number of bytes").map_err(|e| e.help(help))?;
        match Bytes::new(bytes) {
            Bytes::ZERO => Err(self.error("a flow of no bytes".to_owned()).help(help)),
            bytes if bytes < ENDLESS_FROM => Ok(bytes),
            _ => Ok(Bytes::MAX),
        }
    }

    pub(super) fn class(&self) -> Result<u8, FileError> {
        let class = self.integer::<u8>("a priority").ok().filter(|&class| class < 8);
        class.ok_or_else(|| {
            self.error(format!("`{}` is not a priority", self.text)).help("priorities go from 0, the highest, to 7")
        })
    }

    fn weight(&self) -> Result<f64, FileError> {
        let weight = self.integer::<f64>("a weight")?;
        if weight.is_finite() && 0.0 < weight {
            return Ok(weight);
        }
        Err(self.error(format!("`{}` is not a weight", self.text)).help("weights are above 0"))
    }
}

/// Returns the fields of a line, without surrounding space and quotes, each with its position.
fn fields(line: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    line.split(',').map(move |field| {
        let field = field.trim();
        let quoted = field.strip_prefix('"').and_then(|field| field.strip_suffix('"'));
        let field = quoted.unwrap_or(field);
        // `field` is a part of `line`, so the distance of the pointers is the offset.
        let start = field.as_ptr() as usize - line.as_ptr() as usize;
        (field, start..start + field.len())
    })
}

#[cfg(test)]
mod tests {
    use fairrate_units::Rate;
    use proptest::prelude::*;

    use super::*;
    use crate::topology::Star;

    fn star() -> Topology {
        Star { hosts: 4, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build()
    }

    fn read(text: &str) -> Result<Vec<FlowSpec>, FileError> {
        parse_flow_list(text, &star(), &["pg".to_owned()], ListStacks::default()).map(|workload| workload.flows)
    }

    #[test]
    fn columns_come_in_any_order() {
        let flows = read("dst,src,bytes,start_ns\nh1,h0,1000,500\n\n# none\n2, 0 ,1,\"2.5\"\n").unwrap();
        let ends = |f: &FlowSpec| (f.src.0, f.dst.0, f.bytes.as_u64(), f.start.as_ps());
        assert_eq!(flows.iter().map(ends).collect::<Vec<_>>(), [(0, 2, 1, 2_500), (0, 1, 1_000, 500_000)]);
        assert_eq!((flows[0].sport, flows[0].dport, flows[0].class, flows[0].weight), (10_000, 100, None, 1.0));
    }

    #[test]
    fn the_columns_of_the_ns3_lists_are_understood() {
        let text = "id,src,dst,pg,sport,dport,size_bytes,start_ns\n1,1,0,3,10000,10001,1000000000000,1000000\n0,2,0,3,7,8,5,1000000\r\n";
        let flows = read(text).unwrap();
        assert_eq!((flows[0].src, flows[0].sport, flows[0].dport), (NodeId(2), 7, 8));
        assert_eq!((flows[1].bytes, flows[1].stop), (Bytes::MAX, Time::MAX));
        let error = parse_flow_list(text, &star(), &[], ListStacks::default()).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.column), ("line 1: unknown column `pg`", Some((11, 13))));
        assert_eq!(error.help.as_deref(), Some("to leave it out, write `ignore_columns = [\"pg\"]`"));
    }

    #[test]
    fn a_connection_matrix_of_htsim_is_called_so() {
        let text = "Nodes 16\nConnections 1\n0->13 id 1 start 0 size 200000\n";
        let error = read(text).unwrap_err();
        let said = "line 1: this is a connection matrix of htsim (`Nodes 16`), which is not read here";
        assert_eq!(error.to_string(), said);
        assert!(error.help.as_deref().unwrap_or_default().contains("fairrate import htsim"));
        assert_eq!(read("Nodes,src,dst,bytes\n").unwrap_err().to_string(), "line 1: unknown column `Nodes`");
    }

    #[test]
    fn optional_columns_may_be_empty() {
        let flows = read("start_ns,src,dst,bytes,priority,weight,group\n0,0,1,9,0,2.5,4\n0,0,1,9,,,\n").unwrap();
        assert_eq!((flows[0].class, flows[0].weight, flows[0].group), (Some(0), 2.5, 4));
        assert_eq!((flows[1].class, flows[1].weight, flows[1].group, flows[1].sport), (None, 1.0, 0, 10_001));
    }

    #[test]
    fn deadlines_count_from_the_start() {
        let flows = read("start_ns,src,dst,bytes,deadline_ns\n0,0,1,9,2500\n7,0,1,9,\n").unwrap();
        assert_eq!((flows[0].deadline, flows[1].deadline), (Some(Time::from_ps(2_500_000)), None));
        let error = |row: &str| read(&format!("deadline_ns,start_ns,src,dst,bytes\n{row}\n")).unwrap_err();
        let (endless, column) = (error("5,0,0,1,1000000000000"), Some((0, 1)));
        assert_eq!(
            (endless.to_string().as_str(), endless.column),
            ("line 2: an endless flow meets no deadline", column)
        );
        assert_eq!(error("0,0,0,1,9").to_string(), "line 2: a deadline at the start");
        assert_eq!(error("soon,0,0,1,9").to_string(), "line 2: `soon` is no deadline");
    }

    #[test]
    fn errors_say_where_and_what_instead() {
        let head = "start_ns,src,dst,bytes";
        let cases = [
            (String::new(), "line 1: the file is empty", "the first line is `start_ns,src,dst,bytes`"),
            (
                "start_ns,src,dst\n".into(),
                "line 1: column `bytes` is missing",
                "a flow list begins with a header such as `start_ns,src,dst,bytes`",
            ),
            (
                "start_us,src,dst,bytes\n".into(),
                "line 1: unknown column `start_us`",
                "did you mean `start_ns`? other columns must be listed in `ignore_columns`",
            ),
            (format!("{head},size_bytes\n"), "line 1: column `size_bytes` comes a second time", ""),
            (format!("{head}\n0,0,1\n"), "line 2: 3 fields under a header of 4 columns", ""),
            (format!("{head}\n0,0,h9,5\n"), "line 2: there is no host `h9`", "hosts go from `h0` to `h3`"),
            (format!("{head}\n0,0,sw0,5\n"), "line 2: `sw0` is a switch, not a host", ""),
            (format!("{head}\n0,0,h0,5\n"), "line 2: a flow from host `h0` to itself", ""),
            (
                format!("{head}\n0,0,1,0\n"),
                "line 2: a flow of no bytes",
                "write a whole number of bytes, 1 or more; 1000000000000 is endless",
            ),
            (
                format!("{head}\n0,0,1,1e6\n"),
                "line 2: `1e6` is not a number of bytes",
                "write a whole number of bytes, 1 or more; 1000000000000 is endless",
            ),
            (
                format!("{head}\n-1,0,1,5\n"),
                "line 2: `-1` is no start time",
                "write nanoseconds without a unit, such as 1000000",
            ),
            (
                format!("{head}\n1us,0,1,5\n"),
                "line 2: `1us` is no start time",
                "write nanoseconds without a unit, such as 1000000",
            ),
            (
                format!("{head},priority\n1,0,1,5,8\n"),
                "line 2: `8` is not a priority",
                "priorities go from 0, the highest, to 7",
            ),
            (format!("{head},weight\n1,0,1,5,0\n"), "line 2: `0` is not a weight", "weights are above 0"),
            (format!("{head},sport\n1,0,1,5,65536\n"), "line 2: `65536` is not a port", ""),
            (format!("{head},id\n1,0,1,5,7\n1,0,1,5,7\n"), "line 3: id 7 comes a second time", ""),
        ];
        for (text, message, help) in cases {
            let error = read(&text).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.help.as_deref().unwrap_or("")), (message, help), "{text}");
        }
        assert_eq!(read(&format!("{head}\n0, 0 , h9 ,5\n")).unwrap_err().column, Some((7, 9)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", rows in "([0-9h,.\"]{0,9}\n){0,5}") {
            let _ = read(&text);
            if let Ok(flows) = read(&format!("start_ns,src,dst,bytes\n{rows}")) {
                prop_assert!(flows.iter().all(|flow| flow.src != flow.dst && flow.src.0 < 4 && flow.dst.0 < 4));
            }
        }
    }
}
