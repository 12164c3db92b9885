//! Calibrates a profile from a run: layer factors that fit the plan to the measurements.

use api::profile::{FittedPart, FittedPoint, PhaseFactor, ProfileEffect, ProfileSource};
use planner::engine::Observer;
use planner::outcome::Planned;
use planner::run_comparison::{
    Evaluation, Factors, FactorsError, Phase, ReplanError, Solved, Target, median, replan, scaled, solve,
};

use super::comparison::{measured_phases, predicted, selected_points, sifted};
use super::{ObservationError, RunContext};
use crate::store::profile_address;
use crate::store::{NewProfile, ProfileContent};

/// Maximum number of points in the step plot.
const MAX_POINTS: usize = 2000;
/// Relative step time residual above which the report mentions it.
const WORTH_A_WORD: f64 = 0.01;

/// Computes the factors for a run, or for the part in `segment`, as a profile. With timers for both
/// passes, each pass has a separate factor. Otherwise a single factor fits the step time. Replans
/// the scenario several times.
pub(crate) fn calibrated(
    context: &RunContext,
    segment: Option<u32>,
    observer: &mut dyn Observer,
) -> Result<NewProfile, ObservationError> {
    let sifted = sifted(&context.points);
    let points = selected_points(&context.points, &sifted, segment);
    let steps: Vec<f64> = points.iter().filter_map(|point| point.step_s).collect();
    let step_s = median(&steps).ok_or(ObservationError::NoSteps)?;
    let phases = measured_phases(&points);
    let phase_seconds = |phase: Phase| phases.iter().find(|times| times.phase == phase).map(|times| times.seconds);
    let before = evaluation(context, &context.planned);
    let timers = phase_seconds(Phase::Forward)
        .zip(phase_seconds(Phase::Backward))
        .filter(|_| before.forward_s > 0.0 && before.backward_s > 0.0);
    let target = match timers {
        Some((forward_s, backward_s)) => Target::Phases { forward_s, backward_s },
        None => Target::Step(step_s),
    };
    let existing = &context.scenario.scenario().training.overrides;
    let evaluate = |factors: Factors| -> Result<Evaluation, ReplanError> {
        let mut changed = context.scenario.scenario().clone();
        changed.training.overrides.extend(scaled(existing, factors));
        let planned = replan(&context.scenario, changed, context.planner, &context.planned, observer)?;
        Ok(evaluation(context, &planned))
    };
    let solved = solve(target, evaluate).map_err(|error| match error {
        FactorsError::Target => ObservationError::NoSteps,
        FactorsError::Evaluation(replan) => ObservationError::Replan(replan),
    })?;
    if !solved.is_met {
        let detail = format!("{step_s:.4} s a step measured, {:.4} s reached", solved.reached.step_s);
        return Err(ObservationError::TargetMissed(detail));
    }
    let factors = phase_factors(context, &phases, (step_s, before), &solved, timers.is_some());
    let every = points.len().div_ceil(MAX_POINTS).max(1);
    let point = |point: &&api::run::RunPoint| {
        Some(FittedPoint { size: point.step as f64, measured_s: point.step_s?, fitted_s: solved.reached.step_s })
    };
    let off = steps.iter().map(|step| (solved.reached.step_s / step - 1.0).abs()).sum::<f64>() / steps.len() as f64;
    let part = FittedPart {
        name: "steps".to_owned(),
        samples: steps.len() as u64,
        fitted: true,
        detail: format!(
            "step time {} predicted, {} measured, {} with the profile; {} plans were simulated",
            seconds(before.step_s),
            seconds(step_s),
            seconds(solved.reached.step_s),
            solved.evaluations
        ),
        residual: Some(off),
        size_name: "step".to_owned(),
        points: points.iter().step_by(every).filter_map(point).collect(),
    };
    let effect = ProfileEffect::Overrides { overrides: scaled(existing, solved.factors) };
    let source = ProfileSource::Run { run: context.run.clone(), scenario: context.scenario.id().to_string() };
    let report = report(context, &solved, (step_s, steps.len(), sifted.outliers.len()), timers.is_some());
    Ok(NewProfile {
        id: profile_address(&source, &effect, None, &[]),
        name: String::new(),
        source,
        measurements: steps.len() as u64,
        residual: Some(off),
        base: None,
        content: ProfileContent { effect, parts: vec![part], report, factors },
        files: Vec::new(),
    })
}

