//! The samples of a global batch.

use super::SampleShape;

/// Samples per iteration for all replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalBatch {
    /// Samples in data-loader order.
    pub samples: Vec<SampleShape>,
}
