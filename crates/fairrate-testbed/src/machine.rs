//! Checks whether the machine, and not the network, was the limit of a run.

use std::collections::BTreeMap;
use std::fs;

use fairrate_results::{BusyPort, DelaySummary, LinuxSummary};
use fairrate_sim::{PortId, PortSample, SimConfig};
use fairrate_units::Time;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use crate::field::FULL_PACKET;
use crate::idle;

/// Thresholds, chosen by us, above which a run reports that the machine was the limit.
mod limit {
    use fairrate_units::Time;

    /// Share of all processors' time in use.
    pub const CPU: f64 = 0.9;
    /// Share of the processors' time taken by other machines.
    pub const STEAL: f64 = 0.02;
    /// Lateness of 99 of 100 packets that leave a link with a delay of its own: half of the shortest such delay.
    pub const DELAY: Time = Time::from_us(250);
    /// Lateness of a flow's start.
    pub const START: Time = Time::from_ms(1);
    /// Least rate of a port with a queue, divided by that of its link.
    pub const RATE: f64 = 0.97;
    /// Time for which a port must have had a queue for its rate to count, in seconds.
    pub const BUSY_S: f64 = 0.05;
}

/// Counters of the whole machine.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Busy time of all processors, in clock ticks.
    busy: u64,
    stolen: u64,
    all: u64,
    processor_drops: u64,
    own_us: i64,
}

impl Counters {
    fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
        let own_us = usage.map_or(0, |u| u.user_time().num_microseconds() + u.system_time().num_microseconds());
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks: Vec<u64> =
            stat.lines().next().unwrap_or_default().split_whitespace().skip(1).flat_map(str::parse).collect();
        // user nice system idle iowait irq softirq steal; the time of guests is in user and nice too.
        let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
        let (idle, stolen) = (at(3) + at(4), at(7));
        let all: u64 = ticks.iter().take(8).sum();
        Self { busy: all - idle - stolen, stolen, all, processor_drops: processor_drops(), own_us }
    }
}

/// Returns the dropped packets of all processors: the second column of each processor's line, in hexadecimal.
fn processor_drops() -> u64 {
    let text = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    text.lines().filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()).sum()
}

/// The observer of the machine during a run.
#[derive(Debug)]
pub struct Watch {
    before: Counters,
    starts_late: Time,
    samples_late: Vec<Time>,
    last: BTreeMap<PortId, PortSample>,
    busy: BTreeMap<PortId, Busy>,
}

/// The time during which a port had a queue, and the bytes it sent in that time.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    time: Time,
    bytes: u64,
}

impl Watch {
    /// Starts the observation.
    pub fn begin() -> Self {
        let (last, busy) = (BTreeMap::new(), BTreeMap::new());
        Self { before: Counters::now(), starts_late: Time::ZERO, samples_late: Vec::new(), last, busy }
    }

    /// Records that a flow has started `late` after its time.
    pub fn started_late(&mut self, late: Time) {
        self.starts_late = self.starts_late.max(late);
    }

    /// Records that a sample was taken `late` after its time.
    pub fn sampled_late(&mut self, late: Time) {
        self.samples_late.push(late);
    }

    /// Adds a sample of a port. The port was busy since its last sample if packets waited both times.
    pub fn port(&mut self, sample: &PortSample) {
        let Some(last) = self.last.insert(sample.port, *sample) else { return };
        if 2 * FULL_PACKET < last.qlen_bytes.min(sample.qlen_bytes) {
            let busy = self.busy.entry(sample.port).or_default();
            busy.time += sample.t.saturating_sub(last.t);
            busy.bytes += sample.tx_bytes - last.tx_bytes;
        }
    }

    /// Completes the summary at the end of a run.
    pub fn end(mut self, config: &SimConfig, summary: &mut LinuxSummary) {
        let now = Counters::now();
        let all = (now.all - self.before.all).max(1) as f64;
        summary.cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        summary.cpu_share = (now.busy - self.before.busy) as f64 / all;
        summary.steal_share = (now.stolen - self.before.stolen) as f64 / all;
        summary.own_cpu_s = (now.own_us - self.before.own_us) as f64 / 1e6;
        summary.processor_drops = now.processor_drops - self.before.processor_drops;
        summary.start_late_max_ns = self.starts_late.as_ns();
        self.samples_late.sort_unstable();
        let p99 = self.samples_late.get((self.samples_late.len() * 99).div_ceil(100).saturating_sub(1));
        summary.sample_late_p99_ns = p99.copied().unwrap_or(Time::ZERO).as_ns();
        summary.busy_ports = self.busy.iter().map(|(port, busy)| busy_port(config, *port, *busy)).collect();
        summary.machine_limits = limits(summary);
    }
}

