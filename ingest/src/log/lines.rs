//! Bytes to lines, however the bytes are cut.

/// A complete line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Its bytes without the end; empty when it is too long.
    pub(super) bytes: &'a [u8],
    /// Its number, counting line feeds from 1, as editors and `grep -n` do.
    pub(super) number: u64,
    /// Its first byte.
    pub(super) offset: u64,
    /// Whether it was longer than is read.
    pub(super) too_long: bool,
}

/// Cuts bytes into lines. A line feed or a carriage return ends a line; what follows the last of them waits.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    limit: usize,
    waiting: Vec<u8>,
    too_long: bool,
    number: u64,
    /// Bytes seen.
    seen: u64,
    /// Where the waiting line starts.
    start: u64,
}

impl Lines {
    /// Nothing seen yet; `limit` is the longest line in bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, waiting: Vec::new(), too_long: false, number: 1, seen: 0, start: 0 }
    }

    /// Takes bytes and hands over every line that they complete, empty ones left out.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (piece, ended) = rest.split_at(end);
            self.seen += end as u64 + 1;
            if self.waiting.is_empty() && !self.too_long {
                // The common case: the whole line lies in these bytes.
                let too_long = piece.len() > self.limit;
                if !piece.is_empty() {
                    let bytes = if too_long { &[] } else { piece };
                    take(Line { bytes, number: self.number, offset: self.start, too_long });
                }
            } else {
                self.hold(piece);
                self.hand_over(&mut take);
            }
            self.number += u64::from(ended[0] == b'\n');
            self.start = self.seen;
            rest = &ended[1..];
        }
        self.seen += rest.len() as u64;
        self.hold(rest);
    }

    /// Hands over what is left without an end.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if !self.waiting.is_empty() || self.too_long {
            self.hand_over(&mut take);
            self.start = self.seen;
        }
    }

    fn hold(&mut self, piece: &[u8]) {
        if self.too_long || self.waiting.len() + piece.len() > self.limit {
            self.too_long = true;
            self.waiting = Vec::new();
        } else {
            self.waiting.extend_from_slice(piece);
        }
    }

    fn hand_over(&mut self, take: &mut impl FnMut(Line<'_>)) {
        let bytes = std::mem::take(&mut self.waiting);
        take(Line { bytes: &bytes, number: self.number, offset: self.start, too_long: self.too_long });
        self.waiting = bytes;
        self.waiting.clear();
        self.too_long = false;
    }
}
