//! Schedule timeline in columns: spans per rank, memory per rank, critical path.

pub mod covered;
pub mod levels;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

/// Span kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SpanKind {
    /// Forward, F.
    Forward = 0,
    /// Full backward, B.
    Backward = 1,
    /// Input gradient, I.
    InputGrad = 2,
    /// Weight gradient, W.
    WeightGrad = 3,
    /// Activation transfer to the next stage, on the sender's communication lane.
    SendForward = 4,
    /// Gradient transfer to the previous stage, on the sender's communication lane.
    SendBackward = 5,
    /// Exposed gradient reduction and parameter gathering across data-parallel replicas.
    GradientSync = 6,
    /// Optimizer step.
    Optimizer = 7,
}

impl SpanKind {
    /// All kinds in numeric order.
    pub const ALL: [Self; 8] = [
        Self::Forward,
        Self::Backward,
        Self::InputGrad,
        Self::WeightGrad,
        Self::SendForward,
        Self::SendBackward,
        Self::GradientSync,
        Self::Optimizer,
    ];

    /// Returns the kind with this number.
    pub const fn from_index(index: u8) -> Option<Self> {
        if (index as usize) < Self::ALL.len() { Some(Self::ALL[index as usize]) } else { None }
    }

    /// Returns the action name as in PyTorch pipeline schedules, or a Planscope name if PyTorch has
    /// none.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Forward => "F",
            Self::Backward => "B",
            Self::InputGrad => "I",
            Self::WeightGrad => "W",
            Self::SendForward => "SEND_F",
            Self::SendBackward => "SEND_B",
            Self::GradientSync => "SYNC",
            Self::Optimizer => "OPT",
        }
    }

    /// Returns true if the kind is on the compute lane.
    pub const fn is_compute_lane(self) -> bool {
        !matches!(self, Self::SendForward | Self::SendBackward)
    }
}

/// Value for "no span" in [`Timeline::bound_by`].
pub const NO_SPAN: u32 = u32::MAX;

/// Spans for one iteration of one pipeline, in columns of equal length.
///
/// Rank `r` has two lanes: `2 r` for compute, `2 r + 1` for sends. Lane `l` is the column range
/// `lane_offsets[l] .. lane_offsets[l + 1]`. Spans on a lane are sorted and do not overlap. Sync
/// and optimizer spans have stage and microbatch 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Timeline {
    /// Number of pipeline ranks.
    pub ranks: u32,
    /// End of the last span, in ns.
    pub makespan_ns: u64,
    /// First column index per lane, plus the number of spans as final entry.
    pub lane_offsets: Vec<u32>,
    /// Numeric [`SpanKind`] per span.
    pub kind: Vec<u8>,
    /// Stage per span (chunk x ranks + rank).
    pub stage: Vec<u32>,
    /// Microbatch per span; index into `microbatches`.
    pub microbatch: Vec<u32>,
    /// Start per span in ns.
    pub start_ns: Vec<u64>,
    /// Duration per span, in ns.
    pub duration_ns: Vec<u64>,
    /// Index of the span whose end determined the start, or 2^32 - 1.
    pub bound_by: Vec<u32>,
    /// Span indices on the critical path, in time order.
    pub critical_path: Vec<u32>,
    /// Memory per rank.
    pub memory: Vec<MemoryCurve>,
    /// Size per microbatch.
    pub microbatches: Vec<MicrobatchShape>,
    /// Dependencies between microbatches: a sub-microbatch for a single module, and the microbatch
    /// that uses the output.
    #[serde(default)]
    pub joins: Vec<Join>,
    /// Spans overlapped with their successor on the lane, ascending. The common duration is divided
    /// between the two spans.
    #[serde(default)]
    pub overlapped: Vec<u32>,
    /// Exposed communication per span in ns: communication that blocks the computation of the
    /// action. Empty if all values are zero.
    #[serde(default)]
    pub exposed_ns: Vec<u64>,
    /// Samples per microbatch; empty if unknown.
    #[serde(default)]
    pub contents: Vec<MicrobatchSamples>,
    /// Layers per stage, by module; empty if unknown.
    #[serde(default)]
    pub stage_layers: Vec<Vec<StageLayers>>,
}

/// Samples in a microbatch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MicrobatchSamples {
    /// Module index for a sub-microbatch; `None` for a microbatch that passes all modules.
    pub module: Option<u32>,
    /// Samples or parts of samples.
    pub samples: Vec<SamplePart>,
}

/// A complete or partial sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SamplePart {
    /// Sample index in the packed global batch, equal for all planners.
    pub sample: u32,
    /// Tokens for the complete sample.
    pub tokens: u32,
    /// Start, in millionths of the sample's items for the module.
    pub from_ppm: u32,
    /// End, in millionths.
    pub to_ppm: u32,
}

/// Consecutive layers of a module on a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StageLayers {
    /// Module index in the model.
    pub module: u32,
    /// First layer.
    pub first: u32,
    /// End of the layer range (exclusive).
    pub end: u32,
}

/// Dependency between two microbatches: the first stage of `into` requires the output from the last
/// stage of `from`. Gradients use the reverse direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Join {
    /// Sub-microbatch that provides the input.
    pub from: u32,
    /// Microbatch that requires the input.
    pub into: u32,
}

