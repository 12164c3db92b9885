//! Settings that the planners of groups accept, and what each may choose.

use crate::planners::dhp::AllowedDegrees;
use planscope_core::model::Model;
use planscope_core::training::ContextExchange;
use planscope_plan::outcome::Layout;
use planscope_plan::scenario::{PlannerKind, Scenario};

pub(super) const fn algorithm(kind: PlannerKind) -> &'static str {
    match kind {
        PlannerKind::StaticContext => {
            "one ring degree for all groups, the fastest on a representative batch; sequences packed by memory"
        }
        PlannerKind::Ulysses | PlannerKind::DeepSpeed => {
            "one all-to-all degree that divides the heads, the fastest on a representative batch"
        }
        PlannerKind::BalancedContext => {
            "degree of a sequence from its length, rounded up to a power of two; greedy assignment to ranks within 5 % of the mean"
        }
        PlannerKind::FlexSp => {
            "microbatches of similar lengths and equal tokens; sequences in all-to-all groups of powers of two, minimum makespan"
        }
        PlannerKind::WlbLlm => {
            "one ring degree for all groups; sequences packed by work to variable length; each document sharded over all ranks of its group"
        }
        PlannerKind::PowerOfTwoContext => "atomic groups by memory or time; degrees, powers of two, by exact search",
        _ => {
            "microbatches that fit; atomic groups by memory or time; degrees of any size by exact search of the makespan"
        }
    }
}

/// Returns the requested TP degree, or all divisors of a node's size.
pub(super) fn tensor_degrees(scenario: &Scenario) -> Vec<u32> {
    let devices = scenario.cluster.devices();
    let node = scenario.cluster.devices_per_node;
    match scenario.layout.tensor {
        Some(tensor) => vec![tensor],
        None => (1..=node).filter(|tensor| node.is_multiple_of(*tensor) && devices.is_multiple_of(*tensor)).collect(),
    }
}

/// Returns an explanation if grouping by length does not apply to the scenario.
pub(super) fn does_not_apply(scenario: &Scenario) -> Option<&'static str> {
    scenario.model.video().is_some().then_some(
        "does not apply: a sequence contains the caption of a video and not the video, so its length does not determine its cost",
    )
}

/// Returns the rule that the scenario or this TP degree violates.
pub(super) fn broken_rule(scenario: &Scenario, tensor: u32) -> Option<String> {
    if scenario.layout.pipeline.is_some_and(|pipeline| pipeline > 1) {
        return Some("a rank is a whole replica of the model, so PP must be 1".to_owned());
    }
    if scenario.training.context_parallel > 1 {
        return Some(
            "the planner chooses the context-parallel degree of every group, so the setting must be 1".to_owned(),
        );
    }
    if scenario.training.expert_parallel > 1 {
        return Some("groups of variable degree do not allow fixed expert-parallel groups".to_owned());
    }
    if !scenario.cluster.devices().is_multiple_of(tensor) {
        return Some("TP does not divide the devices".to_owned());
    }
    scenario.model.modules.iter().find_map(|module| {
        let (kind, count) = module.sharded_heads().find(|(_, count)| count % tensor != 0)?;
        Some(format!("TP does not divide the {count} {kind} of {}", module.name))
    })
}

/// Returns true if one degree is used for all groups.
pub(super) const fn is_static(kind: PlannerKind) -> bool {
    matches!(kind, PlannerKind::StaticContext | PlannerKind::Ulysses | PlannerKind::DeepSpeed | PlannerKind::WlbLlm)
}

/// Returns the exchanges that the planner uses. DHP uses the faster one of each group.
pub(super) const fn exchanges(kind: PlannerKind) -> &'static [ContextExchange] {
    match kind {
        PlannerKind::Ulysses | PlannerKind::DeepSpeed | PlannerKind::FlexSp => &[ContextExchange::AllToAll],
        PlannerKind::Dhp => &[ContextExchange::Ring, ContextExchange::AllToAll],
        _ => &[ContextExchange::Ring],
    }
}

/// Returns the degrees that the planner and the exchange allow.
pub(super) fn degrees(kind: PlannerKind, exchange: ContextExchange, model: &Model, layout: Layout) -> AllowedDegrees {
    let powers = matches!(kind, PlannerKind::PowerOfTwoContext | PlannerKind::BalancedContext | PlannerKind::FlexSp);
    let heads = |degree: u32| {
        exchange == ContextExchange::Ring
            || model.modules.iter().all(|module| module.supports_all_to_all(layout.tensor, degree))
    };
    AllowedDegrees::that(|degree| (!powers || degree.is_power_of_two()) && heads(degree), layout.data)
}
