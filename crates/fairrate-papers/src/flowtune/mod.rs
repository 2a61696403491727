//! Flowtune: J. Perry, H. Balakrishnan, D. Shah, "Flowtune: Flowlet Control for Datacenter Networks",
//! MIT-CSAIL-TR-2016-011.
//!
//! The paper ran ns-2 and gives few parameters of its baselines: TCP's first window, DCTCP's marking threshold,
//! buffers, CoDel's times and XCP's timers are ours. Each parameter that matters has a line of its own.

mod churn;
mod fig10;
mod fig11;
mod fig12;
mod fig13;
mod fig4;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod fig9;
mod lines;
mod methods;
mod outage;
mod table6_1;
mod traffic;
mod updates;

pub use fig4::FIGURE as FIG4;
pub use fig5::FIGURE as FIG5;
pub use fig6::FIGURE as FIG6;
pub use fig7::FIGURE as FIG7;
pub use fig8::FIGURE as FIG8;
pub use fig9::FIGURE as FIG9;
pub use fig10::FIGURE as FIG10;
pub use fig11::FIGURE as FIG11;
pub use fig12::FIGURE as FIG12;
pub use fig13::FIGURE as FIG13;
pub use outage::FIGURE as OUTAGE;
pub use table6_1::FIGURE as TABLE6_1;

use crate::experiment::Run;
use crate::points::Point;
use crate::record::Record;

const MSS: f64 = 1_460.0;
const HOST_BPS: f64 = 10e9;

/// Flow sizes: their name in the paper, and their name here.
struct Sizes {
    title: &'static str,
    name: &'static str,
}

const WEB: Sizes = Sizes { title: "Web", name: "fb-web" };
const CACHE: Sizes = Sizes { title: "Cache", name: "fb-cache" };
const HADOOP: Sizes = Sizes { title: "Hadoop", name: "fb-hadoop-all" };

/// A line: an algorithm with its settings.
struct Variant {
    line: &'static str,
    cc: &'static str,
    sets: &'static [(&'static str, &'static str)],
}

/// TCP's first window is ns-2's, two segments, for Flowtune, DCTCP and Cubic.
const FLOWTUNE: Variant =
    Variant { line: "flowtune", cc: "flowtune", sets: &[("transport.flowtune.initial_window", "2")] };
/// Flowtune with ten segments (RFC 6928), as in the examples.
const IW10: Variant = Variant { line: "flowtune, 10 segments", cc: "flowtune", sets: &[] };
/// Flowtune at the end of the paper's range of gamma.
const GAMMA: Variant = Variant {
    line: "flowtune, gamma 1.5",
    cc: "flowtune",
    sets: &[("transport.flowtune.initial_window", "2"), ("allocator.gamma", "1.5")],
};
const DCTCP: Variant = Variant { line: "dctcp", cc: "dctcp", sets: &[("transport.dctcp.initial_window", "2mtu")] };
/// DCTCP that marks from 65 packets on, as in the DCTCP paper at 10 Gb/s.
const K65: Variant = Variant {
    line: "dctcp, K = 65",
    cc: "dctcp",
    sets: &[("transport.dctcp.initial_window", "2mtu"), ("switch.ecn.kmin", "97500B"), ("switch.ecn.kmax", "97500B")],
};
const K65_IW10: Variant = Variant {
    line: "dctcp, K = 65, 10 segments",
    cc: "dctcp",
    sets: &[("switch.ecn.kmin", "97500B"), ("switch.ecn.kmax", "97500B")],
};
const PFABRIC: Variant = Variant {
    line: "pfabric",
    cc: "pfabric",
    sets: &[("switch.queue_limit", "36864B"), ("switch.dt_alpha", "unlimited")],
};
/// Cubic over sfqCoDel: an interval of ten round trips with a tenth of that as target, over 150 packets.
const SFQ_CODEL: Variant = Variant {
    line: "sfqCoDel",
    cc: "cubic",
    sets: &[
        ("transport.cubic.initial_window", "2"),
        ("switch.queue", "sfq-codel"),
        ("switch.sfq-codel.target", "22us"),
        ("switch.sfq-codel.interval", "220us"),
    ],
};
/// Cubic over sfqCoDel with CoDel's standard times, which no queue reaches here, and a buffer as small as pFabric's.
const TINY: Variant = Variant {
    line: "sfqCoDel, tiny buffer",
    cc: "cubic",
    sets: &[("transport.cubic.initial_window", "2"), ("switch.queue", "sfq-codel"), ("switch.queue_limit", "36864B")],
};
/// The same two with losses found by duplicate acknowledgments alone, as in ns-2: no RACK, and no probe of the tail.
const SFQ_NS2: Variant = Variant { line: "sfqCoDel, no RACK", cc: "cubic", sets: &SFQ_NS2_SETS };
const TINY_NS2: Variant = Variant { line: "sfqCoDel, tiny buffer, no RACK", cc: "cubic", sets: &TINY_NS2_SETS };
const NO_RACK: (&str, &str) = ("transport.tcp.loss_detection", "sack");
const SFQ_NS2_SETS: [(&str, &str); 5] = {
    let [window, queue, target, interval] = *SFQ_CODEL.sets else { panic!("it has four") };
    [window, queue, target, interval, NO_RACK]
};
const TINY_NS2_SETS: [(&str, &str); 4] = {
    let [window, queue, limit] = *TINY.sets else { panic!("it has three") };
    [window, queue, limit, NO_RACK]
};
const XCP: Variant = Variant { line: "xcp", cc: "xcp", sets: &[] };
/// XCP with the slow timers of ns-2's code.
const XCP_NS2: Variant = Variant { line: "xcp, timers of ns-2", cc: "xcp", sets: &[("transport.xcp.timers", "ns2")] };

/// Flowtune and all its baselines.
const ALL: [&Variant; 9] = [&FLOWTUNE, &IW10, &DCTCP, &K65, &PFABRIC, &SFQ_CODEL, &TINY, &XCP, &XCP_NS2];

impl Variant {
    /// Returns a run of the variant.
    fn run(
        &self,
        name: &str,
        toml: &'static str,
        sets: &[(&str, &str)],
        read: impl Fn(&Record) -> Point + Send + Sync + 'static,
    ) -> Run {
        let sets: Vec<(&str, &str)> = self.sets.iter().chain(sets).copied().collect();
        Run::of(name, toml, self.cc, &sets, read).called(self.line)
    }

    /// Returns `true` if the variant is one of `others`.
    fn is_of(&self, others: &[&Variant]) -> bool {
        others.iter().any(|other| other.line == self.line)
    }
}
