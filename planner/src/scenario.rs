//! The immutable question: model, cluster, workload, training settings, planners, seed.

pub mod budget;
pub mod canonical;
pub mod parse;
mod planner_kind;
pub mod validate;

pub use canonical::ScenarioId;
pub use parse::parse;
pub(crate) use parse::pointer;
pub use planner_kind::PlannerKind;
pub use validate::{FieldError, ValidScenario};

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::model::Model;
use crate::training::{LayoutRequest, Training};
use crate::units::Bytes;
use crate::workload::Workload;

/// Name of the scenario format that this engine reads and writes.
pub const SCHEMA: &str = "scenario/1";

/// A scenario as it is written down. [`validate::ValidScenario`] is one that planners accept.
///
/// In files `model` and `cluster` may be `{"preset": "llama-2-7b"}`, with any field beside it replacing the
/// preset's; [`parse()`] fills them in, so that a stored scenario never depends on a preset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Format, "scenario/1".
    pub schema: String,
    /// A label for people; not part of the question and not part of the identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The model.
    pub model: Model,
    /// The cluster.
    pub cluster: Cluster,
    /// The workload.
    pub workload: Workload,
    /// Training settings.
    #[serde(default)]
    pub training: Training,
    /// Degrees that are fixed; what is absent is searched.
    #[serde(default)]
    pub layout: LayoutRequest,
    /// How much dynamic planners search.
    #[serde(default, skip_serializing_if = "SearchSettings::is_default")]
    pub search: SearchSettings,
    /// Planners to run, in the order of the question.
    pub planners: Vec<PlannerKind>,
    /// Seed of everything random.
    #[serde(default)]
    pub seed: u32,
    /// Global batches to judge the plans on.
    #[serde(default = "default_iterations")]
    pub iterations: u32,
    /// Stored profiles that figures of the cluster, or times given in place of predicted ones, come from, by identifier. A word
    /// about the figures: no prediction looks at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
}

impl Scenario {
    /// Memory of a device that a plan may use: all but the reserve.
    pub fn memory_limit(&self) -> Bytes {
        self.cluster.device.memory().saturating_sub(Bytes::from_gib(self.training.memory_reserve_gib))
    }

    /// The same question without the searches that take long, for an answer while somebody waits; `None` where it has none.
    pub fn sketch(&self) -> Option<Self> {
        let searches = self.search.rollouts > 0 && self.planners.iter().any(|planner| planner.searches_rankings());
        searches.then(|| Self { search: SearchSettings { rollouts: 0, ..self.search }, ..self.clone() })
    }
}

/// How much dynamic planners search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchSettings {
    /// Rankings that PipeWeaver interleaves for every replica of every batch.
    #[serde(default = "default_rollouts")]
    pub rollouts: u32,
    /// Most items of a sub-microbatch of the first module that reads or makes items; absent: as many as keep 95 % of
    /// the best efficiency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_microbatch: Option<u32>,
}

impl SearchSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self { rollouts: default_rollouts(), sub_microbatch: None }
    }
}

const fn default_rollouts() -> u32 {
    200
}

const fn default_iterations() -> u32 {
    8
}
