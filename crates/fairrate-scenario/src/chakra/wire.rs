//! The wire format of protocol buffers, as far as execution traces need it. Lengths are checked against the bytes that
//! are there before anything is read.

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A number of variable length, as it is on the wire.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// A text, a message or a packed list.
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// Returns the kind of the value, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Varint(_) => "a number",
            Self::Fixed64(_) => "eight bytes",
            Self::Fixed32(_) => "four bytes",
            Self::Bytes(_) => "bytes",
        }
    }
}

/// The fields of a message that are still to be read.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the number and the value of the next field; `None` at the end.
    ///
    /// # Errors
    /// The bytes are no message: the reason.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let (field, wire) = (key >> 3, key & 7);
        if field == 0 || 0x1fff_ffff < field {
            return Err(format!("a field has the number {field}"));
        }
        let value = match wire {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.take()?)),
            2 => {
                let length = self.varint()?;
                let Some((bytes, rest)) = usize::try_from(length).ok().and_then(|n| self.0.split_at_checked(n)) else {
                    return Err(format!("field {field} has {length} bytes, and {} are left", self.0.len()));
                };
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.take()?)),
            wire => return Err(format!("field {field} has the wire type {wire}, which these messages do not use")),
        };
        Ok(Some((field, value)))
    }

    /// Reads a number of variable length.
    ///
    /// # Errors
    /// It ends early, or has more than 64 bits.
    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or("a number ends early")?;
            self.0 = rest;
            if shift == 63 && 1 < byte {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number has more than 64 bits".to_owned())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or("a number ends early")?;
        self.0 = rest;
        Ok(*bytes)
    }
}

/// Returns the numbers of a repeated field: packed, or one.
///
/// # Errors
/// The value is neither.
pub(super) fn repeated(value: Value<'_>) -> Result<Vec<u64>, String> {
    match value {
        Value::Varint(number) => Ok(vec![number]),
        Value::Bytes(bytes) => {
            let (mut fields, mut numbers) = (Fields(bytes), Vec::new());
            while !fields.0.is_empty() {
                numbers.push(fields.varint()?);
            }
            Ok(numbers)
        }
        other => Err(format!("expected numbers, found {}", other.kind())),
    }
}
