//! The event list and what is in it.

mod event;
mod event_list;
mod wheel;

pub use event::{Event, EventKind};
pub use event_list::EventList;
