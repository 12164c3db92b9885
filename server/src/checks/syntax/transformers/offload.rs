//! Keys of offload to the host: DeepSpeed and FSDP.

use super::super::{Job, Setting};
use super::sharding::STAGE;

const FSDP: [&str; 5] = [
    "accelerate.fsdp_config.fsdp_offload_params",
    "fsdp_config.fsdp_offload_params",
    "fsdp_config.offload_params",
    "fsdp_config.cpu_offload",
    "fsdp_offload_params",
];

/// Returns the settings of offloaded parameters. DeepSpeed offloads them only with the optimizer, and FSDP all states.
pub(super) fn parameters(job: &Job<'_>, is_on: bool) -> Option<Vec<Setting>> {
    let device = if is_on { "cpu" } else { "none" };
    let devices = |section: &str, separator: &str| {
        let states: &[&str] = if is_on { &["offload_param", "offload_optimizer"] } else { &["offload_param"] };
        states.iter().map(|state| Setting::set(&[&format!("{section}{state}{separator}device")], device)).collect()
    };
    if job.has_section("accelerate.deepspeed_config.") {
        return Some(devices("accelerate.deepspeed_config.", "_"));
    }
    if job.has_section("deepspeed.") {
        return Some(devices("deepspeed.zero_optimization.", "."));
    }
    if let Some(words) = job.value("fsdp").filter(|words| words.contains("shard")) {
        let others = words.split_whitespace().filter(|word| *word != "offload");
        let words: Vec<&str> = others.chain(is_on.then_some("offload")).collect();
        return Some(vec![Setting::if_stated(&["fsdp"], words.join(" ")), Setting::if_stated(&FSDP, is_on)]);
    }
    let sections = ["accelerate.fsdp_config.", "fsdp_config."];
    let section = sections.into_iter().position(|section| job.has_section(section));
    section.map(|first| vec![Setting::set(&FSDP[first..], is_on)])
}

fn states_fsdp_offload(job: &Job<'_>) -> bool {
    let is_on = |key: &&str| job.value(key).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    FSDP.iter().any(is_on) || job.value("fsdp").is_some_and(|words| words.contains("offload"))
}

/// Returns the settings of an offloaded optimizer. Stage 3 of DeepSpeed offloads a share, and the other stages and
/// accelerate the whole optimizer. DeepSpeed offloads none without ZeRO.
pub(super) fn optimizer(job: &Job<'_>, share: f64) -> Option<Vec<Setting>> {
    let device = if share > 0.0 { "cpu" } else { "none" };
    let stage = || STAGE.iter().find_map(|key| job.value(key)?.parse::<u32>().ok());
    if share > 0.0 && stage().is_some_and(|stage| stage == 0 || (stage < 3 && share < 1.0)) {
        return None;
    }
    if job.has_section("deepspeed.") {
        let ratio = "deepspeed.zero_optimization.offload_optimizer.ratio";
        let ratio = match share {
            share if share > 0.0 && share < 1.0 => Setting::set(&[ratio], share),
            _ => Setting::if_stated(&[ratio], 1.0),
        };
        // The key of the first versions has no share.
        let older = "deepspeed.zero_optimization.cpu_offload";
        if job.states(&[older]) {
            return (share == 0.0 || share >= 1.0).then(|| vec![Setting::if_stated(&[older], share > 0.0)]);
        }
        let key = "deepspeed.zero_optimization.offload_optimizer.device";
        return Some(vec![Setting::set(&[key], device), ratio]);
    }
    // FSDP offloads the optimizer with the parameters.
    if share == 0.0 && !job.has_section("accelerate.deepspeed_config.") {
        return states_fsdp_offload(job).then(Vec::new);
    }
    let key = "accelerate.deepspeed_config.offload_optimizer_device";
    let is_whole = share == 0.0 || share >= 1.0;
    (is_whole && job.has_section("accelerate.deepspeed_config.")).then(|| vec![Setting::set(&[key], device)])
}
