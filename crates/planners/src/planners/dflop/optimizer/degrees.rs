//! Enumeration of tensor, pipeline and data-parallel degrees.

use super::OptimizerInput;
use crate::planners::dflop::profile::ModuleProfile;

/// Parallel degrees for one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Degrees {
    /// TP.
    pub tensor: u32,
    /// PP.
    pub pipeline: u32,
    /// Data-parallel degree.
    pub data: u32,
}

impl Degrees {
    /// Returns TP x PP x DP.
    pub const fn devices(self) -> u32 {
        self.tensor * self.pipeline * self.data
    }
}

/// A split of the devices between the modules, with all degree combinations for both parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Split {
    /// Encoder degrees.
    pub encoders: Vec<Degrees>,
    /// Backbone degrees.
    pub backbones: Vec<Degrees>,
}

/// Returns all splits for which the two modules have valid combinations, in ascending order of
/// encoder devices (DFLOP Alg. 1, phase 1). The two modules use all devices (DFLOP Eq. 3).
pub(crate) fn sides(input: &OptimizerInput) -> Vec<Split> {
    let combinations =
        |profile: &ModuleProfile, devices, max_data| cuts(profile, devices, input.devices_per_node, max_data);
    let is_allowed = |degrees: &Degrees| {
        let is = |fixed: Option<u32>, degree: u32| fixed.is_none_or(|value| value == degree);
        is(input.fixed.tensor, degrees.tensor) && is(input.fixed.pipeline, degrees.pipeline)
    };
    let backbone_degrees = |devices| {
        let mut found = combinations(&input.backbone, devices, input.global_batch);
        found.retain(is_allowed);
        found
    };
    (1..input.devices)
        .map(|devices| Split {
            encoders: combinations(&input.encoder, devices, u32::MAX),
            // A replica needs an item, so DP is bounded by the global batch.
            backbones: backbone_degrees(input.devices - devices),
        })
        .filter(|split| !split.encoders.is_empty() && !split.backbones.is_empty())
        .collect()
}

/// Returns all TP x PP x DP = `devices`, in ascending TP and PP order. TP must be profiled and fit
/// in a node (DFLOP Eq. 2).
fn cuts(profile: &ModuleProfile, devices: u32, node: u32, max_data: u32) -> Vec<Degrees> {
    let mut cuts = Vec::new();
    let tensors = profile.degrees.iter().map(|degree| degree.tensor);
    for tensor in tensors.filter(|&tensor| tensor <= node && devices.is_multiple_of(tensor)) {
        let rest = devices / tensor;
        for pipeline in (1..=rest.min(profile.layers)).filter(|&pipeline| rest.is_multiple_of(pipeline)) {
            let data = rest / pipeline;
            if data <= max_data {
                cuts.push(Degrees { tensor, pipeline, data });
            }
        }
    }
    cuts
}
