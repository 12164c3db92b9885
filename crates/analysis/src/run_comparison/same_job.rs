//! Checks that a run and a plan are the same job, based on log values that do not depend on speed
//! (docs/models.md, section 15).
//!
//! Times, rates and utilization differ between a run and its plan, but the work per step is equal.
//! If samples, tokens, FLOPs or devices per step differ, the log is from another job, and time
//! differences have no meaning.

mod correction;
mod device;
mod layout;
mod model;
mod planned;
mod precision;
mod rates;
mod stated;
#[cfg(test)]
mod tests;

use correction::corrections;
pub use correction::{Correction, corrected};
pub use device::DeviceName;
pub use layout::StatedLayout;
pub use model::StatedModel;
pub use planned::PlannedJob;
pub use planned::product_peak_tflops;
pub use precision::{BaseFormat, StatedPrecision};
pub use rates::StepProducts;

use serde::{Deserialize, Serialize};

use super::flop_formula::{FlopFormula, formulas_near};

/// Relative tolerance for samples per step if they are derived from rates. A batch size stated in
/// the log must match exactly.
const SAMPLES_TOLERANCE: f64 = 0.005;
/// Relative tolerance for tokens per step, in addition to the range of the simulated batches. Logs
/// print rates with three digits, and logged steps are averages.
const TOKENS_TOLERANCE: f64 = 0.10;
/// Relative tolerance for the number of devices before rounding.
const DEVICES_TOLERANCE: f64 = 0.02;
/// Relative tolerance of the operations of a step, around the nearest known formula.
const FLOPS_TOLERANCE: f64 = 0.01;
/// Relative difference within which a formula may still explain the operations: vocabularies are padded, and programs leave out
/// the router, the embedding or the norms. A model of other dimensions may have as many operations.
const FLOPS_NEAR: f64 = 0.10;

/// Logged values that identify a job: medians over the valid steps. `None` if the log has no value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LoggedJob {
    /// Step time in seconds.
    pub step_s: Option<f64>,
    /// Rates times the step time.
    pub per_step: StepProducts,
    /// True if step times are differences of times of day. They contain time between the steps, which rates of trainers can leave
    /// out.
    pub is_clock_step: bool,
    /// Stated global batch size in samples.
    pub global_batch: Option<f64>,
    /// Samples per second, whole job.
    pub samples_per_s: Option<f64>,
    /// Tokens per second, whole job.
    pub tokens_per_s: Option<f64>,
    /// Tokens per second and device.
    pub tokens_per_s_per_device: Option<f64>,
    /// Stated number of devices (world size).
    pub devices: Option<f64>,
    /// Stated sequence length in tokens.
    pub sequence_length: Option<f64>,
    /// Stated number of transformer layers.
    pub layers: Option<f64>,
    /// Stated hidden size.
    pub hidden_size: Option<f64>,
    /// Stated MLP hidden size; for a mixture of experts, per expert.
    pub feed_forward_size: Option<f64>,
    /// Stated number of query heads.
    pub attention_heads: Option<f64>,
    /// Stated key and value heads.
    pub kv_heads: Option<f64>,
    /// Stated experts per layer; 0 for a dense model.
    pub experts: Option<f64>,
    /// Stated vocabulary size, including padding.
    pub vocabulary: Option<f64>,
    /// Stated number of trained parameters.
    pub trained_parameters: Option<f64>,
    /// Stated number format of products.
    pub precision: StatedPrecision,
    /// Stated parallel layout.
    pub layout: StatedLayout,
    /// Stated device name.
    pub device: Option<DeviceName>,
    /// TFLOP/s per device, by the formula used in the log.
    pub tflops_per_device: Option<f64>,
    /// Peak allocated or reserved memory per device in GiB, whichever is larger.
    pub memory_gib: Option<f64>,
}

