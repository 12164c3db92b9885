//! Splits a byte stream into lines, independent of chunk boundaries.

#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Bytes without the terminator; empty if the line is too long.
    pub(super) bytes: &'a [u8],
    /// Line number from 1, counting line feeds like editors and `grep -n`.
    pub(super) number: u64,
    /// Offset of the first byte.
    pub(super) offset: u64,
    /// True if the line exceeds the length limit.
    pub(super) too_long: bool,
    /// True if a terminator follows. The last line of a file may be cut.
    pub(super) is_ended: bool,
}

/// Line splitter. A line feed or a carriage return terminates a line. An unterminated line is
/// buffered.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    limit: usize,
    waiting: Vec<u8>,
    too_long: bool,
    number: u64,
    seen: u64,
    /// Offset of the buffered line.
    start: u64,
}

impl Lines {
    /// Creates a splitter. `limit` is the maximum line length in bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, waiting: Vec::new(), too_long: false, number: 1, seen: 0, start: 0 }
    }

    /// Appends bytes and passes each completed, non-empty line to `take`.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (piece, ended) = rest.split_at(end);
            self.seen += end as u64 + 1;
            if self.waiting.is_empty() && !self.too_long {
                // Fast path: the chunk contains the complete line.
                let too_long = piece.len() > self.limit;
                if !piece.is_empty() {
                    let bytes = if too_long { &[] } else { piece };
                    take(Line { bytes, number: self.number, offset: self.start, too_long, is_ended: true });
                }
            } else {
                self.hold(piece);
                self.hand_over(&mut take, true);
            }
            self.number += u64::from(ended[0] == b'\n');
            self.start = self.seen;
            rest = &ended[1..];
        }
        self.seen += rest.len() as u64;
        self.hold(rest);
    }

    /// Passes the unterminated last line to `take`.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if !self.waiting.is_empty() || self.too_long {
            self.hand_over(&mut take, false);
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

    fn hand_over(&mut self, take: &mut impl FnMut(Line<'_>), is_ended: bool) {
        let bytes = std::mem::take(&mut self.waiting);
        let (number, offset, too_long) = (self.number, self.start, self.too_long);
        take(Line { bytes: &bytes, number, offset, too_long, is_ended });
        self.waiting = bytes;
        self.waiting.clear();
        self.too_long = false;
    }
}
