//! The scenario schema: every section, its keys, and every default with its source.
//!
//! Reading has two stages. First all sections are read into plain values, so that one report names every wrong key. If
//! there is none, the network and the flows are created, and the values that depend on them are checked.

mod admission;
mod algorithm;
mod allocator;
mod circuits;
mod class;
mod ecn;
mod fault;
mod files;
mod host;
mod measure;
mod names;
mod probe;
mod queue;
mod recovery;
mod routing;
mod stacks;
mod switch;
mod tcp;
mod topology;
mod traffic;
mod transport;
mod warnings;

use std::collections::BTreeSet;

use fairrate_control::{ALGORITHMS, AlgorithmConfig, Needs, Profile};
use fairrate_sim::topology::Topology;
use fairrate_sim::workload::Workload;
use fairrate_sim::{
    ClockRule, FabricConfig, FlowSpec, NodeId, ProbeSpec, SimConfig, Stack, StopRule, TieRule, TransportConfig,
    message_groups,
};
use fairrate_units::{Bytes, Rate, Time};

use crate::error::{Report, ScenarioError, Site};
use crate::json_schema::ROOT;
use crate::memory::{available_memory, shown_bytes};
use crate::reader::{Field, OrWord, Output, Section};
use crate::tree::Table;

pub(crate) use algorithm::Algorithms;
pub use measure::Window;

pub(crate) use files::{Attachment, Files, Place, read_text};

/// The result of reading a document.
pub(crate) struct Resolved {
    pub name: String,
    pub description: String,
    /// Names of the traffic blocks; empty for those without one.
    pub blocks: Vec<String>,
    pub config: SimConfig,
    pub window: Window,
    pub warnings: Vec<String>,
    pub output: Output,
}

/// Largest number of characters of a name.
const LONGEST_NAME: usize = 100;

/// Name, seed and end of a run.
struct Run {
    name: String,
    description: String,
    profile: Profile,
    seed: u64,
    end: StopRule,
    end_site: Site,
}

/// All sections of a document, as they were read.
struct Sections<'a> {
    run: Run,
    network: topology::Network,
    stacks: stacks::Stacks,
    fabric: FabricConfig,
    blocks: Vec<traffic::Block<'a>>,
    allocator: Option<allocator::Allocator>,
    measure: measure::Measure,
    faults: Vec<fault::Fault>,
    hosts: Vec<host::Host>,
    probes: Vec<probe::Probe>,
    sites: Sites,
    output: Output,
}

/// The places of the document, and of its sections for the network and the switches.
#[derive(Clone, Copy)]
struct Sites {
    document: Site,
    network: Site,
    switch: Site,
}

/// The part of a document that becomes a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// All but the flows, and the probes, which may name them.
    WithoutFlows,
}

/// Reads a document to the given `extent`.
pub(crate) fn read(
    table: &Table,
    site: Site,
    default_name: &str,
    files: &Files<'_>,
    algorithms: &Algorithms,
    extent: Extent,
    report: &Report,
) -> Result<Resolved, ScenarioError> {
    let root = Section::new(report, site, ROOT, Some(table));
    let sections = read_sections(root, default_name, files, algorithms);
    report.check()?;
    build(report, sections, extent)
}

