//! Figure 1: web search at 60 % on a fast and long link. Reactive algorithms are slow there.

use super::web_search::{self, CHARGED, DCTCP, DCTCP_TWO, PERC, RCP, Says, Setting};
use crate::claim::Rule;
use crate::figure::{Figure, Kind};

pub const FIGURE: Figure = Figure {
    id: "perc/fig1",
    title: "Completion times of web search on a link of 100 Gb/s and 120 us",
    kind: Kind::Simulation,
    quick_s: 6,
    runs: |scale| web_search::runs(&LINK, scale),
    panels: |points| web_search::panels(&LINK, points),
    claims: |points| web_search::claims(&LINK, points),
};

const LINK: Setting = Setting {
    rate: "100Gbps",
    delay: "57865ns",
    rtt: "120us",
    // This gives about 6,500 flows, of which 900 are small; the quick run has a sixth of that.
    until: ["1500ms", "250ms"],
    causes: &[&DCTCP_TWO],
    says: &[
        Says {
            classes: &["small", "medium"],
            line: &RCP,
            over: &[&PERC, &CHARGED],
            words: "\"almost four times\"",
            rule: Rule::Times(4.0),
            cause: None,
        },
        Says {
            classes: &["medium", "large"],
            line: &DCTCP,
            over: &[&PERC, &CHARGED],
            words: "\"completely break down\" (4 is ours)",
            rule: Rule::AtLeast(4.0),
            cause: None,
        },
    ],
};
