//! Distribution of a module's layers to stages.

use super::{LayerRange, ModuleWeight, Partition, chain};
use planscope_core::model::{Model, Module};

/// State of the distribution for a module.
pub(super) struct LayerDistribution {
    /// Layers per stage.
    pub(super) layers: Vec<u32>,
    /// Weight per stage.
    pub(super) stages: Vec<f64>,
    layer: f64,
    /// Maximum stage weight in the optimal contiguous partition.
    bottleneck: f64,
    /// Unassigned layers.
    left: u32,
}

impl LayerDistribution {
    /// Assigns one layer to each stage. Layers of several kinds have different weights; they are
    /// assigned as in the optimal contiguous partition. Returns `None` if there are fewer layers
    /// than stages. Zero weights are replaced by a positive minimum.
    pub(super) fn new(module: &Module, weight: ModuleWeight, stages: u32) -> Option<Self> {
        let weight = if weight.layer > 0.0 { weight } else { ModuleWeight { layer: f64::MIN_POSITIVE, ..weight } };
        let single_module = Model { name: String::new(), modules: vec![module.clone()] };
        let cut = Partition::balanced(&single_module, &[weight], stages)?;
        let chain = chain(&single_module, &[weight]);
        let stage_weight = |ranges: &Vec<LayerRange>| -> f64 {
            ranges.iter().map(|range| chain[range.first as usize..range.end as usize].iter().sum::<f64>()).sum()
        };
        let cut_weights: Vec<f64> = cut.stages.iter().map(stage_weight).collect();
        let bottleneck = cut_weights.iter().copied().fold(0.0, f64::max);
        if weight.kinds.is_some() {
            let layers = cut.stages.iter().map(|ranges| ranges.iter().map(LayerRange::len).sum()).collect();
            return Some(Self { layers, stages: cut_weights, layer: weight.layer, bottleneck, left: 0 });
        }
        let mut weights = vec![weight.layer; stages as usize];
        *weights.first_mut()? += weight.input;
        *weights.last_mut()? += weight.output;
        let left = module.layers - stages;
        Some(Self { layers: vec![1; stages as usize], stages: weights, layer: weight.layer, bottleneck, left })
    }

    /// Assigns the remaining layers one by one and adds them to the `work` per rank.
    pub(super) fn finish(&mut self, work: &mut [f64]) {
        let limit = self.bottleneck * (1.0 + 1e-9);
        while self.left > 0 {
            let has_capacity = |&stage: &usize| self.stages[stage] + self.layer <= limit;
            let busier = |&a: &usize, &b: &usize| {
                let ranks = work[a % work.len()].total_cmp(&work[b % work.len()]);
                ranks.then(self.stages[a].total_cmp(&self.stages[b]))
            };
            // The optimal contiguous partition fits all layers below this bottleneck.
            let Some(stage) = (0..self.stages.len()).filter(has_capacity).min_by(busier) else { break };
            self.layers[stage] += 1;
            self.stages[stage] += self.layer;
            work[stage % work.len()] += self.layer;
            self.left -= 1;
        }
        debug_assert_eq!(self.left, 0, "every layer has a stage");
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_KINDS;
    use super::*;
    use planscope_core::model::presets::model;

    /// DeepSeek-V3 has three dense layers and 58 with experts. Dense layers that are much faster, or slower, than the mean
    /// leave no layer without a stage.
    #[test]
    fn layers_of_several_kinds_all_have_a_stage() {
        let model = model("deepseek-v3").unwrap();
        let kinds = model.modules[0].layer_kinds().len();
        assert!(kinds > 1);
        for (dense, expert) in [(1.0, 8.0), (8.0, 1.0)] {
            for stages in [2, 7, 16, 61] {
                let mut weights = [0.0; MAX_KINDS];
                weights[..kinds].fill(expert);
                weights[0] = dense;
                let layer = (3.0 * dense + 58.0 * expert) / 61.0;
                let weight = ModuleWeight { layer, input: 0.5, output: 2.0, kinds: Some(weights) };
                let partition = Partition::by_module(&model, &[weight], stages, &[1]).unwrap();
                let layers: Vec<u32> = partition.stages.iter().map(|ranges| ranges[0].len()).collect();
                assert_eq!((layers.len() as u32, layers.iter().sum::<u32>()), (stages, 61), "{layers:?}");
                assert!(layers.iter().all(|&layers| layers > 0), "{layers:?}");
            }
        }
    }
}
