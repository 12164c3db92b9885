//! Reads a log as it grows.

use std::borrow::Cow;

use super::lines::{Line, Lines};
use super::megatron;
use super::point::{Point, Timer};
use super::reading::{Reading, Table};
use super::report::{Place, Report};
use super::steps::Steps;
use super::text::{without_colours, without_rank};
use super::{Limits, deepspeed, hugging_face, json_lines, mlperf, progress_bar, torchtitan};

/// Reads the text of a log as it grows, in any pieces: the same bytes give the same points, however they are cut.
///
/// The format is recognised line by line, because logs mix them. A point is handed over when a later step begins or
/// the log ends; until then timers, memory and validation are added to it, and [`LogParser::open`] shows it.
#[derive(Debug, Clone)]
pub struct LogParser {
    limits: Limits,
    lines: Lines,
    reader: Reader,
}

/// What was read so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Reader {
    pub(super) steps: Steps,
    pub(super) report: Report,
    table: Table,
    epoch: Option<f64>,
    wide: bool,
}

impl Default for LogParser {
    fn default() -> Self {
        Self::new()
    }
}

impl LogParser {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// Nothing read yet, with limits of one's own.
    pub fn with_limits(limits: Limits) -> Self {
        Self { lines: Lines::new(limits.line_bytes), limits, reader: Reader::default() }
    }

    /// Reads more bytes and returns the points that they complete. A last line without an end waits for it.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Point> {
        let Self { limits, lines, reader } = self;
        lines.push(bytes, |line| reader.line(line, limits));
        reader.report.bytes = lines.seen();
        reader.steps.take_done()
    }

    /// Reads what waits for its end and returns the last points and the report.
    pub fn finish(mut self) -> (Vec<Point>, Report) {
        let Self { limits, lines, reader } = &mut self;
        lines.finish(|line| reader.line(line, limits));
        reader.finish()
    }

    /// The point of the latest step, to which the next lines may still add.
    pub fn open(&self) -> Option<&Point> {
        self.reader.steps.open()
    }

    /// Timers that came before the first step: of setting up.
    pub fn setup(&self) -> &[Timer] {
        self.reader.steps.setup()
    }

    /// What was read so far and what was not.
    pub fn report(&self) -> &Report {
        &self.reader.report
    }
}

impl Reader {
    /// Completes the last point.
    pub(super) fn finish(&mut self) -> (Vec<Point>, Report) {
        self.steps.close(&mut self.report);
        (self.steps.take_done(), std::mem::take(&mut self.report))
    }

