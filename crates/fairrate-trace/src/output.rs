//! The file of a trace while it is written.

use std::io::{self, Write};

/// A file that grows, with the number of its bytes and their largest number.
pub struct Output {
    inner: Box<dyn Write + Send>,
    written: u64,
    limit: u64,
}

impl Output {
    /// Returns an output into `inner`, which should buffer, of at most `limit` bytes.
    pub fn new(inner: Box<dyn Write + Send>, limit: u64) -> Self {
        Self { inner, written: 0, limit }
    }

    /// Returns the number of bytes so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the largest number of bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns `true` if `more` bytes are within the limit.
    pub fn has_room(&self, more: u64) -> bool {
        self.written.saturating_add(more) <= self.limit
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.written += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
