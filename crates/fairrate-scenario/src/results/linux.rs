//! What the summary of a run on real Linux says besides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The machine and the network of a run on real Linux, and whether the machine was the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinuxSummary {
    /// Release of the kernel.
    pub kernel: String,
    /// Versions of the programs that made the network, by name.
    pub tools: BTreeMap<String, String>,
    /// The algorithm's name in the kernel.
    pub algorithm: String,
    /// What the scenario's rates were multiplied by.
    pub scale: f64,
    /// Median over the flows of the least round-trip time, measured before the start.
    pub base_rtt_ns: u64,
    /// What was done in another way than the scenario asks for.
    pub notes: Vec<String>,
    /// Processors that the run could use.
    pub cores: u32,
    /// The share of their time that was used, by anybody.
    pub cpu_share: f64,
    /// The share of their time that others than this machine had.
    pub steal_share: f64,
    /// Processor time of the program itself, in seconds.
    pub own_cpu_s: f64,
    /// The longest that a flow started after its time.
    pub start_late_max_ns: u64,
    /// The same of samples: the 99th percentile.
    pub sample_late_p99_ns: u64,
    /// Packets that processors dropped before any queue saw them.
    pub processor_drops: u64,
    /// The largest mean packet of a port, header included. More than a full packet: segments were put together.
    pub largest_mean_packet_bytes: u64,
    /// The probed ports that had a queue.
    pub busy_ports: Vec<BusyPort>,
    /// Links with a delay that the testbed itself keeps; absent: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<DelaySummary>,
    /// In which ways the machine, and not the network, was the limit; none is well.
    pub machine_limits: Vec<String>,
}

/// How well the delays of links were kept. Packets are those from the start to the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelaySummary {
    /// Links with such a delay.
    pub links: u32,
    /// Packets that were kept for it.
    pub packets: u64,
    /// How much later than that they were sent on: half of the packets. 20 ms are 20 ms or more.
    pub late_p50_ns: u64,
    /// The same of 99 in a hundred packets.
    pub late_p99_ns: u64,
    /// The same of all packets.
    pub late_max_ns: u64,
    /// Packets that were lost there, as nobody took them in time or no room was left.
    pub drops: u64,
    /// The sum of these delays on the way there and back, of the flow whose base round-trip time is furthest from it.
    pub asked_rtt_ns: u64,
    /// The base round-trip time of that flow, measured before the start.
    pub measured_rtt_ns: u64,
}

/// A port and its rate while packets waited at it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyPort {
    /// The port, as `from->to`.
    pub port: String,
    /// How long packets waited, in seconds.
    pub busy_s: f64,
    /// Its rate in that time over that of its link.
    pub rate_share: f64,
}
