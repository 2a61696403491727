//! Critical paths of iterations: the computations and messages that waited for each other and ended last, and what held
//! each.
//!
//! They are computed from `flows.parquet` and `operations.parquet`, whose times are rounded to nanoseconds, and from
//! the dependencies of the scenario. So the stages are those of `fairrate explain --iteration`, and each of their ends
//! is exact to a nanosecond. The parts of a stage are not an account of causes, for which the scenario has to run
//! again: the time of a message is divided into that of the message alone on an idle network and the rest, and the time
//! of a computation into the median of the same one at other ranks and the rest.

mod computations;
mod held;
mod read;

use crate::collectives::rows_of;
use crate::format;
use crate::table::{Row, Section, Table};

pub(crate) use self::read::critical_paths;

/// Largest number of stages that the table of an iteration names.
const MOST_STAGES: usize = 16;
/// Share of a stage from which the time that it took longer needs a reason.
const NOTED: f64 = 0.05;

/// The critical paths of a training job or a collective operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CriticalPath {
    /// Number of its traffic block.
    pub block: u32,
    /// The name of the block, or its number.
    pub name: String,
    /// Set if the run has other jobs or collective operations, so that commands have to name this one.
    pub is_named: bool,
    /// Number of iterations that were to come.
    pub planned: u64,
    /// The complete iterations, in order.
    pub iterations: Vec<PathOfIteration>,
}

/// The critical path of an iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathOfIteration {
    /// Number of the iteration, from 0.
    pub number: u32,
    /// The stages, the first one first. They have no gaps.
    pub stages: Vec<PathStage>,
}

/// A stage of a critical path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathStage {
    /// The kind of its event.
    pub event: Event,
    /// The rank; of a message, that of the sender.
    pub rank: u32,
    /// Its name, as `backward at 3 (h3)` or `h3->h5: gradients reduce-scatter, 6.29 MB`.
    pub name: String,
    /// Start, in ns.
    pub start_ns: f64,
    /// Time, in ns.
    pub time_ns: f64,
    /// The part of it that was to be expected: of a computation the median of the same one at the other ranks that
    /// compute the same in this iteration, of a message its time alone on an idle network.
    pub expected_ns: f64,
    /// The part of the rest for which a port of the message's path was paused.
    pub paused_ns: f64,
    /// The reason for the rest, in words; empty if there is not much of it.
    pub reason: String,
    /// The command that accounts for the stage; empty if there is none.
    pub command: String,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Event {
    /// A rank computes.
    #[default]
    Computes,
    /// A message is under way.
    Message,
    /// A rank adds up what it has received or begins to send, or nothing of the block happens.
    Other,
}

impl PathStage {
    /// Returns the time beyond what was to be expected, in ns.
    fn rest_ns(&self) -> f64 {
        self.time_ns - self.expected_ns
    }
}

impl PathOfIteration {
    /// Returns the time of the iteration, in ns.
    pub fn time_ns(&self) -> f64 {
        self.sum(None, |stage| stage.time_ns)
    }

    /// Returns the sum over the stages with this event, or over all.
    fn sum(&self, event: Option<Event>, of: fn(&PathStage) -> f64) -> f64 {
        self.stages.iter().filter(|stage| event.is_none_or(|event| stage.event == event)).map(of).sum()
    }

    /// Returns the stages to show, in order: the longest ones, and in between the number and time of the others.
    fn shown(&self) -> Vec<Shown<'_>> {
        let mut by_time: Vec<usize> = (0..self.stages.len()).collect();
        by_time.sort_by(|&a, &b| self.stages[b].time_ns.total_cmp(&self.stages[a].time_ns).then(a.cmp(&b)));
        by_time.truncate(MOST_STAGES);
        let mut shown: Vec<Shown<'_>> = Vec::new();
        for (at, stage) in self.stages.iter().enumerate() {
            match shown.last_mut() {
                _ if by_time.contains(&at) => shown.push(Shown::Stage(stage)),
                Some(Shown::Shorter { n, time_ns }) => (*n, *time_ns) = (*n + 1, *time_ns + stage.time_ns),
                _ => shown.push(Shown::Shorter { n: 1, time_ns: stage.time_ns }),
            }
        }
        shown
    }
}

/// A row of the stages of an iteration.
enum Shown<'a> {
    /// A stage.
    Stage(&'a PathStage),
    /// Shorter stages, one after the other.
    Shorter { n: usize, time_ns: f64 },
}

impl CriticalPath {
    /// Returns the longest iteration, the first of equal ones.
    fn longest(&self) -> Option<&PathOfIteration> {
        self.iterations.iter().rev().max_by(|a, b| a.time_ns().total_cmp(&b.time_ns()))
    }

    /// Returns the command that accounts for an iteration, for the directory of the page.
    fn command(&self) -> String {
        let block = if self.is_named { format!(" --block {}", self.block) } else { String::new() };
        format!("fairrate explain . --iteration N{block}")
    }

