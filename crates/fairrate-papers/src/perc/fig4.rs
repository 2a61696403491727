//! Figure 4: web search at 60 % on a slow and short link. Reactive algorithms are good there.

use super::web_search::{self, CHARGED, DCTCP, PERC, RCP, Says, Setting};
use crate::claim::Rule;
use crate::figure::{Figure, Kind};

pub const FIGURE: Figure = Figure {
    id: "perc/fig4",
    title: "Completion times of web search on a link of 10 Gb/s and 12 us",
    kind: Kind::Simulation,
    quick_s: 4,
    runs: |scale| web_search::runs(&LINK, scale),
    panels: |points| web_search::panels(&LINK, points),
    claims: |points| web_search::claims(&LINK, points),
};

const LINK: Setting = Setting {
    rate: "10Gbps",
    delay: "2670ns",
    rtt: "12us",
    // This gives about 1,100 flows, of which 150 are small. With six times as many, PERC's queue grows without end for
    // some seeds, and a run takes longer than can be waited for; the claims on growth say what is seen of it here.
    until: ["2500ms", "1s"],
    causes: &[],
    says: &[
        Says { classes: &["small"], cause: Some(CONTROL_PACKETS), ..COMPARABLE },
        Says { classes: &["medium", "large"], ..COMPARABLE },
        Says { over: &[&CHARGED], ..COMPARABLE },
        Says {
            line: &DCTCP,
            over: &[&PERC, &RCP, &CHARGED],
            words: "DCTCP \"performs better\"",
            rule: Rule::AtMost(1.0),
            ..COMPARABLE
        },
    ],
};

const COMPARABLE: Says = Says {
    classes: &["small", "medium", "large"],
    line: &RCP,
    over: &[&PERC],
    words: "\"comparable\" (25 % is ours)",
    rule: Rule::About(1.0, 0.25),
    cause: None,
};

const CONTROL_PACKETS: &str = "Control packets come on top of rates that fill the link, so a queue stands before small flows. With \
     control packets of 1 B, charged ones or headroom it is gone; with first rates that wait it is not.";