/// A quantity that identifies a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobQuantity {
    /// Samples per step; sequences if samples are packed.
    GlobalBatch,
    /// Tokens per step.
    TokensPerStep,
    /// Number of devices.
    Devices,
    /// Floating-point operations per step.
    FlopsPerStep,
    /// TFLOP/s per device, compared to the device peak.
    PeakTflops,
    /// Memory per device in GiB, compared to the device capacity.
    DeviceMemory,
    /// Number of transformer layers, for a language model.
    Layers,
    /// Hidden size of a language model.
    HiddenSize,
    /// MLP hidden size of a language model.
    FeedForwardSize,
    /// Query heads of a language model.
    AttentionHeads,
    /// Key and value heads of a language model.
    KvHeads,
    /// Experts per layer; 0 for a dense model.
    Experts,
    /// Vocabulary size of a language model.
    Vocabulary,
    /// Number of trained parameters.
    TrainedParameters,
    /// Bits of an element of a product: 8 for fp8, 16 for bf16 and fp16, 32 for fp32.
    ProductBits,
    /// Accelerator name.
    Device,
    /// Degrees, microbatch and recomputation, by their names.
    Layout,
}

impl JobQuantity {
    /// Name in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GlobalBatch => "global batch size",
            Self::TokensPerStep => "tokens per step",
            Self::Devices => "devices",
            Self::FlopsPerStep => "FLOPs per step",
            Self::PeakTflops => "TFLOP/s per device",
            Self::DeviceMemory => "memory per device in GiB",
            Self::Layers => "layers of the model",
            Self::HiddenSize => "hidden size of the model",
            Self::FeedForwardSize => "feed-forward size of the model",
            Self::AttentionHeads => "attention heads of the model",
            Self::KvHeads => "key and value heads of the model",
            Self::Experts => "experts of a layer",
            Self::Vocabulary => "vocabulary of the model",
            Self::TrainedParameters => "trained parameters",
            Self::ProductBits => "number format of matrix products",
            Self::Device => "device type",
            Self::Layout => "layout",
        }
    }
}

impl JobQuantity {
    /// Returns the sentence of an agreement for quantities with a limit of the device; `None` for quantities that are
    /// equal.
    const fn within_limit(self) -> Option<&'static str> {
        match self {
            Self::PeakTflops => Some("TFLOP/s are below the device peak"),
            Self::DeviceMemory => Some("memory is below the device memory"),
            _ => None,
        }
    }

    /// True if the planned value is a limit of the device.
    pub const fn is_limited(self) -> bool {
        self.within_limit().is_some()
    }
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Run and plan agree within the tolerance.
    Same,
    /// Run and plan are different jobs.
    Different,
    /// The job is the same, and the plan has another layout than the run: their times cannot be compared.
    OtherLayout,
    /// The log does not state the required values.
    NotChecked,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobCheck {
    /// Checked quantity.
    pub quantity: JobQuantity,
    /// Result of the check.
    pub agreement: Agreement,
    /// Logged value; not set if it cannot be derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Planned value. For peak and memory, the device limit.
    pub planned: f64,
    /// Derivation of the measured value, or the missing log values if not checked.
    pub derivation: String,
    /// Consequence of a difference; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub consequence: String,
    /// Logged name; empty for numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub measured_name: String,
    /// Planned name; empty for numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub planned_name: String,
}

/// Comparison between a run's job and a planned job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobComparison {
    /// All checks, in a fixed order.
    pub checks: Vec<JobCheck>,
    /// Scenario changes that match the run's job. Empty if run and plan agree, or no change
    /// applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<Correction>,
    /// Formulas that explain the logged TFLOP/s, closest first. Empty if the log does not print
    /// TFLOP/s or no formula matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formulas: Vec<FlopFormula>,
}

impl JobCheck {
    /// Creates a check for numbers.
    fn new(
        quantity: JobQuantity,
        agreement: Agreement,
        (measured, planned): (Option<f64>, f64),
        derivation: String,
        consequence: String,
    ) -> Self {
        let (measured_name, planned_name) = (String::new(), String::new());
        Self { quantity, agreement, measured, planned, derivation, consequence, measured_name, planned_name }
    }
}

impl JobComparison {
    /// Returns true if no check found a difference.
    pub fn is_same_job(&self) -> bool {
        self.checks.iter().all(|check| check.agreement != Agreement::Different)
    }

