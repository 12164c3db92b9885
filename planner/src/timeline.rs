//! What a schedule does in time, as columns: spans of every rank, memory of every rank, critical path.

pub mod covered;
pub mod levels;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SpanKind {
    /// Forward, F.
    Forward = 0,
    /// Full backward, B.
    Backward = 1,
    /// Gradient of the input, I.
    InputGrad = 2,
    /// Gradient of the weights, W.
    WeightGrad = 3,
    /// Activations travelling to the next stage; on the communication lane of the sending rank.
    SendForward = 4,
    /// Gradients travelling to the previous stage; on the communication lane of the sending rank.
    SendBackward = 5,
    /// Exposed part of the gradient reduction and parameter gathering over data-parallel replicas.
    GradientSync = 6,
    /// Optimizer step.
    Optimizer = 7,
}

impl SpanKind {
    /// Every kind, indexed by its number.
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

    /// The kind of that number.
    pub const fn from_index(index: u8) -> Option<Self> {
        if (index as usize) < Self::ALL.len() { Some(Self::ALL[index as usize]) } else { None }
    }

    /// The letters of the torch grammar, or of its own kind.
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

    /// Whether it occupies the rank's compute lane.
    pub const fn is_compute_lane(self) -> bool {
        !matches!(self, Self::SendForward | Self::SendBackward)
    }
}

/// Marks "no span" in [`Timeline::bound_by`].
pub const NO_SPAN: u32 = u32::MAX;

/// Spans of one iteration of one pipeline, in columns of equal length.
///
/// Rank `r` owns two lanes: `2 r` holds what it computes, `2 r + 1` what it sends. Lane `l` is the range
/// `lane_offsets[l] .. lane_offsets[l + 1]` of the columns; inside a lane spans are in order and never overlap.
/// Spans of the kinds without a microbatch (sync, optimizer) carry stage and microbatch 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Timeline {
    /// Pipeline ranks.
    pub ranks: u32,
    /// End of the last span, in ns.
    pub makespan_ns: u64,
    /// First column index of every lane, and the number of spans at the end.
    pub lane_offsets: Vec<u32>,
    /// Number of the [`SpanKind`].
    pub kind: Vec<u8>,
    /// Stage (chunk x ranks + rank).
    pub stage: Vec<u32>,
    /// Microbatch, an index into `microbatches`.
    pub microbatch: Vec<u32>,
    /// Start, in ns.
    pub start_ns: Vec<u64>,
    /// Duration, in ns.
    pub duration_ns: Vec<u64>,
    /// Index of the span whose end let this one start, or 2^32 - 1.
    pub bound_by: Vec<u32>,
    /// Indices of the spans of the critical path, in time order.
    pub critical_path: Vec<u32>,
    /// Memory of every rank.
    pub memory: Vec<MemoryCurve>,
    /// What each microbatch holds.
    pub microbatches: Vec<MicrobatchShape>,
    /// Which microbatches wait for others: the parts of a microbatch in a module of its own, and the microbatch that
    /// they go into.
    #[serde(default)]
    pub joins: Vec<Join>,
    /// Spans that run overlapped with the one behind them on their lane, ascending; each is drawn for its share of the
    /// time that both take.
    #[serde(default)]
    pub overlapped: Vec<u32>,
    /// Exposed communication inside each span, in ns: communication of the action that its computation waits for. Empty
    /// if no span has any.
    #[serde(default)]
    pub exposed_ns: Vec<u64>,
    /// Samples of each microbatch; empty if unknown.
    #[serde(default)]
    pub contents: Vec<MicrobatchSamples>,
    /// Layers of each stage, by module; empty if unknown.
    #[serde(default)]
    pub stage_layers: Vec<Vec<StageLayers>>,
}

/// The samples that a microbatch processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MicrobatchSamples {
    /// Module of a sub-microbatch; `None` for a microbatch of all modules.
    pub module: Option<u32>,
    /// The samples, or parts of samples.
    pub samples: Vec<SamplePart>,
}

