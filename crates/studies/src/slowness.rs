//! Why a run is slower than its prediction: simulates each cause as a change of the scenario.

mod degrees;
mod shifts;
mod suspects;
#[cfg(test)]
mod tests;

pub use planscope_analysis::slowness::*;

use crate::fit::{Watch, base, document, reference_planner};
use degrees::{Base, closest};
use planscope_analysis::analysis::AnalysisError;
use planscope_analysis::run_comparison::{TimerRanks, predicted_phases, product_peak_tflops};
use planscope_core::host::{Cancellation, Workers};
use planscope_plan::certainty;
use planscope_plan::outcome::Planned;
use planscope_plan::scenario::{Scenario, ValidScenario};
use planscope_plan::utilisation::{CountedOperations, by_formula};
use suspects::suspects;

/// Differences below this share of the predicted time are not explained: they are within the error of predictions.
const ALIKE: f64 = 0.03;
/// Largest explained share of the gap of a listed cause. A larger effect than the gap excludes the cause.
const MAX_SHARE: f64 = 1.3;

/// Compares a measurement with the prediction of a scenario, and simulates causes of a slower run.
///
/// # Errors
/// The scenario does not fit or cannot be planned within the limits, or the time is up.
pub fn explain(
    valid: &ValidScenario,
    measured: Measured,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Slowness, AnalysisError> {
    let planner = reference_planner(valid);
    let watch = Watch::new(workers, cancellation);
    let document = document(valid);
    let plan = base(&document, valid, planner, &watch)?.plan;
    let plan = plan.ok_or_else(|| {
        AnalysisError::Unplanned("the configuration does not fit the memory, so there is no time to compare".to_owned())
    })?;
    let metrics = &plan.metrics;
    let predicted_s = metrics.iteration_s;
    let measured_s = match measured {
        Measured::StepS(seconds) => seconds,
        Measured::TokensPerSPerDevice(rate) => {
            let predicted = metrics.tokens_per_s_per_device.unwrap_or(f64::NAN);
            predicted_s * predicted / rate
        }
        Measured::TflopsPerDevice(rate) => predicted_s * metrics.tflops_per_device / rate,
    };
    let measured_mfu = metrics.mfu * predicted_s / measured_s;
    let gap_s = measured_s - predicted_s;
    let relation = if is_impossible(valid.scenario(), &plan, measured_s) {
        Relation::Impossible
    } else if gap_s < -ALIKE * predicted_s {
        Relation::Faster
    } else if gap_s < ALIKE * predicted_s {
        Relation::AsPredicted
    } else {
        Relation::Slower
    };
    let mut slowness = Slowness {
        planner,
        measured_s,
        predicted_s,
        measured_mfu,
        predicted_mfu: metrics.mfu,
        relation,
        interval_s: certainty::step_time(valid.scenario(), &plan),
        causes: Vec::new(),
        order: CauseOrder::UsualStrength,
        too_small: Vec::new(),
        too_large: Vec::new(),
        contradicted: Vec::new(),
        contradicted_by_memory: Vec::new(),
        late_phases: Vec::new(),
        is_partial: false,
    };
    if relation != Relation::Slower {
        return Ok(slowness);
    }
    let base = Base {
        document: &document,
        valid,
        planner,
        predicted_s,
        gap_s,
        phases: predicted_phases(&plan, TimerRanks::Slowest, None),
    };
    let is_rate = !matches!(measured, Measured::StepS(_));
    for suspect in suspects(valid.scenario(), is_rate) {
        match closest(&base, &suspect, &watch) {
            Ok(Some(cause)) if (MIN_SHARE..=MAX_SHARE).contains(&(cause.explains_s / gap_s)) => {
                slowness.causes.push(cause);
            }
            Ok(Some(cause)) if cause.explains_s > MAX_SHARE * gap_s => slowness.too_large.push(cause.title),
            Ok(Some(cause)) => slowness.too_small.push(cause.title),
            Ok(None) => {}
            Err(AnalysisError::TimeIsUp) => {
                slowness.is_partial = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    order(&mut slowness.causes, gap_s);
    Ok(slowness)
}

/// A setting whose effect differs by at most this share of the gap is evidence: nothing is tuned.
const MATCHES: f64 = 0.1;
/// A cause below this share of the gap is less plausible than its strength: another cause has the rest.
const MAIN_SHARE: f64 = 0.5;

/// Orders causes by how usual their strength is. Equal ones stay in the order of the suspects, because all tuned effects fit.
fn order(causes: &mut [Cause], gap_s: f64) {
    for cause in causes.iter_mut() {
        let missed = (cause.explains_s - gap_s).abs();
        if !cause.is_tuned && missed <= MATCHES * gap_s {
            cause.plausibility = Plausibility::Usual;
        } else if cause.explains_s < MAIN_SHARE * gap_s {
            cause.plausibility = match cause.plausibility {
                Plausibility::Usual => Plausibility::Possible,
                Plausibility::Possible | Plausibility::Unusual => Plausibility::Unusual,
            };
        }
    }
    causes.sort_by_key(|cause| (cause.plausibility, cause.explains_s < MAIN_SHARE * gap_s));
}

/// Largest share of the peak that a step reaches. Published steps are below 0.8.
const REACHED: f64 = 0.9;

/// True if the measured rate exceeds the peak of the number format. Recomputed operations count. Kernels can skip half
/// of the scores of a causal mask: without these, a rate above 90 % of the peak is not reached either.
fn is_impossible(scenario: &Scenario, plan: &Planned, measured_s: f64) -> bool {
    let scale = plan.metrics.iteration_s / measured_s / product_peak_tflops(scenario);
    let counted = by_formula(scenario, plan);
    let share = |wanted: CountedOperations| {
        let executed = counted.iter().find(|it| it.counted == wanted).or(counted.first());
        executed.map_or(0.0, |it| scale * it.tflops_per_device)
    };
    share(CountedOperations::Hardware) > 1.0 && share(CountedOperations::HardwareCausal) > REACHED
}
