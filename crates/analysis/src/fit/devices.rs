//! Fewest devices of each type that hold a model.

use serde::{Deserialize, Serialize};

use super::FitResult;

/// Fewest devices of a type: whole nodes, or one node halved any number of times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FewestDevices {
    /// Identifier of the cluster preset.
    pub preset: String,
    /// Device name.
    pub name: String,
    /// Devices; omitted if the model does not fit 1,024 nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u32>,
    /// Whole nodes; omitted for a part of a node, and if the model does not fit 1,024 nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// ZeRO stage, offload and EP of the result, for example "ZeRO 3, optimizer in host memory"; omitted for ZeRO 1
    /// without offload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// Result on these devices.
    pub result: FitResult,
}

/// Fewest devices of all device types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeviceTable {
    /// Device types in ascending number of devices. Types that hold no plan come last.
    pub rows: Vec<FewestDevices>,
    /// Number of device types to search.
    pub types: u32,
    /// True if the time limit was reached before all device types were searched.
    pub is_partial: bool,
}
