//! Runs that were observed, held against the plan that they run: what stands apart, how far prediction and measurement are from
//! each other, by phase too, and the factors that bring them together (docs/models.md, section 15).
//!
//! Nothing of it changes a prediction by itself: factors become overrides of a scenario that somebody asks for, which then says
//! so itself.

mod band;
mod factors;
mod flop_formula;
mod phases;
mod replan;
mod same_job;
mod shapes;
mod statistics;
#[cfg(test)]
mod tests;

pub use band::{Band, inside};
pub use factors::{Evaluation, Factors, FactorsError, Solved, Target, scaled, solve};
pub use flop_formula::{FlopFormula, StepFlops, step_flops};
pub use phases::{Phase, PhaseTimes, PredictedPhases, Timed, Whose, phase_times, predicted_phases};
pub use replan::{ReplanError, replan};
pub use same_job::{
    Agreement, BaseFormat, Correction, DeviceName, JobCheck, JobComparison, JobQuantity, LoggedJob, PlannedJob,
    StatedLayout, StatedPrecision, compare_jobs, corrected,
};
pub use shapes::{ShapePenalty, StepRatio, penalties};
pub use statistics::{Apart, Reason, Segment, Sifted, Step, median, sift};
