//! Datasets: uploads, previews, and lists.

mod import;
mod preview;

pub use import::{ColumnCandidate, ImportReport, MediaReport, ShapedReport, Uploaded};
pub use preview::{DatasetPreview, FileRanges, RANGES_MEDIA_TYPE, StorePreviews, TokenizerSummary};

use planner::outcome::HistogramColumns;
use planner::workload::preprocessing::Preprocessing;
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
    /// Report of the import; absent for datasets that an earlier version stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ImportReport>,
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
