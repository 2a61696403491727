//! Open-loop Poisson arrivals at a given load.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairrate_units::Time;

use super::peers::{PeerSet, Racks};
use super::{Block, Peers, SizeDistribution, few_enough, hosts};
use crate::config::FlowSpec;
use crate::ids::{NodeId, PortId};
use crate::input_error::FieldError;
use crate::rng::{Purpose, Stream};
use crate::topology::Topology;

/// Flows that arrive at every sending host as a Poisson process of its own.
///
/// Load is the payload offered by all senders together over the capacity of the named link set. The arrival rate
/// is the same at every sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Poisson {
    /// Distribution of flow sizes.
    pub sizes: SizeDistribution,
    /// Offered load on `link_set`: 0.6 for 60 %.
    pub load: f64,
    /// The link set the load is defined on; see [`Topology::link_sets`].
    pub link_set: String,
    /// The senders; `None`: all hosts. If they are given, only their own links count in `host-links` and `tor-uplinks`.
    pub hosts: Option<Vec<NodeId>>,
    /// The receivers of each sender's flows, drawn uniformly ...
    pub destinations: Peers,
    /// ... unless this is given: then from these hosts, without the sender.
    pub receivers: Option<Vec<NodeId>>,
    /// Start of the arrivals.
    pub start: Time,
    /// End of the arrivals: none at this time or later; [`Time::MAX`]: `max_flows` ends them.
    pub stop: Time,
    /// Largest number of flows; the earliest ones are kept.
    pub max_flows: Option<u64>,
}

impl Poisson {
    /// Returns the flows.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        let senders = self.senders(topology)?;
        let racks = Racks::new(topology);
        let receivers = self.receivers.as_deref().map(|named| hosts("receivers", named, topology)).transpose()?;
        let peers = |sender| match &receivers {
            Some(receivers) => PeerSet::without(receivers, sender),
            None => racks.peers(sender, self.destinations),
        };
        let (field, name) = match &receivers {
            Some(_) => ("receivers", "receivers"),
            None => ("destinations", self.destinations.name()),
        };
        for &sender in &senders {
            peers(sender).at_least(1, field, topology, sender, name)?;
        }
        let flows_per_s = self.flows_per_s(topology, &senders)?;
        self.check_number(flows_per_s)?;
        let mean_gap_ps = senders.len() as f64 * 1e12 / flows_per_s;

        let mut block = Block::new(seed, group);
        let mut draws: Vec<Draws> = senders.iter().map(|&sender| Draws::new(&block, sender)).collect();
        let mut next = BinaryHeap::new();
        for (i, draws) in draws.iter_mut().enumerate() {
            next.push(Reverse((after(self.start, mean_gap_ps, &mut draws.arrivals), i)));
        }
        let mut left = self.max_flows.unwrap_or(u64::MAX);
        while let Some(Reverse((at, i))) = next.pop() {
            if self.stop <= at || left == 0 {
                break;
            }
            left -= 1;
            let (sender, draws) = (senders[i], &mut draws[i]);
            let bytes = self.sizes.sample(draws.sizes.uniform());
            let destination = peers(sender).pick(&mut draws.destinations);
            block.add(sender, destination, bytes, at, Time::MAX);
            next.push(Reverse((after(at, mean_gap_ps, &mut draws.arrivals), i)));
        }
        Ok(block.finish())
    }

    /// Returns the approximate number of flows.
    ///
    /// # Errors
    /// As [`Poisson::generate`].
    pub fn expected_flows(&self, topology: &Topology) -> Result<f64, FieldError> {
        let flows_per_s = self.flows_per_s(topology, &self.senders(topology)?)?;
        let most = self.max_flows.map_or(f64::INFINITY, |n| n as f64);
        Ok(most.min(flows_per_s * self.stop.saturating_sub(self.start).as_secs_f64()))
    }

    /// Returns the sending hosts, ascending.
    fn senders(&self, topology: &Topology) -> Result<Vec<NodeId>, FieldError> {
        self.hosts.as_deref().map_or_else(|| Ok(topology.hosts().collect()), |named| hosts("hosts", named, topology))
    }

    /// Returns the arrivals per second at all senders together.
    fn flows_per_s(&self, topology: &Topology, senders: &[NodeId]) -> Result<f64, FieldError> {
        if !(self.load.is_finite() && 0.0 < self.load) {
            return Err(FieldError::new("load", format!("`load` must be above 0, not {}", self.load))
                .help("write 0.6 for 60 %"));
        }
        let Some(ports) = topology.link_sets.get(&self.link_set) else {
            let message = format!("this topology has no link set `{}`", self.link_set);
            let names: Vec<&str> = topology.link_sets.keys().map(String::as_str).collect();
            let help = fairrate_text::did_you_mean(&self.link_set, names.iter().copied())
                .unwrap_or_else(|| format!("it has {}", names.join(", ")));
            return Err(FieldError::new("link_set", message).help(help));
        };
        let capacity_bps = if self.hosts.is_some() && matches!(&*self.link_set, "host-links" | "tor-uplinks") {
            topology.capacity_bps(&own_ports(topology, ports, senders))
        } else {
            topology.capacity_bps(ports)
        };
        Ok(self.load * capacity_bps / (8.0 * self.sizes.mean()))
    }

    /// Checks that the process ends, with a number of flows that fits into memory.
    fn check_number(&self, flows_per_s: f64) -> Result<(), FieldError> {
        if self.stop <= self.start {
            return Err(FieldError::new("stop", "`stop` must be after `start`"));
        }
        match (self.stop, self.max_flows) {
            (_, Some(n)) => few_enough("max_flows", n as f64),
            (Time::MAX, None) => Err(FieldError::new("stop", "arrivals never end").help("give `stop` or `max_flows`")),
            (stop, None) => few_enough("load", flows_per_s * (stop - self.start).as_secs_f64()),
        }
    }
}

/// Returns the ports of a link set that belong to the senders or their ToRs.
fn own_ports(topology: &Topology, ports: &[PortId], senders: &[NodeId]) -> Vec<PortId> {
    let mut own = vec![false; topology.nodes.len()];
    for &sender in senders {
        own[sender.index()] = true;
    }
    for (host, link) in topology.host_links() {
        if own[host.index()] {
            own[link.a.index()] = true;
            own[link.b.index()] = true;
        }
    }
    ports.iter().copied().filter(|&port| own[topology.from(port).index()]).collect()
}

/// The random streams of a sender.
struct Draws {
    arrivals: Stream,
    sizes: Stream,
    destinations: Stream,
}

impl Draws {
    fn new(block: &Block, sender: NodeId) -> Self {
        Self {
            arrivals: block.stream(sender, Purpose::Arrivals),
            sizes: block.stream(sender, Purpose::Sizes),
            destinations: block.stream(sender, Purpose::Destinations),
        }
    }
}

/// Returns the next arrival of a Poisson process after `t`.
pub(super) fn after(t: Time, mean_gap_ps: f64, stream: &mut Stream) -> Time {
    t.saturating_add(Time::from_ps(stream.exponential(mean_gap_ps) as u64))
}
