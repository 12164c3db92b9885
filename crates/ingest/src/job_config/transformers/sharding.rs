//! Sharding of weights, gradients and optimizer state: DeepSpeed ZeRO, FSDP or plain data parallelism.

use super::{ACCELERATE, DEEPSPEED};
use crate::job_config::JobConfigError;
use crate::job_config::keys::Keys;
use crate::job_config::settings::{Settings, Sharding, within_node};
use planner::training::Framework;

/// Keys of the devices over which data parallelism shards.
const SHARD_DEGREES: [&str; 2] = ["accelerate.parallelism_config.parallelism_config_dp_shard_size", "dp_shard_size"];

/// True for a degree above 1.
fn is_several(value: &str) -> bool {
    value.trim().parse::<u32>().is_ok_and(|degree| degree > 1)
}

/// Reads the sharding. Returns true for FSDP.
pub(super) fn read(keys: &mut Keys, settings: &mut Settings) -> Result<bool, JobConfigError> {
    let is_deepspeed = has_deepspeed(keys);
    let kind = keys.text(&["accelerate.distributed_type"], "data parallelism").unwrap_or_default();
    let named = named_file(keys);
    let has_file = keys.has_section(DEEPSPEED);
    let stated = keys.text(&["fsdp"], "sharding");
    // A file with all arguments has an FSDP section without strategies if FSDP is off.
    let has_section = keys.has_section("fsdp_config.") && stated.is_none();
    let strategies = stated.filter(|text| !matches!(text.trim(), "" | "[]" | "false"));
    let backend = keys.text(&["dist_config.name"], "sharding").unwrap_or_default();
    let is_fsdp = kind == "FSDP"
        || strategies.is_some()
        || backend.starts_with("fsdp")
        || has_section
        || keys.has_section("accelerate.fsdp_config.");
    if is_deepspeed && is_fsdp {
        let detail = "DeepSpeed and FSDP are both configured; a job uses one of them".to_owned();
        return Err(JobConfigError::Value { key: "zero_optimization".to_owned(), detail });
    }
    settings.overlapped_gradients = Some(true);
    settings.zero = Some(if is_deepspeed {
        settings.framework = Some(Framework::Deepspeed);
        deepspeed(keys, settings, has_file, named.as_deref())?
    } else if is_fsdp {
        fsdp(keys, settings, strategies.as_deref().unwrap_or_default(), &backend)?
    } else if keys.flag(&["use_distributed_optimizer"], "ZeRO stage").unwrap_or(false) {
        1
    } else if SHARD_DEGREES.iter().any(|name| keys.peek(name).is_some_and(is_several)) {
        keys.assume("Sharded data parallelism is FSDP, which shards weights, gradients and optimizer state.");
        3
    } else {
        if settings.replicas.is_none() {
            keys.assume(
                "Neither DeepSpeed nor FSDP is configured. Every device holds all weights and optimizer state.",
            );
        }
        0
    });
    Ok(is_fsdp || (!is_deepspeed && settings.zero == Some(3)))
}

/// Keys of the name of a DeepSpeed file.
const FILES: [&str; 4] =
    ["deepspeed", "accelerate.deepspeed_config.deepspeed_config_file", "deepspeed_config", "dist_config.config_file"];

/// True for a job of DeepSpeed. Its file may be named and not given.
pub(super) fn has_deepspeed(keys: &Keys) -> bool {
    let named = FILES.iter().find_map(|name| keys.peek(name));
    keys.has_section(DEEPSPEED)
        || named.is_some_and(|name| !name.trim().is_empty())
        || keys.peek("accelerate.distributed_type") == Some("DEEPSPEED")
        || keys.has_section("accelerate.deepspeed_config.")
}

/// Returns the name of a DeepSpeed file that another file names.
fn named_file(keys: &mut Keys) -> Option<String> {
    keys.text(&FILES, "DeepSpeed file").filter(|name| !name.trim().is_empty())
}

