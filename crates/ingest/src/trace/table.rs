//! Columnar trace.

use serde::{Deserialize, Serialize};

use super::action::{Action, UnplacedAction};
use super::collective::Collective;
use super::kind::Kind;
use super::report::Report;

/// Trace format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Chrome trace events, as written by Kineto.
    Chrome,
    /// Perfetto packets.
    Perfetto,
    /// Chakra execution trace, binary or JSON.
    Chakra,
    /// SQLite export of Nsight Systems.
    Nsight,
}

impl Format {
    /// Returns the display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chrome => "Chrome trace (Kineto)",
            Self::Perfetto => "Perfetto trace",
            Self::Chakra => "Chakra execution trace",
            Self::Nsight => "Nsight Systems (SQLite)",
        }
    }
}

/// A trace. All times are nanoseconds on the trace's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Detected format.
    pub format: Format,
    /// First slice start, used as the chart origin.
    pub origin_ns: u64,
    /// Last slice end.
    pub end_ns: u64,
    /// Wall-clock time at clock zero in nanoseconds since 1970, if the trace contains it.
    pub base_ns: Option<i64>,
    /// Distinct slice names.
    pub names: Vec<String>,
    /// Processes and devices.
    pub processes: Vec<Process>,
    /// Threads and streams, grouped by process. The lanes of a thread are consecutive.
    pub lanes: Vec<Lane>,
    /// Slices sorted by lane, then start.
    pub slices: Slices,
    /// Flow arrows.
    pub flows: Vec<Flow>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Training steps from `ProfilerStep#N`.
    pub steps: Vec<Step>,
    /// Pipeline schedule actions by slice.
    pub actions: Vec<Located<Action>>,
    /// Actions without a stage, by slice, if the file does not contain the rank's stage.
    pub unplaced: Vec<Located<UnplacedAction>>,
    /// Collective data by slice.
    pub collectives: Vec<Located<Collective>>,
    /// Memory copy sizes by slice.
    pub transfers: Vec<Transfer>,
    /// Job information of the traced rank, if the trace contains it.
    pub distributed: Option<Distributed>,
    /// Time breakdown per device.
    pub totals: Vec<Totals>,
    /// Counts of parsed and skipped events.
    pub report: Report,
}

/// Suffix of the report line about actions without a stage.
pub(super) const WITHOUT_STAGE: &str =
    "name no stage, and the job does not tell it: upload the file again with the pipeline stage of its rank";

impl Trace {
    /// Assigns a stage to actions without one.
    pub fn set_missing_stages(&mut self, stage: u32) {
        self.report.assumptions.retain(|line| !line.ends_with(WITHOUT_STAGE));
        let placed = self.unplaced.drain(..).map(|Located { slice, value: UnplacedAction { kind, microbatch } }| {
            Located { slice, value: Action { stage, kind, microbatch: Some(microbatch) } }
        });
        self.actions.extend(placed);
        self.actions.sort_by_key(|located| located.slice);
    }
}

impl Distributed {
    /// Returns the rank's pipeline stage, for jobs with one stage per rank: the position in the
    /// pipeline group, or the rank if the only group contains all ranks.
    pub fn stage(&self) -> Option<u32> {
        let rank = self.rank?;
        let pipeline = |group: &&Group| {
            let labels = group.description.iter().chain([&group.name]);
            labels
                .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()))
                .any(|word| ["pp", "pipe", "pipeline"].iter().any(|known| word.eq_ignore_ascii_case(known)))
        };
        let position = |ranks: &[u32]| ranks.iter().position(|&other| other == rank).map(|index| index as u32);
        if let Some(stage) = self.groups.iter().filter(pipeline).find_map(|group| position(&group.ranks)) {
            return Some(stage);
        }
        let world = self.world_size?;
        let listed = |group: &Group| u32::try_from(group.ranks.len()).ok().filter(|&size| size > 0);
        let has_all_ranks =
            |group: &Group| group.size.or_else(|| listed(group)).is_none_or(|size| size == world || size <= 1);
        (rank < world && self.groups.iter().all(has_all_ranks)).then_some(rank)
    }
}

/// Slices as columns with equal length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slices {
    /// Lane index.
    pub lane: Vec<u32>,
    /// Start in nanoseconds.
    pub start_ns: Vec<u64>,
    /// Duration in nanoseconds.
    pub duration_ns: Vec<u64>,
    /// Name index.
    pub name: Vec<u32>,
    /// Slice kind.
    pub kind: Vec<Kind>,
    /// Nesting depth on the lane.
    pub depth: Vec<u16>,
}

impl Slices {
    /// Returns the slice count.
    pub fn len(&self) -> usize {
        self.lane.len()
    }

    /// Returns true if there are no slices.
    pub fn is_empty(&self) -> bool {
        self.lane.is_empty()
    }
}

/// A process, or a device with streams as threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Identifier as written in the trace.
    pub id: String,
    /// Process name.
    pub name: Option<String>,
    /// Labels, for example "GPU 0".
    pub labels: Option<String>,
    /// Sort index, if the trace contains it.
    pub sort_index: Option<i64>,
    /// Rank from the job information if only this process has a device, otherwise from a name such
    /// as "rank 3".
    pub rank: Option<u32>,
}

/// A chart row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Process index.
    pub process: u32,
    /// Thread or stream identifier as written in the trace.
    pub thread: String,
    /// Thread or stream name.
    pub name: Option<String>,
    /// Zero for the thread's first lane. Further lanes contain slices that overlap without nesting.
    pub overflow: u32,
}

/// A flow arrow between two slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Lane index of the start.
    pub from_lane: u32,
    /// Start time.
    pub from_ns: u64,
    /// Lane index of the end.
    pub to_lane: u32,
    /// End time.
    pub to_ns: u64,
}

/// A counter sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// Process index.
    pub process: u32,
    /// Name index of the counter.
    pub name: u32,
    /// Name index of the series.
    pub series: u32,
    /// Sample time.
    pub time_ns: u64,
    /// Finite value.
    pub value: f64,
}

/// A training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Step number.
    pub number: u64,
    /// Slice index.
    pub slice: u32,
    /// True for the annotation on the device timeline.
    pub on_device: bool,
}

/// A value attached to a slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Located<T> {
    /// Slice index.
    pub slice: u32,
    /// Attached value.
    pub value: T,
}

/// Memory copy size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Slice index.
    pub slice: u32,
    /// Size in bytes.
    pub bytes: u64,
}

/// Job information of a traced rank.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distributed {
    /// Rank number.
    pub rank: Option<u32>,
    /// Total rank count.
    pub world_size: Option<u32>,
    /// Communication backend, for example "nccl".
    pub backend: Option<String>,
    /// Process groups.
    pub groups: Vec<Group>,
}

/// A process group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Group name.
    pub name: String,
    /// Group description.
    pub description: Option<String>,
    /// Group size.
    pub size: Option<u32>,
    /// Member ranks, if listed.
    pub ranks: Vec<u32>,
}

/// Time breakdown for a device in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Process index of the device.
    pub process: u32,
    /// Rank number.
    pub rank: Option<u32>,
    /// Time from first slice start to last slice end.
    pub span_ns: u64,
    /// Time with at least one active compute kernel.
    pub compute_ns: u64,
    /// Time with at least one active communication kernel.
    pub communication_ns: u64,
    /// Time with both compute and communication kernels.
    pub overlapped_ns: u64,
    /// Time with active memory copies or sets.
    pub copy_ns: u64,
    /// Time with any device activity.
    pub busy_ns: u64,
    /// Time without device activity.
    pub idle_ns: u64,
}
