//! Primus experiment files: overrides of Megatron-LM, `MaxText` or torchtitan settings, with a model file by name.

use planner::model::{Model, ModuleRole};
use planner::training::Framework;

use super::keys::Keys;
use super::settings::Settings;
use super::{JobConfigError, maxtext, megatron, model_names, optimizer, torchtitan};

const SECTION: &str = "modules.pre_trainer.";
const OVERRIDES: &str = "modules.pre_trainer.overrides.";

pub(super) fn is_job(keys: &Keys) -> bool {
    keys.has("modules.pre_trainer.framework") || keys.has("modules.post_trainer.framework")
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    // Fine-tuning has the same settings in a section of another name.
    keys.rename(|key| key.strip_prefix("modules.post_trainer.").map(|name| format!("modules.pre_trainer.{name}")));
    let framework = keys.text(&["modules.pre_trainer.framework"], "framework").unwrap_or_default();
    let is_megatron = match framework.as_str() {
        "megatron" | "megatron_bridge" => true,
        "maxtext" | "torchtitan" => false,
        _ => {
            let detail = "the framework is not megatron, megatron_bridge, maxtext or torchtitan".to_owned();
            return Err(JobConfigError::Value { key: "modules.pre_trainer.framework".to_owned(), detail });
        }
    };
    let model = keys.text(&["modules.pre_trainer.model"], "model");
    let name = model.map(|file| file.trim_end_matches(".yaml").trim_end_matches(".yml").to_owned());
    keys.rename(|key| {
        let name = key.strip_prefix(OVERRIDES)?;
        if name.starts_with("lora_") {
            return Some(name.to_owned());
        }
        Some(if is_megatron { name.replace('_', "-") } else { name.to_owned() })
    });
    keys.ignore(|key| {
        let starts = [SECTION, "work_group", "user_name", "exp_name", "workspace", "env.", "platform"];
        starts.iter().any(|start| key.starts_with(start))
    });
    if framework == "torchtitan" {
        return titan(keys, name);
    }
    let layers =
        if keys.has("num-layers") && !keys.has("hidden-size") { keys.count(&["num-layers"], "layers")? } else { None };
    let mut settings = if is_megatron { arguments(keys)? } else { maxtext::read(keys)? };
    adapters(keys, &mut settings)?;
    if let (Some(layers), Some(name)) = (layers, &name) {
        settings.model = shortened(name, layers, keys)?;
    }
    let checkpoint = keys.text(&["hf-model-name-or-path"], "model");
    let known =
        checkpoint.filter(|checkpoint| model_names::find(checkpoint, &mut Keys::default()).ok().flatten().is_some());
    if let Some(checkpoint) = known.filter(|_| settings.model.is_none()) {
        settings.model_name = Some(("hf-model-name-or-path", checkpoint));
    } else if settings.model.is_none() {
        settings.model_name = name.map(|name| ("modules.pre_trainer.model", name));
    }
    Ok(settings)
}

/// Reads the adapters of fine-tuning.
fn adapters(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let is_on = keys.flag(&["use-lora"], "fine-tuning").unwrap_or(false)
        || keys.text(&["peft"], "fine-tuning").is_some_and(|kind| kind == "lora");
    if is_on {
        // The default rank and layers of Megatron-Bridge.
        optimizer::read_adapters(keys, settings, (32, true), None)?;
    }
    keys.ignore(|key| key.starts_with("lora_") || key == "convert-from-hf");
    Ok(())
}

/// Returns the model of a name with another number of layers.
fn shortened(name: &str, layers: u32, keys: &mut Keys) -> Result<Option<Model>, JobConfigError> {
    let Some(mut model) = model_names::find(name, keys)? else { return Ok(None) };
    if let Some(module) = model.modules.iter_mut().find(|module| module.role == ModuleRole::Backbone) {
        module.layers = layers;
        if let Some(moe) = &mut module.moe {
            moe.dense_layers = moe.dense_layers.min(layers.saturating_sub(1));
        }
    }
    keys.assume(format!("The sizes of the model are those of {}, with {layers} layers.", model.name));
    Ok(Some(model))
}

/// Reads the overrides as the job file of torchtitan.
fn titan(keys: &mut Keys, name: Option<String>) -> Result<Settings, JobConfigError> {
    let key = "modules.pre_trainer.model";
    let name = name.unwrap_or_default();
    // Newer names of files also have the precision.
    let plain = ["-bf16", "-fp8"].iter().fold(name.to_lowercase(), |name, end| name.trim_end_matches(end).to_owned());
    let model = model_names::find(&plain, keys)?.ok_or_else(|| JobConfigError::Value {
        key: key.to_owned(),
        detail: "the sizes of this model are not known".to_owned(),
    })?;
    keys.assume(format!("The sizes of the model are those of {}, known by its name ({key}).", model.name));
    let defaults = [("activation_checkpoint.mode", "none"), ("compile.enable", "true")];
    let open: Vec<_> = defaults.into_iter().filter(|(key, _)| !keys.has(key)).collect();
    let listed: Vec<String> = open.iter().map(|(key, value)| format!("{key} {value}")).collect();
    if !open.is_empty() {
        keys.assume(format!("The defaults of Primus for torchtitan are {}.", listed.join(", ")));
    }
    for (key, value) in open {
        keys.derive(key, value, "");
    }
    let mut settings = torchtitan::read_job(keys, model)?;
    settings.framework = Some(Framework::Torchtitan);
    keys.ignore(|key| key.starts_with("primus_turbo."));
    Ok(settings)
}

/// Settings of `language_model.yaml`, `trainer_base.yaml` and `pre_trainer.yaml` of Primus that differ from the defaults of
/// Megatron-LM, as arguments.
const DEFAULTS: [(&str, &str); 5] = [
    ("sequence-parallel", "true"),
    ("use-distributed-optimizer", "true"),
    ("micro-batch-size", "2"),
    ("global-batch-size", "16"),
    ("seq-length", "1024"),
];

/// The same for the layers of a model whose sizes are stated.
const LAYER_DEFAULTS: [(&str, &str); 3] =
    [("swiglu", "true"), ("disable-bias-linear", "true"), ("untie-embeddings-and-output-weights", "true")];

/// Adds the defaults of Primus that the overrides do not replace.
fn defaults(keys: &mut Keys) {
    switches(keys);
    let layers = if keys.has("hidden-size") { LAYER_DEFAULTS.as_slice() } else { &[] };
    let open: Vec<_> = DEFAULTS.iter().chain(layers).filter(|(name, _)| !keys.has(name)).collect();
    let listed: Vec<String> = open.iter().map(|(name, value)| format!("{} {value}", name.replace('-', "_"))).collect();
    for (name, value) in open {
        keys.derive(name, value, "");
    }
    if !listed.is_empty() {
        keys.assume(format!("The defaults of Primus are {}.", listed.join(", ")));
    }
}

/// Adds the arguments for switches that Primus states with other words.
fn switches(keys: &mut Keys) {
    let is_linear = keys.flag(&["add-bias-linear"], "bias");
    if let Some(has_bias) = is_linear {
        keys.derive("disable-bias-linear", if has_bias { "false" } else { "true" }, "");
    }
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
    defaults(keys);
    keys.assume("The default attention of Primus is fused (flash attention).");
    keys.derive("use-flash-attn", "true", "use-flash-attn");
    let settings = if keys.has("hidden-size") { megatron::read(keys)? } else { megatron::read_job(keys)? };
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
