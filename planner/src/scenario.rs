//! The immutable question: model, cluster, workload, training settings, planners, seed.

pub mod canonical;
pub mod parse;
pub mod validate;

pub use canonical::ScenarioId;
pub use parse::parse;
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
    /// Planners to run, in the order of the question.
    pub planners: Vec<PlannerKind>,
    /// Seed of everything random.
    #[serde(default)]
    pub seed: u32,
    /// Global batches to judge the plans on.
    #[serde(default = "default_iterations")]
    pub iterations: u32,
}

impl Scenario {
    /// Memory of a device that a plan may use: all but the reserve.
    pub fn memory_limit(&self) -> Bytes {
        self.cluster.device.memory().saturating_sub(Bytes::from_gib(self.training.memory_reserve_gib))
    }
}

const fn default_iterations() -> u32 {
    8
}

/// A planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlannerKind {
    /// Best static layout under the GPipe schedule.
    Gpipe,
    /// Best static layout under the 1F1B schedule.
    #[serde(rename = "1f1b")]
    OneFOneB,
    /// Best static layout under the interleaved schedule (VPP).
    Interleaved,
    /// Wait-free cyclic schedule, ordered anew for every global batch.
    WaitFreeCyclic,
}

impl PlannerKind {
    /// Every planner, in the order in which pickers list them.
    pub const ALL: [Self; 4] = [Self::Gpipe, Self::OneFOneB, Self::Interleaved, Self::WaitFreeCyclic];

    /// Stable identifier, as in JSON and URLs.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Gpipe => "gpipe",
            Self::OneFOneB => "1f1b",
            Self::Interleaved => "interleaved",
            Self::WaitFreeCyclic => "wait_free_cyclic",
        }
    }

    /// The planner of that identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Name shown to people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Gpipe => "GPipe, static",
            Self::OneFOneB => "Megatron-LM 1F1B, static",
            Self::Interleaved => "Megatron-LM interleaved, static",
            Self::WaitFreeCyclic => "Wait-free cyclic, dynamic",
        }
    }
}
