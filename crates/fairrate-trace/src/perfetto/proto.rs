//! Messages of protocol buffers, as far as traces need them.

/// A message while it is written.
#[derive(Clone, Debug)]
pub(super) struct Message(pub(super) Vec<u8>);

/// Bytes for which a message has room at first: most are shorter.
const ROOM: usize = 192;

impl Default for Message {
    fn default() -> Self {
        Self(Vec::with_capacity(ROOM))
    }
}

/// Kinds of values on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

impl Message {
    /// Returns the message with an integer.
    pub(super) fn int(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(value);
        self
    }

    /// Returns the message with 64 bits.
    pub(super) fn fixed(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3 | FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Returns the message with a text.
    pub(super) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// Returns the message with another one in it.
    pub(super) fn message(self, field: u64, inner: &Self) -> Self {
        self.bytes(field, &inner.0)
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
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

    /// The examples of the encoding's description: 150 in field 1 is 08 96 01, "testing" in field 2 is 12 07 and its letters.
    #[test]
    fn values_are_encoded_as_their_description_shows() {
        assert_eq!(Message::default().int(1, 150).0, [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").0, b"\x12\x07testing");
        assert_eq!(Message::default().message(3, &Message::default().int(1, 150)).0, [0x1A, 3, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().fixed(1, 1).0, [0x09, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
