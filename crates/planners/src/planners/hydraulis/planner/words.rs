//! Decision texts for scheme-based planners.

use super::profile::Profiled;
use super::{OptimizerSharding, Setting};
use crate::planners::measured_layers;
use planscope_core::training::ContextExchange;
use planscope_cost::cost::overrides::AtDegrees;
use planscope_plan::scenario::PlannerKind;

pub(crate) const fn algorithm(kind: PlannerKind) -> &'static str {
    match kind {
        PlannerKind::StaticStrategy => {
            "one homogeneous <TP,PP,CP> by exhaustive simulation of a representative batch; sequences packed to the \
             context length, microbatches assigned round-robin"
        }
        PlannerKind::HotSpa => {
            "sequences grouped by length, one homogeneous strategy for each interval, run in sequence; strategies and intervals by \
             exhaustive simulation of sample batches; packed to the context length and assigned round-robin"
        }
        PlannerKind::HydraulisBase => {
            "one homogeneous strategy; sequences dispatched by Eq. 3 and packed to the context length"
        }
        PlannerKind::HydraulisPacking => "one homogeneous strategy; sequences dispatched by Eq. 3 and packed by Eq. 1",
        PlannerKind::HydraulisStatic => {
            "one heterogeneous strategy of those proposed by Eq. 4; sequences dispatched by Eq. 3 and packed by Eq. 1"
        }
        _ => {
            "strategies proposed once by Eq. 4; every batch dispatched by Eq. 3 and packed by Eq. 1 under each of them; the fastest \
             is run"
        }
    }
}

/// Formats a strategy in the paper's notation from the pipeline count per scheme.
pub(crate) fn strategy(schemes: &[Profiled], copies: &[u32]) -> String {
    let mut used: Vec<(&Profiled, u32)> =
        schemes.iter().zip(copies.iter().copied()).filter(|(_, count)| *count > 0).collect();
    used.sort_by_key(|(known, _)| {
        let scheme = known.scheme;
        std::cmp::Reverse((scheme.stage_devices(), scheme.pipeline, scheme.tensor))
    });
    let parts: Vec<String> = used.iter().map(|(known, count)| format!("{count}x{}", known.scheme)).collect();
    parts.join(" + ")
}

/// Describes the number of schemes and the fit errors.
pub(crate) fn profile(setting: &Setting<'_>) -> String {
    let schemes = &setting.schemes;
    let mean = schemes.iter().map(|known| known.error.0).sum::<f64>() / schemes.len().max(1) as f64;
    let worst = schemes.iter().max_by(|a, b| a.error.1.total_cmp(&b.error.1));
    let worst =
        worst.map_or_else(String::new, |known| format!(", at most {:.1} % ({})", known.error.1 * 100.0, known.scheme));
    let able = schemes.iter().filter(|known| known.cost.max_len >= setting.max_length);
    let smallest = able.min_by_key(|known| (known.scheme.devices(), std::cmp::Reverse(known.cost.max_len)));
    let smallest = smallest.map_or_else(String::new, |known| {
        format!(
            " {} is the smallest scheme that fits {} tokens (MaxLen {}).",
            known.scheme, setting.max_length, known.cost.max_len
        )
    });
    format!(
        "{} schemes fit a sequence; T(l) fitted to the operator graph, mean error {:.1} %{worst}.{smallest}",
        schemes.len(),
        mean * 100.0
    )
}

/// Describes the use of a sequence length profile, if present.
pub(crate) fn measured(setting: &Setting<'_>) -> Option<String> {
    let degrees = setting.schemes.iter().map(|known| AtDegrees {
        tensor: known.scheme.tensor,
        context: known.scheme.context,
        exchange: Some(ContextExchange::Ring),
    });
    measured_layers::summary(setting.context.scenario, &degrees.collect::<Vec<_>>())
}

/// Describes the optimizer sharding.
pub(crate) fn optimizer(setting: &Setting<'_>) -> Option<String> {
    let devices = setting.context.scenario.cluster.devices();
    (setting.optimizer == OptimizerSharding::AllDevices).then(|| {
        format!(
            "Optimizer state sharded over all {devices} devices; parameters are pulled, gradients reduced and pushed."
        )
    })
}
