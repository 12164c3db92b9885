//! Every way to cut devices into tensor, pipeline and data parallelism.

use super::OptimizerInput;
use crate::data_aware::profile::ModuleProfile;

/// Degrees of one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Degrees {
    /// TP.
    pub tensor: u32,
    /// PP.
    pub pipeline: u32,
    /// DP.
    pub data: u32,
}

impl Degrees {
    /// Devices, TP x PP x DP.
    pub const fn devices(self) -> u32 {
        self.tensor * self.pipeline * self.data
    }
}

/// One split of the devices, with every way to cut each share.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Split {
    /// Ways of the encoder.
    pub encoders: Vec<Degrees>,
    /// Ways of the backbone.
    pub backbones: Vec<Degrees>,
}

/// All splits in which both modules have a way, encoders' shares ascending (Algorithm 1, phase 1).
pub(super) fn sides(input: &OptimizerInput) -> Vec<Split> {
    let ways = |profile: &ModuleProfile, devices, most_data| cuts(profile, devices, input.devices_per_node, most_data);
    let is_asked = |degrees: &Degrees| {
        let is = |asked: Option<u32>, degree: u32| asked.is_none_or(|asked| asked == degree);
        is(input.fixed.tensor, degrees.tensor) && is(input.fixed.pipeline, degrees.pipeline)
    };
    let of_backbone = |devices| {
        let mut found = ways(&input.backbone, devices, input.global_batch);
        found.retain(is_asked);
        found
    };
    (1..input.devices)
        .map(|devices| Split {
            encoders: ways(&input.encoder, devices, u32::MAX),
            // At least one microbatch of one item for each replica.
            backbones: of_backbone(input.devices - devices),
        })
        .filter(|split| !split.encoders.is_empty() && !split.backbones.is_empty())
        .collect()
}

/// Every TP that was profiled and fits a node, then every PP, with TP x PP x DP = devices.
fn cuts(profile: &ModuleProfile, devices: u32, node: u32, most_data: u32) -> Vec<Degrees> {
    let mut cuts = Vec::new();
    let tensors = profile.degrees.iter().map(|degree| degree.tensor);
    for tensor in tensors.filter(|&tensor| tensor <= node && devices.is_multiple_of(tensor)) {
        let rest = devices / tensor;
        for pipeline in (1..=rest.min(profile.layers)).filter(|&pipeline| rest.is_multiple_of(pipeline)) {
            let data = rest / pipeline;
            if data <= most_data {
                cuts.push(Degrees { tensor, pipeline, data });
            }
        }
    }
    cuts
}
