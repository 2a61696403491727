//! Figure 5: web search at 60 % on a fast and short link.

use super::web_search::{self, CHARGED, DCTCP, PERC, RCP, Says, Setting};
use crate::claim::Rule;
use crate::figure::{Figure, Kind};

pub const FIGURE: Figure = Figure {
    id: "perc/fig5",
    title: "Completion times of web search on a link of 100 Gb/s and 12 us",
    kind: Kind::Simulation,
    quick_s: 6,
    runs: |scale| web_search::runs(&LINK, scale),
    panels: |points| web_search::panels(&LINK, points),
    claims: |points| web_search::claims(&LINK, points),
};

const LINK: Setting = Setting {
    rate: "100Gbps",
    delay: "3865ns",
    rtt: "12us",
    // This gives about 6,500 flows, of which 900 are small; the quick run has a sixth of that.
    until: ["1500ms", "250ms"],
    causes: &[],
    says: &[VERY_LOW, Says { line: &DCTCP, ..VERY_LOW }],
};

const VERY_LOW: Says = Says {
    classes: &["medium"],
    line: &RCP,
    over: &[&PERC, &CHARGED],
    words: "PERC \"outperforms\" it (by a quarter, which is ours)",
    rule: Rule::AtLeast(1.25),
    cause: None,
};
