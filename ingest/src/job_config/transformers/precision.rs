//! Number formats of products and gradients.

use planner::training::{GradientFormat, Precision};

use super::DEEPSPEED;
use crate::job_config::keys::Keys;
use crate::job_config::settings::Settings;
use crate::job_config::unmodelled;
use crate::job_config::{ConfigFormat, JobConfigError};

/// Returns the precision; `None` if the trainer sets it.
pub(super) fn read(format: ConfigFormat, keys: &mut Keys) -> Result<Option<Precision>, JobConfigError> {
    let mut is_on = |names: &[&str]| -> (bool, bool) {
        let values: Vec<String> =
            names.iter().filter_map(|name| keys.text(&[name], "precision")).map(|value| value.to_lowercase()).collect();
        let is_true = |value: &String| matches!(value.trim(), "true" | "full" | "1" | "yes");
        (values.iter().any(is_true), values.iter().any(|value| value.trim() == "auto"))
    };
    let (bf16, bf16_auto) = is_on(&["bf16", "deepspeed.bf16.enabled", "deepspeed.bfloat16.enabled"]);
    let (fp16, fp16_auto) = is_on(&["fp16", "deepspeed.fp16.enabled"]);
    let (fp8, _) = is_on(&["fp8", "deepspeed.fp8.enabled"]);
    let (pure, _) = is_on(&["pure_bf16", "bfloat16"]);
    let (half, _) = is_on(&["float16"]);
    let short = ["bf16_master_weights_and_grads", "bf16_optimizer_states"];
    let (has_short_states, _) =
        is_on(&short.map(|name| format!("deepspeed.bf16.{name}")).each_ref().map(String::as_str));
    let mixed = keys.text(&["accelerate.mixed_precision", "mixed_precision"], "precision").unwrap_or_default();
    let mixed = mixed.to_lowercase();
    let is_full = keys.peek("bf16").is_some_and(|value| value.trim() == "full");
    if pure || is_full || has_short_states {
        keys.not_modelled(unmodelled::PURE_BF16);
    }
    let bf16 = bf16 || pure || (mixed.contains("bf16") && !fp16);
    let fp16 = fp16 || half || (mixed.contains("fp16") && !bf16);
    if bf16 && fp16 {
        let detail = "bf16 and fp16 are both on; a job uses one of them".to_owned();
        return Err(JobConfigError::Value { key: "bf16".to_owned(), detail });
    }
    if fp16 {
        keys.assume("fp16 is read as bf16: both have the same size and speed.");
    }
    let default = match format {
        ConfigFormat::Trl => Some("TRL"),
        ConfigFormat::Swift => Some("ms-swift"),
        ConfigFormat::OpenRlhf => Some("OpenRLHF"),
        _ => None,
    };
    let is_stated = keys.has("bf16") || keys.has("fp16") || mixed == "no" || mixed == "fp8";
    let default = default.filter(|_| !is_stated && !bf16 && !fp16);
    if let Some(name) = default {
        keys.assume(format!("{name}'s default precision is bf16."));
    }
    Ok(match (fp8 || mixed == "fp8", bf16 || fp16 || default.is_some()) {
        (true, _) => Some(Precision::Fp8),
        (false, true) => Some(Precision::Bf16),
        (false, false) if bf16_auto || fp16_auto => None,
        (false, false) => {
            keys.assume("Neither bf16 nor fp16 is on. The precision is fp32, the default.");
            Some(Precision::Fp32)
        }
    })
}

/// DeepSpeed accumulates gradients in the format of the weights unless the file states another.
pub(super) fn gradients(keys: &mut Keys, settings: &mut Settings) {
    if !keys.has_section(DEEPSPEED) || settings.precision == Some(Precision::Fp32) {
        return;
    }
    let stated = keys.text(&["deepspeed.data_types.grad_accum_dtype"], "format of gradients");
    if stated.is_none() {
        keys.assume("DeepSpeed's default accumulates gradients in 16 bits.");
    }
    let is_long = stated.is_some_and(|format| matches!(format.as_str(), "fp32" | "float32"));
    settings.gradients = (!is_long).then_some(GradientFormat::Bf16);
}