    /// Whether the plan has the layout of the run, as far as the log states it.
    pub fn is_same_layout(&self) -> bool {
        self.checks.iter().all(|check| check.agreement != Agreement::OtherLayout)
    }

    /// Whether a difference of times is an error of the prediction: job and layout are the same.
    pub fn is_comparable(&self) -> bool {
        self.is_same_job() && self.is_same_layout()
    }

    /// Names the quantities that agree, and those that were not checked.
    pub fn summary(&self) -> String {
        let with = |agreement| self.checks.iter().filter(move |check: &&JobCheck| check.agreement == agreement);
        let joined = |names: Vec<&str>| names.join(", ");
        let same = with(Agreement::Same).filter(|check| !check.quantity.is_limited());
        let same = joined(same.map(|check| check.quantity.name()).collect());
        let unchecked = joined(
            with(Agreement::NotChecked).map(|check| check.quantity.name().trim_end_matches(" in GiB")).collect(),
        );
        let mut parts = vec![if same.is_empty() {
            "The log does not state enough to check that run and plan are the same job".to_owned()
        } else {
            format!("Log and plan agree in: {same}")
        }];
        parts.extend(with(Agreement::Same).filter_map(|check| check.quantity.within_limit()).map(str::to_owned));
        let agree = parts.join("; ");
        if unchecked.is_empty() { format!("{agree}.") } else { format!("{agree}. Not checked: {unchecked}.") }
    }

    /// Returns the checks that found a difference.
    pub fn differences(&self) -> impl Iterator<Item = &JobCheck> {
        self.checks.iter().filter(|check| check.agreement == Agreement::Different)
    }
}

/// Compares the job of a log with that of a plan.
pub fn compare_jobs(log: &LoggedJob, plan: &PlannedJob) -> JobComparison {
    let devices = log.devices(plan.devices);
    let counted = devices.unwrap_or(plan.devices);
    let samples = check_samples(log, plan);
    let tokens = check_tokens(log, plan, devices);
    let (flops, formulas) = check_flops(log, plan, counted, devices.is_some());
    let mut checks =
        vec![samples, tokens, check_devices(plan, devices), flops, check_peak(log, plan), check_memory(log, plan)];
    if let Some(shape) = plan.shape {
        checks.push(check_shape(JobQuantity::Layers, log.layers, shape.layers, "the log states no number of layers"));
        checks.push(check_shape(
            JobQuantity::HiddenSize,
            log.hidden_size,
            shape.hidden,
            "the log states no hidden size",
        ));
    }
    checks.extend(stated::checks(log, plan));
    let comparison = JobComparison { checks, corrections: Vec::new(), formulas };
    JobComparison { corrections: corrections(log, plan, &comparison), ..comparison }
}

fn check_samples(log: &LoggedJob, plan: &PlannedJob) -> JobCheck {
    let quantity = JobQuantity::GlobalBatch;
    let Some((measured, is_stated)) = log.samples() else {
        return not_checked(
            quantity,
            plan.samples_per_step(),
            "the log states neither the global batch size nor samples per second with a step time",
        );
    };
    let tolerance = if is_stated { 0.5 / measured } else { SAMPLES_TOLERANCE };
    let agrees = plan.batch_sizes().any(|(min, max)| is_within(measured, min, max, tolerance));
    let is_above = plan.batch_sizes().all(|(_, max)| measured > max);
    if !is_stated && !agrees && log.is_clock_step && is_above {
        return not_checked(quantity, plan.samples_per_step(), rates::ABOVE_BY_CLOCK);
    }
    let derivation = if is_stated { "stated by the log" } else { "samples per second x step time" };
    let grows = "Step time, tokens per second and operations of a step grow with the batch.";
    let (unit, advice) = if plan.has_a_sample_per_sequence() {
        (String::new(), "")
    } else {
        (
            format!("; the plan has {:.0} sequences packed from {} samples", plan.sequences.mean, plan.samples),
            " The log states no number of samples before packing: set the global batch by hand.",
        )
    };
    JobCheck::new(
        quantity,
        agreement(agrees),
        (Some(measured), plan.samples_per_step()),
        format!("{derivation}{unit}"),
        consequence(agrees, &format!("{grows}{advice}")),
    )
}

