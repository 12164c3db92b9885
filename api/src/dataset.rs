//! Datasets: what an upload answers and what lists show.

use planner::outcome::HistogramColumns;
use serde::{Deserialize, Serialize};

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
    /// Distribution of images, where the file has them.
    pub images: Option<HistogramColumns>,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// A page of datasets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DatasetList {
    /// Newest first.
    pub datasets: Vec<DatasetSummary>,
}
