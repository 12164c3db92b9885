//! Thrift's compact protocol, as far as Parquet's headers need it. Everything returns `None` where the bytes are broken.

/// Deepest nesting of what is passed over.
const DEPTH: u32 = 16;

/// Types of fields.
pub(super) mod kind {
    /// Whole numbers of 16, 32 and 64 bits are written alike.
    pub(in super::super) const I16: u8 = 4;
    /// 32 bits.
    pub(in super::super) const I32: u8 = 5;
    /// 64 bits.
    pub(in super::super) const I64: u8 = 6;
    /// Bytes or text.
    pub(in super::super) const BINARY: u8 = 8;
    /// A list.
    pub(in super::super) const LIST: u8 = 9;
    /// A struct.
    pub(in super::super) const STRUCT: u8 = 12;
}

/// Reads values one after another.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Bytes that are left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads a struct: `take` reads the fields that it knows and says so; the others are passed over.
    pub(super) fn fields(&mut self, mut take: impl FnMut(&mut Self, i16, u8) -> Option<bool>) -> Option<()> {
        let mut id = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => i16::try_from(self.number()?).ok()?,
                delta => id.checked_add(delta.into())?,
            };
            if !take(self, id, head & 15)? {
                self.skip(head & 15, DEPTH)?;
            }
        }
    }

    /// The head of a list: its elements' type and number, which is not more than the bytes that are left.
    pub(super) fn list(&mut self) -> Option<(u8, usize)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.varint()?).ok()?,
            count => count.into(),
        };
        (count <= self.bytes.len()).then_some((head & 15, count))
    }

    /// A whole number.
    pub(super) fn number(&mut self) -> Option<i64> {
        let raw = self.varint()?;
        Some((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// Bytes or text.
    pub(super) fn binary(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (own, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(own)
    }

    fn varint(&mut self) -> Option<u64> {
        let (value, used) = crate::protobuf::varint(self.bytes)?;
        self.bytes = &self.bytes[used..];
        Some(value)
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let deeper = depth.checked_sub(1)?;
        match kind {
            // Truth values are their type.
            1 | 2 => Some(()),
            3 => self.byte().map(drop),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(drop),
            7 => {
                self.bytes = self.bytes.get(8..)?;
                Some(())
            }
            kind::BINARY => self.binary().map(drop),
            kind::LIST | 10 => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.skip(held(kind), deeper))
            }
            11 => {
                let count = self.varint()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.skip(held(kinds >> 4), deeper)?;
                    self.skip(held(kinds & 15), deeper)
                })
            }
            kind::STRUCT => loop {
                let head = self.byte()?;
                if head == 0 {
                    return Some(());
                }
                if head >> 4 == 0 {
                    self.varint()?;
                }
                self.skip(head & 15, deeper)?;
            },
            _ => None,
        }
    }
}

/// The type of what a list or map holds: truth values take a byte there, so that everything in them takes one at least and no
/// count alone is work.
fn held(kind: u8) -> u8 {
    if matches!(kind, 1 | 2) { 3 } else { kind }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    /// Field 1 is a map of three truth values, false, true and false, to true; behind it stands the end of the struct.
    #[test]
    fn truth_values_in_maps_take_bytes() {
        let bytes = [0x1b, 3, 0x12, 2, 1, 1, 1, 2, 1, 0, 7];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.fields(|_, _, _| Some(false)), Some(()));
        assert_eq!(reader.rest(), [7]);
        // So many that counting alone would take years.
        let endless = [0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x11, 1, 1, 0];
        assert_eq!(Reader::new(&endless).fields(|_, _, _| Some(false)), None);
    }
}
