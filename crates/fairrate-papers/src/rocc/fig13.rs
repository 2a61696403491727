//! Figure 13: the DPDK testbed of 10 Gb/s, simulated. Names of its cases list the three hosts' offered rates, in Gb/s.

use super::testbed::{self, Case, Testbed};
use crate::figure::{Figure, Kind};

pub const FIGURE: Figure = Figure {
    id: "rocc/fig13",
    title: "The DPDK testbed of 10 Gb/s, simulated",
    kind: Kind::Simulation,
    quick_s: 1,
    runs: |_| testbed::runs(&TESTBED),
    panels: |points| testbed::panels(&TESTBED, points),
    claims: |points| testbed::claims(&TESTBED, points),
};

const TESTBED: Testbed = Testbed {
    gbps: 10,
    sets: SETS,
    cases: [
        Case { name: "uni (10, 10, 10)", look: "powertcp", offers_gbps: [10; 3], fair_gbps: [10.0 / 3.0; 3] },
        Case { name: "mix (10, 3, 1)", look: "dcqcn", offers_gbps: [10, 3, 1], fair_gbps: [6.0, 3.0, 1.0] },
    ],
};
/// The settings: T = 100 us, and a recovery timer longer than T by the same factor as in the simulations.
const SETS: &[(&str, &str)] = &[("transport.rocc.period", "100us"), ("transport.rocc.rise_interval", "137500ns")];
