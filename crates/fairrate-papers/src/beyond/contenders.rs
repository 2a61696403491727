//! The algorithms of the shootout, in the form and with the constants of their own papers, each on the fabric that it
//! needs.

/// An algorithm with its settings.
pub struct Contender {
    pub cc: &'static str,
    pub fabric: Fabric,
    sets: &'static [(&'static str, &'static str)],
}

/// The action of a switch when its buffer fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fabric {
    /// The switch pauses the port upstream, above PowerTCP's Dynamic Threshold of an eighth of the free buffer.
    Pauses,
    /// The switch drops when all of its buffer is full: the threshold is for pauses, and no paper of an algorithm
    /// without pauses has it.
    Drops,
}

impl Contender {
    /// Returns all settings, of the fabric and of the algorithm.
    pub fn sets(&self) -> Vec<(&'static str, &'static str)> {
        let fabric: &[_] = match self.fabric {
            Fabric::Pauses => &[],
            Fabric::Drops => &[("switch.pfc", "false"), ("switch.dt_alpha", "unlimited")],
        };
        [fabric, self.sets].concat()
    }
}

const fn pausing(cc: &'static str, sets: &'static [(&'static str, &'static str)]) -> Contender {
    Contender { cc, fabric: Fabric::Pauses, sets }
}

const fn dropping(cc: &'static str, sets: &'static [(&'static str, &'static str)]) -> Contender {
    Contender { cc, fabric: Fabric::Drops, sets }
}

pub const ALL: [Contender; 10] = [
    pausing("powertcp", &[]),
    pausing("theta-powertcp", &[]),
    pausing("hpcc", &[]),
    pausing("dcqcn", &DCQCN),
    pausing("rocc", &[]),
    pausing("perc", &[]),
    // Swift's host stack retransmits only the missing packets.
    dropping("swift", &[("transport.recovery", "selective-repeat")]),
    // Homa grants seven messages at a time, as its authors do for web search, and detects losses by a timer of
    // milliseconds.
    dropping("homa", &[("transport.rto", "4ms")]),
    dropping("flowtune", &FLOWTUNE),
    dropping("ratemp", &RATEMP),
];

/// DCQCN with the ECN marks of its own paper (section 5).
const DCQCN: [(&str, &str); 4] = [
    ("switch.ecn.kmin", "5KB"),
    ("switch.ecn.kmax", "200KB"),
    ("switch.ecn.pmax", "0.01"),
    ("switch.ecn.per", "40Gbps"),
];

/// Flowtune over TCP with ns-2's first window and the timeouts of the examples.
const FLOWTUNE: [(&str, &str); 4] = [
    ("transport.kind", "tcp"),
    ("transport.tcp.rto_min", "200us"),
    ("transport.tcp.rto_max", "10ms"),
    ("transport.flowtune.initial_window", "2"),
];

/// RateMP over TCP with four subflows, with c as the rate of links between switches. Its marks are the default.
const RATEMP: [(&str, &str); 3] =
    [("transport.kind", "tcp"), ("transport.tcp.subflows", "4"), ("transport.ratemp.capacity", "100Gbps")];
