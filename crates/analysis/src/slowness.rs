//! Why a run is slower than its prediction: causes, each simulated as a change of the scenario.
//!
//! A cause is a property of the run that differs from the scenario, for example a slower network. The seconds that it
//! explains are the iteration time with the property minus the predicted time, on one global batch.

mod degrees;
mod phases;
mod suspects;

pub use phases::{LatePhase, PhaseGap};

use serde::{Deserialize, Serialize};

use crate::analysis::AnalysisError;
use crate::fit::{FieldChange, Watch, base, document, reference_planner};
use crate::run_comparison::{Phase, TimerRanks, predicted_phases, product_peak_tflops};
use planscope_core::host::{Cancellation, Workers};
use planscope_plan::certainty::{self, Interval};
use planscope_plan::outcome::Planned;
use planscope_plan::scenario::{PlannerKind, Scenario, ValidScenario};
use planscope_plan::utilisation::{CountedOperations, by_formula};

use degrees::{Base, closest};
use suspects::suspects;

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
    /// More FLOPs, with recomputation, than the peak of the devices for the number format of the job: the measurement
    /// is of another job.
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
    /// Causes whose mildest degree has a larger effect than the gap, one title each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_large: Vec<String>,
    /// Causes whose effect is mainly in phases that the log times as not late, one title each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradicted: Vec<String>,
    /// Phases with the largest share of the gap, if the log has timers. The largest gap first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_phases: Vec<LatePhase>,
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
        order: CauseOrder::ClosestEffect,
        too_small: Vec::new(),
        too_large: Vec::new(),
        contradicted: Vec::new(),
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
    let missed = |cause: &Cause| (cause.explains_s - gap_s).abs();
    slowness.causes.sort_by(|a, b| missed(a).total_cmp(&missed(b)));
    Ok(slowness)
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

#[cfg(test)]
mod tests;
