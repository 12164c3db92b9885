//! Parses traces into slices on lanes: events per thread or stream with start and duration in
//! nanoseconds.
//!
//! | format | detected by |
//! |---|---|
//! | Chrome trace events from Kineto (PyTorch), simulators and torch schedules | an object with `traceEvents`, or an array, closed or not |
//! | Perfetto track events, also with interned names | packets with track events |
//! | Nsight Systems, SQLite export | the first 16 bytes of an SQLite file |
//! | Chakra execution trace | consecutive metadata and node messages, or an object with `workload_graph` |
//!
//! All formats may be gzip-compressed. Parsing is streamed: memory contains only the result
//! columns, bounded by [`Limits`]. An SQLite file is the exception: its tables are spread over the
//! file, so it is read into memory as a whole.

mod action;
mod build;
mod chakra;
mod chrome;
mod collective;
mod decimal;
mod error;
mod foreign;
mod kind;
mod lanes;
pub mod levels;
mod messages;
mod nsys;
mod perfetto;
mod phase;
mod recorded;
mod report;
mod scanned;
mod table;
mod totals;

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use crate::sqlite;

pub use action::{Action, ActionKind, UnplacedAction, actions};
pub use collective::Collective;
pub use error::TraceError;
pub use kind::Kind;
pub use recorded::recorded;
pub use report::{Problem, Report};
pub use table::{
    Counter, Distributed, Flow, Format, Group, Lane, Located, Process, Slices, Step, Totals, Trace, Transfer,
};

/// Parser limits. Excess data is rejected or counted, and never allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum decompressed size in bytes. A profile over minutes on one device has several hundred
    /// megabytes.
    pub bytes: u64,
    /// Maximum decompressed size of an SQLite file in bytes, which is read into memory as a whole.
    pub sqlite_bytes: u64,
    /// Maximum number of slices, flows, counters and instants each. Further events are counted.
    pub events: usize,
    /// Maximum JSON nesting depth. Traces have six levels.
    pub depth: usize,
    /// Maximum name length in bytes. Further bytes are dropped. Names of template kernels have
    /// several thousand bytes.
    pub name_bytes: usize,
    /// Maximum total size of distinct names in bytes. Further names are replaced by "(other)".
    pub names_bytes: usize,
    /// Maximum threads, tracks and streams. Events on further threads are counted.
    pub threads: usize,
    /// Maximum lanes per thread for slices that overlap without nesting. The last lane receives the
    /// remaining slices.
    pub overflow_lanes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 4 << 30,
            sqlite_bytes: 1 << 30,
            events: 5_000_000,
            depth: 128,
            name_bytes: 4096,
            names_bytes: 128 << 20,
            threads: 50_000,
            overflow_lanes: 64,
        }
    }
}

/// Time unit in Chrome traces, for files that do not use microseconds as defined by the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeUnit {
    /// Unit defined by the format.
    #[default]
    Microseconds,
    /// Unit in some simulators, including DynaPipe.
    Milliseconds,
    /// Unit in some simulators.
    Nanoseconds,
}

impl TimeUnit {
    /// Returns the unit as a power of ten in nanoseconds.
    const fn power(self) -> i32 {
        match self {
            Self::Nanoseconds => 0,
            Self::Microseconds => 3,
            Self::Milliseconds => 6,
        }
    }
}

/// Parses a trace, optionally gzip-compressed. The format is detected from content.
///
/// # Errors
/// The file is not a trace (with the detected file type), is corrupt (with the position), or
/// exceeds a limit. A truncated file is not an error: the part before the truncation is parsed, and
/// the report contains this fact.
pub fn read(source: impl Read, unit: TimeUnit, limits: &Limits) -> Result<Trace, TraceError> {
    let mut source = BufReader::with_capacity(64 << 10, source);
    if head(&mut source)?.starts_with(b"\x1f\x8b") {
        let mut unpacked = BufReader::with_capacity(64 << 10, MultiGzDecoder::new(source));
        if head(&mut unpacked)?.starts_with(b"\x1f\x8b") {
            return Err(TraceError::NotATrace {
                looks_like: "a gzip archive inside another",
                remedy: "unpack it once",
            });
        }
        content(unpacked, unit, limits)
    } else {
        content(source, unit, limits)
    }
}

/// Returns the first bytes without consuming them.
fn head(source: &mut impl BufRead) -> Result<&[u8], TraceError> {
    source.fill_buf().map_err(|error| TraceError::Unreadable { offset: 0, detail: error.to_string() })
}

fn content(mut source: impl BufRead, unit: TimeUnit, limits: &Limits) -> Result<Trace, TraceError> {
    let head = head(&mut source)?;
    if head.is_empty() {
        return Err(TraceError::Empty);
    }
    if head.starts_with(b"\xef\xbb\xbf") {
        source.consume(3);
        return chrome::read(source, unit, limits);
    }
    if head.starts_with(sqlite::MAGIC) {
        return nsys::read(source, limits);
    }
    if let Some(error) = foreign::find(head) {
        return Err(error);
    }
    match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(TraceError::Empty),
        Some(b'{' | b'[') => chrome::read(source, unit, limits),
        Some(_) if perfetto::starts(head) => perfetto::read(source, limits),
        Some(_) if chakra::starts(head) => chakra::read(source, limits),
        Some(_) => Err(TraceError::NotATrace {
            looks_like: "an unknown format",
            remedy: "a trace is JSON with traceEvents, a Perfetto or a Chakra file, or an SQLite export of Nsight Systems",
        }),
    }
}

#[cfg(test)]
mod tests;
