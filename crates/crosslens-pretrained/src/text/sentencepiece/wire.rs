//! The wire format of protocol buffers, as far as a SentencePiece model needs it.
//!
//! A message is a row of fields, each a number, a wire type and a value. Nothing is copied and nothing is allocated here: values
//! borrow from the file, and no length is believed before the bytes are there.

use super::error::ModelError;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    /// Text, bytes or a message of its own.
    Bytes(&'a [u8]),
}

/// The fields of one message, in the order of the file.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    /// Where `rest` begins, counted from the start of the message.
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message, at: 0 }
    }

    fn take(&mut self, n_bytes: usize) -> Result<&'a [u8], ModelError> {
        let Some((taken, rest)) = self.rest.split_at_checked(n_bytes) else {
            return Err(ModelError::Length { at: self.at, claimed: n_bytes as u64, left: self.rest.len() });
        };
        self.rest = rest;
        self.at += n_bytes;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ModelError> {
        Ok(self.take(N)?.try_into().expect("`take` gives as many bytes as asked for"))
    }

    /// Seven bits a byte, the lowest first; ten bytes at most.
    fn varint(&mut self) -> Result<u64, ModelError> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ModelError::Number { at: start })
    }

    fn field(&mut self) -> Result<(u64, Value<'a>), ModelError> {
        let start = self.at;
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let claimed = self.varint()?;
                let left = self.rest.len();
                let length = usize::try_from(claimed).map_err(|_| ModelError::Length { at: start, claimed, left })?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            wire_type => return Err(ModelError::WireType { at: start, wire_type }),
        };
        match key >> 3 {
            0 => Err(ModelError::Number { at: start }),
            number => Ok((number, value)),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), ModelError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0x08 = field 1, varint; 0xac 0x02 = 0x2c + (2 << 7) = 300. 0x12 = field 2, bytes; 0x1d = field 3, four bytes.
    #[test]
    fn fields_come_in_order() {
        let message = [0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x1d, 0, 0, 0x80, 0x3f];
        let fields: Result<Vec<_>, _> = Fields::new(&message).collect();
        let expected = vec![(1, Value::Varint(300)), (2, Value::Bytes(b"ab")), (3, Value::Fixed32(1.0_f32.to_bits()))];
        assert_eq!(fields.expect("a message"), expected);
    }

    #[test]
    fn a_length_beyond_the_end_is_refused() {
        let error = Fields::new(&[0x12, 3, b'a']).next().expect("a field").expect_err("no three bytes");
        assert!(matches!(error, ModelError::Length { at: 2, claimed: 3, left: 1 }), "{error:?}");
    }

    #[test]
    fn a_number_without_an_end_is_refused() {
        let error = Fields::new(&[0xff; 12]).next().expect("a field").expect_err("no number");
        assert!(matches!(error, ModelError::Number { at: 0 }), "{error:?}");
    }

    #[test]
    fn nothing_follows_a_broken_field() {
        assert_eq!(Fields::new(&[0x0b, 0x08, 1]).filter_map(Result::ok).count(), 0);
    }
}
