//! Presentation of runs: statistics, tables for the terminal and a self-contained `report.html`.
//!
//! [`load`] reads a results directory into [`model::RunData`]; [`metrics::Metrics`] are the numbers of one algorithm
//! over its seeds; [`comparison`] compares several, with intervals over seeds from [`bootstrap`]; [`table`] prints them
//! and [`html`] draws them. [`index`] is the list of the runs of a comparison.

mod blocks;
pub mod bootstrap;
pub mod by_size;
pub mod collectives;
pub mod comparison;
pub mod completion;
pub mod critical_path;
pub mod export;
pub mod figures;
pub mod findings;
pub mod format;
pub mod heat_map;
pub mod html;
mod html_table;
pub mod index;
pub mod jobs;
pub mod load;
pub mod metric;
pub mod metrics;
pub mod model;
pub mod network;
pub mod notes;
pub mod outages;
pub mod panel;
mod panels;
mod pauses;
mod picture;
mod places;
pub mod publish;
mod queue_map;
mod queue_tails;
mod rtts;
pub mod series;
pub mod so_far;
pub mod stats;
pub mod style;
pub mod svg;
pub mod sweep;
pub mod table;
mod ticks;
pub mod timeline;
pub mod worst;

#[cfg(test)]
mod synthetic;
