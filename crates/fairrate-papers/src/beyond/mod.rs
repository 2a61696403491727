//! Figures that are in no paper.

mod coexistence;
mod collisions;
mod contenders;
mod shootout;
mod spine;
mod together;

pub use coexistence::FIGURE as COEXISTENCE;
pub use collisions::FIGURE as COLLISIONS;
pub use shootout::FIGURE as SHOOTOUT;
pub use spine::FIGURE as SPINE;
