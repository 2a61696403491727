//! A warning about timeouts that end before an acknowledgment can come.

use fairrate_sim::routing::Routes;
use fairrate_sim::{SimConfig, Transport};
use fairrate_units::Time;

/// Number of links of a path that the quick look takes for granted; the base RTT is computed only if they could matter.
const LINKS: u64 = 16;
/// Number of base RTTs that a timeout should last.
const FIT: u64 = 4;

/// Returns a warning if a retransmission timeout is shorter than the largest base RTT.
pub(super) fn warning(config: &SimConfig) -> Option<String> {
    let timed = config.stacks().filter(|(transport, _)| !matches!(transport.kind, Transport::Tcp(_)));
    let rto = timed.filter_map(|(transport, _)| transport.rto).min()?;
    if longest_trip(config) < rto {
        return None;
    }
    let base_rtt = config.base_rtt(&Routes::new(&config.topology));
    (rto <= base_rtt).then(|| {
        let us = Time::from_us(1).as_ps();
        let fit = Time::from_ps(base_rtt.as_ps().div_ceil(us).saturating_mul(FIT * us));
        format!(
            "`transport.rto = \"{rto}\"` is not above the largest base RTT, {base_rtt:.3}: flows send again what is only on its way; \
             with `transport.rto=\"{fit}\"` they wait for it"
        )
    })
}

/// Returns a time that no packet and its acknowledgment take on [`LINKS`] links without queues.
fn longest_trip(config: &SimConfig) -> Time {
    let links = || config.topology.links.iter();
    let delay = links().map(|link| link.delay).max().unwrap_or_default();
    let slowest = links().map(|link| link.rate).min().unwrap_or(fairrate_units::Rate::MAX);
    let processing = config.hosts.iter().map(|host| host.processing).max().unwrap_or_default();
    let packet = slowest.tx_time(config.longest_packet());
    let one_way = delay.saturating_add(packet).as_ps().saturating_mul(LINKS).saturating_add(processing.as_ps());
    Time::from_ps(one_way.saturating_mul(2))
}
