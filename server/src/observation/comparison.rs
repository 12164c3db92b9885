//! A run beside its plan: every quantity with its band, outliers, parts and phases.

use api::run::{
    Comparison, Outlier, OutlierReason, PhaseResidual, Prediction, PredictionBand, Quantity, RunPoint, SegmentSummary,
};
use planner::observed::{
    Band, Phase, PhaseTimes, PredictedPhases, Reason, Sifted, Step, Timed, Whose, inside, median, phase_times,
    predicted_phases, sift,
};
use planner::outcome::{BatchSummary, Planned};
use planner::scenario::Scenario;

use super::Held;
use super::accuracy::error_of;

/// A run beside its plan; of one part of the run where `segment` says which.
pub(crate) fn compared(held: &Held, segment: Option<u32>) -> Comparison {
    let sifted = sifted(&held.points);
    let kept = kept(&held.points, &sifted, segment);
    let scenario = held.scenario.scenario();
    let mut notes = held.notes.clone();
    let (phases, of_phases) = residuals_of(held, &kept, &held.planned);
    notes.extend(of_phases);
    if held.points.iter().any(|point| point.tflops_per_device.is_some()) {
        notes.push(
            "TFLOP/s of the log are as its trainer counts operations, which may include what is computed again."
                .to_owned(),
        );
    }
    Comparison {
        run: held.run.clone(),
        scenario: held.scenario.id().to_string(),
        planner: held.planner,
        plan: held.plan(),
        predictions: predictions(scenario, &held.planned, &held.batches, &kept),
        outliers: outliers(&held.points, &sifted),
        segments: segments(&sifted),
        phases,
        notes,
    }
}

/// The points that count: timed, not apart, and of the part that is asked for.
pub(super) fn kept<'a>(points: &'a [RunPoint], sifted: &Sifted, segment: Option<u32>) -> Vec<&'a RunPoint> {
    let own = |point: &&RunPoint| segment.is_none_or(|segment| point.segment == segment);
    sifted.kept.iter().map(|&index| &points[index]).filter(own).collect()
}

pub(super) fn sifted(points: &[RunPoint]) -> Sifted {
    let step = |point: &RunPoint| Step { segment: point.segment, step: point.step, seconds: point.step_s };
    sift(&points.iter().map(step).collect::<Vec<_>>())
}

fn outliers(points: &[RunPoint], sifted: &Sifted) -> Vec<Outlier> {
    let outlier = |apart: &planner::observed::Apart| {
        let point = &points[apart.index];
        Some(Outlier {
            row: point.row,
            step: point.step,
            step_s: point.step_s?,
            deviations: apart.deviations,
            reason: match apart.reason {
                Reason::WarmUp => OutlierReason::WarmUp,
                Reason::Slow => OutlierReason::Slow,
                Reason::Fast => OutlierReason::Fast,
            },
        })
    };
    sifted.apart.iter().filter_map(outlier).collect()
}

fn segments(sifted: &Sifted) -> Vec<SegmentSummary> {
    let summary = |part: &planner::observed::Segment| SegmentSummary {
        segment: part.segment,
        first_step: part.first_step,
        last_step: part.last_step,
        points: part.points,
        median_step_s: part.median_s,
    };
    sifted.segments.iter().map(summary).collect()
}

