//! Messages of protocol buffers, as far as traces need them.

use std::fmt::Display;
use std::io::Write;

/// A message while it is written, at the end of a buffer.
pub(super) struct Message<'a>(&'a mut Vec<u8>);

/// Kinds of values on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

impl<'a> Message<'a> {
    /// Returns a message that is added to `buffer`.
    pub(super) fn at_end_of(buffer: &'a mut Vec<u8>) -> Self {
        Self(buffer)
    }

    /// Adds an integer.
    pub(super) fn int(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3 | VARINT);
        self.varint(value);
        self
    }

    /// Adds 64 bits.
    pub(super) fn fixed(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3 | FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds a text.
    pub(super) fn text(&mut self, field: u64, text: impl Display) -> &mut Self {
        // Writing to memory does not fail.
        self.message(field, |inner| _ = write!(inner.0, "{text}"))
    }

    /// Adds a message, which `write` writes.
    pub(super) fn message(&mut self, field: u64, write: impl FnOnce(&mut Message<'_>)) -> &mut Self {
        self.varint(field << 3 | BYTES);
        let begin = self.0.len();
        write(&mut Message(self.0));
        // The length goes before: most take a byte.
        let end = self.0.len();
        self.varint((end - begin) as u64);
        let n = self.0.len() - end;
        self.0[begin..].rotate_right(n);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while 0x80 <= value {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding's description: 150 in field 1 is 08 96 01, "testing" in field 2 is 12 07 and its
    /// letters.
    #[test]
    fn values_are_encoded_as_their_description_shows() {
        let bytes = |write: &dyn Fn(&mut Message<'_>)| {
            let mut buffer = vec![7];
            write(&mut Message::at_end_of(&mut buffer));
            assert_eq!(buffer.remove(0), 7);
            buffer
        };
        assert_eq!(bytes(&|m| _ = m.int(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(bytes(&|m| _ = m.text(2, "testing")), b"\x12\x07testing");
        assert_eq!(bytes(&|m| _ = m.message(3, |inner| _ = inner.int(1, 150))), [0x1A, 3, 0x08, 0x96, 0x01]);
        assert_eq!(bytes(&|m| _ = m.fixed(1, 1)), [0x09, 1, 0, 0, 0, 0, 0, 0, 0]);
        // 300 is AC 02.
        let long = bytes(&|m| _ = m.text(2, "x".repeat(300)));
        assert_eq!((&long[..4], long.len()), (&[0x12, 0xAC, 0x02, b'x'][..], 303));
    }
}
