//! Settings of the algorithms on the large networks. The paper gives only the names of the algorithms and RateMP's
//! marks.

/// Returns the algorithm of a run: `xmp` of `xmp:red`.
pub fn algorithm(run: &str) -> &str {
    run.split(':').next().unwrap_or(run)
}

/// Keys of a scenario and their values.
pub type Sets = Vec<(&'static str, &'static str)>;

/// Algorithms that spread a connection over several paths.
pub const MULTIPATH: [&str; 5] = ["ratemp", "xmp", "mpcc", "lia", "balia"];
/// Algorithms with a single path.
pub const SINGLE_PATH: [&str; 4] = ["dctcp", "dcqcn", "bbr", "swift"];
/// All runs. The text after a `:` is the switches' setting: `red` marks as for RateMP, `drops` is RED with the same
/// thresholds that drops. Without it switches do what the algorithm's own paper says. `fast` is MPCC whose subflows
/// begin at 25 Gb/s, about the ten packets a round trip that the others begin with, and not at its module's 4 Mb/s.
pub const RUNS: [&str; 17] = [
    "ratemp",
    "xmp",
    "xmp:red",
    "mpcc",
    "mpcc:fast",
    "lia",
    "lia:red",
    "lia:drops",
    "balia",
    "balia:red",
    "balia:drops",
    "dctcp",
    "dctcp:red",
    "dcqcn",
    "dcqcn:red",
    "bbr",
    "swift",
];

/// RateMP and XMP, under RateMP's marks, with one thing changed at a time, to find the reason for XMP's higher
/// throughput.
pub const WHY: [(&str, &str); 14] = [
    ("ratemp", "ratemp"),
    ("xmp:red", "xmp"),
    ("ratemp:small-packets", "ratemp, packets of a quarter"),
    ("xmp:small-packets", "xmp, packets of a quarter"),
    ("ratemp:one-path", "ratemp, one path"),
    ("xmp:one-path", "xmp, one path"),
    ("ratemp:first-window", "ratemp, first window of 40 packets a subflow"),
    ("ratemp:kmax", "ratemp, Kmax of 400 KB"),
    ("xmp:kmax", "xmp, Kmax of 400 KB"),
    ("ratemp:alpha", "ratemp, alpha_total of c/20"),
    ("ratemp:g4", "ratemp, marks averaged by a quarter"),
    ("ratemp:g1", "ratemp, marks not averaged"),
    ("ratemp:window", "ratemp, window by the present RTT as printed"),
    ("ratemp:step", "ratemp, steps below a packet a round trip as printed"),
];

/// The switches' marks for the algorithms other than RateMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// The marks of each algorithm's own paper.
    Own,
    /// The marks of RateMP.
    RateMps,
}

impl Marks {
    /// Both choices.
    pub const ALL: [Self; 2] = [Self::Own, Self::RateMps];

    /// Returns `true` if the marks are those of each algorithm's own paper.
    pub fn is_own(self) -> bool {
        self == Self::Own
    }

    /// Returns the part of ids.
    pub fn id(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::RateMps => "red",
        }
    }

    /// Returns the marks in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Own => "own marks",
            Self::RateMps => "RateMP's marks",
        }
    }

    /// Returns the run of an algorithm with these marks; MPCC, BBR and Swift do not react to marks.
    pub fn run_of(self, cc: &str) -> &'static str {
        let name = match self {
            Self::Own => cc.to_owned(),
            Self::RateMps => format!("{cc}:red"),
        };
        RUNS.into_iter().find(|run| *run == name).or(RUNS.into_iter().find(|run| *run == cc)).unwrap_or("ratemp")
    }
}

/// Returns marking at one threshold, of the queue length when a packet arrives.
fn step(k: &'static str) -> Sets {
    vec![("switch.ecn.kmin", k), ("switch.ecn.kmax", k), ("switch.ecn.at", "enqueue")]
}

/// DCQCN's marks (its section 5: 5 KB, 200 KB and 1 % for 40 Gb/s, in proportion for 100).
const DCQCN: [(&str, &str); 4] = [
    ("switch.ecn.kmin", "5KB"),
    ("switch.ecn.kmax", "200KB"),
    ("switch.ecn.pmax", "0.01"),
    ("switch.ecn.per", "40Gbps"),
];

/// DCTCP's first window: the same as four subflows with ten packets each.
const FROM_A_PRODUCT: [(&str, &str); 2] =
    [("transport.dctcp.initial_window", "bdp"), ("transport.dctcp.slow_start", "false")];

/// RDMA on a lossless fabric, as the paper runs DCQCN and Swift.
const LOSSLESS: [(&str, &str); 3] = [("transport.kind", "rdma"), ("switch.pfc", "true"), ("switch.dt_alpha", "0.125")];

/// Returns a run's changes to the example, which has RateMP's marks and TCP.
pub fn sets(run: &str) -> Sets {
    let cc = algorithm(run);
    let mut sets = match run {
        // BDP / (beta - 1) of 60 KB, which 100 Gb/s carry in RateMP's 4.8 us.
        "xmp" => step("20KB"),
        // BDP / 7 of the same 60 KB, and a packet.
        "dctcp" => [step("10KB"), FROM_A_PRODUCT.to_vec()].concat(),
        "dctcp:red" => FROM_A_PRODUCT.to_vec(),
        "dcqcn" => DCQCN.to_vec(),
        "lia" | "balia" | "mpcc" | "bbr" | "swift" => vec![("switch.ecn", "false")],
        "mpcc:fast" => vec![("switch.ecn", "false"), ("transport.mpcc.initial_rate", "25Gbps")],
        // The keys of RED are RateMP's by default.
        "lia:drops" | "balia:drops" => vec![("switch.ecn", "false"), ("switch.queue", "red")],
        _ => why(run),
    };
    if SINGLE_PATH.contains(&cc) {
        sets.push(("transport.tcp.subflows", "1"));
    }
    if matches!(cc, "dcqcn" | "swift") {
        sets.extend(LOSSLESS);
    }
    sets
}

/// Returns the changes of a variant of [`WHY`], or of a line that only the figures of steady load have.
fn why(run: &str) -> Sets {
    match run.split_once(':').map_or("", |(_, what)| what) {
        "small-packets" => {
            vec![("transport.mtu", "365B"), ("transport.header", "12B"), ("transport.ack", "15B")]
        }
        "one-path" => vec![("transport.tcp.subflows", "1")],
        "first-window" => vec![("transport.ratemp.initial_window", "40")],
        "kmax" => vec![("switch.ecn.kmax", "400KB"), ("transport.ratemp.kmax", "400KB")],
        "alpha" => vec![("transport.ratemp.alpha", "0.05")],
        "alpha-kmax" => [why("ratemp:alpha"), why("ratemp:kmax")].concat(),
        "g4" => vec![("transport.ratemp.g", "0.25")],
        "g1" => vec![("transport.ratemp.g", "1.0")],
        "window" => vec![("transport.ratemp.window", "rtt")],
        "step" => vec![("transport.ratemp.low_rate_step", "printed")],
        _ => Sets::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_a_run_with_either_marks() {
        for cc in MULTIPATH.into_iter().chain(SINGLE_PATH) {
            for marks in Marks::ALL {
                assert_eq!(algorithm(marks.run_of(cc)), cc);
            }
        }
        for (run, _) in WHY.into_iter().filter(|(run, _)| !RUNS.contains(run)) {
            assert!(!sets(run).is_empty(), "{run}");
        }
        assert_eq!((Marks::RateMps.run_of("lia"), Marks::RateMps.run_of("bbr")), ("lia:red", "bbr"));
    }
}
