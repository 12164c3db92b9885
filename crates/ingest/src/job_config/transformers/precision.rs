//! Number formats of products and gradients.

use planner::training::{Fp8Recipe, GradientFormat, MasterWeights, MomentFormat, Precision};

use super::sharding::has_deepspeed;
use crate::job_config::keys::Keys;
use crate::job_config::settings::Settings;
use crate::job_config::{ConfigFormat, JobConfigError, unmodelled};

/// Assumption of a job without a precision.
const FULL: &str = "Neither bf16 nor fp16 is on. The precision is fp32, the default.";

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
    let mixed = keys.text(&["accelerate.mixed_precision", "mixed_precision"], "precision").unwrap_or_default();
    let mixed = mixed.to_lowercase();
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
        // Axolotl chooses bf16 on devices that have it, as all devices of the presets since the A100.
        (false, false) if keys.peek("bf16").is_some_and(|value| value.trim().eq_ignore_ascii_case("auto")) => {
            keys.assume("bf16: auto is read as bf16.");
            Some(Precision::Bf16)
        }
        (false, false) if bf16_auto || fp16_auto => None,
        (false, false) => {
            keys.assume(FULL);
            Some(Precision::Fp32)
        }
    })
}

/// Reads the recipe of fp8 products. Axolotl and LLaMA-Factory call torchao, which scales each tensor by its largest
/// value; accelerate calls the backend that it names.
pub(super) fn fp8(keys: &mut Keys, settings: &mut Settings) {
    if settings.precision != Some(Precision::Fp8) {
        return;
    }
    let names = ["fp8_backend", "accelerate.fp8_config.backend", "accelerate.fp8_config.fp8_backend"];
    let backend =
        names.into_iter().find_map(|name| keys.text(&[name], "recipe of fp8")).map(|name| name.to_lowercase());
    let is_torchao = match backend.as_deref().map(str::trim) {
        Some("ao" | "torchao") => true,
        Some("te" | "msamp") => false,
        _ => keys.has("fp8"),
    };
    let name = "accelerate.fp8_config.use_mxfp8_block_scaling";
    let is_mx = !is_torchao && keys.flag(&[name], "recipe of fp8").unwrap_or(false);
    settings.fp8.recipe = match (is_torchao, is_mx) {
        (true, _) => Some(Fp8Recipe::Tensorwise),
        (false, true) => Some(Fp8Recipe::Mxfp8),
        (false, false) => None,
    };
    let names = ["fp8_enable_fsdp_float8_all_gather", "accelerate.fp8_config.enable_fsdp_float8_all_gather"];
    let is_gathered = keys.flag(&names, "fp8 weights").unwrap_or(false);
    settings.fp8.has_weights = is_torchao && is_gathered;
}

/// DeepSpeed accumulates gradients in the format of the weights unless the file states another. Without ZeRO and with
/// bf16, it accumulates them in fp32.
pub(super) fn gradients(keys: &mut Keys, settings: &mut Settings) {
    if !has_deepspeed(keys) || settings.precision == Some(Precision::Fp32) {
        return;
    }
    let stated = keys.text(&["deepspeed.data_types.grad_accum_dtype"], "format of gradients");
    let is_on = |name: &&str| keys.peek(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    let names = ["accelerate.mixed_precision", "mixed_precision"];
    let is_fp16 = ["fp16", "float16", "deepspeed.fp16.enabled"].iter().any(is_on)
        || names.iter().any(|name| keys.peek(name).is_some_and(|value| value.to_lowercase().contains("fp16")));
    let is_long = match stated.as_deref() {
        Some(format) => matches!(format, "fp32" | "float32"),
        None if settings.zero == Some(0) && !is_fp16 => {
            keys.assume("DeepSpeed's default accumulates gradients in fp32 at ZeRO stage 0 with bf16.");
            true
        }
        None => {
            keys.assume("DeepSpeed's default accumulates gradients in 16 bits.");
            false
        }
    };
    settings.gradients = (!is_long).then_some(GradientFormat::Bf16);
    if is_long && !is_fp16 && settings.zero == Some(0) {
        keys.assume(unmodelled::BF16_OPTIMIZER);
        settings.zero = Some(1);
    }
}

/// LLaMA-Factory without bf16 and fp16 loads weights in the format of the model. It converts the trained ones to fp32,
/// except with BAdam, which also updates them in 16 bits. Sources: `model/patcher.py` and `model/adapter.py`.
fn load_in_format_of_model(format: ConfigFormat, keys: &mut Keys, settings: &mut Settings) {
    let has_badam = keys.peek("use_badam").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    let is_short = settings.adapters.is_some() || has_badam;
    if format != ConfigFormat::LlamaFactory || !is_short || has_deepspeed(keys) || !keys.retract(FULL) {
        return;
    }
    keys.assume(
        "Neither bf16 nor fp16 is on. LLaMA-Factory loads the weights in the format of the model, which is read as bf16, and the \
         operators run in it.",
    );
    settings.precision = Some(Precision::Bf16);
    if has_badam && settings.adapters.is_none() {
        settings.set_pure_bf16();
    }
}

/// Reads the formats of the optimizer state. The optimizer updates the weights in the format in which they are loaded.
/// With DeepSpeed and FSDP, it updates fp32 copies, and adapters are fp32 (PEFT).
pub(super) fn states(format: ConfigFormat, keys: &mut Keys, settings: &mut Settings) {
    let loaded = keys.text(
        &["torch_dtype", "dtype", "model_init_kwargs.torch_dtype", "model_init_kwargs.dtype"],
        "format of weights",
    );
    let is_short =
        |format: &str| ["bfloat16", "bf16", "float16", "fp16"].contains(&format.trim().to_lowercase().as_str());
    let is_full = keys.peek("bf16").is_some_and(|value| value.trim() == "full");
    let is_pure = ["pure_bf16", "bfloat16"].iter().any(|name| keys.flag(&[name], "precision").unwrap_or(false));
    let has_deepspeed = has_deepspeed(keys);
    let is_plain = settings.zero == Some(0) && settings.adapters.is_none();
    let is_default = format == ConfigFormat::Swift && loaded.is_none() && settings.precision == Some(Precision::Bf16);
    if is_plain && is_default && !has_deepspeed {
        keys.assume("ms-swift loads the weights in bf16, so the optimizer updates bf16 weights.");
    }
    let is_loaded_short = is_default || loaded.as_deref().is_some_and(is_short);
    // Without mixed precision the operators run in the format of the weights.
    let is_unmixed = is_loaded_short && settings.precision == Some(Precision::Fp32);
    if is_unmixed && !has_deepspeed {
        settings.precision = Some(Precision::Bf16);
        keys.retract(FULL);
        keys.assume("Neither bf16 nor fp16 is on. The weights are loaded in 16 bits, so the operators run in 16 bits.");
    }
    let is_updated_short = is_unmixed && settings.adapters.is_none();
    load_in_format_of_model(format, keys, settings);
    if !has_deepspeed && (is_full || is_pure || is_updated_short || is_plain && is_loaded_short) {
        settings.set_pure_bf16();
    }
    if keys.flag(&["deepspeed.bf16.bf16_master_weights_and_grads"], "format of weights").unwrap_or(false) {
        settings.master_weights = MasterWeights::Half;
        settings.gradients = Some(GradientFormat::Bf16);
    }
    if keys.flag(&["deepspeed.bf16.bf16_optimizer_states"], "format of the optimizer state").unwrap_or(false) {
        settings.moments = MomentFormat::Bf16;
    }
}
