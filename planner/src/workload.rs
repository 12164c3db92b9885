//! What is trained on: where samples come from and how a global batch is put together.

pub mod batch;
pub mod distribution;
pub mod packing;
pub mod presets;

pub use batch::{GlobalBatch, Sampler};
pub use distribution::Distribution;
pub use packing::{PackedBatch, Sequence};

use serde::{Deserialize, Serialize};

/// The workload of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Where samples come from.
    pub samples: SampleSource,
    /// Samples of one global batch, over all data-parallel replicas.
    pub global_batch: u32,
    /// Longest sequence of the backbone, in tokens, images included; what is longer is cut at the end.
    pub context_length: u32,
    /// How samples become sequences.
    pub packing: Packing,
}

/// Where samples come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SampleSource {
    /// Text tokens and images drawn independently of each other.
    Drawn {
        /// Text tokens of a sample.
        text_tokens: Distribution,
        /// Images of a sample.
        images: Distribution,
    },
    /// Rows of an uploaded dataset, drawn with replacement.
    Dataset {
        /// Content address of the dataset.
        id: String,
        /// Images of a sample where the dataset does not say; absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        images: Option<Distribution>,
    },
    /// Each sample from one of several sources, chosen by weight.
    Mixture {
        /// The sources; weights need not sum to one.
        parts: Vec<MixturePart>,
    },
}

/// One source of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MixturePart {
    /// Relative weight, in samples.
    pub weight: f64,
    /// The source.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub source: SampleSource,
}

/// How samples become the sequences of microbatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// Samples are joined first-fit into sequences of at most the context length; attention stays inside
    /// each sample.
    Packed,
    /// One sample is one sequence of its own length.
    Single,
    /// One sample is one sequence, padded to the context length.
    Padded,
}

/// What one training sample costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SampleShape {
    /// Text tokens.
    pub text_tokens: u32,
    /// Images.
    pub images: u32,
}

/// A dataset as the planner needs it: rows, or a histogram of token counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Dataset {
    /// One entry per sample.
    Rows {
        /// Text tokens of each sample.
        text_tokens: Vec<u32>,
        /// Images of each sample; empty where the file has none.
        images: Vec<u32>,
    },
    /// Counts of samples by text tokens.
    Histogram {
        /// Edges of the bins, one more than counts; equal neighbours are a point mass.
        edges: Vec<f64>,
        /// Samples in each bin.
        counts: Vec<f64>,
    },
}
