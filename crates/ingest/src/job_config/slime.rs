//! slime: reinforcement learning with the arguments of Megatron-LM and arguments of its own.

use super::keys::Keys;
use super::scenario::SEQUENCE;

/// Starts of arguments for generation, rewards, losses and data.
const IGNORED: [&str; 30] = [
    "actor-num",
    "address",
    "advantage-",
    "apply-chat",
    "balance-data",
    "colocate",
    "custom-",
    "dynamic-",
    "entropy",
    "eps-clip",
    "hf-checkpoint",
    "input-key",
    "kl-",
    "label-key",
    "metadata-key",
    "n-samples",
    "num-rollout",
    "num-steps-per-rollout",
    "over-sampling",
    "prompt-data",
    "ref-load",
    "reward-",
    "rm-type",
    "rollout-",
    "runtime-env",
    "sglang-",
    "update-weight",
    "use-kl",
    "use-tis",
    "working-dir",
];

/// Returns the name of the model, if the sizes are in a file that the script sources.
pub(super) fn model_name(keys: &mut Keys) -> Option<String> {
    if keys.has("num-layers") || !keys.has("rollout-batch-size") {
        return None;
    }
    keys.text(&["hf-checkpoint"], "model")
}

/// Adds the defaults of slime to arguments of Megatron-LM, if they are those of slime.
pub(super) fn add_defaults(keys: &mut Keys) {
    let is_own = keys.has("actor-num-gpus-per-node") || keys.has("actor-num-nodes");
    if !is_own || !keys.has("rollout-batch-size") {
        return;
    }
    if !keys.has("bf16") && !keys.has("fp16") {
        keys.derive("bf16", "true", "");
        keys.assume("slime's default precision is bf16.");
    }
    if !keys.has("use-distributed-optimizer") {
        keys.derive("use-distributed-optimizer", "true", "");
        keys.assume("slime distributes the optimizer (ZeRO stage 1).");
    }
    batch(keys);
    dynamic_batch(keys);
    keys.not_modelled(
        "Only the training step of the actor is read. Generation, the reference and the reward model are left out.",
    );
    keys.ignore(|key| !key.ends_with("-num-nodes") && IGNORED.iter().any(|start| key.starts_with(start)));
}

/// Derives the global batch and the sequence length from the samples of a rollout, if they are not stated.
fn batch(keys: &mut Keys) {
    let number = |keys: &Keys, name: &str| keys.peek(name).and_then(|value| value.trim().parse::<u32>().ok());
    let (prompts, samples) = (number(keys, "rollout-batch-size"), number(keys, "n-samples-per-prompt").unwrap_or(1));
    let steps = number(keys, "num-steps-per-rollout").unwrap_or(1).max(1);
    if let Some(prompts) = prompts.filter(|_| !keys.has("global-batch-size")) {
        let batch = prompts.saturating_mul(samples) / steps;
        keys.derive("global-batch-size", &batch.to_string(), "rollout-batch-size");
        keys.assume(format!(
            "A step has the {batch} samples of a rollout ({prompts} prompts x {samples} / {steps} steps)."
        ));
    }
    if let Some(response) = number(keys, "rollout-max-response-len").filter(|_| !keys.has("seq-length")) {
        let prompt = number(keys, "rollout-max-prompt-len").unwrap_or(0);
        let length = prompt.saturating_add(response);
        keys.derive("seq-length", &length.to_string(), "rollout-max-response-len");
        keys.assume(format!("Every sequence has {length} tokens, the longest response and prompt that are stated."));
    }
}

/// Derives the microbatch from the most tokens of a device, over which context parallelism splits sequences.
fn dynamic_batch(keys: &mut Keys) {
    if !keys.has("use-dynamic-batch-size") {
        return;
    }
    let number = |name: &str| keys.peek(name).and_then(|value| value.trim().parse::<u32>().ok());
    let tokens = number("max-tokens-per-gpu").map(|tokens| (tokens, number("seq-length").unwrap_or(SEQUENCE)));
    let context = number("context-parallel-size").unwrap_or(1);
    if let Some((tokens, length)) = tokens.filter(|&(_, length)| length > 0 && !keys.has("micro-batch-size")) {
        let most = (tokens.saturating_mul(context) / length).max(1);
        // Microbatches have different numbers of sequences. A power of two divides usual batches.
        let sequences = 1_u32 << most.ilog2();
        keys.derive("micro-batch-size", &sequences.to_string(), "max-tokens-per-gpu");
        keys.assume(format!(
            "At most {tokens} tokens of a device are read as a microbatch of {sequences} x {length} tokens."
        ));
    } else {
        keys.not_modelled("Microbatches with a number of tokens instead of sequences are not applied.");
    }
    keys.ignore(|key| matches!(key, "use-dynamic-batch-size" | "max-tokens-per-gpu"));
}
