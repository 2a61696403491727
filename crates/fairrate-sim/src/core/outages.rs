//! The links that switches know to be down.
//!
//! A switch notices failures and recoveries of its own links after [`Reroute::delay`], and hears of those of other
//! switches after [`Reroute::convergence`]. Then it avoids the ways that end at a dead link. Ways are never longer than
//! without failures: what has no live way of that length is unreachable, as in a fabric whose switches do not send down
//! what came from above.
//!
//! All of this follows from the configuration and the time alone, so every part of a network knows the same at the same
//! time.

use std::collections::BTreeMap;

use crate::config::{Reroute, SimConfig};
use crate::fabric::FlapTimes;
use crate::ids::{NodeId, PortId};
use crate::routing::Routes;
use crate::routing::weights::{capacities, ways_bps};
use crate::topology::Topology;

/// The links that switches know to be down at the moment.
pub(super) struct Outages {
    /// The links whose own switches act on it.
    noticed: Lagging,
    /// The links of which all switches have heard.
    heard: Lagging,
    /// For each switch with hosts, the capacity of the live ways to it from each switch, as far as all have heard.
    /// Filled when first needed after a change.
    reach: BTreeMap<NodeId, Vec<u64>>,
}

/// The links that are known to be down some time after it has happened.
struct Lagging {
    flaps: Vec<Lag>,
    /// Number of flaps by which each port is known to be down.
    downs: BTreeMap<PortId, u32>,
    /// Time of the next change, in picoseconds.
    next_ps: u64,
}

/// The knowledge of one flap.
struct Lag {
    ports: Vec<PortId>,
    times: FlapTimes,
    /// Time of the next failure or recovery, in picoseconds; [`u64::MAX`]: there is none.
    change_ps: u64,
    late_ps: u64,
    is_known_down: bool,
}

impl Outages {
    /// Returns the state before the first failure; `None` if switches do not react to failures.
    pub(super) fn new(config: &SimConfig) -> Option<Box<Self>> {
        let Reroute { delay, convergence, .. } = config.reroute()?;
        let lagging = |late_ps| Lagging::new(config, late_ps);
        let (noticed, heard) = (lagging(delay.as_ps()), lagging(convergence.as_ps()));
        Some(Box::new(Self { noticed, heard, reach: BTreeMap::new() }))
    }

    /// Brings the knowledge up to `now_ps`.
    pub(super) fn advance(&mut self, now_ps: u64) {
        self.noticed.advance(now_ps);
        if self.heard.advance(now_ps) {
            self.reach.clear();
        }
    }

    /// Returns `true` if no link is known to be down.
    pub(super) fn are_none(&self) -> bool {
        self.noticed.downs.is_empty() && self.heard.downs.is_empty()
    }

    /// Returns `true` if the switch that `port` belongs to knows that its link is down.
    pub(super) fn is_noticed(&self, port: PortId) -> bool {
        self.noticed.downs.contains_key(&port)
    }

    /// Returns `true` if, as far as all switches have heard, a shortest way over live links begins with `port` and ends
    /// at the host `to`.
    pub(super) fn leads_to(&mut self, topology: &Topology, routes: &Routes, port: PortId, to: NodeId) -> bool {
        let downs = &self.heard.downs;
        if downs.is_empty() {
            return true;
        }
        let next = topology.to(port);
        let Some(last) = routes.host_port(to) else { return false };
        let edge = topology.to(last);
        if downs.contains_key(&port) || downs.contains_key(&last.reverse()) {
            return false;
        }
        next == to || 0 < self.live_capacities(topology, routes, edge, to)[next.index()]
    }

    /// Returns the capacities in bit/s of the live ways that begin with each of the `ports` of a switch and end at the
    /// switch of the host `to`, as far as all switches have heard; none if there is no such host.
    pub(super) fn live_bps(&mut self, topology: &Topology, routes: &Routes, ports: &[PortId], to: NodeId) -> Vec<u64> {
        let Some(last) = routes.host_port(to) else { return Vec::new() };
        ways_bps(topology, ports, self.live_capacities(topology, routes, topology.to(last), to))
    }

