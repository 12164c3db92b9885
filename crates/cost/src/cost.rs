//! Cost model: time and memory for operators, layers, pipeline stages and collectives.
//!
//! docs/models.md lists all formulas with units and sources. The code cites its sections.

mod attention_kernels;
pub mod boundary;
pub mod collective;
pub mod graph;
pub mod kernel;
pub mod layer;
pub mod load;
pub mod memory;
pub mod operator;
pub mod overrides;
pub mod partition;
pub mod pipeline;
pub mod pricing;
pub mod strategy;
pub mod table;

pub use attention_kernels::has_rate;
pub use boundary::Crossing;
pub use collective::Group;
pub use layer::{LayerCost, LayerModel};
pub use load::{Instances, MicrobatchLoad, ModuleLoad};
pub use partition::Partition;
pub use pipeline::{PipelineCosts, StateMemory, UniformTimes};
pub use pricing::{ContextSettings, DegreeSettings, Pricing};
pub use strategy::{LayerStrategy, StrategyMix};
pub use table::{LayerTable, ReplicaLayout};
