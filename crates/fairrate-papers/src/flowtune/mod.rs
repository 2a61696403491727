//! Flowtune: J. Perry, H. Balakrishnan, D. Shah, "Flowtune: Flowlet Control for Datacenter Networks",
//! MIT-CSAIL-TR-2016-011.
//!
//! The paper ran ns-2 and gives few parameters of its baselines: TCP's first window, DCTCP's marking threshold,
//! buffers, CoDel's times and XCP's timers are ours. Each parameter that matters has a line of its own. So have the
//! nodes of ns-2, whose hosts have queues before their links, with its headers and acknowledgments of 40 bytes.

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
    hosts: Hosts,
}

/// The hosts of a line, with the bytes of headers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hosts {
    /// Ideal hosts with headers of Ethernet, as everywhere else.
    Ideal,
    /// As in ns-2: queues before the links of hosts, and headers and acknowledgments of 40 bytes.
    Ns2,
}

impl Hosts {
    /// Returns the keys that a scenario changes for them.
    const fn sets(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Ideal => &[],
            Self::Ns2 => &[
                ("topology.host_queues", "true"),
                ("transport.header", "40B"),
                ("transport.ack", "40B"),
                ("allocator.min_packet", "40B"),
            ],
        }
    }
}

/// TCP's first window is ns-2's, two segments, for Flowtune, DCTCP and Cubic.
const FLOWTUNE: Variant = Variant {
    line: "flowtune",
    cc: "flowtune",
    sets: &[("transport.flowtune.initial_window", "2")],
    hosts: Hosts::Ideal,
};
/// Flowtune with ten segments (RFC 6928), as in the examples.
const IW10: Variant = Variant { line: "flowtune, 10 segments", cc: "flowtune", sets: &[], hosts: Hosts::Ideal };
/// Flowtune at the end of the paper's range of gamma.
const GAMMA: Variant = Variant {
    line: "flowtune, gamma 1.5",
    cc: "flowtune",
    sets: &[("transport.flowtune.initial_window", "2"), ("allocator.gamma", "1.5")],
    hosts: Hosts::Ideal,
};
const DCTCP: Variant =
    Variant { line: "dctcp", cc: "dctcp", sets: &[("transport.dctcp.initial_window", "2mtu")], hosts: Hosts::Ideal };
/// DCTCP that marks from 65 packets on, as in the DCTCP paper at 10 Gb/s.
const K65: Variant = Variant {
    line: "dctcp, K = 65",
    cc: "dctcp",
    sets: &[("transport.dctcp.initial_window", "2mtu"), ("switch.ecn.kmin", "97500B"), ("switch.ecn.kmax", "97500B")],
    hosts: Hosts::Ideal,
};
const K65_IW10: Variant = Variant {
    line: "dctcp, K = 65, 10 segments",
    cc: "dctcp",
    sets: &[("switch.ecn.kmin", "97500B"), ("switch.ecn.kmax", "97500B")],
    hosts: Hosts::Ideal,
};
const PFABRIC: Variant = Variant {
    line: "pfabric",
    cc: "pfabric",
    sets: &[("switch.queue_limit", "36864B"), ("switch.dt_alpha", "unlimited")],
    hosts: Hosts::Ideal,
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
    hosts: Hosts::Ideal,
};
/// Cubic over sfqCoDel with CoDel's standard times, which no queue reaches here, and a buffer as small as pFabric's.
const TINY: Variant = Variant {
    line: "sfqCoDel, tiny buffer",
    cc: "cubic",
    sets: &[("transport.cubic.initial_window", "2"), ("switch.queue", "sfq-codel"), ("switch.queue_limit", "36864B")],
    hosts: Hosts::Ideal,
};
/// The same two with losses found by duplicate acknowledgments alone, as in ns-2: no RACK, and no probe of the tail.
const SFQ_NS2: Variant = Variant { line: "sfqCoDel, no RACK", cc: "cubic", sets: &SFQ_NS2_SETS, hosts: Hosts::Ideal };
const TINY_NS2: Variant =
    Variant { line: "sfqCoDel, tiny buffer, no RACK", cc: "cubic", sets: &TINY_NS2_SETS, hosts: Hosts::Ideal };
const NO_RACK: (&str, &str) = ("transport.tcp.loss_detection", "sack");
const SFQ_NS2_SETS: [(&str, &str); 5] = {
    let [window, queue, target, interval] = *SFQ_CODEL.sets else { panic!("it has four") };
    [window, queue, target, interval, NO_RACK]
};
const TINY_NS2_SETS: [(&str, &str); 4] = {
    let [window, queue, limit] = *TINY.sets else { panic!("it has three") };
    [window, queue, limit, NO_RACK]
};
const XCP: Variant = Variant { line: "xcp", cc: "xcp", sets: &[], hosts: Hosts::Ideal };
/// XCP with the slow timers of ns-2's code.
const XCP_NS2: Variant =
    Variant { line: "xcp, timers of ns-2", cc: "xcp", sets: &[("transport.xcp.timers", "ns2")], hosts: Hosts::Ideal };

