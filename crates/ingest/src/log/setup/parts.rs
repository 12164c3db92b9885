//! Job sizes for a run with several starts.

use super::super::table::LogTable;
use super::super::{Limits, LogParser};
use super::JobSetup;

/// Text before the Megatron-LM arguments, printed at each start.
const ARGUMENTS: &str = "-- arguments --";
/// Maximum length of a parsed line in bytes.
const MAX_LINE: usize = 1 << 20;

/// Reads the job size for each segment of a run. A restarted program prints it again, before the
/// first step of the segment.
#[derive(Debug, Clone)]
pub struct JobSetups {
    parser: LogParser,
    line: Vec<u8>,
    /// Segment and step of the last step line.
    position: Option<(u32, u64)>,
    /// Values read after the last step. They belong to the next segment, if any.
    ahead: JobSetup,
    parts: Vec<JobSetup>,
}

impl JobSetups {
    /// Creates a reader, optionally with a pattern table.
    pub fn new(table: Option<LogTable>) -> Self {
        Self {
            parser: LogParser::with_table(Limits::default(), table),
            line: Vec::new(),
            position: None,
            ahead: JobSetup::default(),
            parts: Vec::new(),
        }
    }

    /// Parses more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() > MAX_LINE {
                self.take_line();
            }
        }
    }

    /// Returns the job size by segment number, at least one. Missing values are copied from the
    /// previous segment.
    pub fn finish(mut self) -> Vec<JobSetup> {
        self.line.push(b'\n');
        self.take_line();
        match self.parts.last_mut() {
            Some(last) => *last = last.or(self.ahead),
            None => self.parts.push(self.ahead),
        }
        self.parts.into_iter().map(JobSetup::with_sequences).collect()
    }

    fn take_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        drop(self.parser.push(&line));
        let position = self.parser.open().map(|open| (open.segment, open.step));
        if position == self.position {
            let text = String::from_utf8_lossy(&line);
            // The preceding lines belong to a failed start.
            if text.contains(ARGUMENTS) {
                self.ahead = JobSetup::default();
            }
            return self.ahead.read(&text);
        }
        self.position = position;
        let Some((part, _)) = position else { return };
        let mut ahead = std::mem::take(&mut self.ahead);
        // A JSON row may contain both the job size and step metrics.
        if line.trim_ascii_start().starts_with(b"{") {
            ahead.read(&String::from_utf8_lossy(&line));
        }
        if let Some(setup) = self.parts.get_mut(part as usize) {
            *setup = setup.or(ahead);
        } else {
            let before = self.parts.last().copied().unwrap_or_default();
            self.parts.push(ahead.or(before));
        }
    }
}
