//! Goodput, loads and completion times within the measuring window of a run.

use std::collections::{BTreeMap, HashMap};

use fairrate_sim::topology::{Tier, Topology};
use fairrate_sim::{FlowId, FlowOutcome, FlowSpec, GroupTotals, NodeId, RunTotals, SimConfig};
use fairrate_units::{Bytes, Time};
use serde::{Deserialize, Serialize};

use crate::summary::Timed;

/// The measuring window of a run that has ended, and the payload delivered within it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Start of the window.
    pub from_ns: u64,
    /// End of the window: the one of `[measure]`, or the end of the run if that was earlier.
    pub until_ns: u64,
    /// Payload bytes that receivers got in order within the window.
    pub goodput_bytes: u64,
    /// Offered and carried load by tier of links.
    pub load: Vec<TierLoad>,
    /// The share of each traffic block, if there are several and at most [`GroupTotals::MOST`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupShare>,
}

/// The share of a traffic block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupShare {
    /// Number of the block, from 0, or the group that a flow list gives.
    pub group: u32,
    /// The algorithm of its first flow.
    pub cc: String,
    /// The transport of that flow, as `tcp`.
    pub transport: String,
    /// Flows of the block that have started.
    pub flows: u64,
    /// Payload bytes that receivers got in order within the window.
    pub goodput_bytes: u64,
    /// Jain index of the bytes that each endless flow delivered within the window; `None` if there are fewer than two.
    pub jain: Option<f64>,
    /// Payload bytes sent again, in the whole run.
    pub retransmitted_bytes: u64,
    /// Data packets dropped in the whole run.
    pub drops: u64,
    /// Data packets that arrived with an ECN mark, in the whole run.
    pub marked: u64,
}

/// The load on a set of links within the measuring window, in payload bytes over the capacity of the links, as `load`
/// in `[[traffic]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TierLoad {
    /// The link set, as `tor-uplinks`.
    pub links: String,
    /// The load of all flows that started within the window; `None` if one of them is endless.
    pub offered: Option<f64>,
    /// The load that receivers got in order within the window.
    pub carried: f64,
}

/// Link sets that a flow crosses at most once, from the hosts upwards.
const TIERS: [&str; 4] = ["host-links", "tor-uplinks", "agg-uplinks", "tor-downlinks"];

/// Payload bytes of all flows, and of the flows that cross each of [`TIERS`].
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    all: u64,
    by_tier: [u64; TIERS.len()],
}

impl Sums {
    fn add(&mut self, bytes: u64, crossed: [bool; TIERS.len()]) {
        self.all += bytes;
        for (sum, _) in self.by_tier.iter_mut().zip(crossed).filter(|(_, crossed)| *crossed) {
            *sum += bytes;
        }
    }
}

/// The measurements of a run within its window.
pub(super) struct Meter {
    from: Time,
    until: Option<Time>,
    /// Capacity of each of [`TIERS`] in bit/s; 0 if the network has no such links.
    capacity_bps: [f64; TIERS.len()],
    /// The rack and pod of each node.
    places: Vec<(u32, u32)>,
    /// Delivered bytes at the edges of the window so far.
    snapshots: Vec<Sums>,
    groups: GroupMeter,
    /// Delivered bytes of all flows at the end (`delivered`), and size of the finished flows of the window (`offered`).
    delivered: Sums,
    offered: Sums,
    has_endless: bool,
    /// Finished flows of the window.
    pub finished: Vec<Timed>,
    /// Unfinished flows of the window.
    unfinished: Vec<Unfinished>,
}

/// A finite flow that has not finished; it may not have started either.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    bytes: u64,
    start: Time,
    ideal: Time,
    crossed: [bool; TIERS.len()],
}

impl Meter {
    /// Returns a meter for a run on `topology`.
    pub fn new(config: &SimConfig, from: Time, until: Option<Time>) -> Self {
        let topology = &config.topology;
        let capacity = |tier: &str| match topology.link_sets.get(tier) {
            // With circuits, traffic between racks need not cross the uplinks, so there is no load of uplinks.
            Some(_) if tier == "tor-uplinks" && topology.circuits.is_some() => 0.0,
            Some(ports) => topology.capacity_bps(ports),
            None => 0.0,
        };
        Self {
            from,
            until,
            capacity_bps: TIERS.map(capacity),
            places: places(topology),
            snapshots: Vec::new(),
            groups: GroupMeter::new(config),
            delivered: Sums::default(),
            offered: Sums::default(),
            has_endless: false,
            finished: Vec::new(),
            unfinished: Vec::new(),
        }
    }

    /// Returns `true` if the window begins or ends at `t`.
    pub fn has_edge(&self, t: Time) -> bool {
        t == self.from || self.until == Some(t)
    }

