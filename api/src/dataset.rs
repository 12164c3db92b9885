//! Datasets: what an upload answers and what lists show.

use planner::data_aware::Preprocessing;
use planner::outcome::HistogramColumns;
use serde::{Deserialize, Serialize};

use crate::shelf::ListPage;

/// A stored dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DatasetSummary {
    /// Content address, lower-case base32.
    pub id: String,
    /// Name given at upload, safe to show.
    pub name: String,
    /// Samples; for a histogram the sum of its counts.
    pub samples: u64,
    /// Distribution of text tokens, at most 60 bins.
    pub text_tokens: HistogramColumns,
    /// Distribution of images, where the file has them; of the encoder's items, b(d), where a rule has read media.
    pub images: Option<HistogramColumns>,
    /// What a rule made of media; absent where none has read any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped: Option<ShapedColumns>,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
    /// Note beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether it stands in front of the list.
    #[serde(default)]
    pub pinned: bool,
    /// When it was deleted, RFC 3339 in UTC; it can come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// Bytes that it takes.
    #[serde(default)]
    pub bytes: u64,
}

/// What a rule made of the media of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShapedColumns {
    /// The rule.
    pub preprocessing: Preprocessing,
    /// Distribution of the tokens of the backbone's sequence, text included: s(d).
    pub backbone_tokens: HistogramColumns,
}

/// Answer to an upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Uploaded {
    /// The stored dataset.
    pub dataset: DatasetSummary,
    /// What was read and what was not.
    pub report: ImportReport,
}

/// What an import read and what it did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImportReport {
    /// Format that was recognised, for example "CSV with header".
    pub format: String,
    /// Where the lengths were found, for example "column num_prefill_tokens".
    pub source: String,
    /// Other columns or keys that could have been meant; choose one with `?column=`.
    pub alternatives: Vec<String>,
    /// Rows read as they stand.
    pub parsed: u64,
    /// Rows read after a repair (thousands separators, decimals).
    pub repaired: u64,
    /// Rows left out.
    pub skipped: u64,
    /// First row that was repaired or left out, and why.
    pub first_problem: Option<String>,
    /// What became of sizes of images, frames of video and seconds of sound; absent where rows hold none and no rule was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaReport>,
}

/// What became of the media of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MediaReport {
    /// Columns or keys that hold media.
    pub columns: Vec<String>,
    /// What to choose with `?preprocessing=`, or why the chosen rule changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// What a rule made of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped: Option<ShapedReport>,
}

/// What a rule made of the media of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShapedReport {
    /// The rule.
    pub preprocessing: Preprocessing,
    /// Samples of which the encoder computes something.
    pub with_items: u64,
    /// Samples of which the encoder has nothing.
    pub without_items: u64,
    /// Mean of the encoder's items of a sample, b(d).
    pub mean_batch: f64,
    /// Most items of a sample.
    pub largest_batch: f64,
    /// Mean of the tokens of the backbone's sequence, s(d).
    pub mean_backbone_tokens: f64,
    /// Longest sequence of the backbone, in tokens.
    pub largest_backbone_tokens: f64,
    /// What the rule does not read, for example "3 clips of sound".
    pub unread: Vec<String>,
}

/// A page of datasets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DatasetList {
    /// Pinned ones, then newest first, unless another order was asked for.
    pub datasets: Vec<DatasetSummary>,
    /// Of the list.
    #[serde(flatten)]
    pub page: ListPage,
}
