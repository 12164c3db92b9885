//! Values of a log that contradict each other.

use api::run::{PhaseResidual, RunPoint, StepTimeOrigin};
use planner::run_comparison::{Phase, median};
use planner::utilisation::by_formula;

use super::RunContext;
use super::job::planned_job;
use super::slow_ranks::SlowRanks;
use super::spread::Spread;

/// Ratio of two values above which they contradict each other. Logs round values, and timers are of the slowest rank.
const TOLERANCE: f64 = 1.1;
/// Ratio of a step time to its prediction from which the unit of the rate is doubted.
const FAR: f64 = 3.0;

/// Describes the contradictions between the values of the `selected` steps.
pub(super) fn notes(context: &RunContext, selected: &[&RunPoint], phases: &[PhaseResidual]) -> Vec<String> {
    let figure = |metric: fn(&RunPoint) -> Option<f64>| {
        median(&selected.iter().filter_map(|point| metric(point)).collect::<Vec<_>>())
    };
    let step_s = figure(|point| point.step_s);
    let mut notes = Vec::new();
    notes.extend(step_s.and_then(|step_s| long_timer(phases, step_s)).map(|phase| {
        format!(
            "The timers of {} are {:.3}\u{202f}s per step, longer than the step. They are not used to find causes: \
             check their unit.",
            phase.phase, phase.measured_s
        )
    }));
    notes.extend(long_reading(phases).map(|(read_s, forward_s)| {
        format!(
            "The timer of the reading of batches is {read_s:.3}\u{202f}s per step, but forward compute, which contains \
             it, is {forward_s:.3}\u{202f}s. The timer of the reading is not used."
        )
    }));
    notes.extend(utilisation(context, figure(|point| point.mfu), step_s));
    notes.extend(device_rate(context, step_s));
    let samples = figure(|point| point.global_batch.map(|samples| samples as f64));
    notes.extend(clock_rate(selected, samples, planned_job(context).samples_per_step()));
    let slow = SlowRanks::find(selected, context).map(|slow| slow.note());
    notes.extend(slow.or_else(|| Spread::find(selected, context).map(|spread| spread.note())));
    notes
}

/// Returns the phase whose timers are longer than the step.
pub(super) fn long_timer(phases: &[PhaseResidual], step_s: f64) -> Option<&PhaseResidual> {
    let longest = phases
        .iter()
        .filter(|phase| ![Phase::Data.name(), Phase::Other.name()].contains(&phase.phase.as_str()))
        .max_by(|a, b| a.measured_s.total_cmp(&b.measured_s))?;
    (longest.measured_s > TOLERANCE * step_s).then_some(longest)
}

/// Returns the times of reading and forward, if the reading is longer than the forward that contains it.
pub(super) fn long_reading(phases: &[PhaseResidual]) -> Option<(f64, f64)> {
    let seconds = |phase: Phase| phases.iter().find(|it| it.phase == phase.name()).map(|it| it.measured_s);
    seconds(Phase::Data).zip(seconds(Phase::Forward)).filter(|(read_s, forward_s)| *read_s > TOLERANCE * forward_s)
}

/// Compares the MFU of the log with that of its step time, by any formula and peak.
fn utilisation(context: &RunContext, logged: Option<f64>, step_s: Option<f64>) -> Option<String> {
    let logged = logged?;
    let percent = |share: f64| format!("{:.1}\u{202f}%", 100.0 * share);
    let step_s = step_s.filter(|step_s| *step_s > 0.0);
    let Some(step_s) = step_s else {
        return (logged > 1.0).then(|| {
            format!("The log states {} MFU, above the peak: check its peak and its FLOP count.", percent(logged))
        });
    };
    let scale = context.planned.metrics.iteration_s / step_s;
    let formulas = by_formula(context.scenario.scenario(), &context.planned);
    let low = formulas.iter().map(|it| scale * it.of_sparse_peak).fold(f64::INFINITY, f64::min);
    let high = formulas.iter().map(|it| scale * it.of_dense_peak).fold(0.0, f64::max);
    (logged > TOLERANCE * high || logged * TOLERANCE < low).then(|| {
        format!(
            "The log states {} MFU, but its step time gives {} to {} by the known formulas. Check the peak and the \
             FLOP count of the trainer.",
            percent(logged),
            percent(low),
            percent(high)
        )
    })
}