/// Reads all sections of the document `root`, and checks the keys that depend on others.
fn read_sections<'a>(
    mut root: Section<'a>,
    default_name: &str,
    files: &Files<'_>,
    algorithms: &Algorithms,
) -> Sections<'a> {
    let run = read_run(&mut root, default_name);
    let network = topology::read(&mut root, files);
    let timing = read_links(&mut root, run.profile);
    let stacks = stacks::read(&mut root, run.profile, files, algorithms);
    let fabric = switch::read(&mut root, run.profile, &stacks, &timing, &network.shape);
    check_stacks(&root, &stacks, &fabric, &timing, &network);
    let blocks = traffic::read(&mut root, files, run.end.at, network.shape.kind(), &stacks);
    let Stack { transport, cc } = stacks.first();
    let allocator = allocator::read(&mut root, transport, cc, blocks.len());
    let measure = measure::read(&mut root, blocks.iter().any(traffic::Block::has_arrivals));
    let faults = fault::read(&mut root, stacks.weakest_transport());
    let hosts = host::read(&mut root, &fabric.pfc);
    topology::host_queues::check_network(root.report, &network, fabric.balance, &hosts);
    let probes = probe::read(&mut root);
    check_blocks(root.report, &blocks, &stacks, &probes);
    let (document, switch) = (root.anchor.site, root.site_of("switch"));
    let sites = Sites { document, network: root.site_of("topology"), switch };
    let output = root.finish();
    Sections { run, network, stacks, fabric, blocks, allocator, measure, faults, hosts, probes, sites, output }
}

/// Checks the network and its switches against every transport and algorithm.
fn check_stacks(
    root: &Section<'_>,
    stacks: &stacks::Stacks,
    fabric: &FabricConfig,
    timing: &Timing,
    network: &topology::Network,
) {
    for (at, Stack { transport, cc }) in stacks.all.iter().enumerate() {
        check_frames(root.report, timing, cc);
        let classes = stacks.classes_of(at);
        admission::check(root, fabric, transport, cc, &classes);
        transport::check_entropy(root, transport, cc, fabric.balance);
        circuits::check(root, &network.shape, transport, cc, fabric);
        topology::host_queues::check(root.report, network, transport);
        switch::check_recovery(root, fabric, transport, &classes);
    }
}

