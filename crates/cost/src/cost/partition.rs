//! Partitions: assignment of consecutive layers to pipeline stages.

mod cumulative;
mod deal;

use std::ops::Range;

use deal::LayerDistribution;

use planscope_core::model::{MAX_KINDS, Model};
use planscope_core::stage_graph::Placement;
use planscope_core::training::{Framework, StageRule};

/// A range of consecutive layers in a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerRange {
    /// Module index in the model.
    pub module: usize,
    /// First layer.
    pub first: u32,
    /// End of the range (exclusive).
    pub end: u32,
    /// Whether the stage has the input block, if the range starts at the first layer. False only after a stage that has the
    /// input block and no layer.
    pub input: bool,
    /// Part of the output block, if the range ends at the last layer.
    pub output: OutputPart,
}

/// Part of the output block on a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputPart {
    /// The whole block.
    #[default]
    Whole,
    /// Final norm and output head. The next stage has the loss.
    Head,
    /// The loss.
    Loss,
    /// Nothing.
    Nothing,
}

impl LayerRange {
    /// Creates the range `first .. end`, with the input block if it contains the first layer and the output block if it
    /// contains the last one.
    pub const fn new(module: usize, first: u32, end: u32) -> Self {
        Self { module, first, end, input: true, output: OutputPart::Whole }
    }

    /// Number of layers.
    pub const fn len(&self) -> u32 {
        self.end - self.first
    }

    /// Returns whether the range contains no layers.
    pub const fn is_empty(&self) -> bool {
        self.end == self.first
    }

    /// Returns whether the stage of the range contains the input block: that of the module's first layer, unless an
    /// earlier stage has it.
    pub const fn begins(&self) -> bool {
        self.input && self.first == 0
    }

    /// Returns whether the stage of the range contains the output block, at least the output head: that of the module's
    /// last layer, unless a later stage has it.
    pub fn ends(&self, model: &Model) -> bool {
        matches!(self.output, OutputPart::Whole | OutputPart::Head) && self.end == model.modules[self.module].layers
    }
}

/// Layers per stage, in flow order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Layer ranges per stage. A stage at the boundary between two modules has two ranges.
    pub stages: Vec<Vec<LayerRange>>,
    /// Assignment of stages to ranks.
    pub placement: Placement,
}

/// Time weights of a module, for load balancing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModuleWeight {
    /// Weight per layer.
    pub layer: f64,
    /// Weight of the input block.
    pub input: f64,
    /// Weight of the output block.
    pub output: f64,
    /// Weights per kind of layer, in the order of [`planscope_core::model::Module::layer_kinds`]. `None` if all layers are
    /// equal.
    pub kinds: Option<[f64; MAX_KINDS]>,
}

impl ModuleWeight {
    /// Scales all weights by `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            layer: self.layer * factor,
            input: self.input * factor,
            output: self.output * factor,
            kinds: self.kinds.map(|kinds| kinds.map(|weight| weight * factor)),
        }
    }
}

impl Partition {
    /// Splits the layers as the framework does by default. Returns `None` if the framework has no
    /// such split.
    pub fn usual(model: &Model, stages: u32, framework: Framework) -> Option<Self> {
        match framework.stage_rule() {
            StageRule::Equal => Self::even(model, stages),
            StageRule::ByParameters => Self::cumulative(model, stages),
            StageRule::FirstLonger => Self::with_ends_as_layers(model, stages, (0, 0)),
            StageRule::EndsAsLayers => Self::with_ends_as_layers(model, stages, (1, 1)),
        }
    }

    /// Assigns equally many layers to all stages, where the embedding and the output head of a single module count as
    /// `ends` layers. The first stages have the remaining layers, as in torchtitan. Returns `None` for several
    /// modules, or if a stage would have no layer.
    pub fn with_ends_as_layers(model: &Model, stages: u32, ends: (u32, u32)) -> Option<Self> {
        let [module] = model.modules.as_slice() else { return None };
        let layers = layers_with_ends(module.layers, stages, ends).filter(|layers| !layers.contains(&0))?;
        Self::stated(model, &layers)
    }

