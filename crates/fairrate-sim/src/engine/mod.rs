//! The event list and its events.

mod event;
mod event_list;
pub mod hold;
mod wheel;

pub use event::{Event, EventKind};
pub use event_list::EventList;