/// Rank memory as a step function of time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemoryCurve {
    /// Weights, gradients and optimizer states in bytes; constant.
    pub static_bytes: u64,
    /// Peak memory in bytes.
    pub peak_bytes: u64,
    /// Change times in ns.
    pub time_ns: Vec<u64>,
    /// Memory in bytes from the change time on, including static memory.
    pub bytes: Vec<u64>,
}

/// Microbatch size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MicrobatchShape {
    /// Number of samples.
    pub samples: u32,
    /// Backbone tokens, including images, audio and padding.
    pub tokens: u32,
    /// Number of images.
    pub images: u32,
    /// Number of audio clips; omitted if zero.
    #[serde(default)]
    pub audio_clips: u32,
    /// Video duration in ms; omitted if zero.
    #[serde(default)]
    pub video_ms: u64,
}

impl Serialize for MicrobatchShape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A compact format has no field names, so the reader expects all fields.
        let compact = !serializer.is_human_readable();
        let (audio, video) = (compact || self.audio_clips > 0, compact || self.video_ms > 0);
        let mut fields = serializer.serialize_struct("MicrobatchShape", 3 + usize::from(audio) + usize::from(video))?;
        fields.serialize_field("samples", &self.samples)?;
        fields.serialize_field("tokens", &self.tokens)?;
        fields.serialize_field("images", &self.images)?;
        if audio {
            fields.serialize_field("audio_clips", &self.audio_clips)?;
        }
        if video {
            fields.serialize_field("video_ms", &self.video_ms)?;
        }
        fields.end()
    }
}

impl Timeline {
    /// Returns the number of spans.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Returns true if there are no spans.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Returns the column range for the compute lane.
    pub fn compute_lane(&self, rank: usize) -> std::ops::Range<usize> {
        self.lane_offsets[2 * rank] as usize..self.lane_offsets[2 * rank + 1] as usize
    }

    /// Returns the column range for the communication lane.
    pub fn communication_lane(&self, rank: usize) -> std::ops::Range<usize> {
        self.lane_offsets[2 * rank + 1] as usize..self.lane_offsets[2 * rank + 2] as usize
    }

    /// Returns the end time in ns.
    pub fn end_ns(&self, span: usize) -> u64 {
        self.start_ns[span] + self.duration_ns[span]
    }

    /// Returns the exposed communication of a span in ns.
    pub fn span_exposed_ns(&self, span: usize) -> u64 {
        self.exposed_ns.get(span).copied().unwrap_or(0)
    }

    /// Returns true if each rank has the complete model and rank groups process the sequences. A
    /// microbatch is then assigned to a rank group and does not pass through pipeline stages.
    pub fn is_grouped(&self) -> bool {
        self.ranks > 1
            && self.stage.iter().zip(&self.kind).all(|(&stage, &kind)| {
                stage == 0
                    || SpanKind::from_index(kind)
                        .is_none_or(|kind| matches!(kind, SpanKind::GradientSync | SpanKind::Optimizer))
            })
    }

    /// Returns all ranks that process this span jointly, ascending.
    pub fn span_ranks(&self, span: usize) -> Vec<usize> {
        let same = |other: &usize| {
            (self.kind[*other], self.stage[*other], self.microbatch[*other])
                == (self.kind[span], self.stage[span], self.microbatch[span])
        };
        let on = |rank: &usize| self.compute_lane(*rank).any(|other| same(&other));
        (0..self.ranks as usize).filter(on).collect()
    }

    /// Returns the rank range per pipeline. Independent pipelines do not exchange microbatches. For
    /// a single pipeline, the result is one range.
    ///
    /// Consecutive ranks without microbatches form a separate range.
    pub fn pipelines(&self) -> Vec<std::ops::Range<usize>> {
        let mut last_rank = vec![0; self.microbatches.len()];
        let mut first_rank = vec![usize::MAX; self.microbatches.len()];
        let mut visited = vec![false; self.ranks as usize];
        for (rank, visited) in visited.iter_mut().enumerate() {
            for span in self.compute_lane(rank) {
                let kind = SpanKind::from_index(self.kind[span]);
                if kind.is_none_or(|kind| matches!(kind, SpanKind::GradientSync | SpanKind::Optimizer)) {
                    continue;
                }
                *visited = true;
                let microbatch = self.microbatch[span] as usize;
                last_rank[microbatch] = rank;
                first_rank[microbatch] = first_rank[microbatch].min(rank);
            }
        }
        let mut starts = vec![true; self.ranks as usize];
        for (&first, &last) in first_rank.iter().zip(&last_rank) {
            for inside in (first.saturating_add(1)..=last).filter(|_| first <= last) {
                starts[inside] = false;
            }
        }
        for rank in 1..starts.len() {
            starts[rank] &= visited[rank] || visited[rank - 1];
        }
        let firsts: Vec<usize> = (0..starts.len()).filter(|&rank| rank == 0 || starts[rank]).collect();
        let ends = firsts.iter().copied().skip(1).chain([starts.len()]);
        firsts.iter().copied().zip(ends).map(|(first, end)| first..end).collect()
    }

    /// Returns the rank that runs the span.
    pub fn span_rank(&self, span: usize) -> usize {
        (self.lane_offsets.partition_point(|&offset| offset as usize <= span) - 1) / 2
    }
}
