//! Compares a run with its plan: quantities with confidence bands, outliers, parts and phases.

use std::collections::BTreeMap;

use api::run::{
    Comparison, Outlier, OutlierReason, PhaseResidual, PhaseTime, Prediction, PredictionBand, Quantity, RunPoint,
    SegmentSummary, StepTimeChange, StepTimeOrigin,
};
use planner::certainty;
use planner::outcome::{BatchSummary, Planned};
use planner::run_comparison::{
    Agreement, Band, Change, JobComparison, JobQuantity, Phase, PhaseTimes, PredictedPhases, Reason, Sifted, Step,
    Timed, TimerRanks, contains_waits, inside, median, phase_times, predicted_phases, sift,
};
use planner::scenario::Scenario;

use super::RunContext;
use super::job::{compare, planned_job, setups};
use super::{batches, contradictions, pauses, trend};

/// Comparison of a run with its plan; of one part of the run where `segment` is given. It has no differences where both are
/// different jobs or have different layouts.
pub(crate) fn compared(context: &RunContext, segment: Option<u32>) -> Comparison {
    let sifted = sifted(&context.points);
    let selected = selected_points(&context.points, &sifted, segment);
    let scenario = context.scenario.scenario();
    let mut notes = context.notes.clone();
    let plan = planned_job(context);
    let job = compare(context, &selected, segment);
    if setups(context, segment).len() > 1 {
        notes.push("Parts of the run state different jobs: choose a part to compare it alone.".to_owned());
    }
    if segment.is_none() {
        notes.extend(parts_note(&sifted));
    }
    notes.extend(batches::notes(&context.points, segment));
    notes.extend(rows_note(&context.points, &sifted, segment));
    let formula = job.formulas.first().copied();
    let (mut phases, phase_notes) = phase_residuals(context, &selected, &context.planned);
    notes.extend(phase_notes);
    notes.extend(pauses::note(&context.points, &sifted, segment));
    notes.extend(trend::note(&context.points, &sifted, segment));
    notes.extend(contradictions::notes(context, &selected, &phases));
    if context.points.iter().any(|point| point.tflops_per_device.is_some()) {
        notes.push(formula_note(&job));
    }
    let in_part: Vec<&RunPoint> =
        context.points.iter().filter(|point| segment.is_none_or(|segment| point.segment == segment)).collect();
    let mut predictions = predictions(
        scenario,
        &context.planned,
        &context.batches,
        (&selected[..], &in_part[..]),
        &LogRatios { flops: plan.flops_ratio(formula), tokens_per_step: tokens_per_step(&job) },
    );
    if job.is_same_job() {
        notes.extend(layout_note(&job));
        notes.extend(memory_note(&predictions, &in_part));
    }
    if !job.is_comparable() {
        for prediction in &mut predictions {
            prediction.error = None;
            prediction.inside = None;
            prediction.next = None;
        }
        for phase in &mut phases {
            phase.predicted_s = None;
        }
    }
    Comparison {
        run: context.run.clone(),
        scenario: context.scenario.id().to_string(),
        planner: context.planner,
        plan: context.plan(),
        job,
        predictions,
        outliers: outliers(&context.points, &sifted),
        segments: segments(&context.points, &sifted),
        segment,
        phases,
        notes,
    }
}

/// States how many rows the medians are of, and that few rows can be of the warm-up.
fn rows_note(points: &[RunPoint], sifted: &Sifted, segment: Option<u32>) -> Option<String> {
    let changes = changes(sifted);
    let is_in_segment = |index: &usize| {
        segment.is_none_or(|segment| points[*index].segment == segment) && is_present(&changes, points, *index)
    };
    let regular: Vec<usize> = sifted.regular.iter().copied().filter(is_in_segment).collect();
    let left_out: Vec<Reason> =
        sifted.outliers.iter().filter(|outlier| is_in_segment(&outlier.index)).map(|outlier| outlier.reason).collect();
    let warm_up = left_out.iter().filter(|&&reason| reason == Reason::WarmUp).count();
    let rows = |count: usize| if count == 1 { "1 row".to_owned() } else { format!("{count} rows") };
    let first = points.get(*regular.first()?)?;
    if regular.len() >= MIN_ROWS {
        let others = left_out.len() - warm_up;
        return Some(format!(
            "Measured values are medians over {} of the log; left out: {warm_up} of the warm-up, {others} far from the median.{}",
            rows(regular.len()),
            origin_of(&regular.iter().map(|&index| &points[index]).collect::<Vec<_>>())
        ));
    }
    if first.step_s_origin == Some(StepTimeOrigin::RunAverage) {
        return None;
    }
    let warning = if warm_up == 0 {
        "It can contain compilation and warm-up, so it can be far above the time of later steps"
    } else {
        "The steps after the warm-up are few"
    };
    Some(format!(
        "The measured step time is of {} of the log, from step {}. {warning}: give a log with at least {} rows of steps.",
        rows(regular.len()),
        first.step,
        MIN_ROWS + 1
    ))
}

