//! Layer weights to balance stages, distribute microbatches and bound layouts.

use std::ops::Range;

use super::{ByLoad, LayerTable};
use crate::cost::layer::LayerCost;
use crate::cost::partition::ModuleWeight;
use crate::cost::pricing::{ComponentCosts, LayerCosts};
use planscope_core::model::MAX_KINDS;
use planscope_core::training::Recompute;
use planscope_core::units::Seconds;

impl LayerTable<'_> {
    /// Returns the mean component times per module over all microbatches, to balance a chain of all
    /// layers over `stages` stages.
    pub fn weights(&self, stages: u32) -> Vec<ModuleWeight> {
        let layers = self.model.layers();
        let known = &self.mean_weights[usize::from(self.excludes_recompute(layers, stages))];
        let mean = || {
            let all: Vec<usize> = (0..self.loads.len()).collect();
            let weight = |module: usize| self.mean_pieces(module, &all, self.balanced_layer(layers, stages));
            (0..self.pieces.len()).map(weight).collect()
        };
        known.get_or_init(mean).clone()
    }

    /// Like [`Self::weights`], for layers of the strategy without recomputation. The table has layer
    /// costs for all strategies. Layers of several kinds count with their mean.
    pub fn weights_without_recompute(&self) -> Vec<ModuleWeight> {
        let weights = self.weights(1).into_iter().zip(&self.strategies);
        let stored = |(weight, loads): (ModuleWeight, &ByLoad<[LayerCost; 4]>)| {
            let total: f64 =
                loads.counted().map(|([stored, ..], count)| stored.total().secs() * f64::from(count)).sum();
            ModuleWeight { layer: total / self.loads.len().max(1) as f64, kinds: None, ..weight }
        };
        weights.map(stored).collect()
    }

    /// Returns the mean component times of a module over the given microbatches, to balance its
    /// layers over `stages` stages.
    pub fn mean_weight(&self, module: usize, microbatches: &[usize], stages: u32) -> ModuleWeight {
        let layer = self.balanced_layer(self.model.modules[module].layers, stages);
        self.mean_pieces(module, microbatches, layer)
    }

    /// Returns a lower bound on the time in modules `modules` for all microbatches, in seconds, for
    /// any partition. If stages recompute only some layers, the bound assumes no recomputation. It
    /// compares host time only for the total.
    pub fn min_time(&self, modules: Range<usize>) -> f64 {
        let module_cost = |module: usize, microbatch: usize| {
            let pieces = self.pieces[module].of(microbatch);
            let mean = &pieces.mean;
            let layer = if self.recomputed_layers().is_some() {
                mean.without_recompute.min_times(mean.layer)
            } else {
                mean.layer
            };
            pieces.input.then(layer.times(self.model.modules[module].layers)).then(pieces.output)
        };
        let time = |microbatch: usize| {
            let all = modules.clone().map(|module| module_cost(module, microbatch));
            all.fold(LayerCost::default(), LayerCost::then).total().secs()
        };
        (0..self.loads.len()).map(time).sum()
    }

    fn mean_pieces(&self, module: usize, microbatches: &[usize], layer: fn(&LayerCosts) -> Seconds) -> ModuleWeight {
        let mean = |component: &dyn Fn(&ComponentCosts) -> Seconds| {
            let times = microbatches.iter().map(|&microbatch| component(self.pieces[module].of(microbatch)).secs());
            times.sum::<f64>() / microbatches.len().max(1) as f64
        };
        ModuleWeight {
            layer: mean(&|pieces| layer(&pieces.mean)),
            input: mean(&|pieces| pieces.input.total()),
            output: mean(&|pieces| pieces.output.total()),
            kinds: self.kind_weights(module, microbatches, layer),
        }
    }

    /// Returns the mean times per kind of layer, or `None` if all layers are equal.
    fn kind_weights(
        &self,
        module: usize,
        microbatches: &[usize],
        layer: fn(&LayerCosts) -> Seconds,
    ) -> Option<[f64; MAX_KINDS]> {
        let mut weights = [0.0; MAX_KINDS];
        for &microbatch in microbatches {
            let kinds = self.pieces[module].of(microbatch).kinds.as_ref()?;
            for (weight, (_, costs)) in weights.iter_mut().zip(kinds.iter()) {
                *weight += layer(costs).secs() / microbatches.len() as f64;
            }
        }
        (!microbatches.is_empty()).then_some(weights)
    }

    /// Number of recomputed layers per stage, if full recomputation has such a limit.
    fn recomputed_layers(&self) -> Option<u32> {
        self.training.recompute_layers.filter(|_| self.training.recompute == Recompute::Full)
    }

    /// Returns the time per layer used for balancing. If each stage recomputes the same fixed
    /// number of layers and contains at least as many, recomputation time does not affect the
    /// balance and is excluded.
    fn balanced_layer(&self, layers: u32, stages: u32) -> fn(&LayerCosts) -> Seconds {
        if self.excludes_recompute(layers, stages) { |costs| costs.without_recompute.total() } else { settled }
    }

    fn excludes_recompute(&self, layers: u32, stages: u32) -> bool {
        self.recomputed_layers().is_some_and(|again| again.saturating_mul(stages) < layers)
    }

    /// Returns the forward plus backward time per microbatch through all modules on `stages`
    /// stages, in seconds.
    pub fn microbatch_times(&self, stages: u32) -> Vec<f64> {
        // Recomputed fraction of all layers.
        let again = self
            .recomputed_layers()
            .map(|again| (f64::from(again) * f64::from(stages) / f64::from(self.model.layers().max(1))).min(1.0));
        let layer = |costs: &LayerCosts| match again {
            Some(share) => costs.layer.total().secs() * share + costs.without_recompute.total().secs() * (1.0 - share),
            None => costs.layer.total().secs(),
        };
        let time = |microbatch: usize| {
            let modules = self.model.modules.iter().enumerate();
            let module_times = modules.map(|(index, module)| {
                let pieces = self.pieces[index].of(microbatch);
                layer(&pieces.mean) * f64::from(module.layers)
                    + pieces.input.total().secs()
                    + pieces.output.total().secs()
            });
            module_times.sum()
        };
        (0..self.loads.len()).map(time).collect()
    }
}

/// Layer time if all layers in a stage have equal settings.
fn settled(costs: &LayerCosts) -> Seconds {
    costs.layer.total()
}