    /// Returns the table with a row for each iteration; the first ones, and the last.
    fn iterations_table(&self) -> Table {
        let columns =
            ["time", "computation", "stragglers", "messages alone", "held in the network", "paused", "longest message"];
        let row = |iteration: &PathOfIteration| {
            let sum = |event, of| format::time_ns(iteration.sum(event, of));
            let messages = iteration.stages.iter().filter(|stage| stage.event == Event::Message);
            let longest = messages.rev().max_by(|a, b| a.time_ns.total_cmp(&b.time_ns));
            let longest = longest.map_or("-".to_owned(), |stage| {
                let ends = stage.name.split(": ").next().unwrap_or_default();
                format!("{ends}, {}", format::time_ns(stage.time_ns))
            });
            let cells = vec![
                format::time_ns(iteration.time_ns()),
                sum(Some(Event::Computes), |stage| stage.expected_ns),
                sum(Some(Event::Computes), PathStage::rest_ns),
                sum(Some(Event::Message), |stage| stage.expected_ns),
                sum(Some(Event::Message), PathStage::rest_ns),
                sum(None, |stage| stage.paused_ns),
                longest,
            ];
            Row { name: format!("iteration {}", iteration.number), cells, ..Row::default() }
        };
        Table {
            caption: format!(
                "Critical paths of {}: the computations and messages that waited for each other and ended last. Stragglers: time of \
                 computations beyond the median of the same one at the other ranks that compute the same. Messages alone: their time on an idle network; held: the \
                 rest of it, and of that the time for which a port of their path was paused. Run {} in the directory of this page for an \
                 account of its causes.",
                self.name,
                self.command()
            ),
            columns: columns.map(str::to_owned).to_vec(),
            sections: vec![Section {
                title: String::new(),
                rows: rows_of(&self.iterations, self.planned, columns.len(), row),
            }],
        }
    }

    /// Returns the table with the stages of the longest iteration; `None` if no iteration is complete.
    fn stages_table(&self) -> Option<Table> {
        let iteration = self.longest()?;
        let share = |ns: f64| format::percent(ns / iteration.time_ns().max(1.0));
        let row = |shown: Shown<'_>| match shown {
            Shown::Shorter { n, time_ns } => Row {
                name: if n == 1 { "a shorter one".to_owned() } else { format!("{n} shorter ones") },
                cells: ["", &format::time_ns(time_ns), &share(time_ns), "", "", ""].map(str::to_owned).to_vec(),
                ..Row::default()
            },
            Shown::Stage(stage) => Row {
                name: stage.name.clone(),
                cells: vec![
                    format::time_ns(stage.start_ns),
                    format::time_ns(stage.time_ns),
                    share(stage.time_ns),
                    format::time_ns(stage.expected_ns),
                    stage.reason.clone(),
                    stage.command.clone(),
                ],
                ..Row::default()
            },
        };
        let columns = ["start", "time", "share", "to be expected", "the rest", "why so slow?"];
        Some(Table {
            caption: format!(
                "Critical path of iteration {} of {}, the longest one: {} in {} stages, each of which waited for the one above it.",
                iteration.number,
                self.name,
                format::time_ns(iteration.time_ns()),
                iteration.stages.len()
            ),
            columns: columns.map(str::to_owned).to_vec(),
            sections: vec![Section {
                title: "stage".to_owned(),
                rows: iteration.shown().into_iter().map(row).collect(),
            }],
        })
    }
}

/// Returns the tables of critical paths.
pub(crate) fn tables(paths: &[CriticalPath]) -> Vec<Table> {
    paths.iter().flat_map(|path| std::iter::once(path.iterations_table()).chain(path.stages_table())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(event: Event, name: &str, start_ns: f64, time_ns: f64, expected_ns: f64) -> PathStage {
        PathStage { event, name: name.to_owned(), start_ns, time_ns, expected_ns, ..PathStage::default() }
    }

    /// A straggler computes for 40 us where others take 20; its message takes 90 us in place of 80, with 4 us of
    /// pauses.
    #[test]
    fn an_iteration_is_the_sum_of_what_held_it() {
        let mut message = stage(Event::Message, "h1->h0: result, 1.00 MB", 40e3, 90e3, 80e3);
        (message.paused_ns, message.command) = (4e3, "fairrate explain . --flow 7".to_owned());
        let iteration = PathOfIteration {
            number: 0,
            stages: vec![stage(Event::Computes, "forward at 1 (h1)", 0.0, 40e3, 20e3), message],
        };
        let path =
            CriticalPath { block: 2, name: "job".to_owned(), is_named: true, planned: 2, iterations: vec![iteration] };
        let tables = tables(&[path]);
        let cells: Vec<String> = tables[0].sections[0].rows.iter().map(|row| row.cells.join(" | ")).collect();
        assert_eq!(
            cells,
            ["130 µs | 20.0 µs | 20.0 µs | 80.0 µs | 10.0 µs | 4.00 µs | h1->h0, 90.0 µs", "- | - | - | - | - | - | -"]
        );
        assert!(tables[0].caption.contains("Run fairrate explain . --iteration N --block 2 in"));
        let rows = &tables[1].sections[0].rows;
        assert_eq!(rows[0].cells, ["0 ns", "40.0 µs", "30.8 %", "20.0 µs", "", ""]);
        assert_eq!(rows[1].cells[5], "fairrate explain . --flow 7");
    }

    #[test]
    fn short_stages_are_one_row_between_long_ones() {
        let of = |at: usize| {
            stage(Event::Message, &at.to_string(), at as f64, if at.is_multiple_of(4) { 100.0 } else { 1.0 }, 1.0)
        };
        let iteration = PathOfIteration { number: 0, stages: (0..4 * MOST_STAGES).map(of).collect() };
        let shown = iteration.shown();
        assert_eq!(shown.len(), 2 * MOST_STAGES);
        let shorter: Vec<_> = shown
            .iter()
            .filter_map(|shown| if let Shown::Shorter { n, time_ns } = shown { Some((*n, *time_ns)) } else { None })
            .collect();
        assert_eq!(shorter, vec![(3, 3.0); MOST_STAGES]);
    }
}
