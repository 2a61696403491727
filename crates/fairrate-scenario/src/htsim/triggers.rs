//! Triggers of htsim's connection matrices: which flows wait for which ones.
//!
//! A flow activates triggers as its last byte is acknowledged (`send_done_trigger`) or has arrived
//! (`recv_done_trigger`), and a trigger starts flows anywhere at that moment. With us a host knows of flows that it
//! sends or receives, so a flow waits for the moment that its own host sees.

use std::collections::BTreeMap;

use fairrate_sim::{FileError, Milestone};

use super::matrix::MatrixFlow;
use super::number;

/// The flows that a trigger starts, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All of them, as it is activated, which happens once.
    Oneshot,
    /// The next of them in the order of the file, each time it is activated.
    Multishot,
    /// All of them, once it has been activated as often as this.
    Barrier(usize),
}

/// A line that declares a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trigger {
    /// Line of the file, from 1.
    line: usize,
    kind: Kind,
}

/// The triggers of a matrix, by their numbers.
pub(super) type Triggers = BTreeMap<u32, Trigger>;

/// Reads what follows the word `trigger` on the line `at`, and adds it to `triggers`.
pub(super) fn read<'a>(
    triggers: &mut Triggers,
    at: usize,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(), FileError> {
    let help = "a trigger is `trigger id 1 oneshot`, `multishot` or `barrier count 4`";
    if words.next() != Some("id") {
        return Err(FileError::new(at, "the trigger has no `id`").help(help));
    }
    let id = number(at, "id", words.next())?;
    let kind = match words.next() {
        Some("oneshot") => Kind::Oneshot,
        Some("multishot") => Kind::Multishot,
        Some("barrier") if words.next() == Some("count") => match number(at, "count", words.next())? {
            0 => return Err(FileError::new(at, "a barrier waits for at least one flow")),
            count => Kind::Barrier(count),
        },
        Some("barrier") => return Err(FileError::new(at, "the barrier has no `count`").help(help)),
        _ => return Err(FileError::new(at, format!("trigger {id} is of no known kind")).help(help)),
    };
    match triggers.insert(id, Trigger { line: at, kind }) {
        None => Ok(()),
        Some(earlier) => Err(FileError::new(at, format!("trigger {id} is on line {}, too", earlier.line))),
    }
}

/// A flow, by its position in the matrix, and its moment for which another one waits.
pub(super) type Before = (usize, Milestone);

/// The flows that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Waits {
    /// For each flow, those for which it waits.
    pub(super) before: Vec<Vec<Before>>,
    /// Number of waits for another moment than htsim has: the one that the waiting host sees.
    pub(super) moved: usize,
    /// Number of flows of multishot triggers whose order htsim finds out as it runs.
    pub(super) ordered: usize,
}

/// Returns what flows wait for by `triggers`.
///
/// # Errors
/// If a trigger is not declared, never starts its flows, or starts a flow at a host that knows nothing of what
/// activates it.
pub(super) fn waits(flows: &[MatrixFlow], triggers: &Triggers) -> Result<Waits, FileError> {
    let mut activators: BTreeMap<u32, Vec<Before>> = BTreeMap::new();
    let mut targets: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, flow) in flows.iter().enumerate() {
        let done = [(flow.send_done, Milestone::Acknowledged), (flow.recv_done, Milestone::Arrived)];
        for (id, moment) in done.into_iter().filter_map(|(id, moment)| Some((id?, moment))) {
            declared(triggers, id, flow)?;
            if flow.bytes == 0 {
                let message = format!("the flow has no size, so it never activates trigger {id}");
                return Err(FileError::new(flow.line, message));
            }
            activators.entry(id).or_default().push((at, moment));
        }
        if let Some(id) = flow.trigger {
            declared(triggers, id, flow)?;
            targets.entry(id).or_default().push(at);
        }
    }
    let mut waits = Waits { before: vec![Vec::new(); flows.len()], ..Waits::default() };
    for (&id, targets) in &targets {
        let trigger = triggers[&id];
        let activators = activators.get(&id).map_or(&[][..], Vec::as_slice);
        check(id, trigger, activators.len(), targets.len())?;
        if trigger.kind == Kind::Multishot {
            // Of the flows that activate it, those which start at a time run beside each other.
            let at_once = activators.iter().filter(|&&(at, _)| flows[at].trigger != Some(id)).count();
            waits.ordered += if at_once < 2 { 0 } else { targets.len() };
            for (&target, &activator) in targets.iter().zip(activators) {
                waits.add(flows, target, activator)?;
            }
        } else {
            for &target in targets {
                activators.iter().try_for_each(|&activator| waits.add(flows, target, activator))?;
            }
        }
    }
    Ok(waits)
}

