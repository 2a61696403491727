//! Words for the work of which a stuck flow or task is a part: the collective or operation, its iteration, and the
//! ranks.

use std::collections::{HashMap, HashSet};

use crate::collectives::CollectiveSpec;
use crate::config::{Activity, FlowSpec, SimConfig};
use crate::ids::{FlowId, NodeId, TaskId};
use crate::jobs::JobSpec;

/// Returns the ranks and the work of a flow, with a comma before them; nothing if it is no message of a collective or
/// job.
pub(super) fn of_flow(config: &SimConfig, id: FlowId) -> String {
    let spec = &config.flows[id.index()];
    let work = match config.jobs.iter().find(|job| job.group == spec.group) {
        Some(job) => of_message(config, job, id),
        None => config.collectives.iter().find(|c| c.group == spec.group).and_then(|c| of_collective(config, c, spec)),
    };
    work.map_or_else(String::new, |work| format!(", {work}"))
}

/// Returns the rank and the operation of a task; `None` if it is of no job.
pub(super) fn of_task(config: &SimConfig, task: TaskId) -> Option<String> {
    config.jobs.iter().find_map(|job| {
        let part = &job.parts[job.part_of(task)?];
        Some(format!("rank {} is done with {}", part.rank, operation(job, part.operation)))
    })
}

fn of_collective(config: &SimConfig, collective: &CollectiveSpec, spec: &FlowSpec) -> Option<String> {
    let (from, to) = ranks(config, &collective.ranks, spec)?;
    Some(format!("rank {from} to rank {to} in iteration {} of {}", spec.iteration, collective.op.name()))
}

/// Describes a message of a job: it waits for others of its operation, and these for the tasks at which ranks begin it.
fn of_message(config: &SimConfig, job: &JobSpec, id: FlowId) -> Option<String> {
    let (from, to) = ranks(config, &job.ranks, &config.flows[id.index()])?;
    let mut befores: HashMap<Activity, Vec<Activity>> = HashMap::new();
    for dependency in &config.dependencies {
        befores.entry(dependency.waiter).or_default().push(dependency.before);
    }
    let (mut open, mut seen) = (vec![Activity::from(id)], HashSet::new());
    while let Some(activity) = open.pop() {
        if let Some(part) = activity.task().and_then(|task| job.part_of(task)) {
            let work = operation(job, job.parts[part].operation);
            return Some(format!("rank {from} to rank {to} in {work}"));
        }
        open.extend(befores.get(&activity).into_iter().flatten().filter(|&&before| seen.insert(before)));
    }
    None
}

/// Returns the ranks that send and receive a message.
fn ranks(config: &SimConfig, hosts: &[NodeId], spec: &FlowSpec) -> Option<(usize, usize)> {
    let rank = |end: NodeId| hosts.iter().position(|&host| config.topology.nic(host) == config.topology.nic(end));
    Some((rank(spec.src)?, rank(spec.dst)?))
}

fn operation(job: &JobSpec, at: u32) -> String {
    let operation = &job.operations[at as usize];
    let name = &job.names[operation.name as usize];
    format!("`{name}` ({}) of iteration {}", operation.kind.name(), operation.iteration)
}
