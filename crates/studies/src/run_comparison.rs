//! Comparison of observed runs with their plan, where it plans again or uses DFLOP's correction.

mod replan;
mod shapes;
#[cfg(test)]
mod tests;

pub use planscope_analysis::run_comparison::*;
pub use replan::{ReplanError, replan};
pub use shapes::{ShapePenalty, StepRatio, penalties};
