//! Fewest devices of each type that hold a model.

use serde::{Deserialize, Serialize};

use super::{FitResult, Watch, evaluate};
use crate::analysis::AnalysisError;
use planscope_core::cluster::presets;
use planscope_core::host::{Cancellation, Workers};
use planscope_plan::scenario::{FreeSetting, PlannerKind, SearchSettings, ValidScenario};

/// Maximum number of nodes in the search.
const MAX_NODES: u32 = 1024;

/// Fewest nodes of a device type, as a power of two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FewestDevices {
    /// Identifier of the cluster preset.
    pub preset: String,
    /// Device name.
    pub name: String,
    /// Devices; omitted if the model does not fit 1,024 nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u32>,
    /// Nodes; omitted if the model does not fit 1,024 nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Result on these devices.
    pub result: FitResult,
}

/// Fewest devices of all device types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeviceTable {
    /// Device types in ascending number of devices. Types that hold no plan come last.
    pub rows: Vec<FewestDevices>,
    /// True if the time limit was reached before all device types were searched.
    pub is_partial: bool,
}

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
        (scenario.training.context_parallel, scenario.training.expert_parallel) = (1, 1);
        // The quick search tries no and full recomputation, which decide whether a plan fits.
        scenario.search = SearchSettings { rollouts: 0, ..scenario.search };
        let mut nodes = 1;
        let mut row = None;
        while nodes <= MAX_NODES {
            scenario.cluster = preset.cluster.clone();
            scenario.cluster.nodes = nodes;
            let document = serde_json::to_value(&scenario).expect("a scenario has only text keys");
            let evaluated = match evaluate(&document, valid, PlannerKind::OneFOneB, &watch) {
                Ok(Some(evaluated)) => evaluated,
                Ok(None) => break,
                // A type that is not completely searched has no row.
                Err(AnalysisError::TimeIsUp) => {
                    is_partial = true;
                    break 'types;
                }
                Err(error) => return Err(error),
            };
            let is_found = evaluated.result.iteration_s.is_some();
            row = Some((is_found.then_some(nodes), evaluated.result));
            if is_found {
                break;
            }
            nodes *= 2;
        }
        if let Some((nodes, result)) = row {
            let devices = nodes.map(|nodes| nodes * preset.cluster.devices_per_node);
            rows.push(FewestDevices {
                preset: preset.id.to_owned(),
                name: preset.cluster.name.clone(),
                devices,
                nodes,
                result,
            });
        }
    }
    rows.sort_by_key(|row| row.devices.unwrap_or(u32::MAX));
    Ok(DeviceTable { rows, is_partial })
}
