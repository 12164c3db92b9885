//! Communication between modules with different layouts.

use serde::{Deserialize, Serialize};

/// Conversion that a boundary applies to a tensor in the forward. Gradients use the inverse
/// conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoundaryKind {
    /// Equal layouts on the same devices. No transfer.
    Equal,
    /// Colocated modules; the sender has more copies. A receiving copy gathers the batches of
    /// several sending copies.
    FanIn,
    /// Colocated modules; the sender has fewer copies. A receiving copy takes part of a batch.
    FanOut,
    /// Colocated modules with equal copy counts, but different tensor layouts or different ranks.
    Aligned,
    /// Disjoint devices: point-to-point send between the leaders, then broadcast to all devices of
    /// the receiving stage.
    Apart,
}
