//! Partitions: which consecutive layers stand on which stage.

use crate::flow::Placement;
use crate::model::Model;

/// Consecutive layers of one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerRange {
    /// Index of the module in the model.
    pub module: usize,
    /// First layer.
    pub first: u32,
    /// One behind the last layer.
    pub end: u32,
}

impl LayerRange {
    /// Number of layers.
    pub const fn len(&self) -> u32 {
        self.end - self.first
    }

    /// Whether there is no layer.
    pub const fn is_empty(&self) -> bool {
        self.end == self.first
    }

    /// Whether the module begins here: its embedding stands on this stage.
    pub const fn begins(&self) -> bool {
        self.first == 0
    }

    /// Whether the module ends here: its final norm and head stand on this stage.
    pub fn ends(&self, model: &Model) -> bool {
        self.end == model.modules[self.module].layers
    }
}

/// The layers of every stage, in flow order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Ranges of each stage; a stage at the seam of two modules has two.
    pub stages: Vec<Vec<LayerRange>>,
    /// On which rank each stage stands.
    pub placement: Placement,
}

/// Time that one module takes, for balancing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModuleWeight {
    /// One layer.
    pub layer: f64,
    /// What stands before the first layer.
    pub input: f64,
    /// What stands behind the last layer.
    pub output: f64,
}

impl Partition {
    /// The same number of layers on every stage, as Megatron-LM cuts a uniform model; `None` where `stages` does
    /// not divide the layers or the model has more than one module.
    pub fn even(model: &Model, stages: u32) -> Option<Self> {
        let [module] = model.modules.as_slice() else { return None };
        if stages == 0 || !module.layers.is_multiple_of(stages) {
            return None;
        }
        let each = module.layers / stages;
        let range = |stage| vec![LayerRange { module: 0, first: stage * each, end: (stage + 1) * each }];
        Some(Self { stages: (0..stages).map(range).collect(), placement: Placement::Cyclic })
    }

    /// Cuts the chain of all layers so that the slowest stage is as fast as a contiguous cut allows; `None` where
    /// there are fewer layers than stages.
    ///
    /// The smallest bottleneck is found by bisection (a cut exists for a bottleneck exactly when the greedy one
    /// does); among the cuts that reach it, each stage then stops closest to the mean of what is left.
    pub fn balanced(model: &Model, weights: &[ModuleWeight], stages: u32) -> Option<Self> {
        let chain = chain(model, weights);
        let count = stages as usize;
        if count == 0 || count > chain.len() {
            return None;
        }
        let heaviest = chain.iter().copied().fold(0.0, f64::max);
        let total: f64 = chain.iter().sum();
        let (mut low, mut high) = (heaviest.max(total / f64::from(stages)), total.max(heaviest));
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if greedy_stages(&chain, middle) <= count { high = middle } else { low = middle }
        }
        let bottleneck = high * (1.0 + 1e-9);
        let mut cuts = Vec::with_capacity(count + 1);
        cuts.push(0);
        for stage in 0..count {
            let start = cuts[stage];
            let left = count - stage;
            cuts.push(next_cut(&chain, start, left, bottleneck));
        }
        let stages = cuts.windows(2).map(|cut| ranges(model, cut[0], cut[1])).collect();
        Some(Self { stages, placement: Placement::Cyclic })
    }

    /// Every module by itself: module `i` over `ranks x segments[i]` stages, each as fast as a contiguous cut allows
    /// (PipeWeaver, section 5). `None` where a module has fewer layers than stages.
    pub fn by_module(model: &Model, weights: &[ModuleWeight], ranks: u32, segments: &[u32]) -> Option<Self> {
        let mut stages = Vec::new();
        for (index, (&weight, &segments)) in weights.iter().zip(segments).enumerate() {
            let module = Model { name: String::new(), modules: vec![model.modules[index].clone()] };
            let own = Self::balanced(&module, &[weight], ranks * segments)?;
            let named = |ranges: Vec<LayerRange>| {
                ranges.into_iter().map(|range| LayerRange { module: index, ..range }).collect()
            };
            stages.extend(own.stages.into_iter().map(named));
        }
        Some(Self { stages, placement: Placement::Cyclic })
    }

    /// The stages of every module, where none holds layers of two.
    pub fn stages_by_module(&self, modules: usize) -> Option<Vec<std::ops::Range<usize>>> {
        let mut by_module = vec![0..0; modules];
        for (stage, ranges) in self.stages.iter().enumerate() {
            let [range] = ranges.as_slice() else { return None };
            let own = &mut by_module[range.module];
            if own.start == own.end {
                own.start = stage;
            }
            own.end = stage + 1;
        }
        Some(by_module)
    }

    /// The same stages on other ranks.
    #[must_use]
    pub fn placed(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// The stages that stand on a rank, in flow order.
    pub fn stages_on(&self, rank: usize, ranks: usize) -> impl Iterator<Item = &Vec<LayerRange>> {
        let own = move |&(stage, _): &(usize, &Vec<LayerRange>)| self.placement.rank_of(stage, ranks) == rank;
        self.stages.iter().enumerate().filter(own).map(|(_, ranges)| ranges)
    }
}

