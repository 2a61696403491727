//! Who takes part in the shootout: algorithms in the form and with the constants of their own papers, on the fabric that each
//! of them needs.

/// An algorithm with what is set for it.
pub struct Contender {
    pub cc: &'static str,
    pub sets: &'static [(&'static str, &'static str)],
}

const fn lossless(cc: &'static str, sets: &'static [(&'static str, &'static str)]) -> Contender {
    Contender { cc, sets }
}

/// Those whose fabric pauses come first, then those whose fabric drops.
pub const ALL: [Contender; 10] = [
    lossless("powertcp", &[]),
    lossless("theta-powertcp", &[]),
    lossless("hpcc", &[]),
    lossless("dcqcn", &DCQCN),
    lossless("rocc", &[]),
    lossless("perc", &[]),
    Contender { cc: "swift", sets: &[("switch.pfc", "false"), ("transport.recovery", "selective-repeat")] },
    // The fabric drops, and a timer of a few milliseconds finds it. It grants seven messages at a time, as its authors have it
    // for web search.
    Contender { cc: "homa", sets: &[("switch.pfc", "false"), ("transport.rto", "4ms")] },
    Contender { cc: "flowtune", sets: &FLOWTUNE },
    Contender { cc: "ratemp", sets: &RATEMP },
];

/// The marks of DCQCN's own paper (its section 5).
const DCQCN: [(&str, &str); 4] = [
    ("switch.ecn.kmin", "5KB"),
    ("switch.ecn.kmax", "200KB"),
    ("switch.ecn.pmax", "0.01"),
    ("switch.ecn.per", "40Gbps"),
];

/// TCP with ns-2's first window and the timeouts of the examples.
const FLOWTUNE: [(&str, &str); 5] = [
    ("switch.pfc", "false"),
    ("transport.kind", "tcp"),
    ("transport.tcp.rto_min", "200us"),
    ("transport.tcp.rto_max", "10ms"),
    ("transport.flowtune.initial_window", "2"),
];

/// TCP over four paths, with c as the rate of links between switches. Its marks are the default.
const RATEMP: [(&str, &str); 4] = [
    ("switch.pfc", "false"),
    ("transport.kind", "tcp"),
    ("transport.tcp.subflows", "4"),
    ("transport.ratemp.capacity", "100Gbps"),
];
