//! Memory strategies of layers, chosen for the order at hand (PipeWeaver, section 6.3).
//!
//! Keeping activations costs memory, recomputing or offloading them costs time, and how much of either matters changes
//! with every batch. For one rank with a fixed order of forwards and backwards, [`candidates`] picks a few combinations
//! of strategies per stage pair, a [`TuningProblem`] says which pairs are held together, and [`solve`] chooses one
//! candidate per pair so that memory stays within the limit at every instant and the sum of times is small.
//!
//! Greedy changes and a Lagrangian bound reach the paper's gap of 5 % on nearly every problem. Branch and bound closes
//! smaller gaps and finds choices under narrow memory limits.

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
