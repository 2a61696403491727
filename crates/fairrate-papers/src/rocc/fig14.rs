//! Figure 14: the P4 testbed of 40 Gb/s, simulated. Names of its cases list the three hosts' offered rates, in Gb/s.

use super::testbed::{self, Case, Testbed};
use crate::figure::{Figure, Kind};

pub const FIGURE: Figure = Figure {
    id: "rocc/fig14",
    title: "The P4 testbed of 40 Gb/s, simulated",
    kind: Kind::Simulation,
    quick_s: 1,
    runs: |_| testbed::runs(&TESTBED),
    panels: |points| testbed::panels(&TESTBED, points),
    claims: |points| testbed::claims(&TESTBED, points),
};

const TESTBED: Testbed = Testbed {
    gbps: 40,
    sets: SETS,
    cases: [
        Case { name: "uni (40, 40, 40)", look: "powertcp", offers_gbps: [40; 3], fair_gbps: [40.0 / 3.0; 3] },
        Case { name: "mix (40, 30, 10)", look: "dcqcn", offers_gbps: [40, 30, 10], fair_gbps: [15.0, 15.0, 10.0] },
    ],
};
/// The settings: T = 20 us and units of 80 B instead of 600 B, so the gains are 80/600 of 0.3 and 1.5.
const SETS: &[(&str, &str)] = &[
    ("transport.rocc.period", "20us"),
    ("transport.rocc.queue_unit", "80B"),
    ("transport.rocc.alpha", "0.04"),
    ("transport.rocc.beta", "0.2"),
];
