//! Checks of what a log states among its arguments: dimensions of the model and trained parameters where they are stated; format
//! of products, device and layout always.

use super::{Agreement, JobCheck, JobQuantity, LoggedJob, PlannedJob, agreement, consequence, layout, precision};

/// Relative tolerance for the vocabulary size, because frameworks pad it for tensor parallelism.
const VOCABULARY_TOLERANCE: f64 = 0.05;
/// Relative tolerance of the trained parameters: vocabularies are padded, and norms of queries and keys are not modelled.
const TRAINED_TOLERANCE: f64 = 0.01;
/// Share of the plan's trained parameters below which a log trains an adapter or a part of the model.
const MAX_ADAPTED: f64 = 0.5;

pub(super) const OTHER_MODEL: &str = "Another model: choose a scenario with the model of the run, or correct this one.";

/// Returns the checks for all values that the log states.
pub(super) fn checks(log: &LoggedJob, plan: &PlannedJob) -> Vec<JobCheck> {
    let mut checks = Vec::new();
    if let Some(shape) = plan.shape {
        let dimensions = [
            (JobQuantity::FeedForwardSize, log.feed_forward_size, shape.feed_forward, 0.0),
            (JobQuantity::AttentionHeads, log.attention_heads, shape.heads, 0.0),
            (JobQuantity::KvHeads, log.kv_heads, shape.kv_heads, 0.0),
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
    checks.extend([precision::check(log, plan), device(log, plan), layout::check(log, plan)]);
    checks
}

/// Returns the check for a model dimension. `None` if the model has no such dimension, e.g. no
/// vocabulary or attention.
fn dimension(quantity: JobQuantity, measured: f64, planned: f64, tolerance: f64) -> Option<JobCheck> {
    if planned <= 0.0 && quantity != JobQuantity::Experts {
        return None;
    }
    let agrees = (measured - planned).abs() < (planned * tolerance).max(0.5);
    Some(stated(quantity, (measured, planned), agrees, OTHER_MODEL))
}

/// Parameters that are trained: those of the plan's trainable modules, or those of one device of a program that shards them.
fn trained(measured: f64, plan: &PlannedJob) -> Option<JobCheck> {
    let planned = plan.trained_parameters;
    if planned <= 0.0 {
        return None;
    }
    let is_near = |expected: f64| (measured / expected - 1.0).abs() <= TRAINED_TOLERANCE;
    let is_shard = is_near(planned / plan.devices.max(1.0));
    let part = plan.modules.iter().find(|module| is_near(module.parameters));
    let advice = match part {
        Some(module) => format!("The log trains as many parameters as {} has: freeze the other modules.", module.name),
        None if measured < planned * MAX_ADAPTED => format!(
            "The log trains {measured:.0} parameters, far fewer than the plan: adapters such as LoRA have neither the gradients nor \
             the optimizer state of the whole model."
        ),
        None => format!("The log trains {measured:.0} parameters, the plan {planned:.0}. {OTHER_MODEL}"),
    };
    Some(stated(JobQuantity::TrainedParameters, (measured, planned), is_near(planned) || is_shard, &advice))
}

/// The device. `measured` is absent, because a name has no number; `planned` is the memory of the plan's device.
fn device(log: &LoggedJob, plan: &PlannedJob) -> JobCheck {
    let check = |agreement, derivation: String, advice: String| {
        JobCheck::new(JobQuantity::Device, agreement, (None, plan.memory_gib), derivation, advice)
    };
    let missing = match (log.device, plan.device) {
        (Some(measured), Some(planned)) => {
            let advice =
                consequence(measured == planned, "Another device: choose a scenario with the cluster of the run.");
            let derivation = format!("the log names {measured}, the plan {planned}");
            return JobCheck {
                measured_name: measured.to_string(),
                planned_name: planned.to_string(),
                ..check(agreement(measured == planned), derivation, advice)
            };
        }
        (Some(measured), None) => format!("the log names {measured}, the cluster of the plan no known device"),
        (None, _) => "the log states no device".to_owned(),
    };
    check(Agreement::NotChecked, missing, String::new())
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
