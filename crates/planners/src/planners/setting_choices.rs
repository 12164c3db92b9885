//! Values that a free setting can have in a scenario. A setting that is not free has the value of the scenario.

use planscope_core::training::{ContextExchange, Framework};
use planscope_plan::scenario::{FreeSetting, Scenario};
use std::ops::RangeInclusive;

/// Minimum tokens per device of a context-parallel group. Shorter shares are dominated by the exchange.
const MIN_CONTEXT_TOKENS: u32 = 1024;
/// The same with more devices than sequences in a batch: shorter shares are then the only use of some devices.
const MIN_CONTEXT_TOKENS_OF_FEW: u32 = 128;
/// Maximum context-parallel degree.
const MAX_CONTEXT: u32 = 64;
/// Maximum expert-parallel degree.
const MAX_EXPERT: u32 = 128;

/// Returns the context-parallel degrees with their exchanges: 1, and powers of two that divide the devices and leave
/// enough tokens per device.
pub(crate) fn contexts(scenario: &Scenario) -> Vec<(u32, ContextExchange)> {
    let training = &scenario.training;
    let own = (training.context_parallel, training.context_exchange);
    if !scenario.is_free(FreeSetting::ContextParallel) {
        return vec![own];
    }
    let devices = scenario.cluster.devices();
    let length = scenario.workload.context_length;
    let has_few_sequences = scenario.workload.global_batch < devices;
    let min_tokens = if has_few_sequences { MIN_CONTEXT_TOKENS_OF_FEW } else { MIN_CONTEXT_TOKENS };
    let is_possible = |degree: &u32| devices.is_multiple_of(*degree) && length / degree >= min_tokens;
    let mut contexts = vec![(1, own.1)];
    for degree in (1..=MAX_CONTEXT.ilog2()).map(|power| 1 << power).take_while(is_possible) {
        contexts.push((degree, ContextExchange::Ring));
        if scenario.model.modules.iter().all(|module| module.supports_all_to_all(1, degree)) {
            contexts.push((degree, ContextExchange::AllToAll));
        }
    }
    contexts
}

/// Returns the expert-parallel degrees: powers of two that divide the experts of all modules.
pub(crate) fn expert_degrees(scenario: &Scenario) -> Vec<u32> {
    if !scenario.is_free(FreeSetting::ExpertParallel) {
        return vec![scenario.training.expert_parallel];
    }
    let experts = experts(scenario);
    let devices = scenario.cluster.devices();
    let is_possible = |degree: &u32| {
        *degree == 1
            || (!experts.is_empty()
                && *degree <= devices
                && experts.iter().all(|experts| experts.is_multiple_of(*degree)))
    };
    (0..=MAX_EXPERT.ilog2()).map(|power| 1 << power).filter(is_possible).collect()
}

/// Returns the tensor-parallel degrees of experts: that of the model, and 1.
pub(crate) fn expert_tensor_degrees(scenario: &Scenario) -> Vec<Option<u32>> {
    if !scenario.is_free(FreeSetting::ExpertTensorParallel) {
        return vec![scenario.training.expert_tensor_parallel];
    }
    let has_choice = !experts(scenario).is_empty() && scenario.layout.tensor != Some(1);
    [None].into_iter().chain(has_choice.then_some(Some(1))).collect()
}

/// Returns the ZeRO stages of pipelines. Offload of parameters needs stage 3.
pub(crate) fn zero_stages(scenario: &Scenario) -> RangeInclusive<u32> {
    if !scenario.is_free(FreeSetting::Zero) {
        let own = scenario.training.zero_stage();
        return own..=own;
    }
    if scenario.training.parameter_offload { 3..=3 } else { 1..=3 }
}

/// Returns whether planners choose sequence parallelism. torchtitan and FSDP always use it with tensor parallelism.
pub(crate) fn chooses_sequence_parallelism(scenario: &Scenario) -> bool {
    let has_switch =
        matches!(scenario.training.framework, Framework::Megatron | Framework::MegatronDeepspeed | Framework::Nanotron);
    scenario.is_free(FreeSetting::SequenceParallel) && has_switch && scenario.layout.tensor != Some(1)
}

fn experts(scenario: &Scenario) -> Vec<u32> {
    scenario.model.modules.iter().filter_map(|module| module.moe).map(|moe| moe.experts).collect()
}