    /// Assigns equally many layers to all stages, like Megatron-LM for uniform models. Returns
    /// `None` if `stages` does not divide the number of layers, or if the model has several
    /// modules.
    pub fn even(model: &Model, stages: u32) -> Option<Self> {
        let [module] = model.modules.as_slice() else { return None };
        if stages == 0 || !module.layers.is_multiple_of(stages) {
            return None;
        }
        let each = module.layers / stages;
        let range = |stage| vec![LayerRange::new(0, stage * each, (stage + 1) * each)];
        Some(Self { stages: (0..stages).map(range).collect(), placement: Placement::Cyclic })
    }

    /// Assigns `layers[i]` consecutive layers of the chain of all modules to stage `i`. The first stage has the input
    /// block and the last one the output block, with or without layers. Returns `None` if a stage of several modules has
    /// no layer, or if the sum is not the number of layers.
    pub fn stated(model: &Model, layers: &[u32]) -> Option<Self> {
        let sum: u64 = layers.iter().map(|&count| u64::from(count)).sum();
        let has_empty = layers.contains(&0);
        if sum != u64::from(model.layers()) || (has_empty && model.modules.len() > 1) {
            return None;
        }
        let mut first = 0;
        let stages = layers.iter().enumerate().map(|(stage, &count)| {
            let from = first;
            first += count;
            if !has_empty {
                return ranges(model, from as usize, first as usize);
            }
            let is_last = stage + 1 == layers.len();
            let output = if is_last || u64::from(first) < sum { OutputPart::Whole } else { OutputPart::Nothing };
            vec![LayerRange { input: stage == 0 || from > 0, output, ..LayerRange::new(0, from, first) }]
        });
        Some(Self { stages: stages.collect(), placement: Placement::Cyclic })
    }

    /// Partitions the chain of all layers so that the slowest stage is as fast as possible. Returns
    /// `None` if there are fewer layers than stages.
    ///
    /// Finds the minimum bottleneck by bisection: a partition for a bottleneck exists if and only
    /// if the greedy partition fits. Subject to this bottleneck, stages are filled as close as
    /// possible to the mean remaining weight.
    pub fn balanced(model: &Model, weights: &[ModuleWeight], stages: u32) -> Option<Self> {
        Self::balanced_chain(model, weights, stages, None)
    }

    /// Like [`Self::balanced`], but also requires `fits(stage, layers)` for all stages. Layer
    /// indices refer to the full chain. If a range fits, shorter ranges and later stages must also
    /// fit; otherwise the result may not be optimal. Also returns `None` if no partition fits.
    pub fn balanced_within(
        model: &Model,
        weights: &[ModuleWeight],
        stages: u32,
        fits: &dyn Fn(usize, Range<usize>) -> bool,
    ) -> Option<Self> {
        Self::balanced_chain(model, weights, stages, Some(fits))
    }

