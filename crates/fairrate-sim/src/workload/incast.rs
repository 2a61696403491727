//! Many senders, one receiver: a single incast, and the stream of file requests of PowerTCP section 4.1.

use fairrate_units::{Bytes, Time};

use super::peers::{PeerSet, Racks};
use super::poisson::after;
use super::{Block, ENDLESS_FROM, Peers, at_least_a_byte, few_enough, host};
use crate::config::FlowSpec;
use crate::ids::NodeId;
use crate::input_error::FieldError;
use crate::rng::{Purpose, Stream};
use crate::topology::Topology;

/// The senders of an incast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Senders {
    /// The listed hosts, in this order.
    Hosts(Vec<NodeId>),
    /// A number of hosts, drawn without repetition from the receiver's peers.
    Count {
        /// Number of senders.
        n: u32,
        /// The peers they are drawn from.
        from: Peers,
    },
}

/// Senders that start together towards one receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incast {
    /// The receiver.
    pub receiver: NodeId,
    /// The senders.
    pub senders: Senders,
    /// Bytes each sender sends; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// Start of the senders, before jitter.
    pub start: Time,
    /// End of endless flows; [`Time::MAX`]: never.
    pub stop: Time,
    /// Upper bound of the uniform random delay of each start.
    pub jitter: Time,
}

/// The hosts that answer a file request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responders {
    /// Any hosts outside the requester's rack.
    OtherRacks,
    /// Hosts of one random rack that is not the requester's.
    OneOtherRack,
}

impl Responders {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("other-racks", Self::OtherRacks), ("one-other-rack", Self::OneOtherRack)];
}

/// The rate of a host's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestRate {
    /// Requests per second.
    PerSecond(f64),
    /// Payload of the answers over the capacity of the host's link: 0.1 for 10 %.
    Load(f64),
}

/// A distributed file system (PowerTCP section 4.1): every host requests files as a Poisson process, and the
/// responders of a request send their equal parts at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct IncastQueries {
    /// Bytes of a file; each responder sends this divided by `responders`, rounded up.
    pub request_size: Bytes,
    /// Number of hosts that answer a request.
    pub responders: u32,
    /// The hosts they are drawn from.
    pub from: Responders,
    /// Requests of each host. (The public PowerTCP code also has one process per server.)
    pub rate: RequestRate,
    /// Start of the requests.
    pub start: Time,
    /// End of the requests: none at this time or later.
    pub stop: Time,
}

impl Incast {
    /// Returns the flows.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        at_least_a_byte("bytes", self.bytes)?;
        let mut block = Block::new(seed, group);
        let senders = self.senders.resolve(topology, self.receiver, &block)?;
        for (i, &sender) in (0..).zip(&senders) {
            // The stream depends on the place in the list, so that a further sender does not move the start of another.
            let mut jitter = block.stream(NodeId(i), Purpose::Jitter);
            let start = self.start.saturating_add(Time::from_ps(jitter.below(self.jitter.as_ps())));
            if ENDLESS_FROM <= self.bytes && self.stop <= start {
                return Err(FieldError::new("stop", "`stop` must be after `start`"));
            }
            block.add(sender, self.receiver, self.bytes, start, self.stop);
        }
        Ok(block.finish())
    }
}

impl Senders {
    /// Returns the sending hosts.
    pub(super) fn resolve(
        &self,
        topology: &Topology,
        receiver: NodeId,
        block: &Block,
    ) -> Result<Vec<NodeId>, FieldError> {
        host("receiver", topology, receiver)?;
        match self {
            Self::Hosts(hosts) => {
                if hosts.is_empty() {
                    return Err(FieldError::new("senders", "`senders` is empty"));
                }
                for &sender in hosts {
                    if host("senders", topology, sender)? == receiver {
                        let name = &topology.nodes[receiver.index()].name;
                        return Err(FieldError::new("senders", format!("host `{name}` cannot send to itself")));
                    }
                }
                Ok(hosts.clone())
            }
            Self::Count { n: 0, .. } => Err(FieldError::new("senders", "`senders` must be at least 1")),
            Self::Count { n, from } => {
                let racks = Racks::new(topology);
                let peers = racks.peers(receiver, *from);
                peers.at_least(*n as usize, "senders", topology, receiver, from.name())?;
                Ok(peers.sample(*n as usize, &mut block.stream(receiver, Purpose::Participants)))
            }
        }
    }
}

