//! Reader of operation lists: CSV with a header, columns in any order. A line is a process group, or the part of a rank
//! in an operation.

use std::collections::HashMap;

use fairrate_units::{Bytes, Time};

use super::{Job, PartId, Work, collective_of};
use crate::input_error::FileError;
use crate::jobs::ProcessGroup;
use crate::workload::{MAX_CHANNELS, Op};

/// Most ranks of a list.
const MOST_RANKS: u32 = 1_000_000;
/// Parts that operations may lack before the list is refused without naming one.
const MOST_LACKING: usize = 100_000;

/// The columns, in the order of [`Row::fields`].
const COLUMNS: [&str; 11] =
    ["kind", "rank", "id", "name", "after", "duration_ns", "group", "bytes", "peer", "channels", "ranks"];

const KIND: usize = 0;
const RANK: usize = 1;
const ID: usize = 2;
const NAME: usize = 3;
const AFTER: usize = 4;
const DURATION: usize = 5;
const GROUP: usize = 6;
const BYTES: usize = 7;
const PEER: usize = 8;
const CHANNELS: usize = 9;
const RANKS: usize = 10;

/// The collectives of a list that say nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceDefaults {
    /// Channels of groups that have no number of their own, up to [`MAX_CHANNELS`].
    pub channels: u32,
    /// Pieces of each message, at least 1.
    pub chunks: u32,
}

/// Reads an operation list. A line has a `kind`:
///
/// - `group`: the process group `name` of the `ranks`, separated by `;`, whose collectives have `channels`;
/// - `compute`: `rank` computes for `duration_ns`;
/// - a collective operation, as `all-reduce`: `rank` takes part in one of `bytes` of its `group`. The n-th ones of the
///   ranks of a group are one operation. It has the first algorithm that the operation knows;
/// - `send` and `receive`: a message of `bytes` to or from the rank `peer`. The n-th ones from one rank to another are
///   one message.
///
/// A part has an `id` of its own among those of its rank, and starts when those of its rank that `after` names,
/// separated by `;`, have ended. Blank lines and lines that begin with `#` are skipped.
///
/// # Errors
/// Gives line and column of the first error: of a line, of an operation whose ranks do not agree, and of parts that
/// wait for each other in a circle.
pub fn parse_trace(text: &str, defaults: TraceDefaults) -> Result<Job, FileError> {
    let held = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| held(line));
    let Some((at, header)) = lines.next() else {
        let help = format!("the first line is `{}`", COLUMNS.join(","));
        return Err(FileError::new(1, "the file is empty").help(help));
    };
    let places = parse_header(at, header)?;
    let rows: Vec<Row<'_>> = lines.map(|(at, line)| Row::new(at, line, &places)).collect::<Result<_, _>>()?;
    let (groups, parts): (Vec<&Row<'_>>, Vec<&Row<'_>>) = rows.iter().partition(|row| row.get(KIND) == Some("group"));
    let mut reader = Reader::new(&groups, &parts, defaults)?;
    for row in &parts {
        reader.add(row)?;
    }
    reader.check_complete()?;
    for row in &parts {
        reader.add_waits(row)?;
    }
    reader.check_order()?;
    Ok(reader.job)
}

/// Returns the place of each column in a line.
fn parse_header(at: usize, header: &str) -> Result<[Option<usize>; COLUMNS.len()], FileError> {
    let mut places = [None; COLUMNS.len()];
    for (place, name) in header.split(',').enumerate() {
        let name = name.trim().trim_start_matches('\u{feff}');
        let Some(column) = COLUMNS.iter().position(|known| *known == name) else {
            let message = format!("unknown column `{}`", name.escape_debug());
            return Err(FileError::new(at, message).help(format!("the columns are {}", COLUMNS.join(", "))));
        };
        if places[column].replace(place).is_some() {
            return Err(FileError::new(at, format!("column `{name}` comes twice")).help("remove one of them"));
        }
    }
    match [KIND, RANK, ID].into_iter().find(|&column| places[column].is_none()) {
        Some(column) => {
            let message = format!("there is no column `{}`", COLUMNS[column]);
            Err(FileError::new(at, message).help("a list has at least `kind`, `rank` and `id`"))
        }
        None => Ok(places),
    }
}

/// A line.
struct Row<'a> {
    at: usize,
    fields: [Option<&'a str>; COLUMNS.len()],
}

