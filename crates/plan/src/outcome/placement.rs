//! Placement of modules with separate layouts, and transfers between modules.

use serde::{Deserialize, Serialize};

use planscope_core::stage_graph::BoundaryKind;

/// Placement of modules with separate layouts, and transfers between modules.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModulePlacement {
    /// Layouts in module order.
    pub layouts: Vec<PlacedModules>,
    /// Modules per timeline rank, for example "ViT 5B copies 1-4, Qwen2 32B copy 1 PP 0".
    pub ranks: Vec<String>,
    /// Device range per rank: first and end (exclusive).
    pub devices: Vec<(u32, u32)>,
    /// Transfers between modules.
    pub boundaries: Vec<Boundary>,
}

/// Modules of a layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlacedModules {
    /// Module names.
    pub modules: Vec<String>,
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// Pipeline-parallel degree, PP.
    pub pipeline: u32,
    /// Number of copies, DP.
    pub data: u32,
    /// Expert-parallel degree, EP.
    pub expert: u32,
    /// First device.
    pub first_device: u32,
    /// Number of devices.
    pub devices: u32,
    /// True if a different layout uses some of these devices.
    pub colocated: bool,
}

/// Transfers between two modules for all parts of iteration 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Boundary {
    /// Source module.
    pub from: String,
    /// Target module.
    pub to: String,
    /// Forward operation on the tensor.
    pub kind: BoundaryKind,
    /// Fan-in or fan-out k: copies per gather, or batch splits.
    pub fan: u32,
    /// Number of tensors.
    pub tensors: u32,
    /// Mean received bytes per device and activation tensor, in MiB.
    pub forward_mib: f64,
    /// Mean received bytes per device and gradient tensor, in MiB.
    pub backward_mib: f64,
    /// Mean activation transfer time, in ms.
    pub forward_ms: f64,
    /// Mean gradient transfer time, in ms.
    pub backward_ms: f64,
}