/// States the most frequent origin of step times that the log does not print.
fn origin_of(points: &[&RunPoint]) -> String {
    let count = |origin| points.iter().filter(|point| point.step_s_origin == origin).count();
    let origin = points.iter().map(|point| point.step_s_origin).max_by_key(|&origin| count(origin)).flatten();
    origin.map_or_else(String::new, |origin| format!(" Their step time is the {}.", origin.name()))
}

/// Fewest regular rows whose median is not doubted.
const MIN_ROWS: usize = 3;

/// Relative difference of the medians of two parts from which on one median for both says little.
const PARTS_DIFFER: f64 = 0.10;

/// A note if the parts of a run have different step times, so that the median over all of them may be that of no part.
fn parts_note(sifted: &Sifted) -> Option<String> {
    let medians = sifted.segments.iter().filter_map(|part| part.median_s);
    let (min_s, max_s) = medians.fold((f64::INFINITY, 0.0_f64), |(min, max), s| (min.min(s), max.max(s)));
    (max_s > min_s * (1.0 + PARTS_DIFFER)).then(|| {
        format!(
            "Parts of the run have different step times: their medians range from {min_s:.3} s to {max_s:.3} s. The figures are medians over \
             all parts: choose a part to compare it alone."
        )
    })
}

/// A reserved memory this far outside the 80 % interval is not an error of the prediction.
const MEMORY_TOLERANCE: f64 = 1.1;

/// Compares the memory of the log with the 80 % interval of the reserved memory. Allocated memory is less than reserved memory.
fn memory_note(predictions: &[Prediction], points: &[&RunPoint]) -> Option<String> {
    let band = &predictions.iter().find(|prediction| prediction.quantity == Quantity::Memory)?.band;
    let peak =
        |metric: fn(&RunPoint) -> Option<f64>| points.iter().filter_map(|point| metric(point)).max_by(f64::total_cmp);
    let (reserved, allocated) = (peak(|point| point.reserved_gib), peak(|point| point.memory_gib));
    let is_low = reserved.is_some_and(|gib| gib * MEMORY_TOLERANCE < band.low);
    let gib = reserved.or(allocated).filter(|gib| is_low || *gib > MEMORY_TOLERANCE * band.high)?;
    let kind = if reserved.is_some() { "reserved" } else { "allocated" };
    let (side, causes) = if is_low {
        ("below", "more recomputation, a smaller microbatch, more sharding or offloading")
    } else {
        ("above", "less recomputation, a larger microbatch, less sharding or separate attention kernels")
    };
    Some(format!(
        "The log states {gib:.1}\u{202f}GiB of {kind} memory, {side} the 80\u{202f}% interval of the plan ({:.1} to {:.1}\u{202f}GiB). The run \
         can have {causes} than the configuration: then its step time differs too.",
        band.low, band.high
    ))
}

/// The layouts of run and plan, where they differ.
fn layout_note(job: &JobComparison) -> Option<String> {
    let check = job.checks.iter().find(|check| check.agreement == Agreement::OtherLayout)?;
    Some(format!("The plan has another layout than the run, so no differences are given. {}", check.consequence))
}

/// Describes the formula for the TFLOP/s in a log.
fn formula_note(job: &JobComparison) -> String {
    let flops = job.checks.iter().find(|check| check.quantity == JobQuantity::FlopsPerStep);
    match job.formulas.as_slice() {
        [] if flops.is_none_or(|check| check.measured.is_none()) => {
            "The formula of the TFLOP/s of the log is not checked: this needs a step time that does not follow from the plan.".to_owned()
        }
        [] => "No known formula gives the TFLOP/s of the log for this model: its trainer counts other operations."
            .to_owned(),
        [formula] => {
            format!("TFLOP/s of the log count {}; the plan's figure is given by the same formula.", formula.title())
        }
        [formula, others @ ..] => {
            let others: Vec<&str> = others.iter().map(|formula| formula.title()).collect();
            format!(
                "TFLOP/s of the log agree best with: {}. Within the tolerance they also agree with: {}. The plan's figure is given by the \
                 first formula.",
                formula.title(),
                others.join("; ")
            )
        }
    }
}

