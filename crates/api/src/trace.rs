//! Traces: slices per thread or stream in an observed job.
//!
//! All times are in nanoseconds since the first start in the trace.

mod alignment;
mod view;

pub use alignment::{ActionList, Alignment, MeasuredIteration};
pub use view::{DecodeError, TraceView, decode, encode};

use crate::planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

use crate::listing::ListPage;

/// Media type for views in columns.
pub const VIEW_MEDIA_TYPE: &str = "application/vnd.planscope.trace-view";

/// Slice kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SliceKind {
    /// A compute kernel on a device.
    Compute = 0,
    /// A communication kernel on a device.
    Communication = 1,
    /// A memory copy by a device.
    Memcpy = 2,
    /// A memory fill by a device.
    Memset = 3,
    /// A host operator.
    Cpu = 4,
    /// A device runtime call on the host.
    Runtime = 5,
    /// A range annotated by the program, on the host.
    Annotation = 6,
    /// A range annotated by the program, on the device.
    DeviceAnnotation = 7,
    /// Any other slice.
    Other = 8,
}

impl SliceKind {
    /// All kinds, indexed by number.
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

    /// Returns the kind with a number.
    pub fn from_index(index: u8) -> Option<Self> {
        Self::ALL.get(usize::from(index)).copied()
    }

    /// Returns the display name.
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

/// A stored trace in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceSummary {
    /// Content address, lower-case base32.
    pub id: String,
    /// Display name. It can contain any visible character and is text, not markup.
    pub name: String,
    /// User note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    pub tags: Vec<String>,
    /// Run identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Traced rank, if the file or the upload states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Plan to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<TracePlan>,
    /// Detected format.
    pub format: String,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// Deletion time. Deleted traces can be restored until they are purged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// Size of the uploaded file, in bytes.
    pub raw_bytes: u64,
    /// Stored size, in bytes.
    pub stored_bytes: u64,
    /// Number of slices. All slices are stored.
    pub slices: u64,
    /// Time from the first start to the last end.
    pub span_ns: u64,
    /// Number of pipeline actions recognized by name.
    pub actions: u64,
    /// True if the trace is pinned to the start of the list.
    #[serde(default)]
    pub pinned: bool,
}

/// Plan to compare a trace with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TracePlan {
    /// Full scenario identifier.
    pub scenario: String,
    /// Planner. Default: the fastest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerKind>,
}

/// A page of traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceList {
    /// Traces: pinned first, then newest first by default.
    pub traces: Vec<TraceSummary>,
    /// Page information.
    #[serde(flatten)]
    pub page: ListPage,
    /// Maximum upload size, in MiB.
    pub largest_upload_mib: u64,
}

/// Response to an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UploadedTrace {
    /// The stored trace.
    pub trace: TraceSummary,
    /// Import report.
    pub report: TraceReport,
}

/// Import report for a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceReport {
    /// Unpacked size, in bytes.
    pub bytes: u64,
    /// Number of events, packets or nodes in the file.
    pub events: u64,
    /// Number of used events.
    pub used: u64,
    /// Number of repaired events.
    pub repaired: u64,
    /// Number of skipped events.
    pub skipped: u64,
    /// Number of slices moved to extra lanes because they overlap without nesting.
    pub overflowed: u64,
    /// True if the file is truncated. The part before the end was read.
    pub cut: bool,
    /// Repaired and skipped events by reason.
    pub problems: Vec<TraceProblem>,
    /// Assumptions for values that the file does not state.
    pub assumptions: Vec<String>,
}

/// Repaired or skipped events with a common reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceProblem {
    /// Reason.
    pub reason: String,
    /// Number of events.
    pub count: u64,
    /// First event, numbered from 1.
    pub event: u64,
    /// End offset in the unpacked file, in bytes.
    pub offset: u64,
}

/// Changes to a trace. Omitted fields are unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TraceChange {
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Note. An empty string removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// All tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Run identifier. An empty string removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Traced rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Scenario to compare with, by identifier or unique prefix. An empty string removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Planner in the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerKind>,
    /// True to pin the trace to the start of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

