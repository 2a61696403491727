//! Messages over a persistent TCP connection: which bytes a segment carries, and which messages are complete when a
//! segment has arrived in order.
//!
//! Messages are written into a byte stream, and a segment takes as much of it as there is, up to a full payload. As with
//! subflows, a segment takes a full one's sequence numbers whatever it carries, so that short ones can follow each other.

use crate::ids::HostId;
use std::collections::VecDeque;

use fairrate_control::flowtune::Message;

/// A message on its way between a server and the allocator.
#[derive(Clone, Copy, Debug)]
pub struct Addressed {
    /// The server that it comes from or goes to.
    pub server: HostId,
    /// What it says.
    pub message: Message,
}

/// What one part of the network tells another one of a line.
pub type LineNote = Note<Addressed>;

/// The sending end of one direction of a conversation.
#[derive(Clone, Debug)]
pub struct Outgoing {
    mss: u64,
    /// Bytes of the stream carried by the segments from number `first` on that may have to be sent again.
    segments: VecDeque<u64>,
    first: u64,
    /// Bytes written, and those that segments have taken, since the beginning.
    written: u64,
    taken: u64,
}

/// The receiving end. What is on its way is known here before it arrives; nobody looks.
#[derive(Clone, Debug)]
pub struct Incoming<M> {
    mss: u64,
    /// Of segments not yet received in order, the last byte each carries; the first of them begins at `expected`.
    ends: VecDeque<u64>,
    expected: u64,
    /// Bytes received in order.
    delivered: u64,
    /// Messages not yet received, each with its last byte.
    messages: VecDeque<(u64, M)>,
}

/// What the sending end tells the receiving one of the stream.
#[derive(Clone, Copy, Debug)]
pub enum Note<M> {
    /// A message ends with this byte.
    Message(u64, M),
    /// The next segment ends with this byte.
    Segment(u64),
}

impl Outgoing {
    /// An idle connection with full segments of `mss` bytes.
    pub fn new(mss: u64) -> Self {
        Self { mss, segments: VecDeque::new(), first: 0, written: 0, taken: 0 }
    }

    /// The application writes a message of so many bytes.
    pub fn write<M>(&mut self, message: M, bytes: u64) -> Note<M> {
        self.written += bytes;
        Note::Message(self.written, message)
    }

    /// Whether there are bytes that no segment carries yet.
    pub fn has_new(&self) -> bool {
        self.taken < self.written
    }

    /// Payload of the segment that begins at `seq`: what it carried before, or as much as there is, which is to be told.
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

    /// The sender knows that all segments below `ack` have arrived.
    pub fn on_ack(&mut self, ack: u64) {
        while self.first * self.mss < ack && self.segments.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// The connection is replaced by a new one, whose first segment begins at `seq`.
    pub fn reset(&mut self, seq: u64) {
        *self = Self { first: seq / self.mss, ..Self::new(self.mss) };
    }
}

impl<M> Incoming<M> {
    /// An idle connection with full segments of `mss` bytes.
    pub fn new(mss: u64) -> Self {
        Self { mss, ends: VecDeque::new(), expected: 0, delivered: 0, messages: VecDeque::new() }
    }

    /// Takes note of what is sent, in the order of the notes.
    pub fn take_note(&mut self, note: Note<M>) {
        match note {
            Note::Message(end, message) => self.messages.push_back((end, message)),
            Note::Segment(end) => self.ends.push_back(end),
        }
    }

    /// The next message that is complete, now that all segments below `expected` have arrived.
    pub fn read(&mut self, expected: u64) -> Option<M> {
        while self.expected < expected {
            self.delivered = self.ends.pop_front().unwrap_or(self.delivered);
            self.expected += self.mss;
        }
        let (_, message) = self.messages.pop_front_if(|(end, _)| *end <= self.delivered)?;
        Some(message)
    }

    /// The connection is replaced by a new one: what is on its way is lost, and the next segment begins at `seq`.
    pub fn reset(&mut self, seq: u64) {
        *self = Self { expected: seq, ..Self::new(self.mss) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends, side by side.
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
        // The first segment again, with what it had; then a message that comes later.
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