/// Checks the keys of traffic blocks that depend on the algorithms and on the probes.
fn check_blocks(report: &Report, blocks: &[traffic::Block<'_>], stacks: &stacks::Stacks, probes: &[probe::Probe]) {
    traffic::check_churn(report, blocks, probes);
    traffic::check_bursts(report, blocks, stacks, probes);
    traffic::check_merged_rings(report, blocks, stacks);
    traffic::check_subflows(report, blocks, stacks);
    traffic::check_connections(report, blocks, stacks);
}

/// Builds the configuration of a run from its `sections`, and checks the values that depend on network and flows.
fn build(report: &Report, sections: Sections<'_>, extent: Extent) -> Result<Resolved, ScenarioError> {
    let Sections { run, network, stacks, fabric, blocks, allocator, measure, faults, hosts, probes, sites, output } =
        sections;
    let has_flows = extent == Extent::Whole;
    let mut topology = topology::build(report, network, sites.document)?;
    let names = names::Names::new(&topology);
    let workload = || traffic::build(report, &blocks, &topology, &names, run.seed, &stacks);
    let Workload { flows, changes, tasks, dependencies, collectives, jobs } =
        if has_flows { workload()? } else { Workload::default() };
    if has_flows && changes.is_empty() {
        check_start(report, &run, &flows);
        check_end(report, &run, &flows);
    }
    if allocator.is_some() {
        check_one_network(report, &topology, sites.network)?;
    }
    // The workload is generated before the allocator's hosts are attached; faults and probes may name them.
    let allocator = allocator::attach(allocator, &mut topology, report);
    let names = names::Names::new(&topology);
    let mut faults = fault::build(report, faults, &names);
    faults.extend(fault::of_topology(report, sites.document, &topology, stacks.weakest_transport()));
    let all_hosts: Vec<NodeId> = topology.hosts().collect();
    let host_configs = host::build(report, &hosts, &names, &all_hosts);
    let probes = if has_flows { probe::build(report, &probes, &names, &flows) } else { Vec::new() };
    check_samples(report, &run, &probes);
    let Stack { transport, cc } = stacks.first().clone();
    let mut window = measure::build(report, &measure, &run, &flows, &message_groups(&collectives, &jobs));
    window.failure = recovery::windows(&topology, &faults, transport.mtu, window.from, &run.end);
    let Run { name, description, profile, seed, end: stop, .. } = run;
    let config = SimConfig {
        topology,
        fabric,
        transport,
        cc,
        beside: stacks.all[1..].to_vec(),
        flows: flows.into(),
        changes,
        tasks,
        dependencies: dependencies.into(),
        collectives,
        jobs,
        faults,
        hosts: host_configs,
        allocator,
        probes,
        snapshots: snapshots(&window),
        stop,
        seed,
    };
    check_config(report, &config, &hosts, sites);
    report.check()?;
    let warnings = warnings::warnings(&config, profile);
    let blocks = blocks.into_iter().map(|block| block.name).collect();
    Ok(Resolved { name, description, blocks, config, window, warnings, output })
}

/// Checks that there is one network, which a central allocator needs.
fn check_one_network(report: &Report, topology: &Topology, site: Site) -> Result<(), ScenarioError> {
    if !topology.has_several_ends() {
        return Ok(());
    }
    let (message, help) = if topology.second_ports.are_none() {
        let message = "a central allocator has one network, and servers have scale-up networks of their own";
        (message, "write `scale_up = false` in `[topology]`, or choose another `cc`")
    } else {
        ("a central allocator has one network, and first and second ports have two", "choose another `cc`")
    };
    report.problem("scenario::conflict", site, message, "in here", help);
    report.check()
}

/// Returns the times at which a run counts for the edges of `window` and those of its failures, in order.
fn snapshots(window: &Window) -> Vec<Time> {
    let edges = window.failure.iter().flat_map(fairrate_sim::FailureWindows::edges);
    let times: BTreeSet<Time> = std::iter::once(window.from).chain(window.until).chain(edges).collect();
    times.into_iter().collect()
}

/// Checks the values of a configuration that depend on several sections.
fn check_config(report: &Report, config: &SimConfig, hosts: &[host::Host], sites: Sites) {
    host::check(report, hosts, config);
    check_times(report, config, sites.network);
    routing::check_conga(report, config, sites.network);
    ecn::check(report, config, sites.switch);
    switch::check_buffers(report, config, sites.switch);
}

/// Returns the line rates of all hosts; `None` if the document has no network that can be built. Its problems are
/// reported by what reads the whole document.
pub(crate) fn host_rates(table: &Table, site: Site, place: Place<'_>, report: &Report) -> Option<Vec<Rate>> {
    let files = &Files::new(place);
    let build = || {
        let mut root = Section::new(report, site, ROOT, Some(table));
        let network = topology::read(&mut root, files);
        topology::build(report, network, site).ok()
    };
    let topology = report.quietly(build)??;
    Some(topology.host_links().map(|(_, link)| link.rate).collect())
}

fn read_run(root: &mut Section<'_>, default_name: &str) -> Run {
    let name = read_name(root, default_name);
    let description = root.get("description", String::new()).value;
    let profile = root.choice("profile", &PROFILES, Profile::Paper).value;
    let seed = root.get("seed", 1u64).value;
    let duration = root.value_or::<Time>("duration", &["none"], OrWord::Word(0));
    let at = match duration.value {
        OrWord::Value(at) => Some(at),
        OrWord::Word(_) => None,
    };
    if at == Some(Time::ZERO) {
        root.problem_at(
            "scenario::out_of_range",
            "duration",
            "a run of no time",
            "write for instance `duration = \"5ms\"`",
        );
    }
    let ends = [("duration", false), ("all-flows-done", true)];
    let when_flows_done = root.choice("stop", &ends, at.is_none()).value;
    if at.is_none() && !when_flows_done {
        root.missing("duration", "\"5ms\"");
    }
    let end_site =
        ["stop", "duration"].into_iter().find(|key| root.has(key)).map_or(root.anchor.site, |key| root.site_of(key));
    Run { name, description, profile, seed, end: StopRule { at, when_flows_done }, end_site }
}

/// Reads the name, which is printed and is part of the names of directories.
fn read_name(root: &mut Section<'_>, default: &str) -> String {
    let default: String = default.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
    let name = root.get("name", default).value;
    if name.chars().any(char::is_control) {
        let help = "a name is one line of text without control characters";
        root.problem_at("scenario::bad_name", "name", "the name has a control character", help);
    }
    if root.has("name") && name.trim().is_empty() {
        let help = "directories of results begin with it: write one, or leave `name` out for that of the file";
        root.problem_at("scenario::bad_name", "name", "the name is empty", help);
    }
    if LONGEST_NAME < name.chars().count() {
        let message = format!("the name has {} characters", name.chars().count());
        let help = format!("take at most {LONGEST_NAME}; `description` may be longer");
        root.problem_at("scenario::bad_name", "name", &message, &help);
    }
    name
}

/// Returns the names of the built-in algorithms whose needs satisfy `have`.
fn algorithms_that(have: impl Fn(&Needs) -> bool) -> Vec<&'static str> {
    let all = ALGORITHMS.iter().filter_map(|info| AlgorithmConfig::by_name(info.name, Profile::Paper));
    all.filter(|cc| have(&cc.needs())).map(|cc| cc.info().name).collect()
}

