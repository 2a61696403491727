//! The lines of a workload, and its process groups.

use fairrate_sim::FileError;
use fairrate_sim::workload::Op;

/// First words of the files that are read: a transformer, and a list of single operations.
const KINDS: [&str; 2] = ["HYBRID_TRANSFORMER_FWD_IN_BCKWD", "MICRO"];
/// Fields of a line.
const FIELDS: usize = 12;
/// Most ranks, and most bytes of an operation.
const MOST_RANKS: u64 = 1_000_000;
const LARGEST: u64 = 1_000_000_000_000_000;
/// Least bytes of a forward operation.
const LEAST_FORWARD: u64 = 4_096;

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Number of ranks.
    pub ranks: u32,
    /// Ranks that share a matrix, and those that share experts.
    tp: u32,
    ep: u32,
    /// The lines in their order.
    pub(super) layers: Vec<Layer>,
    /// Number of forward operations whose sizes were raised.
    pub(super) raised: usize,
}

/// A line: times in ns, and the collectives that follow them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) name: String,
    pub(super) forward: (u64, Option<Communication>),
    /// The gradients of inputs.
    pub(super) input: (u64, Option<Communication>),
    /// The gradients of weights.
    pub(super) weights: (u64, Option<Communication>),
    pub(super) update_ns: u64,
}

/// A collective operation of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Communication {
    pub(super) op: Op,
    pub(super) group: Group,
    /// The whole buffer before or after it, as nccl-tests count it.
    pub(super) bytes: u64,
}

/// A kind of process groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Tensor,
    Data,
    Experts,
    ExpertData,
}

impl Group {
    pub(super) const ALL: [Self; 4] = [Self::Tensor, Self::Data, Self::Experts, Self::ExpertData];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tp",
            Self::Data => "dp",
            Self::Experts => "ep",
            Self::ExpertData => "edp",
        }
    }
}

impl Layer {
    pub(super) fn communication(&self) -> impl Iterator<Item = Communication> + use<> {
        [self.forward.1, self.input.1, self.weights.1].into_iter().flatten()
    }
}

