//! The attention kernel in the arguments of Megatron-LM.

use planner::training::AttentionKernel;

use super::keys::Keys;
use super::settings::Settings;

/// Arguments of versions of 2021 and 2022, which have no fused attention. DeepSpeed still has them.
const OLDER: [&str; 3] =
    ["checkpoint-activations", "activations-checkpoint-method", "activations-checkpoint-num-layers"];

/// Reads the attention kernel. Returns true if the layers are those of Megatron-Core without Transformer Engine, whose
/// attention has no fused kernel and reads no backend.
pub(super) fn read(keys: &mut Keys, settings: &mut Settings, is_deepspeed: bool) -> bool {
    // The switch of layers before Megatron-Core, which have fused attention without Transformer Engine.
    let flash = keys.flag(&["use-flash-attn", "use-flash-attn-v2"], "attention kernel").unwrap_or(false);
    let backend = keys.text(&["attention-backend"], "attention kernel");
    let implementation = keys.text(&["transformer-impl"], "attention kernel");
    let has_implementation = implementation.is_some();
    let is_local = implementation.is_some_and(|name| name.trim() == "local") && !flash;
    let is_older = !is_deepspeed && !flash && !has_implementation && OLDER.into_iter().any(|name| keys.has(name));
    if is_older && backend.is_none() {
        keys.assume(
            "The arguments of recomputation are those of Megatron-LM before 2023, whose attention has no fused kernel.",
        );
    }
    let backend = backend.as_deref().map(|name| name.split_whitespace().next().unwrap_or_default());
    if is_local && backend.is_some_and(|name| !matches!(name, "unfused" | "local")) {
        keys.assume(format!(
            "{} has no effect: the attention of local layers has no fused kernel.",
            keys.file_name("attention-backend")
        ));
    }
    settings.attention = match backend {
        _ if is_local => Some(AttentionKernel::Unfused),
        None if is_older => Some(AttentionKernel::Unfused),
        Some("unfused" | "local") => Some(AttentionKernel::Unfused),
        // The fused attention of Transformer Engine is that of cuDNN.
        Some("fused") => Some(AttentionKernel::Cudnn),
        Some(_) => Some(AttentionKernel::Flash),
        None => flash.then_some(AttentionKernel::Flash),
    };
    is_local
}
