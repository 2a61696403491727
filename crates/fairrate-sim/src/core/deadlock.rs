//! Circles of pauses: each port waits for the next, so that none of them will ever send.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::Part;
use super::parallel::lock;
use crate::ids::PortId;

/// A class of an egress port.
type Queue = (PortId, u8);

/// Describes a circle of paused ports, each of which waits until the next has sent packets that came from it; `None`:
/// there is none.
pub(super) fn describe(parts: &[Mutex<Part>]) -> Option<String> {
    let mut waits: BTreeMap<Queue, BTreeSet<Queue>> = BTreeMap::new();
    for part in parts {
        lock(part).add_waits(&mut waits);
    }
    let circle = find_circle(&waits)?;
    let part = lock(parts.first()?);
    let topology = &part.world.run.config.topology;
    let port = |&(port, _): &Queue| topology.port_name(port);
    let ports: Vec<String> = circle.iter().chain(circle.first()).map(port).collect();
    Some(format!("pauses wait for one another in a circle: {} (class {})", ports.join(", "), circle.first()?.1))
}

impl Part {
    /// Adds an edge from each upstream queue to each paused queue of this part that holds packets from it: the packets
    /// came by the link that the upstream port sends to. Where egress queues pause, the edge is to the queue that has
    /// paused it.
    fn add_waits(&self, waits: &mut BTreeMap<Queue, BTreeSet<Queue>>) {
        let net = &self.world.net;
        for (egress, class, paused) in self.switches.backlog_pauses() {
            if net.ports[egress].is_pfc_paused(class) {
                let queue = (net.links.id_of(egress), class);
                for ingress in paused {
                    waits.entry((net.links.id_of(ingress.reverse()), class)).or_default().insert(queue);
                }
            }
        }
        let of_switches = self.own_ports().filter(|(_, port)| port.of_host.is_none());
        for (id, port) in of_switches.filter(|(_, p)| p.paused != 0) {
            for packet in port.contents(&net.pool).map(|packet| net.pool.get(packet)) {
                if !packet.kind.is_frame() && port.is_pfc_paused(packet.class) {
                    let upstream = (net.links.id_of(packet.ingress.reverse()), packet.class);
                    waits.entry(upstream).or_default().insert((id, packet.class));
                }
            }
        }
    }
}

/// Returns a circle of queues in which each waits for the next: the shortest one through the first queue that is in a
/// circle.
fn find_circle(waits: &BTreeMap<Queue, BTreeSet<Queue>>) -> Option<Vec<Queue>> {
    waits.keys().find_map(|&start| shortest_way_back(waits, start))
}

/// Returns the shortest circle through `start`, beginning with `start`.
fn shortest_way_back(waits: &BTreeMap<Queue, BTreeSet<Queue>>, start: Queue) -> Option<Vec<Queue>> {
    let mut before: BTreeMap<Queue, Queue> = BTreeMap::new();
    let mut reached = vec![start];
    let mut at = 0;
    while let Some(&queue) = reached.get(at) {
        at += 1;
        for &next in waits.get(&queue).into_iter().flatten() {
            if next == start {
                let way = std::iter::successors(Some(queue), |queue| before.get(queue).copied());
                let mut way: Vec<Queue> = way.collect();
                way.reverse();
                return Some(way);
            }
            before.entry(next).or_insert_with(|| {
                reached.push(next);
                queue
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(edges: &[(u32, u32)]) -> BTreeMap<Queue, BTreeSet<Queue>> {
        let mut waits: BTreeMap<Queue, BTreeSet<Queue>> = BTreeMap::new();
        for &(from, to) in edges {
            waits.entry((PortId(from), 3)).or_default().insert((PortId(to), 3));
        }
        waits
    }

    #[test]
    fn a_circle_is_found_behind_what_only_leads_to_it() {
        let ports = |edges: &[(u32, u32)]| {
            let circle = find_circle(&waits(edges))?;
            Some(circle.into_iter().map(|(port, _)| port.0).collect::<Vec<_>>())
        };
        assert_eq!(ports(&[(1, 2), (2, 3), (3, 4)]), None);
        assert_eq!(ports(&[(1, 5), (5, 7), (7, 9), (9, 5), (9, 2)]), Some(vec![5, 7, 9]));
        assert_eq!(ports(&[(4, 6), (6, 8), (8, 4), (6, 4)]), Some(vec![4, 6]), "the shortest");
    }
}