/// Reads whether FSDP shards gradients during accumulation. The trainer synchronizes after the last microbatch of a step
/// alone.
pub(super) fn accumulation(keys: &mut Keys, settings: &mut Settings) {
    let names = [
        "accelerator_config.gradient_accumulation_kwargs.sync_each_batch",
        "accelerate.gradient_accumulation_plugin.sync_each_batch",
        "gradient_accumulation_plugin.sync_each_batch",
        "gradient_accumulation_kwargs.sync_each_batch",
    ];
    let is_stated = keys.flag(&names, "synchronization of microbatches").unwrap_or(false);
    // JSON on a command line, with or without its quotes.
    let compact = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let is_in_json = keys.peek("accelerator_config").is_some_and(|text| compact(text).contains("synceachbatchtrue"));
    // LLaMA-Factory has a trainer of its own for this key.
    let is_trainer = !keys.has("dist_config.name");
    let is_accumulated = settings.accumulation.is_some_and(|steps| steps > 1);
    if is_stated || is_in_json || !is_trainer || settings.zero.is_none_or(|stage| stage < 2) {
        return;
    }
    settings.unsharded_gradients = Some(true);
    if is_accumulated {
        keys.assume(
            "With accumulation FSDP holds unsharded gradients of all trained parameters on each device, in the format of \
             the weights. They are counted. Set sync_each_batch to avoid them.",
        );
    }
}

fn deepspeed(
    keys: &mut Keys,
    settings: &mut Settings,
    has_file: bool,
    named: Option<&str>,
) -> Result<u32, JobConfigError> {
    let names = ["deepspeed.zero_optimization.stage", "accelerate.deepspeed_config.zero_stage"];
    let stage = keys.agreed_integer(&names, "ZeRO stage")?;
    if let Some(stage) = stage.filter(|&stage| stage > 3) {
        let detail = format!("{stage} is no ZeRO stage (0 to 3)");
        return Err(JobConfigError::Value { key: "zero_optimization.stage".to_owned(), detail });
    }
    let overlap = keys.flag(&["deepspeed.zero_optimization.overlap_comm"], "overlap of communication");
    if keys.text(&["deepspeed.zero_optimization.zero_hpz_partition_size"], "sharding").is_some_and(|size| size != "1") {
        keys.not_modelled("Secondary sharding within nodes (hpZ) is not applied.");
    }
    let is_quantised = ["zero_quantized_weights", "zero_quantized_gradients", "zeropp_loco_param"].map(|name| {
        let key = format!("deepspeed.zero_optimization.{name}");
        keys.flag(&[&key], "sharding").unwrap_or(false)
    });
    if is_quantised.contains(&true) {
        keys.not_modelled(
            "Quantised communication of weights and gradients (ZeRO++) is read as that of their formats.",
        );
    }
    let shards = keys.count(&["deepspeed.zero_optimization.mics_shard_size"], "sharding")?;
    settings.sharding = shards.map(Sharding::Shards).or(settings.sharding);
    let stage = match (stage, named) {
        (Some(stage), _) => stage,
        // ms-swift has files of its own.
        (None, Some(name)) if !has_file && built_in(name).is_some() => {
            let (stage, is_offloaded) = built_in(name).unwrap_or_default();
            if is_offloaded {
                offload(settings, stage);
            }
            keys.assume(format!("{name} is read as the built-in configuration of DeepSpeed at ZeRO stage {stage}."));
            stage
        }
        (None, Some(name)) if !has_file => {
            let stage = stage_in_name(name);
            if let Some(stage) = stage.filter(|_| states_offload(name)) {
                offload(settings, stage);
                let states = if stage == 3 { "Parameters and the optimizer are" } else { "The optimizer is" };
                keys.assume(format!("The name of the DeepSpeed file states offload. {states} read as offloaded."));
            }
            keys.assume(match stage {
                Some(stage) => {
                    format!("The DeepSpeed file is not given. Its name states ZeRO stage {stage}. Add the file.")
                }
                None => "The DeepSpeed file is not given. The ZeRO stage is read as 3. Add the file.".to_owned(),
            });
            stage.unwrap_or(3)
        }
        (None, _) => {
            keys.assume("DeepSpeed's default ZeRO stage is 0.");
            0
        }
    };
    if overlap.is_none() {
        keys.assume("DeepSpeed's default overlaps gradient communication at ZeRO stage 3 alone.");
    }
    settings.overlapped_gradients = Some(overlap.unwrap_or(stage == 3));
    Ok(stage)
}

