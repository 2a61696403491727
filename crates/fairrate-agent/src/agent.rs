//! What the agent tells and does, without kernel and network.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::config::Config;
use crate::weights::Weights;

/// A connection, by its socket's cookie, which no other socket has as long as the kernel runs.
pub type Cookie = u64;

/// A connection that begins or ceases to have something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The connection.
    pub cookie: Cookie,
    /// The control group of its socket.
    pub cgroup: u64,
    /// This host.
    pub source: SocketAddr,
    /// Where it sends to.
    pub destination: SocketAddr,
    /// It begins, else it ends.
    pub begins: bool,
}

/// What the allocator is to be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tell {
    /// A flowlet begins.
    Begin {
        /// Its number, of this host's choice.
        flow: u32,
        /// This host.
        source: Ipv4Addr,
        /// Where it sends to.
        destination: Ipv4Addr,
        /// What it counts for.
        weight: f64,
    },
    /// It is over.
    End {
        /// Its number.
        flow: u32,
    },
}

/// A rate for a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The connection.
    pub cookie: Cookie,
    /// Payload bits a second; `None`: as TCP likes.
    pub rate_bps: Option<f64>,
}

/// The flowlets of a host that the allocator knows.
#[derive(Debug)]
pub struct Agent {
    config: Config,
    weights: Weights,
    flows: HashMap<Cookie, u32>,
    cookies: HashMap<u32, Cookie>,
    next: u32,
}

impl Agent {
    /// A host without flowlets.
    pub fn new(config: Config) -> Self {
        let weights = Weights::new(&config.weight);
        Self { config, weights, flows: HashMap::new(), cookies: HashMap::new(), next: 0 }
    }

    /// What has happened at a connection: what to tell the allocator, unless it is none of its business.
    pub fn on_event(&mut self, event: &Event) -> Option<Tell> {
        if !event.begins {
            let flow = self.flows.remove(&event.cookie)?;
            self.cookies.remove(&flow);
            return Some(Tell::End { flow });
        }
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (event.source.ip(), event.destination.ip()) else {
            return None;
        };
        if !self.config.has_fabric(destination.into()) || self.flows.contains_key(&event.cookie) {
            return None;
        }
        let flow = self.fresh_number();
        self.flows.insert(event.cookie, flow);
        self.cookies.insert(flow, event.cookie);
        Some(Tell::Begin { flow, source, destination, weight: self.weights.of(event.cgroup) })
    }

    /// The allocator has given a flow a rate, in bits on the wire per second; 0 takes it back. `None`: the flow is over.
    pub fn on_grant(&self, flow: u32, wire_bps: f64) -> Option<Pace> {
        let cookie = *self.cookies.get(&flow)?;
        Some(Pace { cookie, rate_bps: (0.0 < wire_bps).then_some(wire_bps * self.config.pacing.payload_share) })
    }

    /// Weights of control groups.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Control groups may have come and gone.
    pub fn look_at_groups(&mut self) {
        self.weights.look();
    }

    /// All connections that may have a rate.
    pub fn connections(&self) -> impl Iterator<Item = Cookie> + '_ {
        self.flows.keys().copied()
    }

    /// A number that no flowlet has: they are used again only after all others.
    fn fresh_number(&mut self) -> u32 {
        loop {
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            if !self.cookies.contains_key(&number) {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> Agent {
        let text = "fabric = [\"10.0.0.0/16\"]\n[allocator]\nservers = [\"10.0.0.9:4600\"]\ninsecure = true\n[pacing]\npayload_share = 0.9\n";
        Agent::new(toml::from_str(text).unwrap())
    }

    fn event(cookie: Cookie, destination: &str, begins: bool) -> Event {
        let (source, destination) = ("10.0.0.1:5000".parse().unwrap(), destination.parse().unwrap());
        Event { cookie, cgroup: 1, source, destination, begins }
    }

    #[test]
    fn a_flowlet_is_told_once_and_ends_once() {
        let mut agent = agent();
        let (source, destination) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let begun = agent.on_event(&event(7, "10.0.0.2:80", true));
        assert_eq!(begun, Some(Tell::Begin { flow: 0, source, destination, weight: 1.0 }));
        assert_eq!(agent.on_event(&event(7, "10.0.0.2:80", true)), None);
        assert_eq!(agent.on_event(&event(7, "10.0.0.2:80", false)), Some(Tell::End { flow: 0 }));
        assert_eq!(agent.on_event(&event(7, "10.0.0.2:80", false)), None);
        // The next flowlet of the same connection is another flow.
        assert!(matches!(agent.on_event(&event(7, "10.0.0.2:80", true)), Some(Tell::Begin { flow: 1, .. })));
    }

    #[test]
    fn what_leaves_the_fabric_is_not_told() {
        let mut agent = agent();
        for destination in ["10.1.0.2:80", "127.0.0.1:80", "[fd00::2]:80"] {
            assert_eq!(agent.on_event(&event(7, destination, true)), None);
        }
    }

    #[test]
    fn a_rate_is_for_payload_and_zero_lets_go() {
        let mut agent = agent();
        agent.on_event(&event(7, "10.0.0.2:80", true));
        assert_eq!(agent.on_grant(0, 1e9), Some(Pace { cookie: 7, rate_bps: Some(0.9e9) }));
        assert_eq!(agent.on_grant(0, 0.0), Some(Pace { cookie: 7, rate_bps: None }));
        assert_eq!(agent.on_grant(1, 1e9), None);
    }
}
