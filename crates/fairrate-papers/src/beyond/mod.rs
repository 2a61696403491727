//! Figures that are in no paper.

mod collisions;
mod contenders;
mod shootout;
mod spine;
mod together;

pub use collisions::FIGURE as COLLISIONS;
pub use shootout::FIGURE as SHOOTOUT;
pub use spine::FIGURE as SPINE;
