//! Compares the job of a log with the job of a plan.

use api::run::{RunPoint, StepTimeOrigin};
use ingest::log::JobSetup;
use planner::run_comparison::{JobComparison, LoggedJob, PlannedJob, StepProducts, compare_jobs, median};

use super::RunContext;
use super::comparison::{selected_points, sifted};

/// Compares the job of a run, or of the part in `segment`, with the job of its plan.
pub(crate) fn compared_jobs(context: &RunContext, segment: Option<u32>) -> JobComparison {
    let sifted = sifted(&context.points);
    let selected = selected_points(&context.points, &sifted, segment);
    compare(context, &selected, segment)
}

/// Comparison of the jobs over the `kept` steps. Of parts that state different jobs it is that of the first part that is another job
/// than the plan, or has another layout.
pub(super) fn compare(context: &RunContext, selected: &[&RunPoint], segment: Option<u32>) -> JobComparison {
    let plan = planned_job(context);
    let mut compared = setups(context, segment)
        .into_iter()
        .map(|setup| compare_jobs(&logged_job(context, selected, segment, setup), &plan))
        .collect::<Vec<_>>();
    let other_job = compared.iter().position(|job| !job.is_same_job());
    let index = other_job.or_else(|| compared.iter().position(|job| !job.is_same_layout())).unwrap_or(0);
    if index < compared.len() { compared.swap_remove(index) } else { JobComparison::default() }
}

/// Distinct setups in the selected part, or in all parts with points.
pub(super) fn setups(context: &RunContext, segment: Option<u32>) -> Vec<JobSetup> {
    let part_setup =
        |part: u32| context.setups.get(part as usize).or_else(|| context.setups.last()).copied().unwrap_or_default();
    if let Some(part) = segment {
        return vec![part_setup(part)];
    }
    let mut setups = Vec::new();
    let mut last = None;
    for point in &context.points {
        if last.replace(point.segment) != Some(point.segment) && !setups.contains(&part_setup(point.segment)) {
            setups.push(part_setup(point.segment));
        }
    }
    if setups.is_empty() {
        setups.push(part_setup(0));
    }
    setups
}

pub(super) fn planned_job(context: &RunContext) -> PlannedJob {
    PlannedJob::new(context.scenario.scenario(), &context.planned, &context.batches)
}

/// Identifies the job of a run by medians over the `kept` steps, or over all steps if none has a
/// time.
fn logged_job(context: &RunContext, selected: &[&RunPoint], segment: Option<u32>, setup: JobSetup) -> LoggedJob {
    let is_sparse = setup.experts.is_some_and(|experts| experts > 0);
    let feed_forward = setup.expert_feed_forward_size.filter(|_| is_sparse).or(setup.feed_forward_size);
    let is_in_segment = |point: &&RunPoint| segment.is_none_or(|segment| point.segment == segment);
    let all: Vec<&RunPoint> =
        if selected.is_empty() { context.points.iter().filter(is_in_segment).collect() } else { selected.to_vec() };
    let figure = |metric: &dyn Fn(&RunPoint) -> Option<f64>| {
        let values: Vec<f64> = all.iter().filter_map(|point| metric(point)).filter(|value| value.is_finite()).collect();
        median(&values)
    };
    // Times derived from the plan's tokens would always agree with the plan.
    let step_s = |point: &RunPoint| point.step_s.filter(|_| !context.has_plan_step_times);
    // The median of the products per step: rate and time are inverse, so the product of their medians is that of no step if
    // steps differ.
    let product = |rate: fn(&RunPoint) -> Option<f64>| figure(&|point| Some(rate(point)? * step_s(point)?));
    let is_by_clock = |point: &&RunPoint| {
        matches!(point.step_s_origin, Some(StepTimeOrigin::Clock | StepTimeOrigin::Elapsed)) && point.step_s.is_some()
    };
    let memory = |point: &RunPoint| point.memory_gib.into_iter().chain(point.reserved_gib).max_by(f64::total_cmp);
    LoggedJob {
        step_s: figure(&step_s),
        per_step: StepProducts {
            samples: product(|point| point.samples_per_s),
            tokens: product(|point| point.tokens_per_s),
            tokens_per_device: product(|point| point.tokens_per_s_per_device),
            tflop_per_device: product(|point| point.tflops_per_device),
        },
        is_clock_step: all.iter().any(is_by_clock),
        global_batch: all
            .iter()
            .rev()
            .find_map(|point| point.global_batch)
            .map(|samples| samples as f64)
            .or(setup.global_batch.map(f64::from)),
        samples_per_s: figure(&|point| point.samples_per_s),
        tokens_per_s: figure(&|point| point.tokens_per_s),
        tokens_per_s_per_device: figure(&|point| point.tokens_per_s_per_device),
        devices: setup.devices.map(f64::from),
        sequence_length: setup.sequence_length.map(f64::from),
        layers: setup.layers.map(f64::from),
        hidden_size: setup.hidden_size.map(f64::from),
        feed_forward_size: feed_forward.map(f64::from),
        attention_heads: setup.attention_heads.map(f64::from),
        kv_heads: setup.kv_heads().map(f64::from),
        experts: setup.experts.map(f64::from),
        vocabulary: setup.padded_vocabulary.map(f64::from),
        trained_parameters: setup.trained_parameters.map(|count| count as f64),
        precision: setup.precision,
        layout: setup.layout,
        device: setup.device,
        tflops_per_device: figure(&|point| point.tflops_per_device),
        // Megatron-LM prints the memory once, in the warm-up.
        memory_gib: figure(&memory)
            .or_else(|| context.points.iter().filter(is_in_segment).filter_map(memory).max_by(f64::total_cmp)),
    }
}