impl<'a> Row<'a> {
    fn new(at: usize, line: &'a str, places: &[Option<usize>; COLUMNS.len()]) -> Result<Self, FileError> {
        let all: Vec<&str> = line.split(',').map(str::trim).collect();
        let n = places.iter().flatten().count();
        if all.len() != n {
            let message = format!("expected {n} fields, found {}", all.len());
            return Err(FileError::new(at, message).help("leave fields that a kind does not need empty"));
        }
        let field = |place: &Option<usize>| all.get((*place)?).copied().filter(|text| !text.is_empty());
        let mut fields = [None; COLUMNS.len()];
        fields.iter_mut().zip(places).for_each(|(to, place)| *to = field(place));
        Ok(Self { at, fields })
    }

    fn get(&self, column: usize) -> Option<&'a str> {
        self.fields[column]
    }

    fn error(&self, message: String, help: &str) -> FileError {
        FileError::new(self.at, message).help(help)
    }

    fn needed(&self, column: usize) -> Result<&'a str, FileError> {
        let kind = self.get(KIND).unwrap_or("line").escape_debug();
        let message = || format!("this `{kind}` has no `{}`", COLUMNS[column]);
        self.get(column).ok_or_else(|| self.error(message(), "give it one"))
    }

    /// Returns a number in a column that has to have one, up to `most`.
    fn number(&self, column: usize, most: u64) -> Result<u64, FileError> {
        let text = self.needed(column)?;
        let number = text.parse::<u64>().ok().filter(|&number| number <= most);
        let message = || format!("`{}` is no number for `{}`", text.escape_debug(), COLUMNS[column]);
        number.ok_or_else(|| self.error(message(), &format!("write a number from 0 to {most}")))
    }
}

/// A list while it is read.
struct Reader {
    job: Job,
    defaults: TraceDefaults,
    by_name: HashMap<String, usize>,
    /// Channels of each group.
    channels: Vec<u32>,
    /// The parts by rank and id, each with its line.
    parts: HashMap<(u32, u64), (PartId, usize)>,
    /// For each rank and group that it is in, its place there and the number of its operations so far.
    members: HashMap<(u32, usize), (usize, usize)>,
    /// Parts that operations of groups may still have: a list has a line for each.
    room: usize,
    /// The operations of each group: the line of the first part, its first part, and for each of its ranks `true` if it
    /// has one.
    operations: Vec<Vec<(usize, PartId, Vec<bool>)>>,
    /// The messages between two ranks: the line of the first part, both parts, and `true` for each that has come.
    messages: HashMap<(u32, u32), Messages>,
    /// The line of each part.
    lines: Vec<usize>,
}

#[derive(Default)]
struct Messages {
    all: Vec<(usize, (PartId, PartId))>,
    n_sent: usize,
    n_received: usize,
}

impl Reader {
    fn new(groups: &[&Row<'_>], parts: &[&Row<'_>], defaults: TraceDefaults) -> Result<Self, FileError> {
        let Some(first) = parts.first() else {
            let line = groups.first().map_or(1, |row| row.at);
            return Err(FileError::new(line, "the list has no operations").help("add lines of computations and more"));
        };
        let ranks = parts.iter().map(|row| row.number(RANK, u64::from(MOST_RANKS) - 1));
        let n_ranks = 1 + ranks.collect::<Result<Vec<u64>, _>>()?.into_iter().max().unwrap_or(0);
        if (parts.len() as u64) < n_ranks {
            let message = format!("the highest rank is {}, and there are {} operations", n_ranks - 1, parts.len());
            return Err(FileError::new(first.at, message).help("number ranks from 0, each with an operation"));
        }
        let (mut all, mut by_name, mut channels) = (Vec::new(), HashMap::new(), Vec::new());
        let mut members = HashMap::new();
        for row in groups {
            let name = row.needed(NAME)?.to_owned();
            let mut ranks = Vec::new();
            for text in row.needed(RANKS)?.split([';', ' ']).filter(|text| !text.is_empty()) {
                let rank = text.parse::<u32>().ok().filter(|&rank| u64::from(rank) < n_ranks);
                let message = || format!("`{}` is none of the {n_ranks} ranks", text.escape_debug());
                let rank = rank.ok_or_else(|| row.error(message(), "ranks are numbered from 0"))?;
                if members.insert((rank, all.len()), (ranks.len(), 0)).is_some() {
                    return Err(row.error(format!("rank {rank} is twice in group `{name}`"), "name it once"));
                }
                ranks.push(rank);
            }
            if ranks.is_empty() {
                return Err(row.error(format!("group `{}` has no ranks", name.escape_debug()), "name its ranks"));
            }
            let most = u64::from(MAX_CHANNELS);
            channels.push(if row.get(CHANNELS).is_some() { row.number(CHANNELS, most)? as u32 } else { 0 });
            if by_name.insert(name.clone(), all.len()).is_some() {
                return Err(row.error(format!("group `{}` comes twice", name.escape_debug()), "give it another name"));
            }
            all.push(ProcessGroup { name, ranks });
        }
        let operations = all.iter().map(|_| Vec::new()).collect();
        Ok(Self {
            job: Job::new(n_ranks as u32, all),
            defaults,
            by_name,
            channels,
            parts: HashMap::new(),
            members,
            room: parts.len() + MOST_LACKING,
            operations,
            messages: HashMap::new(),
            lines: Vec::new(),
        })
    }

