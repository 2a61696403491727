//! What parts of a network have to tell, in the order of events, which does not depend on how many parts there are.

use std::sync::Mutex;

use super::Core;
use super::cluster::lock;
use crate::engine::Event;
use crate::ids::FlowId;
use crate::output::{ConvergenceSample, PfcEvent, RttSample, Sink};

/// Something to tell.
pub(super) enum Told {
    /// A flow is over.
    Flow(FlowId),
    /// A port was paused or resumed.
    Pfc(PfcEvent),
    /// A sender has measured a round-trip time.
    Rtt(RttSample),
    /// Rates have settled, or will not any more.
    Convergence(ConvergenceSample),
}

/// What a part has to tell that has not been passed on, and up to which of it each event.
#[derive(Default)]
pub(super) struct Story {
    told: Vec<Told>,
    marks: Vec<(Event, usize)>,
    /// The last of the marks.
    marked: usize,
    /// How many of the marks have been passed on.
    done: usize,
}

impl Story {
    /// Adds something.
    #[inline]
    pub(super) fn push(&mut self, told: Told) {
        self.told.push(told);
    }

    /// What was added since the last event is of this one.
    #[inline]
    pub(super) fn mark(&mut self, event: Event) {
        if self.told.len() != self.marked {
            self.marked = self.told.len();
            self.marks.push((event, self.marked));
        }
    }

    fn next(&self) -> Option<Event> {
        self.marks.get(self.done).map(|mark| mark.0)
    }

    /// Takes what the next event has told.
    fn pass_on(&mut self, mut to: impl FnMut(&Told)) {
        let start = self.done.checked_sub(1).map_or(0, |before| self.marks[before].1);
        self.told[start..self.marks[self.done].1].iter().for_each(&mut to);
        self.done += 1;
    }

    fn clear(&mut self) {
        self.told.clear();
        self.marks.clear();
        (self.marked, self.done) = (0, 0);
    }
}

/// Tells `sink` what all parts have told since the last time.
///
/// Of the parts' next events the first one is next: a part's events come in order, as no packet crosses a link in no time,
/// and what one part causes in another is later by a delay. So this is the order in which one part alone would have
/// processed them.
pub(super) fn tell(cores: &[Mutex<Core>], sink: &mut dyn Sink) {
    let mut flows = Vec::new();
    loop {
        let next = cores.iter().filter_map(|core| lock(core).story.next().map(|event| (event, core)));
        let Some((_, core)) = next.min_by_key(|&(event, _)| event) else { break };
        lock(core).story.pass_on(|told| match told {
            Told::Flow(flow) => flows.push(*flow),
            Told::Pfc(event) => sink.pfc(event),
            Told::Rtt(sample) => sink.rtt(sample),
            Told::Convergence(sample) => sink.convergence(sample),
        });
        for flow in flows.drain(..) {
            sink.flow(&super::cluster::outcome(cores, flow.0));
        }
    }
    for core in cores {
        lock(core).story.clear();
    }
}
