//! Rounds of microbatches, one per backbone copy. All encoder copies split the images of a round.

use crate::planners::module_layouts::wave_pieces;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::load::Instances;
use planscope_plan::plan::Part;
use planscope_plan::scenario::Scenario;

/// Splits all microbatches into parts. Microbatches are numbered by round. The images or clips in a
/// round are concatenated and split into equal pieces, one per encoder copy. A piece has a part for
/// each microbatch that it overlaps.
pub(crate) fn parts(
    scenario: &Scenario,
    batch: &PackedBatch,
    microbatches: &[Vec<u32>],
    (encoders, backbones): (u32, u32),
) -> Vec<Part> {
    let model = &scenario.model;
    let count = |sequences: &Vec<u32>, module: usize| {
        let contents = batch.contents(sequences);
        Instances::new(&contents, &model.modules[module], scenario.workload.packing).count()
    };
    let mut parts = Vec::new();
    for (round, members) in microbatches.chunks(backbones as usize).enumerate() {
        let counts: Vec<u32> = members.iter().map(|bucket| count(bucket, 0)).collect();
        let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        let mut before = 0_u64;
        for (copy, (sequences, &images)) in (0_u32..).zip(members.iter().zip(&counts)) {
            let microbatch = (round as u32) * backbones + copy;
            let behind = before + u64::from(images);
            for (copy, range) in wave_pieces(all, before..behind, encoders) {
                parts.push(Part { microbatch, module: 0, first: range.start, end: range.end, copy });
            }
            before = behind;
            parts.push(Part { microbatch, module: 1, first: 0, end: count(sequences, 1), copy });
        }
    }
    parts
}