/// A part of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SamplePart {
    /// Index of the sample in the packed global batch, equal for all planners.
    pub sample: u32,
    /// Tokens of the whole sample.
    pub tokens: u32,
    /// Start of the part, in millionths of the sample's items of the module.
    pub from_ppm: u32,
    /// End of the part, in millionths.
    pub to_ppm: u32,
}

/// Consecutive layers of one module on a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StageLayers {
    /// Index of the module in the model.
    pub module: u32,
    /// First layer.
    pub first: u32,
    /// One past the last layer.
    pub end: u32,
}

/// A microbatch goes into another one: the first stage of `into` waits for the last stage of `from`, and gradients go
/// back the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Join {
    /// The microbatch that is waited for, a sub-microbatch of its module.
    pub from: u32,
    /// The microbatch that waits.
    pub into: u32,
}

/// Memory of one rank over time: a staircase, each value lasting until the next time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemoryCurve {
    /// Weights, gradients and optimizer state, held all the time, in bytes.
    pub static_bytes: u64,
    /// Largest value, in bytes.
    pub peak_bytes: u64,
    /// Times of change, in ns.
    pub time_ns: Vec<u64>,
    /// Bytes held from that time on, static ones included.
    pub bytes: Vec<u64>,
}

/// What one microbatch holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MicrobatchShape {
    /// Samples in it.
    pub samples: u32,
    /// Tokens of the backbone, images and sound included, padding included.
    pub tokens: u32,
    /// Images.
    pub images: u32,
    /// Clips of sound; absent for none.
    #[serde(default)]
    pub audio_clips: u32,
    /// Duration of its video, in ms; absent for none.
    #[serde(default)]
    pub video_ms: u64,
}

impl Serialize for MicrobatchShape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Without names nothing can be left out: a reader of a compact form expects every field.
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
    /// Number of spans.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there is no span.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Column range of what `rank` computes.
    pub fn compute_lane(&self, rank: usize) -> std::ops::Range<usize> {
        self.lane_offsets[2 * rank] as usize..self.lane_offsets[2 * rank + 1] as usize
    }

    /// Column range of what `rank` sends.
    pub fn communication_lane(&self, rank: usize) -> std::ops::Range<usize> {
        self.lane_offsets[2 * rank + 1] as usize..self.lane_offsets[2 * rank + 2] as usize
    }

    /// End of a span, in ns.
    pub fn end_ns(&self, span: usize) -> u64 {
        self.start_ns[span] + self.duration_ns[span]
    }

    /// Exposed communication inside a span, in ns.
    pub fn exposed_ns_of(&self, span: usize) -> u64 {
        self.exposed_ns.get(span).copied().unwrap_or(0)
    }

    /// Whether ranks hold the whole model and share sequences in groups, so that a microbatch is what a group works on,
    /// and not a pipeline through which microbatches are handed on.
    pub fn is_grouped(&self) -> bool {
        self.ranks > 1
            && self.stage.iter().zip(&self.kind).all(|(&stage, &kind)| {
                stage == 0
                    || SpanKind::from_index(kind)
                        .is_none_or(|kind| matches!(kind, SpanKind::GradientSync | SpanKind::Optimizer))
            })
    }

    /// The ranks that do together what a span does, itself among them, ascending.
    pub fn ranks_of(&self, span: usize) -> Vec<usize> {
        let same = |other: &usize| {
            (self.kind[*other], self.stage[*other], self.microbatch[*other])
                == (self.kind[span], self.stage[span], self.microbatch[span])
        };
        let on = |rank: &usize| self.compute_lane(*rank).any(|other| same(&other));
        (0..self.ranks as usize).filter(on).collect()
    }

    /// The ranks of each pipeline, where several stand side by side and hand nothing to each other; one range otherwise.
    ///
    /// Ranks that no microbatch visits are a pipeline of their own with the ranks without one behind them.
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

    /// The rank on whose lane a span stands.
    pub fn rank_of(&self, span: usize) -> usize {
        (self.lane_offsets.partition_point(|&offset| offset as usize <= span) - 1) / 2
    }
}