/// A trace with the metadata for its viewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceDetail {
    /// List entry.
    pub trace: TraceSummary,
    /// Import report.
    pub report: TraceReport,
    /// Clock time of the first start, in nanoseconds since 1970, if the file states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<i64>,
    /// Processes and devices, in lane order.
    pub processes: Vec<TraceProcess>,
    /// Lanes, process by process.
    pub lanes: Vec<TraceLane>,
    /// Steps announced by the program.
    pub steps: Vec<TraceStep>,
    /// Number of counters, for example memory counters.
    pub counters: u64,
    /// Number of arrows between slices.
    pub flows: u64,
    /// Bin widths of the detail levels above the slices, ascending, in nanoseconds.
    pub level_widths_ns: Vec<u64>,
    /// Time breakdown per device.
    pub busy: Vec<TimeBreakdown>,
}

/// A process, or a device with streams as threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceProcess {
    /// Identifier in the trace.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Further labels, for example "GPU 0".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// Its rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
}

/// A chart lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceLane {
    /// Process index.
    pub process: u32,
    /// Thread or stream identifier in the trace.
    pub thread: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Zero for the first lane. Further lanes contain slices that overlap without nesting.
    pub overflow: u32,
    /// Number of rows for nested slices, at least one.
    pub rows: u32,
    /// Number of slices.
    pub slices: u64,
}

/// A step announced by the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceStep {
    /// Step number.
    pub number: u64,
    /// Lane containing the slice.
    pub lane: u32,
    /// Start time.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
    /// True for the step on the device.
    pub on_device: bool,
}

/// Time breakdown for a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TimeBreakdown {
    /// Trace identifier.
    pub trace: String,
    /// Rank, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Device or process name.
    pub device: String,
    /// Data source: device kernels, or annotated schedule actions.
    pub source: BreakdownSource,
    /// Time from the first start to the last end.
    pub span_ns: u64,
    /// Compute time.
    pub compute_ns: u64,
    /// Communication time.
    pub communication_ns: u64,
    /// Communication time without concurrent computation.
    pub exposed_ns: u64,
    /// Memory copy and fill time.
    pub copy_ns: u64,
    /// Time with any activity.
    pub busy_ns: u64,
    /// Idle time.
    pub idle_ns: u64,
}

/// Data source for a time breakdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BreakdownSource {
    /// Device kernels and copies.
    Kernels,
    /// Pipeline actions recognized by name.
    Actions,
}

/// Time breakdown for all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TimeBreakdownList {
    /// Entries sorted by rank. Entries without a rank are last.
    pub ranks: Vec<TimeBreakdown>,
}

/// A slice with all details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SliceDetail {
    /// Lane.
    pub lane: u32,
    /// Nesting depth on the lane.
    pub depth: u32,
    /// Start time.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
    /// Name; text, not markup.
    pub name: String,
    /// Slice kind.
    pub kind: SliceKind,
    /// Transferred bytes, if the trace states them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Pipeline actions, for example "0F3".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// Message properties as names and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub message: Vec<(String, String)>,
    /// Arrows to and from other slices, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrows: Vec<SliceArrow>,
    /// Number of further arrows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub further_arrows: u32,
}

/// An arrow between two slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SliceArrow {
    /// Lane of the other slice.
    pub lane: u32,
    /// Row of the other slice on its lane, from 0.
    pub row: u32,
    /// Start time of the other slice.
    pub start_ns: u64,
    /// True for an arrow from the other slice to this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_incoming: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Names that contain a text, and their slices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TraceMatches {
    /// Number of slices with a matching name.
    pub slices: u64,
    /// Matching names with the largest total time, at most 100.
    pub names: Vec<MatchedName>,
    /// Number of matching names.
    pub all_names: u64,
    /// First matching slice at or after the requested time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<SliceDetail>,
}

/// A matching name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MatchedName {
    /// The name.
    pub name: String,
    /// Number of slices with the name.
    pub slices: u64,
    /// Total duration.
    pub total_ns: u64,
}

/// Counter values, reduced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterList {
    /// Series, in trace order.
    pub series: Vec<CounterSeries>,
}

/// A counter series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterSeries {
    /// Process index.
    pub process: u32,
    /// Counter and series name.
    pub name: String,
    /// Number of values in the trace.
    pub values: u64,
    /// Times, ascending. If the trace has too many values, minimum and maximum per interval.
    pub time_ns: Vec<u64>,
    /// Values. Each applies until the next time.
    pub value: Vec<f64>,
}