    /// Adds the part of a rank, and its operation if the part is the first one of it.
    fn add(&mut self, row: &Row<'_>) -> Result<(), FileError> {
        let (rank, id) = (row.number(RANK, u64::from(MOST_RANKS))? as u32, row.number(ID, u64::MAX)?);
        let kind = row.needed(KIND)?;
        let name = row.get(NAME).unwrap_or(kind);
        let part = match kind {
            "compute" => {
                let ns = row.number(DURATION, u64::MAX / 1_000_000)?;
                self.job.compute(name, 0, rank, Time::from_ns(ns))
            }
            "send" | "receive" => self.add_message(row, (rank, kind == "send"), name)?,
            kind => {
                let Some(&(_, op)) = Op::NAMES.iter().find(|(known, _)| *known == kind) else {
                    let known: Vec<&str> = Op::NAMES.iter().map(|(name, _)| *name).collect();
                    let help = format!("write group, compute, send, receive, {}", known.join(", "));
                    return Err(row.error(format!("unknown kind `{}`", kind.escape_debug()), &help));
                };
                self.add_collective(row, rank, (name, op))?
            }
        };
        self.lines.resize(self.job.parts.len(), row.at);
        match self.parts.insert((rank, id), (part, row.at)) {
            Some((_, line)) => {
                let message = format!("rank {rank} has an operation {id} already, in line {line}");
                Err(row.error(message, "give each operation of a rank an id of its own"))
            }
            None => Ok(()),
        }
    }

    fn add_collective(&mut self, row: &Row<'_>, rank: u32, (name, op): (&str, Op)) -> Result<PartId, FileError> {
        let group_name = row.needed(GROUP)?;
        let Some(&group) = self.by_name.get(group_name) else {
            let message = format!("there is no group `{}`", group_name.escape_debug());
            return Err(row.error(message, "add a line of kind `group` for it"));
        };
        let bytes = Bytes::new(row.number(BYTES, LARGEST)?);
        let n = self.job.groups[group].ranks.len();
        let Some((place, turn)) = self.members.get_mut(&(rank, group)) else {
            let message = format!("rank {rank} is not in group `{}`", group_name.escape_debug());
            return Err(row.error(message, "name a group that the rank is in"));
        };
        let (place, at) = (*place, *turn);
        *turn += 1;
        if at == self.operations[group].len() {
            self.room = self.room.checked_sub(n).ok_or_else(|| {
                let message = "operations up to here have more parts than the list has lines".to_owned();
                row.error(message, "give each rank of a group the same operations")
            })?;
            let channels = if self.channels[group] == 0 { self.defaults.channels } else { self.channels[group] };
            let collective = collective_of(op, op.algorithms()[0], bytes, channels, self.defaults.chunks);
            let first = self.job.collective(name, 0, group, collective);
            self.operations[group].push((row.at, first, vec![false; n]));
        }
        let (line, first, come) = &mut self.operations[group][at];
        come[place] = true;
        let operation = self.job.parts[first.0 as usize].operation as usize;
        let Work::Collective { collective, .. } = &self.job.operations[operation].work else {
            return Err(row.error("this is no collective".to_owned(), "correct this line"));
        };
        if (collective.op, collective.bytes) != (op, bytes) {
            let message = format!(
                "rank {rank} does {} of {} B as operation {at} of group `{}`, and line {line} {} of {} B",
                op.name(),
                bytes.as_u64(),
                group_name.escape_debug(),
                collective.op.name(),
                collective.bytes.as_u64()
            );
            return Err(row.error(message, "the ranks of a group do the same operations in the same order"));
        }
        Ok(Job::part(*first, place))
    }

    fn add_message(&mut self, row: &Row<'_>, (rank, sends): (u32, bool), name: &str) -> Result<PartId, FileError> {
        let peer = row.number(PEER, u64::from(self.job.n_ranks) - 1)? as u32;
        if peer == rank {
            return Err(row.error(format!("rank {rank} has a message for itself"), "name another `peer`"));
        }
        let bytes = Bytes::new(row.number(BYTES, LARGEST)?);
        let ends = if sends { (rank, peer) } else { (peer, rank) };
        let messages = self.messages.entry(ends).or_default();
        let n = if sends { &mut messages.n_sent } else { &mut messages.n_received };
        let at = *n;
        *n += 1;
        if at == messages.all.len() {
            messages.all.push((row.at, self.job.message(name, 0, ends, bytes)));
        }
        let (line, (sender, receiver)) = messages.all[at];
        let operation = self.job.parts[sender.0 as usize].operation as usize;
        if self.job.operations[operation].work != Work::Message(bytes) {
            let message =
                format!("message {at} from rank {} to rank {} has other bytes in line {line}", ends.0, ends.1);
            return Err(row.error(message, "let both ends of a message agree"));
        }
        Ok(if sends { sender } else { receiver })
    }

