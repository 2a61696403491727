//! The columns `after` and `delay_ns` of flow lists: flows that wait for others of the list.

use std::collections::HashMap;
use std::ops::Range;

use fairrate_units::Time;

use super::Workload;
use super::flow_list::Field;
use crate::config::{Dependency, FlowSpec, Milestone, check_dependencies};
use crate::ids::FlowId;
use crate::input_error::FileError;
use crate::topology::Topology;

/// A flow of a list waits for another one.
struct Wait {
    /// The position of the flow among the rows, and its line.
    row: u32,
    line: usize,
    /// The id of the other flow, with its place in the line.
    before: u32,
    range: Range<usize>,
    on: Milestone,
    delay: Time,
}

/// The waits of all rows that have been read.
#[derive(Default)]
pub(super) struct Waits(Vec<Wait>);

impl Waits {
    /// Reads the field `after` of the row at position `row`, in line `line`; the flow starts `delay` after the last.
    ///
    /// # Errors
    /// If it is no list of ids.
    pub(super) fn read(&mut self, row: usize, line: usize, after: &Field<'_>, delay: Time) -> Result<(), FileError> {
        let text = after.text;
        let words = text.split([';', ' ', '\t']).filter(|word| !word.is_empty());
        let first = self.0.len();
        for word in words {
            // `split` yields subslices, so the distance of the pointers is the offset.
            let from = after.range().start + (word.as_ptr() as usize - text.as_ptr() as usize);
            let range = from..from + word.len();
            let error = |message: String| FileError::new(line, message).at(range.clone());
            let (id, milestone) = word.split_once(':').unwrap_or((word, "arrived"));
            let help =
                "write ids of flows, separated by `;`, as `3;4`, with `:sent` or `:acked` for flows of the same sender";
            let before = id.parse().map_err(|_| error(format!("`{id}` is not an id of a flow")).help(help))?;
            let Some(&(_, on)) = Milestone::NAMES.iter().find(|(name, _)| *name == milestone) else {
                return Err(error(format!("flow {before} would be `{milestone}`")).help(help));
            };
            self.0.push(Wait { row: row as u32, line, before, range, on, delay });
        }
        if self.0.len() == first {
            return Err(after.error(format!("`{text}` names no flow")).help("write ids, or leave the field empty"));
        }
        Ok(())
    }

