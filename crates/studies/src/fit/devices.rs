//! Fewest devices of each type that hold a model.

use super::{AnalysisError, DeviceTable, FewestDevices, FitResult, Watch, evaluate};
use planscope_core::cluster::presets;
use planscope_core::host::{Cancellation, Workers};
use planscope_plan::scenario::{FreeSetting, PlannerKind, Scenario, SearchSettings, ValidScenario};

/// Maximum number of nodes in the search.
const MAX_NODES: u32 = 1024;

/// Returns the fewest nodes of every device type on which 1F1B has a plan. Layout and settings are free.
pub fn fewest_devices(
    valid: &ValidScenario,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<DeviceTable, AnalysisError> {
    let watch = Watch::new(workers, cancellation);
    let mut rows = Vec::new();
    let mut is_partial = false;
    'types: for preset in presets::clusters() {
        let mut scenario = valid.scenario().clone();
        scenario.free = FreeSetting::ALL.to_vec();
        scenario.free_layout();
        scenario.training.context_parallel = 1;
        scenario.search = SearchSettings { rollouts: 0, ..scenario.search };
        let mut nodes = 1;
        let mut row = None;
        while nodes <= MAX_NODES {
            scenario.cluster = preset.cluster.clone();
            scenario.cluster.nodes = nodes;
            let (result, settings) = match fastest(&scenario, valid, &watch) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                // A type that is not completely searched has no row.
                Err(AnalysisError::TimeIsUp) => {
                    is_partial = true;
                    break 'types;
                }
                Err(error) => return Err(error),
            };
            let is_found = result.iteration_s.is_some();
            row = Some((is_found.then_some(nodes), result, settings));
            if is_found {
                break;
            }
            nodes *= 2;
        }
        if let Some((nodes, result, settings)) = row {
            let devices = nodes.map(|nodes| nodes * preset.cluster.devices_per_node);
            rows.push(FewestDevices {
                preset: preset.id.to_owned(),
                name: preset.cluster.name.clone(),
                devices,
                nodes,
                settings,
                result,
            });
        }
    }
    rows.sort_by_key(|row| row.devices.unwrap_or(u32::MAX));
    Ok(DeviceTable { rows, is_partial })
}

/// ZeRO stage, offloaded shares of the optimizer state and of the activations, and description, from fast to lean.
const MEMORY_SETTINGS: [(u32, f64, f64, &str); 4] = [
    (1, 0.0, 0.0, ""),
    (3, 0.0, 0.0, "ZeRO 3"),
    (3, 1.0, 0.0, "ZeRO 3, optimizer in host memory"),
    (2, 1.0, 1.0, "ZeRO 2, optimizer and activations in host memory"),
];
/// Expert-parallel degrees that are tried.
const EXPERT_DEGREES: [u32; 2] = [1, 8];

/// Plans with 1F1B and each of the memory settings, without and with full recomputation (the quick search). The first
/// settings with a plan are used, with the faster expert-parallel degree; if nothing fits, the result of the first ones.
/// `None` if nothing can be planned.
fn fastest(
    scenario: &Scenario,
    valid: &ValidScenario,
    watch: &Watch<'_>,
) -> Result<Option<(FitResult, String)>, AnalysisError> {
    let has_experts = scenario.model.modules.iter().any(|module| module.moe.is_some());
    let degrees = &EXPERT_DEGREES[..if has_experts { 2 } else { 1 }];
    let mut first = None;
    for (zero, optimizer_offload, activation_offload, settings) in MEMORY_SETTINGS {
        let mut best: Option<(FitResult, String)> = None;
        for &expert_parallel in degrees {
            let mut changed = scenario.clone();
            let training = &mut changed.training;
            (training.zero, training.distributed_optimizer) = (Some(zero), true);
            (training.optimizer_offload, training.activation_offload) = (optimizer_offload, activation_offload);
            training.expert_parallel = expert_parallel;
            let document = serde_json::to_value(&changed).expect("a scenario has only text keys");
            let Some(evaluated) = evaluate(&document, valid, PlannerKind::OneFOneB, watch)? else { continue };
            let result = evaluated.result;
            let is_faster = |(best, _): &(FitResult, String)| {
                result.iteration_s.is_some_and(|seconds| best.iteration_s.is_none_or(|other| seconds < other))
            };
            if best.as_ref().is_none_or(is_faster) {
                let experts = (expert_parallel > 1).then(|| format!("EP {expert_parallel}"));
                let parts = [Some(settings.to_owned()).filter(|text| !text.is_empty()), experts];
                best = Some((result, parts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
            }
        }
        if best.as_ref().is_some_and(|(best, _)| best.iteration_s.is_some()) {
            return Ok(best);
        }
        first = first.or(best);
    }
    Ok(first)
}
