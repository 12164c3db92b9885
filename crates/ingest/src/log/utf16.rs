//! Converts UTF-16 text to UTF-8, independent of chunk boundaries.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Encoding {
    /// Fewer than two bytes received.
    #[default]
    Unknown,
    /// UTF-8, or unknown bytes treated as UTF-8.
    Utf8,
    Little,
    Big,
}

/// Decodes input that starts with a UTF-16 byte order mark. Other input is unchanged.
#[derive(Debug, Clone, Default)]
pub(super) struct Decoder {
    encoding: Encoding,
    waiting: Vec<u8>,
    /// First half of a surrogate pair.
    high: Option<u16>,
}

impl Decoder {
    pub(super) fn is_wide(&self) -> bool {
        matches!(self.encoding, Encoding::Little | Encoding::Big)
    }

    /// Converts more bytes to UTF-8. Returns `None` if the input is used unchanged.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.encoding == Encoding::Utf8 {
            return None;
        }
        if self.encoding == Encoding::Unknown && self.waiting.is_empty() && bytes.len() > 1 && !is_mark(bytes) {
            self.encoding = Encoding::Utf8;
            return None;
        }
        self.waiting.extend_from_slice(bytes);
        if self.encoding == Encoding::Unknown {
            let Some(&[first, second]) = self.waiting.first_chunk::<2>() else { return Some(Vec::new()) };
            self.encoding = match (first, second) {
                (0xff, 0xfe) => Encoding::Little,
                (0xfe, 0xff) => Encoding::Big,
                _ => {
                    self.encoding = Encoding::Utf8;
                    return Some(std::mem::take(&mut self.waiting));
                }
            };
            self.waiting.drain(..2);
        }
        let mut text = String::with_capacity(self.waiting.len());
        let even_length = self.waiting.len() / 2 * 2;
        for pair in self.waiting[..even_length].chunks_exact(2) {
            let pair = [pair[0], pair[1]];
            let unit =
                if self.encoding == Encoding::Little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) };
            let high = self.high.take();
            if (0xd800..0xdc00).contains(&unit) {
                if high.is_some() {
                    text.push(char::REPLACEMENT_CHARACTER);
                }
                self.high = Some(unit);
                continue;
            }
            let units = high.into_iter().chain([unit]);
            text.extend(char::decode_utf16(units).map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER)));
        }
        self.waiting.drain(..even_length);
        Some(text.into_bytes())
    }

    /// Returns the remaining bytes at the end of the log: a single byte, or half a character.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.waiting);
        if self.is_wide() { Vec::new() } else { rest }
    }
}

fn is_mark(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8], every: usize) -> Vec<u8> {
        let mut decoder = Decoder::default();
        let mut text = Vec::new();
        for piece in bytes.chunks(every) {
            match decoder.decode(piece) {
                Some(more) => text.extend(more),
                None => text.extend_from_slice(piece),
            }
        }
        text.extend(decoder.finish());
        text
    }

    #[test]
    fn both_orders_and_every_cut() {
        let text = "step: 1 ü 🚀\n";
        let little: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
        for every in 1..=little.len() {
            assert_eq!(decoded(&little, every), text.as_bytes(), "{every}");
            assert_eq!(decoded(&big, every), text.as_bytes(), "{every}");
            assert_eq!(decoded(text.as_bytes(), every), text.as_bytes(), "{every}");
        }
        assert_eq!(decoded(b"\xff", 1), b"\xff");
        assert_eq!(decoded(b"\xff\xfe\x00\xd8a\0", 3), "\u{fffd}a".as_bytes());
    }
}