/// Consequence of another number of tokens.
const OTHER_LENGTH: &str = "A step of another length: batch size, context length or lengths of the samples differ.";

fn check_tokens(log: &LoggedJob, plan: &PlannedJob, devices: Option<f64>) -> JobCheck {
    let quantity = JobQuantity::TokensPerStep;
    let Some((measured, is_by_rate)) = log.tokens(devices.unwrap_or(plan.devices)) else {
        return not_checked(
            quantity,
            plan.tokens.mean,
            "the log states no tokens per second with a step time, and no sequence length",
        );
    };
    let spread = is_within(measured, plan.tokens.min, plan.tokens.max, TOKENS_TOLERANCE);
    // Some frameworks include padding tokens.
    let padded = is_within(measured, plan.padded_tokens.min, plan.padded_tokens.max, TOKENS_TOLERANCE);
    let derivation = match (log.tokens_per_s, log.tokens_per_s_per_device, devices) {
        _ if !is_by_rate => "global batch size x sequence length",
        (Some(_), ..) => "tokens per second x step time",
        (None, Some(_), Some(_)) => "tokens per second and device x devices x step time",
        (None, Some(_), None) => "tokens per second and device x devices of the plan x step time",
        (None, None, _) => "global batch size x sequence length",
    };
    let agrees = spread || padded;
    let is_above = measured > plan.tokens.max.max(plan.padded_tokens.max);
    if is_by_rate && !agrees && log.is_clock_step && is_above {
        return not_checked(quantity, plan.tokens.mean, rates::ABOVE_BY_CLOCK);
    }
    let is_per_device = log.tokens_per_s.is_some()
        && is_within(measured * plan.devices, plan.tokens.min, plan.tokens.max, TOKENS_TOLERANCE);
    let per_device = if is_per_device { " The tokens per second of the log can be per device." } else { "" };
    JobCheck::new(
        quantity,
        agreement(agrees),
        (Some(measured), plan.tokens.mean),
        derivation.to_owned(),
        consequence(agrees, &format!("{OTHER_LENGTH}{per_device}")),
    )
}

fn check_devices(plan: &PlannedJob, devices: Option<f64>) -> JobCheck {
    let quantity = JobQuantity::Devices;
    let Some(measured) = devices else {
        return not_checked(
            quantity,
            plan.devices,
            "the log states no world size, and not both tokens per second of the job and of one device",
        );
    };
    let agrees = (measured - plan.devices).abs() < 0.5;
    JobCheck::new(
        quantity,
        agreement(agrees),
        (Some(measured), plan.devices),
        "stated by the log, or tokens per second of the job / of one device".to_owned(),
        consequence(agrees, "Rates of the whole job and memory per device depend on the number of devices."),
    )
}

/// Returns the FLOP check, and the formulas that match the logged value.
fn check_flops(log: &LoggedJob, plan: &PlannedJob, devices: f64, is_stated: bool) -> (JobCheck, Vec<FlopFormula>) {
    let quantity = JobQuantity::FlopsPerStep;
    let planned = plan.model_flops();
    let measured = log.flop_per_device().map(|flop| flop * devices);
    let Some(measured) = measured.filter(|flops| is_positive(*flops)) else {
        let missing = match (log.tflops_per_device, log.step_s) {
            (None, Some(_)) => "the log states no TFLOP/s",
            (Some(_), None) => "the log states no step time",
            (None, None) => "the log states neither TFLOP/s nor a step time",
            (Some(_), Some(_)) => "the TFLOP/s or the step time of the log is not positive",
        };
        return (not_checked(quantity, planned, missing), Vec::new());
    };
    let near = formulas_near(&plan.flops, measured, FLOPS_NEAR);
    let samples = log.samples().map(|(samples, _)| samples / plan.samples_per_step());
    let per_sample = samples.map(|ratio| formulas_near(&plan.flops, measured / ratio, FLOPS_NEAR)).unwrap_or_default();
    let is_above = plan.flops.iter().all(|step| step.flops < measured);
    if near.is_empty() && per_sample.is_empty() && log.is_clock_step && is_above {
        return (not_checked(quantity, planned, rates::ABOVE_BY_CLOCK), Vec::new());
    }
    let text = if per_sample.is_empty() {
        "Another model, context length or number of devices: no known formula gives this figure for the plan's model."
    } else {
        "It follows from the batch size: operations of one sample agree."
    };
    let mut derivation = if is_stated {
        "TFLOP/s per device x devices x step time"
    } else {
        "TFLOP/s per device x devices of the plan x step time"
    }
    .to_owned();
    let nearest = near.first().map(|step| (measured / step.flops - 1.0).abs());
    let result = match nearest {
        None => Agreement::Different,
        Some(distance) if distance <= FLOPS_TOLERANCE || has_same_shape(log, plan) => Agreement::Same,
        Some(distance) => {
            derivation = format!(
                "{derivation} is {:.1} % from the nearest known formula: a model of nearly this size has as many operations, and the \
                 log does not state the layers and the hidden size",
                100.0 * distance
            );
            Agreement::NotChecked
        }
    };
    let check = JobCheck::new(
        quantity,
        result,
        (Some(measured), near.first().map_or(planned, |step| step.flops)),
        derivation,
        consequence(result != Agreement::Different, text),
    );
    let explaining = if near.is_empty() { per_sample } else { near };
    (check, explaining.into_iter().map(|step| step.formula).collect())
}

