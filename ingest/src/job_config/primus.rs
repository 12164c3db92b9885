//! Primus experiment files: overrides of Megatron-LM or `MaxText` settings, with a model file by name.

use super::keys::Keys;
use super::settings::Settings;
use super::{JobConfigError, maxtext, megatron};

const SECTION: &str = "modules.pre_trainer.";
const OVERRIDES: &str = "modules.pre_trainer.overrides.";

pub(super) fn is_job(keys: &Keys) -> bool {
    keys.has("modules.pre_trainer.framework")
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let framework = keys.text(&["modules.pre_trainer.framework"], "framework").unwrap_or_default();
    let is_megatron = match framework.as_str() {
        "megatron" => true,
        "maxtext" => false,
        _ => {
            let detail = "the framework is not megatron or maxtext".to_owned();
            return Err(JobConfigError::Value { key: "modules.pre_trainer.framework".to_owned(), detail });
        }
    };
    let model = keys.text(&["modules.pre_trainer.model"], "model");
    let name = model.map(|file| file.trim_end_matches(".yaml").trim_end_matches(".yml").to_owned());
    keys.rename(|key| {
        let name = key.strip_prefix(OVERRIDES)?;
        Some(if is_megatron { name.replace('_', "-") } else { name.to_owned() })
    });
    keys.ignore(|key| {
        let starts = [SECTION, "work_group", "user_name", "exp_name", "workspace", "env.", "platform"];
        starts.iter().any(|start| key.starts_with(start))
    });
    let mut settings = if is_megatron { arguments(keys)? } else { maxtext::read(keys)? };
    if settings.model.is_none() {
        settings.model_name = name.map(|name| ("modules.pre_trainer.model", name));
    }
    Ok(settings)
}

/// Reads the overrides as arguments, with the defaults of the trainer file of Primus.
fn arguments(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    if !["bf16", "fp16"].iter().any(|name| keys.has(name)) {
        keys.assume("The default precision of Primus is bf16.");
        keys.derive("bf16", "true", "bf16");
    }
    if keys.flag(&["use-turbo-deepep"], "exchange between experts").unwrap_or(false) {
        keys.derive("moe-enable-deepep", "true", "use-turbo-deepep");
    }
    keys.assume("The default attention of Primus is fused (flash attention).");
    keys.derive("use-flash-attn", "true", "use-flash-attn");
    let settings = if keys.has("num-layers") { megatron::read(keys)? } else { megatron::read_job(keys)? };
    keys.ignore(|key| {
        let starts = [
            "stderr",
            "auto-continue",
            "mock-data",
            "disable-last",
            "enable-primus",
            "use-turbo",
            "turbo-",
            "profile",
            "cross-entropy",
            "gradient-accumulation-fusion",
            "max-position",
            "use-pytorch",
            "moe-",
            "pp-",
            "dump-",
            "patch-",
            "use-rocm",
            "hf-",
        ];
        starts.iter().any(|start| key.starts_with(start))
    });
    Ok(settings)
}
