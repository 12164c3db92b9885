//! Why a run is slower than its prediction: causes, each simulated as a change of the scenario.
//!
//! A cause is a property of the run that differs from the scenario, for example a slower network. The seconds that it
//! explains are the iteration time with the property minus the predicted time, on one global batch.

mod suspects;

use serde::{Deserialize, Serialize};

use crate::analysis::AnalysisError;
use crate::fit::{FieldChange, Watch, apply, base, document, evaluate, reference_planner};
use crate::run_comparison::{Phase, PredictedPhases, TimerRanks, predicted_phases};
use planscope_core::host::{Cancellation, Workers};
use planscope_plan::certainty::{self, Interval};
use planscope_plan::outcome::Planned;
use planscope_plan::scenario::{PlannerKind, ValidScenario};
use suspects::{Degree, Suspect, suspects};

/// Differences below this share of the predicted time are not explained: they are within the error of predictions.
const ALIKE: f64 = 0.03;
/// Smallest share of the gap that a listed cause explains.
pub const MIN_SHARE: f64 = 0.03;
/// Largest explained share of the gap of a listed cause. A larger effect than the gap excludes the cause.
const MAX_SHARE: f64 = 1.3;

/// Measured throughput of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// Time of a step in s.
    StepS(f64),
    /// Tokens per second and device, without padding.
    TokensPerSPerDevice(f64),
    /// Model FLOPs per second and device, in TFLOP/s.
    TflopsPerDevice(f64),
}

/// Relation of a measurement to its prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// More FLOPs than the peak of the devices: the measurement is of another job.
    Impossible,
    /// At least 3 % faster than predicted.
    Faster,
    /// Within 3 % of the prediction.
    AsPredicted,
    /// At least 3 % slower than predicted.
    Slower,
}

/// Order of the causes of a slower run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CauseOrder {
    /// The effect that is closest to the gap first. This is no probability.
    ClosestEffect,
    /// The best match of the phases that the log times first.
    Phases,
}

impl CauseOrder {
    /// Describes the order.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClosestEffect => "effect closest to the difference first",
            Self::Phases => "best match of the measured phases first",
        }
    }
}

/// A measured step time next to its prediction, and the causes that can explain a difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Slowness {
    /// Planner of the prediction.
    pub planner: PlannerKind,
    /// Measured time of a step in s.
    pub measured_s: f64,
    /// Predicted time of a step in s.
    pub predicted_s: f64,
    /// Model FLOPs utilisation of the measurement.
    pub measured_mfu: f64,
    /// Model FLOPs utilisation of the prediction.
    pub predicted_mfu: f64,
    /// Relation of both times.
    pub relation: Relation,
    /// 80 % interval of the prediction in s.
    pub interval_s: Interval,
    /// Causes of a slower run.
    pub causes: Vec<Cause>,
    /// Order of the causes.
    pub order: CauseOrder,
    /// Causes with a smaller effect than 3 % of the gap, one title each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_small: Vec<String>,
    /// Causes with a larger effect than the gap, one title each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_large: Vec<String>,
    /// True if the time limit was reached before all causes were simulated.
    pub is_partial: bool,
}

/// A property of the run that differs from the scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SlownessCause))]
pub struct Cause {
    /// Description, for example "a network of 12.5 GB/s instead of 50".
    pub title: String,
    /// Fields of the scenario with the property.
    pub fields: Vec<FieldChange>,
    /// Time with the property for the tokens of a predicted step, in s.
    pub iteration_s: f64,
    /// Seconds of the gap that it explains.
    pub explains_s: f64,
    /// How to confirm it: a counter, a trace, a setting.
    pub confirm: String,
    /// Phases of the step that become longer or shorter with the property.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseShift>,
}

/// Change of the predicted time of a phase, on the rank with the longest time of the phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PhaseShift {
    /// Name of the phase, for example "backward compute".
    pub phase: String,
    /// Change in s.
    pub seconds: f64,
}

impl PhaseShift {
    /// Name of the phase of a job with `replicas` that reduce gradients. One replica reduces the gradients of a tied
    /// embedding only, between the first and the last stage.
    pub fn title(&self, replicas: u32) -> &str {
        if replicas == 1 && self.phase == Phase::Reduction.name() {
            "all-reduce of the shared embedding"
        } else {
            &self.phase
        }
    }
}

