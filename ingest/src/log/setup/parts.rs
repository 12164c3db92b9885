//! Sizes of the jobs of a run that starts several times.

use super::super::table::LogTable;
use super::super::{Limits, LogParser};
use super::JobSetup;

/// In front of the arguments of Megatron-LM, which it prints at every start.
const ARGUMENTS: &str = "-- arguments --";
/// Longest line that is read for its facts, in bytes.
const MAX_LINE: usize = 1 << 20;

/// Reads the size of a job for every part of its run: a program that starts again states it again, in front of the first step
/// of the part.
#[derive(Debug, Clone)]
pub struct JobSetups {
    parser: LogParser,
    line: Vec<u8>,
    /// Part and step of the last line of a step.
    place: Option<(u32, u64)>,
    /// Facts of the lines after the last step. They belong to the next part, if one follows.
    ahead: JobSetup,
    parts: Vec<JobSetup>,
}

impl JobSetups {
    /// Nothing read yet of a log whose lines a table may describe.
    pub fn new(table: Option<LogTable>) -> Self {
        Self {
            parser: LogParser::with_table(Limits::default(), table),
            line: Vec::new(),
            place: None,
            ahead: JobSetup::default(),
            parts: Vec::new(),
        }
    }

    /// Reads more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() > MAX_LINE {
                self.take_line();
            }
        }
    }

    /// What is stated for every part, by its number; what a part does not state is that of the part before. One at least.
    pub fn finish(mut self) -> Vec<JobSetup> {
        self.line.push(b'\n');
        self.take_line();
        match self.parts.last_mut() {
            Some(last) => *last = last.or(self.ahead),
            None => self.parts.push(self.ahead),
        }
        self.parts
    }

    fn take_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        drop(self.parser.push(&line));
        let place = self.parser.open().map(|open| (open.segment, open.step));
        if place == self.place {
            let text = String::from_utf8_lossy(&line);
            // The lines before belong to a start that failed.
            if text.contains(ARGUMENTS) {
                self.ahead = JobSetup::default();
            }
            return self.ahead.read(&text);
        }
        self.place = place;
        let Some((part, _)) = place else { return };
        let mut ahead = std::mem::take(&mut self.ahead);
        // A row of JSON may state the job together with the figures of its step.
        if line.trim_ascii_start().starts_with(b"{") {
            ahead.read(&String::from_utf8_lossy(&line));
        }
        if let Some(own) = self.parts.get_mut(part as usize) {
            *own = own.or(ahead);
        } else {
            let before = self.parts.last().copied().unwrap_or_default();
            self.parts.push(ahead.or(before));
        }
    }
}
