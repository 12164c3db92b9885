//! Report of an import, and the columns that can be chosen.

use planner::outcome::HistogramColumns;
use planner::workload::preprocessing::Preprocessing;
use serde::{Deserialize, Serialize};

use super::DatasetSummary;

/// Answer to an upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Uploaded {
    /// The stored dataset.
    pub dataset: DatasetSummary,
    /// What was read and what was not.
    pub report: ImportReport,
}

/// A column or key of a file that can be chosen as the lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ColumnCandidate {
    /// Its name; columns without a header are numbered from 1.
    pub name: String,
    /// Kind of its values, for example "numbers" or "lists of texts".
    pub kind: String,
    /// Meaning of its name, for example "length in tokens" or "identifier"; "unknown" if the name is not known.
    pub meaning: String,
    /// Up to five values, each clipped to 40 characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
    /// Lengths in tokens of the first rows if this column is chosen; absent if it gives no length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<HistogramColumns>,
    /// What the values look like, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What an import read and what it did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImportReport {
    /// Names of the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Format that was recognised, for example "CSV with header".
    pub format: String,
    /// Where the lengths were found, for example "column num_prefill_tokens".
    pub source: String,
    /// Other columns or keys that can be chosen.
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
    /// Assumptions that change the lengths, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What became of the media of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MediaReport {
    /// Columns or keys that hold media.
    pub columns: Vec<String>,
    /// Which preprocessing to choose, or why the chosen rule changed nothing.
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