/// Every quantity of a plan with its band, beside the median of points.
fn predictions(
    scenario: &Scenario,
    planned: &Planned,
    batches: &[BatchSummary],
    kept: &[&RunPoint],
) -> Vec<Prediction> {
    let (error, widened) = error_of(&scenario.cluster);
    let metrics = &planned.metrics;
    let steps: Vec<f64> = planned.iterations.iter().map(|iteration| iteration.iteration_s).collect();
    let rates: Vec<f64> =
        batches.iter().zip(&steps).map(|(batch, step)| batch.tokens as f64 / step.max(f64::MIN_POSITIVE)).collect();
    let peaks: Vec<f64> = planned.iterations.iter().map(|iteration| iteration.peak_memory_gib).collect();
    let spread = |what: &str| format!("spread of {} simulated {what}, {widened}", steps.len());
    let values = |of: &dyn Fn(&RunPoint) -> Option<f64>| -> Vec<f64> {
        kept.iter().filter_map(|point| of(point)).filter(|value| value.is_finite()).collect()
    };
    let devices = f64::from(scenario.cluster.devices());
    let of_job =
        |point: &RunPoint| point.tokens_per_s.or_else(|| point.tokens_per_s_per_device.map(|rate| rate * devices));
    let reserve = scenario.training.memory_reserve_gib;
    let mut memory = Band::of(metrics.peak_memory_gib, &peaks, 0.0);
    memory.high += reserve;
    let of_memory = format!(
        "peaks of {} simulated iterations, and above them the {reserve} GiB that are kept free for fragmentation, the communication \
         library and the framework",
        steps.len()
    );
    vec![
        prediction(
            Quantity::StepTime,
            Band::of(metrics.iteration_s, &steps, error),
            spread("iterations"),
            &values(&|point| point.step_s),
        ),
        prediction(
            Quantity::TokensPerSecond,
            Band::of(metrics.tokens_per_s, &rates, error),
            spread("iterations"),
            &values(&of_job),
        ),
        prediction(
            Quantity::TflopsPerDevice,
            Band::of(metrics.tflops_per_device, &[], error),
            format!("mean of {} simulated iterations, {widened}", steps.len()),
            &values(&|point| point.tflops_per_device),
        ),
        prediction(Quantity::Memory, memory, of_memory, &values(&|point| point.memory_gib)),
    ]
}

fn prediction(quantity: Quantity, band: Band, reason: String, values: &[f64]) -> Prediction {
    let measured = median(values);
    Prediction {
        quantity,
        band: PredictionBand { value: band.value, low: band.low, high: band.high, reason },
        measured,
        error: measured.map(|measured| (measured - band.value) / band.value.max(f64::MIN_POSITIVE)),
        inside: inside(&band, values),
    }
}

/// What the plan says of phases, as the timers of the log count.
pub(super) fn predicted(held: &Held, planned: &Planned) -> PredictedPhases {
    predicted_phases(planned, held.whose(), held.timeline.as_ref())
}

/// Median of every phase over points, with the timers that were added up.
pub(super) fn measured_phases(kept: &[&RunPoint]) -> Vec<PhaseTimes> {
    let mut all: Vec<(PhaseTimes, Vec<f64>)> = Vec::new();
    for point in kept {
        let timers: Vec<Timed<'_>> =
            point.phases.iter().map(|phase| Timed { name: &phase.name, seconds: phase.time_s }).collect();
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

/// Residuals by phase, and what to know of them.
fn residuals_of(held: &Held, kept: &[&RunPoint], planned: &Planned) -> (Vec<PhaseResidual>, Vec<String>) {
    let measured = measured_phases(kept);
    if measured.is_empty() {
        return (Vec::new(), vec!["The log has no timers, so steps are compared whole.".to_owned()]);
    }
    let predicted = predicted(held, planned);
    let mut notes = Vec::new();
    match held.whose() {
        Whose::LastRank => notes.push(
            "Timers are of the one rank that prints: compared is the last rank of the pipeline, mean over replicas. What it waits behind \
             its last backward is inside its reduction of gradients or its optimizer."
                .to_owned(),
        ),
        Whose::Slowest => notes.push(
            "Of every timer the slowest rank counts, in the plan too. Sends and receives are not compared: their slowest ranks differ."
                .to_owned(),
        ),
    }
    if measured.iter().any(|times| times.phase == Phase::Data) {
        notes.push("Reading of batches is inside forward compute; the plan counts no time for it.".to_owned());
    }
    let residual = |times: PhaseTimes| PhaseResidual {
        phase: times.phase.name().to_owned(),
        predicted_s: predicted.of(times.phase),
        timers: times.timers,
        measured_s: times.seconds,
    };
    (measured.into_iter().map(residual).collect(), notes)
}
