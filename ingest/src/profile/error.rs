//! Why a profile is refused as a whole.

use super::{MAX_BYTES, MAX_VALUES, Report};

/// Why a profile is refused as a whole: what is wrong, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No bytes, or nothing but white space.
    #[error("file is empty")]
    Empty,
    /// More bytes than are read.
    #[error("the file has {bytes} bytes, more than the {MAX_BYTES} that are read; upload the rows that are needed")]
    TooLarge {
        /// Bytes of the file.
        bytes: usize,
    },
    /// More measured values than are kept.
    #[error("more than {MAX_VALUES} measured values; upload a random sample of them")]
    TooManyValues,
    /// Not text, or not in UTF-8.
    #[error("the file is not UTF-8 text ({detail}); a profile is CSV or JSON, unpacked")]
    NotText {
        /// What it looks like, or where it stops being UTF-8.
        detail: String,
    },
    /// Broken JSON, or JSON that is not what its format promises.
    #[error("not readable as JSON: {detail}")]
    Json {
        /// What the parser says, with line and column.
        detail: String,
    },
    /// A broken table.
    #[error("not readable as a table: {detail}")]
    Table {
        /// What the parser says.
        detail: String,
    },
    /// None of the formats.
    #[error(
        "no known profile: {found}. Planscope's own table needs the columns kernel and time_us, and those of the shape"
    )]
    Unknown {
        /// Columns or keys that were found.
        found: String,
    },
    /// A known format from which no kernel's time can be had.
    #[error("this is {format}: {why}")]
    NotMeasurements {
        /// What it is.
        format: &'static str,
        /// Why it cannot be used.
        why: &'static str,
    },
    /// A column that the format needs is not there.
    #[error("this {format} has no column {column}")]
    MissingColumn {
        /// Format that was recognised.
        format: &'static str,
        /// The column.
        column: String,
    },
    /// A column stands in the header twice.
    #[error("this {format} has two columns {column}; remove one of them")]
    RepeatedColumn {
        /// Format that was recognised.
        format: &'static str,
        /// The column.
        column: String,
    },
    /// A table of one group's collectives that does not say how many devices the group has.
    #[error("neither the table nor its name says how many devices took part; give the number, or a name like AR_GPU8")]
    NoRanks,
    /// Output of a collective benchmark on more devices than a usual node has, without the lines that name the hosts.
    #[error(
        "{ranks} devices took part, and no line `Rank ...` names their hosts; upload the whole output, or name the file \
         after its nodes, like all_reduce_8gpus_per_node.txt"
    )]
    NoNodes {
        /// Devices.
        ranks: u32,
    },
    /// Output of a collective benchmark that does not name the collective.
    #[error(
        "neither the file nor its name says which collective ran; name the file after it, like all_gather_perf.txt"
    )]
    NoCollective,
    /// Groups of a collective benchmark that have different numbers of devices or nodes.
    #[error(
        "the groups that ran at the same time have different numbers of devices or nodes; upload the output of one of them"
    )]
    UnequalGroups,
    /// Rows of several devices.
    #[error("the rows are of several devices, {first} and {second}; upload those of one device")]
    TwoDevices {
        /// A device.
        first: String,
        /// Another device.
        second: String,
    },
    /// A file with a header only.
    #[error("this {format} holds no measured value")]
    NoValues {
        /// Format that was recognised.
        format: &'static str,
    },
    /// Every value is refused.
    #[error("none of the {} values of this {format} can be used{}", report.rows, reasons(report))]
    NothingUsable {
        /// Format that was recognised.
        format: &'static str,
        /// Why not.
        report: Box<Report>,
    },
}

fn reasons(report: &Report) -> String {
    let told: Vec<String> = report
        .refused
        .iter()
        .map(|refusal| format!("{} ({}, first {})", refusal.reason, refusal.count, refusal.first))
        .collect();
    format!(": {}", told.join("; "))
}
