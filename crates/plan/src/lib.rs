//! Documents of Planscope: the scenario a user states, the plan of a planner, and the outcome.

pub mod certainty;
pub mod compare;
pub mod estimate;
pub mod execution_file;
mod memory_risk;
pub mod observer;
pub mod outcome;
pub mod plan;
pub mod scenario;
pub mod utilisation;
