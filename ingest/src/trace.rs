//! Traces to slices on lanes: what ran on which thread or stream, from when to when, to the nanosecond.
//!
//! | format | recognised by |
//! |---|---|
//! | Chrome trace events as Kineto (PyTorch), simulators and torch's schedules write them | an object with `traceEvents`, or an array, closed or not |
//! | Perfetto track events, also with interned names | packets with track events |
//! | Chakra execution trace | metadata and nodes behind each other, or an object with `workload_graph` |
//!
//! Any of them may be packed with gzip. Reading is streamed: what is held are the columns of the result, within
//! [`Limits`].

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
mod perfetto;
mod report;
mod scanned;
mod table;
mod totals;

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

pub use action::{Action, ActionKind, UnplacedAction, actions};
pub use collective::Collective;
pub use error::TraceError;
pub use kind::Kind;
pub use report::{Problem, Report};
pub use table::{
    Counter, Distributed, Flow, Format, Group, Lane, Located, Process, Slices, Step, Totals, Trace, Transfer,
};

/// How much of a trace is read and kept. What goes beyond is refused or counted, never an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of the unpacked file: a profile of minutes on one device has hundreds of megabytes.
    pub bytes: u64,
    /// Most slices, flows, counters and instants each; further ones are counted.
    pub events: usize,
    /// Deepest nesting of JSON; traces have six levels.
    pub depth: usize,
    /// Longest name, in bytes; further bytes are left out. Kernels of templates have thousands.
    pub name_bytes: usize,
    /// Most bytes of all different names together; further names are replaced by "(other)".
    pub names_bytes: usize,
    /// Most threads, tracks and streams; events of further ones are counted.
    pub threads: usize,
    /// Most lanes for slices of one thread that overlap without nesting; the last takes what is beyond.
    pub overflow_lanes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 4 << 30,
            events: 5_000_000,
            depth: 128,
            name_bytes: 4096,
            names_bytes: 128 << 20,
            threads: 50_000,
            overflow_lanes: 64,
        }
    }
}

/// The unit of times in Chrome traces, where it is known to differ from the format's microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeUnit {
    /// As the format says.
    #[default]
    Microseconds,
    /// Of some simulators, DynaPipe's among them.
    Milliseconds,
    /// Of some simulators.
    Nanoseconds,
}

impl TimeUnit {
    /// The unit as a power of ten of nanoseconds.
    const fn power(self) -> i32 {
        match self {
            Self::Nanoseconds => 0,
            Self::Microseconds => 3,
            Self::Milliseconds => 6,
        }
    }
}

/// Reads a trace, packed with gzip or not, whose format is recognised by its content.
///
/// # Errors
/// What the file is instead of a trace, where it is broken, or which limit it breaks. A file that is cut is no error:
/// what stands before the cut is read, and the report says so.
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

/// The first bytes, which stay to be read.
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
            remedy: "a trace is JSON with traceEvents, a Perfetto or a Chakra file",
        }),
    }
}

#[cfg(test)]
mod tests;
