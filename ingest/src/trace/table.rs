//! A trace in columns.

use serde::{Deserialize, Serialize};

use super::action::{Action, UnplacedAction};
use super::collective::Collective;
use super::kind::Kind;
use super::report::Report;

/// A format of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Trace events of Chrome, as Kineto writes them.
    Chrome,
    /// Perfetto's packets.
    Perfetto,
    /// Chakra execution trace, in either form.
    Chakra,
}

impl Format {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chrome => "Chrome trace (Kineto)",
            Self::Perfetto => "Perfetto trace",
            Self::Chakra => "Chakra execution trace",
        }
    }
}

/// What ran, when and where. All times are in nanoseconds of the trace's own clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Format that was recognised.
    pub format: Format,
    /// First start of a slice: what charts put at zero.
    pub origin_ns: u64,
    /// Last end of a slice.
    pub end_ns: u64,
    /// Time of day of the clock's zero in nanoseconds since 1970, where the trace says it.
    pub base_ns: Option<i64>,
    /// The different names of slices.
    pub names: Vec<String>,
    /// Processes and devices.
    pub processes: Vec<Process>,
    /// Threads and streams, process by process; one that needs several lanes has them in a row.
    pub lanes: Vec<Lane>,
    /// What ran, lane by lane in the order of starts.
    pub slices: Slices,
    /// Arrows.
    pub flows: Vec<Flow>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Training steps by `ProfilerStep#N`.
    pub steps: Vec<Step>,
    /// Actions of pipeline schedules, by slice.
    pub actions: Vec<Located<Action>>,
    /// Actions whose names have no stage, where the stage of the rank is not in the file, by slice.
    pub unplaced: Vec<Located<UnplacedAction>>,
    /// Messages of collectives, by slice.
    pub collectives: Vec<Located<Collective>>,
    /// Sizes of copies, by slice.
    pub transfers: Vec<Transfer>,
    /// The job that the traced rank belongs to, where the trace says it.
    pub distributed: Option<Distributed>,
    /// Where the time of every device went.
    pub totals: Vec<Totals>,
    /// What was read and what was not.
    pub report: Report,
}

/// End of the line of the report about actions without a stage.
pub(super) const WITHOUT_STAGE: &str =
    "name no stage, and the job does not tell it: upload the file again with the pipeline stage of its rank";

impl Trace {
    /// Gives the actions without a stage the stage of the traced rank.
    pub fn place_actions(&mut self, stage: u32) {
        self.report.assumptions.retain(|line| !line.ends_with(WITHOUT_STAGE));
        let placed = self.unplaced.drain(..).map(|Located { slice, value: UnplacedAction { kind, microbatch } }| {
            Located { slice, value: Action { stage, kind, microbatch: Some(microbatch) } }
        });
        self.actions.extend(placed);
        self.actions.sort_by_key(|located| located.slice);
    }
}

impl Distributed {
    /// The pipeline stage of the rank, in a job with one stage per rank: its place in the pipeline group, or its number where
    /// the job has no other group than that of all ranks.
    pub fn stage(&self) -> Option<u32> {
        let rank = self.rank?;
        let pipeline = |group: &&Group| {
            let words = group.description.iter().chain([&group.name]);
            words
                .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()))
                .any(|word| ["pp", "pipe", "pipeline"].iter().any(|known| word.eq_ignore_ascii_case(known)))
        };
        let place = |ranks: &[u32]| ranks.iter().position(|&other| other == rank).map(|place| place as u32);
        if let Some(stage) = self.groups.iter().filter(pipeline).find_map(|group| place(&group.ranks)) {
            return Some(stage);
        }
        let world = self.world_size?;
        let of_all = |group: &Group| group.size.is_none_or(|size| size == world || size <= 1);
        (rank < world && self.groups.iter().all(of_all)).then_some(rank)
    }
}

/// Slices in columns of equal length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slices {
    /// Index of the lane.
    pub lane: Vec<u32>,
    /// Start in nanoseconds.
    pub start_ns: Vec<u64>,
    /// Duration in nanoseconds.
    pub duration_ns: Vec<u64>,
    /// Index of the name.
    pub name: Vec<u32>,
    /// What it is.
    pub kind: Vec<Kind>,
    /// How many slices of the lane it lies within.
    pub depth: Vec<u16>,
}

impl Slices {
    /// Number of slices.
    pub fn len(&self) -> usize {
        self.lane.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lane.is_empty()
    }
}

/// A process, or a device, whose threads are streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its identifier as the trace writes it.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// Further words, for example "GPU 0".
    pub labels: Option<String>,
    /// Where it stands among the others, where the trace says it.
    pub sort_index: Option<i64>,
    /// Its rank: of the job, where only this process has a device, or of a name like "rank 3".
    pub rank: Option<u32>,
}

/// A row of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Index of the process.
    pub process: u32,
    /// Identifier of the thread or stream as the trace writes it.
    pub thread: String,
    /// Its name.
    pub name: Option<String>,
    /// Zero for its first lane; further lanes hold slices that overlap without nesting.
    pub overflow: u32,
}

/// An arrow from one slice to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Index of the lane where it starts.
    pub from_lane: u32,
    /// When it starts.
    pub from_ns: u64,
    /// Index of the lane where it ends.
    pub to_lane: u32,
    /// When it ends.
    pub to_ns: u64,
}

/// A value of a counter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// Index of the process.
    pub process: u32,
    /// Index of the counter's name.
    pub name: u32,
    /// Index of the series' name.
    pub series: u32,
    /// When.
    pub time_ns: u64,
    /// The value, finite.
    pub value: f64,
}

/// A training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its number.
    pub number: u64,
    /// Its slice.
    pub slice: u32,
    /// Whether it is the device's view of it.
    pub on_device: bool,
}

/// What is known of a slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Located<T> {
    /// Index of the slice.
    pub slice: u32,
    /// What is known.
    pub value: T,
}

/// The size of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Index of the slice.
    pub slice: u32,
    /// Bytes.
    pub bytes: u64,
}

/// The job that a traced rank belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distributed {
    /// The rank.
    pub rank: Option<u32>,
    /// Ranks of the job.
    pub world_size: Option<u32>,
    /// Backend, for example "nccl".
    pub backend: Option<String>,
    /// Groups of ranks.
    pub groups: Vec<Group>,
}

/// A group of ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// How many ranks it has.
    pub size: Option<u32>,
    /// The ranks, where they are listed.
    pub ranks: Vec<u32>,
}

/// Where the time of a device went, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Index of the process that stands for the device.
    pub process: u32,
    /// Its rank.
    pub rank: Option<u32>,
    /// From its first slice to its last end.
    pub span_ns: u64,
    /// While at least one kernel computed.
    pub compute_ns: u64,
    /// While at least one kernel communicated.
    pub communication_ns: u64,
    /// While both did.
    pub overlapped_ns: u64,
    /// While memory was copied or filled.
    pub copy_ns: u64,
    /// While the device did any of it.
    pub busy_ns: u64,
    /// While it did nothing.
    pub idle_ns: u64,
}
