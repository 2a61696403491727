//! The choice among equal paths.

use fairrate_units::{Bytes, Time};

/// The scheme by which traffic is spread over equal paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Each flow takes one path, picked by a hash before it starts.
    Ecmp,
    /// The same, with ports picked in proportion to the capacity that leads on from them.
    Wcmp,
    /// Hosts choose: switches hash the value that a packet carries along with its flow.
    Host,
    /// Each packet takes a port at random at each switch.
    Spray,
    /// Data packets take the ports in turn; the turns are shuffled after each round.
    RoundRobin,
    /// A flow keeps its port until it has been silent for `gap`; then it takes one at random.
    Flowlet {
        /// Least time between two packets of a flow at a switch for the second to begin a flowlet.
        gap: Time,
    },
    /// A flow that has been silent for a while takes the path whose most loaded link is used least.
    Conga(Conga),
    /// Each data packet takes the port with the least load; ties are broken at random.
    Adaptive(Adaptive),
    /// Each data packet takes the port whose queue ends first among a few at random and the best of the last choice.
    Drill {
        /// Number of ports drawn for each packet.
        samples: u8,
        /// Number of ports that are remembered.
        memory: u8,
    },
}

/// The parameters of CONGA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conga {
    /// Least time between two packets of a flow at its first switch for the second to begin a flowlet.
    pub gap: Time,
    /// Time constant of the estimators of the use of links.
    pub memory: Time,
    /// Time after which the load of a path that was not heard of again counts as none.
    pub age: Time,
}

/// The parameters of adaptive routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    /// The measures by which ports are compared; each decides among those that tie by the ones before it.
    pub signals: [Option<Signal>; 3],
    /// Time for which a switch goes by the level of a port that it has read.
    pub refresh: Time,
    /// If set, a flow keeps its port unless it has been silent for longer than this.
    pub sticky: Option<Time>,
}

/// A measure by which adaptive routing compares ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The time until all that waits has been sent.
    Exact,
    /// One of four levels: below 5, 10 and 20 % of `full`, and above.
    Levels {
        /// Bytes of a full queue.
        full: Bytes,
    },
    /// The share of the last 30 us in which the port has sent, in one of four levels: none, below 15 and 50 %, and
    /// above.
    Utilization,
    /// `true` if the other end has paused the packet's class.
    Pauses,
}

impl Balance {
    /// Returns `true` if the packets of a flow may take several paths, each chosen hop by hop where the packet is.
    #[must_use]
    pub fn is_by_packet(self) -> bool {
        !matches!(self, Self::Ecmp | Self::Wcmp)
    }

    /// Returns `true` if packets are to be seen where only one port leads on, as the last switch before a host.
    #[must_use]
    pub fn sees_last_hops(self) -> bool {
        matches!(self, Self::Conga(_))
    }

    /// Returns `true` if a choice depends on queues or on earlier choices, and not on the packet alone.
    #[must_use]
    pub fn has_state(self) -> bool {
        !matches!(self, Self::Ecmp | Self::Wcmp | Self::Host | Self::Spray)
    }
}

/// The way in which switches take links that are down out of their groups of equal paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reroute {
    /// Time from a failure or recovery of a link until its own switch acts on it: the port leaves or joins its groups,
    /// and what waits in its queues is lost. Changes that do not last for so long go unnoticed.
    pub delay: Time,
    /// The same for all other switches, which then avoid ways that end at the link; [`Time::MAX`]: they never hear of
    /// it.
    pub convergence: Time,
    /// The flows that a change of a group moves, if flows keep their paths.
    pub rehash: Rehash,
}

/// The flows that take another port when one of a group has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rehash {
    /// The hash modulo the number of ports that are left: nearly all flows.
    Modulo,
    /// Those of the port that has failed.
    Resilient,
}

/// A named scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceInfo {
    /// Name in scenarios.
    pub name: &'static str,
    /// One-line description.
    pub title: &'static str,
    /// Publication that defines it.
    pub source: &'static str,
}

/// All schemes.
pub const BALANCES: &[BalanceInfo] = &[
    BalanceInfo { name: "ecmp", title: "each flow keeps one path, picked by a hash", source: "RFC 2992" },
    BalanceInfo {
        name: "wcmp",
        title: "each flow keeps one path, picked by a hash in proportion to capacities",
        source: "Zhou et al. (WCMP), EuroSys 2014",
    },
    BalanceInfo {
        name: "host",
        title: "hosts choose, by values that packets carry and switches hash (`entropy` of `[transport]`)",
        source: "Bonato et al. (REPS), arXiv 2407.21625",
    },
    BalanceInfo { name: "spray", title: "each packet takes a port at random", source: "Dixit et al., INFOCOM 2013" },
    BalanceInfo {
        name: "round-robin",
        title: "packets take the ports in turn, in an order that is shuffled after each round",
        source: "uet-htsim",
    },
    BalanceInfo {
        name: "flowlet",
        title: "a flow takes a port at random whenever it has paused for a while",
        source: "Vanini et al. (LetFlow), NSDI 2017",
    },
    BalanceInfo {
        name: "conga",
        title: "a flow that has paused takes the path whose most loaded link is used least",
        source: "Alizadeh et al. (CONGA), SIGCOMM 2014",
    },
    BalanceInfo {
        name: "adaptive",
        title: "each packet takes the port with the least load (`signal`)",
        source: "uet-htsim",
    },
    BalanceInfo {
        name: "drill",
        title: "each packet takes the best of a few random ports and of those that were best before",
        source: "Ghorbani et al. (DRILL), SIGCOMM 2017",
    },
];