/// Measured minus predicted time of a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseGap<'a> {
    /// Name of the phase.
    pub phase: &'a str,
    /// Difference in s.
    pub seconds: f64,
}

impl Cause {
    /// True if the cause is reading of data.
    pub fn is_reading(&self) -> bool {
        self.fields.iter().any(|field| field.pointer == suspects::HOST_MICROBATCH)
    }
}

impl Slowness {
    /// True if the measurement lies in the 80 % interval of the prediction. A difference can then be an error of the
    /// prediction.
    pub fn is_inside_interval(&self) -> bool {
        (self.interval_s.low..=self.interval_s.high).contains(&self.measured_s)
    }

    /// Sorts the causes by how well they explain which phases are late: by the sum over the phases of the difference
    /// between the measured gap and the change that the cause makes. Fewer than two phases say nothing, and the order
    /// stays.
    pub fn rank_by_phases(&mut self, gaps: &[PhaseGap<'_>]) {
        if gaps.len() < 2 {
            return;
        }
        let shift = |cause: &Cause, gap: &PhaseGap<'_>| {
            cause.phases.iter().find(|shift| shift.phase == gap.phase).map_or(0.0, |shift| shift.seconds)
        };
        let missed = |cause: &Cause| gaps.iter().map(|gap| (gap.seconds - shift(cause, gap)).abs()).sum::<f64>();
        self.causes.sort_by(|a, b| missed(a).total_cmp(&missed(b)));
        self.order = CauseOrder::Phases;
    }
}

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
    let relation = if measured_mfu > 1.0 {
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
        order: CauseOrder::ClosestEffect,
        too_small: Vec::new(),
        too_large: Vec::new(),
        is_partial: false,
    };
    if relation != Relation::Slower {
        return Ok(slowness);
    }
    let phases = predicted_phases(&plan, TimerRanks::Slowest, None);
    let is_rate = !matches!(measured, Measured::StepS(_));
    for suspect in suspects(valid.scenario(), is_rate) {
        match closest(&document, valid, planner, &suspect, (predicted_s, gap_s, phases), &watch) {
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
    let missed = |cause: &Cause| (cause.explains_s - gap_s).abs();
    slowness.causes.sort_by(|a, b| missed(a).total_cmp(&missed(b)));
    Ok(slowness)
}

/// Returns the degree of a suspect whose effect is closest to the gap. `None` if none of them can be planned.
fn closest(
    document: &serde_json::Value,
    valid: &ValidScenario,
    planner: PlannerKind,
    suspect: &Suspect,
    (predicted_s, gap_s, phases): (f64, f64, PredictedPhases),
    watch: &Watch<'_>,
) -> Result<Option<Cause>, AnalysisError> {
    let mut best: Option<Cause> = None;
    for Degree { title, fields, steps } in &suspect.degrees {
        let Some(changed) = apply(document, fields) else { continue };
        let Some(evaluated) = evaluate(&changed, valid, planner, watch)? else { continue };
        let Some(iteration_s) = evaluated.result.iteration_s.map(|seconds| steps * seconds) else { continue };
        let cause = Cause {
            title: title.clone(),
            fields: fields.clone(),
            iteration_s,
            explains_s: iteration_s - predicted_s,
            confirm: suspect.confirm.to_owned(),
            phases: evaluated.plan.as_deref().map_or_else(Vec::new, |plan| shifts(plan, phases)),
        };
        let missed = |cause: &Cause| (cause.explains_s - gap_s).abs();
        // Effects grow with the degree.
        let exceeds = cause.explains_s > gap_s;
        if best.as_ref().is_none_or(|best| missed(&cause) < missed(best)) {
            best = Some(cause);
        }
        if exceeds {
            break;
        }
    }
    Ok(best)
}

/// Returns the changes of the phases of a plan relative to those of another. Changes below a thousandth of the step are
/// left out.
fn shifts(plan: &Planned, base: PredictedPhases) -> Vec<PhaseShift> {
    let changed = predicted_phases(plan, TimerRanks::Slowest, None);
    let smallest = 1e-3 * plan.metrics.iteration_s;
    let shift = |phase: Phase| {
        let seconds = changed.for_phase(phase)? - base.for_phase(phase)?;
        (seconds.abs() > smallest).then(|| PhaseShift { phase: phase.name().to_owned(), seconds })
    };
    [Phase::Forward, Phase::Backward, Phase::Reduction, Phase::Optimizer].into_iter().filter_map(shift).collect()
}

#[cfg(test)]
mod tests;
