//! The agent's logic: its messages to the allocator and the rates of connections, without kernel and network.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::Path;

use crate::config::Config;
use crate::shares::{Admission, Owner, Shares};
use crate::weights::{Changes, Weights};

/// The key of a connection: its socket's cookie, which is unique as long as the kernel runs.
pub type Cookie = u64;

/// A time of the kernel's monotonic clock, in nanoseconds.
pub type Nanos = u64;

/// Payload of a full segment of IPv6, whose header is 20 bytes longer, as a part of that of IPv4.
const V6_SHARE: f64 = 1428.0 / 1448.0;

/// The kind of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A flowlet begins.
    Begins,
    /// A flowlet is over.
    Ends,
    /// A look at all sockets has found a flowlet under way.
    GoesOn,
}

/// An event of a connection to the fabric. For [`Kind::Ends`] only the connection, the time and the kind matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The connection.
    pub cookie: Cookie,
    /// Time at which it was seen.
    pub time: Nanos,
    /// The nearest control group of its socket that has a weight, or 0.
    pub group: u64,
    /// The owner of the socket.
    pub owner: Owner,
    /// Address of this host.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// The kind of the event.
    pub kind: Kind,
}

/// A message to the allocator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tell {
    /// A flowlet begins.
    Begin {
        /// Number of the flow, chosen by this host.
        flow: u32,
        /// Address of this host.
        source: IpAddr,
        /// Address of the receiver.
        destination: IpAddr,
        /// Weight of the flow.
        weight: f64,
    },
    /// A flowlet is over, and its connection has no rate any more.
    End {
        /// Number of the flow.
        flow: u32,
        /// The connection.
        cookie: Cookie,
    },
}

/// A rate for a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The connection.
    pub cookie: Cookie,
    /// Rate in payload bits a second; `None`: TCP decides.
    pub rate_bps: Option<f64>,
}

/// The flowlets of a host that the allocator has been sent.
#[derive(Debug)]
pub struct Agent {
    payload_share: f64,
    weights: Weights,
    shares: Shares,
    flows: HashMap<Cookie, Flow>,
    cookies: HashMap<u32, Cookie>,
    next: u32,
    /// Time before which events are already included in the result of a look at all sockets.
    settled: Nanos,
    n_refused: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    number: u32,
    owner: Owner,
    is_v6: bool,
}

impl Agent {
    /// Creates an agent of a host without flowlets.
    pub fn new(config: &Config) -> Self {
        Self {
            payload_share: config.pacing.payload_share,
            weights: Weights::new(&config.weight),
            shares: Shares::new(config.limits.flows as usize),
            flows: HashMap::new(),
            cookies: HashMap::new(),
            next: 0,
            settled: 0,
            n_refused: 0,
        }
    }

    /// Handles an event of a connection, and appends the resulting messages to `tells`.
    pub fn on_event(&mut self, event: &Event, tells: &mut Vec<Tell>) {
        if event.time < self.settled {
            return;
        }
        match event.kind {
            Kind::Begins | Kind::GoesOn => self.begin(event, tells),
            Kind::Ends => self.end(event.cookie, tells),
        }
    }

    /// Handles the flowlets under way that a look at all sockets, begun at `began`, has found: known flowlets that are
    /// not among them are over. Later events with an earlier time are ignored.
    pub fn reconcile(&mut self, began: Nanos, live: &[Event], tells: &mut Vec<Tell>) {
        self.settled = began;
        let there: HashSet<Cookie> = live.iter().map(|event| event.cookie).collect();
        let gone: Vec<Cookie> = self.flows.keys().filter(|cookie| !there.contains(cookie)).copied().collect();
        for cookie in gone {
            self.end(cookie, tells);
        }
        for event in live {
            self.begin(event, tells);
        }
    }

    fn begin(&mut self, event: &Event, tells: &mut Vec<Tell>) {
        if self.flows.contains_key(&event.cookie) {
            return;
        }
        match self.shares.ask(event.owner) {
            Admission::Free => {}
            Admission::Instead(flow) => {
                self.n_refused += 1;
                if let Some(cookie) = self.cookies.get(&flow) {
                    self.end(*cookie, tells);
                }
            }
            Admission::Refused => {
                self.n_refused += 1;
                return;
            }
        }
        let number = self.fresh_number();
        self.shares.take(event.owner, number);
        self.flows.insert(event.cookie, Flow { number, owner: event.owner, is_v6: event.source.is_ipv6() });
        self.cookies.insert(number, event.cookie);
        let weight = self.weights.of(event.group);
        tells.push(Tell::Begin { flow: number, source: event.source, destination: event.destination, weight });
    }

    fn end(&mut self, cookie: Cookie, tells: &mut Vec<Tell>) {
        let Some(Flow { number, owner, .. }) = self.flows.remove(&cookie) else { return };
        self.cookies.remove(&number);
        self.shares.give_back(owner, number);
        tells.push(Tell::End { flow: number, cookie });
    }

    /// Converts the allocator's rate for a flow, in bits on the wire per second, to the connection's rate; 0 removes
    /// it. Returns `None` if the flow is over.
    pub fn on_grant(&self, flow: u32, wire_bps: f64) -> Option<Pace> {
        let cookie = *self.cookies.get(&flow)?;
        let of_header = if self.flows.get(&cookie)?.is_v6 { V6_SHARE } else { 1.0 };
        Some(Pace { cookie, rate_bps: (0.0 < wire_bps).then_some(wire_bps * self.payload_share * of_header) })
    }

