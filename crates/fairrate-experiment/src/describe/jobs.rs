//! The process groups and the operations of training jobs.

use std::collections::BTreeMap;

use fairrate_sim::{JobSpec, OperationKind, OperationSpec, ProcessGroup, SimConfig};
use serde::Serialize;

/// Most groups of a dimension that are written out.
const MAX_GROUPS: usize = 2;

/// A training job.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Job {
    /// Number of its traffic block.
    pub group: u32,
    /// Number of ranks.
    pub ranks: usize,
    /// Number of iterations.
    pub iterations: u32,
    /// The process groups by their dimension, which is the name without a number.
    pub groups: Vec<Groups>,
    /// The communication of an iteration.
    pub operations: Vec<Operations>,
}

/// The process groups of a dimension.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Groups {
    /// The dimension.
    pub dimension: String,
    /// Number of groups.
    pub n: usize,
    /// Ranks of the smallest group, and of the largest.
    pub ranks: [usize; 2],
    /// The first groups: names of the hosts in the order of ranks.
    pub first: Vec<Vec<String>>,
}

/// Operations of an iteration that differ in nothing but their ranks and their time.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Operations {
    /// Their name.
    pub name: String,
    /// The collective operation, or `message`.
    pub kind: &'static str,
    /// The dimension of their groups; empty for messages.
    pub dimension: String,
    /// Number of operations in the first iteration, over all groups.
    pub n: usize,
    /// Number of groups that take part; 0 for messages.
    pub groups: usize,
    /// Bytes of each as nccl-tests count them, or of the message.
    pub bytes: u64,
}

/// Returns the jobs of a run.
pub(super) fn jobs(config: &SimConfig) -> Vec<Job> {
    let job = |spec: &JobSpec| Job {
        group: spec.group,
        ranks: spec.ranks.len(),
        iterations: spec.iterations,
        groups: groups(config, spec),
        operations: operations(spec),
    };
    config.jobs.iter().map(job).collect()
}

fn dimension(group: &ProcessGroup) -> &str {
    group.name.trim_end_matches(|c: char| c.is_ascii_digit())
}

fn groups(config: &SimConfig, spec: &JobSpec) -> Vec<Groups> {
    let mut all: Vec<Groups> = Vec::new();
    for group in &spec.groups {
        let n = group.ranks.len();
        let at = all.iter().position(|groups| groups.dimension == dimension(group));
        let at = at.unwrap_or_else(|| {
            let dimension = dimension(group).to_owned();
            all.push(Groups { dimension, n: 0, ranks: [n; 2], first: Vec::new() });
            all.len() - 1
        });
        let groups = &mut all[at];
        groups.n += 1;
        groups.ranks = [groups.ranks[0].min(n), groups.ranks[1].max(n)];
        if groups.first.len() < MAX_GROUPS {
            let host = |&rank: &u32| config.topology.nodes[spec.ranks[rank as usize].index()].name.clone();
            groups.first.push(group.ranks.iter().map(host).collect());
        }
    }
    all
}

fn operations(spec: &JobSpec) -> Vec<Operations> {
    // By the first operation of each kind, so that they are in the order of the job.
    let mut places: BTreeMap<(u32, &str, &str, u64), usize> = BTreeMap::new();
    let mut all: Vec<(Operations, std::collections::BTreeSet<u32>)> = Vec::new();
    let is_shown = |operation: &&OperationSpec| operation.iteration == 0 && operation.kind != OperationKind::Compute;
    for operation in spec.operations.iter().filter(is_shown) {
        let kind = match operation.kind {
            OperationKind::Collective(op) => op.name(),
            _ => "message",
        };
        let dimension = operation.process_group.map_or("", |at| dimension(&spec.groups[at as usize]));
        let bytes = operation.bytes.as_u64();
        let at = *places.entry((operation.name, kind, dimension, bytes)).or_insert_with(|| {
            let (name, dimension) = (spec.names[operation.name as usize].clone(), dimension.to_owned());
            all.push((Operations { name, kind, dimension, n: 0, groups: 0, bytes }, std::collections::BTreeSet::new()));
            all.len() - 1
        });
        all[at].0.n += 1;
        all[at].1.extend(operation.process_group);
    }
    all.into_iter().map(|(operations, groups)| Operations { groups: groups.len(), ..operations }).collect()
}