/// Weight of every layer in flow order, the embedding counted with the first and the head with the last.
fn chain(model: &Model, weights: &[ModuleWeight]) -> Vec<f64> {
    let mut chain = Vec::with_capacity(model.layers() as usize);
    for (module, weight) in model.modules.iter().zip(weights) {
        let first = chain.len();
        chain.extend(std::iter::repeat_n(weight.layer, module.layers as usize));
        chain[first] += weight.input;
        let last = chain.len() - 1;
        chain[last] += weight.output;
    }
    chain
}

/// Stages that a greedy cut under `bottleneck` needs.
fn greedy_stages(chain: &[f64], bottleneck: f64) -> usize {
    let mut stages = 1;
    let mut filled = 0.0;
    for &weight in chain {
        if filled + weight > bottleneck && filled > 0.0 {
            stages += 1;
            filled = 0.0;
        }
        filled += weight;
    }
    stages
}

/// Where the stage that starts at `start` ends, with `left` stages to fill, itself included.
fn next_cut(chain: &[f64], start: usize, left: usize, bottleneck: f64) -> usize {
    if left == 1 {
        return chain.len();
    }
    let mean = chain[start..].iter().sum::<f64>() / left as f64;
    let latest = chain.len() - (left - 1);
    let mut best = None;
    let mut filled = 0.0;
    for end in start + 1..=latest {
        filled += chain[end - 1];
        if filled > bottleneck && end > start + 1 {
            break;
        }
        let distance = (filled - mean).abs();
        let rest_fits = greedy_stages(&chain[end..], bottleneck) < left;
        if rest_fits && best.is_none_or(|(_, closest)| distance < closest) {
            best = Some((end, distance));
        }
    }
    best.map_or(start + 1, |(end, _)| end)
}

/// The layers `from .. to` of the chain, by module.
fn ranges(model: &Model, from: usize, to: usize) -> Vec<LayerRange> {
    let mut parts = Vec::new();
    let mut offset = 0;
    for (index, module) in model.modules.iter().enumerate() {
        let end = offset + module.layers as usize;
        let (first, last) = (from.max(offset), to.min(end));
        if first < last {
            parts.push(LayerRange { module: index, first: (first - offset) as u32, end: (last - offset) as u32 });
        }
        offset = end;
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::presets::model;

    fn counts(partition: &Partition) -> Vec<u32> {
        partition.stages.iter().map(|stage| stage.iter().map(LayerRange::len).sum()).collect()
    }

    #[test]
    fn an_even_cut_needs_a_divisor() {
        let llama = model("llama-2-7b").unwrap();
        assert_eq!(counts(&Partition::even(&llama, 8).unwrap()), [4; 8]);
        assert_eq!(Partition::even(&llama, 5), None);
        assert_eq!(Partition::even(&model("vlm-s").unwrap(), 5), None);
    }

    #[test]
    fn a_balanced_cut_crosses_the_seam_where_the_weights_say() {
        let vlm = model("vlm-s").unwrap();
        let weight = |layer| ModuleWeight { layer, input: 0.0, output: 0.0 };
        // 63 layers of 1 and 32 of 2: 127 in all, 32 at best on four stages, the seam inside the second.
        let partition = Partition::balanced(&vlm, &[weight(1.0), weight(2.0)], 4).unwrap();
        assert_eq!(counts(&partition)[..2], [32, 31]);
        assert_eq!(partition.stages[1].len(), 1);
        assert_eq!(counts(&partition).iter().sum::<u32>(), 95);
    }

    proptest! {
        #[test]
        fn a_balanced_cut_is_complete_and_reaches_the_smallest_bottleneck(
            encoder in 0.1_f64..5.0, backbone in 0.1_f64..5.0, head in 0.0_f64..9.0, stages in 1_u32..20,
        ) {
            let vlm = model("vlm-s").unwrap();
            let weights = [
                ModuleWeight { layer: encoder, input: 0.0, output: 0.0 },
                ModuleWeight { layer: backbone, input: 0.0, output: head },
            ];
            let partition = Partition::balanced(&vlm, &weights, stages).unwrap();
            prop_assert_eq!(partition.stages.len(), stages as usize);
            prop_assert_eq!(counts(&partition).iter().sum::<u32>(), 95);
            prop_assert!(counts(&partition).iter().all(|&layers| layers > 0));
            let chain = chain(&vlm, &weights);
            let mut at = 0;
            let mut slowest = 0.0_f64;
            for count in counts(&partition) {
                slowest = slowest.max(chain[at..at + count as usize].iter().sum());
                at += count as usize;
            }
            // No cut into as many stages is faster than the slowest stage by more than rounding.
            prop_assert!(greedy_stages(&chain, slowest * (1.0 - 1e-6)) > stages as usize || stages == 1
                || slowest <= chain.iter().copied().fold(0.0, f64::max) * (1.0 + 1e-9));
        }
    }
}