    /// Returns the workload of the rows of a list, in order of start and id.
    ///
    /// # Errors
    /// Gives line and column of the first wait for a flow that the list lacks or that cannot be waited for.
    pub(super) fn apply(self, rows: Vec<FlowSpec>, topology: &Topology) -> Result<Workload, FileError> {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        let key = |&row: &u32| {
            let flow = &rows[row as usize];
            // Flows without an id are before those with one.
            (flow.start, (flow.id != FlowSpec::NO_ID).then_some(flow.id))
        };
        order.sort_by_key(key);
        if self.0.is_empty() {
            let mut rows: Vec<Option<FlowSpec>> = rows.into_iter().map(Some).collect();
            let flows: Vec<FlowSpec> = order.iter().filter_map(|&row| rows[row as usize].take()).collect();
            return Ok(flows.into());
        }
        let mut places = vec![FlowId(0); rows.len()];
        for (place, &row) in (0..).map(FlowId).zip(&order) {
            places[row as usize] = place;
        }
        let by_id: HashMap<u32, FlowId> = rows.iter().zip(&places).map(|(flow, &place)| (flow.id, place)).collect();
        let flows: Vec<FlowSpec> = order.iter().map(|&row| rows[row as usize].clone()).collect();
        let mut dependencies = Vec::with_capacity(self.0.len());
        for wait in &self.0 {
            let flow = places[wait.row as usize];
            let Some(&before) = by_id.get(&wait.before) else {
                let message = format!(
                    "flow {} waits for flow {}, which the list lacks",
                    flows[flow.index()].name(flow),
                    wait.before
                );
                return Err(FileError::new(wait.line, message).at(wait.range.clone()));
            };
            dependencies.push(Dependency {
                waiter: flow.into(),
                before: before.into(),
                on: wait.on,
                delay: wait.delay,
            });
        }
        match check_dependencies(&flows, &[], &dependencies, topology) {
            Ok(()) => {
                dependencies.sort_unstable();
                dependencies.dedup();
                Ok(Workload { flows, dependencies, ..Workload::default() })
            }
            Err(error) => {
                let is_it =
                    |dependency: &Dependency| (dependency.waiter, dependency.before) == (error.waiter, error.before);
                let wait = dependencies.iter().position(is_it).map(|at| &self.0[at]);
                let (line, range) = wait.map_or((1, 0..0), |wait| (wait.line, wait.range.clone()));
                Err(FileError::new(line, error.message).at(range).help(error.help))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Rate;

    use super::*;
    use crate::config::Trigger;
    use crate::topology::Star;
    use crate::workload::{ListStacks, parse_flow_list};

    fn read(rows: &str) -> Result<Workload, FileError> {
        let star = Star { hosts: 4, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
        parse_flow_list(&format!("id,start_ns,src,dst,bytes,after,delay_ns\n{rows}"), &star, &[], ListStacks::default())
    }

    #[test]
    fn flows_wait_for_others_by_id() {
        let workload = read("7,5,0,1,9,,\n3,0,2,1,9,,\n4,0,1,0,9,7;3,250\n9,0,1,3,9,4:sent 4:acked,\n").unwrap();
        let ids: Vec<u32> = workload.flows.iter().map(|flow| flow.id).collect();
        assert_eq!(ids, [3, 4, 9, 7], "by start, then by id");
        let triggers: Vec<Trigger> = workload.flows.iter().map(|flow| flow.trigger).collect();
        assert_eq!(triggers, [Trigger::Time, Trigger::Dependencies, Trigger::Dependencies, Trigger::Time]);
        let of = |d: &Dependency| (u32::from(d.waiter), u32::from(d.before), d.on, d.delay.as_ps() / 1_000);
        let (arrived, sent, acked) = (Milestone::Arrived, Milestone::Sent, Milestone::Acknowledged);
        let want = [(1, 0, arrived, 250), (1, 3, arrived, 250), (2, 1, sent, 0), (2, 1, acked, 0)];
        assert_eq!(workload.dependencies.iter().map(of).collect::<Vec<_>>(), want);
    }

    #[test]
    fn errors_name_both_flows_and_their_line() {
        let cases = [
            ("1,0,0,1,9,5,\n", "line 2: flow 1 waits for flow 5, which the list lacks"),
            ("1,0,0,1,9,;,\n", "line 2: `;` names no flow"),
            ("1,0,0,1,9,x,\n", "line 2: `x` is not an id of a flow"),
            ("1,0,0,1,9,,\n2,0,1,2,9,1:gone,\n", "line 3: flow 1 would be `gone`"),
            ("1,0,0,1,9,,7\n", "line 2: a delay after no flow"),
            (
                "1,0,0,1,9,,\n2,0,2,3,9,1,\n",
                "line 3: flow 2 starts at `h2` and would wait for flow 1, which arrives at `h1`",
            ),
            ("1,0,0,1,9,2,\n2,0,1,0,9,1,\n", "line 2: flow 1 waits for flow 2, which waits for flow 1: a cycle"),
            ("1,0,0,1,9,1,\n", "line 2: flow 1 waits for itself"),
            ("1,0,0,1,1000000000000,,\n2,0,1,0,9,1,\n", "line 3: flow 2 waits for flow 1, which is endless"),
        ];
        for (rows, message) in cases {
            assert_eq!(read(rows).unwrap_err().to_string(), message);
        }
        let error = read("1,0,0,1,9,,\n2,0,0,3,9,1,\n").unwrap_err();
        assert_eq!(error.to_string(), "line 3: flow 2 starts at `h0` and would wait for flow 1, which arrives at `h1`");
        let help = "a host knows of its own flows if they are sent or acknowledged: `1:sent` or `1:acked`";
        assert_eq!((error.help.as_deref(), error.column), (Some(help), Some((10, 11))));
        let star = Star { hosts: 4, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
        let error = parse_flow_list("start_ns,src,dst,bytes,after\n", &star, &[], ListStacks::default()).unwrap_err();
        assert_eq!(error.to_string(), "line 1: `after` names flows by their ids, and there is no column `id`");
    }
}