/// Returns the points used for comparison: timed, not outliers, in the selected part, and after the last change of the step time.
pub(super) fn selected_points<'a>(points: &'a [RunPoint], sifted: &Sifted, segment: Option<u32>) -> Vec<&'a RunPoint> {
    let changes = changes(sifted);
    let is_selected = |index: &&usize| {
        segment.is_none_or(|segment| points[**index].segment == segment) && is_present(&changes, points, **index)
    };
    sifted.regular.iter().filter(is_selected).map(|&index| &points[index]).collect()
}

/// Returns the index of the first step with the present step time, for the parts in which it changes.
pub(super) fn changes(sifted: &Sifted) -> BTreeMap<u32, usize> {
    sifted.segments.iter().filter_map(|part| Some((part.segment, part.change?.index))).collect()
}

/// True if the step has the present step time of its part.
pub(super) fn is_present(changes: &BTreeMap<u32, usize>, points: &[RunPoint], index: usize) -> bool {
    changes.get(&points[index].segment).is_none_or(|&since| index >= since)
}

/// Separates regular steps from outliers. Where the global batch size changes, steps with another size than the last one have no
/// time to compare.
pub(super) fn sifted(points: &[RunPoint]) -> Sifted {
    let changing = batches::changing(points);
    let step = |point: &RunPoint| Step {
        segment: point.segment,
        step: point.step,
        seconds: point.step_s.filter(|_| batches::is_last(&changing, point)),
    };
    sift(&points.iter().map(step).collect::<Vec<_>>())
}

fn outliers(points: &[RunPoint], sifted: &Sifted) -> Vec<Outlier> {
    let outlier = |outlier_step: &planner::run_comparison::OutlierStep| {
        let point = &points[outlier_step.index];
        Some(Outlier {
            row: point.row,
            segment: point.segment,
            step: point.step,
            step_s: point.step_s?,
            deviations: outlier_step.deviations,
            reason: match outlier_step.reason {
                Reason::WarmUp => OutlierReason::WarmUp,
                Reason::Slow => OutlierReason::Slow,
                Reason::Fast => OutlierReason::Fast,
            },
        })
    };
    sifted.outliers.iter().filter_map(outlier).collect()
}

fn segments(points: &[RunPoint], sifted: &Sifted) -> Vec<SegmentSummary> {
    let change = |change: Change| StepTimeChange {
        step: points[change.index].step,
        before_s: change.before_s,
        after_s: change.after_s,
    };
    let summary = |part: &planner::run_comparison::Segment| SegmentSummary {
        segment: part.segment,
        first_step: part.first_step,
        last_step: part.last_step,
        points: part.points,
        median_step_s: part.median_s,
        change: part.change.map(change),
    };
    sifted.segments.iter().map(summary).collect()
}

/// Values of the log's job that convert between its quantities and those of the plan.
struct LogRatios {
    /// Operations of the log's formula by those of the plan.
    flops: f64,
    /// Tokens per step, if the log states them without a rate.
    tokens_per_step: Option<f64>,
}

impl LogRatios {
    /// Tokens per second of a point by its step time.
    fn tokens_per_s(&self, point: &RunPoint) -> Option<f64> {
        Some(self.tokens_per_step? / point.step_s.filter(|&step_s| step_s > 0.0)?)
    }
}

/// Largest ratio of the log's tokens per step to those of the plan. More of the same job are padding, which the rates of the
/// plan leave out.
const MAX_TOKENS_RATIO: f64 = 1.1;

/// Tokens per step that the log states.
fn tokens_per_step(job: &JobComparison) -> Option<f64> {
    let check = job.checks.iter().find(|check| check.quantity == JobQuantity::TokensPerStep)?;
    let is_padded = |tokens: f64| check.agreement == Agreement::Same && tokens > MAX_TOKENS_RATIO * check.planned;
    check.measured.filter(|&tokens| !is_padded(tokens))
}

