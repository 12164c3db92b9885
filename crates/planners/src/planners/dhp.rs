//! Context-parallel groups that change per microbatch: dynamic hybrid parallelism (DHP).
//!
//! A rank is a model replica. Each microbatch splits the ranks into groups with any degree. Long
//! sequences use several ranks, short sequences stay on one rank, and the planner minimizes the
//! time of the slowest group (DHP Eq. 2). [`plan`] splits a global batch into microbatches that fit
//! into memory, forms atomic groups of sequences, and assigns degrees (DHP Sec. 4.3); the last
//! step is exact ([`allocate`]). [`place`] maps groups to ranks, [`GroupPool`] counts the
//! communication groups to create, and [`fit`] computes the cost coefficients from a profile.
//! [`static_plan`] and [`megatron_balanced`] are baselines. [`variable_length_plan`] packs by work (WLB-LLM).
//! Plans at power-of-two degrees are [`plan`] with these degrees; FlexSP also cuts microbatches by length.

mod allocation;
mod atomic;
mod baseline;
mod batch;
mod cost;
mod degrees;
mod fit;
pub(crate) mod group_costs;
mod placement;
pub(crate) mod planner;
mod pool;
#[cfg(test)]
mod tests;
mod variable_packing;

pub use allocation::{Allocation, allocate, makespan_bound};
pub use atomic::AtomicGroup;
pub use baseline::{best_static_degree, megatron_balanced, static_degrees, static_plan};
pub use batch::{BatchPlan, Effort, Group, GroupError, GroupProblem, Grouping, Microbatch, Split, plan, plan_within};
pub use cost::{Exchange, GroupCost, GroupTime, Load, RankMemory, Sequence};
pub use degrees::{AllowedDegrees, DegreeRule};
pub use fit::{Fit, FitError, Measured, TIMINGS_NEEDED, fit};
pub use placement::{PlacedGroup, Placement, assign_ranks};
pub use pool::{GroupPool, PoolCount};
pub use variable_packing::variable_length_plan;
