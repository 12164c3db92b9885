//! Search of the degree of a cause whose effect is closest to the gap.

use serde_json::Value;

use super::Cause;
use super::shifts::{in_forward, shifts};
use super::suspects::{Degree, Suspect};
use crate::fit::{Watch, apply, evaluate};
use planscope_analysis::analysis::AnalysisError;
use planscope_analysis::run_comparison::PredictedPhases;
use planscope_plan::scenario::{PlannerKind, ValidScenario};

/// Most simulated degrees between two of the grid.
const STEPS_BETWEEN: u32 = 6;
/// Difference between effect and gap, relative to the gap, at which the search ends.
const PRECISION: f64 = 0.02;

/// The prediction without a cause.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub document: &'a Value,
    pub valid: &'a ValidScenario,
    pub planner: PlannerKind,
    /// Predicted time of a step in s.
    pub predicted_s: f64,
    /// Measured minus predicted time in s.
    pub gap_s: f64,
    pub phases: PredictedPhases,
}

/// Returns the degree of a suspect whose effect is closest to the gap. `None` if no degree can be planned.
///
/// The degrees of the grid are simulated up to the first one with a larger effect than the gap. A cause with a
/// continuous degree is then simulated between this degree and the one before.
pub(super) fn closest(base: &Base<'_>, suspect: &Suspect, watch: &Watch<'_>) -> Result<Option<Cause>, AnalysisError> {
    let missed = |cause: &Cause| (cause.explains_s - base.gap_s).abs();
    let mut best: Option<Cause> = None;
    let mut keep = |cause: Cause| {
        let is_close = missed(&cause) <= PRECISION * base.gap_s;
        if best.as_ref().is_none_or(|best| missed(&cause) < missed(best)) {
            best = Some(cause);
        }
        is_close
    };
    // Degree and effect below the gap, and above it. Effects grow with the degree.
    let mut below = suspect.range.as_ref().map(|range| (range.without_effect, 0.0));
    let mut above = None;
    for degree in &suspect.degrees {
        let Some(cause) = simulated(base, suspect, degree, watch)? else { continue };
        let point = (degree.value, cause.explains_s);
        let exceeds = cause.explains_s > base.gap_s;
        if keep(cause) {
            return Ok(best);
        }
        if exceeds {
            above = Some(point);
            break;
        }
        below = Some(point);
    }
    let (Some(range), Some(mut low), Some(mut high)) = (&suspect.range, below, above) else { return Ok(best) };
    for step in 0..STEPS_BETWEEN {
        // The secant through both effects, away from the known degrees. Hidden time has no effect up to some degree,
        // where the secant converges slowly: every other step bisects.
        let secant = (base.gap_s - low.1) / (high.1 - low.1);
        let share = if step % 2 == 0 { secant.clamp(0.1, 0.9) } else { 0.5 };
        let degree = (range.degree)(low.0 + share * (high.0 - low.0));
        // Values are rounded as in their titles.
        if [low.0, high.0].iter().any(|known| (known - degree.value).abs() < f64::EPSILON * known.abs()) {
            break;
        }
        let Some(cause) = simulated(base, suspect, &degree, watch)? else { break };
        let point = (degree.value, cause.explains_s);
        if point.1 > base.gap_s {
            high = point;
        } else {
            low = point;
        }
        if keep(cause) {
            break;
        }
    }
    Ok(best)
}

/// Simulates a degree. `None` if it cannot be planned.
fn simulated(
    base: &Base<'_>,
    suspect: &Suspect,
    degree: &Degree,
    watch: &Watch<'_>,
) -> Result<Option<Cause>, AnalysisError> {
    let Degree { title, fields, steps, .. } = degree;
    let Some(changed) = apply(base.document, fields) else { return Ok(None) };
    let Some(evaluated) = evaluate(&changed, base.valid, base.planner, watch)? else { return Ok(None) };
    let Some(seconds) = evaluated.result.iteration_s else { return Ok(None) };
    let phases = evaluated.plan.as_deref().map_or_else(Vec::new, |plan| shifts(plan, *steps, base));
    let cause = Cause {
        title: title.clone(),
        fields: fields.clone(),
        iteration_s: steps * seconds,
        explains_s: steps * seconds - base.predicted_s,
        confirm: suspect.confirm.clone(),
        phases,
        is_tuned: suspect.range.is_some(),
        plausibility: degree.plausibility,
        memory_gib: evaluated.plan.as_deref().map(|plan| plan.metrics.peak_memory_gib),
    };
    Ok(Some(if cause.is_reading() { Cause { phases: in_forward(cause.phases), ..cause } } else { cause }))
}
