//! The immutable scenario: model, cluster, workload, training settings, planners, seed.

pub mod budget;
pub mod canonical;
pub mod parse;
mod planner_kind;
mod sampler;
mod settings;
pub mod validate;

pub use canonical::ScenarioId;
pub use parse::{parse, parse_value, pointer};
pub use planner_kind::{PlannerFamily, PlannerInfo, PlannerKind};
pub use sampler::Sampler;
pub use settings::{FreeSetting, PlanSettings};
pub use validate::{FieldError, ValidScenario};

use serde::{Deserialize, Serialize};

use crate::memory_risk;
use planscope_core::cluster::Cluster;
use planscope_core::model::Model;
use planscope_core::training::{LayoutRequest, Training};
use planscope_core::units::Bytes;
use planscope_core::workload::Workload;

/// Scenario schema name.
pub const SCHEMA: &str = "scenario/1";

/// A scenario as stored in a file. [`validate::ValidScenario`] is the validated form that planners
/// accept.
///
/// In files, `model` and `cluster` may be `{"preset": "llama-2-7b"}`. Additional fields override
/// the preset's fields. [`parse()`] expands presets, so that a stored scenario never depends on a
/// preset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Schema name, "scenario/1".
    pub schema: String,
    /// Display title. Does not affect the plan or the identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Model.
    pub model: Model,
    /// Cluster.
    pub cluster: Cluster,
    /// Workload.
    pub workload: Workload,
    /// Training settings.
    #[serde(default)]
    pub training: Training,
    /// Fixed parallel degrees. The planner searches all other degrees.
    #[serde(default)]
    pub layout: LayoutRequest,
    /// Settings that every planner may choose. Others have the values of this scenario, for all planners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub free: Vec<FreeSetting>,
    /// Highest probability of running out of memory that a plan may have, more than 0 and at most 0.5. Default: a plan
    /// may fill the device memory minus the reserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory_risk: Option<f64>,
    /// Fixed number of layers of each pipeline stage, in the order of the forward pass: PP x VPP numbers. With one
    /// module, a stage can have none: the first stage has the embedding and the last one the output head. Default: equal
    /// stages, or the split that is usual in the framework.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers_per_stage: Vec<u32>,
    /// Search settings for dynamic planners.
    #[serde(default, skip_serializing_if = "SearchSettings::is_default")]
    pub search: SearchSettings,
    /// Planners to run, in output order.
    pub planners: Vec<PlannerKind>,
    /// Random seed.
    #[serde(default)]
    pub seed: u32,
    /// Number of global batches used for evaluation.
    #[serde(default = "default_iterations")]
    pub iterations: u32,
    /// Identifiers of stored profiles that provided the cluster figures or the time overrides. For
    /// information only; predictions do not use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
}

impl Scenario {
    /// Returns the memory limit per device: device memory minus the reserve, or the largest predicted peak with the
    /// allowed probability of running out of memory if that is less.
    pub fn memory_limit(&self) -> Bytes {
        let device = self.cluster.device.memory();
        let unreserved = device.saturating_sub(Bytes::from_gib(self.training.memory_reserve_gib));
        let at_risk = |risk| Bytes::from_gib(memory_risk::largest_peak(self.cluster.device.memory_gib, risk));
        self.max_memory_risk.map_or(unreserved, |risk| unreserved.min(at_risk(risk)))
    }

    /// Changes the memory of a device, so that the memory limit is `limit_gib`. The risk is not limited.
    pub fn set_memory_limit(&mut self, limit_gib: f64) {
        self.max_memory_risk = None;
        self.cluster.device.memory_gib = limit_gib + self.training.memory_reserve_gib;
    }

    /// Frees the degrees and the layers per stage.
    pub fn free_layout(&mut self) {
        self.layout = LayoutRequest::default();
        self.layers_per_stage.clear();
    }

    /// Returns the same scenario without expensive searches, for a fast draft. `None` if it has no
    /// such search.
    pub fn sketch(&self) -> Option<Self> {
        let is_expensive = |planner: &PlannerKind| planner.searches_rankings() || *planner == PlannerKind::Best;
        let searches = self.search.rollouts > 0 && (self.planners.iter().any(is_expensive) || !self.free.is_empty());
        searches.then(|| Self { search: SearchSettings { rollouts: 0, ..self.search }, ..self.clone() })
    }
}

/// Search settings for dynamic planners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchSettings {
    /// Rankings that PipeWeaver interleaves per replica and batch. 0 shortens all searches: `best` tries four
    /// planners, and of the free settings only recomputation is tried, none or full.
    #[serde(default = "default_rollouts")]
    pub rollouts: u32,
    /// Maximum items per sub-microbatch in the first module that has item inputs or outputs.
    /// Default: the minimum size that reaches 95 % of the maximum efficiency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_microbatch: Option<u32>,
    /// Maximum number of steps of `best`: combinations of planner and settings that it tries. After the limit it
    /// continues until it has a plan. Default: all combinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_steps: Option<u32>,
}

impl SearchSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self { rollouts: default_rollouts(), sub_microbatch: None, best_steps: None }
    }
}

const fn default_rollouts() -> u32 {
    200
}

const fn default_iterations() -> u32 {
    8
}
