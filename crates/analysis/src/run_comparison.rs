//! Comparison of observed runs with their plan: outliers, prediction errors (also per phase), and
//! scale factors that match prediction and measurement (docs/models.md, section 15).
//!
//! This module does not change predictions. Scale factors become cost overrides of a scenario only
//! on request, and the scenario shows them.

mod band;
mod factors;
mod flop_formula;
mod phases;
mod same_job;
mod statistics;
#[cfg(test)]
mod tests;

pub use band::{Band, inside};
pub use factors::{Evaluation, Factors, FactorsError, Solved, Target, scaled, solve};
pub use flop_formula::{FlopFormula, StepFlops, step_flops};
pub use phases::{
    Phase, PhaseTimes, PredictedPhases, Timed, TimerRanks, contains_waits, forward_contains_reading, phase_times,
    predicted_phases,
};
pub use same_job::{
    Agreement, BaseFormat, Correction, DeviceName, JobCheck, JobComparison, JobQuantity, LoggedJob, PlannedJob,
    StatedLayout, StatedModel, StatedPrecision, StepProducts, compare_jobs, corrected, product_peak_tflops,
};
pub use statistics::{Change, OutlierStep, Reason, Segment, Sifted, Step, differing_thirds, median, sift};