const FLOWTUNE_NODES: Variant = FLOWTUNE.with_nodes("flowtune, ns-2's nodes");
/// Flowtune that begins with one segment.
const ONE_SEGMENT_NODES: Variant = Variant {
    line: "flowtune, 1 segment, ns-2's nodes",
    cc: "flowtune",
    sets: &[("transport.flowtune.initial_window", "1")],
    hosts: Hosts::Ns2,
};
const DCTCP_NODES: Variant = DCTCP.with_nodes("dctcp, ns-2's nodes");
const K65_NODES: Variant = K65.with_nodes("dctcp, K = 65, ns-2's nodes");
const K65_IW10_NODES: Variant = K65_IW10.with_nodes("dctcp, K = 65, 10 segments, ns-2's nodes");
/// The lines with the nodes of ns-2, and the line of each with ideal hosts.
const NODES: [(&Variant, &Variant); 7] = [
    (&FLOWTUNE, &FLOWTUNE_NODES),
    (&DCTCP, &DCTCP_NODES),
    (&K65, &K65_NODES),
    (&K65_IW10, &K65_IW10_NODES),
    (&PFABRIC, &PFABRIC.with_nodes("pfabric, ns-2's nodes")),
    (&SFQ_NS2, &SFQ_NS2.with_nodes("sfqCoDel, no RACK, ns-2's nodes")),
    (&XCP_NS2, &XCP_NS2.with_nodes("xcp, ns-2's timers and nodes")),
];
/// The lines of Figures 9 to 11 with the nodes of ns-2.
const NODES_SHOWN: [&Variant; 7] = {
    let [flowtune, dctcp, k65, _, pfabric, sfq, xcp] = NODES;
    [flowtune.1, dctcp.1, k65.1, pfabric.1, sfq.1, &SFQ_RTO, xcp.1]
};
/// Cubic over sfqCoDel with the nodes of ns-2, and with longer timeouts in place of 200 us.
const SFQ_RTO: Variant = Variant {
    line: "sfqCoDel, no RACK, ns-2's nodes, timeouts from 2 ms",
    cc: "cubic",
    sets: &{
        let [window, queue, target, interval, no_rack] = SFQ_NS2_SETS;
        [window, queue, target, interval, no_rack, ("transport.tcp.rto_min", "2ms"), ("transport.tcp.rto_max", "1s")]
    },
    hosts: Hosts::Ns2,
};

/// Flowtune and all its baselines.
const ALL: [&Variant; 9] = [&FLOWTUNE, &IW10, &DCTCP, &K65, &PFABRIC, &SFQ_CODEL, &TINY, &XCP, &XCP_NS2];

impl Variant {
    /// Returns the variant with the nodes of ns-2, as the line of this name.
    const fn with_nodes(&self, line: &'static str) -> Self {
        Self { line, cc: self.cc, sets: self.sets, hosts: Hosts::Ns2 }
    }

    /// Returns a run of the variant.
    fn run(
        &self,
        name: &str,
        toml: &'static str,
        sets: &[(&str, &str)],
        read: impl Fn(&Record) -> Point + Send + Sync + 'static,
    ) -> Run {
        let sets: Vec<(&str, &str)> = self.sets.iter().chain(self.hosts.sets()).chain(sets).copied().collect();
        Run::of(name, toml, self.cc, &sets, read).called(self.line)
    }

    /// Returns the line with the nodes of ns-2, if there is one.
    fn on_nodes(&self) -> Option<&'static Self> {
        NODES.into_iter().find(|(ideal, _)| self.is_of(&[ideal])).map(|(_, nodes)| nodes)
    }

    /// Returns the changes of a line with ideal hosts that lead to the nodes of ns-2, in words, each with its line: for
    /// sfqCoDel also longer timeouts, and with RACK first none of it, since no line with such nodes has it.
    fn changes_to_nodes(&self) -> Vec<(&'static str, &'static Self)> {
        const HOSTS: &str = "hosts and headers are those of ns-2";
        let (like, words) = if self.is_of(&[&SFQ_CODEL]) {
            let hosts = "hosts and headers are those of ns-2, without RACK";
            (&SFQ_NS2, [hosts, "hosts and headers are those of ns-2, without RACK, and timeouts take 2 ms or more"])
        } else {
            (self, [HOSTS, "hosts and headers are those of ns-2, and timeouts take 2 ms or more"])
        };
        let longer = like.is_of(&[&SFQ_NS2]).then_some((words[1], &SFQ_RTO));
        like.on_nodes().map(|nodes| (words[0], nodes)).into_iter().chain(longer).collect()
    }

    /// Returns `true` if the variant is one of `others`.
    fn is_of(&self, others: &[&Variant]) -> bool {
        others.iter().any(|other| other.line == self.line)
    }
}
