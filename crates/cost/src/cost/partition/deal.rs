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
    /// Assigns one layer to each stage. Returns `None` if there are fewer layers than stages. Zero
    /// weights are replaced by a positive minimum.
    pub(super) fn new(module: &Module, weight: ModuleWeight, stages: u32) -> Option<Self> {
        let weight = if weight.layer > 0.0 { weight } else { ModuleWeight { layer: f64::MIN_POSITIVE, ..weight } };
        let single_module = Model { name: String::new(), modules: vec![module.clone()] };
        let cut = Partition::balanced(&single_module, &[weight], stages)?;
        let chain = chain(&single_module, &[weight]);
        let stage_weight = |ranges: &Vec<LayerRange>| -> f64 {
            ranges.iter().map(|range| chain[range.first as usize..range.end as usize].iter().sum::<f64>()).sum()
        };
        let bottleneck = cut.stages.iter().map(stage_weight).fold(0.0, f64::max);
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
