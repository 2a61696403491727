//! 99.9th percentiles of slowdowns, as the paper's words have them and as its artifact computes them.

use fairrate_report::stats::{percentile, sorted};
use fairrate_sim::{FlowOutcome, FlowSpec, NodeId, SimConfig};
use fairrate_units::{Bytes, Time};

use crate::lab;

/// 99.9th percentiles by flow size.
#[derive(Clone, Copy, Debug)]
pub struct Tails {
    /// Of short flows.
    pub short: f64,
    /// Of medium ones.
    pub medium: f64,
    /// Of long ones.
    pub long: f64,
}

impl Default for Tails {
    fn default() -> Self {
        Self { short: f64::NAN, medium: f64::NAN, long: f64::NAN }
    }
}

/// The paper's classes: up to 10 KB, from 100 KB to 1 MB, and above. A slowdown is the time to the last byte over that on an
/// idle network; the percentile is of nearest rank.
pub(super) fn uniform_tails(config: SimConfig) -> Result<Tails, String> {
    let record = lab::run(config)?;
    let p999 = |from: f64, to: f64| {
        let size = |f: &FlowOutcome| record.sizes[f.flow.index()] as f64;
        let inside = record.flows.iter().filter(|f| from < size(f) && size(f) <= to);
        let slowdowns = sorted(inside.filter_map(|f| Some(f.fct?.as_ps() as f64 / f.ideal_fct.as_ps() as f64)));
        percentile(&slowdowns, 0.999).unwrap_or(f64::NAN)
    };
    Ok(Tails { short: p999(0.0, 10e3), medium: p999(100e3, 1e6), long: p999(1e6, f64::MAX) })
}

/// The classes that the artifact's figures show: below 5 KB, 400 to 600 KB, 9 to 10 MB. A slowdown is the time to the last
/// acknowledgment over the base FCT; the percentile is at index floor(0.999 n) of the sorted ones.
pub(super) fn artifact_tails(config: SimConfig) -> Result<Tails, String> {
    let base: Vec<Time> = config.flows.iter().map(|flow| base_fct(&config, flow)).collect();
    let record = lab::run(config)?;
    let p999 = |from: u64, to: u64| {
        let inside = record.flows.iter().filter(|f| (from..to).contains(&record.sizes[f.flow.index()]));
        let slowdown = |f: &FlowOutcome| Some(f.fct_ack?.as_ps() as f64 / base[f.flow.index()].as_ps() as f64);
        at_floor(&sorted(inside.filter_map(slowdown)), 0.999)
    };
    Ok(Tails { short: p999(0, 5_000), medium: p999(400_000, 600_000), long: p999(9_000_000, 10_000_000) })
}

/// What is at index floor(p n).
fn at_floor(sorted: &[f64], p: f64) -> f64 {
    sorted.get((p * sorted.len() as f64) as usize).copied().unwrap_or(f64::NAN)
}

/// The artifact's base FCT in a network of one pod: twice the delays and once the time of 1000 bytes on each link there, and
/// the flow's time on its host's link with 48 bytes of header a packet.
fn base_fct(config: &SimConfig, flow: &FlowSpec) -> Time {
    let rack = |host: NodeId| config.topology.nodes[host.index()].rack;
    let link = |set: &str| config.topology.link(config.topology.link_sets[set][0]);
    let round_trip = |set: &str| {
        let link = link(set);
        link.delay * 2 + link.rate.tx_time(config.transport.mtu)
    };
    let racks = if rack(flow.src) == rack(flow.dst) { Time::ZERO } else { round_trip("tor-uplinks") * 2 };
    let packets = flow.bytes.as_u64().div_ceil(config.transport.mtu.as_u64());
    let wire = Bytes::new(flow.bytes.as_u64() + config.transport.header.as_u64() * packets);
    round_trip("host-links") * 2 + racks + link("host-links").rate.tx_time(wire)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_base_fct_is_the_artifacts() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let config = lab::example(&root, "websearch-artifact", "powertcp", &[("traffic.0.stop", "2ms")]).unwrap();
        // `standalone_ns` of ns-3's runs `unloaded`: flows of 1 B to 1 MB within a rack and within a pod.
        let hosts: Vec<_> = config.topology.hosts().collect();
        let base = |dst: usize, bytes| {
            let bytes = Bytes::new(bytes);
            let flow = FlowSpec { src: hosts[0], dst: hosts[dst], bytes, ..config.flows[0].clone() };
            base_fct(&config, &flow).as_ns()
        };
        assert_eq!([1, 1_001, 1_000_000].map(|bytes| base(1, bytes)), [4_655, 4_991, 340_000]);
        assert_eq!([1, 1_001, 1_000_000].map(|bytes| base(32, bytes)), [8_815, 9_151, 344_160]);
    }

    #[test]
    fn the_artifacts_percentile_is_one_further() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(at_floor(&values, 0.999), 1_000.0);
        assert_eq!(percentile(&values, 0.999), Some(999.0));
        assert_eq!(at_floor(&values[..999], 0.999), 999.0);
        assert!(at_floor(&[], 0.999).is_nan());
    }
}
