//! Memory strategies of layers, chosen for the order at hand (PipeWeaver, section 6.3).
//!
//! Keeping activations costs memory, recomputing or offloading them costs time, and how much of either matters changes
//! with every batch. For one rank with a fixed order of forwards and backwards, [`candidates`] picks a few combinations
//! of strategies per stage pair, a [`TuningProblem`] says which pairs are held together, and [`solve`] chooses one
//! candidate per pair so that memory stays within the limit at every instant and the sum of times is small.
//!
//! Greedy changes and a Lagrangian bound settle nearly every question within the paper's gap of 5 %; branch and bound and
//! HiGHS are there for smaller gaps and narrow limits.

mod branch;
mod candidates;
#[cfg(test)]
mod examples;
mod greedy;
mod problem;
#[cfg(all(feature = "highs", not(target_family = "wasm")))]
mod program;
mod relaxation;
mod solve;
#[cfg(test)]
mod tests;

pub use candidates::{Candidate, LayerOption, candidates};
pub use problem::{Event, Moment, PairCost, ProblemError, TuningProblem};
#[cfg(all(feature = "highs", not(target_family = "wasm")))]
pub use solve::integer_program;
pub use solve::{Infeasible, Settings, Solver, Tuning, solve};
