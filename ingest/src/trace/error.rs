//! Why a trace is refused as a whole.

/// Why a trace is refused as a whole: the place, what is wrong there, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// No bytes, or nothing but white space.
    #[error("file is empty")]
    Empty,
    /// Something else than a trace.
    #[error("this looks like {looks_like}, not a trace; {remedy}")]
    NotATrace {
        /// What the first bytes say.
        looks_like: &'static str,
        /// What to send in its place.
        remedy: &'static str,
    },
    /// The bytes cannot be had at all.
    #[error("the file cannot be read beyond byte {offset}: {detail}")]
    Unreadable {
        /// Bytes before it.
        offset: u64,
        /// Why.
        detail: String,
    },
    /// More bytes than are read.
    #[error("the file has more than the {limit} bytes that are read, unpacked; record fewer steps")]
    TooLarge {
        /// Most bytes.
        limit: u64,
    },
    /// Broken JSON.
    #[error("not readable as JSON: {detail}")]
    Json {
        /// Where and how.
        detail: String,
    },
    /// JSON without events.
    #[error("the JSON holds {found}; a trace has a list of events, alone or as traceEvents")]
    Shape {
        /// What it is.
        found: String,
    },
    /// A broken binary trace.
    #[error("message {message} at byte {offset} is broken: {detail}")]
    Message {
        /// Which message, from 1.
        message: u64,
        /// Its first byte.
        offset: u64,
        /// What is wrong.
        detail: String,
    },
    /// Nodes that wait for each other.
    #[error("the nodes {} wait for each other", shown(nodes))]
    Cycle {
        /// Identifiers in the order of waiting; the last waits for the first.
        nodes: Vec<u64>,
    },
    /// Not a single event that can be shown.
    #[error("no event of the trace can be shown: {problems}")]
    NoEvents {
        /// What was left out, and why.
        problems: String,
    },
}

fn shown(nodes: &[u64]) -> String {
    let shown: Vec<String> = nodes.iter().take(20).map(u64::to_string).collect();
    let more = if nodes.len() > 20 { ", ..." } else { "" };
    format!("{}{more}", shown.join(" -> "))
}
