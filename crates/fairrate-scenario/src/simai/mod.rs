//! Reader of the workloads of SimAI, which AICB writes: an iteration of a training job, a line a layer.
//!
//! The format and its order are those of SimAI's `Workload.cc` (github.com/aliyun/SimAI,
//! `HYBRID_TRANSFORMER_FWD_IN_BCKWD`): forward through all lines, each with a computation and a collective that blocks;
//! back from the last line to the first, each with the gradients of inputs, a collective that blocks, the gradients of
//! weights, and a collective for which nothing waits but the end.

mod layers;

use std::fmt::Write as _;

use fairrate_sim::FileError;

pub use self::layers::Workload;
use self::layers::{Communication, Group, Layer};
use crate::ImportedJob;

/// Most operations of ranks: more would not fit into memory.
const MOST_OPERATIONS: u64 = 20_000_000;
/// Computations and collectives of a layer.
const OPERATIONS_OF_A_LAYER: u64 = 6;

/// The choices that a workload leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// GPUs of a server, at least 1: a collective has as many channels as its group has ranks on a server.
    pub gpus_per_server: u32,
    /// `true` if reductions of gradients block too, as operations that run one after the other.
    pub serial: bool,
}

/// Returns the workload `name` as a scenario.
///
/// # Errors
/// If parts of the ranks do not make whole groups.
pub fn import(name: &str, workload: &Workload, choices: Choices) -> Result<ImportedJob, FileError> {
    let groups = workload.groups()?;
    let operations = u64::from(workload.ranks) * workload.layers.len() as u64 * OPERATIONS_OF_A_LAYER;
    if MOST_OPERATIONS < operations {
        let message = format!("{} ranks with {} layers are too many", workload.ranks, workload.layers.len());
        let help =
            format!("up to {MOST_OPERATIONS} operations of ranks are possible; a layer has {OPERATIONS_OF_A_LAYER}");
        return Err(FileError::new(1, message).help(help));
    }
    let mut operations = String::from("kind,rank,id,name,after,duration_ns,group,bytes,channels,ranks\n");
    for (group, ranks) in &groups {
        let server = |rank: u32| rank / choices.gpus_per_server.max(1);
        let channels = ranks.iter().filter(|&&rank| server(rank) == server(ranks[0])).count().min(32);
        let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
        let _ = writeln!(operations, "group,,,{group},,,,,{channels},{}", ranks.join(";"));
    }
    for rank in 0..workload.ranks {
        Writer { out: &mut operations, workload, rank, id: 0, last: None, open: Vec::new() }.write(choices.serial);
    }
    let left_out = left_out(workload);
    let mut scenario = format!("# The workload {name} of SimAI. Not carried over:\n");
    for sentence in &left_out {
        let _ = writeln!(scenario, "# - {sentence}");
    }
    let _ = write!(
        scenario,
        "stop = \"all-flows-done\"\n\n[topology]\nkind = \"star\"\nhosts = {}\nrate = \"400Gbps\"\ndelay = \"500ns\"\n\n\
         [transport]\ncc = \"dcqcn\"\nmtu = \"9000B\"\n\n[[traffic]]\nkind = \"trace\"\npath = \"operations.csv\"\n",
        workload.ranks
    );
    Ok(ImportedJob { scenario, operations, content: content(workload, &groups), left_out })
}

/// The operations of a rank while they are written.
struct Writer<'a> {
    out: &'a mut String,
    workload: &'a Workload,
    rank: u32,
    /// The id of the last operation.
    id: u64,
    /// The operation that the next one waits for.
    last: Option<u64>,
    /// Operations for which nothing has waited so far: a collective of each group goes after the one before.
    open: Vec<(Group, u64)>,
}

/// The relation of a collective to the operations of its rank that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They wait for it.
    Blocking,
    /// They do not, but for the next collective of its group.
    Overlapping,
}

