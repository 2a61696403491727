//! Fastpass's arbiter on one core, for `bench --job allocate`.

use fairrate_allocate::fastpass::FastpassConfig;

use crate::allocate::{Row, Settings};
use crate::fastpass_arbiter::{Times, measure, network};

const HOSTS: [u16; 3] = [128, 512, 2_048];
const BATCHES: [u32; 2] = [64, 8];

/// Returns rows for each number of hosts and timeslots of a batch: timeslots alone, and with paths.
pub fn rows(settings: &Settings) -> Vec<Row> {
    let cases = HOSTS.into_iter().flat_map(|hosts| BATCHES.map(|batch| network(hosts, batch)));
    cases.flat_map(|config| case(&config, settings.runs)).collect()
}

fn case(config: &FastpassConfig, runs: usize) -> [Row; 2] {
    let [alone, both] = measure(config, runs);
    [row("Fastpass, timeslots", config, &alone), row("Fastpass, with paths", config, &both)]
}

fn row(name: &str, config: &FastpassConfig, times: &Times) -> Row {
    let [us_median, us_min, us_max] = times.us;
    let hosts = u32::from(config.hosts);
    let racks = hosts.div_ceil(config.hosts_per_rack.into());
    Row {
        job: "allocate",
        name: name.to_owned(),
        nodes: hosts,
        links: 2 * (hosts + racks * u32::from(config.spines)),
        flows: None,
        blocks: None,
        batch: Some(config.batch),
        threads: 1,
        us_median,
        us_min,
        us_max,
        ns_per_flow_median: None,
        ns_per_packet_median: Some(times.ns_per_packet),
        tbps_per_core: Some(times.tbps()),
        largest_error: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_what_a_core_allocates() {
        let [alone, both] = case(&network(64, 8), 2);
        assert_eq!((alone.nodes, alone.links, alone.batch), (64, 2 * (64 + 2 * 8), Some(8)));
        assert!(alone.tbps_per_core.is_some() && both.tbps_per_core.is_some());
    }
}
