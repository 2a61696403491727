//! Figures that no paper has.

mod contenders;
mod shootout;
mod together;

pub use shootout::FIGURE as SHOOTOUT;
