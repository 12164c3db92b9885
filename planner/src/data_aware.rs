//! Parallel layouts and microbatches that follow the data: DFLOP.
//!
//! Encoder and backbone stand on devices of their own, each with its own <TP, PP, DP>. [`optimize`] chooses those degrees once, from
//! tables of throughput and memory and a sample of the data; [`partition`] deals every global batch to microbatches that are
//! equally long on both modules.

pub mod communicator;
pub mod curve;
pub mod optimizer;
pub mod partition;
pub mod profile;
pub mod shapes;

pub use communicator::{Round, Traffic};
pub use curve::{Curve, CurveError};
pub use optimizer::{
    Choice, Configuration, Degrees, ItemWork, Optimized, OptimizerError, OptimizerInput, item_seconds, optimize,
};
pub use partition::{Item, PartitionError, PartitionSettings, Partitioned, partition};
pub use shapes::{ImageSize, InputShape, Media, Preprocessing};
pub use profile::{ActivationTable, DegreeProfile, ModuleProfile, StateTable};