    fn line(&mut self, line: Line<'_>, limits: &Limits) {
        let place = Place { line: line.number, offset: line.offset };
        let mut bytes = line.bytes;
        if line.offset == 0 {
            self.wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        if bytes.is_empty() && !line.too_long {
            return;
        }
        self.report.lines += 1;
        if line.too_long {
            return self.report.skip("the line is longer than is read", place);
        }
        if self.wide {
            return self.report.skip("the log is UTF-16 text; send it as UTF-8", place);
        }
        let text = String::from_utf8_lossy(bytes);
        let invalid = matches!(text, Cow::Owned(_));
        let plain = without_colours(&text);
        let (rank, text) = without_rank(&plain);
        let pieces = pieces(text);
        if pieces.len() == 1 {
            match self.read(text, rank, limits) {
                Some(reading) => {
                    if invalid && reading != Reading::Torn {
                        self.report.repair("bytes that are not UTF-8 were replaced", place);
                    }
                    self.take(reading, rank, place, text, limits);
                }
                None => self.report.ignored += 1,
            }
            return;
        }
        // Ranks end their lines one after another, not their texts: whole lines stand behind each other.
        let readings: Vec<Option<Reading>> = pieces.iter().map(|piece| self.read(piece, rank, limits)).collect();
        if readings.iter().any(|reading| matches!(reading, Some(Reading::Torn) | None)) {
            return self.report.tear(text, place, limits);
        }
        self.report.repair("whole lines of several ranks stood in one line", place);
        // However many pieces there are, it is one line.
        let before = (self.report.steps, self.report.companions);
        for (reading, piece) in readings.into_iter().flatten().zip(pieces) {
            self.take(reading, rank, place, piece, limits);
        }
        let stepped = self.report.steps > before.0;
        self.report.steps = before.0 + u64::from(stepped);
        self.report.companions = before.1 + u64::from(!stepped);
    }

    /// What a line is, without taking it; `None` where it holds no figures.
    fn read(&self, text: &str, rank: Option<u32>, limits: &Limits) -> Option<Reading> {
        let has = |word: &str| text.contains(word);
        if has("iteration") {
            let found = megatron::step(text, limits)
                .or_else(|| megatron::memory(text))
                .or_else(|| megatron::validation(text, limits));
            if found.is_some() {
                return found;
            }
        }
        if has("time (ms)") || self.table != Table::None {
            let found = megatron::timers(text, limits).or_else(|| megatron::row(text, &self.table, limits));
            if found.is_some() {
                return found;
            }
        }
        if has("memory (MB)") {
            return megatron::memory(text);
        }
        if has("step") {
            let found = torchtitan::step(text, rank, limits)
                .or_else(|| deepspeed::step(text, limits))
                .or_else(|| deepspeed::pipeline(text, limits));
            if found.is_some() {
                return found;
            }
        }
        if has("SamplesPerSec=") {
            return deepspeed::timer(text, limits);
        }
        // Strings of a JSON line may hold what a dict of Python begins with.
        if text.trim_start().starts_with("{\"") {
            return json_lines::step(text, limits);
        }
        if has("{'") {
            return hugging_face::dict(text, limits);
        }
        if has(":::MLLOG") {
            return mlperf::event(text, limits);
        }
        if has("{\"") {
            return json_lines::step(text, limits);
        }
        if has("s/it") || has("it/s") {
            return progress_bar::step(text, limits);
        }
        if has("Effective Tera Flops") {
            return megatron::flops(text, limits);
        }
        if has("across ranks (ms):") {
            return megatron::table(text).map(Reading::Table);
        }
        None
    }

    /// Counts a reading and adds it to the points.
    pub(super) fn take(&mut self, reading: Reading, rank: Option<u32>, place: Place, text: &str, limits: &Limits) {
        // Rows of tables of timers follow each other, but lines of other ranks may stand between them.
        if matches!(reading, Reading::Step { .. }) {
            self.table = Table::None;
        }
        let report = &mut self.report;
        let kept = match reading {
            Reading::Torn => return report.tear(text, place, limits),
            Reading::Skipped(why) => return report.skip(why, place),
            Reading::Step { mut point, mark, left_out } => {
                (point.line, point.offset) = (place.line, place.offset);
                report.missing_values(&point, left_out);
                let epoch = point.others.iter().find(|other| other.name == "epoch").map(|other| other.value);
                if mark == super::steps::Mark::Counted {
                    // The only sign of a restart in a log without steps.
                    if epoch.zip(self.epoch).is_some_and(|(epoch, last)| epoch < last) {
                        self.steps.restart(report);
                    }
                    self.epoch = epoch.or(self.epoch);
                }
                self.steps.take(*point, mark, rank, limits, report);
                return;
            }
            Reading::Memory { step, memory } => self.steps.memory(step, memory, limits),
            Reading::Timers(timers) => timers.into_iter().all(|timer| self.steps.timer(timer, limits)),
            Reading::RankTime(time) => match (self.steps.last_timer(), time) {
                (Some(timer), Some(time)) if timer.ranks.len() < limits.ranks => {
                    timer.ranks.push(time);
                    true
                }
                _ => false,
            },
            Reading::Table(table) => {
                self.table = table;
                true
            }
            Reading::Note(note) => self.steps.note(note, limits),
        };
        report.companions += 1;
        if !kept {
            report.problem("a line beside the steps came before any step, or there are more than are kept", place);
        }
    }
}

/// Cuts a line before every `[Rank 7] (after ` inside it.
fn pieces(text: &str) -> Vec<&str> {
    const TAG: &str = "[Rank ";
    let is_start = |at: &usize| {
        let rest = &text[at + TAG.len()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        digits > 0 && rest[digits..].starts_with("] (after ")
    };
    let mut starts: Vec<usize> = text.match_indices(TAG).map(|(at, _)| at).filter(is_start).collect();
    if starts.first().is_none_or(|&first| !text[..first].trim().is_empty()) {
        starts.insert(0, 0);
    } else if let Some(first) = starts.first_mut() {
        *first = 0;
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &text[start..end]).collect()
}
