//! Who takes part in the shootout: algorithms in the form and with the constants of their own papers, on the fabric that each
//! of them needs.

/// An algorithm with what is set for it.
pub struct Contender {
    pub cc: &'static str,
    pub fabric: Fabric,
    sets: &'static [(&'static str, &'static str)],
}

/// What a switch does when its buffer fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fabric {
    /// Pauses the port upstream, above PowerTCP's Dynamic Threshold of an eighth of what is free.
    Pauses,
    /// Drops when all of the buffer is full: the threshold is one for pauses, and no paper of those without has it.
    Drops,
}

impl Contender {
    /// All keys.
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
    // Its host stack repeats what is missing alone.
    dropping("swift", &[("transport.recovery", "selective-repeat")]),
    // It grants seven messages at a time, as its authors have it for web search, and finds losses by a timer of milliseconds.
    dropping("homa", &[("transport.rto", "4ms")]),
    dropping("flowtune", &FLOWTUNE),
    dropping("ratemp", &RATEMP),
];

/// The marks of DCQCN's own paper (its section 5).
const DCQCN: [(&str, &str); 4] = [
    ("switch.ecn.kmin", "5KB"),
    ("switch.ecn.kmax", "200KB"),
    ("switch.ecn.pmax", "0.01"),
    ("switch.ecn.per", "40Gbps"),
];

/// TCP with ns-2's first window and the timeouts of the examples.
const FLOWTUNE: [(&str, &str); 4] = [
    ("transport.kind", "tcp"),
    ("transport.tcp.rto_min", "200us"),
    ("transport.tcp.rto_max", "10ms"),
    ("transport.flowtune.initial_window", "2"),
];

/// TCP over four paths, with c as the rate of links between switches. Its marks are the default.
const RATEMP: [(&str, &str); 3] =
    [("transport.kind", "tcp"), ("transport.tcp.subflows", "4"), ("transport.ratemp.capacity", "100Gbps")];
