//! Runs of small numbers: Parquet's hybrid of run lengths and packed bits.

/// Small numbers one after another.
#[derive(Debug, Clone)]
pub(super) struct Hybrid<'a> {
    bytes: &'a [u8],
    width: u32,
    run: Run<'a>,
}

#[derive(Debug, Clone)]
enum Run<'a> {
    /// The same number so many times.
    Equal { left: u64, value: u32 },
    /// Packed numbers, of which so many are left.
    Packed { left: u64, bytes: &'a [u8], bit: usize },
}

impl<'a> Hybrid<'a> {
    /// Numbers of so many bits each, at most 32.
    pub(super) fn new(bytes: &'a [u8], width: u32) -> Self {
        Self { bytes, width: width.min(32), run: Run::Equal { left: 0, value: 0 } }
    }

    /// Bits that numbers up to `most` take.
    pub(super) fn width_of(most: u32) -> u32 {
        32 - most.leading_zeros()
    }
}

impl Iterator for Hybrid<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        loop {
            match &mut self.run {
                Run::Equal { left, value } if *left > 0 => {
                    *left -= 1;
                    return Some(*value);
                }
                Run::Packed { left, bytes, bit } if *left > 0 => {
                    *left -= 1;
                    let mut value = 0_u64;
                    // Five bytes hold any 32 bits that start within the first.
                    for (index, &byte) in bytes.get(*bit / 8..)?.iter().take(5).enumerate() {
                        value |= u64::from(byte) << (8 * index);
                    }
                    let value = value >> (*bit % 8) & ((1_u64 << self.width) - 1);
                    *bit += self.width as usize;
                    return Some(value as u32);
                }
                _ => {}
            }
            let (head, used) = crate::protobuf::varint(self.bytes)?;
            self.bytes = &self.bytes[used..];
            let count = head >> 1;
            if head & 1 == 0 {
                let (value, rest) = self.bytes.split_at_checked(self.width.div_ceil(8) as usize)?;
                self.bytes = rest;
                let value = value.iter().rev().fold(0_u32, |sum, &byte| sum << 8 | u32::from(byte));
                self.run = Run::Equal { left: count, value };
            } else {
                // Groups of eight; the last may be cut at the end of the page.
                let bytes = usize::try_from(count).ok()?.checked_mul(self.width as usize)?;
                let (own, rest) = self.bytes.split_at(bytes.min(self.bytes.len()));
                self.bytes = rest;
                // No more than the bytes hold, so that a length alone is no work.
                let held = if self.width == 0 { 0 } else { own.len() as u64 * 8 / u64::from(self.width) };
                self.run = Run::Packed { left: count.saturating_mul(8).min(held), bytes: own, bit: 0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Hybrid;

    /// Parquet's own example: 0 to 7 in three bits are the bytes 88 c6 fa; before them, five times 4.
    #[test]
    fn runs_and_packed_numbers() {
        let bytes = [10, 4, 3, 0x88, 0xc6, 0xfa];
        assert_eq!(Hybrid::new(&bytes, 3).collect::<Vec<_>>(), [4, 4, 4, 4, 4, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(Hybrid::new(&bytes[..5], 3).collect::<Vec<_>>().len(), 10);
        assert_eq!([0, 1, 2, 3, 4, 255, 256].map(Hybrid::width_of), [0, 1, 2, 2, 3, 8, 9]);
    }
}
