//! The times for which links are down or slow.

use fairrate_sim::{FaultConfig, PortId, SimConfig};
use fairrate_units::Time;

/// Returns the times between `from` and `to` for which the link of `port` is down, ascending and apart, each with its
/// whole length; [`Time::MAX`] ends one that goes on for ever.
pub fn outages(config: &SimConfig, port: PortId, from: Time, to: Time) -> Vec<(Time, Time)> {
    let of_port = config.faults.iter().filter(|fault| fault.ports.contains(&port));
    let mut all: Vec<(Time, Time)> = of_port.flat_map(|fault| flaps(fault, from, to)).collect();
    all.sort_unstable();
    let mut apart: Vec<(Time, Time)> = Vec::new();
    for (down, up) in all {
        match apart.last_mut() {
            Some(last) if down <= last.1 => last.1 = last.1.max(up),
            _ => apart.push((down, up)),
        }
    }
    apart
}

/// Returns the times between `from` and `to` for which a fault has its links down.
fn flaps(fault: &FaultConfig, from: Time, to: Time) -> Vec<(Time, Time)> {
    let Some(flap) = fault.flap else { return Vec::new() };
    let every = flap.period.map_or(u64::MAX, Time::as_ps).max(1);
    // The first failure that may reach into the span.
    let first = from.as_ps().saturating_sub(flap.up_at.as_ps()) / every;
    let nth = |n: u64| {
        let later =
            |t: Time| if t == Time::MAX { t } else { Time::from_ps(t.as_ps().saturating_add(n.saturating_mul(every))) };
        (if n == 0 { flap.down_at } else { later(flap.down_at) }, if n == 0 { flap.up_at } else { later(flap.up_at) })
    };
    let is_single = flap.period.is_none();
    let begins = |(down, _): &(Time, Time)| *down < to && *down < fault.stop;
    let failures = (first..).map(nth).take(if is_single { 1 } else { usize::MAX }).take_while(begins);
    failures.filter(|&(_, up)| from < up).collect()
}

/// A time for which a link is slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// The share of its rate that it has.
    pub share: f64,
    /// The start.
    pub from: Time,
    /// The end; [`Time::MAX`]: never.
    pub to: Time,
}

/// Returns the faults between `from` and `to` that make the link of `port` slow, in the order of the scenario.
pub fn slow(config: &SimConfig, port: PortId, from: Time, to: Time) -> Vec<Slow> {
    let is_there = |fault: &&FaultConfig| {
        fault.rate != 1.0 && fault.ports.contains(&port) && fault.start < to && from < fault.stop
    };
    let slow = |fault: &FaultConfig| Slow { share: fault.rate, from: fault.start, to: fault.stop };
    config.faults.iter().filter(is_there).map(slow).collect()
}