/// The timing rules that links and switches share.
struct Timing {
    clock: ClockRule,
    ties: TieRule,
    /// Bytes that every frame takes on a link besides its own.
    frame_overhead: Field<Bytes>,
}

/// Largest overhead of a frame.
const MOST_OVERHEAD: Bytes = Bytes::new(1_024);

/// The profiles of a scenario.
const PROFILES: [(&str, Profile); 3] =
    [("paper", Profile::Paper), ("ns3", Profile::Ns3), ("rocc-omnet", Profile::RoccOmnet)];

/// Reads `[links]`. By default serialisation times are exact and ties are resolved by entity; the ns-3 artifact cuts
/// times to whole nanoseconds and resolves ties by insertion.
fn read_links(root: &mut Section<'_>, profile: Profile) -> Timing {
    let mut links = root.child("links", "`[links]`");
    let (clock, ties) = match profile {
        Profile::Paper | Profile::RoccOmnet => (ClockRule::Picoseconds, TieRule::Entity),
        Profile::Ns3 => (ClockRule::WholeNanoseconds, TieRule::Insertion),
    };
    let clocks = [("picoseconds", ClockRule::Picoseconds), ("whole-nanoseconds", ClockRule::WholeNanoseconds)];
    let clock = links.choice("clock", &clocks, clock).value;
    let ties = links.choice("ties", &[("entity", TieRule::Entity), ("insertion", TieRule::Insertion)], ties).value;
    // Preamble and gap.
    let overhead = if profile == Profile::RoccOmnet { Bytes::new(20) } else { Bytes::ZERO };
    let frame_overhead = links.get("frame_overhead", overhead);
    if MOST_OVERHEAD < frame_overhead.value {
        let message = format!("a `frame_overhead` of {}", frame_overhead.value);
        let help = format!("write {MOST_OVERHEAD} at most; Ethernet's preamble and gap are `frame_overhead = \"20B\"`");
        links.problem_at("scenario::out_of_range", "frame_overhead", message, help);
    }
    root.out.tables.push(("links".into(), links.finish()));
    Timing { clock, ties, frame_overhead }
}

/// Checks that frames may have an overhead under the algorithm `cc`.
fn check_frames(report: &Report, timing: &Timing, cc: &AlgorithmConfig) {
    let Field { value, site } = timing.frame_overhead;
    if Bytes::ZERO < value && cc.needs().feedback.oracle.is_some() {
        let message = format!("`{}` serves flows as fluids, which have no frames", cc.info().name);
        report.problem("scenario::conflict", site, message, "`frame_overhead`", "leave out `frame_overhead`");
    }
}

/// Largest size in memory of a sample of a port, when the results are read.
const SAMPLE_BYTES: u64 = 24;

