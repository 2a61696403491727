//! The sink that traces a run.

use std::io;

use fairrate_sim::{Observation, PacketEvent, PacketHeader, PacketStep, PfcEvent, SenderEvent, Sink, Wants};

use crate::filter::Filter;

/// The cause for which a trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The run, or the time to trace, is over.
    Whole,
    /// The file has reached its largest size.
    Limit,
}

/// A file format of traces. Its functions return [`End::Limit`] after the last step that the file has room for.
pub trait Format {
    /// Returns `true` if [`Format::step`] shall have the headers of packets.
    fn wants_headers(&self) -> bool;
    /// Adds a step of a packet, with its header if [`Format::wants_headers`] says so.
    ///
    /// # Errors
    /// Those of writing.
    fn step(&mut self, event: &PacketEvent, header: Option<&PacketHeader<'_>>) -> io::Result<End>;
    /// Adds the pause or resumption of a port.
    ///
    /// # Errors
    /// Those of writing.
    fn pfc(&mut self, _event: &PfcEvent) -> io::Result<End> {
        Ok(End::Whole)
    }
    /// Returns `true` if [`Format::sender`] shall be called.
    fn wants_senders(&self) -> bool {
        false
    }
    /// Adds a step of a sender.
    ///
    /// # Errors
    /// Those of writing.
    fn sender(&mut self, _event: &SenderEvent) -> io::Result<End> {
        Ok(End::Whole)
    }
    /// Completes the file.
    ///
    /// # Errors
    /// Those of writing.
    fn finish(&mut self) -> io::Result<()>;
    /// Returns the number of bytes written so far.
    fn written(&self) -> u64;
}

/// Numbers of steps that a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that left a port.
    pub sent: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Packets that were cut to their headers.
    pub trimmed: u64,
    /// Pauses and resumptions.
    pub pauses: u64,
}

/// A sink that writes a trace.
pub struct Tracer {
    format: Box<dyn Format>,
    filter: Filter,
    counts: Counts,
    end: End,
    /// `true` if nothing more is traced.
    is_over: bool,
    error: Option<io::Error>,
}

impl Tracer {
    /// Returns a sink that traces the steps that `filter` lets through.
    pub fn new(format: Box<dyn Format>, filter: Filter) -> Self {
        let (counts, end) = (Counts::default(), End::Whole);
        Self { format, filter, counts, end, is_over: false, error: None }
    }

    /// Completes the file. Returns the numbers of its steps, its bytes, and the cause for which it ends.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(mut self) -> io::Result<(Counts, u64, End)> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.format.finish()?;
        Ok((self.counts, self.format.written(), self.end))
    }

    /// Notes the result of adding a step.
    fn note(&mut self, done: io::Result<End>) {
        match done {
            Ok(End::Whole) => {}
            Ok(End::Limit) => (self.is_over, self.end) = (true, End::Limit),
            Err(error) => (self.is_over, self.error) = (true, Some(error)),
        }
    }

    /// Returns `true` if the time `t` is traced. After the last such time, nothing is.
    fn has_time(&mut self, t: fairrate_units::Time) -> bool {
        self.is_over |= self.filter.until <= t;
        !self.is_over && self.filter.has_time(t)
    }
}

impl Sink for Tracer {
    fn wants(&self) -> Wants {
        let is_on = !self.is_over;
        Wants {
            packets: is_on,
            headers: is_on && self.format.wants_headers(),
            senders: is_on && self.format.wants_senders(),
            ..Wants::default()
        }
    }
    fn is_closed(&self) -> bool {
        self.error.is_some()
    }

    fn packet(&mut self, event: &PacketEvent, header: Option<&PacketHeader<'_>>) {
        self.is_over |= self.filter.until <= event.t;
        let is_chosen = !self.is_over
            && self.filter.has_time(event.t)
            && self.filter.has_flow(event.flow)
            && self.filter.has_port(event.port);
        if !is_chosen {
            return;
        }
        match event.step {
            PacketStep::Queued | PacketStep::Returned => {}
            PacketStep::Sent => self.counts.sent += 1,
            PacketStep::Dropped(_) => self.counts.dropped += 1,
            PacketStep::Trimmed => self.counts.trimmed += 1,
        }
        let done = self.format.step(event, header);
        self.note(done);
    }

    fn observe(&mut self, observation: &Observation) {
        match observation {
            Observation::Sender(event) if self.has_time(event.t) && self.filter.has_flow(event.flow) => {
                let done = self.format.sender(event);
                self.note(done);
            }
            Observation::Pfc(event)
                if self.has_time(event.t) && self.filter.flows.is_none() && self.filter.has_port(event.port) =>
            {
                self.counts.pauses += 1;
                let done = self.format.pfc(event);
                self.note(done);
            }
            _ => {}
        }
    }
}
