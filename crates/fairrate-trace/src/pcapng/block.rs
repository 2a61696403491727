//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng), in little-endian order.

use std::io::{self, Write};

/// The link type of Ethernet.
const ETHERNET: u16 = 1;
/// The exponent of the unit of time: picoseconds are 10 to the power of minus 12 seconds.
const PICOSECONDS: u8 = 12;

/// A block with its options, before it is written.
pub(super) struct Block {
    kind: u32,
    body: Vec<u8>,
    has_options: bool,
}

impl Block {
    fn new(kind: u32) -> Self {
        Self { kind, body: Vec::new(), has_options: false }
    }

    /// Returns the header of a section, which begins the file.
    pub(super) fn section(program: &str, comment: &str) -> Self {
        let mut block = Self::new(0x0A0D_0D0A);
        // Byte order, version 1.0, and a length that is not told.
        block.put(&0x1A2B_3C4D_u32.to_le_bytes());
        block.put(&[1, 0, 0, 0]);
        block.put(&u64::MAX.to_le_bytes());
        block.option(1, comment.as_bytes());
        block.option(4, program.as_bytes());
        block
    }

    /// Returns the description of an interface.
    pub(super) fn interface(name: &str, bits_per_second: u64) -> Self {
        let mut block = Self::new(1);
        block.put(&ETHERNET.to_le_bytes());
        // Reserved, and no largest length of packets.
        block.put(&[0; 6]);
        block.option(2, name.as_bytes());
        block.option(8, &bits_per_second.to_le_bytes());
        block.option(9, &[PICOSECONDS]);
        block
    }

    /// Returns a packet at an interface: its first bytes, and its length there.
    pub(super) fn packet(interface: u32, ps: u64, bytes: &[u8], length: u32) -> Self {
        // With room for a comment.
        let mut block = Self { kind: 6, body: Vec::with_capacity(bytes.len() + 96), has_options: false };
        for word in [interface, (ps >> 32) as u32, ps as u32, bytes.len() as u32, length] {
            block.put(&word.to_le_bytes());
        }
        block.put(bytes);
        block.pad();
        block
    }

    /// Adds a comment.
    pub(super) fn comment(&mut self, text: &str) {
        self.option(1, text.as_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        // The length has 16 bits; no name or comment of ours is as long.
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
        self.has_options = true;
    }

    /// Returns the length of the block in the file.
    pub(super) fn len(&self) -> usize {
        12 + self.body.len() + if self.has_options { 4 } else { 0 }
    }

    /// Writes the block.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let length = (self.len() as u32).to_le_bytes();
        out.write_all(&self.kind.to_le_bytes())?;
        out.write_all(&length)?;
        out.write_all(&self.body)?;
        if self.has_options {
            // The end of the options.
            out.write_all(&[0; 4])?;
        }
        out.write_all(&length)
    }
}