impl IncastQueries {
    /// Returns the flows.
    ///
    /// # Errors
    /// Names the parameter that cannot be used on this topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        let racks = Racks::new(topology);
        self.check(topology, &racks)?;
        let part = Bytes::new(self.request_size.as_u64().div_ceil(u64::from(self.responders)));
        let mut block = Block::new(seed, group);
        for requester in topology.hosts() {
            let mut arrivals = block.stream(requester, Purpose::Arrivals);
            let mut participants = block.stream(requester, Purpose::Participants);
            let mean_gap_ps = 1e12 / self.requests_per_s(topology, requester);
            let mut at = after(self.start, mean_gap_ps, &mut arrivals);
            while at < self.stop {
                for responder in self.responders(requester, &racks, &mut participants) {
                    block.add(responder, requester, part, at, Time::MAX);
                }
                at = after(at, mean_gap_ps, &mut arrivals);
            }
        }
        Ok(block.finish())
    }

    /// Returns the approximate number of flows.
    pub fn expected_flows(&self, topology: &Topology) -> f64 {
        let requests_per_s: f64 = topology.hosts().map(|host| self.requests_per_s(topology, host)).sum();
        let span = self.stop.saturating_sub(self.start);
        requests_per_s * span.as_secs_f64() * f64::from(self.responders)
    }

    /// Returns the requests per second of a host.
    fn requests_per_s(&self, topology: &Topology, host: NodeId) -> f64 {
        match self.rate {
            RequestRate::PerSecond(rate) => rate,
            RequestRate::Load(load) => {
                let links = topology.host_links().filter(|&(of, _)| of == host);
                let capacity_bps: f64 = links.map(|(_, link)| link.rate.as_bps_f64()).sum();
                load * capacity_bps / (8.0 * self.request_size.as_u64() as f64)
            }
        }
    }

    /// Returns the hosts that answer one request.
    fn responders(&self, requester: NodeId, racks: &Racks, stream: &mut Stream) -> Vec<NodeId> {
        let n = self.responders as usize;
        match self.from {
            Responders::OtherRacks => racks.peers(requester, Peers::OtherRack).sample(n, stream),
            Responders::OneOtherRack => {
                let own = racks.rack_of(requester);
                let drawn = stream.below(racks.len() as u64 - 1) as usize;
                let rack = if drawn < own { drawn } else { drawn + 1 };
                PeerSet::all(racks.hosts_of(rack)).sample(n, stream)
            }
        }
    }

    fn check(&self, topology: &Topology, racks: &Racks) -> Result<(), FieldError> {
        at_least_a_byte("request_size", self.request_size)?;
        if self.responders == 0 {
            return Err(FieldError::new("responders", "`responders` must be at least 1"));
        }
        let (field, rate) = match self.rate {
            RequestRate::PerSecond(rate) => ("rate_per_host_per_s", rate),
            RequestRate::Load(load) => ("load", load),
        };
        if !(rate.is_finite() && 0.0 < rate) {
            return Err(FieldError::new(field, format!("`{field}` must be above 0, not {rate}")));
        }
        if self.stop <= self.start {
            return Err(FieldError::new("stop", "`stop` must be after `start`"));
        }
        if self.stop == Time::MAX {
            return Err(FieldError::new("stop", "requests never end").help("give `stop`"));
        }
        let n = self.responders as usize;
        if racks.len() < 2 {
            let message = "responders are in other racks than their requester, and this network has one rack";
            return Err(FieldError::new("responders", message)
                .help("take a network with several racks, as `kind = \"leaf-spine\"`"));
        }
        for requester in topology.hosts() {
            racks.peers(requester, Peers::OtherRack).at_least(n, "responders", topology, requester, "other-rack")?;
        }
        if let (Responders::OneOtherRack, Some(least)) =
            (self.from, (0..racks.len()).map(|r| racks.hosts_of(r).len()).min())
            && least < n
        {
            let message = format!("{n} responders are wanted from one rack, but a rack has {least} hosts");
            return Err(FieldError::new("responders", message).help("let them be from `other-racks`"));
        }
        few_enough(field, self.expected_flows(topology))
    }
}
