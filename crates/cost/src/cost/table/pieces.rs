//! Costs of a module for all microbatches. Equal loads share one entry.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::cost::layer::LayerCost;
use crate::cost::load::{LoadKey, ModuleLoad};
use crate::cost::pricing::{ComponentCosts, LayerCosts};

/// Values by microbatch. Equal loads share one value.
#[derive(Debug, Clone)]
pub(in crate::cost) struct ByLoad<T> {
    distinct: Vec<T>,
    /// Number of microbatches by index into `distinct`.
    counts: Vec<u32>,
    /// Index into `distinct` by microbatch.
    index: Vec<u32>,
}

impl<T> Default for ByLoad<T> {
    fn default() -> Self {
        Self { distinct: Vec::new(), counts: Vec::new(), index: Vec::new() }
    }
}

impl<T> ByLoad<T> {
    /// Creates the values of microbatches from their loads. `value` is called once per distinct load.
    pub(in crate::cost) fn new(
        loads: impl Iterator<Item = ModuleLoad>,
        mut value: impl FnMut(ModuleLoad) -> T,
    ) -> Self {
        let (mut distinct, mut positions) = (Vec::new(), BTreeMap::new());
        let mut last: Option<(LoadKey, u32)> = None;
        let index = loads.map(|load| {
            let key = load.key();
            let position = match last {
                Some((before, position)) if before == key => position,
                _ => *positions.entry(key).or_insert_with(|| {
                    distinct.push(value(load));
                    distinct.len() as u32 - 1
                }),
            };
            last = Some((key, position));
            position
        });
        let index: Vec<u32> = index.collect();
        let mut counts = vec![0; distinct.len()];
        for &position in &index {
            counts[position as usize] += 1;
        }
        Self { distinct, counts, index }
    }

    /// Returns the value of a microbatch.
    pub(super) fn of(&self, microbatch: usize) -> &T {
        &self.distinct[self.index[microbatch] as usize]
    }

    /// Returns the distinct values and the number of microbatches that have them.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&T, u32)> {
        self.distinct.iter().zip(self.counts.iter().copied())
    }

    /// Returns the index of the value of a microbatch.
    pub(super) fn position(&self, microbatch: usize) -> u32 {
        self.index[microbatch]
    }
}

/// Component costs of a module by microbatch.
#[derive(Debug, Clone, Default)]
pub(in crate::cost) struct Pieces {
    by_load: ByLoad<ComponentCosts>,
    total: OnceLock<ComponentCosts>,
    least: OnceLock<ComponentCosts>,
}

impl From<ByLoad<ComponentCosts>> for Pieces {
    fn from(by_load: ByLoad<ComponentCosts>) -> Self {
        Self { by_load, ..Self::default() }
    }
}

impl Pieces {
    /// Returns the costs of a microbatch.
    pub(super) fn of(&self, microbatch: usize) -> &ComponentCosts {
        self.by_load.of(microbatch)
    }

    /// Returns the index of the distinct load of a microbatch.
    pub(super) fn position(&self, microbatch: usize) -> u32 {
        self.by_load.position(microbatch)
    }

    /// Returns the sum over all microbatches.
    pub(super) fn total(&self) -> &ComponentCosts {
        self.total.get_or_init(|| {
            let scaled = self.by_load.counted().map(|(costs, count)| costs.combine(costs, |cost, _| cost.times(count)));
            scaled.reduce(|a, b| a.combine(&b, LayerCost::then)).unwrap_or_default()
        })
    }

    /// Returns the minimum time of each component over all microbatches.
    pub(super) fn least(&self) -> &ComponentCosts {
        self.least.get_or_init(|| {
            let least = |a: ComponentCosts, b: &ComponentCosts| a.combine(b, LayerCost::min_times);
            let mut all = self.by_load.distinct.iter();
            all.next().cloned().map(|first| all.fold(first, least)).unwrap_or_default()
        })
    }
}

impl ComponentCosts {
    /// Combines the costs of each component. Both sides have the same kinds of layers.
    fn combine(&self, other: &Self, cost: impl Fn(LayerCost, LayerCost) -> LayerCost) -> Self {
        let layer = |a: LayerCosts, b: LayerCosts| LayerCosts {
            layer: cost(a.layer, b.layer),
            without_recompute: cost(a.without_recompute, b.without_recompute),
        };
        let kinds = self.kinds.as_ref().zip(other.kinds.as_ref());
        Self {
            mean: layer(self.mean, other.mean),
            kinds: kinds.map(|(a, b)| a.iter().zip(b.iter()).map(|(a, b)| (a.0, layer(a.1, b.1))).collect()),
            input: cost(self.input, other.input),
            output: cost(self.output, other.output),
            loss: cost(self.loss, other.loss),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::units::Seconds;

    fn costs(forward: f64, output: f64) -> ComponentCosts {
        let cost = |seconds: f64| LayerCost { forward: Seconds::from_secs(seconds), ..LayerCost::default() };
        ComponentCosts {
            mean: LayerCosts { layer: cost(forward), ..LayerCosts::default() },
            output: cost(output),
            ..ComponentCosts::default()
        }
    }

    #[test]
    fn equal_loads_share_costs_and_count_each() {
        let loads = [4.0, 8.0, 4.0, 4.0].map(|tokens| ModuleLoad { tokens, ..ModuleLoad::default() });
        let mut computed = 0;
        let pieces = Pieces::from(ByLoad::new(loads.into_iter(), |load| {
            computed += 1;
            if load.tokens > 4.0 { costs(2.0, 0.25) } else { costs(1.0, 0.5) }
        }));
        assert_eq!(computed, 2);
        assert_eq!(pieces.of(1).mean.layer.forward, Seconds::from_secs(2.0));
        assert_eq!(pieces.of(3).mean.layer.forward, Seconds::from_secs(1.0));
        let (total, least) = (pieces.total(), pieces.least());
        assert_eq!((total.mean.layer.forward.secs(), total.output.forward.secs()), (5.0, 1.75));
        assert_eq!((least.mean.layer.forward.secs(), least.output.forward.secs()), (1.0, 0.25));
        assert_eq!(Pieces::default().total().mean.layer.forward, Seconds::ZERO);
    }
}