    /// Adds the state of all flows at an edge of the window, and returns the bytes of all flows together.
    pub fn snapshot(&mut self, specs: &[FlowSpec], delivered: &mut dyn Iterator<Item = (FlowId, u64)>) -> u64 {
        let mut sums = Sums::default();
        let edge = self.snapshots.len();
        for (flow, bytes) in delivered.filter(|(_, bytes)| 0 < *bytes) {
            sums.add(bytes, self.crossed(&specs[flow.index()]));
            self.groups.add(edge, &specs[flow.index()], flow, bytes);
        }
        self.snapshots.push(sums);
        sums.all
    }

    /// Adds the outcome of a flow.
    pub fn flow(&mut self, spec: &FlowSpec, outcome: &FlowOutcome) {
        let crossed = self.crossed(spec);
        self.delivered.add(outcome.delivered_bytes, crossed);
        self.groups.end(spec, outcome);
        let is_later = self.until.is_some_and(|until| until < outcome.start);
        if spec.bytes == Bytes::MAX {
            // Its bytes are carried, and it offers no load: what it has asked for has no end.
            self.has_endless |= !is_later && self.from < spec.stop;
            return;
        }
        if outcome.start < self.from || is_later {
            return;
        }
        let (bytes, start, ideal) = (spec.bytes.as_u64(), outcome.start, outcome.ideal_fct);
        if let Some(fct) = outcome.fct {
            self.offered.add(bytes, crossed);
            self.finished.push(Timed::new(bytes, fct, ideal));
        } else {
            self.unfinished.push(Unfinished { bytes, start, ideal, crossed });
        }
    }

    /// Takes the flows `specs`, whose outcomes were added, out of the flows of their blocks, as the run ended before
    /// they started. Returns their number.
    pub fn not_started<'a>(&mut self, specs: impl Iterator<Item = &'a FlowSpec>) -> u64 {
        let mut n = 0;
        for spec in specs {
            n += 1;
            if let Some(share) = self.groups.shares.get_mut(spec.group as usize) {
                share.flows -= 1;
            }
        }
        n
    }

    /// Returns the flows of the window that had not finished at `end`, with the least time that each of them will have
    /// taken.
    pub fn unfinished_at(&self, end: Time) -> Vec<Timed> {
        self.open_at(end).map(|f| Timed::new(f.bytes, (end - f.start).max(f.ideal), f.ideal)).collect()
    }

    fn open_at(&self, end: Time) -> impl Iterator<Item = &Unfinished> {
        self.unfinished.iter().filter(move |f| f.start <= end)
    }

    /// Returns the measurements of the window.
    pub fn measured(&self, totals: &RunTotals) -> Measured {
        let from = self.from.min(totals.end);
        let until = self.until.unwrap_or(totals.end).min(totals.end).max(from);
        let before = self.snapshots.first().copied().unwrap_or(self.delivered);
        let after = self.snapshots.get(1).copied().unwrap_or(self.delivered);
        let seconds = (until - from).as_secs_f64();
        let mut offered = self.offered;
        self.open_at(totals.end).for_each(|f| offered.add(f.bytes, f.crossed));
        let load = |tier: usize| {
            let most_bytes = self.capacity_bps[tier] * seconds / 8.0;
            let share = |bytes: u64| bytes as f64 / most_bytes;
            (0.0 < most_bytes).then(|| TierLoad {
                links: TIERS[tier].to_owned(),
                offered: (!self.has_endless).then(|| share(offered.by_tier[tier])),
                carried: share(after.by_tier[tier] - before.by_tier[tier]),
            })
        };
        Measured {
            from_ns: whole_ns(from),
            until_ns: whole_ns(until),
            goodput_bytes: after.all - before.all,
            load: (0..TIERS.len()).filter_map(load).collect(),
            groups: self.groups.shares(self.snapshots.len()),
        }
    }

    /// Adds the totals of each traffic block at the end of the run.
    pub fn note_groups(&mut self, totals: &[GroupTotals]) {
        for (share, totals) in self.groups.shares.iter_mut().zip(totals) {
            (share.drops, share.marked) = (totals.drops, totals.marked);
        }
    }

    /// Returns, for each of [`TIERS`], `true` if a flow crosses it.
    fn crossed(&self, spec: &FlowSpec) -> [bool; TIERS.len()] {
        let (src, dst) = (self.places[spec.src.index()], self.places[spec.dst.index()]);
        [true, src.0 != dst.0, src.1 != dst.1, true]
    }
}