/// Compares the time that the samples per second give with the time by the clock. The throughput timer of DeepSpeed runs from the
/// forward pass to the optimizer step.
fn clock_rate(selected: &[&RunPoint], samples: Option<f64>, planned: f64) -> Option<String> {
    let batch = samples.unwrap_or(planned);
    let times: Vec<(f64, f64)> = selected
        .iter()
        .filter(|point| point.step_s_origin == Some(StepTimeOrigin::Clock))
        .filter_map(|point| Some((point.step_s?, batch / point.samples_per_s.filter(|rate| *rate > 0.0)?)))
        .collect();
    let clock_s = median(&times.iter().map(|(clock_s, _)| *clock_s).collect::<Vec<_>>())?;
    let rate_s = median(&times.iter().map(|(_, rate_s)| *rate_s).collect::<Vec<_>>())?;
    let whose = if samples.is_some() { "" } else { " of the plan" };
    (clock_s > TOLERANCE * rate_s).then(|| {
        format!(
            "By the samples per second of the log, a step of the {batch:.0} samples{whose} takes {rate_s:.3}\u{202f}s; by the times \
             of day it takes {clock_s:.3}\u{202f}s. {:.3}\u{202f}s per step are outside of what the trainer times: look for loading of \
             data, evaluation and checkpoints.",
            clock_s - rate_s
        )
    })
}

/// If a step time from tokens per second is far above the prediction, the rate can be per device.
fn device_rate(context: &RunContext, step_s: Option<f64>) -> Option<String> {
    let devices = f64::from(context.scenario.scenario().cluster.devices());
    let step_s = step_s.filter(|_| context.has_plan_step_times)?;
    let is_total = context.points.iter().any(|point| point.tokens_per_s.is_some());
    let (now, per_device) = (step_s / context.planned.metrics.iteration_s, step_s / devices);
    let then = now / devices;
    (is_total && now > FAR && (1.0 / FAR..FAR).contains(&then)).then(|| {
        format!(
            "The tokens per second of the log are taken as those of the job, which gives {step_s:.3}\u{202f}s per \
             step. If they are per device, a step takes {per_device:.3}\u{202f}s: give the rate as --tokens-per-s \
             (tokens_per_s_per_device in the API)."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(phase: Phase, measured_s: f64) -> PhaseResidual {
        PhaseResidual { phase: phase.name().to_owned(), timers: Vec::new(), measured_s, predicted_s: None }
    }

    #[test]
    fn timers_are_not_longer_than_what_contains_them() {
        let phases = [phase(Phase::Forward, 2.9), phase(Phase::Backward, 5.3), phase(Phase::Data, 6.0)];
        assert_eq!(long_reading(&phases), Some((6.0, 2.9)));
        assert_eq!(long_timer(&phases, 9.0), None);
        assert_eq!(long_timer(&phases, 1.0).map(|phase| phase.measured_s), Some(5.3));
        assert_eq!(long_reading(&phases[..2]), None);
    }

    /// 128 samples at 32 samples per second take 4 s; a step takes 6 s by the clock.
    #[test]
    fn time_that_the_rate_leaves_out_is_stated() {
        let point = |step_s: f64, origin| RunPoint {
            step_s: Some(step_s),
            step_s_origin: Some(origin),
            samples_per_s: Some(32.0),
            ..RunPoint::default()
        };
        let stalled = point(6.0, StepTimeOrigin::Clock);
        let note = clock_rate(&[&stalled], None, 128.0).unwrap().replace('\u{202f}', " ");
        assert!(note.contains("128 samples of the plan takes 4.000 s") && note.contains("2.000 s per step"), "{note}");
        assert_eq!(clock_rate(&[&point(4.2, StepTimeOrigin::Clock)], None, 128.0), None);
        assert_eq!(clock_rate(&[&point(6.0, StepTimeOrigin::Timers)], None, 128.0), None);
    }
}