/// Checks that there is memory for the samples of ports, which are all read when the run has ended.
fn check_samples(report: &Report, run: &Run, probes: &[ProbeSpec]) {
    let (Some(end), Some(available)) = (run.end.at, available_memory()) else { return };
    let samples = probes.iter().map(|probe| match probe {
        ProbeSpec::Ports { ports, every } => (end.as_ps() / every.as_ps().max(1)).saturating_mul(ports.len() as u64),
        ProbeSpec::Hosts { hosts, every } => (end.as_ps() / every.as_ps().max(1)).saturating_mul(hosts.len() as u64),
        // Flows are sampled only while they are active, a time that is not known here.
        ProbeSpec::Flows { .. } | ProbeSpec::Rtts | ProbeSpec::Convergence { .. } => 0,
    });
    let samples = samples.fold(0u64, u64::saturating_add);
    let needed = samples.saturating_mul(SAMPLE_BYTES);
    if available < needed {
        let message = format!(
            "{samples} samples of ports take up to {} of memory, and there are {}",
            shown_bytes(needed),
            shown_bytes(available)
        );
        let help = "sample less often (`every`), or fewer ports";
        report.problem("scenario::too_little_memory", report.start(), message, "too many samples", help);
    }
}

/// Checks that every packet takes time on every link: without link delay and with times cut to whole nanoseconds,
/// events could repeat endlessly at one time.
fn check_times(report: &Report, config: &SimConfig, site: Site) {
    if config.fabric.clock == ClockRule::Picoseconds {
        return;
    }
    let of_stack = |(t, cc): (&TransportConfig, &AlgorithmConfig)| {
        [t.header + Bytes::new(1), t.ack, t.cnp].into_iter().chain(cc.needs().wire.control)
    };
    let others = config.allocator.iter().map(|a| a.min_packet).chain([config.fabric.pfc_frame]);
    let least = config.stacks().flat_map(of_stack).chain(others).min().unwrap_or_default();
    let in_no_time = |rate: Rate| least.as_u64() * 8_000_000_000 < rate.as_bps();
    if let Some(link) = config.topology.links.iter().find(|l| l.delay == Time::ZERO && in_no_time(l.rate)) {
        let message = format!("{least} at {} take less than a nanosecond, and a link has no delay", link.rate);
        let help = "give links a delay, or set `clock = \"picoseconds\"` in `[links]`";
        report.problem("scenario::conflict", site, message, "links on which packets take no time", help);
    }
}

/// Checks that some flow starts while the run lasts.
fn check_start(report: &Report, run: &Run, flows: &[FlowSpec]) {
    let Some(end) = run.end.at else { return };
    if flows.iter().all(|flow| flow.trigger == fairrate_sim::Trigger::Time && end <= flow.start) {
        let first = flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        let message = format!("the first flow starts at {first}, and the run ends at {end}");
        report.problem(
            "scenario::no_flows",
            run.end_site,
            message,
            "no flows",
            "let the run last longer, or flows start earlier",
        );
    }
}

/// Checks that the run has an end.
fn check_end(report: &Report, run: &Run, flows: &[FlowSpec]) {
    if !run.end.when_flows_done {
        return;
    }
    let endless = |f: &FlowSpec| f.bytes == Bytes::MAX;
    let problem = |message: String, help: &str| {
        report.problem("scenario::no_end", run.end_site, message, "the run has no end", help);
    };
    if flows.iter().all(endless) {
        let message = "there is no flow that could be done: all are endless".to_owned();
        problem(message, "say how long the run lasts: `duration = \"5ms\"`, without `stop`");
    } else if run.end.at.is_none() && flows.iter().any(endless) {
        let n = flows.iter().filter(|f| endless(f)).count();
        problem(
            format!("{n} flows are endless and nothing limits the run"),
            "say how long it may last: add `duration = \"5ms\"`",
        );
    }
}