    fn balanced_chain(
        model: &Model,
        weights: &[ModuleWeight],
        stages: u32,
        fits: Option<&dyn Fn(usize, Range<usize>) -> bool>,
    ) -> Option<Self> {
        let chain = chain(model, weights);
        let count = stages as usize;
        if count == 0 || count > chain.len() {
            return None;
        }
        let limits = |bottleneck| Limits { bottleneck, fits };
        let heaviest = chain.iter().copied().fold(0.0, f64::max);
        let total: f64 = chain.iter().sum();
        let (mut low, mut high) = (heaviest.max(total / f64::from(stages)), total.max(heaviest));
        if limits(high * (1.0 + 1e-9)).greedy(&chain, 0, 0) > count {
            return None;
        }
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if limits(middle).greedy(&chain, 0, 0) <= count { high = middle } else { low = middle }
        }
        let limits = limits(high * (1.0 + 1e-9));
        // Without further limits the stages that the rest needs do not depend on the stage where it starts.
        let suffixes = if fits.is_none() { limits.stages_from(&chain) } else { Vec::new() };
        let mut cuts = Vec::with_capacity(count + 1);
        cuts.push(0);
        for stage in 0..count {
            let rest = |end: usize| {
                suffixes.get(end).copied().unwrap_or_else(|| limits.greedy(&chain, end, stage + 1)) < count - stage
            };
            cuts.push(limits.next_cut(&chain, cuts[stage], stage, count, rest));
        }
        let stages = cuts.windows(2).map(|cut| ranges(model, cut[0], cut[1])).collect();
        Some(Self { stages, placement: Placement::Cyclic })
    }

    /// Partitions modules separately: module `i` into `ranks x segments[i]` stages with minimum
    /// bottleneck. If layers do not divide evenly by stages, the remaining layers go to the ranks
    /// with the least work (PipeWeaver Sec. 5, which distributes layers evenly across ranks).
    /// Returns `None` if a module has fewer layers than stages.
    ///
    /// `weights` contains the total work of a module, so that modules are comparable. If all layers
    /// in a module have equal weight, it is optimal to assign them one by one to the rank with the
    /// least work, limited to stages below the bottleneck. A module with layers of several kinds
    /// has the optimal contiguous partition.
    pub fn by_module(model: &Model, weights: &[ModuleWeight], ranks: u32, segments: &[u32]) -> Option<Self> {
        let mut deals = Vec::with_capacity(weights.len());
        for ((module, &weight), &segments) in model.modules.iter().zip(weights).zip(segments) {
            deals.push(LayerDistribution::new(module, weight, ranks * segments)?);
        }
        let mut work = vec![0.0; ranks as usize];
        for deal in &deals {
            for (stage, weight) in deal.stages.iter().enumerate() {
                work[stage % ranks as usize] += weight;
            }
        }
        let mut stages = Vec::new();
        for (module, mut deal) in deals.into_iter().enumerate() {
            deal.finish(&mut work);
            let mut first = 0;
            for layers in deal.layers {
                stages.push(vec![LayerRange::new(module, first, first + layers)]);
                first += layers;
            }
        }
        Some(Self { stages, placement: Placement::Cyclic })
    }

    /// Returns the stage range per module, or `None` if any stage contains layers from two modules.
    pub fn stages_by_module(&self, modules: usize) -> Option<Vec<std::ops::Range<usize>>> {
        let mut by_module = vec![0..0; modules];
        for (stage, ranges) in self.stages.iter().enumerate() {
            let [range] = ranges.as_slice() else { return None };
            let module_stages = &mut by_module[range.module];
            if module_stages.start == module_stages.end {
                module_stages.start = stage;
            }
            module_stages.end = stage + 1;
        }
        Some(by_module)
    }

    /// Replaces the placement.
    #[must_use]
    pub fn placed(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Returns the stages on a rank, in flow order.
    pub fn stages_on(&self, rank: usize, ranks: usize) -> impl Iterator<Item = &Vec<LayerRange>> {
        let is_on_rank =
            move |&(stage, _): &(usize, &Vec<LayerRange>)| self.placement.rank_for_stage(stage, ranks) == rank;
        self.stages.iter().enumerate().filter(is_on_rank).map(|(_, ranges)| ranges)
    }
}

/// Numbers of layers of [`Partition::with_ends_as_layers`]. A stage with the embedding or the output head can be without
/// layers.
pub fn layers_with_ends(layers: u32, stages: u32, (first, last): (u32, u32)) -> Option<Vec<u32>> {
    let total = layers.checked_add(first)?.checked_add(last)?;
    let (each, rest) = (total.checked_div(stages)?, total % stages);
    let ends = |stage: u32| {
        let input = if stage == 0 { first } else { 0 };
        let output = if stage + 1 == stages { last } else { 0 };
        input + output
    };
    let count = |stage: u32| {
        let ends = ends(stage);
        (each + u32::from(stage < rest)).checked_sub(ends).filter(|&count| count > 0 || ends > 0)
    };
    (0..stages).map(count).collect()
}

/// Layer weights in flow order. The first weight includes the input block, the last the output
/// block.
fn chain(model: &Model, weights: &[ModuleWeight]) -> Vec<f64> {
    let mut chain = Vec::with_capacity(model.layers() as usize);
    for (module, weight) in model.modules.iter().zip(weights) {
        let first = chain.len();
        match weight.kinds {
            None => chain.extend(std::iter::repeat_n(weight.layer, module.layers as usize)),
            Some(weights) => {
                let kinds = module.layer_kinds();
                let index = |layer| kinds.iter().position(|&kind| kind == module.layer_kind(layer)).unwrap_or(0);
                chain.extend((0..module.layers).map(|layer| weights[index(layer)]));
            }
        }
        chain[first] += weight.input;
        let last = chain.len() - 1;
        chain[last] += weight.output;
    }
    chain
}

