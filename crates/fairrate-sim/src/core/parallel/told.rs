//! What all parts have to tell, in the order of events, which does not depend on how many parts there are.

use std::sync::Mutex;

use super::cluster::{lock, outcome};
use crate::core::Part;
use crate::core::told::News;
use crate::engine::Event;
use crate::output::Sink;

/// Tells `sink` what all parts have told since the last time, up to the `next` event of any; all, if the run is over.
///
/// What one part causes in another is later by a delay, as no packet crosses a link in no time. So the order of events is the
/// one in which a single part would have processed them.
pub(super) fn tell(parts: &[Mutex<Part>], next: Option<Event>, sink: &mut dyn Sink) {
    for part in parts {
        lock(part).world.told.sort();
    }
    loop {
        let firsts = parts.iter().filter_map(|part| lock(part).world.told.first().map(|event| (event, part)));
        let Some((event, part)) = firsts.min_by_key(|&(event, _)| event) else { break };
        if next.is_some_and(|next| next <= event) {
            break;
        }
        let Some(news) = lock(part).world.told.take_first() else { break };
        match news {
            News::Flow(flow) => sink.flow(&outcome(parts, flow)),
            News::Pfc(event) => sink.pfc(&event),
            News::Rtt(sample) => sink.rtt(&sample),
            News::Convergence(sample) => sink.convergence(&sample),
        }
    }
    for part in parts {
        lock(part).world.told.forget_done();
    }
}
