//! The scenario schema: every section, its keys, and every default with its source.
//!
//! Reading has two stages. First all sections are read into plain values, so that one report names every key
//! that is wrong. If there is none, the network and the flows are made and what depends on them is checked.

mod files;
mod probe;
mod switch;
mod topology;
mod traffic;
mod transport;

use fairrate_control::{AlgorithmConfig, Profile};
use fairrate_sim::{ClockRule, SimConfig, StopRule};
use fairrate_units::{Bytes, Time};

use crate::error::{Report, ScenarioError, Site};
use crate::reader::{Field, OrWord, Output, Section};
use crate::tree::Table;

pub(crate) use files::{Attachment, Files};

/// Flows beyond this many are a slip, not a workload: they would not fit into memory.
const MAX_FLOWS: u64 = 50_000_000;

/// What a document means.
pub(crate) struct Resolved {
    pub name: String,
    pub description: String,
    pub profile: Profile,
    pub config: SimConfig,
    pub output: Output,
}

/// What a run is called and when it ends.
struct Run {
    name: String,
    description: String,
    profile: Profile,
    seed: u64,
    stop: StopRule,
    stop_site: Site,
}

/// Reads a whole document.
pub(crate) fn read(
    table: &Table, site: Site, default_name: &str, files: &Files<'_>, report: &Report,
) -> Result<Resolved, ScenarioError> {
    let mut root = Section::new(report, site, "the scenario", Some(table));
    let run = read_run(&mut root, default_name);
    let topology = topology::read(&mut root, files);
    let clock = read_links(&mut root, run.profile);
    let transport = transport::read(&mut root, run.profile);
    let fabric = switch::read(&mut root, run.profile, &transport.cc, clock);
    let blocks = traffic::read(&mut root, files, run.stop.at);
    let probes = probe::read(&mut root);
    let output = root.finish();
    check_recovery(report, &transport, fabric.pfc, site);
    report.check()?;

    let topology = topology::build(report, &topology)?;
    let names = topology::Names::new(&topology);
    let flows = traffic::build(report, &blocks, &topology, &names, run.seed)?;
    let transport_config = transport.config(report, &topology, &names);
    let mut stop = run.stop;
    check_end(report, &mut stop, run.stop_site, &flows);
    let probes = probe::build(report, &probes, &topology, &names, flows.len(), stop.at);
    report.check()?;
    let Run { name, description, profile, seed, .. } = run;
    let cc: AlgorithmConfig = transport.cc;
    let config = SimConfig { topology, fabric, transport: transport_config, cc, flows, probes, stop, seed };
    Ok(Resolved { name, description, profile, config, output })
}

fn read_run(root: &mut Section<'_>, default_name: &str) -> Run {
    let name = root.get("name", default_name.to_owned()).value;
    let description = root.get("description", String::new()).value;
    let profile = root.choice("profile", &[("paper", Profile::Paper), ("ns3", Profile::Ns3)], Profile::Paper).value;
    let seed = root.get("seed", 1u64).value;
    // A run without an end of its own lasts until its flows are done.
    let default_end = if root.has("stop") { OrWord::Word(0) } else { OrWord::Word(1) };
    let duration = root.value_or::<Time>("duration", &["unlimited", "until-flows-done"], default_end);
    let _ = &duration;
    let stop = read_stop(root, &duration);
    Run { name, description, profile, seed, stop, stop_site: root.site_of("duration") }
}

fn read_stop(root: &mut Section<'_>, duration: &Field<OrWord<Time>>) -> StopRule {
    let at = match duration.value {
        OrWord::Value(at) => Some(at),
        OrWord::Word(_) => None,
    };
    let choices = [("all-flows-done", true), ("duration", false)];
    let when_flows_done = root.choice("stop", &choices, at.is_none()).value;
    StopRule { at, when_flows_done }
}

/// Serialisation in exact picoseconds; the ns-3 artifact cuts it to whole nanoseconds (reference, "Packet sizes").
fn read_links(root: &mut Section<'_>, profile: Profile) -> ClockRule {
    let mut links = root.child("links", "`[links]`");
    let default = match profile {
        Profile::Paper => ClockRule::Picoseconds,
        Profile::Ns3 => ClockRule::WholeNanoseconds,
    };
    let choices = [("picoseconds", ClockRule::Picoseconds), ("whole-nanoseconds", ClockRule::WholeNanoseconds)];
    let clock = links.choice("clock", &choices, default).value;
    root.out.tables.push(("links".into(), links.finish()));
    clock
}

fn check_recovery(_: &Report, _: &transport::Transport, _: bool, _: Site) {}

fn check_end(_: &Report, _: &mut StopRule, _: Site, _: &[fairrate_sim::FlowSpec]) {
    let _ = Bytes::MAX;
}
