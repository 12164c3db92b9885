//! Fewest devices of each type that hold a model.

use super::{AnalysisError, DeviceTable, FewestDevices, FitResult, Watch, evaluate};
use planscope_core::cluster::{Cluster, presets};
use planscope_core::host::{Cancellation, Workers};
use planscope_plan::scenario::{FreeSetting, PlannerKind, Scenario, SearchSettings, ValidScenario};

/// Maximum number of nodes in the search.
const MAX_NODES: u32 = 1024;

/// Returns the fewest devices of every type on which 1F1B has a plan. Layout and settings are free. The device type of the
/// scenario is searched first, because a time limit can end the search.
pub fn fewest_devices(
    valid: &ValidScenario,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<DeviceTable, AnalysisError> {
    let watch = Watch::new(workers, cancellation);
    let mut scenario = valid.scenario().clone();
    scenario.free = FreeSetting::ALL.to_vec();
    scenario.free_layout();
    scenario.training.context_parallel = 1;
    scenario.search = SearchSettings { rollouts: 0, ..scenario.search };
    let (mut rows, mut is_partial) = (Vec::new(), false);
    let mut types = presets::clusters();
    types.sort_by_key(|preset| preset.cluster.name != scenario.cluster.name);
    for preset in &types {
        let mut evaluate = |devices: u32| {
            let cluster = cluster_of(&preset.cluster, devices);
            let on_devices = Scenario { cluster, ..scenario.clone() };
            let found = fastest(&on_devices, valid, &watch)?;
            Ok(found.map(|(result, settings)| (result.iteration_s.is_some().then_some(devices), result, settings)))
        };
        match fewest_of(preset.cluster.devices_per_node, &mut evaluate) {
            Ok(None) => {}
            Ok(Some((devices, result, settings))) => rows.push(FewestDevices {
                preset: preset.id.to_owned(),
                name: preset.cluster.name.clone(),
                devices,
                nodes: devices.map(|devices| devices / preset.cluster.devices_per_node).filter(|&nodes| nodes > 0),
                settings,
                result,
            }),
            // A type that is not completely searched has no row.
            Err(AnalysisError::TimeIsUp) => {
                is_partial = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    rows.sort_by_key(|row| row.devices.unwrap_or(u32::MAX));
    Ok(DeviceTable { rows, types: types.len() as u32, is_partial })
}

/// Number of devices if a plan fits, its result or the need, and settings.
type Found = (Option<u32>, FitResult, String);

/// Searches the fewest devices with a plan: whole nodes, or one node halved any number of times. `evaluate` plans with
/// a number of devices. A larger number can have no plan where a smaller one has, since a plan must use all devices; the
/// bisection then finds one of the boundaries. Returns the result on one node or more if nothing fits.
fn fewest_of(
    per_node: u32,
    evaluate: &mut dyn FnMut(u32) -> Result<Option<Found>, AnalysisError>,
) -> Result<Option<Found>, AnalysisError> {
    let fits = |found: &Option<Found>| matches!(found, Some((Some(_), ..)));
    let mut fewest = evaluate(per_node)?;
    let (mut none, mut nodes) = (1, 1);
    while fewest.is_some() && !fits(&fewest) && nodes < MAX_NODES {
        (none, nodes) = (nodes, 2 * nodes);
        match evaluate(nodes * per_node)? {
            None => break,
            larger => fewest = larger,
        }
    }
    if !fits(&fewest) {
        return Ok(fewest);
    }
    while nodes - none > 1 {
        let middle = none.midpoint(nodes);
        match evaluate(middle * per_node)? {
            found if fits(&found) => (nodes, fewest) = (middle, found),
            _ => none = middle,
        }
    }
    let mut devices = per_node;
    while nodes == 1 && devices.is_multiple_of(2) {
        devices /= 2;
        match evaluate(devices)? {
            found if fits(&found) => fewest = found,
            _ => break,
        }
    }
    Ok(fewest)
}

/// Returns a cluster of whole nodes, or a part of a node with its share of the host.
fn cluster_of(preset: &Cluster, devices: u32) -> Cluster {
    let per_node = preset.devices_per_node.min(devices);
    let share = f64::from(per_node) / f64::from(preset.devices_per_node);
    Cluster {
        nodes: devices / per_node,
        devices_per_node: per_node,
        host_memory_gib: preset.host_memory_gib.map(|gib| share * gib),
        host_memory_gb_per_s: preset.host_memory_gb_per_s.map(|rate| share * rate),
        ..preset.clone()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fewest of nodes with 8 devices, where numbers of devices with `fits` have a plan.
    fn fewest(fits: impl Fn(u32) -> bool) -> Option<u32> {
        let mut evaluate = |devices: u32| {
            let found = fits(devices).then_some(devices);
            Ok(Some((found, FitResult::default(), String::new())))
        };
        fewest_of(8, &mut evaluate).unwrap().unwrap().0
    }

    #[test]
    fn the_fewest_devices_are_part_of_a_node_or_whole_nodes() {
        assert_eq!(fewest(|devices| devices >= 1), Some(1));
        assert_eq!(fewest(|devices| devices >= 3), Some(4));
        assert_eq!(fewest(|devices| devices >= 8), Some(8));
        assert_eq!(fewest(|devices| devices >= 9), Some(16));
        assert_eq!(fewest(|devices| devices > 8 * 40), Some(8 * 41));
        assert_eq!(fewest(|devices| devices >= 8 * 1024), Some(8 * 1024));
        assert_eq!(fewest(|devices| devices > 8 * 1024), None);
    }

    #[test]
    fn part_of_a_node_has_its_share_of_the_host() {
        let node = Cluster { host_memory_gib: Some(2048.0), ..presets::clusters()[0].cluster.clone() };
        let quarter = cluster_of(&node, node.devices_per_node / 4);
        assert_eq!((quarter.nodes, quarter.host_memory_gib), (1, Some(512.0)));
        assert_eq!(cluster_of(&node, 3 * node.devices_per_node), Cluster { nodes: 3, ..node });
    }
}
