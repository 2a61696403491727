//! The faults: one a minute, in an order that the seed gives.

use std::fmt;
use std::time::Duration;

use fairrate_sim::rng::{Purpose, Stream};
use nix::sys::signal::Signal;

use crate::daemons::Daemons;
use crate::network::{Cut, Network};
use crate::watch::{Hit, Watch};

/// Time after which systemd starts a service anew, by its unit.
const RESTART: Duration = Duration::from_secs(1);
/// Length of the outage of a link, and of a partition.
const OUTAGE: Duration = Duration::from_secs(3);
const PARTITION: Duration = Duration::from_secs(5);

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    AgentKilled,
    AgentRestarted,
    DeciderKilled,
    DeciderRestarted,
    StandbyKilled,
    LinkDown,
    CutFromDecider,
    CutFromStandby,
}

const KINDS: [Kind; 8] = [
    Kind::AgentKilled,
    Kind::AgentRestarted,
    Kind::DeciderKilled,
    Kind::DeciderRestarted,
    Kind::StandbyKilled,
    Kind::LinkDown,
    Kind::CutFromDecider,
    Kind::CutFromStandby,
];

/// A fault that happened, with the host of the agent, or of the allocator if it has no host.
pub struct Fault {
    kind: Kind,
    host: u32,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, host } = self;
        match kind {
            Kind::AgentKilled => write!(f, "agent {host} killed"),
            Kind::AgentRestarted => write!(f, "agent {host} restarted"),
            Kind::DeciderKilled => write!(f, "decider {host} killed"),
            Kind::DeciderRestarted => write!(f, "decider {host} restarted"),
            Kind::StandbyKilled => write!(f, "standby {host} killed"),
            Kind::LinkDown => write!(f, "link {host} down"),
            Kind::CutFromDecider => write!(f, "host {host} cut from decider"),
            Kind::CutFromStandby => write!(f, "host {host} cut from standby"),
        }
    }
}

/// The order of faults: all kinds in random order, then again.
pub struct Faults {
    draw: Stream,
    hosts: u32,
    deck: Vec<Kind>,
}

impl Faults {
    /// Creates the order of `seed` for a network of `hosts` hosts with agents.
    pub fn new(seed: u64, hosts: u32) -> Self {
        Self { draw: Stream::new(seed, u64::MAX, Purpose::Test), hosts, deck: Vec::new() }
    }

    /// Makes the next fault happen, and waits until it is over.
    pub fn next(&mut self, network: &Network, daemons: &mut Daemons, watch: &Watch) -> Fault {
        if self.deck.is_empty() {
            self.deck = KINDS.to_vec();
            self.draw.shuffle(&mut self.deck);
        }
        let kind = self.deck.pop().expect("it was filled");
        let host = self.draw.below(self.hosts.into()) as u32;
        let decider = network.decider().unwrap_or(0);
        let [first, other] = [decider, 1 - decider];
        let at = network.allocators();
        match kind {
            Kind::AgentKilled | Kind::AgentRestarted => {
                watch.hit(host, Hit::Agent);
                if kind == Kind::AgentKilled {
                    daemons.agents[host as usize].kill();
                    std::thread::sleep(RESTART);
                } else {
                    daemons.agents[host as usize].signal(Signal::SIGTERM);
                    let _ = daemons.agents[host as usize].output();
                }
                daemons.agents[host as usize] = network.start_agent(host);
                watch.mended(host);
                return Fault { kind, host };
            }
            Kind::DeciderKilled | Kind::StandbyKilled => {
                let which = if kind == Kind::DeciderKilled { first } else { other };
                daemons.allocators[which].kill();
                std::thread::sleep(RESTART);
                daemons.allocators[which] = network.start_allocator(at[which]);
                return Fault { kind, host: at[which] };
            }
            Kind::DeciderRestarted => {
                daemons.allocators[first].signal(Signal::SIGTERM);
                let _ = daemons.allocators[first].output();
                daemons.allocators[first] = network.start_allocator(at[first]);
                return Fault { kind, host: at[first] };
            }
            Kind::LinkDown => {
                watch.hit(host, Hit::Link);
                network.link(host, Cut::Make);
                std::thread::sleep(OUTAGE);
                network.link(host, Cut::Mend);
            }
            Kind::CutFromDecider | Kind::CutFromStandby => {
                let which = if kind == Kind::CutFromDecider { first } else { other };
                watch.hit(host, Hit::Cut);
                network.cut(host, at[which], Cut::Make);
                std::thread::sleep(PARTITION);
                network.cut(host, at[which], Cut::Mend);
            }
        }
        watch.mended(host);
        Fault { kind, host }
    }
}
