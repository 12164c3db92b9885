//! Why a run is slower than its prediction: causes, ordered by the measured phases of a step.
//!
//! A cause is a property of the run that differs from the scenario, for example a slower network. The seconds that it
//! explains are the iteration time with the property minus the predicted time, on one global batch.

mod advice;
mod memory;
mod phases;

pub use advice::Advice;
pub use phases::{LatePhase, PhaseGap};

use serde::{Deserialize, Serialize};

use crate::fit::FieldChange;
use crate::run_comparison::Phase;
use planscope_plan::certainty::Interval;
use planscope_plan::scenario::PlannerKind;

/// Smallest share of the gap that a listed cause explains.
pub const MIN_SHARE: f64 = 0.03;
/// Field of a cause with slow reading of data: the host time of a microbatch.
pub const HOST_MICROBATCH: &str = "/cluster/device/curves/host_microbatch_us";

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
    /// The most usual strength first; this is no probability. Strengths are tuned to the gap, so their effects do not tell
    /// causes apart.
    UsualStrength,
    /// The best match of the phases that the log times first.
    Phases,
}

impl CauseOrder {
    /// Describes the order.
    pub const fn title(self) -> &'static str {
        match self {
            Self::UsualStrength => "most usual strength first",
            Self::Phases => "best match of the measured phases first",
        }
    }
}

/// How usual the strength is that a cause needs to explain the difference, by the thresholds of docs/models.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Plausibility {
    /// Such strengths are common.
    Usual,
    /// Such strengths occur.
    #[default]
    Possible,
    /// Such strengths need a broken or wrongly configured part.
    Unusual,
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
    /// Causes whose memory need differs from the memory of the log, one title with the need each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradicted_by_memory: Vec<String>,
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
    /// True if its strength is tuned until it explains the gap: then the size of its effect is no evidence.
    #[serde(default)]
    pub is_tuned: bool,
    /// How usual this strength is.
    #[serde(default)]
    pub plausibility: Plausibility,
    /// Predicted peak memory with the property in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<f64>,
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

/// Fields of causes with slower or exposed communication.
const COMMUNICATION: [&str; 6] = [
    "/cluster/inter_node/gb_per_s",
    "/cluster/intra_node/gb_per_s",
    "/training/data_overlap",
    "/training/tensor_overlap",
    "/training/overlapped_backward",
    "/training/overlapped_sends",
];

impl Cause {
    /// The title, with a mark if the strength is tuned to the gap.
    pub fn marked_title(&self) -> String {
        if self.is_tuned { format!("{} (strength tuned to the difference)", self.title) } else { self.title.clone() }
    }

    /// Names a change of a phase, for a job with `replicas` that reduce gradients. Timers of the passes contain exposed
    /// communication and waiting for data: a cause of these changes no computation. One replica reduces the gradients
    /// of a tied embedding only, between the first and the last stage.
    pub fn phase_title<'a>(&self, shift: &'a PhaseShift, replicas: u32) -> &'a str {
        let is = |phase: Phase| shift.phase == phase.name();
        let is_communication =
            !self.fields.is_empty() && self.fields.iter().all(|field| COMMUNICATION.contains(&field.pointer.as_str()));
        if is(Phase::Reduction) && replicas == 1 {
            "all-reduce of the shared embedding"
        } else if is(Phase::Forward) && self.is_reading() {
            "waiting for data in the forward passes"
        } else if is(Phase::Forward) && is_communication {
            "exposed communication in the forward passes"
        } else if is(Phase::Backward) && is_communication {
            "exposed communication in the backward passes"
        } else {
            &shift.phase
        }
    }

    /// True if the cause is reading of data.
    pub fn is_reading(&self) -> bool {
        self.fields.iter().any(|field| field.pointer == HOST_MICROBATCH)
    }
}

impl Slowness {
    /// True if the measurement lies in the 80 % interval of the prediction. A difference can then be an error of the
    /// prediction.
    pub fn is_inside_interval(&self) -> bool {
        (self.interval_s.low..=self.interval_s.high).contains(&self.measured_s)
    }
}
