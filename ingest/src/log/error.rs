//! Why a log is refused as a whole.

use super::Report;

/// Why a log is refused as a whole: what is wrong, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No bytes, or nothing but white space.
    #[error("file is empty")]
    Empty,
    /// Something else than a log.
    #[error("this looks like {looks_like}, not a training log; {remedy}")]
    NotALog {
        /// What the first bytes say.
        looks_like: &'static str,
        /// What to send in its place.
        remedy: &'static str,
    },
    /// More bytes than are read.
    #[error("the file has more than the {limit} bytes that are read, unpacked; send the part that is needed")]
    TooLarge {
        /// Most bytes.
        limit: usize,
    },
    /// A broken gzip stream.
    #[error("the gzip stream breaks off after {unpacked} unpacked bytes: {detail}")]
    Gzip {
        /// Bytes that could be unpacked.
        unpacked: usize,
        /// What is wrong.
        detail: String,
    },
    /// Broken JSON.
    #[error("not readable as JSON: {detail}")]
    Json {
        /// What the parser says, with line and column.
        detail: String,
    },
    /// JSON or CSV of another shape.
    #[error(
        "the file holds {found}; a trainer_state.json has a list log_history, a panel CSV the columns Step and \
         \"<run> - <metric>\", a TensorBoard CSV Wall time, Step and Value"
    )]
    Shape {
        /// What it is.
        found: &'static str,
    },
    /// An event file whose framing is broken: what follows cannot be found.
    #[error("the length of the record at byte {offset} has a wrong checksum; {read} records before it are sound")]
    Framing {
        /// First byte of the record.
        offset: u64,
        /// Records before it.
        read: u64,
    },
    /// Not a single step.
    #[error(
        "no step of a known trainer is in these {} lines{}; docs/formats.md lists the formats, and a table of patterns \
         can describe others",
        report.lines,
        first(report)
    )]
    NoSteps {
        /// What was read.
        report: Box<Report>,
    },
}

fn first(report: &Report) -> String {
    report
        .problems
        .first()
        .map(|problem| format!(" (line {}: {}, {} times)", problem.line, problem.reason, problem.count))
        .unwrap_or_default()
}
