//! Additional fields in the summary of a run on real Linux.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The machine and the network of a run on real Linux, and the signs that the machine was the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinuxSummary {
    /// Release of the kernel.
    pub kernel: String,
    /// Versions of the programs that created the network, by name.
    pub tools: BTreeMap<String, String>,
    /// The algorithm's name in the kernel.
    pub algorithm: String,
    /// Factor by which the scenario's rates were multiplied.
    pub scale: f64,
    /// Median over the flows of the minimum round-trip time, measured before the start.
    pub base_rtt_ns: u64,
    /// Differences between the run and the settings of the scenario.
    pub notes: Vec<String>,
    /// Number of processors that the run could use.
    pub cores: u32,
    /// Share of the processors' time that was used, by any process.
    pub cpu_share: f64,
    /// Share of the processors' time that went to other virtual machines.
    pub steal_share: f64,
    /// Processor time of the program itself, in seconds.
    pub own_cpu_s: f64,
    /// Largest delay between a flow's planned and actual start.
    pub start_late_max_ns: u64,
    /// 99th percentile of the delay between planned and actual time of a sample.
    pub sample_late_p99_ns: u64,
    /// Packets that processors dropped before any queue saw them.
    pub processor_drops: u64,
    /// Largest mean packet size of a port, header included. More than a full packet: segments were merged.
    pub largest_mean_packet_bytes: u64,
    /// Probed ports at which packets waited.
    pub busy_ports: Vec<BusyPort>,
    /// Links with a delay that the testbed itself emulates; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<DelaySummary>,
    /// Signs that the machine, and not the network, was the limit; empty if there are none.
    pub machine_limits: Vec<String>,
}

/// Accuracy of the emulated delays of links. Packets are those from the start to the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelaySummary {
    /// Number of links with such a delay.
    pub links: u32,
    /// Number of packets that were delayed.
    pub packets: u64,
    /// Median time by which packets were sent on later than asked. 20 ms means 20 ms or more.
    pub late_p50_ns: u64,
    /// 99th percentile of that time.
    pub late_p99_ns: u64,
    /// Largest such time.
    pub late_max_ns: u64,
    /// Number of packets lost there, as they were not taken in time or no room was left.
    pub drops: u64,
    /// The sum of the emulated delays on the way there and back, of the flow whose base round-trip time differs most
    /// from it.
    pub asked_rtt_ns: u64,
    /// The base round-trip time of that flow, measured before the start.
    pub measured_rtt_ns: u64,
}

/// A port and its rate while packets waited at it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyPort {
    /// The port, as `from->to`.
    pub port: String,
    /// Time during which packets waited, in seconds.
    pub busy_s: f64,
    /// Its rate in that time over that of its link.
    pub rate_share: f64,
}