/// Predicts each quantity with its band, and adds the median of the selected points. Memory that only other points of the part have is
/// used too: Megatron-LM prints it once, in the warm-up. Without a rate of tokens, the rate follows from the step time.
fn predictions(
    scenario: &Scenario,
    planned: &Planned,
    batches: &[BatchSummary],
    (selected, in_part): (&[&RunPoint], &[&RunPoint]),
    ratios: &LogRatios,
) -> Vec<Prediction> {
    let metrics = &planned.metrics;
    let interval = certainty::step_time(scenario, planned);
    let factors = (interval.low / metrics.iteration_s, interval.high / metrics.iteration_s);
    // Rates are low if steps are long.
    let rate_factors = (1.0 / factors.1, 1.0 / factors.0);
    let reason = certainty::reason(scenario).map(|reason| format!(". Widest interval: {reason}")).unwrap_or_default();
    let widened = format!("widened by the 80 % interval of the prediction{reason}");
    let steps: Vec<f64> = planned.iterations.iter().map(|iteration| iteration.iteration_s).collect();
    let rates: Vec<f64> =
        batches.iter().zip(&steps).map(|(batch, step)| batch.tokens as f64 / step.max(f64::MIN_POSITIVE)).collect();
    let peaks: Vec<f64> = planned.iterations.iter().map(|iteration| iteration.peak_memory_gib).collect();
    let spread = |label: &str| format!("spread of {} simulated {label}, {widened}", steps.len());
    let values = |metric: &dyn Fn(&RunPoint) -> Option<f64>| -> Vec<f64> {
        selected.iter().filter_map(|point| metric(point)).filter(|value| value.is_finite()).collect()
    };
    let mut allocated = values(&|point| point.memory_gib);
    if allocated.is_empty() {
        allocated.extend(in_part.iter().filter_map(|point| point.memory_gib).max_by(f64::total_cmp));
    }
    let devices = f64::from(scenario.cluster.devices());
    let job_rate = |point: &RunPoint| {
        let by_devices = || point.tokens_per_s_per_device.map(|rate| rate * devices);
        point.tokens_per_s.or_else(by_devices).or_else(|| ratios.tokens_per_s(point))
    };
    let device_rate = |point: &RunPoint| {
        let of_job = || point.tokens_per_s.or_else(|| ratios.tokens_per_s(point));
        point.tokens_per_s_per_device.or_else(|| of_job().map(|rate| rate / devices))
    };
    let per_device: Vec<f64> = rates.iter().map(|rate| rate / devices).collect();
    let reserved = certainty::peak_memory(scenario, planned).interval_gib;
    let peak = metrics.peak_memory_gib.max(f64::MIN_POSITIVE);
    let memory = Band::new(metrics.peak_memory_gib, &peaks, (reserved.low / peak, reserved.high / peak));
    let memory_basis = format!(
        "spread of the peaks of {} simulated iterations, widened by the 80 % interval of the reserved memory. The predicted value is \
         the allocated memory, without the cache of the allocator and buffers of libraries",
        steps.len()
    );
    vec![
        prediction(
            Quantity::StepTime,
            Band::new(metrics.iteration_s, &steps, factors),
            spread("iterations"),
            &values(&|point| point.step_s),
        ),
        prediction(
            Quantity::TokensPerSecond,
            Band::new(metrics.tokens_per_s, &rates, rate_factors),
            spread("iterations"),
            &values(&job_rate),
        ),
        prediction(
            Quantity::TflopsPerDevice,
            Band::new(metrics.tflops_per_device * ratios.flops, &[], rate_factors),
            format!("mean of {} simulated iterations by the log's formula, {widened}", steps.len()),
            &values(&|point| point.tflops_per_device),
        ),
        prediction(
            Quantity::TokensPerSecondPerDevice,
            Band::new(metrics.tokens_per_s / devices, &per_device, rate_factors),
            spread("iterations"),
            &values(&device_rate),
        ),
        prediction(Quantity::Memory, memory, memory_basis, &allocated),
    ]
}

fn prediction(quantity: Quantity, band: Band, reason: String, values: &[f64]) -> Prediction {
    let measured = median(values);
    Prediction {
        quantity,
        next: if quantity == Quantity::StepTime { next(&band, values) } else { None },
        band: PredictionBand { value: band.value, low: band.low, high: band.high, reason },
        measured,
        error: measured.map(|measured| (measured - band.value) / band.value.max(f64::MIN_POSITIVE)),
        inside: inside(&band, values),
    }
}

/// Returns the band of the next steps.
fn next(band: &Band, steps: &[f64]) -> Option<PredictionBand> {
    let Band { value, low, high } = band.narrowed(steps)?;
    Some(PredictionBand { value, low, high, reason: format!("the band narrowed by {} steps", steps.len()) })
}

/// Predicts phase times under the timer convention of the log.
pub(super) fn predicted(context: &RunContext, planned: &Planned) -> PredictedPhases {
    predicted_phases(planned, context.whose(), context.timeline.as_ref())
}

