//! Figures that are in no paper.

mod contenders;
mod shootout;
mod together;

pub use shootout::FIGURE as SHOOTOUT;
