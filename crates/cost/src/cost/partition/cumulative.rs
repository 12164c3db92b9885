//! Partition by parameters, as in nanotron.

use super::{LayerRange, OutputPart, Partition};
use planscope_core::model::{Model, Module};
use planscope_core::stage_graph::Placement;

/// Stages of the blocks of a module.
struct Blocks {
    /// Stage of every layer.
    layers: Vec<u32>,
    /// Stage of the output head.
    head: u32,
    /// Stage of the loss.
    loss: u32,
}

/// Returns the parameters of a layer as nanotron counts them: four square matrices of attention and three of the MLP.
fn layer_parameters(module: &Module) -> u64 {
    if module.moe.is_some() {
        return module.layer_parameters();
    }
    let h = u64::from(module.hidden);
    4 * u64::from(module.query_width()) * h + 3 * u64::from(module.ffn) * h
}

/// Assigns blocks in order: embedding, layers, final norm, output head, conversion to fp32, loss. A block after which the parameters exceed the
/// share of the stages so far is the last of its stage.
fn blocks(module: &Module, stages: u32) -> Blocks {
    let layer = u128::from(layer_parameters(module));
    let head = u128::from(module.hidden) * u128::from(module.predicted());
    let total = layer * u128::from(module.layers) + head;
    let (mut stage, mut filled) = (0, 0);
    let mut place = |parameters: u128| {
        let at = stage;
        filled += parameters;
        if stage + 1 < stages && filled * u128::from(stages) > total * u128::from(stage + 1) {
            stage += 1;
        }
        at
    };
    place(0);
    let layers = (0..module.layers).map(|_| place(layer)).collect();
    place(0);
    let head = place(head);
    // The loss uses the logits in fp32: both are on the stage of the conversion here.
    Blocks { layers, head, loss: place(0) }
}

impl Partition {
    /// Fills the stages of a single module in order, as nanotron does: a stage ends with the layer at
    /// which the parameters exceed its share of all layers and the output head. So the first stage
    /// often has a layer more than the mean. Every stage has a layer, and the last one has the output head. Returns
    /// `None` for several modules, or for fewer layers than stages.
    pub fn cumulative(model: &Model, stages: u32) -> Option<Self> {
        let [module] = model.modules.as_slice() else { return None };
        if stages == 0 || stages > module.layers {
            return None;
        }
        let wanted = blocks(module, stages).layers;
        let mut first = 0;
        let range = |stage: u32| {
            // Later stages need a layer each.
            let latest = module.layers - (stages - stage - 1);
            let last = wanted.iter().rposition(|&at| at <= stage).map_or(0, |index| index as u32 + 1);
            let end = if stage + 1 == stages { module.layers } else { last.clamp(first + 1, latest) };
            let range = vec![LayerRange::new(0, first, end)];
            first = end;
            range
        };
        Some(Self { stages: (0..stages).map(range).collect(), placement: Placement::Cyclic })
    }

    /// Like [`Self::cumulative`], but the last stages can be without layers, as in nanotron: if the output head
    /// exceeds the share of its stage, the loss is on the next stage. The send of the logits is priced with the size of a
    /// hidden state.
    pub fn cumulative_blocks(model: &Model, stages: u32) -> Option<Self> {
        let [module] = model.modules.as_slice() else { return None };
        if stages == 0 {
            return None;
        }
        let Blocks { layers, head, loss } = blocks(module, stages);
        let range = |stage: u32| {
            let before = |stage: u32| layers.iter().filter(|&&at| at < stage).count() as u32;
            let output = match (stage == head, stage == loss) {
                (true, true) => OutputPart::Whole,
                (true, false) => OutputPart::Head,
                (false, true) => OutputPart::Loss,
                (false, false) => OutputPart::Nothing,
            };
            vec![LayerRange { output, ..LayerRange::new(0, before(stage), before(stage + 1)) }]
        };
        Some(Self { stages: (0..stages).map(range).collect(), placement: Placement::Cyclic })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::model::presets::model;

    fn counts(partition: &Partition) -> Vec<u32> {
        partition.stages.iter().map(|ranges| ranges.iter().map(LayerRange::len).sum()).collect()
    }

    /// Llama-3 8B: nanotron counts 243.3 million parameters per layer and an output head of 525.3 million, 34.2 layers
    /// in all. Each of eight stages has a share of 4.27: stages end with layers 5, 9, 13, 18, 22, 26, 30.
    #[test]
    fn a_cumulative_cut_counts_the_output_head() {
        let llama = model("llama-3-8b").unwrap();
        assert_eq!(counts(&Partition::cumulative(&llama, 8).unwrap()), [5, 4, 4, 5, 4, 4, 4, 2]);
        assert_eq!(counts(&Partition::cumulative(&llama, 32).unwrap()).iter().sum::<u32>(), 32);
        assert_eq!(Partition::cumulative(&llama, 33), None);
    }

    /// 16 layers of 4 x 2048² + 3 x 2048 x 8192 = 67.1 million and a head of 131,072 x 2048 = 4 layers. Eight stages
    /// have 2.5 layers each, so the head has a stage of its own, the seventh, and the eighth has only the loss.
    #[test]
    fn a_large_output_head_has_a_stage_of_its_own() {
        let mut model = model("llama-3-8b").unwrap();
        let module = &mut model.modules[0];
        (module.layers, module.hidden, module.heads, module.kv_heads, module.ffn) = (16, 2048, 32, 32, 8192);
        (module.head_size, module.vocab) = (None, 131_072);
        let cut = Partition::cumulative_blocks(&model, 8).unwrap();
        assert_eq!(counts(&cut), [3, 3, 2, 3, 2, 3, 0, 0]);
        let outputs: Vec<OutputPart> = cut.stages.iter().map(|ranges| ranges[0].output).collect();
        assert_eq!(outputs[5..], [OutputPart::Nothing, OutputPart::Head, OutputPart::Loss]);
        assert!(cut.stages[6][0].ends(&model) && !cut.stages[5][0].ends(&model) && !cut.stages[7][0].ends(&model));
        assert_eq!(counts(&Partition::cumulative_blocks(&model, 4).unwrap()), [6, 5, 5, 0]);
        assert_eq!(counts(&Partition::cumulative(&model, 4).unwrap()), [6, 5, 4, 1]);
        // Two stages: as every stage has layers, both cuts are equal.
        let [blocks, layers] =
            [Partition::cumulative_blocks(&model, 2), Partition::cumulative(&model, 2)].map(Option::unwrap);
        assert_eq!((counts(&blocks), counts(&layers)), (vec![11, 5], vec![11, 5]));
    }
}
