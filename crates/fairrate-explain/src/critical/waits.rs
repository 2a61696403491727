//! The dependencies of a run by what waits.

use fairrate_sim::{Activity, Dependency, FlowId, SimConfig, TaskId};

/// The dependencies of a run by what waits.
pub struct Waits {
    n_flows: usize,
    /// For each flow and then each task, the position of its first dependency in `order`; one more at the end.
    first: Vec<u32>,
    order: Vec<u32>,
}

impl Waits {
    /// Sorts the dependencies of a run.
    pub fn new(config: &SimConfig) -> Self {
        let n_flows = config.flows.len();
        let mut first = vec![0_u32; n_flows + config.tasks.len() + 1];
        let place = |activity: Activity| place(activity, n_flows);
        for dependency in &config.dependencies {
            first[place(dependency.waiter) + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let (mut next, mut order) = (first.clone(), vec![0; config.dependencies.len()]);
        for (at, dependency) in (0..).zip(&config.dependencies) {
            let to = &mut next[place(dependency.waiter)];
            order[*to as usize] = at;
            *to += 1;
        }
        Self { n_flows, first, order }
    }

    /// Returns the dependencies of a flow or task.
    pub fn of<'a>(&self, config: &'a SimConfig, waiter: Activity) -> impl Iterator<Item = &'a Dependency> {
        let at = place(waiter, self.n_flows);
        let range = self.first[at] as usize..self.first[at + 1] as usize;
        self.order[range].iter().map(move |&at| &config.dependencies[at as usize])
    }
}

fn place(activity: Activity, n_flows: usize) -> usize {
    activity.flow().map_or_else(|| n_flows + activity.task().map_or(0, TaskId::index), FlowId::index)
}
