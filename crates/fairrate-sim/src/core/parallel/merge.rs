//! The merging of all parts' notifications in the order of events, which does not depend on the number of parts.

use std::sync::Mutex;

use super::cluster::outcome;
use super::crew::lock;
use crate::core::Part;
use crate::core::observations::Notification;
use crate::engine::Event;
use crate::output::Sink;

/// Passes to `sink` the notifications that all parts have added since the last call: those before `next`, the next
/// event of any part, or all of them if it is `None` because the run is over.
///
/// An event of one part has an effect in another only after a link's delay, which is never zero. So the order of events
/// is the one in which a single part would have processed them.
pub(super) fn pass_on(parts: &[Mutex<Part>], next: Option<Event>, sink: &mut dyn Sink) {
    for part in parts {
        lock(part).world.observed.sort();
    }
    while let Some((event, part, other)) = first_of(parts) {
        if next.is_some_and(|next| next <= event) {
            break;
        }
        pass_on_of(parts, part, other.into_iter().chain(next).min(), sink);
    }
    for part in parts {
        lock(part).world.observed.forget_done();
    }
}

/// Returns the first event with a notification that was not yet passed on, its part, and the first such event of the
/// other parts.
fn first_of(parts: &[Mutex<Part>]) -> Option<(Event, &Mutex<Part>, Option<Event>)> {
    let firsts = parts.iter().filter_map(|part| Some((lock(part).world.observed.first()?, part)));
    firsts.fold(None, |found, (event, part)| match found {
        Some((first, of, other)) if first <= event => {
            Some((first, of, Some(other.map_or(event, |other| event.min(other)))))
        }
        Some((first, ..)) => Some((event, part, Some(first))),
        None => Some((event, part, None)),
    })
}

/// Passes to `sink` the first notification of `part`, and those after it that are before `until`, or all of them.
fn pass_on_of(parts: &[Mutex<Part>], part: &Mutex<Part>, until: Option<Event>, sink: &mut dyn Sink) {
    let mut locked = lock(part);
    while let Some(notification) = locked.world.observed.take_first() {
        match notification {
            Notification::Flow(flow, ideal_fct) => {
                // The outcome is that of a sender and of a receiver, which are of any part.
                drop(locked);
                sink.flow(&outcome(parts, flow, Some(ideal_fct)));
                locked = lock(part);
            }
            Notification::Packet(event, header) => {
                let header = header.map(|at| locked.world.observed.header(at));
                sink.packet(&event, header.as_ref());
            }
            Notification::Other(observation) => sink.observe(&observation),
        }
        let is_over = |first: Event| until.is_some_and(|until| until <= first);
        if locked.world.observed.first().is_none_or(is_over) {
            break;
        }
    }
}
