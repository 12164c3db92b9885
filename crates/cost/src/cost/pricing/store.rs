//! Layer costs of one model and cluster under several training settings.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Prices;
use planscope_core::training::Training;

/// Maximum number of loads in a store. A store with more loads is cleared.
const MAX_STORED: usize = 131_072;

/// Component costs of a module under a tensor-parallel degree, by load.
type ModulePrices = Arc<Mutex<Prices>>;

/// Component costs under settings with equal layer costs, by (tensor-parallel degree, module), then by load.
#[derive(Debug, Default)]
pub(super) struct Known {
    prices: Mutex<BTreeMap<(u32, usize), ModulePrices>>,
}

impl Known {
    /// Returns the costs of a module under a tensor-parallel degree.
    pub(super) fn prices(&self, tensor: u32, module: usize) -> ModulePrices {
        let mut prices = self.prices.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(prices.entry((tensor, module)).or_default())
    }

    /// Number of loads.
    fn loads(&self) -> usize {
        let prices = self.prices.lock().unwrap_or_else(PoisonError::into_inner);
        prices.values().map(|prices| prices.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }
}

/// Component costs by training settings.
#[derive(Debug, Default)]
pub(super) struct PriceStore {
    entries: Mutex<Vec<(Training, Arc<Known>)>>,
}

impl PriceStore {
    /// Returns the costs under settings with the layer costs of `training`.
    pub(super) fn known(&self, training: &Training) -> Arc<Known> {
        let settings = layer_settings(training);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = entries.iter().find(|(other, _)| *other == settings) {
            return Arc::clone(known);
        }
        if entries.iter().map(|(_, known)| known.loads()).sum::<usize>() > MAX_STORED {
            entries.clear();
        }
        let known = Arc::<Known>::default();
        entries.push((settings, Arc::clone(&known)));
        known
    }
}

/// Returns the settings without those that cached layer costs do not depend on. ZeRO 3 accumulates reduced shards of
/// gradients, the other stages whole gradients, in a kernel of its own unless it is fused.
fn layer_settings(training: &Training) -> Training {
    Training {
        distributed_optimizer: false,
        zero: Some(if training.zero_stage() == 3 && !training.fused_weight_gradients { 3 } else { 0 }),
        activation_offload: 0.0,
        optimizer_offload: 0.0,
        recompute_layers: training.recompute_layers.map(|_| 0),
        ..training.clone()
    }
}
