//! Import report and selectable columns.

use crate::planner::outcome::HistogramColumns;
use crate::planner::workload::preprocessing::Preprocessing;
use serde::{Deserialize, Serialize};

use super::DatasetSummary;

/// Response to an upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Uploaded {
    /// The stored dataset.
    pub dataset: DatasetSummary,
    /// Import report.
    pub report: ImportReport,
}

/// A column or key that can be selected as the lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ColumnCandidate {
    /// Name. Columns without a header are numbered from 1.
    pub name: String,
    /// Value type, for example "numbers" or "lists of texts".
    pub kind: String,
    /// Meaning of the name, for example "length in tokens" or "identifier"; "unknown" for unknown
    /// names.
    pub meaning: String,
    /// Up to five values, each clipped to 40 characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
    /// Token lengths of the first rows if this column is selected. Omitted if the column contains
    /// no lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<HistogramColumns>,
    /// Description of the values, one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Import report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImportReport {
    /// File names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Detected format, for example "CSV with header".
    pub format: String,
    /// Source of the lengths, for example "column num_prefill_tokens".
    pub source: String,
    /// Other selectable columns or keys.
    pub alternatives: Vec<String>,
    /// Number of rows read unchanged.
    pub parsed: u64,
    /// Number of rows read after a repair (thousands separators, decimals).
    pub repaired: u64,
    /// Number of skipped rows.
    pub skipped: u64,
    /// First repaired or skipped row, with the reason.
    pub first_problem: Option<String>,
    /// Report for image sizes, video frames and audio seconds. Omitted if rows contain none and no
    /// rule was selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaReport>,
    /// Assumptions that change the lengths, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Report for the media in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MediaReport {
    /// Columns or keys with media.
    pub columns: Vec<String>,
    /// Recommended preprocessing rule, or the reason why the selected rule had no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Result of the preprocessing rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped: Option<ShapedReport>,
}

/// Result of a preprocessing rule for the media in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShapedReport {
    /// Preprocessing rule.
    pub preprocessing: Preprocessing,
    /// Number of samples with encoder items.
    pub with_items: u64,
    /// Number of samples without encoder items.
    pub without_items: u64,
    /// Mean number of encoder items per sample, b(d).
    pub mean_batch: f64,
    /// Maximum number of encoder items per sample.
    pub largest_batch: f64,
    /// Mean backbone sequence length, s(d), in tokens.
    pub mean_backbone_tokens: f64,
    /// Maximum backbone sequence length, in tokens.
    pub largest_backbone_tokens: f64,
    /// Content that the rule does not read, for example "3 clips of sound".
    pub unread: Vec<String>,
}
