//! TensorBoard event files: framed records with checksums. Each record is an event, and some events
//! contain scalars.
//!
//! A record is `u64 length | u32 masked crc of the length | data | u32 masked crc of the data`,
//! little-endian. A wrong length checksum stops parsing, because the next record cannot be located.
//! A wrong data checksum drops only this record. A truncated last record is buffered, because the
//! file may be growing.
//!
//! Scalars with the same step form one point. Duplicate scalars "... vs samples" from Megatron-LM
//! are skipped. If no scalar contains the step time, it is the wall time difference divided by the
//! step difference.

mod crc32c;
mod event;

use std::collections::BTreeMap;

use super::json_lines::micros;
use super::pace::Pace;
use super::point::{Point, Source};
use super::reading::LeftOut;
use super::report::{Location, Report};
use super::{Limits, Log, LogError};
use event::Event;

/// Header size in bytes.
const HEAD: usize = 12;
/// Trailer size in bytes.
const TAIL: usize = 4;
/// Prefix of DeepSpeed scalars, which are numbered by samples.
const SAMPLES: &str = "Train/Samples/";
/// Note for a file whose steps are epochs.
const EPOCHS: &str =
    "the scalars are numbered by epochs: the points stand at epochs, not steps, and have no step times";
/// Maximum number of scalar names.
const MAX_TAGS: usize = 10_000;

/// True if the data starts like an event file: a short record with a correct length checksum.
pub(super) fn is_event_file(bytes: &[u8]) -> bool {
    head(bytes).is_some_and(|(length, sound)| sound && length < 1024)
}

/// Returns the length of the first record, and true if its checksum is correct.
fn head(bytes: &[u8]) -> Option<(u64, bool)> {
    let head: &[u8; HEAD] = bytes.first_chunk()?;
    let (length, crc) = head.split_first_chunk::<8>()?;
    let expected = u32::from_le_bytes(*crc.first_chunk()?);
    Some((u64::from_le_bytes(*length), crc32c::masked(length) == expected))
}

/// Incremental event file parser.
#[derive(Debug, Clone)]
pub struct EventParser {
    limits: Limits,
    waiting: Vec<u8>,
    /// Offset of the first buffered byte.
    offset: u64,
    /// Remaining bytes of a skipped record.
    leaving_out: u64,
    broken: Option<LogError>,
    scalars: Scalars,
}

impl Default for EventParser {
    fn default() -> Self {
        Self::new()
    }
}

