//! Messages over a persistent TCP connection: the bytes that a segment carries, and the messages that are complete when
//! a segment has arrived in order.
//!
//! Messages are written into a byte stream, and a segment takes as much of it as there is, up to a full payload. As
//! with subflows, a segment takes the sequence numbers of a full one whatever it carries, so that short ones can follow
//! each other.

use crate::ids::HostId;
use std::collections::VecDeque;

use fairrate_control::flowtune::Message;

/// A message on its way between a server and the allocator.
#[derive(Clone, Copy, Debug)]
pub struct Addressed {
    /// The server that sends or receives it.
    pub server: HostId,
    /// The message itself.
    pub message: Message,
}

/// A note about a line from one part of the network to another.
pub type LineNote = Note<Addressed>;

/// The sending end of one direction of a conversation.
#[derive(Clone, Debug)]
pub struct Outgoing {
    mss: u64,
    /// Bytes of the stream carried by the segments from number `first` on that may have to be sent again.
    segments: VecDeque<u64>,
    first: u64,
    /// Bytes written, and bytes taken by segments, since the beginning.
    written: u64,
    taken: u64,
}

/// The receiving end. Its notes describe what is on its way before it arrives, but nothing reads them earlier.
#[derive(Clone, Debug)]
pub struct Incoming<M> {
    mss: u64,
    /// End of the data of each segment not yet received in order; the first segment begins at `expected`.
    ends: VecDeque<u64>,
    expected: u64,
    /// Bytes received in order.
    delivered: u64,
    /// Messages not yet received, each with its end in the stream.
    messages: VecDeque<(u64, M)>,
}

/// A note from the sending end to the receiving end of the stream.
#[derive(Clone, Copy, Debug)]
pub enum Note<M> {
    /// A message, which ends with this byte.
    Message(u64, M),
    /// The next segment, which ends with this byte.
    Segment(u64),
}

impl Outgoing {
    /// Returns the state of an idle connection with full segments of `mss` bytes.
    pub fn new(mss: u64) -> Self {
        Self { mss, segments: VecDeque::new(), first: 0, written: 0, taken: 0 }
    }

    /// Writes a message of `bytes` bytes; returns the note for the receiving end.
    pub fn write<M>(&mut self, message: M, bytes: u64) -> Note<M> {
        self.written += bytes;
        Note::Message(self.written, message)
    }

    /// Returns `true` if there are bytes that no segment carries yet.
    pub fn has_new(&self) -> bool {
        self.taken < self.written
    }

    /// Returns the payload of the segment that begins at `seq`: what it carried before, or all there is up to a full
    /// payload, with a note for the receiving end.
    pub fn carry<M>(&mut self, seq: u64) -> (u64, Option<Note<M>>) {
        let number = seq / self.mss;
        if let Some(&len) = number.checked_sub(self.first).and_then(|at| self.segments.get(at as usize)) {
            return (len, None);
        }
        let len = self.mss.min(self.written - self.taken);
        self.taken += len;
        self.segments.push_back(len);
        (len, Some(Note::Segment(self.taken)))
    }

    /// Records that all segments below `ack` have arrived.
    pub fn on_ack(&mut self, ack: u64) {
        while self.first * self.mss < ack && self.segments.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Replaces the connection by a new one, whose first segment begins at `seq`.
    pub fn reset(&mut self, seq: u64) {
        *self = Self { first: seq / self.mss, ..Self::new(self.mss) };
    }
}

impl<M> Incoming<M> {
    /// Returns the state of an idle connection with full segments of `mss` bytes.
    pub fn new(mss: u64) -> Self {
        Self { mss, ends: VecDeque::new(), expected: 0, delivered: 0, messages: VecDeque::new() }
    }

    /// Stores a note; notes are given in order of sending.
    pub fn take_note(&mut self, note: Note<M>) {
        match note {
            Note::Message(end, message) => self.messages.push_back((end, message)),
            Note::Segment(end) => self.ends.push_back(end),
        }
    }

    /// Returns the next complete message, if any, with all segments below `expected` received.
    pub fn read(&mut self, expected: u64) -> Option<M> {
        while self.expected < expected {
            self.delivered = self.ends.pop_front().unwrap_or(self.delivered);
            self.expected += self.mss;
        }
        let (_, message) = self.messages.pop_front_if(|(end, _)| *end <= self.delivered)?;
        Some(message)
    }

    /// Replaces the connection by a new one: data on its way is lost, and the next segment begins at `seq`.
    pub fn reset(&mut self, seq: u64) {
        *self = Self { expected: seq, ..Self::new(self.mss) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a connection.
    struct Channel(Outgoing, Incoming<char>);

    impl Channel {
        fn new(mss: u64) -> Self {
            Self(Outgoing::new(mss), Incoming::new(mss))
        }
        fn write(&mut self, message: char, bytes: u64) {
            let note = self.0.write(message, bytes);
            self.1.take_note(note);
        }
        fn carry(&mut self, seq: u64) -> u64 {
            let (len, note) = self.0.carry(seq);
            if let Some(note) = note {
                self.1.take_note(note);
            }
            len
        }
    }

    #[test]
    fn messages_come_when_all_their_bytes_have() {
        let mut channel = Channel::new(100);
        channel.write('a', 60);
        channel.write('b', 60);
        assert_eq!((channel.carry(0), channel.0.has_new()), (100, true));
        assert_eq!((channel.carry(100), channel.0.has_new()), (20, false));
        assert_eq!(channel.1.read(0), None);
        assert_eq!((channel.1.read(100), channel.1.read(100)), (Some('a'), None), "half of the other is there");
        // The first segment again, with the same bytes; then a later message.
        assert_eq!(channel.carry(0), 100);
        channel.0.on_ack(100);
        channel.write('c', 5);
        assert_eq!((channel.carry(200), channel.carry(100)), (5, 20));
        assert_eq!((channel.1.read(300), channel.1.read(300), channel.1.read(300)), (Some('b'), Some('c'), None));
    }

    #[test]
    fn a_new_connection_forgets_what_was_on_its_way() {
        let mut channel = Channel::new(100);
        channel.write('a', 60);
        channel.carry(0);
        channel.0.reset(100);
        channel.1.reset(100);
        channel.write('b', 7);
        assert_eq!((channel.carry(100), channel.1.read(100), channel.1.read(200)), (7, None, Some('b')));
    }
}
