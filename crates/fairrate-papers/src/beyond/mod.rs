//! Figures that are in no paper.

mod coexistence;
mod collective_forms;
mod collective_networks;
mod collectives;
mod collisions;
mod contenders;
mod shootout;
mod spine;
mod together;
mod training;

pub use coexistence::FIGURE as COEXISTENCE;
pub use collectives::FIGURE as COLLECTIVES;
pub use collisions::FIGURE as COLLISIONS;
pub use shootout::FIGURE as SHOOTOUT;
pub use spine::FIGURE as SPINE;
pub use training::FIGURE as TRAINING;
