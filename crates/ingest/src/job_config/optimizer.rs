//! Optimizers, their offload to the host, and adapters.

use planner::model::Adapters;
use planner::training::{MomentFormat, Optimizer};

use super::JobConfigError;
use super::adapted_layers;
use super::keys::Keys;
use super::settings::Settings;

/// Returns the optimizer of a name in a configuration, or `None` if it is not known.
fn optimizer(name: &str) -> Option<Optimizer> {
    let name = name.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["4bit", "fp8", "onebit", "zeroone", "mini", "adamax", "galore", "apollo", "lomo"]) {
        None
    } else if has(&["muon"]) {
        Some(Optimizer::Muon)
    } else if has(&["adafactor"]) {
        Some(Optimizer::Adafactor)
    } else if has(&["adam"]) {
        Some(if has(&["8bit"]) { Optimizer::Adam8Bit } else { Optimizer::Adam })
    } else if name.contains("sgd") {
        Some(Optimizer::Sgd)
    } else {
        None
    }
}

/// Applies the optimizer that a configuration names.
pub(super) fn set(name: &str, keys: &mut Keys, settings: &mut Settings) {
    match optimizer(name) {
        Some(optimizer) => settings.optimizer = optimizer,
        None => keys.not_modelled("The optimizer is read as Adam with fp32 states."),
    }
    let name = name.to_lowercase();
    if has_long_moments(&name) {
        settings.own_moments = Some(MomentFormat::Fp32);
    }
    if name.contains("paged") {
        keys.not_modelled(
            "The paged states of the optimizer are counted in device memory. The driver can move them to the host, so \
             memory is an upper bound.",
        );
    }
}

/// True for an optimizer of bitsandbytes with states in fp32, whatever the format of the weights (`optim_bits` 32).
fn has_long_moments(name: &str) -> bool {
    let is_short = name.contains("8bit") || name.contains("4bit");
    let marks = ["32bit", "bitsandbytes", "bnb", "paged"];
    !is_short && marks.iter().any(|mark| name.contains(mark))
}

/// Keys of offload of parameters by DeepSpeed.
const PARAMETERS: [&str; 2] =
    ["deepspeed.zero_optimization.offload_param.device", "accelerate.deepspeed_config.offload_param_device"];

/// Returns whether a key names a device of offload, and reports NVMe as host memory.
fn is_offloaded(keys: &mut Keys, name: &str, states: &'static str) -> bool {
    let value = keys.text(&[name], states).map(|value| value.trim().to_lowercase());
    if value.as_deref() == Some("nvme") {
        keys.not_modelled(format!("{states} to NVMe is read as offload to host memory."));
    }
    value.is_some_and(|value| !matches!(value.as_str(), "none" | "false" | "0"))
}

/// Reads the offload of the optimizer and of parameters by DeepSpeed, accelerate or Megatron-LM.
pub(super) fn read_offload(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let names = [
        "deepspeed.zero_optimization.offload_optimizer.device",
        "accelerate.deepspeed_config.offload_optimizer_device",
        "deepspeed.zero_optimization.cpu_offload",
        "optimizer-cpu-offload",
    ];
    let mut is_on = false;
    for name in names {
        is_on |= is_offloaded(keys, name, "Offload of the optimizer");
    }
    refuse_plain_offload(keys);
    let shares = ["optimizer-offload-fraction", "deepspeed.zero_optimization.offload_optimizer.ratio"];
    let share = keys.number(&shares, "optimizer offload")?;
    if is_on {
        settings.optimizer_offload = share.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&settings.optimizer_offload) {
            let detail = format!("{} is no share between 0 and 1", settings.optimizer_offload);
            return Err(JobConfigError::Value { key: "optimizer offload".to_owned(), detail });
        }
    }
    for name in PARAMETERS {
        if is_offloaded(keys, name, "Offload of parameters") {
            settings.offload_states();
        }
    }
    Ok(())
}

