//! Datasets: uploads, previews, and lists.

mod import;
mod preview;

pub use import::{ColumnCandidate, ImportReport, MediaReport, ShapedReport, Uploaded};
pub use preview::{DatasetPreview, FileRanges, RANGES_MEDIA_TYPE, StorePreviews, TokenizerSummary};

use crate::planner::outcome::HistogramColumns;
use crate::planner::workload::preprocessing::Preprocessing;
use serde::{Deserialize, Serialize};

use crate::listing::ListPage;

/// A stored dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DatasetSummary {
    /// Content address, lower-case base32.
    pub id: String,
    /// Upload name, sanitized for display.
    pub name: String,
    /// Number of samples. For a histogram, the sum of its counts.
    pub samples: u64,
    /// Distribution of text tokens, at most 60 bins.
    pub text_tokens: HistogramColumns,
    /// Distribution of images if the file contains images. With a preprocessing rule: distribution
    /// of encoder items, b(d).
    pub images: Option<HistogramColumns>,
    /// Result of a preprocessing rule. Omitted without a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped: Option<ShapedColumns>,
    /// Import report. Omitted for datasets stored by an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ImportReport>,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// User note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// True if the dataset is pinned to the start of the list.
    #[serde(default)]
    pub pinned: bool,
    /// Deletion time, RFC 3339 in UTC. Deleted datasets can be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// Stored size, in bytes.
    #[serde(default)]
    pub bytes: u64,
}

/// Result of a preprocessing rule for the media in a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShapedColumns {
    /// Preprocessing rule.
    pub preprocessing: Preprocessing,
    /// Distribution of backbone sequence tokens including text, s(d).
    pub backbone_tokens: HistogramColumns,
}

/// A page of datasets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DatasetList {
    /// Datasets: pinned first, then newest first by default.
    pub datasets: Vec<DatasetSummary>,
    /// Page information.
    #[serde(flatten)]
    pub page: ListPage,
}
