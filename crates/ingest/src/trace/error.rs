//! Errors that reject a complete trace.

/// Error that rejects a complete trace. The message contains position and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The input is empty or only white space.
    #[error("file is empty")]
    Empty,
    /// The input is not a trace.
    #[error("this looks like {looks_like}, not a trace; {remedy}")]
    NotATrace {
        /// File type detected from the first bytes.
        looks_like: &'static str,
        /// Suggested replacement file.
        remedy: &'static str,
    },
    /// I/O error while reading.
    #[error("the file cannot be read beyond byte {offset}: {detail}")]
    Unreadable {
        /// Bytes read before the error.
        offset: u64,
        /// Error message.
        detail: String,
    },
    /// The input exceeds the size limit.
    #[error("the file has more than the {limit} bytes that are read, unpacked; record fewer steps")]
    TooLarge {
        /// Limit in bytes.
        limit: u64,
    },
    /// JSON syntax error.
    #[error("not readable as JSON: {detail}")]
    Json {
        /// Position and message.
        detail: String,
    },
    /// JSON without events.
    #[error("the JSON holds {found}; a trace has a list of events, alone or as traceEvents")]
    Shape {
        /// Description of the content.
        found: String,
    },
    /// Malformed binary trace.
    #[error("message {message} at byte {offset} is broken: {detail}")]
    Message {
        /// Message number, from 1.
        message: u64,
        /// Offset of the message.
        offset: u64,
        /// Error message.
        detail: String,
    },
    /// Malformed SQLite file.
    #[error("the SQLite file is broken: {detail}")]
    Sqlite {
        /// Position and message.
        detail: String,
    },
    /// An SQLite file that lacks tables or columns of Nsight Systems.
    #[error("the SQLite file lacks {missing} of an export of Nsight Systems; it has {found}")]
    Tables {
        /// Missing tables or columns.
        missing: String,
        /// Description of the content.
        found: String,
    },
    /// Cyclic node dependencies.
    #[error("the nodes {} wait for each other", format_nodes(nodes))]
    Cycle {
        /// Node identifiers on the cycle. Each depends on the next, the last on the first.
        nodes: Vec<u64>,
    },
    /// The trace contains no usable event.
    #[error("no event of the trace can be shown: {problems}")]
    NoEvents {
        /// Skipped events with reasons.
        problems: String,
    },
}

fn format_nodes(nodes: &[u64]) -> String {
    let names: Vec<String> = nodes.iter().take(20).map(u64::to_string).collect();
    let more = if nodes.len() > 20 { ", ..." } else { "" };
    format!("{}{more}", names.join(" -> "))
}
