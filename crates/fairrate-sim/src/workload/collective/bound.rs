//! The least time of a collective.

use std::collections::BTreeMap;

use fairrate_units::{Bytes, Rate, Time};

use super::Op;
use crate::ids::NodeId;
use crate::topology::Topology;

/// Returns a time that no algorithm is faster than: the links of a rank carry at line rate, without headers, what it has to send. With
/// scale-up networks a rank has two links, and the NICs of a server together carry what it has to send to others.
pub(super) fn least_time(op: Op, bytes: Bytes, topology: &Topology, ranks: &[NodeId]) -> Time {
    let mut rates: BTreeMap<NodeId, Rate> = BTreeMap::new();
    for link in &topology.links {
        for end in [link.a, link.b].into_iter().filter(|&end| topology.is_host(end)) {
            rates.entry(end).or_insert(link.rate);
        }
    }
    let rate = |end: NodeId| rates.get(&end).map_or(0, |rate| rate.as_bps());
    let slowest_nic = ranks.iter().map(|&rank| rate(rank)).min().unwrap_or(1);
    let mut per_server: BTreeMap<u32, u64> = BTreeMap::new();
    ranks
        .iter()
        .filter_map(|&rank| topology.server(rank))
        .for_each(|server| *per_server.entry(server).or_default() += 1);
    let (fewest, most) = (per_server.values().min().copied(), per_server.values().max().copied().unwrap_or(0));
    let (n_servers, has_others) = (per_server.len(), 1 < per_server.len());
    if most < 2 {
        return time_of(op, bytes, ranks.len(), slowest_nic);
    }
    let of_rank = |&rank: &NodeId| {
        let inside = topology.scale_up_end(rank).map_or(0, rate);
        inside.saturating_add(if has_others { rate(rank) } else { 0 })
    };
    let of_ranks = time_of(op, bytes, ranks.len(), ranks.iter().map(of_rank).min().unwrap_or(1));
    if !has_others || fewest != Some(most) {
        return of_ranks;
    }
    // A rank of an all-to-all has a buffer of its own; otherwise those of a server have one between them.
    let nics = if op == Op::AllToAll { 1 } else { most };
    of_ranks.max(time_of(op, bytes, n_servers, slowest_nic.saturating_mul(nics)))
}

/// Returns the time in which each of `n` sends its share of the data at `bps` bits per second.
fn time_of(op: Op, bytes: Bytes, n: usize, bps: u64) -> Time {
    let (more, less) = op.bus_factor(n);
    let bits = u128::from(bytes.as_u64()) * 8 * u128::from(more);
    let ps = bits * 1_000_000_000_000 / (u128::from(less) * u128::from(bps.max(1)));
    Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{ScaleUp, Star};

    /// 8 hosts at 100 Gb/s in two servers of four at 800 Gb/s, and 1 MB of each.
    #[test]
    fn two_networks_carry_the_data() {
        let mut t = Star { hosts: 8, rate: Rate::from_gbps(100), delay: Time::ZERO }.build();
        let (all, bytes) = ((0..8).map(NodeId).collect::<Vec<_>>(), Bytes::new(1_000_000));
        // 2·7/8 MB at 100 Gb/s.
        assert_eq!(least_time(Op::AllReduce, bytes, &t, &all), Time::from_us(140));
        t.add_servers(&ScaleUp { size: 4, rate: Rate::from_gbps(800), delay: Time::ZERO });
        // A server sends 2·1/2 MB by four NICs.
        assert_eq!(least_time(Op::AllReduce, bytes, &t, &all), Time::from_us(20));
        // Each NIC has 1/2 MB of its own rank.
        assert_eq!(least_time(Op::AllToAll, bytes, &t, &all), Time::from_us(40));
        // 2·3/4 MB at 800 Gb/s.
        assert_eq!(least_time(Op::AllReduce, bytes, &t, &all[..4]), Time::from_us(15));
        // A rank of each server: 2·1/2 MB by a NIC.
        assert_eq!(least_time(Op::AllReduce, bytes, &t, &[all[0], all[4]]), Time::from_us(80));
    }
}
