//! The figures of the papers that fairrate unites. A figure is a module that reads as the experiment: its runs, its
//! panels, and the paper's claims about it.
//!
//! [`FIGURES`] lists all figures. [`Run`]s give [`Point`]s, which [`Store`] keeps, so that an interrupted figure is
//! resumed. [`Points`] holds the results of all runs of a figure: panels and claims are made from it. [`measured`]
//! reads and writes it as a table, and [`sheet`] writes the figure as files.

mod beyond;
mod claim;
mod curves;
mod drawing;
mod experiment;
mod figure;
mod flowtune;
#[cfg(test)]
mod keys;
mod list;
mod looked;
pub mod measured;
mod moments;
mod null;
mod occupancy;
mod perc;
mod points;
mod powertcp;
mod ratemp;
mod rates;
mod record;
mod rocc;
mod rtts;
pub mod sheet;
mod store;
mod variant;

pub use claim::{Claim, Rule, Tally, Verdict};
pub use experiment::{Run, Work};
pub use figure::{Figure, Kind, Scale};
pub use list::{FIGURES, matching};
pub use looked::{is_bare, looked_at};
pub use points::{Point, Points};
pub use record::{Record, Samples};
pub use rtts::Rtts;
pub use store::{Kept, Store};
