//! The order in which the ranks of a job are put on its hosts.

use crate::ids::NodeId;
use crate::input_error::FieldError;
use crate::rng::{Purpose, Stream};
use crate::topology::Topology;

/// An order of ranks on hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The order of the hosts: with servers, all ranks of a server follow each other.
    Contiguous,
    /// All hosts that are first in their servers, in the order of servers, then all that are second, and so on: those
    /// of a rail follow each other.
    ByRail,
    /// Any order is as likely as any other.
    Random,
}

impl Placement {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("contiguous", Self::Contiguous), ("by-rail", Self::ByRail), ("random", Self::Random)];

    /// Returns `hosts` in the order of ranks. `seed` and the traffic block `group` are for a random one.
    ///
    /// # Errors
    /// By rail: the hosts are not all in servers.
    pub fn order(
        self,
        topology: &Topology,
        mut hosts: Vec<NodeId>,
        seed: u64,
        group: u32,
    ) -> Result<Vec<NodeId>, FieldError> {
        match self {
            Self::Contiguous => {}
            Self::ByRail => {
                let place = |host: &NodeId| topology.place_in_server(*host);
                if hosts.iter().any(|host| place(host).is_none()) {
                    let error = FieldError::new("placement", "there are no servers, and so no rails");
                    return Err(error.help("add for instance `scale_up = { size = 8 }` to `[topology]`"));
                }
                hosts.sort_by_key(place);
            }
            Self::Random => Stream::new(seed, u64::from(group), Purpose::Placement).shuffle(&mut hosts),
        }
        Ok(hosts)
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::{Rate, Time};

    use super::*;
    use crate::topology::{ScaleUp, Star};

    fn star(n: u32) -> (Topology, Vec<NodeId>) {
        let star = Star { hosts: n, rate: Rate::from_gbps(100), delay: Time::from_us(1) };
        let topology = star.build();
        let hosts = topology.hosts().collect();
        (topology, hosts)
    }

    #[test]
    fn rails_follow_each_other() {
        let (mut topology, hosts) = star(6);
        assert!(Placement::ByRail.order(&topology, hosts.clone(), 1, 0).is_err(), "there are no servers");
        topology.add_servers(&ScaleUp { size: 3, rate: Rate::from_gbps(2_880), delay: Time::from_ns(25) });
        let order = Placement::ByRail.order(&topology, hosts.clone(), 1, 0).expect("there are servers");
        assert_eq!(order, [0, 3, 1, 4, 2, 5].map(|at| hosts[at]));
        assert_eq!(Placement::Contiguous.order(&topology, hosts.clone(), 1, 0), Ok(hosts));
    }

    #[test]
    fn random_orders_differ_by_seed_and_block() {
        let (topology, hosts) = star(64);
        let order = |seed, group| Placement::Random.order(&topology, hosts.clone(), seed, group).expect("it can");
        let (one, mut sorted) = (order(1, 0), order(1, 0));
        sorted.sort_unstable();
        assert_eq!(sorted, hosts);
        assert_eq!(one, order(1, 0));
        assert!(one != hosts && one != order(2, 0) && one != order(1, 1));
    }
}
