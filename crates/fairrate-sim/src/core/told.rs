//! What a part tells: totals, and what there is to tell of single events.

use fairrate_units::Time;

use crate::engine::Event;
use crate::fabric::DropCause;
use crate::ids::FlowId;
use crate::output::{ConvergenceSample, PfcEvent, RttSample, RunTotals};
use crate::packet::{Packet, PacketKind};

/// Something to tell.
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
    /// What has not been passed on, and up to which of it each event.
    news: Vec<News>,
    marks: Vec<(Event, usize)>,
    /// The last of the marks.
    marked: usize,
    /// How many of the marks have been passed on.
    done: usize,
}

impl Told {
    /// Adds something.
    #[inline]
    pub(crate) fn push(&mut self, news: News) {
        self.news.push(news);
    }

    /// A sender of a user's flow has measured a round-trip time.
    #[inline]
    pub(crate) fn push_rtt(&mut self, t: Time, flow: u32, rtt: Time) {
        if self.tells_rtts {
            self.push(News::Rtt(RttSample { t, flow: FlowId(flow), rtt }));
        }
    }

    /// What was added since the last event is of this one.
    #[inline]
    pub(crate) fn mark(&mut self, event: Event) {
        if self.news.len() != self.marked {
            self.marked = self.news.len();
            self.marks.push((event, self.marked));
        }
    }

    /// The first event whose news have not been passed on.
    pub(super) fn next(&self) -> Option<Event> {
        self.marks.get(self.done).map(|mark| mark.0)
    }

    /// Takes what the next event has told.
    pub(super) fn pass_on(&mut self, mut to: impl FnMut(&News)) {
        let start = self.done.checked_sub(1).map_or(0, |before| self.marks[before].1);
        self.news[start..self.marks[self.done].1].iter().for_each(&mut to);
        self.done += 1;
    }

    /// Forgets what has been passed on, which is all.
    pub(super) fn clear(&mut self) {
        self.news.clear();
        self.marks.clear();
        (self.marked, self.done) = (0, 0);
    }

    /// Counts a packet that is dropped, by its cause.
    pub(crate) fn count_drop(&mut self, packet: &Packet, cause: DropCause) {
        let drops = &mut self.totals.drops;
        match cause {
            DropCause::EgressThreshold => drops.egress_threshold += 1,
            DropCause::IngressThreshold => drops.ingress_threshold += 1,
            DropCause::BufferFull => drops.buffer_full += 1,
            DropCause::Headroom => drops.headroom += 1,
            DropCause::QueueLimit => drops.queue_limit += 1,
            DropCause::Early => drops.early += 1,
            DropCause::Sojourn => drops.sojourn += 1,
            DropCause::Priority => drops.priority += 1,
        }
        if packet.kind == PacketKind::Data {
            self.totals.dropped_bytes += u64::from(packet.wire);
        }
    }
}
