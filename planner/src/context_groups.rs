//! Context-parallel groups that change with every microbatch: DHP, dynamic hybrid parallelism.
//!
//! A rank is a replica of the model. Each microbatch splits the ranks anew into groups of any degree, long sequences
//! are cut over many ranks and short ones stay whole on one, and what is minimised is the time of the slowest group (DHP,
//! Eq. 2). [`plan`] cuts a global batch into microbatches that fit, forms atomic groups of sequences and gives them degrees,
//! the last step exactly ([`allocate`]). [`place`] puts groups on ranks, [`GroupPool`] counts which communication groups
//! have to be made, [`fit`] finds the coefficients of the cost in a profile. [`static_plan`] and [`megatron_balanced`] are
//! what it is compared with; a planner like FlexSP is [`plan`] with degrees that are powers of two.

mod allocation;
mod atomic;
mod baseline;
mod batch;
mod cost;
mod degrees;
mod fit;
mod placement;
mod pool;
#[cfg(test)]
mod tests;

pub use allocation::{Allocation, allocate, makespan_bound};
pub use atomic::AtomicGroup;
pub use baseline::{best_static_degree, megatron_balanced, static_degrees, static_plan};
pub use batch::{BatchPlan, Effort, Group, GroupError, GroupProblem, Grouping, Microbatch, Split, plan};
pub use cost::{Exchange, GroupCost, GroupTime, Load, RankMemory, Sequence};
pub use degrees::{AllowedDegrees, DegreeRule};
pub use fit::{Fit, FitError, Measured, TIMINGS_NEEDED, fit};
pub use placement::{PlacedGroup, Placement, place};
pub use pool::{GroupPool, PoolCount};
