use fairrate_units::{Rate, Time};

use super::build::{self, Builder};
use super::{LongLinks, Tier, Topology};
use crate::ids::{NodeId, PortId};
use crate::input_error::FieldError;

/// The dragonfly of Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008,
/// section 3: groups of switches `tor0` ..., in which each switch has a link to every other, with global links between
/// all pairs of groups.
///
/// A path between groups has one global link, and up to one local link at either end: the minimal routing of section
/// 4.1. The paper leaves open which switches the global links join. Here global port `k` of a group, which is on its
/// switch `k / global_per_switch`, leads to the group that comes at position `k` in the list of the others, and begins
/// again at its end, as long as there is a port for every other group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// Number of groups, g.
    pub groups: u32,
    /// Number of switches in a group, a.
    pub switches_per_group: u32,
    /// Number of hosts on a switch, p.
    pub hosts_per_switch: u32,
    /// Number of global links of a switch, h.
    pub global_per_switch: u32,
    /// Rate of the links of hosts.
    pub host_rate: Rate,
    /// Delay of the links of hosts.
    pub host_delay: Time,
    /// Rate of the links within groups.
    pub local_rate: Rate,
    /// Delay of the links within groups.
    pub local_delay: Time,
    /// Rate of the links between groups.
    pub global_rate: Rate,
    /// Delay of the links between groups.
    pub global_delay: Time,
}

impl Dragonfly {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.groups < 2 {
            return Err(FieldError::new("groups", "`groups` must be at least 2"));
        }
        build::positive("switches_per_group", self.switches_per_group)?;
        build::positive("hosts_per_switch", self.hosts_per_switch)?;
        build::positive("global_per_switch", self.global_per_switch)?;
        build::size("groups", &[self.groups, self.switches_per_group, self.hosts_per_switch.saturating_add(1)])?;
        let (ports, others) = (self.global_ports(), u64::from(self.groups) - 1);
        if ports < others {
            let (a, h) = (self.switches_per_group, self.global_per_switch);
            let message =
                format!("a group has {ports} global links ({a} switches with {h}), and {others} other groups");
            let help = format!("take up to {} groups, or more global links", ports + 1);
            return Err(FieldError::new("groups", message).help(help));
        }
        let n_links = u64::from(self.groups) * (u64::from(self.switches_per_group).pow(2) + ports);
        if LINKS_MAX < n_links {
            let message = format!("the switches of this network have about {n_links} links");
            return Err(FieldError::new("switches_per_group", message).help(format!("up to {LINKS_MAX} are possible")));
        }
        build::rate("host_rate", self.host_rate)?;
        build::delay("host_delay", self.host_delay)?;
        build::rate("local_rate", self.local_rate)?;
        build::delay("local_delay", self.local_delay)?;
        build::rate("global_rate", self.global_rate)?;
        build::delay("global_delay", self.global_delay)
    }

    /// Returns the network.
    pub fn build(&self) -> Topology {
        let mut b = Builder::default();
        b.racks(self.groups * self.switches_per_group, self.hosts_per_switch);
        let switches = b.switches(self.groups * self.switches_per_group, "tor", Tier::Tor);
        b.host_links(&switches, self.host_rate, self.host_delay);
        for group in switches.chunks(self.switches_per_group as usize) {
            for (i, &a) in group.iter().enumerate() {
                group[i + 1..].iter().for_each(|&b_end| b.link(a, b_end, self.local_rate, self.local_delay));
            }
        }
        let first = b.n_links() as u32;
        for group in 0..self.groups {
            for (port, other) in self.links_to_later_groups(group) {
                let ends = [(group, port), (other, self.port_back(group, other, port))];
                let [a, b_end] = ends.map(|(group, port)| self.switch_of(&switches, group, port));
                b.link(a, b_end, self.global_rate, self.global_delay);
            }
        }
        let long_links = first..b.n_links() as u32;
        let ports = (2 * long_links.start..2 * long_links.end).map(PortId).collect();
        let mut topology = b.finish(&[]);
        topology.link_sets.insert("global-links".to_owned(), ports);
        Topology { long_links: LongLinks::new(long_links), ..topology }
    }

    fn global_ports(&self) -> u64 {
        u64::from(self.switches_per_group) * u64::from(self.global_per_switch)
    }

    /// Returns the global ports of a group that lead to groups of larger numbers, each with the group.
    fn links_to_later_groups(&self, group: u32) -> impl Iterator<Item = (u32, u32)> {
        let others = self.groups - 1;
        let n = self.global_ports() as u32 / others * others;
        let with_group = (0..n).map(move |port| (port, port % others + u32::from(group <= port % others)));
        with_group.filter(move |&(_, other)| group < other)
    }

    /// Returns the global port of `other` at the end of the link from `port` of `group`.
    fn port_back(&self, group: u32, other: u32, port: u32) -> u32 {
        let others = self.groups - 1;
        port / others * others + group - u32::from(other < group)
    }

    fn switch_of(&self, switches: &[NodeId], group: u32, port: u32) -> NodeId {
        switches[(group * self.switches_per_group + port / self.global_per_switch) as usize]
    }
}

