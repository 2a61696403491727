//! The least time of a collective.

use std::collections::BTreeMap;

use fairrate_units::{Bytes, Time};

use super::Op;
use crate::ids::NodeId;
use crate::topology::Topology;

/// Returns a time that no algorithm is faster than: the links of a rank carry at line rate, without headers, what it
/// has to send. With scale-up networks a rank has two links, and the NICs of a server together carry what it has to
/// send to others.
pub(super) fn least_time(op: Op, bytes: Bytes, topology: &Topology, ranks: &[NodeId]) -> Time {
    let rates = host_rates(topology);
    let rate = |end: NodeId| rates.get(&end).copied().unwrap_or(0);
    let slowest_nic = ranks.iter().map(|&rank| rate(rank)).min().unwrap_or(1);
    let mut per_server: BTreeMap<u32, u64> = BTreeMap::new();
    for server in ranks.iter().filter_map(|&rank| topology.server(rank)) {
        *per_server.entry(server).or_default() += 1;
    }
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

/// Returns the same of an exchange with the bytes of each pair of ranks: what a rank sends or receives, or what the
/// ranks of a server exchange with all others.
pub(super) fn least_time_of_matrix(matrix: &[u64], topology: &Topology, ranks: &[NodeId]) -> Time {
    let (rates, n) = (host_rates(topology), ranks.len());
    let rate = |end: NodeId| u128::from(rates.get(&end).copied().unwrap_or(0));
    let server = |rank: usize| topology.server(ranks[rank]);
    let is_inside = |a: usize, b: usize| server(a).is_some() && server(a) == server(b);
    let mut least_ps = 0;
    let mut least = |bytes: u128, bps: u128| least_ps = (bytes * 8_000_000_000_000 / bps.max(1)).max(least_ps);
    // For each server, the bytes that leave it and those that come, and the rates of its NICs.
    let mut of_servers: BTreeMap<u32, [u128; 3]> = BTreeMap::new();
    for a in 0..n {
        let others = || (0..n).filter(move |&b| b != a);
        let sum = |of: &dyn Fn(usize) -> u64, outside: bool| -> u128 {
            others().filter(|&b| !outside || !is_inside(a, b)).map(|b| u128::from(of(b))).sum()
        };
        let (sent, received) = (|b: usize| matrix[a * n + b], |b: usize| matrix[b * n + a]);
        let up = topology.scale_up_end(ranks[a]).filter(|_| others().any(|b| is_inside(a, b)));
        let both = rate(ranks[a]) + up.map_or(0, rate);
        least(sum(&sent, false).max(sum(&received, false)), both);
        if let Some(server) = server(a) {
            let [out, come, nics] = of_servers.entry(server).or_default();
            (*out, *come, *nics) = (*out + sum(&sent, true), *come + sum(&received, true), *nics + rate(ranks[a]));
        }
    }
    for [out, come, nics] in of_servers.into_values() {
        least(out.max(come), nics);
    }
    Time::from_ps(u64::try_from(least_ps).unwrap_or(u64::MAX))
}

/// Returns the rate of each host and of each end point on a scale-up network, in bits per second: that of its link, or
/// of both if it has two ports.
fn host_rates(topology: &Topology) -> BTreeMap<NodeId, u64> {
    let mut rates: BTreeMap<NodeId, u64> = BTreeMap::new();
    for (end, link) in topology.host_links() {
        let host = topology.second_ports.host_of(end).unwrap_or(end);
        *rates.entry(host).or_default() += link.rate.as_bps();
    }
    rates
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
    use fairrate_units::Rate;

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
        // The same all-to-all as a matrix; and all that one rank sends, by both of its networks.
        let even = [125_000; 64];
        assert_eq!(least_time_of_matrix(&even, &t, &all), Time::from_us(40));
        let mut one = [0; 64];
        one[..8].fill(1_125_000);
        assert_eq!(
            least_time_of_matrix(&one, &t, &all),
            Time::from_us(90),
            "4·1.125 MB by four NICs; 7·1.125 at 900 Gb/s take 70"
        );
        // A rank of each server: 2·1/2 MB by a NIC.
        assert_eq!(least_time(Op::AllReduce, bytes, &t, &[all[0], all[4]]), Time::from_us(80));
    }
}
