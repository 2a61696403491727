//! A figure of a paper: its runs, its panels, and the paper's claims.

use fairrate_report::panel::Panel;

use crate::claim::Claim;
use crate::experiment::Run;
use crate::points::Points;

/// The amount of work of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Set for a smaller experiment: seconds instead of minutes.
    pub quick: bool,
    /// Set to run also the variants that only show causes.
    pub causes: bool,
    /// Seeds of random runs.
    pub seeds: Vec<u64>,
}

impl Scale {
    /// Returns the full size with all variants that show causes, or, if `quick`, a smaller size without these variants.
    pub fn new(quick: bool, seeds: Vec<u64>) -> Self {
        Self { quick, causes: !quick, seeds }
    }
}

/// The source of a figure's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A simulation of packets.
    Simulation,
    /// Equations.
    Calculation,
    /// Flows with rates, without packets.
    Flows,
    /// A measurement of this machine's speed.
    Measurement,
}

impl Kind {
    /// Returns the kind's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulation => "simulation",
            Self::Calculation => "calculation",
            Self::Flows => "flows",
            Self::Measurement => "measurement",
        }
    }
}

/// A figure of a paper.
pub struct Figure {
    /// Paper and name, as `powertcp/fig8`.
    pub id: &'static str,
    /// Title of the figure.
    pub title: &'static str,
    /// The source of its numbers.
    pub kind: Kind,
    /// Seconds it takes with `quick` on one core, approximately.
    pub quick_s: u32,
    /// Function that returns the runs at a scale.
    pub runs: fn(&Scale) -> Vec<Run>,
    /// Function that returns the panels drawn from the points.
    pub panels: fn(&Points) -> Vec<Panel>,
    /// Function that returns the paper's claims with the values measured in the points.
    pub claims: fn(&Points) -> Vec<Claim>,
}

impl Figure {
    /// Returns the paper's name, as `powertcp`.
    pub fn paper(&self) -> &'static str {
        self.id.split_once('/').map_or(self.id, |(paper, _)| paper)
    }
}
