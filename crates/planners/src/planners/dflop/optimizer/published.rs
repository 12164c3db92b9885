//! Selection rule of the published program (github.com/BDAI-Research/DFLOP), which differs from
//! DFLOP Alg. 1.
//!
//! Per pair of degrees, the program evaluates a single number of microbatches: the minimum for
//! which a microbatch of mean items does not exceed the maximum item on either module. The memory
//! check uses the size of the maximum items, times 1.25. A pair replaces the current choice only if
//! it has fewer microbatches and its time is below 1.1 times the current time.

use super::degrees::Split;
use super::durations::Durations;
use super::{Configuration, OptimizerInput};

/// Safety factor for memory.
const BUFFER: f64 = 1.25;
/// Accepted slowdown factor for a strategy with fewer microbatches.
const SLOWER: f64 = 1.1;

/// Returns the published program's choice, evaluated by this module's durations.
pub(crate) fn select(input: &OptimizerInput, durations: &Durations<'_>, splits: &[Split]) -> Option<Configuration> {
    let there_are = || input.items.iter().filter(|item| item.weight > 0.0);
    let max_batch = there_are().map(|item| item.batch).fold(0.0, f64::max);
    let max_length = there_are().map(|item| item.length).fold(0.0, f64::max);
    let mean = durations.mean();
    let mut best: Option<(f64, Configuration)> = None;
    for split in splits {
        for &encoder in &split.encoders {
            for &backbone in &split.backbones {
                let sides = durations.sides(encoder, backbone);
                let batch = max_batch * f64::from(backbone.data) / f64::from(encoder.data);
                let bytes = Durations::microbatch_bytes(&sides, batch, max_length);
                if bytes.0.max(bytes.1) * BUFFER > input.memory {
                    continue;
                }
                let share =
                    |data: u32, count: u32| f64::from(input.global_batch) / (f64::from(count) * f64::from(data));
                let is_small = |&count: &u32| {
                    let (encoder_share, backbone_share) = (share(encoder.data, count), share(backbone.data, count));
                    let has_item = encoder_share >= 1.0 && backbone_share >= 1.0;
                    has_item && mean.batch * encoder_share <= max_batch && mean.length * backbone_share <= max_length
                };
                let (fewest, max_count) = input.microbatches(backbone.data);
                let microbatches = (fewest..=max_count).find(is_small).unwrap_or(max_count);
                let time = durations.mean_item_time(&sides, microbatches);
                let is_better = best.is_none_or(|(known, configuration)| {
                    time < known * SLOWER && microbatches < configuration.microbatches
                });
                if is_better {
                    best = Some((time, Configuration { encoder, backbone, microbatches }));
                }
            }
        }
    }
    best.map(|(_, configuration)| configuration)
}
