//! Layer tuning: selects memory strategies per layer for a fixed action order
//! (PipeWeaver Sec. 6.3).
//!
//! Storing activations costs memory; recomputation and offloading cost time. The best trade-off
//! changes per batch. For a rank with a fixed order of forwards and backwards, [`candidates`]
//! generates a few strategy combinations per stage pair, a [`TuningProblem`] describes which pairs
//! are in memory simultaneously, and [`solve`] selects a candidate per pair. The selection respects
//! the memory limit at all times and minimizes the total time.
//!
//! Greedy changes and a Lagrangian bound reach the paper's 5 % gap on nearly all problems. Branch
//! and bound closes smaller gaps, and finds solutions under tight memory limits.

mod branch;
mod candidates;
#[cfg(test)]
mod examples;
mod greedy;
mod problem;
mod relaxation;
mod solve;
#[cfg(test)]
mod tests;

pub use candidates::{Candidate, LayerOption, candidates};
pub use problem::{Event, Moment, PairCost, ProblemError, TuningProblem};
pub use solve::{Infeasible, Settings, Solver, Tuning, solve};