    /// Checks that all ranks of each collective take part, and that every message is sent and received.
    fn check_complete(&self) -> Result<(), FileError> {
        let mut errors: Vec<FileError> = Vec::new();
        for (group, operations) in self.job.groups.iter().zip(&self.operations) {
            for (line, _, come) in operations {
                if let Some(at) = come.iter().position(|come| !come) {
                    let message = format!("rank {} of group `{}` has no part in this", group.ranks[at], group.name);
                    errors.push(FileError::new(*line, message).help("give each rank of the group the same operations"));
                }
            }
        }
        for (&(from, to), messages) in &self.messages {
            let complete = messages.n_sent.min(messages.n_received);
            if let Some((line, _)) = messages.all.get(complete) {
                let lacks = if messages.n_sent < messages.n_received { "sent" } else { "received" };
                let message = format!("this message from rank {from} to rank {to} is not {lacks}");
                errors.push(FileError::new(*line, message).help("add the line of its other end"));
            }
        }
        errors.into_iter().min_by_key(|error| error.line).map_or(Ok(()), Err)
    }

    /// Lets a part wait for those that `after` names.
    fn add_waits(&mut self, row: &Row<'_>) -> Result<(), FileError> {
        let (rank, id) = (row.number(RANK, u64::from(MOST_RANKS))? as u32, row.number(ID, u64::MAX)?);
        let (part, _) = self.parts[&(rank, id)];
        for text in row.get(AFTER).unwrap_or_default().split([';', ' ']).filter(|text| !text.is_empty()) {
            let before = text.parse::<u64>().ok().and_then(|before| self.parts.get(&(rank, before)));
            let Some(&(before, _)) = before else {
                let message =
                    format!("operation {id} of rank {rank} waits for `{}`, which the rank lacks", text.escape_debug());
                return Err(row.error(message, "name operations of the same rank"));
            };
            self.job.wait(part, before);
        }
        Ok(())
    }

    /// Checks that no part waits for itself. A part starts when those that it waits for have ended, and ends when all
    /// parts of its operation have started; so ranks that reach two collectives in different orders wait for each
    /// other. The sender of a message waits for nobody: all ranks of a ring may send first and then receive.
    fn check_order(&self) -> Result<(), FileError> {
        let n = self.job.parts.len();
        let mut waiters: Vec<Vec<u32>> = vec![Vec::new(); n];
        let mut left = vec![0_u32; n];
        for &(part, before) in &self.job.waits {
            waiters[before.0 as usize].push(part.0);
            left[part.0 as usize] += 1;
        }
        let mut to_start: Vec<u32> = vec![0; self.job.operations.len()];
        self.job.parts.iter().for_each(|part| to_start[part.operation as usize] += 1);
        let mut free: Vec<usize> = (0..n).filter(|&part| left[part] == 0).collect();
        while let Some(part) = free.pop() {
            let at = self.job.parts[part].operation as usize;
            to_start[at] -= 1;
            let operation = &self.job.operations[at];
            let first = operation.first_part.0 as usize;
            let is_message = matches!(operation.work, Work::Message(_));
            let of_operation = (first..n).take_while(|&part| self.job.parts[part].operation as usize == at);
            let has_ended = |&ended: &usize| {
                // The sender ends as it has started: once, when it is the one that starts now.
                if is_message && ended == first { ended == part } else { to_start[at] == 0 }
            };
            for &waiter in of_operation.filter(has_ended).flat_map(|part| &waiters[part]) {
                left[waiter as usize] -= 1;
                if left[waiter as usize] == 0 {
                    free.push(waiter as usize);
                }
            }
        }
        match (0..n).find(|&part| 0 < left[part]) {
            None => Ok(()),
            Some(part) => {
                let rank = self.job.parts[part].rank;
                let name = &self.job.names[self.job.operations[self.job.parts[part].operation as usize].name as usize];
                let message = format!("`{name}` of rank {rank} waits for operations that wait for it: a circle");
                let help =
                    "let all ranks of a group reach its operations, and those of other groups, in the same order";
                Err(FileError::new(self.lines[part], message).help(help))
            }
        }
    }
}

/// Size that no operation exceeds, in bytes.
const LARGEST: u64 = 1_000_000_000_000_000;

#[cfg(test)]
mod tests;