/// Returns the time of a timer that is compared: of the slowest rank, or of the fastest if the others wait in it.
fn compared_s(phase: &PhaseTime) -> f64 {
    phase.min_s.filter(|_| contains_waits(&phase.name)).unwrap_or(phase.time_s)
}

/// Median time per phase, with the names of the summed timers.
pub(super) fn measured_phases(selected: &[&RunPoint]) -> Vec<PhaseTimes> {
    let mut all: Vec<(PhaseTimes, Vec<f64>)> = Vec::new();
    for point in selected {
        let timers: Vec<Timed<'_>> =
            point.phases.iter().map(|phase| Timed { name: &phase.name, seconds: compared_s(phase) }).collect();
        for times in phase_times(&timers) {
            if let Some((known, each)) = all.iter_mut().find(|(known, _)| known.phase == times.phase) {
                each.push(times.seconds);
                known
                    .timers
                    .extend(times.timers.into_iter().filter(|name| !known.timers.contains(name)).collect::<Vec<_>>());
            } else {
                let seconds = times.seconds;
                all.push((times, vec![seconds]));
            }
        }
    }
    all.sort_by_key(|(times, _)| times.phase);
    all.into_iter().map(|(times, each)| PhaseTimes { seconds: median(&each).unwrap_or(0.0), ..times }).collect()
}

/// Residuals per phase, and notes for the user.
fn phase_residuals(
    context: &RunContext,
    selected: &[&RunPoint],
    planned: &Planned,
) -> (Vec<PhaseResidual>, Vec<String>) {
    let measured = measured_phases(selected);
    if measured.is_empty() {
        let note = (!selected.is_empty()).then(|| "The log has no timers, so steps are compared whole.".to_owned());
        return (Vec::new(), note.into_iter().collect());
    }
    let predicted = predicted(context, planned);
    let mut notes = Vec::new();
    match context.whose() {
        TimerRanks::LastRank => notes.push(
            "Timers are of the one rank that prints. They are compared with the last rank of the pipeline, mean over \
             replicas. Waiting after the last backward pass is included in gradient reduction or optimizer."
                .to_owned(),
        ),
        TimerRanks::Range => notes.push(
            "Each row shows the slowest rank, in the log and in the plan. Gradient reduction shows the fastest, because it contains \
             waits for slower ranks. Sends and receives are not compared: their slowest ranks differ."
                .to_owned(),
        ),
        TimerRanks::Slowest | TimerRanks::Fastest => notes.push(
            "Each row shows the slowest rank, in the log and in the plan. Sends and receives are not compared: their \
             slowest ranks differ."
                .to_owned(),
        ),
    }
    if measured.iter().any(|times| times.phase == Phase::Data) {
        notes.push("Reading of batches is inside forward compute; the plan counts no time for it.".to_owned());
    }
    let residual = |times: PhaseTimes| PhaseResidual {
        phase: times.phase.name().to_owned(),
        predicted_s: predicted.for_phase(times.phase),
        timers: times.timers,
        measured_s: times.seconds,
    };
    (measured.into_iter().map(residual).collect(), notes)
}

#[cfg(test)]
mod tests {
    use planner::run_comparison::JobCheck;

    use super::*;

    fn job(agreement: Agreement, measured: Option<f64>) -> JobComparison {
        let check = JobCheck {
            quantity: JobQuantity::TokensPerStep,
            agreement,
            measured,
            planned: 131_072.0,
            derivation: String::new(),
            consequence: String::new(),
            measured_name: String::new(),
            planned_name: String::new(),
        };
        JobComparison { checks: vec![check], ..JobComparison::default() }
    }

    /// 131,072 tokens in 16 s are 8,192 tokens/s.
    #[test]
    fn tokens_per_second_follow_from_the_step_time() {
        let tokens_per_step = tokens_per_step(&job(Agreement::Same, Some(131_072.0)));
        let ratios = LogRatios { flops: 1.0, tokens_per_step };
        let point = |step_s: Option<f64>| RunPoint { step_s, ..RunPoint::default() };
        assert_eq!(ratios.tokens_per_s(&point(Some(16.0))), Some(8_192.0));
        assert_eq!(ratios.tokens_per_s(&point(Some(0.0))).or(ratios.tokens_per_s(&point(None))), None);
    }

    #[test]
    fn padded_tokens_are_no_rate() {
        assert_eq!(tokens_per_step(&job(Agreement::Same, Some(2.0 * 131_072.0))), None);
        assert_eq!(tokens_per_step(&job(Agreement::Different, Some(65_536.0))), Some(65_536.0));
        assert_eq!(tokens_per_step(&job(Agreement::NotChecked, None)), None);
    }
}
