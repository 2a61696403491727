//! The figures of the papers that fairrate unites. A figure is a module that reads as the experiment: what is run, what is
//! drawn, and what the paper says of it.
//!
//! [`FIGURES`] has all of them. [`Run`]s give [`Point`]s, which [`Store`] keeps, so that a figure that was interrupted goes on
//! where it was. [`Points`] are what all runs of a figure gave: panels and claims are made from them. [`sheet`] writes them as
//! files.

mod claim;
mod drawing;
mod experiment;
mod figure;
mod flowtune;
mod perc;
mod points;
mod powertcp;
mod ratemp;
mod record;
mod rocc;
mod rtts;
pub mod sheet;
mod store;
mod variant;

pub use claim::{Claim, Rule, Verdict};
pub use experiment::{Run, Work};
pub use figure::{FIGURES, Figure, Kind, Scale, matching};
pub use points::{Point, Points};
pub use record::{Record, Samples};
pub use rtts::Rtts;
pub use store::Store;