/// Formats a time with three digits, for example "14.6 s".
fn seconds(value_s: f64) -> String {
    let (value, unit) = if value_s.abs() < 0.9995 { (value_s * 1e3, "ms") } else { (value_s, "s") };
    let decimals = match value.abs() {
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$}\u{202f}{unit}")
}

fn evaluation(context: &RunContext, planned: &Planned) -> Evaluation {
    let phases = predicted(context, planned);
    Evaluation {
        forward_s: phases.forward_s.unwrap_or(0.0),
        backward_s: phases.backward_s.unwrap_or(0.0),
        step_s: planned.metrics.iteration_s,
    }
}

fn phase_factors(
    context: &RunContext,
    phases: &[planner::run_comparison::PhaseTimes],
    (step_s, before): (f64, Evaluation),
    solved: &Solved,
    by_timers: bool,
) -> Vec<PhaseFactor> {
    let predictions = predicted(context, &context.planned);
    let mut factors: Vec<PhaseFactor> = Vec::new();
    for times in phases {
        let Some(predicted_s) = predictions.for_phase(times.phase).filter(|predicted| *predicted > 0.0) else {
            continue;
        };
        let (factor, after_s) = match times.phase {
            Phase::Forward if by_timers => (Some(solved.factors.forward), Some(solved.reached.forward_s)),
            Phase::Backward if by_timers => (Some(solved.factors.backward), Some(solved.reached.backward_s)),
            _ => (None, None),
        };
        let detail = match factor {
            Some(_) => "on every layer; embedding and output head do not change",
            None => "no time of a layer, so it has no factor",
        };
        factors.push(PhaseFactor {
            phase: times.phase.name().to_owned(),
            measured_s: times.seconds,
            predicted_s,
            ratio: times.seconds / predicted_s,
            factor,
            after_s,
            detail: detail.to_owned(),
        });
    }
    factors.push(PhaseFactor {
        phase: "step".to_owned(),
        measured_s: step_s,
        predicted_s: before.step_s,
        ratio: step_s / before.step_s.max(f64::MIN_POSITIVE),
        factor: (!by_timers).then_some(solved.factors.forward),
        after_s: Some(solved.reached.step_s),
        detail: if by_timers {
            "follows from the factors of both passes".to_owned()
        } else {
            "one factor on forward and backward of every layer; the plan then takes the measured time".to_owned()
        },
    });
    factors
}

fn report(
    context: &RunContext,
    solved: &Solved,
    (step_s, steps, outliers): (f64, usize, usize),
    by_timers: bool,
) -> Vec<String> {
    let mut report = context.notes.clone();
    report.push(format!("{steps} steps, median {}; {outliers} outliers are left out.", seconds(step_s)));
    report.push(format!("Plan: {}.", context.plan()));
    if by_timers {
        let left = step_s - solved.reached.step_s;
        if left.abs() > WORTH_A_WORD * step_s {
            report.push(format!(
                "{} of a step, {:.1} %, are left when both passes are met: optimizer, reduction of gradients, communication of \
                 the pipeline and what is outside the timers have no override, and nothing else is stretched in their place.",
                seconds(left),
                100.0 * left / step_s
            ));
        }
    } else {
        report.push(
            "The log has no timers of both passes: one factor on all layers represents everything that makes the step longer."
                .to_owned(),
        );
    }
    report
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_have_three_digits() {
        for (value_s, text) in [(14.5969, "14.6 s"), (128.9, "129 s"), (0.8231, "823 ms"), (-2.5, "-2.50 s")] {
            assert_eq!(seconds(value_s).replace('\u{202f}', " "), text);
        }
    }
}
