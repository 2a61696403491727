//! The records of a file: a length and a message each. A file may be compressed by gzip, which its first two bytes say.

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// Most bytes of a record: more is no trace. A record of the largest public traces has a few thousand.
const MOST_OF_A_RECORD: u64 = 16 << 20;
/// Most bytes of a file, once it is decompressed.
const MOST_OF_A_FILE: u64 = 4 << 30;

/// The records of a file that are still to be read.
pub(super) struct Records<'a> {
    source: Box<dyn BufRead + 'a>,
    /// Bytes that were read so far.
    n_read: u64,
    record: Vec<u8>,
}

impl<'a> Records<'a> {
    /// Returns the records of `source`.
    ///
    /// # Errors
    /// The source cannot be read.
    pub(super) fn of(source: impl Read + 'a) -> Result<Self, String> {
        let mut source = BufReader::new(source);
        let is_compressed = source.fill_buf().map_err(|e| e.to_string())?.starts_with(&[0x1f, 0x8b]);
        let source: Box<dyn BufRead + 'a> =
            if is_compressed { Box::new(BufReader::new(MultiGzDecoder::new(source))) } else { Box::new(source) };
        Ok(Self { source, n_read: 0, record: Vec::new() })
    }

    /// Returns the next record; `None` at the end. Memory is taken as bytes come, not as a length announces them.
    ///
    /// # Errors
    /// The file cannot be read, ends within a record, or is too large.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, String> {
        let Some(length) = self.length()? else { return Ok(None) };
        if MOST_OF_A_RECORD < length {
            return Err(format!("a length of {length} bytes is too much: up to {MOST_OF_A_RECORD} are possible"));
        }
        self.record.clear();
        let read = (&mut self.source).take(length).read_to_end(&mut self.record).map_err(|e| e.to_string())?;
        self.count(read as u64)?;
        if (read as u64) < length {
            return Err(format!("the file ends within the record: {read} of {length} bytes are there"));
        }
        Ok(Some(&self.record))
    }

    /// Reads the length of a record, a number of variable length with up to 32 bits.
    fn length(&mut self) -> Result<Option<u64>, String> {
        let mut length = 0_u64;
        for at in 0..5 {
            let Some(byte) = self.byte()? else {
                return if at == 0 { Ok(None) } else { Err("the file ends within the length of a record".to_owned()) };
            };
            self.count(1)?;
            length |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                return Ok(Some(length));
            }
        }
        Err("the length of a record has more than 32 bits".to_owned())
    }

    /// Reads a byte; `None` at the end. A compressed file that ends early is an error.
    fn byte(&mut self) -> Result<Option<u8>, String> {
        let byte = match self.source.fill_buf() {
            Ok(bytes) => bytes.first().copied(),
            Err(error) => return Err(error.to_string()),
        };
        self.source.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    fn count(&mut self, bytes: u64) -> Result<(), String> {
        self.n_read += bytes;
        if MOST_OF_A_FILE < self.n_read {
            return Err(format!("the file has more than {MOST_OF_A_FILE} bytes"));
        }
        Ok(())
    }
}
