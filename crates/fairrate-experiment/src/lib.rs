//! Runs of scenarios, and experiments of many runs.
//!
//! [`run_into`] runs a simulation into any sink, and [`drive()`] a [`Scenario`](fairrate_scenario::Scenario) into a
//! results directory. [`columns`] plans the runs of a comparison, [`cache`] knows those that were done before, and
//! [`crew`] does the others.

pub mod cache;
pub mod columns;
pub mod crew;
mod describe;
mod drive;
mod inputs;
mod simulate;

pub use describe::{
    Block, Class, Description, Expected, Fault, Groups, ImperfectHosts, Job, LeftOut, Links, Load, Operations,
    Oversubscription, PortKind, Routing, Servers, describe,
};
pub use drive::{drive, drive_and_report};
pub use inputs::{copy_run, inputs_of};
pub use simulate::{Ended, Watch, run_into};
