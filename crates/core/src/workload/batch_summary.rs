//! Totals of one global batch.

use serde::{Deserialize, Serialize};

/// Totals of one global batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchSummary {
    /// Samples.
    pub samples: u32,
    /// Sequences after packing.
    pub sequences: u32,
    /// Backbone tokens, including images and audio, excluding padding.
    pub tokens: u64,
    /// Images.
    pub images: u64,
    /// Audio clips; omitted if zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub audio_clips: u64,
    /// Total video duration in ms; omitted if zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub video_ms: u64,
    /// Samples truncated to the context length or the maximum video length.
    pub truncated: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}