    /// Looks for the control groups that have weights; `number` returns the number of the group at a path.
    pub fn look_at_groups(&mut self, number: impl Fn(&Path) -> Option<u64>) -> Changes {
        self.weights.look(number)
    }

    /// Returns the weights of control groups.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Returns the connections that may have a rate.
    pub fn connections(&self) -> impl Iterator<Item = Cookie> + '_ {
        self.flows.keys().copied()
    }

    /// Returns the number of flowlets that the allocator has been sent.
    pub fn n_flows(&self) -> usize {
        self.flows.len()
    }

    /// Returns the number of flowlets so far that were left without a rate because there were too many.
    pub fn n_refused(&self) -> u64 {
        self.n_refused
    }

    /// Returns a number that no flowlet has: numbers are reused only after all others.
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
    use std::net::Ipv4Addr;

    use super::*;

    const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const DESTINATION: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn agent() -> Agent {
        let text = "fabric = [\"10.0.0.0/16\"]\n[allocator]\nservers = [\"10.0.0.9:4600\"]\ninsecure = true\n[pacing]\n\
                    payload_share = 0.9\n[limits]\nflows = 4\n";
        Agent::new(&toml::from_str(text).unwrap())
    }

    fn event(cookie: Cookie, time: Nanos, kind: Kind) -> Event {
        Event { cookie, time, group: 0, owner: 1, source: SOURCE, destination: DESTINATION, kind }
    }

    fn tells(agent: &mut Agent, events: &[Event]) -> Vec<Tell> {
        let mut tells = Vec::new();
        for event in events {
            agent.on_event(event, &mut tells);
        }
        tells
    }

    fn begin(flow: u32) -> Tell {
        Tell::Begin { flow, source: SOURCE, destination: DESTINATION, weight: 1.0 }
    }

    #[test]
    fn a_flowlet_is_told_once_and_ends_once() {
        let mut agent = agent();
        let twice = |time, kind| [event(7, time, kind), event(7, time, kind)];
        assert_eq!(tells(&mut agent, &twice(1, Kind::Begins)), [begin(0)]);
        assert_eq!(tells(&mut agent, &twice(2, Kind::Ends)), [Tell::End { flow: 0, cookie: 7 }]);
        // The next flowlet of the same connection is another flow.
        assert_eq!(tells(&mut agent, &twice(3, Kind::Begins)), [begin(1)]);
    }

    #[test]
    fn a_rate_is_for_payload_and_zero_lets_go() {
        let mut agent = agent();
        tells(&mut agent, &[event(7, 1, Kind::Begins)]);
        assert_eq!(agent.on_grant(0, 1e9), Some(Pace { cookie: 7, rate_bps: Some(0.9e9) }));
        assert_eq!(agent.on_grant(0, 0.0), Some(Pace { cookie: 7, rate_bps: None }));
        assert_eq!(agent.on_grant(1, 1e9), None);
    }

    #[test]
    fn the_longer_header_of_ipv6_takes_its_part_of_a_rate() {
        let mut agent = agent();
        let (source, destination) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
        let told = tells(&mut agent, &[Event { source, destination, ..event(7, 1, Kind::Begins) }]);
        assert_eq!(told, [Tell::Begin { flow: 0, source, destination, weight: 1.0 }]);
        let pace = agent.on_grant(0, 1e9).and_then(|pace| pace.rate_bps).unwrap();
        assert!((pace - 0.9e9 * 1428.0 / 1448.0).abs() < 1.0, "{pace}");
    }

    #[test]
    fn lost_events_leave_no_phantom() {
        let mut agent = agent();
        tells(&mut agent, &[event(7, 1, Kind::Begins), event(8, 2, Kind::Begins)]);
        // The end of 7 was lost, and so was the beginning of 9.
        let mut told = Vec::new();
        agent.reconcile(10, &[event(8, 11, Kind::GoesOn), event(9, 11, Kind::GoesOn)], &mut told);
        assert_eq!(told, [Tell::End { flow: 0, cookie: 7 }, begin(2)]);
        // Events older than the look: 6 began and ended, its end was lost, 8 had paused.
        assert_eq!(tells(&mut agent, &[event(6, 5, Kind::Begins), event(8, 6, Kind::Ends)]), []);
        // Events after its beginning count.
        let last = tells(&mut agent, &[event(8, 12, Kind::Ends), event(6, 13, Kind::Begins)]);
        assert_eq!(last, [Tell::End { flow: 1, cookie: 8 }, begin(3)]);
        assert_eq!(agent.n_flows(), 2);
    }

    #[test]
    fn one_owner_cannot_keep_another_out() {
        let mut agent = agent();
        let many: Vec<_> = (0..100).map(|cookie| event(cookie, 1, Kind::Begins)).collect();
        assert_eq!(tells(&mut agent, &many), [0, 1, 2, 3].map(begin));
        assert_eq!(agent.n_refused(), 96);
        let other = Event { owner: 2, ..event(200, 2, Kind::Begins) };
        assert_eq!(tells(&mut agent, &[other]), [Tell::End { flow: 3, cookie: 3 }, begin(4)]);
        assert_eq!((agent.n_flows(), agent.on_grant(3, 1e9)), (4, None));
    }
}
