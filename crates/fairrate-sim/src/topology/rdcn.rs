use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{Tier, Topology};
use crate::ids::{NodeId, PortId};
use crate::input_error::FieldError;

/// A reconfigurable network (PowerTCP section 5): ToRs `tor0` ... with hosts, all connected to one packet switch
/// `core0`, and all to one optical switch, which connects each of them to one other ToR at a time.
///
/// The optical switch runs through its matchings in turn: in matching k, ToR i sends to ToR i + k + 1, counted in a
/// circle, for a day. A night is the time to change over, during which there are no circuits. After a week of all
/// matchings each ToR has had a circuit to each other ToR, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rdcn {
    /// Number of ToRs.
    pub tors: u32,
    /// Number of hosts on each ToR.
    pub hosts_per_tor: u32,
    /// Rate of the host links.
    pub host_rate: Rate,
    /// Delay of the host links.
    pub host_delay: Time,
    /// Rate of the links between ToRs and the packet switch.
    pub uplink_rate: Rate,
    /// Delay of the links between ToRs and the packet switch.
    pub uplink_delay: Time,
    /// Rate of the circuits.
    pub circuit_rate: Rate,
    /// Delay of the circuits, from ToR to ToR.
    pub circuit_delay: Time,
    /// Duration of a matching.
    pub day: Time,
    /// Time to change over to the next matching.
    pub night: Time,
}

/// Largest number of ToRs: each pair of them has a link.
const TORS_MAX: u32 = 500;
/// Longest duration of a day, and of a night.
const DAY_MAX: Time = Time::from_ms(1_000);

impl Rdcn {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        if !(2..=TORS_MAX).contains(&self.tors) {
            return Err(FieldError::new("tors", format!("`tors` must be from 2 to {TORS_MAX}")));
        }
        build::positive("hosts_per_tor", self.hosts_per_tor)?;
        build::size("hosts_per_tor", &[self.tors, self.hosts_per_tor])?;
        build::rate("host_rate", self.host_rate)?;
        build::delay("host_delay", self.host_delay)?;
        build::rate("uplink_rate", self.uplink_rate)?;
        build::delay("uplink_delay", self.uplink_delay)?;
        build::rate("circuit_rate", self.circuit_rate)?;
        build::delay("circuit_delay", self.circuit_delay)?;
        if !(Time::from_ns(1)..=DAY_MAX).contains(&self.day) {
            return Err(FieldError::new("day", format!("`day` of {} is no day of a matching", self.day))
                .help(format!("write a time up to {DAY_MAX}, as `day = \"225us\"`")));
        }
        if DAY_MAX < self.night {
            return Err(FieldError::new("night", format!("`night` of {} is too long", self.night))
                .help(format!("write a time up to {DAY_MAX}, as `night = \"20us\"`")));
        }
        Ok(())
    }

    /// Returns the network.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        b.racks(self.tors, self.hosts_per_tor);
        let tors = b.switches(self.tors, "tor", Tier::Tor);
        let core = b.switches(1, "core", Tier::Core)[0];
        b.host_links(&tors, self.host_rate, self.host_delay);
        for &tor in &tors {
            b.link(tor, core, self.uplink_rate, self.uplink_delay);
        }
        let first = PortId(2 * b.n_links() as u32);
        for (i, &from) in tors.iter().enumerate() {
            for &to in &tors[i + 1..] {
                b.link(from, to, self.circuit_rate, self.circuit_delay);
            }
        }
        let mut topology = b.finish(&[]);
        let circuits =
            Circuits { first, first_tor: tors[0], core, n_tors: self.tors, day: self.day, night: self.night };
        if let Some(links) = topology.link_sets.get_mut("all-switch-links") {
            links.retain(|&port| port < first);
        }
        let ports = (first.0..topology.n_ports() as u32).map(PortId).collect();
        topology.link_sets.insert("circuits".to_owned(), ports);
        topology.circuits = Some(circuits);
        topology
    }
}

/// Links that exist for one day a week. Routing finds no path over them: they replace the way over `core`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuits {
    /// The first port of the circuits; their ports continue in the order of pairs of ToRs.
    first: PortId,
    first_tor: NodeId,
    n_tors: u32,
    /// The packet switch.
    pub core: NodeId,
    /// Duration of a matching.
    pub day: Time,
    /// Time to change over to the next matching.
    pub night: Time,
}

/// The state of a circuit at some time, and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// A circuit until this time, the end of its day.
    Day(Time),
    /// No circuit until this time, the start of its day.
    Away(Time),
}

