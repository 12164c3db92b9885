//! Comparison of the job that a log was written by with the job of a plan.

use api::run::RunPoint;
use planner::observed::{JobComparison, LoggedJob, PlannedJob, compare_jobs, median};

use super::Held;
use super::comparison::{kept, sifted};

/// Comparison of the job of a run with that of its plan; over one part of the run where `segment` is given.
pub(crate) fn compared_jobs(held: &Held, segment: Option<u32>) -> JobComparison {
    let sifted = sifted(&held.points);
    let kept = kept(&held.points, &sifted, segment);
    compare_jobs(&logged_job(held, &kept, segment), &planned_job(held))
}

/// The job of the plan.
pub(super) fn planned_job(held: &Held) -> PlannedJob {
    PlannedJob::new(held.scenario.scenario(), &held.planned, &held.batches)
}

/// Figures of a run that identify its job: medians over the `kept` steps; over all steps where none has a time.
pub(super) fn logged_job(held: &Held, kept: &[&RunPoint], segment: Option<u32>) -> LoggedJob {
    let own = |point: &&RunPoint| segment.is_none_or(|segment| point.segment == segment);
    let all: Vec<&RunPoint> = if kept.is_empty() { held.points.iter().filter(own).collect() } else { kept.to_vec() };
    let figure = |of: &dyn Fn(&RunPoint) -> Option<f64>| {
        let values: Vec<f64> = all.iter().filter_map(|point| of(point)).filter(|value| value.is_finite()).collect();
        median(&values)
    };
    LoggedJob {
        // Times derived from the plan's tokens would agree with the plan by construction.
        step_s: if held.has_step_times_of_plan { None } else { figure(&|point| point.step_s) },
        // A batch that grows at the start of a training: the last size is that of nearly all steps.
        global_batch: all.iter().rev().find_map(|point| point.global_batch).map(|samples| samples as f64),
        samples_per_s: figure(&|point| point.samples_per_s),
        tokens_per_s: figure(&|point| point.tokens_per_s),
        tokens_per_s_per_device: figure(&|point| point.tokens_per_s_per_device),
        devices: held.setup.devices.map(f64::from),
        sequence_length: held.setup.sequence_length.map(f64::from),
        layers: held.setup.layers.map(f64::from),
        hidden_size: held.setup.hidden_size.map(f64::from),
        tflops_per_device: figure(&|point| point.tflops_per_device),
        memory_gib: figure(&|point| point.memory_gib),
    }
}
