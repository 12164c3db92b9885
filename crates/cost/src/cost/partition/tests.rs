use proptest::prelude::*;

use super::*;
use planscope_core::model::presets::model;

fn counts(partition: &Partition) -> Vec<u32> {
    partition.stages.iter().map(|stage| stage.iter().map(LayerRange::len).sum()).collect()
}

#[test]
fn an_even_cut_needs_a_divisor() {
    let llama = model("llama-2-7b").unwrap();
    assert_eq!(counts(&Partition::even(&llama, 8).unwrap()), [4; 8]);
    assert_eq!(Partition::even(&llama, 5), None);
    assert_eq!(counts(&Partition::usual(&llama, 4, Framework::Torchtitan).unwrap()), [8, 9, 8, 7]);
    assert_eq!(counts(&Partition::usual(&llama, 5, Framework::Torchtitan).unwrap()), [6, 7, 7, 7, 5]);
    assert_eq!(counts(&Partition::usual(&llama, 1, Framework::Torchtitan).unwrap()), [32]);
    assert_eq!(Partition::usual(&llama, 34, Framework::Torchtitan), None, "the first stage has no layer");
    assert_eq!(layers_with_ends(32, 0, (1, 1)), None);
    assert_eq!(counts(&Partition::stated(&llama, &[9, 8, 8, 7]).unwrap()), [9, 8, 8, 7]);
    for wrong in [&[16, 15][..], &[u32::MAX, 33], &[]] {
        assert_eq!(Partition::stated(&llama, wrong), None, "{wrong:?}");
    }
    let vlm = model("vlm-s").unwrap();
    assert_eq!(Partition::even(&vlm, 5), None);
    assert_eq!(Partition::stated(&vlm, &[0, vlm.layers()]), None, "several modules");
}

/// The embedding and the output head have stages of their own; the third stage passes its input on.
#[test]
fn a_stated_stage_can_be_without_layers() {
    let llama = model("llama-2-7b").unwrap();
    let partition = Partition::stated(&llama, &[0, 16, 0, 16, 0]).unwrap();
    assert_eq!(counts(&partition), [0, 16, 0, 16, 0]);
    let ranges: Vec<LayerRange> = partition.stages.concat();
    assert_eq!(ranges.iter().map(LayerRange::begins).collect::<Vec<_>>(), [true, false, false, false, false]);
    assert_eq!(ranges.iter().map(|range| range.ends(&llama)).collect::<Vec<_>>(), [false, false, false, false, true]);
    assert_eq!(ranges[3].output, OutputPart::Nothing);
    // torchtitan counts the embedding and the output head as a layer each.
    assert_eq!(layers_with_ends(4, 6, (1, 1)), Some(vec![0, 1, 1, 1, 1, 0]));
    assert_eq!(layers_with_ends(4, 7, (1, 1)), None, "a stage without embedding, layers and head");
}

#[test]
fn a_balanced_cut_crosses_the_seam_where_the_weights_say() {
    let vlm = model("vlm-s").unwrap();
    let weight = |layer| ModuleWeight { layer, ..Default::default() };
    // 63 layers with weight 1 and 32 with weight 2 have a total weight of 127. The minimum
    // bottleneck on four stages is 32. The module boundary is in the second stage.
    let partition = Partition::balanced(&vlm, &[weight(1.0), weight(2.0)], 4).unwrap();
    assert_eq!(counts(&partition)[..2], [32, 31]);
    assert_eq!(partition.stages[1].len(), 1);
    assert_eq!(counts(&partition).iter().sum::<u32>(), 95);
}

#[test]
fn a_cut_within_limits_is_as_balanced_as_they_let_it_be() {
    let vlm = model("vlm-s").unwrap();
    let weights = [1.0, 2.0].map(|layer| ModuleWeight { layer, ..Default::default() });
    // At most 24 out of 95 layers per stage: stages with 24, 24, 24 and 23 layers. The last
    // stage has weight 46 of 127.
    let layer_limit = |max_layers: usize| move |_: usize, layers: Range<usize>| layers.len() <= max_layers;
    let cut = Partition::balanced_within(&vlm, &weights, 4, &layer_limit(24)).unwrap();
    assert!(counts(&cut).iter().all(|&layers| layers <= 24), "{:?}", counts(&cut));
    assert_eq!(Partition::balanced_within(&vlm, &weights, 4, &layer_limit(23)), None);
    // A limit that is not binding returns the same partition.
    assert_eq!(Partition::balanced_within(&vlm, &weights, 4, &layer_limit(95)), Partition::balanced(&vlm, &weights, 4));
    // The first stage fits only 10 layers.
    let first = |stage: usize, layers: Range<usize>| stage > 0 || layers.len() <= 10;
    assert_eq!(counts(&Partition::balanced_within(&vlm, &weights, 4, &first).unwrap())[0], 10);
}

