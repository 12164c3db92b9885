//! Microbatch, gradient accumulation and global batch.

use crate::job_config::keys::Keys;
use crate::job_config::settings::{Batch, Settings};
use crate::job_config::{ConfigFormat, JobConfigError};

/// Sequences of a step in ms-swift without stated accumulation, at least.
const LEAST: u32 = 16;

pub(super) fn read(format: ConfigFormat, keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let names = ["deepspeed.train_micro_batch_size_per_gpu", "per_device_train_batch_size", "micro_batch_size"];
    let is_zero = |name: &&str| keys.peek(name).is_some_and(|value| value.trim() == "0");
    if let Some(name) = names.into_iter().find(is_zero) {
        let detail = "a microbatch has at least one sequence".to_owned();
        return Err(JobConfigError::Value { key: name.to_owned(), detail });
    }
    let mut microbatch = keys.agreed_count(&names, "sequences of a microbatch")?;
    let names = [
        "deepspeed.gradient_accumulation_steps",
        "gradient_accumulation_steps",
        "accelerate.deepspeed_config.gradient_accumulation_steps",
        "accelerate.gradient_accumulation_steps",
    ];
    let mut accumulation = keys.agreed_count(&names, "accumulation steps")?;
    let names = ["deepspeed.train_batch_size", "global_batch_size"];
    let global = keys.agreed_count(&names, "global batch")?;
    // With a global batch, DeepSpeed computes the missing value.
    if global.is_none() {
        let default = match format {
            ConfigFormat::TrainingArguments => Some(("transformers", 8)),
            ConfigFormat::LlamaFactory => Some(("LLaMA-Factory", 8)),
            ConfigFormat::Axolotl => Some(("axolotl", 1)),
            ConfigFormat::Trl => Some(("TRL", 8)),
            ConfigFormat::Swift => Some(("ms-swift", 1)),
            _ => None,
        };
        if let (None, Some((name, default))) = (microbatch, default) {
            keys.assume(format!("{name}'s default microbatch has {default} sequences of a device."));
            microbatch = Some(default);
        }
        if let (ConfigFormat::Swift, None, Some(sequences)) = (format, accumulation, microbatch) {
            keys.assume(format!(
                "ms-swift's default accumulates until the devices have at least {LEAST} sequences together."
            ));
            settings.microbatch = microbatch;
            settings.batch = Batch::Least { least: LEAST, sequences };
            return Ok(());
        }
        if accumulation.is_none() && microbatch.is_some() {
            keys.assume("The default of gradient accumulation is 1 step.");
            accumulation = Some(1);
        }
    }
    // With accumulation alone, a step has that many microbatches of the usual size.
    if let (None, None, Some(_)) = (global, microbatch, accumulation) {
        keys.assume("The microbatch is not stated. It is read as 1 sequence of a device.");
        microbatch = Some(1);
    }
    settings.microbatch = microbatch;
    settings.accumulation = accumulation;
    settings.batch_key = Some("train_batch_size");
    settings.batch = match (global, microbatch) {
        (Some(global), _) => Batch::Global(global),
        (None, Some(microbatch)) => Batch::Replica(microbatch.saturating_mul(accumulation.unwrap_or(1))),
        (None, None) => Batch::Unknown,
    };
    if let (Some(global), Some(microbatch)) = (global, microbatch) {
        let sequences = microbatch.saturating_mul(accumulation.unwrap_or(1));
        if !global.is_multiple_of(sequences) {
            let detail =
                format!("{global} is no multiple of {sequences} (sequences of a microbatch times accumulation steps)");
            return Err(JobConfigError::Value { key: "train_batch_size".to_owned(), detail });
        }
        if accumulation.is_some() {
            settings.replicas = settings.replicas.or(Some(global / sequences));
        }
    }
    Ok(())
}