/// Largest number of links between switches.
const LINKS_MAX: u64 = 4_000_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::routing::Routes;

    fn dragonfly(groups: u32, switches_per_group: u32, hosts_per_switch: u32, global_per_switch: u32) -> Dragonfly {
        let (rate, delay) = (Rate::from_gbps(100), Time::from_ns(100));
        Dragonfly {
            groups,
            switches_per_group,
            hosts_per_switch,
            global_per_switch,
            host_rate: rate,
            host_delay: delay,
            local_rate: rate,
            local_delay: delay,
            global_rate: rate,
            global_delay: Time::from_ns(500),
        }
    }

    /// The example of the paper's Fig. 5: p = h = 2, a = 4, so that there are N = 72 hosts in g = 9 groups.
    #[test]
    fn the_papers_example_has_one_link_between_groups() {
        let shape = dragonfly(9, 4, 2, 2);
        shape.check().expect("it is one");
        let t = shape.build();
        assert_eq!((t.hosts().count(), t.nodes.len()), (72, 72 + 36));
        assert_eq!(t.links.len(), 72 + 9 * 6 + 36);
        assert_eq!((t.link_sets["global-links"].len(), t.link_sets["all-switch-links"].len()), (72, 2 * (54 + 36)));
        let routes = Routes::new(&t);
        assert_eq!(routes.longest_path(), 5, "host, local, global, local, host");
        assert!(dragonfly(10, 4, 2, 2).check().is_err(), "a group has 8 global links");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Every pair of groups has as many links, no switch has more than its global ports, and no shortest path has
        /// two of them.
        #[test]
        fn minimal_paths_take_one_global_link(groups in 2_u32..8, a in 1_u32..5, p in 1_u32..3, h in 1_u32..4) {
            let shape = dragonfly(groups, a, p, h);
            prop_assume!(shape.check().is_ok());
            let t = shape.build();
            let group_of = |switch: NodeId| (switch.0 - groups * a * p) / a;
            let is_global = |port: PortId| t.long_links.length(port) == LongLinks::LENGTH;
            let (mut of_pair, mut of_switch) = (BTreeMap::new(), BTreeMap::new());
            for &port in &t.link_sets["global-links"] {
                prop_assert!(is_global(port));
                let (from, to) = (t.from(port), t.to(port));
                prop_assert_ne!(group_of(from), group_of(to));
                *of_pair.entry((group_of(from), group_of(to))).or_insert(0) += 1;
                *of_switch.entry(from).or_insert(0) += 1;
            }
            prop_assert_eq!(of_pair.len() as u32, groups * (groups - 1));
            prop_assert!(of_pair.values().all(|&n| n == a * h / (groups - 1)));
            prop_assert!(of_switch.values().all(|&n| n <= h));
            let routes = Routes::new(&t);
            for (src, dst) in t.hosts().flat_map(|src| t.hosts().map(move |dst| (src, dst))).filter(|(src, dst)| src != dst) {
                let edge = |host| t.to(routes.host_port(host).expect("a host"));
                let (mut at, mut n_global, mut n_links) = (edge(src), 0, 1);
                while at != dst {
                    let ports: Vec<PortId> = routes.next_hops(at, dst).collect();
                    prop_assert!(!ports.is_empty());
                    let port = ports[(src.0 + dst.0) as usize % ports.len()];
                    n_global += u32::from(is_global(port));
                    n_links += 1;
                    at = t.to(port);
                }
                prop_assert_eq!(n_global, u32::from(group_of(edge(src)) != group_of(edge(dst))));
                prop_assert_eq!(Some(n_links), routes.distance(src, dst));
                prop_assert!(n_links <= routes.longest_path() && n_links <= 5);
            }
        }
    }
}
