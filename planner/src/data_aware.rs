//! Parallel layouts and microbatches that follow the data: DFLOP.
//!
//! Encoder and backbone stand on devices of their own, each with its own <TP, PP, DP>. [`partition`] deals every global batch to
//! microbatches that are equally long on both.

pub mod partition;

pub use partition::{Item, PartitionError, PartitionSettings, Partitioned, partition};
