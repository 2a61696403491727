//! The summary at the beginning of a run.

use std::collections::{BTreeMap, BTreeSet};

use fairrate_control::AlgorithmConfig;
use fairrate_sim::{Counts, Drops, NodeId, PortId, ProbeSpec, SimConfig};
use fairrate_units::Bytes;

use crate::SCHEMA;
use crate::collectives::CollectiveSummary;
use crate::inputs::RunInputs;
use crate::jobs::JobSummary;
use crate::measured::Measured;
use crate::names::host_name;
use crate::summary::{AllocatorSummary, Convergence, Deadlines, PortInfo, RUNNING, Summary, buckets, simulator};

/// Returns the summary before the first event: names, sizes and the sampled ports; all counts are zero.
pub(super) fn first_summary(inputs: &RunInputs<'_>) -> Summary {
    let config = inputs.config;
    let converges = config.probes.iter().any(|probe| matches!(probe, ProbeSpec::Convergence { .. }));
    Summary {
        schema: SCHEMA.to_owned(),
        backend: simulator(),
        linux: None,
        scenario: inputs.name.to_owned(),
        scenario_hash: format!("{:016x}", inputs.hash),
        cc: config.cc.info().name.to_owned(),
        cc_title: own_title(&config.cc).to_owned(),
        seed: config.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: crate::COMMIT.to_owned(),
        sources: crate::SOURCES.to_owned(),
        state: RUNNING.to_owned(),
        error: None,
        fingerprint: format!("{:016x}", 0),
        engine: None,
        packet_hops: 0,
        events: 0,
        wall_s: 0.0,
        sim_s: 0.0,
        bytes_sent: 0,
        bytes_delivered: 0,
        bytes_dropped: 0,
        bytes_trimmed: 0,
        bytes_in_flight: 0,
        goodput_bytes: 0,
        goodput_bps: 0.0,
        measured: Measured::default(),
        flows: config.flows.len() as u64,
        finished_flows: 0,
        unfinished_flows: 0,
        flows_to_start: 0,
        endless_flows: config.flows.iter().filter(|f| f.bytes == Bytes::MAX).count() as u64,
        retransmitted_bytes: 0,
        reordered_bytes: 0,
        reordering_mean_ns: 0.0,
        reordering_max_ns: 0.0,
        drops: 0,
        drops_by_cause: Drops::default(),
        counts: Counts::default(),
        bytes_duplicated: 0,
        control_bytes: 0,
        allocator: config.allocator.as_ref().map(|_| AllocatorSummary::default()),
        peak_buffer_bytes: 0,
        fct: buckets(&[], &[]),
        deadlines: config.flows.iter().any(|f| f.deadline.is_some()).then(Deadlines::default),
        convergence: converges.then(Convergence::default),
        recovery: None,
        collectives: config.collectives.iter().map(|spec| CollectiveSummary::of(spec, &[])).collect(),
        jobs: config.jobs.iter().map(|spec| JobSummary::of(spec, &[])).collect(),
        ports: sampled_ports(config),
        tables: BTreeMap::new(),
        checksum: String::new(),
    }
}

/// Returns the ports that probes sample, in order, and behind them the hosts whose receive buffers are sampled.
fn sampled_ports(config: &SimConfig) -> Vec<PortInfo> {
    let (mut ports, mut hosts) = (BTreeSet::<PortId>::new(), BTreeSet::<NodeId>::new());
    for probe in &config.probes {
        match probe {
            ProbeSpec::Ports { ports: more, .. } => ports.extend(more),
            ProbeSpec::Hosts { hosts: more, .. } => hosts.extend(more),
            ProbeSpec::Flows { .. } | ProbeSpec::Rtts | ProbeSpec::Convergence { .. } => {}
        }
    }
    let topology = &config.topology;
    let of_port = |port: PortId| PortInfo {
        port: topology.port_name(port),
        node: topology.from(port).0,
        rate_bps: topology.link(port).rate.as_bps(),
    };
    // The rate of a receive buffer is that at which it drains.
    let of_host = |host: NodeId| PortInfo {
        port: host_name(topology, host),
        node: host.0,
        rate_bps: config.drain_rate(host).as_bps(),
    };
    ports.into_iter().map(of_port).chain(hosts.into_iter().map(of_host)).collect()
}

/// Returns an algorithm's title if it is no built-in one, which only this program knows; otherwise an empty text.
fn own_title(cc: &AlgorithmConfig) -> &str {
    match cc {
        AlgorithmConfig::Custom(own) => own.info().title,
        _ => "",
    }
}