    fn live_capacities(&mut self, topology: &Topology, routes: &Routes, edge: NodeId, to: NodeId) -> &[u64] {
        let downs = &self.heard.downs;
        let is_dead = |port: PortId| downs.contains_key(&port);
        self.reach.entry(edge).or_insert_with(|| capacities(topology, routes, to, &is_dead))
    }
}

impl Lagging {
    fn new(config: &SimConfig, late_ps: u64) -> Self {
        let flaps = config.faults.iter().filter_map(|fault| {
            let times = FlapTimes::new(fault, fault.flap.as_ref()?);
            let (ports, change_ps) = (fault.ports.clone(), times.first_ps());
            Some(Lag { ports, times, change_ps, late_ps, is_known_down: false })
        });
        let mut lagging = Self { flaps: flaps.collect(), downs: BTreeMap::new(), next_ps: 0 };
        lagging.plan();
        lagging
    }

    fn plan(&mut self) {
        self.next_ps = self.flaps.iter().map(Lag::next_ps).min().unwrap_or(u64::MAX);
    }

    /// Applies the changes up to `now_ps`; returns `true` if there are any.
    fn advance(&mut self, now_ps: u64) -> bool {
        if now_ps < self.next_ps || self.next_ps == u64::MAX {
            return false;
        }
        let mut has_changed = false;
        for flap in &mut self.flaps {
            let before = flap.is_known_down;
            while flap.next_ps() <= now_ps && flap.next_ps() < u64::MAX {
                flap.step();
            }
            if flap.is_known_down == before {
                continue;
            }
            has_changed = true;
            for &port in &flap.ports {
                let n = self.downs.entry(port).or_default();
                *n = if before { *n - 1 } else { *n + 1 };
                if *n == 0 {
                    self.downs.remove(&port);
                }
            }
        }
        self.plan();
        has_changed
    }
}

impl Lag {
    /// Returns the time at which the next change may become known, in picoseconds.
    fn next_ps(&self) -> u64 {
        self.change_ps.saturating_add(self.late_ps)
    }

    /// Passes the next change, which becomes known unless another one follows first.
    fn step(&mut self) {
        let known_ps = self.next_ps();
        let next = self.times.toggle().unwrap_or(u64::MAX);
        if known_ps < next {
            self.is_known_down = self.times.is_down();
        }
        self.change_ps = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FaultConfig, Flap};
    use fairrate_units::Time;

    fn lag(flap: Flap, lag: Time) -> Lag {
        let config = FaultConfig { flap: Some(flap), ..FaultConfig::NONE };
        let times = FlapTimes::new(&config, &flap);
        Lag { ports: Vec::new(), change_ps: times.first_ps(), times, late_ps: lag.as_ps(), is_known_down: false }
    }

    /// Returns the times in microseconds at which a flap becomes known as a failure or a recovery.
    fn known(mut lag: Lag, n: usize) -> Vec<(u64, bool)> {
        let mut seen = Vec::new();
        while seen.len() < n && lag.next_ps() < u64::MAX {
            let (at, before) = (lag.next_ps() / 1_000_000, lag.is_known_down);
            lag.step();
            if lag.is_known_down != before {
                seen.push((at, lag.is_known_down));
            }
        }
        seen
    }

    #[test]
    fn changes_become_known_late_and_short_ones_never() {
        let us = Time::from_us;
        let once = Flap { down_at: us(10), up_at: us(30), period: None };
        assert_eq!(known(lag(once, us(5)), 9), [(15, true), (35, false)]);
        assert_eq!(known(lag(once, Time::ZERO), 9), [(10, true), (30, false)]);
        // It is up again before anyone notices, at the last moment too.
        assert_eq!(known(lag(once, us(20)), 9), []);
        let for_ever = Flap { up_at: Time::MAX, ..once };
        assert_eq!(known(lag(for_ever, us(5)), 9), [(15, true)]);
        assert_eq!(known(lag(for_ever, Time::MAX), 9), []);
        // Up for 5 us of each 25: too short to be noticed, so the link stays known as down.
        let flapping = Flap { down_at: us(10), up_at: us(30), period: Some(us(25)) };
        assert_eq!(known(lag(flapping, us(8)), 1), [(18, true)]);
        assert_eq!(known(lag(flapping, us(4)), 4), [(14, true), (34, false), (39, true), (59, false)]);
    }
}