#[test]
fn remainder_layers_go_to_the_ranks_with_less_work() {
    let t2v = model("t2v-s").unwrap();
    let weight = |layer, output| ModuleWeight { layer, output, ..Default::default() };
    // 28 layers on 5 x 4 stages: one per stage, and two of the remaining eight per rank, so 7
    // layers per rank.
    let even = Partition::by_module(&t2v, &[weight(1.0, 0.0), weight(3.0, 0.0)], 4, &[1, 5]).unwrap();
    let per_rank = |partition: &Partition, module: usize| -> Vec<u32> {
        let module_ranges = |rank| partition.stages_on(rank, 4).flatten().filter(|range| range.module == module);
        (0..4).map(|rank| module_ranges(rank).map(LayerRange::len).sum()).collect()
    };
    assert_eq!(per_rank(&even, 0), [8; 4]);
    assert_eq!(per_rank(&even, 1), [7; 4]);
    assert!(counts(&even)[4..].iter().all(|&layers| layers == 1 || layers == 2));
    // 63 layers with weight 2 on four stages, at most 16 per stage. The head with weight 1 in
    // the other module is on rank 3, which gets 15 layers.
    let vlm = model("vlm-s").unwrap();
    let head = Partition::by_module(&vlm, &[weight(2.0, 0.0), weight(1.0, 1.0)], 4, &[1, 1]).unwrap();
    assert_eq!(per_rank(&head, 0), [16, 16, 16, 15]);
    // An idle module is also distributed evenly.
    let idle = Partition::by_module(&t2v, &[weight(0.0, 0.0), weight(3.0, 0.0)], 4, &[2, 1]).unwrap();
    assert_eq!(per_rank(&idle, 0), [8; 4]);
    assert_eq!(Partition::by_module(&t2v, &[weight(1.0, 0.0); 2], 4, &[1, 8]), None);
}

proptest! {
    #[test]
    fn modules_by_themselves_are_complete_and_no_slower_than_a_contiguous_cut(
        encoder in 0.1_f64..5.0, backbone in 0.1_f64..5.0, head in 0.0_f64..9.0, ranks in 1_u32..9, chunks in 1_u32..4,
    ) {
        let vlm = model("vlm-s").unwrap();
        let weights = [
            ModuleWeight { layer: encoder, ..Default::default() },
            ModuleWeight { layer: backbone, output: head, ..Default::default() },
        ];
        let partition = Partition::by_module(&vlm, &weights, ranks, &[chunks, chunks]).unwrap();
        let time = |range: &LayerRange| {
            let weight = weights[range.module];
            f64::from(range.len()) * weight.layer + if range.ends(&vlm) { weight.output } else { 0.0 }
        };
        for (module, definition) in vlm.modules.iter().enumerate() {
            let ranges: Vec<LayerRange> =
                partition.stages.iter().flatten().copied().filter(|range| range.module == module).collect();
            prop_assert_eq!(ranges.len(), (ranks * chunks) as usize);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].first));
            prop_assert_eq!((ranges[0].first, ranges[ranges.len() - 1].end), (0, definition.layers));
            let single_module = Model { name: String::new(), modules: vec![definition.clone()] };
            let cut = Partition::balanced(&single_module, &weights[module..=module], ranks * chunks).unwrap();
            let slowest = |ranges: &[LayerRange]| ranges.iter().map(time).fold(0.0, f64::max);
            let contiguous: Vec<LayerRange> =
                cut.stages.into_iter().flatten().map(|range| LayerRange { module, ..range }).collect();
            prop_assert!(slowest(&ranges) <= slowest(&contiguous) * (1.0 + 1e-6));
        }
    }

    #[test]
    fn a_balanced_cut_is_complete_and_reaches_the_smallest_bottleneck(
        encoder in 0.1_f64..5.0, backbone in 0.1_f64..5.0, head in 0.0_f64..9.0, stages in 1_u32..20,
    ) {
        let vlm = model("vlm-s").unwrap();
        let weights = [
            ModuleWeight { layer: encoder, ..Default::default() },
            ModuleWeight { layer: backbone, output: head, ..Default::default() },
        ];
        let partition = Partition::balanced(&vlm, &weights, stages).unwrap();
        // The same as with a limit that always holds.
        let within = Partition::balanced_within(&vlm, &weights, stages, &|_, _| true).unwrap();
        prop_assert_eq!(&partition, &within);
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
        // No partition with the same number of stages is faster, except for rounding.
        let faster = Limits { bottleneck: slowest * (1.0 - 1e-6), fits: None }.greedy(&chain, 0, 0);
        prop_assert!(faster > stages as usize || stages == 1
            || slowest <= chain.iter().copied().fold(0.0, f64::max) * (1.0 + 1e-9));
    }
}
