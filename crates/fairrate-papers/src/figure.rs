//! A figure of a paper: what is run, what is drawn, and what the paper says.

use fairrate_report::figure::Figure as Panel;

use crate::claim::Claim;
use crate::experiment::Run;
use crate::points::Points;

/// How much is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Less of everything: minutes become seconds.
    pub quick: bool,
    /// Whether variants that only show causes are run.
    pub causes: bool,
    /// Seeds of what is random.
    pub seeds: Vec<u64>,
}

impl Scale {
    /// Of the full size with all that shows causes, or less of everything and no such runs.
    pub fn new(quick: bool, seeds: Vec<u64>) -> Self {
        Self { quick, causes: !quick, seeds }
    }
}

/// Where a figure's numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Packets.
    Simulation,
    /// Equations.
    Calculation,
    /// Flows with rates, without packets.
    Flows,
    /// How fast this machine is.
    Measurement,
}

impl Kind {
    /// Its name.
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
    /// What it shows.
    pub title: &'static str,
    /// Where its numbers come from.
    pub kind: Kind,
    /// Seconds it takes with `quick` on one core, about.
    pub quick_s: u32,
    /// What is run.
    pub runs: fn(&Scale) -> Vec<Run>,
    /// What is drawn.
    pub panels: fn(&Points) -> Vec<Panel>,
    /// What the paper says.
    pub claims: fn(&Points) -> Vec<Claim>,
}

impl Figure {
    /// The paper, as `powertcp`.
    pub fn paper(&self) -> &'static str {
        self.id.split_once('/').map_or(self.id, |(paper, _)| paper)
    }
}
