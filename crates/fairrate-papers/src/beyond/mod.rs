//! Figures that are in no paper.

mod contenders;
mod shootout;
mod spine;
mod together;

pub use shootout::FIGURE as SHOOTOUT;
pub use spine::FIGURE as SPINE;