/// Reports that Megatron-LM refuses the offload of another than the precision-aware optimizer. Its program checks it, which
/// Megatron-Bridge and verl do not run.
fn refuse_plain_offload(keys: &mut Keys) {
    let name = "optimizer-cpu-offload";
    let is_on = |keys: &Keys, name: &str| {
        keys.peek(name).is_some_and(|value| !value.trim().to_lowercase().starts_with(['f', '0', 'n']))
    };
    let file_name = keys.file_name(name);
    let is_of_program = !file_name.contains('.') || file_name.starts_with("modules.");
    if is_of_program && is_on(keys, name) && !is_on(keys, "use-precision-aware-optimizer") {
        keys.refuse(
            "Megatron-LM refuses the offload of the optimizer (optimizer-cpu-offload) without \
             use-precision-aware-optimizer. State both.",
        );
    }
}

/// Keys of LLaMA-Factory, axolotl, PEFT and TRL for the rank and the adapted layers.
const RANK: [&str; 5] = ["lora_rank", "lora_r", "peft_config.r", "lora.r", "peft_config.rank"];
const TARGETS: [&str; 5] =
    ["lora_target", "lora_target_modules", "peft_config.target_modules", "lora.target_modules", "lora_modules"];

/// Reads adapters. `default_rank` and `adapts_all` are the framework's defaults.
pub(super) fn read_adapters(
    keys: &mut Keys,
    settings: &mut Settings,
    (default_rank, adapts_all): (u32, bool),
    base_bits: Option<u32>,
) -> Result<(), JobConfigError> {
    let stated = keys.count(&RANK, "rank of the adapters")?;
    if stated.is_none() {
        keys.assume(format!("The rank of the adapters is not stated. It is read as {default_rank}."));
    }
    let rank = stated.unwrap_or(default_rank);
    let is_all = keys.flag(&["lora_target_linear"], "adapted layers");
    let key = TARGETS.into_iter().find(|name| keys.has(name)).map(|name| keys.file_name(name)).unwrap_or_default();
    let targets = keys.text(&TARGETS, "adapted layers");
    let mlp = match (is_all, &targets) {
        (Some(true), _) => true,
        (_, Some(targets)) => adapts_mlp(targets),
        (_, None) => adapts_all,
    };
    if targets.is_none() && is_all.is_none() {
        let layers = if adapts_all { "all linear layers" } else { "the linear layers of attention" };
        keys.assume(format!("The adapted layers are not stated. They are read as {layers}."));
    }
    if let Some(targets) = targets.filter(|_| is_all != Some(true)) {
        adapted_layers::report_partial(keys, (&key, &targets), mlp);
    }
    settings.adapters = Some(Adapters { rank, mlp, base_bits });
    Ok(())
}

/// True if the adapted layers include those of the MLP.
pub(super) fn adapts_mlp(targets: &str) -> bool {
    let targets = targets.to_lowercase();
    ["all", "gate", "up_proj", "down_proj", "mlp", "fc1", "fc2", "w1", "linear_fc"]
        .iter()
        .any(|word| targets.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_optimizers() {
        for (name, expected) in [
            ("adamw_torch_fused", Some(Optimizer::Adam)),
            ("FusedAdam", Some(Optimizer::Adam)),
            ("paged_adamw_8bit", Some(Optimizer::Adam8Bit)),
            ("dist_muon", Some(Optimizer::Muon)),
            ("adafactor", Some(Optimizer::Adafactor)),
            ("sgd", Some(Optimizer::Sgd)),
            ("galore_adamw", None),
            ("lion_32bit", None),
        ] {
            assert_eq!(optimizer(name), expected, "{name}");
        }
    }

    #[test]
    fn target_modules_name_attention_or_all_layers() {
        assert!(adapts_mlp("all") && adapts_mlp("[\"q_proj\", \"down_proj\"]") && adapts_mlp("all-linear"));
        assert!(!adapts_mlp("q_proj,v_proj") && !adapts_mlp("[\"query_key_value\"]"));
    }
}
