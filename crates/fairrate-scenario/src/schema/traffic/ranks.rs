//! The ranks of a job: their hosts, their order, how long they compute, and how long they take to begin to send.

use fairrate_sim::topology::Topology;
use fairrate_sim::workload::{Pace, Placement, StepLatency};
use fairrate_sim::{FieldError, NodeId};
use fairrate_units::Time;

use super::super::files::Files;
use super::super::names::NodeName;
use super::hosts::{host_names, read_hosts};
use crate::error::Site;
use crate::reader::Section;
use crate::tree::Value;

/// The ranks of a job by name.
pub(in crate::schema) struct Ranks {
    /// Their hosts; `None`: all.
    pub(super) hosts: Option<Vec<NodeName>>,
    placement: Placement,
    stragglers: Vec<NodeName>,
    factor: f64,
    jitter: f64,
    alpha: StepLatency,
}

impl Ranks {
    /// Returns the host of each rank, and the times that ranks take besides messages. `of` gives the hosts of names.
    ///
    /// # Errors
    /// Names the key that cannot be used on this topology.
    pub(super) fn on(
        &self,
        topology: &Topology,
        of: impl Fn(&[NodeName]) -> Vec<NodeId>,
        seed: u64,
        group: u32,
    ) -> Result<(Vec<NodeId>, Pace), FieldError> {
        let hosts = self.hosts.as_deref().map_or_else(|| topology.hosts().collect(), &of);
        let mut stragglers = of(&self.stragglers);
        stragglers.sort_unstable();
        let pace = Pace { stragglers, factor: self.factor, jitter: self.jitter, seed, group, alpha: self.alpha };
        pace.check(topology, &hosts)?;
        Ok((self.placement.order(topology, hosts, seed, group)?, pace))
    }

    /// Reports keys about computations of a job that has none.
    pub(super) fn check_compute(&self, s: &mut Section<'_>, why: &str, help: &str) {
        for (key, given) in [("stragglers", !self.stragglers.is_empty()), ("compute_jitter", 0.0 < self.jitter)] {
            if given {
                s.problem_at("scenario::conflict", key, why, format!("{help}, or remove `{key}`"));
            }
        }
    }
}

/// The placement that is in a file.
const FILE: &str = "file";

/// Reads all keys of ranks.
pub(super) fn read_ranks(s: &mut Section<'_>, files: &Files<'_>) -> Ranks {
    let all: Vec<(&str, Option<Placement>)> =
        Placement::NAMES.iter().map(|&(name, placement)| (name, Some(placement))).chain([(FILE, None)]).collect();
    let placement = s.choice("placement", &all, Some(Placement::Contiguous)).value;
    let hosts = if placement.is_none() { read_file(s, files) } else { read_hosts(s, "hosts") };
    if placement.is_some() && s.has("placement_path") {
        let help = "write `placement = \"file\"`, or remove `placement_path`";
        s.problem_at("scenario::conflict", "placement_path", "the placement is in no file", help);
        s.node("placement_path");
    }
    let (stragglers, factor) = read_stragglers(s);
    let jitter = s.get("compute_jitter", 0.0).value;
    if !(0.0..=100.0).contains(&jitter) {
        let help = "write by what share a computation may take longer, as `compute_jitter = 0.05`";
        let message = format!("`compute_jitter = {jitter}` is out of range");
        s.problem_at("scenario::out_of_range", "compute_jitter", message, help);
    }
    let placement = placement.unwrap_or(Placement::Contiguous);
    let outside = s.get("alpha", Time::ZERO).value;
    let inside = s.optional("alpha_inside").map(|field| field.value);
    Ranks { hosts, placement, stragglers, factor, jitter, alpha: StepLatency { outside, inside } }
}

/// Reads a file with the name of a host, or several that follow each other, in each line: the ranks in their order.
fn read_file(s: &mut Section<'_>, files: &Files<'_>) -> Option<Vec<NodeName>> {
    if s.has("hosts") {
        let help = "remove `hosts`, or choose another `placement`";
        s.problem_at("scenario::conflict", "hosts", "the hosts are in the file already", help);
    }
    s.node("hosts");
    let file = files.read_from(s, "placement_path", "placement", "txt")?;
    let (mut names, mut at) = (Vec::new(), 0);
    for line in file.text.split_inclusive('\n') {
        let (from, name) = (at + line.len() - line.trim_start().len(), line.trim());
        at += line.len();
        if !name.is_empty() && !name.starts_with('#') {
            let site = Site::new(file.source, from..from + name.len());
            names.push(NodeName { name: name.to_owned(), site });
        }
    }
    if names.is_empty() {
        let help = "write the name of a host into each line, as `h0`";
        s.problem_at("scenario::out_of_range", "placement_path", "the file names no hosts", help);
    }
    Some(names)
}

/// Reads `stragglers = "h3"` with `straggler_factor = 1.1`, or `stragglers = "none"`.
fn read_stragglers(s: &mut Section<'_>) -> (Vec<NodeName>, f64) {
    let is_none = match s.node("stragglers").map(|node| &node.value) {
        None => true,
        Some(Value::Text(text)) => text == "none",
        Some(_) => false,
    };
    if is_none {
        s.choice("stragglers", &[("none", ())], ());
        if s.has("straggler_factor") {
            let help = "name them, as `stragglers = \"h3\"`, or remove `straggler_factor`";
            s.problem_at("scenario::conflict", "straggler_factor", "there are no stragglers", help);
        }
        s.node("straggler_factor");
        return (Vec::new(), 1.0);
    }
    let hosts = host_names(s, "stragglers");
    let factor = s.require::<f64>("straggler_factor", "1.1").value;
    if !(1e-3..=1e3).contains(&factor) && s.has("straggler_factor") {
        let help = "write how many times the usual time they take, as `straggler_factor = 1.1`";
        let message = format!("`straggler_factor = {factor}` is out of range");
        s.problem_at("scenario::out_of_range", "straggler_factor", message, help);
    }
    (hosts, factor)
}
