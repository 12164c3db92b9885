//! Memory of a rank over its actions.

use planscope_pipeline::execution_plan::PlanActionKind;
use planscope_plan::execution_file::{RankRun, Run};

/// Returns the peak memory of a rank in bytes, from the order of its actions. A valid table and
/// valid actions are required.
///
/// Activations are held from the start of the forward to the end of the full backward or weight
/// gradient. Temporary memory is held during the full backward, or from the start of the input
/// gradient to the end of the weight gradient.
pub(super) fn peak(run: &Run, rank: &RankRun) -> u64 {
    let mut held = rank.static_bytes;
    let mut peak = held;
    for action in rank.actions.iter().filter(|action| action.action.computes()) {
        let costs = &run.microbatches[action.microbatch as usize];
        let cell = (action.stage - costs.first_stage) as usize;
        let (activation, transient) = (costs.activation_bytes[cell], costs.transient_bytes[cell]);
        match action.action {
            PlanActionKind::ForwardStage => {
                held = held.saturating_add(activation);
                peak = peak.max(held);
            }
            PlanActionKind::InputGradStage => {
                held = held.saturating_add(transient);
                peak = peak.max(held);
            }
            PlanActionKind::WeightGradStage => {
                held = held.saturating_sub(activation.saturating_add(transient));
            }
            _ => {
                peak = peak.max(held.saturating_add(transient));
                held = held.saturating_sub(activation);
            }
        }
    }
    peak
}
