//! The network without traffic: the time of a round trip, and the resulting delay of a link.

use fairrate_results::nearest_rank;
use fairrate_sim::ideal::{Framing, Hop, ideal_fct, path_base_rtt};
use fairrate_sim::{PortId, SimConfig};
use fairrate_units::{Bytes, Time};

use crate::delay;
use crate::field::{HEADER, MSS};
use crate::paths::Ways;

/// Allowed deviation of a measured round-trip time from the requested one: a share of it, or an absolute time. Both are
/// our choice.
const MAY_BE_OFF_BY: f64 = 0.1;
const MAY_BE_OFF: Time = Time::from_us(200);

/// Sizes of packets on the wire.
const FRAMING: Framing =
    Framing { mtu: Bytes::new(MSS), header: Bytes::new(HEADER), ack: Bytes::new(HEADER), overhead: Bytes::ZERO };

fn hops(config: &SimConfig, ports: &[PortId]) -> Vec<Hop> {
    ports.iter().map(|port| Hop::single(config.topology.link(*port))).collect()
}

/// Returns the sum of the laid-out delays of the ports' links.
fn laid_out(config: &SimConfig, (there, back): &(Vec<PortId>, Vec<PortId>)) -> Time {
    let delays = there.iter().chain(back).map(|port| config.topology.link(*port).delay);
    delays.filter(|delay| delay::is_laid_out(*delay)).fold(Time::ZERO, |sum, delay| sum + delay)
}

/// Finds the flow whose round-trip time is furthest from the laid-out delays on its path, relative to the allowed
/// deviation; returns these delays and that time, or `None` if no flow has such delays.
pub fn furthest_off(config: &SimConfig, ways: &Ways, rtts: &[Time]) -> Option<(Time, Time)> {
    let of_flow = |(way, rtt): (&(Vec<PortId>, Vec<PortId>), &Time)| (laid_out(config, way), *rtt);
    let with_delay = ways.ports.iter().zip(rtts).map(of_flow).filter(|(asked, _)| *asked != Time::ZERO);
    with_delay.max_by(|(asked, rtt), (other, others_rtt)| off(*asked, *rtt).total_cmp(&off(*other, *others_rtt)))
}

/// Returns the deviation of a round-trip time from the requested one, relative to the allowed deviation. More than 1 is
/// too far.
pub fn off(asked: Time, rtt: Time) -> f64 {
    let (asked, rtt) = (asked.as_secs_f64(), rtt.as_secs_f64());
    (rtt - asked).abs() / (asked * MAY_BE_OFF_BY).max(MAY_BE_OFF.as_secs_f64())
}

/// Returns the delay of each link, beside its laid-out delay, that explains the round-trip times of flows: their
/// median. A token bucket that is full passes a packet at once; a link of the simulator takes the time of
/// serialisation. If that time is longer than the measured one, the difference cannot be removed: the delay is zero
/// then.
pub fn link_delay(config: &SimConfig, ways: &Ways, rtts: &[Time]) -> Time {
    let without_delay = |ports: &[PortId]| {
        hops(config, ports).into_iter().map(|hop| Hop { delay: Time::ZERO, ..hop }).collect::<Vec<_>>()
    };
    let of_flow = |(way, rtt): (&(Vec<PortId>, Vec<PortId>), &Time)| {
        let (there, back) = way;
        let serialised = path_base_rtt(config.fabric.clock, &without_delay(there), &without_delay(back), FRAMING);
        let links = (there.len() + back.len()).max(1) as u64;
        Time::from_ns(rtt.saturating_sub(serialised + laid_out(config, way)).as_ns() / links)
    };
    median(ways.ports.iter().zip(rtts).map(of_flow).collect())
}

/// Returns the completion time of each flow when it is alone in the network.
pub fn ideal_fcts(config: &SimConfig, ways: &Ways) -> Vec<Time> {
    let of_flow = |(flow, (there, _)): (&fairrate_sim::FlowSpec, &(Vec<PortId>, Vec<PortId>))| {
        if flow.bytes == Bytes::MAX {
            return Time::ZERO;
        }
        ideal_fct(config.fabric.clock, &hops(config, there), FRAMING.train(flow.bytes))
    };
    config.flows.iter().zip(&ways.ports).map(of_flow).collect()
}

/// Returns the median; zero if there is none.
pub fn median(mut times: Vec<Time>) -> Time {
    times.sort_unstable();
    nearest_rank(times.len(), 0.5).map_or(Time::ZERO, |place| times[place])
}
