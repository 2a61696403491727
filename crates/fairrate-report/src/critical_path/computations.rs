//! Computations of ranks beside the same ones of other ranks.

use std::collections::HashMap;

use fairrate_explain::Stage;
use fairrate_results::OperationRow;
use fairrate_sim::{OperationKind, SimConfig};

/// The computations of a run, by the position of their job and the iteration.
pub struct Computations(HashMap<(usize, u32), Iteration>);

/// The computations of an iteration.
#[derive(Default)]
struct Iteration {
    /// The operations of each rank with their times in ns, in the order in which they ended.
    of_rank: HashMap<u32, Vec<(u32, u64)>>,
    /// The ranks with the same names of computations in the same order.
    alike: HashMap<Vec<u32>, Vec<u32>>,
}

impl Computations {
    /// Returns the computations of a run of `config` with these rows, which are in the order of ends.
    pub fn of(config: &SimConfig, rows: &[OperationRow]) -> Self {
        let mut all: HashMap<(usize, u32), Iteration> = HashMap::new();
        for (job, spec) in config.jobs.iter().enumerate() {
            for row in rows.iter().filter(|row| row.group == spec.group) {
                let operation = spec.operations.get(row.operation as usize);
                if let Some(operation) = operation.filter(|operation| operation.kind == OperationKind::Compute) {
                    let of_iteration = all.entry((job, operation.iteration)).or_default();
                    let time_ns = row.end_ns.saturating_sub(row.start_ns);
                    of_iteration.of_rank.entry(row.rank).or_default().push((row.operation, time_ns));
                }
            }
        }
        for (&(job, _), iteration) in &mut all {
            let name = |operation: u32| config.jobs[job].operations[operation as usize].name;
            for (&rank, list) in &iteration.of_rank {
                let names = list.iter().map(|&(operation, _)| name(operation)).collect();
                iteration.alike.entry(names).or_default().push(rank);
            }
        }
        for iteration in all.values_mut() {
            let alike = std::mem::take(&mut iteration.alike);
            // Those of a single rank have none to be compared with.
            iteration.alike = alike.into_iter().filter(|(_, ranks)| 1 < ranks.len()).collect();
        }
        Self(all)
    }

    /// Returns the median time of the computation of `stage` at the other ranks that compute the same in this iteration
    /// of a job, in ns; `None` if there is no such rank.
    pub fn median_of_others(&self, of: (usize, u32), stage: &Stage) -> Option<f64> {
        let iteration = self.0.get(&of)?;
        let at = iteration.of_rank.get(&stage.rank)?.iter().position(|&(operation, _)| operation == stage.operation)?;
        let ranks = iteration.alike.values().find(|ranks| ranks.contains(&stage.rank))?;
        let others = ranks.iter().filter(|rank| **rank != stage.rank);
        let mut times: Vec<u64> = others.filter_map(|rank| Some(iteration.of_rank.get(rank)?.get(at)?.1)).collect();
        times.sort_unstable();
        let middle = |at: usize| times.get(at).map(|&ns| ns as f64);
        Some(f64::midpoint(middle(times.len().checked_sub(1)? / 2)?, middle(times.len() / 2)?))
    }
}