/// Applies the offload of DeepSpeed at a ZeRO stage: of all states at stage 3, otherwise of the optimizer.
fn offload(settings: &mut Settings, stage: u32) {
    if stage == 3 {
        settings.offload_states();
    } else {
        settings.optimizer_offload = 1.0;
    }
}

/// Returns stage and offload of a name such as `zero2_offload`, without a path and an ending.
fn built_in(name: &str) -> Option<(u32, bool)> {
    let (stage, rest) = name.trim().strip_prefix("zero")?.split_at_checked(1)?;
    let stage = stage.parse().ok().filter(|&stage| stage <= 3)?;
    matches!(rest, "" | "_offload").then_some((stage, !rest.is_empty()))
}

/// True for `ds_z3_offload_config.json`, false for `stage3_no_offloading.conf`.
fn states_offload(name: &str) -> bool {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
    let is_separator = |letter: char| matches!(letter, '_' | '-' | '.' | ' ');
    name.match_indices("offload").any(|(at, _)| {
        let before = name[..at].trim_end_matches(is_separator).rsplit(is_separator).next().unwrap_or_default();
        !matches!(before, "no" | "non" | "not" | "without" | "wo" | "disable")
    })
}

/// Returns the stage in names such as `ds_z3_config.json`, `zero2.json` and `zero_stage3.json`.
pub(super) fn stage_in_name(name: &str) -> Option<u32> {
    let name = name.rsplit(['/', '\\']).next()?.to_lowercase();
    ["zero_stage", "zero-stage", "stage", "zero", "z", "_s"].iter().find_map(|word| {
        name.match_indices(word).find_map(|(start, _)| {
            let rest = name[start + word.len()..].trim_start_matches(['_', '-']);
            rest.chars().next()?.to_digit(10).filter(|&stage| stage <= 3)
        })
    })
}

fn fsdp(keys: &mut Keys, settings: &mut Settings, strategies: &str, backend: &str) -> Result<u32, JobConfigError> {
    let mut setting = |name: &str, setting: &'static str| {
        let names = [
            format!("{ACCELERATE}fsdp_config.fsdp_{name}"),
            format!("fsdp_config.fsdp_{name}"),
            format!("fsdp_config.{name}"),
            format!("fsdp_{name}"),
        ];
        keys.agreed(&names.each_ref().map(String::as_str), setting)
    };
    let version = setting("version", "version of FSDP")?;
    let strategy = setting("sharding_strategy", "sharding")?;
    let reshard = setting("reshard_after_forward", "resharding after the forward")?;
    let is_offload = |value: Option<String>| value.is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let is_offloaded =
        is_offload(setting("offload_params", "offload")?) || is_offload(setting("cpu_offload", "offload")?);
    if is_offloaded || strategies.contains("offload") {
        settings.offload_states();
    }
    let is_second = version.as_deref() == Some("2") || backend == "fsdp2";
    // Version 1 accepts the strategy under either key.
    let stated = if is_second { reshard.or(strategy) } else { strategy.or(reshard) };
    let stated = stated.unwrap_or_else(|| strategies.to_owned()).to_uppercase();
    let has = |word: &str| stated.contains(word);
    if settings.sharding.is_none() && (has("HYBRID") || matches!(stated.as_str(), "4" | "5")) {
        settings.sharding = Some(within_node(keys));
    }
    Ok(match stated.as_str() {
        "TRUE" | "1" | "4" => 3,
        "FALSE" | "2" | "5" => 2,
        "3" => 0,
        _ if has("ZERO2") || has("SHARD_GRAD_OP") => 2,
        _ if has("NO_SHARD") => 0,
        _ if has("FULL_SHARD") || has("HYBRID_SHARD") => 3,
        _ => {
            keys.assume("The default of FSDP shards weights, gradients and optimizer state (ZeRO stage 3).");
            3
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_state_their_stage() {
        for (name, stage) in [
            ("examples/deepspeed/ds_z3_config.json", Some(3)),
            ("deepspeed_configs/zero2.json", Some(2)),
            ("zero_stage1_config.json", Some(1)),
            ("z9/ds_config.json", None),
        ] {
            assert_eq!(stage_in_name(name), stage, "{name}");
        }
    }
}