impl Circuits {
    /// Returns `true` if a port is that of a circuit.
    pub fn has(&self, port: PortId) -> bool {
        (self.first.0..self.first.0 + self.n_tors * (self.n_tors - 1)).contains(&port.0)
    }

    /// Returns the port of the circuit from one ToR to another.
    pub fn port(&self, from: NodeId, to: NodeId) -> PortId {
        let place = |tor: NodeId| tor.0 - self.first_tor.0;
        let (i, j) = (place(from.min(to)), place(from.max(to)));
        // Before the pairs of i: the pairs of each earlier ToR with all ToRs after it.
        let pair = i * (2 * self.n_tors - i - 1) / 2 + j - i - 1;
        PortId(self.first.0 + 2 * pair + u32::from(to < from))
    }

    /// Returns the number of the matching in which the ToR `from` sends to the ToR `to`.
    pub fn matching(&self, from: NodeId, to: NodeId) -> u32 {
        (to.0 + self.n_tors - from.0 - 1) % self.n_tors
    }

    /// Returns the time from one day of a circuit to its next.
    pub fn week(&self) -> Time {
        Time::from_ps((self.day + self.night).as_ps() * u64::from(self.n_tors - 1))
    }

    /// Returns the state of a circuit of matching `matching` at time `at`.
    pub fn state(&self, matching: u32, at: Time) -> CircuitState {
        let (week, turn) = (self.week().as_ps(), (self.day + self.night).as_ps());
        let (at, begin) = (at.as_ps(), u64::from(matching) * turn);
        let since = (at % week + week - begin) % week;
        if since < self.day.as_ps() {
            CircuitState::Day(Time::from_ps(at - since + self.day.as_ps()))
        } else {
            CircuitState::Away(Time::from_ps(at + week - since))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rdcn(tors: u32) -> Rdcn {
        Rdcn {
            tors,
            hosts_per_tor: 2,
            host_rate: Rate::from_gbps(25),
            host_delay: Time::from_us(1),
            uplink_rate: Rate::from_gbps(25),
            uplink_delay: Time::from_us(1),
            circuit_rate: Rate::from_gbps(100),
            circuit_delay: Time::from_us(2),
            day: Time::from_us(225),
            night: Time::from_us(20),
        }
    }

    /// Five ToRs: in each of four matchings all of them send to another ToR and receive from another ToR, and in a week
    /// each has sent to each other.
    #[test]
    fn a_week_connects_each_pair_once() {
        let topology = rdcn(5).build();
        let circuits = topology.circuits.as_ref().expect("it has circuits");
        let tors = topology.tors();
        let mut by_matching = vec![Vec::new(); 4];
        for &from in &tors {
            for &to in tors.iter().filter(|&&to| to != from) {
                let port = circuits.port(from, to);
                assert_eq!((topology.from(port), topology.to(port), circuits.has(port)), (from, to, true));
                by_matching[circuits.matching(from, to) as usize].push((from, to));
            }
        }
        for pairs in by_matching {
            let mut receivers: Vec<NodeId> = pairs.iter().map(|pair| pair.1).collect();
            receivers.sort_unstable();
            assert_eq!((pairs.len(), receivers), (5, tors.clone()));
        }
        assert_eq!(topology.link_sets["circuits"].len(), 20);
        assert_eq!(topology.link_sets["tor-uplinks"].len(), 5);
        assert_eq!(topology.link_sets["all-switch-links"].len(), 10);
        assert!(!circuits.has(topology.link_sets["tor-uplinks"][0]));
    }

    /// Four matchings of 225 us, and 20 us after each: a week is 980 us. Matching 1 begins at 245 us.
    #[test]
    fn days_come_once_a_week() {
        let topology = rdcn(5).build();
        let circuits = topology.circuits.expect("it has circuits");
        let us = Time::from_us;
        let (day, away) = (|end| CircuitState::Day(us(end)), |begin| CircuitState::Away(us(begin)));
        assert_eq!(circuits.week(), us(980));
        let states = [0, 244, 245, 469, 470, 1_224, 1_225].map(|at| circuits.state(1, us(at)));
        assert_eq!(states, [away(245), away(245), day(470), day(470), away(1_225), away(1_225), day(1_450)]);
        assert_eq!(circuits.state(0, Time::ZERO), day(225));
        // Two ToRs have one matching, and without nights its days follow one another.
        let two = Rdcn { night: Time::ZERO, ..rdcn(2) }.build().circuits.expect("it has circuits");
        assert_eq!([0, 224, 225].map(|at| two.state(0, us(at))), [day(225), day(225), day(450)]);
    }
}
