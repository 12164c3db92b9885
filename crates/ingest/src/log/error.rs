//! Errors that reject a complete log.

use super::Report;

/// Error that rejects a complete log. The message contains the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The input is empty or only white space.
    #[error("file is empty")]
    Empty,
    /// The input is not a log.
    #[error("this looks like {looks_like}, not a training log; {remedy}")]
    NotALog {
        /// File type detected from the first bytes.
        looks_like: &'static str,
        /// Suggested replacement file.
        remedy: &'static str,
    },
    /// The input exceeds the size limit.
    #[error("the file has more than the {limit} bytes that are read, unpacked; send the part that is needed")]
    TooLarge {
        /// Limit in bytes.
        limit: usize,
    },
    /// Corrupt gzip stream.
    #[error("the gzip stream breaks off after {unpacked} unpacked bytes: {detail}")]
    Gzip {
        /// Number of bytes decompressed before the error.
        unpacked: usize,
        detail: String,
    },
    /// JSON syntax error.
    #[error("not readable as JSON: {detail}")]
    Json {
        /// Parser message with line and column.
        detail: String,
    },
    /// JSON or CSV with an unsupported structure.
    #[error(
        "the file holds {found}; a trainer_state.json has a list log_history, a panel CSV the columns Step and \
         \"<run> - <metric>\", a TensorBoard CSV Wall time, Step and Value"
    )]
    Shape {
        /// Description of the content.
        found: &'static str,
    },
    /// Corrupt event file framing. The next record cannot be located.
    #[error("the length of the record at byte {offset} has a wrong checksum; {read} records before it are sound")]
    Framing {
        /// Offset of the record.
        offset: u64,
        /// Number of records before the error.
        read: u64,
    },
    /// The log contains no step.
    #[error(
        "no step of a known trainer is in these {} lines{}; a table needs a column named step, iteration or global_step; \
         docs/formats.md lists the formats, and a table of patterns can describe others",
        report.lines,
        first(report)
    )]
    NoSteps { report: Box<Report> },
}

fn first(report: &Report) -> String {
    report
        .problems
        .first()
        .map(|problem| format!(" (line {}: {}, {} times)", problem.line, problem.reason, problem.count))
        .unwrap_or_default()
}
