//! Errors that reject a complete profile.

use super::{MAX_BYTES, MAX_VALUES, Report};

/// Error that rejects a complete profile. The message contains the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The input is empty or only white space.
    #[error("file is empty")]
    Empty,
    /// The input exceeds the size limit.
    #[error("the file has {bytes} bytes, more than the {MAX_BYTES} that are read; upload the rows that are needed")]
    TooLarge {
        /// File size in bytes.
        bytes: usize,
    },
    /// The number of measured values exceeds the limit.
    #[error("more than {MAX_VALUES} measured values; upload a random sample of them")]
    TooManyValues,
    /// The input is not UTF-8 text.
    #[error("the file is not UTF-8 text ({detail}); a profile is CSV or JSON, unpacked")]
    NotText {
        /// Detected file type, or position of the first invalid byte.
        detail: String,
    },
    /// JSON syntax error, or JSON that does not match its format.
    #[error("not readable as JSON: {detail}")]
    Json {
        /// Parser message with line and column.
        detail: String,
    },
    /// A field of a JSON document is missing or has a wrong value.
    #[error("{path}: {problem}")]
    Field {
        /// JSON path, for example `sections[1].name`.
        path: String,
        /// Problem text.
        problem: String,
    },
    /// Malformed table.
    #[error("not readable as a table: {detail}")]
    Table {
        /// Parser message.
        detail: String,
    },
    /// Unknown format.
    #[error(
        "no known profile: {found}. Planscope's own table needs the columns kernel and time_us, and those of the shape"
    )]
    Unknown {
        /// Columns or keys in the file.
        found: String,
    },
    /// A known format without kernel times.
    #[error("this is {format}: {why}")]
    NotMeasurements {
        /// Format name.
        format: &'static str,
        /// Reason for rejection.
        why: &'static str,
    },
    /// A required column is missing.
    #[error("this {format} has no column {column}")]
    MissingColumn {
        /// Detected format.
        format: &'static str,
        /// Column name.
        column: String,
    },
    /// A column appears twice in the header.
    #[error("this {format} has two columns {column}; remove one of them")]
    RepeatedColumn {
        /// Detected format.
        format: &'static str,
        /// Column name.
        column: String,
    },
    /// A table for a single group without the group size.
    #[error("neither the table nor its name says how many devices took part; give the number, or a name like AR_GPU8")]
    NoRanks,
    /// Collective benchmark output for more devices than a typical node, without host names.
    #[error(
        "{ranks} devices took part, and no line `Rank ...` names their hosts; upload the whole output, or name the file \
         after its nodes, like all_reduce_8gpus_per_node.txt"
    )]
    NoNodes {
        /// Device count.
        ranks: u32,
    },
    /// Collective benchmark output without the collective's name.
    #[error(
        "neither the file nor its name says which collective ran; name the file after it, like all_gather_perf.txt"
    )]
    NoCollective,
    /// Groups in a collective benchmark differ in device count or node count.
    #[error(
        "the groups that ran at the same time have different numbers of devices or nodes; upload the output of one of them"
    )]
    UnequalGroups,
    /// The rows contain different devices.
    #[error("the rows are of several devices, {first} and {second}; upload those of one device")]
    TwoDevices {
        /// First device.
        first: String,
        /// Second device.
        second: String,
    },
    /// The file contains only a header.
    #[error("this {format} holds no measured value")]
    NoValues {
        /// Detected format.
        format: &'static str,
    },
    /// All values are rejected.
    #[error("none of the {} values of this {format} can be used{}", report.rows, reasons(report))]
    NothingUsable {
        /// Detected format.
        format: &'static str,
        /// Report with the reasons.
        report: Box<Report>,
    },
}

fn reasons(report: &Report) -> String {
    let summaries: Vec<String> = report
        .refused
        .iter()
        .map(|refusal| format!("{} ({}, first {})", refusal.reason, refusal.count, refusal.first))
        .collect();
    let unfitted = report.unfitted.iter().map(|(kind, count)| format!("{kind} ({count}, not for a fit)"));
    let told: Vec<String> = summaries.into_iter().chain(unfitted).collect();
    format!(": {}", told.join("; "))
}
