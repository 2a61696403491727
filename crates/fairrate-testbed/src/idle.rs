//! The network without traffic: what a round trip takes, and what that leaves for the delay of a link.

use fairrate_sim::ideal::{Framing, Hop, ideal_fct, path_base_rtt};
use fairrate_sim::{PortId, SimConfig};
use fairrate_units::{Bytes, Time};

use crate::delay;
use crate::field::{HEADER, MSS};
use crate::paths::Ways;

/// What a measured round-trip time may be off from what was asked for: a share of it, or so much. Thresholds of ours.
const MAY_BE_OFF_BY: f64 = 0.1;
const MAY_BE_OFF: Time = Time::from_us(200);

/// Sizes of packets on the wire.
const FRAMING: Framing = Framing { mtu: Bytes::new(MSS), header: Bytes::new(HEADER), ack: Bytes::new(HEADER) };

fn hops(config: &SimConfig, ports: &[PortId]) -> Vec<Hop> {
    ports.iter().map(|port| Hop::single(config.topology.link(*port))).collect()
}

/// What the links of ports delay, of those whose delay is laid out.
fn laid_out(config: &SimConfig, (there, back): &(Vec<PortId>, Vec<PortId>)) -> Time {
    let delays = there.iter().chain(back).map(|port| config.topology.link(*port).delay);
    delays.filter(|delay| delay::is_laid_out(*delay)).fold(Time::ZERO, |sum, delay| sum + delay)
}

/// Of the flow whose round-trip time is furthest from the delays that are laid out on its way, in shares of what it may be off: these
/// delays, and that time. `None` if no flow has such delays.
pub fn furthest_off(config: &SimConfig, ways: &Ways, rtts: &[Time]) -> Option<(Time, Time)> {
    let of_flow = |(way, rtt): (&(Vec<PortId>, Vec<PortId>), &Time)| (laid_out(config, way), *rtt);
    let with_delay = ways.ports.iter().zip(rtts).map(of_flow).filter(|(asked, _)| *asked != Time::ZERO);
    with_delay.max_by(|(asked, rtt), (other, others_rtt)| off(*asked, *rtt).total_cmp(&off(*other, *others_rtt)))
}

/// How far a round-trip time is from what was asked for, in shares of what it may be off. More than 1 is too far.
pub fn off(asked: Time, rtt: Time) -> f64 {
    let (asked, rtt) = (asked.as_secs_f64(), rtt.as_secs_f64());
    (rtt - asked).abs() / (asked * MAY_BE_OFF_BY).max(MAY_BE_OFF.as_secs_f64())
}

/// What each link delays beside what is laid out, to explain the round-trip times of flows: their median. A token bucket lets a
/// packet through at once that finds it full; a link of the simulator takes the time of serialisation. What that is more than was
/// measured cannot be taken away: the delay is zero then.
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

/// Of each flow, the time that it takes alone.
pub fn ideal_fcts(config: &SimConfig, ways: &Ways) -> Vec<Time> {
    let of_flow = |(flow, (there, _)): (&fairrate_sim::FlowSpec, &(Vec<PortId>, Vec<PortId>))| {
        if flow.bytes == Bytes::MAX {
            return Time::ZERO;
        }
        ideal_fct(config.fabric.clock, &hops(config, there), FRAMING, flow.bytes)
    };
    config.flows.iter().zip(&ways.ports).map(of_flow).collect()
}

/// The middle one; zero of none.
pub fn median(mut times: Vec<Time>) -> Time {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(Time::ZERO)
}
