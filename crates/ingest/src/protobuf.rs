//! Minimal protocol buffer reader for messages with known field numbers, without a schema.

/// Field value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// Varint integer.
    Varint(u64),
    Fixed64(u64),
    /// Length-delimited: text, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> Value<'a> {
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    pub(crate) fn varint(self) -> Option<u64> {
        if let Self::Varint(value) = self { Some(value) } else { None }
    }

    /// Returns text with invalid UTF-8 replaced.
    pub(crate) fn text(self) -> Option<std::borrow::Cow<'a, str>> {
        self.bytes().map(String::from_utf8_lossy)
    }

    /// Returns a 64-bit field as `f64`.
    pub(crate) fn double(self) -> Option<f64> {
        if let Self::Fixed64(bits) = self { Some(f64::from_bits(bits)) } else { None }
    }
}

/// Encoding error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Byte offset in the message.
    pub(crate) offset: usize,
}

/// Iterator over the fields in order. It stops after an error.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

pub(crate) fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields { bytes, at: 0 }
}

impl<'a> Fields<'a> {
    fn next_field(&mut self) -> Option<(u32, Value<'a>)> {
        let rest = &self.bytes[self.at..];
        let (key, used) = varint(rest)?;
        let number = u32::try_from(key >> 3).ok().filter(|&number| number > 0)?;
        let rest = &rest[used..];
        let (value, length) = match key & 7 {
            0 => varint(rest).map(|(value, length)| (Value::Varint(value), length))?,
            1 => (Value::Fixed64(u64::from_le_bytes(*rest.first_chunk()?)), 8),
            2 => {
                let (length, used) = varint(rest)?;
                let end = used.checked_add(usize::try_from(length).ok()?)?;
                (Value::Bytes(rest.get(used..end)?), end)
            }
            5 => (Value::Fixed32(u32::from_le_bytes(*rest.first_chunk()?)), 4),
            _ => return None,
        };
        self.at += used + length;
        Some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let offset = self.at;
        let field = self.next_field();
        if field.is_none() {
            self.at = self.bytes.len();
        }
        Some(field.ok_or(Broken { offset }))
    }
}

/// Decodes a varint and returns its size in bytes; `None` if it is truncated or longer than ten
/// bytes.
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * index as u32)?;
        if byte & 0x80 == 0 {
            // The tenth byte contributes only one bit.
            return (index < 9 || byte < 2).then_some((value, index + 1));
        }
    }
    None
}

/// Decodes a packed or single integer field.
pub(crate) fn varints(value: Value<'_>) -> impl Iterator<Item = u64> {
    let (single, mut rest) = match value {
        Value::Varint(value) => (Some(value), &[][..]),
        Value::Bytes(bytes) => (None, bytes),
        Value::Fixed64(_) | Value::Fixed32(_) => (None, &[][..]),
    };
    single.into_iter().chain(std::iter::from_fn(move || {
        let (value, used) = varint(rest)?;
        rest = &rest[used..];
        Some(value)
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 300 is 0b10_0101100: groups 0101100 and 10, encoded as ac 02.
    #[test]
    fn every_field_kind() {
        let bytes = b"\x08\xac\x02\x12\x02hi\x1d\x01\0\0\0\x21\x02\0\0\0\0\0\0\0";
        let found: Vec<_> = fields(bytes).collect();
        assert_eq!(
            found,
            [
                Ok((1, Value::Varint(300))),
                Ok((2, Value::Bytes(b"hi"))),
                Ok((3, Value::Fixed32(1))),
                Ok((4, Value::Fixed64(2)))
            ]
        );
    }

    #[test]
    fn broken_messages_end() {
        for (bytes, offset) in [
            (&b"\x08"[..], 0),
            (b"\x08\x01\x12\x05hi", 2),
            (b"\x0b", 0),
            (b"\0\x01", 0),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0),
            (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0),
        ] {
            let last = fields(bytes).last();
            assert_eq!(last, Some(Err(Broken { offset })), "{bytes:?}");
        }
        assert_eq!(varint(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Some((u64::MAX, 10)));
        assert_eq!(varint(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), None);
    }

    #[test]
    fn packed_numbers_are_split() {
        assert_eq!(varints(Value::Bytes(b"\x01\xac\x02\x80")).collect::<Vec<_>>(), [1, 300]);
        assert_eq!(varints(Value::Varint(3)).collect::<Vec<_>>(), [3]);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(fields(&bytes).count() <= bytes.len() + 1);
        }
    }
}
