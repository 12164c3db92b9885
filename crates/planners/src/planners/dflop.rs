//! Data-aware parallel layouts and microbatches (DFLOP).
//!
//! Encoder and backbone run on disjoint devices with separate <TP, PP, DP> degrees. [`optimize`]
//! chooses the degrees once, from throughput tables, memory tables and a data sample. [`partition`]
//! splits each global batch into microbatches with balanced load on both modules. [`Correction`]
//! adds a penalty for input shapes that run slower than the tables predict. [`Preprocessing`]
//! converts a data item into the input sizes for encoder and backbone. This module does not model
//! operators; the caller provides the tables.

pub mod communicator;
pub mod correction;
pub mod curve;
pub mod optimizer;
pub mod partition;
pub(crate) mod planner;
pub mod profile;

pub use communicator::{Round, Traffic};
pub use correction::{Anomalies, Correction, CorrectionSettings, Pipelines, ShapedItem, Simulated, simulate};
pub use curve::{Curve, CurveError};
pub use optimizer::{
    Configuration, ConfigurationEstimate, Degrees, Fixed, ItemWork, Optimized, OptimizerError, OptimizerInput,
    item_seconds, optimize, shortlist,
};
pub use partition::{Item, PartitionError, PartitionSettings, Partitioned, partition, partition_until};
pub(crate) use planner::has_encoder_and_backbone;
pub use profile::{ActivationTable, DegreeProfile, ModuleProfile, StateSize, StateTable};