/// Checks that a flow names a trigger that is declared.
fn declared(triggers: &Triggers, id: u32, flow: &MatrixFlow) -> Result<(), FileError> {
    if triggers.contains_key(&id) {
        return Ok(());
    }
    let help = format!("declare it, as `trigger id {id} oneshot`");
    Err(FileError::new(flow.line, format!("no line declares trigger {id}")).help(help))
}

/// Checks that a trigger that `n` flows activate starts all of its `n_targets` flows.
fn check(id: u32, trigger: Trigger, n: usize, n_targets: usize) -> Result<(), FileError> {
    let (never, error) = ("never starts", |message| Err(FileError::new(trigger.line, message)));
    match trigger.kind {
        _ if n == 0 => error(format!("no flow activates trigger {id}, so it {never} its {n_targets} flows")),
        Kind::Oneshot if 1 < n => error(format!("{n} flows activate trigger {id}, which is for one")),
        Kind::Multishot if n < n_targets => {
            error(format!("{n} flows activate trigger {id}, so it {never} the last of its {n_targets} flows"))
        }
        Kind::Barrier(count) if n < count => {
            error(format!("{n} flows activate trigger {id}, which waits for {count}: it {never} its {n_targets} flows"))
        }
        Kind::Barrier(count) if count < n => {
            let message = format!("trigger {id} waits for any {count} of {n} flows");
            Err(FileError::new(trigger.line, message).help("barriers that wait for all of their flows can be imported"))
        }
        _ => Ok(()),
    }
}

impl Waits {
    /// Lets the flow `target` wait for `before`, at a moment that its sender sees.
    fn add(&mut self, flows: &[MatrixFlow], target: usize, (before, moment): Before) -> Result<(), FileError> {
        let (waiter, earlier) = (&flows[target], &flows[before]);
        let seen = match waiter.src {
            host if host == earlier.src => Milestone::Acknowledged,
            host if host == earlier.dst => Milestone::Arrived,
            host => {
                let message = format!(
                    "host {host} would wait for the flow of line {} from {} to {}, of which it knows nothing",
                    earlier.line, earlier.src, earlier.dst
                );
                let help =
                    "triggers can be imported that start flows of the sender or of the receiver of what activates them";
                return Err(FileError::new(waiter.line, message).help(help));
            }
        };
        self.moved += usize::from(seen != moment);
        self.before[target].push((before, seen));
        Ok(())
    }

    /// Returns sentences about what htsim does in another way.
    pub(super) fn differences(&self) -> Vec<String> {
        let mut all = Vec::new();
        if 0 < self.moved {
            all.push(format!(
                "The moment of {} starts: htsim's triggers act at once at any host, and here a receiver starts its next flow as data \
                 arrives, and a sender as its data is acknowledged.",
                self.moved
            ));
        }
        if 0 < self.ordered {
            all.push(format!(
                "The order of {} flows of multishot triggers: htsim starts the next one as any flow ends, and here each waits for one of \
                 them, in the order of the file.",
                self.ordered
            ));
        }
        all
    }
}
