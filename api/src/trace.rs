//! Traces: what ran on which thread or stream of an observed job, from when to when.
//!
//! All times are in nanoseconds since the trace's first start.

mod alignment;
mod view;

pub use alignment::{ActionList, Alignment, ObservedIteration};
pub use view::{DecodeError, TraceView, decode, encode};

use planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

use crate::shelf::ListPage;

/// Media type of a view in columns.
pub const VIEW_MEDIA_TYPE: &str = "application/vnd.planscope.trace-view";

/// What a slice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SliceKind {
    /// A kernel that computes, on a device.
    Compute = 0,
    /// A kernel that communicates, on a device.
    Communication = 1,
    /// A copy of memory, by a device.
    Memcpy = 2,
    /// A filling of memory, by a device.
    Memset = 3,
    /// An operator on the host.
    Cpu = 4,
    /// A call of the device's runtime on the host.
    Runtime = 5,
    /// A range that the program names, on the host.
    Annotation = 6,
    /// A range that the program names, as the device saw it.
    DeviceAnnotation = 7,
    /// Anything else.
    Other = 8,
}

impl SliceKind {
    /// Every kind, indexed by its number.
    pub const ALL: [Self; 9] = [
        Self::Compute,
        Self::Communication,
        Self::Memcpy,
        Self::Memset,
        Self::Cpu,
        Self::Runtime,
        Self::Annotation,
        Self::DeviceAnnotation,
        Self::Other,
    ];

    /// The kind of that number.
    pub fn from_index(index: u8) -> Option<Self> {
        Self::ALL.get(usize::from(index)).copied()
    }

    /// What people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Compute => "kernel",
            Self::Communication => "communication",
            Self::Memcpy => "copy",
            Self::Memset => "fill",
            Self::Cpu => "host operator",
            Self::Runtime => "runtime call",
            Self::Annotation => "annotation",
            Self::DeviceAnnotation => "annotation on the device",
            Self::Other => "slice",
        }
    }
}

/// A stored trace, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceSummary {
    /// Content address, lower-case base32.
    pub id: String,
    /// Name to show; it may hold any character that can be seen, and is text, never markup.
    pub name: String,
    /// Note beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    pub tags: Vec<String>,
    /// Run that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Rank of the job that was traced, where the file or its sender says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Plan that it is held against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanOfTrace>,
    /// Format that was recognised.
    pub format: String,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
    /// When it was deleted; until it is purged it can come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// Bytes of the uploaded file.
    pub raw_bytes: u64,
    /// Bytes that it takes in the database.
    pub stored_bytes: u64,
    /// Slices, every one of which is kept.
    pub slices: u64,
    /// From the first start to the last end.
    pub span_ns: u64,
    /// Actions of a pipeline schedule that its names tell.
    pub actions: u64,
    /// Whether it stands in front of the list.
    #[serde(default)]
    pub pinned: bool,
}

/// Plan that a trace is held against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanOfTrace {
    /// Scenario, whole identifier.
    pub scenario: String,
    /// Planner; absent: the fastest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerKind>,
}

/// Stored traces and what they take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceList {
    /// Pinned ones, then newest first, unless another order was asked for.
    pub traces: Vec<TraceSummary>,
    /// Of the list.
    #[serde(flatten)]
    pub page: ListPage,
    /// Largest upload, in MiB.
    pub largest_upload_mib: u64,
}

/// Answer to an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UploadedTrace {
    /// The stored trace.
    pub trace: TraceSummary,
    /// What was read and what was not.
    pub report: TraceReport,
}

/// What was read of a trace and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceReport {
    /// Bytes, unpacked.
    pub bytes: u64,
    /// Events, packets or nodes of the file.
    pub events: u64,
    /// Of them, those that were used.
    pub used: u64,
    /// Of those, the ones that needed a repair.
    pub repaired: u64,
    /// Events that were left out.
    pub skipped: u64,
    /// Slices on lanes of their own, because they overlap without nesting.
    pub overflowed: u64,
    /// Whether the file breaks off; what stands before was read.
    pub cut: bool,
    /// What was repaired and left out, by reason.
    pub problems: Vec<TraceProblem>,
    /// What the file does not say and was taken so.
    pub assumptions: Vec<String>,
}

/// Events that were not read as they stand, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceProblem {
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
    /// The first of them, counting events from 1.
    pub event: u64,
    /// Bytes of the unpacked file up to its end.
    pub offset: u64,
}

/// What is to be changed of a trace; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TraceChange {
    /// Name to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Note beside it; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// All its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Run that it belongs to; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Rank that was traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Scenario that it is held against, by identifier or unique prefix; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Planner of that scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerKind>,
    /// Whether it stands in front of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