fn busy_port(config: &SimConfig, port: PortId, busy: Busy) -> BusyPort {
    let topology = &config.topology;
    let busy_s = busy.time.as_secs_f64();
    let rate_share = busy.bytes as f64 * 8.0 / (busy_s * topology.link(port).rate.as_bps_f64()).max(1.0);
    BusyPort { port: topology.port_name(port), busy_s, rate_share }
}

/// Returns the exceeded limits in words, each with its number.
fn limits(s: &LinuxSummary) -> Vec<String> {
    let mut found = Vec::new();
    if limit::CPU < s.cpu_share {
        found.push(format!("{:.0} % of the {} processors were in use", s.cpu_share * 100.0, s.cores));
    }
    if limit::STEAL < s.steal_share {
        found.push(format!("{:.1} % of the processors' time went to other machines", s.steal_share * 100.0));
    }
    if limit::START.as_ns() < s.start_late_max_ns {
        found.push(format!("a flow started {:.1} ms late", s.start_late_max_ns as f64 / 1e6));
    }
    if 0 < s.processor_drops {
        found.push(format!("processors dropped {} packets before any queue", s.processor_drops));
    }
    if FULL_PACKET < s.largest_mean_packet_bytes {
        found
            .push(format!("packets have {} bytes on average: segments were put together", s.largest_mean_packet_bytes));
    }
    if let Some(delays) = &s.delays {
        found.extend(limits_of_delays(delays));
    }
    let slow = s.busy_ports.iter().filter(|port| limit::BUSY_S < port.busy_s && port.rate_share < limit::RATE);
    found.extend(slow.map(|port| {
        format!("`{}` sent at {:.1} % of its rate while packets waited", port.port, port.rate_share * 100.0)
    }));
    found
}

fn limits_of_delays(delays: &DelaySummary) -> Vec<String> {
    let mut found = Vec::new();
    if 0 < delays.drops {
        found.push(format!("{} packets were lost on links with a delay", delays.drops));
    }
    if limit::DELAY.as_ns() < delays.late_p99_ns {
        let late = delays.late_p99_ns as f64 / 1e6;
        found.push(format!("one in a hundred packets left a link with a delay more than {late:.2} ms late"));
    }
    let (asked, measured) = (Time::from_ns(delays.asked_rtt_ns), Time::from_ns(delays.measured_rtt_ns));
    if 1.0 < idle::off(asked, measured) {
        found.push(format!("a base RTT is {measured}, where the delays of links are {asked}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_the_limit_is_said() {
        let well =
            LinuxSummary { cores: 2, cpu_share: 0.5, largest_mean_packet_bytes: 1_514, ..LinuxSummary::default() };
        assert!(limits(&well).is_empty());
        let slow = BusyPort { port: "sw0->h0".to_owned(), busy_s: 1.0, rate_share: 0.9 };
        let short = BusyPort { busy_s: 0.01, ..slow.clone() };
        let tired = LinuxSummary {
            cpu_share: 0.95,
            start_late_max_ns: 2_000_000,
            largest_mean_packet_bytes: 9_000,
            busy_ports: vec![slow, short],
            ..well
        };
        let words = limits(&tired);
        assert_eq!(words.len(), 4, "{words:?}");
        assert_eq!(words[3], "`sw0->h0` sent at 90.0 % of its rate while packets waited");
    }

    #[test]
    fn delays_that_were_not_kept_are_said() {
        let well = DelaySummary {
            late_p99_ns: 80_000,
            asked_rtt_ns: 1_000_000,
            measured_rtt_ns: 1_150_000,
            ..DelaySummary::default()
        };
        assert!(limits_of_delays(&well).is_empty());
        let badly = DelaySummary { drops: 3, late_p99_ns: 2_500_000, measured_rtt_ns: 1_250_000, ..well };
        let words = limits_of_delays(&badly);
        assert_eq!(words[0], "3 packets were lost on links with a delay");
        assert_eq!(words[1], "one in a hundred packets left a link with a delay more than 2.50 ms late");
        assert_eq!(words[2], "a base RTT is 1250us, where the delays of links are 1ms");
    }
}
