//! Parallel layouts and microbatches that follow the data: DFLOP.
//!
//! Encoder and backbone stand on devices of their own, each with its own <TP, PP, DP>. [`optimize`] chooses those degrees once, from
//! tables of throughput and memory and a sample of the data; [`partition`] deals every global batch to microbatches that are
//! equally long on both modules; [`Correction`] tells it of shapes that take longer than the tables say. What an item is to either
//! module, [`Preprocessing`] says. None of it knows operators: tables are given.

pub mod communicator;
pub mod correction;
pub mod curve;
pub mod optimizer;
pub mod partition;
pub mod profile;
pub mod shapes;

pub use communicator::{Round, Traffic};
pub use correction::{Anomalies, Correction, CorrectionSettings, Pipelines, ShapedItem, Simulated, simulate};
pub use curve::{Curve, CurveError};
pub use optimizer::{
    Choice, Configuration, Degrees, Fixed, ItemWork, Optimized, OptimizerError, OptimizerInput, item_seconds, optimize,
    shortlist,
};
pub use partition::{Item, PartitionError, PartitionSettings, Partitioned, partition, partition_until};
pub use profile::{ActivationTable, DegreeProfile, Held, ModuleProfile, StateTable};
pub use shapes::{ImageSize, InputShape, Media, Preprocessing};
