//! What a part tells: totals, and what there is to tell of single events.

use fairrate_units::Time;

use crate::engine::Event;
use crate::ids::FlowId;
use crate::output::{ConvergenceSample, PfcEvent, RttSample, RunTotals};

/// Something to tell.
#[derive(Clone, Copy)]
pub(crate) enum News {
    /// A flow is over.
    Flow(FlowId),
    /// A port was paused or resumed.
    Pfc(PfcEvent),
    /// A sender has measured a round-trip time.
    Rtt(RttSample),
    /// Rates have settled, or will not any more.
    Convergence(ConvergenceSample),
}

/// What a part has to tell.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) totals: RunTotals,
    /// Whether round-trip times are told.
    pub(crate) tells_rtts: bool,
    /// What has not been passed on, each with the event it is of; from `marked` on, that of the event being processed.
    news: Vec<(Event, News)>,
    marked: usize,
    /// How many of them have been passed on since they were put into order.
    n_done: usize,
    /// Whether they are not in the order of events: switches work ahead of others.
    is_mixed: bool,
}

impl Told {
    /// Adds something.
    #[inline]
    pub(crate) fn push(&mut self, news: News) {
        self.news.push((Event::LAST, news));
    }

    /// A sender of a user's flow has measured a round-trip time.
    #[inline]
    pub(crate) fn push_rtt(&mut self, t: Time, flow: FlowId, rtt: Time) {
        if self.tells_rtts {
            self.push(News::Rtt(RttSample { t, flow, rtt }));
        }
    }

    /// Whether anything was added since the last event.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.news.len() != self.marked
    }

    /// What was added since the last event is of this one.
    pub(crate) fn mark(&mut self, event: Event) {
        self.is_mixed |= self.marked.checked_sub(1).is_some_and(|last| event < self.news[last].0);
        self.news[self.marked..].iter_mut().for_each(|news| news.0 = event);
        self.marked = self.news.len();
    }

    /// Puts what there is to tell into the order of events.
    pub(super) fn sort(&mut self) {
        if std::mem::take(&mut self.is_mixed) {
            // The news of an event stay in their order.
            self.news.sort_by_key(|news| news.0);
        }
    }

    /// The first of the events whose news have not been passed on.
    pub(super) fn first(&self) -> Option<Event> {
        self.news.get(self.n_done).map(|news| news.0)
    }

    /// Takes the first of the news that have not been passed on.
    pub(super) fn take_first(&mut self) -> Option<News> {
        let news = self.news.get(self.n_done)?.1;
        self.n_done += 1;
        Some(news)
    }

    /// Forgets what has been passed on.
    pub(super) fn forget_done(&mut self) {
        self.news.drain(..std::mem::take(&mut self.n_done));
        self.marked = self.news.len();
    }
}