/// Limits for a stage.
struct Limits<'a> {
    bottleneck: f64,
    /// Whether a stage has room for layers. `None`: always.
    fits: Option<&'a dyn Fn(usize, Range<usize>) -> bool>,
}

impl Limits<'_> {
    /// Number of stages in a greedy partition that starts with layer `start` on stage `stage`.
    /// Returns `usize::MAX` if a single layer does not fit.
    fn greedy(&self, chain: &[f64], start: usize, stage: usize) -> usize {
        let Some(fits) = self.fits else {
            let (mut next, mut stages) = (self.end_of_stage(chain, start), 1);
            while next < chain.len() {
                (next, stages) = (self.end_of_stage(chain, next), stages + 1);
            }
            return stages;
        };
        let (mut begins, mut stages) = (start, 1);
        let mut filled = 0.0;
        for (layer, &weight) in chain.iter().enumerate().skip(start) {
            let fits = |begins: usize, stages: usize| fits(stage + stages - 1, begins..layer + 1);
            if filled > 0.0 && (filled + weight > self.bottleneck || !fits(begins, stages)) {
                (begins, stages) = (layer, stages + 1);
                filled = 0.0;
            }
            if begins == layer && !fits(begins, stages) {
                return usize::MAX;
            }
            filled += weight;
        }
        stages
    }

    /// End of a stage that starts at `start` and has as many layers as the bottleneck allows, at least one.
    fn end_of_stage(&self, chain: &[f64], start: usize) -> usize {
        let mut filled = 0.0;
        for (offset, &weight) in chain[start..].iter().enumerate() {
            if filled > 0.0 && filled + weight > self.bottleneck {
                return start + offset;
            }
            filled += weight;
        }
        chain.len()
    }

    /// Numbers of stages of greedy partitions that start at each layer, without further limits.
    fn stages_from(&self, chain: &[f64]) -> Vec<usize> {
        let mut stages = vec![1; chain.len()];
        for start in (0..chain.len()).rev() {
            let next = self.end_of_stage(chain, start);
            if next < chain.len() {
                stages[start] = stages[next] + 1;
            }
        }
        stages
    }

    /// Returns the end of stage `stage`, which starts at `start`. `count` is the total number of
    /// stages. `rest_fits` states whether the stages after it have room for the layers from an index.
    fn next_cut(
        &self,
        chain: &[f64],
        start: usize,
        stage: usize,
        count: usize,
        rest_fits: impl Fn(usize) -> bool,
    ) -> usize {
        let left = count - stage;
        if left == 1 {
            return chain.len();
        }
        let mean = chain[start..].iter().sum::<f64>() / left as f64;
        let latest = chain.len() - (left - 1);
        let mut best = None;
        let mut filled = 0.0;
        for end in start + 1..=latest {
            filled += chain[end - 1];
            let exceeds = filled > self.bottleneck || self.fits.is_some_and(|fits| !fits(stage, start..end));
            if end > start + 1 && exceeds {
                break;
            }
            let distance = (filled - mean).abs();
            if rest_fits(end) && best.is_none_or(|(_, closest)| distance < closest) {
                best = Some((end, distance));
            }
        }
        best.map_or(start + 1, |(end, _)| end)
    }
}

/// Converts the chain range `from .. to` to layer ranges per module.
fn ranges(model: &Model, from: usize, to: usize) -> Vec<LayerRange> {
    let mut parts = Vec::new();
    let mut offset = 0;
    for (index, module) in model.modules.iter().enumerate() {
        let end = offset + module.layers as usize;
        let (first, last) = (from.max(offset), to.min(end));
        if first < last {
            parts.push(LayerRange::new(index, (first - offset) as u32, (last - offset) as u32));
        }
        offset = end;
    }
    parts
}

#[cfg(test)]
mod tests;
