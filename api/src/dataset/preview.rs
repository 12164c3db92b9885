//! Previews: datasets that are read and not yet stored.

use planner::outcome::HistogramColumns;
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
    /// Samples; for a histogram the sum of its counts.
    pub samples: u64,
    /// Distribution of text tokens, at most 60 bins.
    pub text_tokens: HistogramColumns,
    /// Distribution of images, or of the encoder's items if a rule has read media; absent without images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<HistogramColumns>,
    /// What a rule made of media; absent without a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped: Option<ShapedColumns>,
    /// What was read and what was not.
    pub report: ImportReport,
    /// Columns that can be chosen in place of the one that was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<ColumnCandidate>,
    /// When the preview is removed, RFC 3339 in UTC.
    pub expires_at: String,
}

/// Previews that become one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StorePreviews {
    /// Identifiers of the previews, at least one. Several are parts of one dataset and must have the same source of lengths.
    pub previews: Vec<String>,
    /// Name of the dataset; absent: the name of the first preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A tokenizer that the server holds for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenizerSummary {
    /// Identifier, made of its content.
    pub id: String,
    /// Tokens of the sentence "The quick brown fox jumps over the lazy dog."
    pub example_tokens: u64,
}

/// Byte ranges of a file that are needed to read its lengths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileRanges {
    /// First byte and number of bytes of each range, in ascending order; the footer is not among them.
    pub ranges: Vec<(u64, u64)>,
    /// Rows of the file.
    pub rows: u64,
}