impl Workload {
    /// Reads a workload.
    ///
    /// # Errors
    /// Gives the line and the field of the first error.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let held = |line: &&str| !line.trim().is_empty();
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| held(line));
        let help = "the first line is `HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 ... all_gpus: 64 ...`";
        let Some((at, header)) = lines.next() else { return Err(FileError::new(1, "the file is empty").help(help)) };
        let words: Vec<&str> = header.split_whitespace().collect();
        if !words.first().is_some_and(|word| KINDS.contains(word)) {
            let message =
                format!("`{}` is no kind of workload that is read", words.first().unwrap_or(&"").escape_debug());
            return Err(FileError::new(at, message).help(help));
        }
        let value = |key: &str| key_of(at, &words, key);
        let ranks = value("all_gpus")?.ok_or_else(|| FileError::new(at, "there is no `all_gpus`").help(help))?;
        let (tp, ep) = (value("model_parallel_NPU_group")?.unwrap_or(1), value("ep")?.unwrap_or(1));
        if value("pp")?.is_some_and(|pp| 1 < pp) {
            let message = "stages of a pipeline are not in this format: SimAI adds their messages by a formula";
            return Err(FileError::new(at, message).help("write the workload with `pp: 1`"));
        }
        let Some((at, count)) = lines.next() else {
            return Err(FileError::new(at + 1, "the number of layers is missing").help("the second line has it"));
        };
        let n = count.trim().parse::<usize>().map_err(|_| {
            FileError::new(at, format!("`{}` is no number of layers", count.trim().escape_debug())).help("write one")
        })?;
        let mut workload = Self { ranks, tp, ep, layers: Vec::new(), raised: 0 };
        for (at, line) in lines {
            let layer = workload.layer(at, line)?;
            workload.layers.push(layer);
        }
        if workload.layers.len() != n {
            let message = format!("{n} layers are announced, and there are {}", workload.layers.len());
            return Err(FileError::new(at, message).help("correct the number, or complete the file"));
        }
        workload.check(1)?;
        Ok(workload)
    }

    fn layer(&mut self, at: usize, line: &str) -> Result<Layer, FileError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() != FIELDS {
            let message = format!("expected {FIELDS} fields, found {}", words.len());
            let help = "a layer is `name dep fwd_ns fwd_comm fwd_bytes ig_ns ig_comm ig_bytes wg_ns wg_comm wg_bytes update_ns`";
            return Err(FileError::new(at, message).help(help));
        }
        let name: String =
            words[0].chars().map(|c| if c.is_ascii_graphic() && !",;#".contains(c) { c } else { '_' }).collect();
        let step = |first: usize, usual: Group| -> Result<(u64, Option<Communication>), FileError> {
            let ns = number(at, words[first], "a time in ns", u64::MAX / 1_000_000)?;
            let bytes = number(at, words[first + 2], "a size in bytes", LARGEST)?;
            Ok((ns, communication(at, words[first + 1], bytes, usual)?))
        };
        let mut forward = step(2, Group::Tensor)?;
        let (input, weights) = (step(5, Group::Tensor)?, step(8, Group::Data)?);
        if let Some(what) = forward.1.as_mut().filter(|what| what.bytes < LEAST_FORWARD) {
            what.bytes = LEAST_FORWARD;
            self.raised += 1;
        }
        let update_ns = number(at, words[11], "a time in ns", u64::MAX / 1_000_000)?;
        Ok(Layer { name, forward, input, weights, update_ns })
    }

    /// Checks that the ranks make whole groups.
    fn check(&self, at: usize) -> Result<(), FileError> {
        let whole = |what: &str, ranks: u32, by: &str, n: u32| {
            if n != 0 && ranks.is_multiple_of(n) {
                return Ok(());
            }
            let message = format!("{what} {ranks} cannot be divided by {by} {n}");
            Err(FileError::new(at, message).help("choose numbers that divide each other"))
        };
        whole("`all_gpus`", self.ranks, "`model_parallel_NPU_group`", self.tp)?;
        whole("the number of tensor groups", self.ranks / self.tp, "`ep`", self.ep)
    }

    /// Returns the ranks of a group of a kind.
    pub(super) fn size(&self, group: Group) -> u32 {
        let copies = self.ranks / self.tp;
        match group {
            Group::Tensor => self.tp,
            Group::Data => copies,
            Group::Experts => self.ep,
            Group::ExpertData => copies / self.ep,
        }
    }

    /// Returns the number of the group of a kind that `rank` is in: place in its tensor group, and number of that.
    fn number(&self, group: Group, rank: u32) -> u32 {
        let (place, copy) = (rank % self.tp, rank / self.tp);
        match group {
            Group::Tensor => copy,
            Group::Data => place,
            Group::Experts => copy / self.ep * self.tp + place,
            Group::ExpertData => copy % self.ep * self.tp + place,
        }
    }

    /// Returns the name of the group of a kind that `rank` is in; `None` if it has no other ranks.
    pub(super) fn group_of(&self, group: Group, rank: u32) -> Option<String> {
        (1 < self.size(group)).then(|| format!("{}{}", group.name(), self.number(group, rank)))
    }

    /// Returns all groups that have operations, and more than one rank.
    ///
    /// # Errors
    /// If the ranks do not make whole groups.
    pub(super) fn groups(&self) -> Result<Vec<(String, Vec<u32>)>, FileError> {
        self.check(1)?;
        let mut all: Vec<(String, Vec<u32>)> = Vec::new();
        for group in Group::ALL {
            let is_used = self.layers.iter().flat_map(Layer::communication).any(|what| what.group == group);
            if !is_used || self.size(group) < 2 {
                continue;
            }
            let mut of_kind = vec![Vec::new(); (self.ranks / self.size(group)) as usize];
            (0..self.ranks).for_each(|rank| of_kind[self.number(group, rank) as usize].push(rank));
            all.extend((0..).zip(of_kind).map(|(at, ranks): (u32, _)| (format!("{}{at}", group.name()), ranks)));
        }
        Ok(all)
    }
}

/// Returns the number after a word of the first line, with or without a colon; `None` if it is not there.
fn key_of(at: usize, words: &[&str], key: &str) -> Result<Option<u32>, FileError> {
    let Some(place) = words.iter().position(|word| word.trim_end_matches(':') == key) else { return Ok(None) };
    let word = words.get(place + 1).copied().unwrap_or_default();
    let number = number(at, word, &format!("`{key}`"), MOST_RANKS)?;
    if number == 0 {
        return Err(FileError::new(at, format!("`{key}` is 0")).help("write a number above zero"));
    }
    Ok(Some(number as u32))
}

fn number(at: usize, word: &str, what: &str, most: u64) -> Result<u64, FileError> {
    let number = word.parse::<u64>().ok().filter(|&number| number <= most);
    let message = || format!("`{}` is not {what}", word.escape_debug());
    number.ok_or_else(|| FileError::new(at, message()).help(format!("write a whole number up to {most}")))
}

/// Reads the name of an operation, which may end with that of its groups.
fn communication(at: usize, word: &str, bytes: u64, usual: Group) -> Result<Option<Communication>, FileError> {
    if word == "NONE" {
        return Ok(None);
    }
    let (name, group) = match (word.strip_suffix("_DP_EP"), word.strip_suffix("_EP")) {
        (Some(name), _) => (name, Group::ExpertData),
        (None, Some(name)) => (name, Group::Experts),
        (None, None) => (word, usual),
    };
    let op = match name {
        "ALLREDUCE" => Op::AllReduce,
        "ALLGATHER" => Op::AllGather,
        "REDUCESCATTER" => Op::ReduceScatter,
        "ALLTOALL" => Op::AllToAll,
        _ => {
            let message = format!("unknown operation `{}`", word.escape_debug());
            let help =
                "write NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, with nothing, _EP or _DP_EP behind it";
            return Err(FileError::new(at, message).help(help));
        }
    };
    Ok((0 < bytes).then_some(Communication { op, group, bytes }))
}
