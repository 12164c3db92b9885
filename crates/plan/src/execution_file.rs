//! Execution plan file: all values that determine the time and the memory of one iteration of a plan.
//!
//! The file has everything that a simulation needs, so that it can be repeated without the scenario.
//! docs/formats.md describes the fields.

mod digests;
mod layout;
mod run;

pub use layout::{ActivationSettings, Degrees, ModuleDegrees, PipelineDegrees, RankGroup, ShardingSettings};
pub use run::{FileStage, MicrobatchCosts, RankRun, Run};

use std::collections::BTreeMap;

use planscope_core::timeline::MicrobatchSamples;
use serde::{Deserialize, Serialize};

use crate::scenario::PlannerKind;

/// Format name.
pub const FORMAT: &str = "planscope-execution-plan";
/// Format version.
pub const VERSION: u32 = 1;

/// One iteration of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionFile {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Program and version that wrote the file.
    pub engine: String,
    /// Scenario identifier.
    pub scenario: String,
    /// Planner.
    pub planner: PlannerKind,
    /// Planner that made the plan, if `planner` chooses among the plans of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PlannerKind>,
    /// Iteration, from 0.
    pub iteration: u32,
    /// Number of devices.
    pub devices: u32,
    /// Module names, in the order of the module indices.
    pub modules: Vec<String>,
    /// Degrees of parallelism.
    pub layout: Degrees,
    /// Degrees per module, if they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub module_layouts: Vec<ModuleDegrees>,
    /// Recomputation and offload of layers without a strategy of their own.
    pub activations: ActivationSettings,
    /// Sharding, offload and packing. Files of older programs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharding: Option<ShardingSettings>,
    /// Duration of the iteration, at least 1 ns.
    pub iteration_ns: u64,
    /// Peak memory per device in bytes, by rank: the maximum over all replicas.
    pub peak_bytes: Vec<u64>,
    /// Different executions. Replicas with equal work on equal links share one.
    pub runs: Vec<Run>,
    /// Data-parallel replicas.
    pub replicas: Vec<Replica>,
    /// Digests of fields, by name ([`ExecutionFile::field_digests`]). Files of older programs have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, String>,
}

/// A data-parallel replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replica {
    /// Index into [`ExecutionFile::runs`].
    pub run: u32,
    /// Samples per microbatch, in the order of [`Run::microbatches`].
    pub microbatches: Vec<MicrobatchSamples>,
}