impl EventParser {
    /// Creates a parser with default limits.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// Creates a parser with custom limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, waiting: Vec::new(), offset: 0, leaving_out: 0, broken: None, scalars: Scalars::default() }
    }

    /// Parses more bytes and returns completed points.
    ///
    /// # Errors
    /// The framing is corrupt. Later calls return the same error. Earlier points were already
    /// returned or are returned by [`EventParser::finish`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Point>, LogError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        self.scalars.report.bytes += bytes.len() as u64;
        let left_out = (bytes.len() as u64).min(self.leaving_out);
        self.leaving_out -= left_out;
        self.offset += left_out;
        self.waiting.extend_from_slice(&bytes[left_out as usize..]);
        let mut used = 0;
        let outcome = loop {
            match self.record(used) {
                Ok(Some(length)) => used += length,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let used = used.min(self.waiting.len());
        self.waiting.drain(..used);
        self.offset += used as u64;
        match outcome {
            Ok(()) => Ok(std::mem::take(&mut self.scalars.done)),
            Err(error) => {
                self.waiting = Vec::new();
                self.broken = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Returns the last points and the report. A partial last record is not an error because the
    /// file may be growing.
    pub fn finish(mut self) -> (Vec<Point>, Report) {
        if !self.waiting.is_empty() || self.leaving_out > 0 {
            self.scalars.report.assume("the last record is cut and was not read");
        }
        self.scalars.close(&self.limits);
        self.scalars.pace.finish(&mut self.scalars.report);
        (self.scalars.done, self.scalars.report)
    }

    /// Returns the point of the latest step. Later records may modify it.
    pub fn open(&self) -> Option<&Point> {
        self.scalars.open.as_ref()
    }

    /// Returns counts of parsed and unparsed records so far.
    pub fn report(&self) -> &Report {
        &self.scalars.report
    }

    /// Reads the record at position `used` in the buffer. Returns its size, or `None` if it is
    /// incomplete.
    fn record(&mut self, used: usize) -> Result<Option<usize>, LogError> {
        let bytes = &self.waiting[used..];
        let Some((length, sound)) = head(bytes) else { return Ok(None) };
        let location = Location { line: self.scalars.report.lines + 1, offset: self.offset + used as u64 };
        // An impossible length is handled like a wrong checksum.
        if !sound || length > self.limits.file_bytes as u64 {
            return Err(LogError::Framing { offset: location.offset, read: self.scalars.report.lines });
        }
        let record_length = HEAD + length as usize + TAIL;
        if length > self.limits.record_bytes as u64 {
            self.scalars.report.lines += 1;
            self.scalars.report.skip("a record is longer than is read", location);
            let there = bytes.len().min(record_length);
            self.leaving_out = (record_length - there) as u64;
            return Ok(Some(there));
        }
        let Some(record) = bytes.get(HEAD..record_length) else { return Ok(None) };
        let (data, crc) = record.split_at(length as usize);
        self.scalars.report.lines += 1;
        if crc.first_chunk().is_none_or(|crc| u32::from_le_bytes(*crc) != crc32c::masked(data)) {
            self.scalars.report.skip("a record has a wrong checksum", location);
        } else {
            self.scalars.take(&event::read(data), location, &self.limits);
        }
        Ok(Some(record_length))
    }
}

/// Groups scalars into points.
#[derive(Debug, Clone, Default)]
struct Scalars {
    open: Option<Point>,
    done: Vec<Point>,
    pace: Pace,
    segment: u32,
    /// Last step by name.
    last: BTreeMap<String, u64>,
    /// True if a scalar is numbered by steps.
    is_by_steps: bool,
    report: Report,
}

/// True if a scalar is numbered by epochs: `epoch/train_loss`, `epoch_loss` in Keras.
fn is_by_epochs(tag: &str) -> bool {
    let first = tag.split('/').next().unwrap_or(tag);
    matches!(first, "epoch" | "epochs" | "per_epoch") && first.len() < tag.len() || tag.starts_with("epoch_")
}

impl Scalars {
    fn take(&mut self, event: &Event, location: Location, limits: &Limits) {
        if event.broken {
            return self.report.skip("a record is no event", location);
        }
        if event.scalars.is_empty() {
            self.report.ignored += 1;
            if event.others > 0 {
                self.report.problem("values that are no scalars were left out", location);
            }
            return;
        }
        let Ok(step) = u64::try_from(event.step) else { return self.report.skip("a step is negative", location) };
        let time_us = micros(event.wall_time);
        self.report.steps += 1;
        self.report.source(Source::Tensorboard);
        if time_us.is_none() {
            self.report.repair("a wall time is not a number and is missing", location);
        }
        for (tag, value) in &event.scalars {
            // tensorboardX replaces blanks.
            if tag.ends_with(" vs samples") || tag.ends_with("_vs_samples") {
                self.report.problem("scalars over samples say what those over steps say", location);
                continue;
            }
            // Keras and others number epoch metrics by epoch.
            let by_epochs = is_by_epochs(tag);
            if by_epochs && self.is_by_steps {
                self.report.problem("scalars over epochs are left out beside those over steps", location);
                continue;
            }
            if by_epochs {
                self.report.assume(EPOCHS);
            } else if !std::mem::replace(&mut self.is_by_steps, true)
                && self.report.assumptions.iter().any(|note| note == EPOCHS)
            {
                self.open = None;
                self.last.clear();
                self.report.problem("scalars over epochs are left out beside those over steps", location);
            }
            // DeepSpeed numbers its scalars by samples.
            let by_samples = tag.strip_prefix(SAMPLES);
            if by_samples.is_some() {
                self.report.assume(
                    "DeepSpeed numbers its scalars by samples: the points stand at samples, not steps, and have no step times",
                );
            }
            if self.last.get(tag).is_some_and(|&last| step < last) {
                self.close(limits);
                self.segment += 1;
                self.report.restarts += 1;
                self.last.clear();
            }
            if self.last.len() < MAX_TAGS {
                self.last.insert(tag.clone(), step);
            }
            if self.open.as_ref().is_some_and(|open| open.step < step) {
                self.close(limits);
            }
            let segment = self.segment;
            let open = self.open.get_or_insert_with(|| Point {
                segment,
                step,
                source: Source::Tensorboard,
                line: location.line,
                offset: location.offset,
                time_us,
                ..Point::default()
            });
            open.step_counted |= by_epochs;
            if by_samples.is_some() {
                (open.step_counted, open.consumed_samples) = (true, Some(step));
            }
            if open.step > step {
                self.report.repeated += 1;
                self.report.problem("a scalar of a step that is complete already", location);
            } else if !open.set(by_samples.unwrap_or(tag), *value, limits) {
                self.report.problem("a step has more values than can be stored", location);
            }
        }
    }

    fn close(&mut self, limits: &Limits) {
        let Some(mut point) = self.open.take() else { return };
        self.pace.complete(&mut point, &mut self.report, limits);
        self.report.missing_values(&point, LeftOut::default());
        self.report.points += 1;
        self.done.push(point);
    }
}

/// Parses a complete event file. Records before a corrupt frame are included, and the error is
/// reported.
pub(super) fn import(bytes: &[u8], limits: &Limits) -> Result<Log, LogError> {
    let mut parser = EventParser::with_limits(*limits);
    let mut points = Vec::new();
    let mut broken = None;
    for piece in bytes.chunks(1 << 20) {
        match parser.push(piece) {
            Ok(found) => points.extend(found),
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
        if points.len() > limits.points {
            break;
        }
    }
    let (last, mut report) = parser.finish();
    points.extend(last);
    if let Some(error) = broken {
        let LogError::Framing { offset, .. } = error else { return Err(error) };
        let location = Location { line: report.lines + 1, offset };
        report.skip("the frame is broken; what follows cannot be found", location);
        if points.is_empty() {
            return Err(error);
        }
    }
    Ok(Log { points, setup: Vec::new(), report })
}

#[cfg(test)]
pub(super) mod tests;
