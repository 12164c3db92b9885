//! What an operator, a layer, a stage and a collective cost in time and memory.
//!
//! Every formula stands in docs/models.md with its units and source; the code names the section.

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

pub use boundary::{BoundaryKind, Crossing};
pub use collective::Group;
pub use layer::{LayerCost, LayerModel};
pub use load::{Instances, MicrobatchLoad, ModuleLoad};
pub use partition::Partition;
pub use pipeline::{PipelineCosts, StateMemory, UniformTimes};
pub use pricing::{ContextSettings, DegreeSettings, Pricing};
pub use strategy::{LayerStrategy, StrategyMix};
pub use table::{LayerTable, Place};
