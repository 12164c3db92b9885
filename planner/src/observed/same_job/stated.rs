//! Checks of what a log states among its arguments, each only where it is stated: what the model looks like, which parameters
//! are trained, the format of products, the device.

use super::{Agreement, JobCheck, JobQuantity, LoggedJob, PlannedJob, agreement, consequence};

/// Relative difference of two vocabularies that are still one: programs pad it for tensor parallelism.
const VOCABULARY_TOLERANCE: f64 = 0.05;
/// Share of the plan's trained parameters below which a log trains others, and its inverse above.
const LEAST_TRAINED: f64 = 0.5;
/// Relative tolerance of the parameters of one shard.
const SHARD_TOLERANCE: f64 = 0.10;
/// Bits of an element of a product.
const FP8_BITS: f64 = 8.0;
const OTHER_BITS: f64 = 16.0;

const OTHER_MODEL: &str = "Another model: choose a scenario with the model of the run.";

/// The checks of what is stated.
pub(super) fn checks(log: &LoggedJob, plan: &PlannedJob) -> Vec<JobCheck> {
    let mut checks = Vec::new();
    if let Some(shape) = plan.shape {
        let dimensions = [
            (JobQuantity::FeedForwardSize, log.feed_forward_size, shape.feed_forward, 0.0),
            (JobQuantity::AttentionHeads, log.attention_heads, shape.heads, 0.0),
            (JobQuantity::Experts, log.experts, shape.experts, 0.0),
            (JobQuantity::Vocabulary, log.vocabulary, shape.vocabulary, VOCABULARY_TOLERANCE),
        ];
        checks.extend(
            dimensions.into_iter().filter_map(|(quantity, measured, planned, tolerance)| {
                dimension(quantity, measured?, planned, tolerance)
            }),
        );
    }
    checks.extend(log.trained_parameters.and_then(|measured| trained(measured, plan)));
    checks.extend(log.is_fp8.map(|is_fp8| format(is_fp8, plan)));
    checks.extend(device(log, plan));
    checks
}

/// A dimension of the model. A model without a vocabulary or attention has nothing to compare.
fn dimension(quantity: JobQuantity, measured: f64, planned: f64, tolerance: f64) -> Option<JobCheck> {
    if planned <= 0.0 && quantity != JobQuantity::Experts {
        return None;
    }
    let agrees = (measured - planned).abs() < (planned * tolerance).max(0.5);
    Some(stated(quantity, (measured, planned), agrees, OTHER_MODEL))
}

/// Parameters that are trained. Programs that shard parameters may print those of one device.
fn trained(measured: f64, plan: &PlannedJob) -> Option<JobCheck> {
    let planned = plan.trained_parameters;
    if planned <= 0.0 {
        return None;
    }
    let ratio = measured / planned;
    let is_whole = (LEAST_TRAINED..=1.0 / LEAST_TRAINED).contains(&ratio);
    let is_shard = (ratio * plan.devices - 1.0).abs() <= SHARD_TOLERANCE;
    let advice = if ratio < LEAST_TRAINED {
        format!(
            "The log trains {measured:.0} parameters, far fewer than the plan: adapters such as LoRA have neither the gradients nor \
             the optimizer state of the whole model."
        )
    } else {
        format!("The log trains {measured:.0} parameters, far more than the plan. {OTHER_MODEL}")
    };
    Some(stated(JobQuantity::TrainedParameters, (measured, planned), is_whole || is_shard, &advice))
}

fn format(is_fp8: bool, plan: &PlannedJob) -> JobCheck {
    let bits = |is_fp8: bool| if is_fp8 { FP8_BITS } else { OTHER_BITS };
    let advice = "fp8 products have another peak: set the precision of the scenario to that of the run.";
    let check = stated(JobQuantity::ProductBits, (bits(is_fp8), bits(plan.is_fp8)), is_fp8 == plan.is_fp8, advice);
    let name = |is_fp8: bool| if is_fp8 { "fp8" } else { "not fp8" }.to_owned();
    JobCheck { measured_name: name(is_fp8), planned_name: name(plan.is_fp8), ..check }
}

/// The device, where both names are known. The figures beside the names are the memory of the plan's device, as no log has a number
/// for a name.
fn device(log: &LoggedJob, plan: &PlannedJob) -> Option<JobCheck> {
    let (measured, planned) = log.device.zip(plan.device)?;
    Some(JobCheck {
        quantity: JobQuantity::Device,
        agreement: agreement(measured == planned),
        measured: None,
        planned: plan.memory_gib,
        derivation: format!("the log names {measured}, the plan {planned}"),
        consequence: consequence(measured == planned, "Another device: choose a scenario with the cluster of the run."),
        measured_name: measured.to_string(),
        planned_name: planned.to_string(),
    })
}

fn stated(quantity: JobQuantity, (measured, planned): (f64, f64), agrees: bool, advice: &str) -> JobCheck {
    JobCheck::new(
        quantity,
        if agrees { Agreement::Same } else { Agreement::Different },
        (Some(measured), planned),
        "stated by the log".to_owned(),
        consequence(agrees, advice),
    )
}
