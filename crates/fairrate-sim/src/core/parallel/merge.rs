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
    loop {
        let firsts = parts.iter().filter_map(|part| lock(part).world.observed.first().map(|event| (event, part)));
        let Some((event, part)) = firsts.min_by_key(|&(event, _)| event) else { break };
        if next.is_some_and(|next| next <= event) {
            break;
        }
        let Some(notification) = lock(part).world.observed.take_first() else { break };
        match notification {
            Notification::Flow(flow, ideal_fct) => sink.flow(&outcome(parts, flow, Some(ideal_fct))),
            Notification::Task(outcome) => sink.task(&outcome),
            Notification::Pfc(event) => sink.pfc(&event),
            Notification::Rtt(sample) => sink.rtt(&sample),
            Notification::Packet(event) => sink.packet(&event),
            Notification::Header(at) => {
                let header = lock(part).world.observed.header(at);
                sink.header(&header);
            }
            Notification::Sender(event) => sink.sender(&event),
            Notification::Receiver(event) => sink.receiver(&event),
            Notification::Convergence(sample) => sink.convergence(&sample),
        }
    }
    for part in parts {
        lock(part).world.observed.forget_done();
    }
}