/// A trace with what its viewer needs before it asks for a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceDetail {
    /// As lists show it.
    pub trace: TraceSummary,
    /// What was read and what was not.
    pub report: TraceReport,
    /// Time of day of the first start in nanoseconds since 1970, where the file says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<i64>,
    /// Processes and devices, in the order of their lanes.
    pub processes: Vec<TraceProcess>,
    /// Rows of the chart, process by process.
    pub lanes: Vec<TraceLane>,
    /// Steps that the program announced.
    pub steps: Vec<TraceStep>,
    /// Counters of memory and the like.
    pub counters: u64,
    /// Arrows between slices.
    pub flows: u64,
    /// Widths of the levels beyond the slices themselves, ascending, in nanoseconds.
    pub level_widths_ns: Vec<u64>,
    /// Where the time of every device went.
    pub busy: Vec<BusyTime>,
}

/// A process, or a device, whose threads are streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceProcess {
    /// Its identifier as the trace writes it.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Further words, for example "GPU 0".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// Its rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
}

/// A row of the chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceLane {
    /// Index of the process.
    pub process: u32,
    /// Identifier of the thread or stream as the trace writes it.
    pub thread: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Zero for its first lane; further lanes hold slices that overlap without nesting.
    pub overflow: u32,
    /// Rows that nested slices take, one at least.
    pub rows: u32,
    /// Slices on it.
    pub slices: u64,
}

/// A step that the program announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceStep {
    /// Its number.
    pub number: u64,
    /// Lane of its slice.
    pub lane: u32,
    /// When it begins.
    pub start_ns: u64,
    /// How long it takes.
    pub duration_ns: u64,
    /// Whether it is the device's view of it.
    pub on_device: bool,
}

/// Where the time of a device went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BusyTime {
    /// Trace that says it.
    pub trace: String,
    /// Rank, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Device or process in words.
    pub device: String,
    /// What was added up: kernels of a device, or annotated actions of a schedule.
    pub source: BusySource,
    /// From the first start to the last end.
    pub span_ns: u64,
    /// While it computed.
    pub compute_ns: u64,
    /// While it communicated.
    pub communication_ns: u64,
    /// While it communicated and did not compute.
    pub exposed_ns: u64,
    /// While it copied or filled memory.
    pub copy_ns: u64,
    /// While it did any of it.
    pub busy_ns: u64,
    /// While it did nothing.
    pub idle_ns: u64,
}

/// What busy time was added up from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BusySource {
    /// Kernels and copies of a device.
    Kernels,
    /// Actions of a pipeline schedule, by their names.
    Actions,
}

/// Busy time of every rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BusyList {
    /// By rank; those without one behind them.
    pub ranks: Vec<BusyTime>,
}

/// A slice with everything that is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SliceDetail {
    /// Lane.
    pub lane: u32,
    /// How many slices of the lane it lies within.
    pub depth: u32,
    /// When it begins.
    pub start_ns: u64,
    /// How long it takes.
    pub duration_ns: u64,
    /// Its name; text, never markup.
    pub name: String,
    /// What it is.
    pub kind: SliceKind,
    /// Bytes that it moves, where the trace says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Actions of a pipeline schedule that it is, for example "0F3".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// What is known of its message, as names and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub message: Vec<(String, String)>,
    /// Arrows to and from other slices, 64 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrows: Vec<SliceArrow>,
    /// Arrows beyond those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub further_arrows: u32,
}

/// An arrow between a slice and another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SliceArrow {
    /// Lane of the other slice.
    pub lane: u32,
    /// Row of it within the lane, from 0.
    pub row: u32,
    /// When the other slice begins.
    pub start_ns: u64,
    /// Whether the arrow comes from the other slice; else it goes there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_incoming: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Names that hold a text, and where they occur.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceMatches {
    /// Slices whose name holds the text.
    pub slices: u64,
    /// Names, those with most time first, 100 at most.
    pub names: Vec<MatchedName>,
    /// How many names hold the text.
    pub all_names: u64,
    /// The next slice at or behind the time that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<SliceDetail>,
}

/// A name that holds the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MatchedName {
    /// The name.
    pub name: String,
    /// Slices of that name.
    pub slices: u64,
    /// Their durations together.
    pub total_ns: u64,
}

/// Values of the counters of a trace, thinned out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterList {
    /// Series, in the order of the trace.
    pub series: Vec<CounterSeries>,
}

/// Values of one series of a counter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterSeries {
    /// Index of the process.
    pub process: u32,
    /// Name of the counter and of the series.
    pub name: String,
    /// Values that the trace has.
    pub values: u64,
    /// Times, ascending; where there are too many, the least and the largest value of every stretch are kept.
    pub time_ns: Vec<u64>,
    /// Values at those times, each lasting until the next.
    pub value: Vec<f64>,
}
