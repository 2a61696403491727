//! What all parts have to tell, in the order of events, which does not depend on how many parts there are.

use std::sync::Mutex;

use super::cluster::{lock, outcome};
use crate::core::Part;
use crate::core::told::News;
use crate::output::Sink;

/// Tells `sink` what all parts have told since the last time.
///
/// Of the parts' next events the first one is next: a part's events come in order, as no packet crosses a link in no time,
/// and what one part causes in another is later by a delay. So this is the order in which one part alone would have
/// processed them.
pub(super) fn tell(parts: &[Mutex<Part>], sink: &mut dyn Sink) {
    let mut flows = Vec::new();
    loop {
        let next = parts.iter().filter_map(|part| lock(part).world.told.next().map(|event| (event, part)));
        let Some((_, part)) = next.min_by_key(|&(event, _)| event) else { break };
        lock(part).world.told.pass_on(|news| match news {
            News::Flow(flow) => flows.push(*flow),
            News::Pfc(event) => sink.pfc(event),
            News::Rtt(sample) => sink.rtt(sample),
            News::Convergence(sample) => sink.convergence(sample),
        });
        for flow in flows.drain(..) {
            sink.flow(&outcome(parts, flow.0));
        }
    }
    for part in parts {
        lock(part).world.told.clear();
    }
}