/// The shares of traffic blocks so far.
#[derive(Default)]
struct GroupMeter {
    /// By group; empty if there are one or too many.
    shares: Vec<GroupShare>,
    /// The bytes of each group and of each endless flow at the edges of the window, and at the end of the run.
    edges: [Vec<u64>; 3],
    endless: [HashMap<FlowId, u64>; 3],
    /// The group of each endless flow.
    group_of: BTreeMap<FlowId, u32>,
}

impl GroupMeter {
    fn new(config: &SimConfig) -> Self {
        let n_groups = config.flows.iter().map(|flow| flow.group as usize + 1).max().unwrap_or(0);
        if !(2..=GroupTotals::MOST).contains(&n_groups) {
            return Self::default();
        }
        let mut shares: Vec<GroupShare> =
            (0..n_groups as u32).map(|group| GroupShare { group, ..GroupShare::default() }).collect();
        let mut group_of = BTreeMap::new();
        for (id, flow) in (0..).map(FlowId).zip(&config.flows) {
            let share = &mut shares[flow.group as usize];
            if share.cc.is_empty() {
                let (transport, cc) = config.stack(flow.stack);
                (share.cc, share.transport) = (cc.info().name.to_owned(), transport.kind.name().to_owned());
            }
            if flow.bytes == Bytes::MAX {
                group_of.insert(id, flow.group);
            }
        }
        let edges = std::array::from_fn(|_| vec![0; n_groups]);
        Self { shares, edges, endless: Default::default(), group_of }
    }

    /// Adds what a flow has delivered at an edge of the window, 0 or 1, or at the end.
    fn add(&mut self, edge: usize, spec: &FlowSpec, flow: FlowId, bytes: u64) {
        let Some(edges) = self.edges.get_mut(edge).filter(|_| !self.shares.is_empty()) else { return };
        edges[spec.group as usize] += bytes;
        if spec.bytes == Bytes::MAX {
            self.endless[edge].insert(flow, bytes);
        }
    }

    /// Adds the outcome of a flow.
    fn end(&mut self, spec: &FlowSpec, outcome: &FlowOutcome) {
        self.add(2, spec, outcome.flow, outcome.delivered_bytes);
        if let Some(share) = self.shares.get_mut(spec.group as usize) {
            share.flows += 1;
            share.retransmitted_bytes += outcome.retransmitted_bytes;
        }
    }

    /// Returns what each group got between the edges of the window, of which `n_edges` have passed.
    fn shares(&self, n_edges: usize) -> Vec<GroupShare> {
        let (from, until) = (if n_edges == 0 { 2 } else { 0 }, if n_edges < 2 { 2 } else { 1 });
        let of_group = |share: &GroupShare| {
            let group = share.group as usize;
            let flows = self.group_of.iter().filter(|(_, of)| **of == share.group);
            let at = |edge: usize, flow| self.endless[edge].get(flow).copied().unwrap_or(0);
            let bytes: Vec<f64> = flows.map(|(flow, _)| (at(until, flow) - at(from, flow)) as f64).collect();
            let goodput_bytes = self.edges[until][group] - self.edges[from][group];
            let jain = if bytes.len() < 2 { None } else { jain(&bytes) };
            GroupShare { goodput_bytes, jain, ..share.clone() }
        };
        // Flow lists leave out numbers; a block none of whose flows has started is there.
        self.shares.iter().filter(|share| !share.cc.is_empty()).map(of_group).collect()
    }
}

/// Returns the Jain index `(sum x)^2 / (n sum x^2)`: 1 when all shares are equal, `1/n` when a single share is
/// everything. Returns `None` without values or when all are zero.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares == 0.0 { None } else { Some(sum * sum / (shares.len() as f64 * squares)) }
}

/// Returns the rack and pod of each node. The ToRs of a pod share aggregation switches; the pod of a host is the first
/// pod of its ToR.
fn places(topology: &Topology) -> Vec<(u32, u32)> {
    let tier = |node: NodeId| topology.nodes[node.index()].tier;
    let mut places: Vec<(u32, u32)> = topology.nodes.iter().map(|node| (node.rack, u32::MAX)).collect();
    // From the top down: the pod of a ToR is set before the pods of its hosts, which depend on it.
    for (above, below) in
        [(Tier::Aggregation, Tier::Tor), (Tier::Tor, Tier::Nic), (Tier::Nic, Tier::Host), (Tier::Tor, Tier::Host)]
    {
        for link in &topology.links {
            for (up, down) in [(link.a, link.b), (link.b, link.a)] {
                if tier(up) == above && tier(down) == below {
                    let pod = if above == Tier::Aggregation { up.0 } else { places[up.index()].1 };
                    let known = &mut places[down.index()].1;
                    *known = pod.min(*known);
                }
            }
        }
    }
    places
}

/// Rounds to the nearest nanosecond.
fn whole_ns(t: Time) -> u64 {
    (t.as_ps() + 500) / 1_000
}
