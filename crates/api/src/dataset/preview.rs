//! Previews: datasets that are read and not yet stored.

use crate::planner::outcome::HistogramColumns;
use serde::{Deserialize, Serialize};

use super::{ColumnCandidate, ImportReport, ShapedColumns};

/// Media type of parts of a file. The body is a sequence of parts, each of them an offset in the file and a number of bytes, both
/// 64-bit little-endian, and the bytes.
pub const RANGES_MEDIA_TYPE: &str = "application/vnd.planscope.ranges";

/// A dataset that is read and not stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DatasetPreview {
    /// Identifier of the preview.
    pub id: String,
    /// Name that the dataset gets.
    pub name: String,
    /// Number of samples. For a histogram, the sum of its counts.
    pub samples: u64,
    /// Distribution of text tokens, at most 60 bins.
    pub text_tokens: HistogramColumns,
    /// Distribution of images, or of encoder items with a preprocessing rule. Omitted without
    /// images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<HistogramColumns>,
    /// Result of a preprocessing rule. Omitted without a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped: Option<ShapedColumns>,
    /// Import report.
    pub report: ImportReport,
    /// Columns that can be selected instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<ColumnCandidate>,
    /// Expiration time of the preview, RFC 3339 in UTC.
    pub expires_at: String,
}

/// Previews to store as one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StorePreviews {
    /// Preview identifiers, at least one. Several previews form one dataset and must have the same
    /// length source.
    pub previews: Vec<String>,
    /// Dataset name. Default: name of the first preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A tokenizer in temporary storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenizerSummary {
    /// Identifier derived from the content.
    pub id: String,
    /// Tokens of the sentence "The quick brown fox jumps over the lazy dog."
    pub example_tokens: u64,
}

/// Byte ranges required to read lengths from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileRanges {
    /// Offset and size of each range in bytes, ascending, without the footer.
    pub ranges: Vec<(u64, u64)>,
    /// Number of rows in the file.
    pub rows: u64,
}