impl Writer<'_> {
    fn write(mut self, serial: bool) {
        let of_gradients = if serial { Mode::Blocking } else { Mode::Overlapping };
        for layer in &self.workload.layers {
            self.compute(layer, "forward", layer.forward.0);
            self.collective(layer, layer.forward.1, Mode::Blocking);
        }
        for layer in self.workload.layers.iter().rev() {
            self.compute(layer, "backward", layer.input.0);
            self.collective(layer, layer.input.1, Mode::Blocking);
            self.compute(layer, "weights", layer.weights.0);
            self.collective(layer, layer.weights.1, of_gradients);
        }
    }

    fn compute(&mut self, layer: &Layer, pass: &str, ns: u64) {
        // A time of one nanosecond stands for none.
        if 1 < ns {
            self.id += 1;
            let after = self.last.map_or_else(String::new, |id| id.to_string());
            let _ = writeln!(self.out, "compute,{},{},{} {pass},{after},{ns},,,,", self.rank, self.id, layer.name);
            self.last = Some(self.id);
        }
    }

    fn collective(&mut self, layer: &Layer, what: Option<Communication>, mode: Mode) {
        let Some((group, what)) = what.and_then(|what| Some((self.workload.group_of(what.group, self.rank)?, what)))
        else {
            return;
        };
        self.id += 1;
        let mut after: Vec<u64> = self.last.into_iter().collect();
        if let Some(open) = self.open.iter().position(|(of, _)| *of == what.group) {
            after.push(self.open.swap_remove(open).1);
        }
        let after = after.iter().map(u64::to_string).collect::<Vec<_>>().join(";");
        let (rank, id) = (self.rank, self.id);
        let _ = writeln!(self.out, "{},{rank},{id},{},{after},,{group},{},,", what.op.name(), layer.name, what.bytes);
        match mode {
            Mode::Blocking => self.last = Some(id),
            Mode::Overlapping => self.open.push((what.group, id)),
        }
    }
}

/// Returns what a workload has: its ranks and groups, and the bytes of its operations.
fn content(workload: &Workload, groups: &[(String, Vec<u32>)]) -> Vec<String> {
    let mut lines =
        vec![format!("{} ranks, {} layers, times in ns, sizes in bytes", workload.ranks, workload.layers.len())];
    for group in Group::ALL {
        let of_group: Vec<&Vec<u32>> = groups
            .iter()
            .filter(|(name, _)| name.trim_end_matches(|c: char| c.is_ascii_digit()) == group.name())
            .map(|(_, ranks)| ranks)
            .collect();
        if let Some(first) = of_group.first() {
            let all = workload.layers.iter().flat_map(Layer::communication).filter(|what| what.group == group);
            let (n, bytes) = all.fold((0, 0_u64), |(n, sum), what| (n + 1, sum.saturating_add(what.bytes)));
            lines.push(format!(
                "{}: {} groups of {} ranks, each with {n} operations of {bytes} bytes in all",
                group.name(),
                of_group.len(),
                first.len()
            ));
        }
    }
    lines
}

fn left_out(workload: &Workload) -> Vec<String> {
    let mut left_out = vec![
        "The network: a star of 400 Gb/s stands in for it; set `[topology]`, and `hosts` of the block for the placement of ranks."
            .to_owned(),
    ];
    if workload.layers.iter().any(|layer| 1 < layer.update_ns) {
        left_out.push("Times of updates, which SimAI's order of a transformer does not use either.".to_owned());
    }
    if 0 < workload.raised {
        left_out.push(format!(
            "Sizes below 4096 bytes of {} forward operations: SimAI raises them to that, and so does this.",
            workload.raised
        ));
    }
    let small =
        workload.layers.iter().flat_map(Layer::communication).filter(|what| workload.size(what.group) < 2).count();
    if 0 < small {
        left_out.push(format!("{small} operations of groups with a single rank, which have nothing to send."));
    }
    left_out
}

#[cfg(test)]
mod tests;