/// Whether the log states layers and hidden size, and both are those of the plan's model.
fn has_same_shape(log: &LoggedJob, plan: &PlannedJob) -> bool {
    let is = |stated: Option<f64>, planned: f64| stated.is_some_and(|stated| (stated - planned).abs() < 0.5);
    plan.shape.is_some_and(|shape| is(log.layers, shape.layers) && is(log.hidden_size, shape.hidden))
}

fn check_peak(log: &LoggedJob, plan: &PlannedJob) -> JobCheck {
    let quantity = JobQuantity::PeakTflops;
    let Some(measured) = log.tflops_per_device else {
        return not_checked(quantity, plan.peak_tflops, "the log states no TFLOP/s");
    };
    let agrees = measured <= plan.peak_tflops;
    JobCheck::new(
        quantity,
        agreement(agrees),
        (Some(measured), plan.peak_tflops),
        "TFLOP/s of the log against the device's data sheet".to_owned(),
        consequence(
            agrees,
            "No run exceeds the peak of its device: the log is of a faster device, of another number format, or counts operations that \
             were not executed.",
        ),
    )
}

fn check_memory(log: &LoggedJob, plan: &PlannedJob) -> JobCheck {
    let quantity = JobQuantity::DeviceMemory;
    let Some(measured) = log.memory_gib else {
        return not_checked(quantity, plan.memory_gib, "the log states no memory");
    };
    let agrees = measured <= plan.memory_gib;
    JobCheck::new(
        quantity,
        agreement(agrees),
        (Some(measured), plan.memory_gib),
        "allocated or reserved memory of the log against the capacity of the device".to_owned(),
        consequence(agrees, "The run's device has more memory than the plan's."),
    )
}

/// Returns the check for a model dimension, which must match exactly.
fn check_shape(quantity: JobQuantity, measured: Option<f64>, planned: f64, missing: &str) -> JobCheck {
    let Some(measured) = measured else { return not_checked(quantity, planned, missing) };
    let agrees = (measured - planned).abs() < 0.5;
    JobCheck::new(
        quantity,
        agreement(agrees),
        (Some(measured), planned),
        "stated by the log".to_owned(),
        consequence(agrees, stated::OTHER_MODEL),
    )
}

const fn agreement(agrees: bool) -> Agreement {
    if agrees { Agreement::Same } else { Agreement::Different }
}

fn consequence(agrees: bool, text: &str) -> String {
    if agrees { String::new() } else { text.to_owned() }
}

fn not_checked(quantity: JobQuantity, planned: f64, missing: &str) -> JobCheck {
    JobCheck::new(quantity, Agreement::NotChecked, (None, planned), missing.to_owned(), String::new())
}

fn is_within(value: f64, min: f64, max: f64, tolerance: f64) -> bool {
    value >= min * (1.0 - tolerance) && value <= max * (1.0 + tolerance)
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}
