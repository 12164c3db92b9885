//! Where modules with layouts of their own stand, and what travels between them.

use serde::{Deserialize, Serialize};

use crate::cost::BoundaryKind;

/// Where modules with layouts of their own stand, and what travels between them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModulePlacement {
    /// Layouts in the order of the modules.
    pub layouts: Vec<PlacedModules>,
    /// Of every rank of the timeline what stands on it, for example "ViT 5B copies 1-4, Qwen2 32B copy 1 PP 0".
    pub ranks: Vec<String>,
    /// Devices of every rank, first and one behind the last.
    pub devices: Vec<(u32, u32)>,
    /// What travels between modules.
    pub boundaries: Vec<Boundary>,
}

/// Modules of one layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlacedModules {
    /// Their names.
    pub modules: Vec<String>,
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// Pipeline-parallel degree, PP.
    pub pipeline: u32,
    /// Copies, DP.
    pub data: u32,
    /// Expert-parallel degree, EP.
    pub expert: u32,
    /// First device.
    pub first_device: u32,
    /// Devices.
    pub devices: u32,
    /// Whether another layout stands on some of these devices.
    pub colocated: bool,
}

/// What travels from one module to another, over all parts of the first iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Boundary {
    /// Module before.
    pub from: String,
    /// Module behind.
    pub to: String,
    /// What is done with the tensor on its way forward.
    pub kind: BoundaryKind,
    /// Copies that one gathers from, or divides its batch over, k.
    pub fan: u32,
    /// Tensors that travel.
    pub tensors: u32,
    /// What a receiving device gets of a tensor, mean, in MiB.
    pub forward_mib: f64,
    /// What a receiving device gets of a gradient, mean, in MiB.
    pub backward_mib: f64,
    /// Time of a tensor, mean, in ms.
    pub forward_ms: f64,
    /// Time of a gradient, mean, in ms.
    pub backward_ms: f64,
}
