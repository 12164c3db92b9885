//! Arguments that Megatron-LM refuses together.
//!
//! `validate_args` (megatron/training/arguments.py) and `TransformerConfig` refuse them before the first step; Transformer
//! Engine refuses the heads of an all-to-all in the first one.

use planner::model::Model;
use planner::training::{ContextExchange, Framework, Recompute};

use super::keys::Keys;
use super::settings::Settings;

/// Reports why Megatron-LM does not start a job. Megatron-DeepSpeed has other checks.
pub(super) fn report(keys: &mut Keys, settings: &Settings) {
    if settings.framework == Some(Framework::MegatronDeepspeed) {
        return;
    }
    let layers = settings.model.as_ref().map(Model::layers);
    let refused = [
        offloaded_activations(keys, settings, layers),
        experts(settings),
        muon(keys),
        fp8_weights(keys),
        recomputation(keys, settings),
        overlapped_weights(keys),
        overlapped_collectives(keys, settings),
        exchanged_heads(settings),
    ];
    for sentence in refused.into_iter().flatten() {
        keys.refuse(sentence);
    }
}

/// True for a switch that is on.
fn is_on(keys: &Keys, name: &str) -> bool {
    let word = keys.peek(name).map(|value| first_word(value).to_lowercase());
    word.is_some_and(|word| !matches!(word.as_str(), "false" | "no" | "0" | "off" | "none" | "null"))
}

fn first_word(value: &str) -> &str {
    value.split_whitespace().next().unwrap_or_default()
}

fn offloaded_activations(keys: &Keys, settings: &Settings, layers: Option<u32>) -> Option<String> {
    if settings.activation_offload <= 0.0 {
        return None;
    }
    let name = "cpu-offloading-num-layers";
    let pipeline = settings.pipeline.unwrap_or(1);
    let granularity = keys.peek("recompute-granularity").filter(|_| settings.recompute != Some(Recompute::None));
    let offloaded = settings.offloaded_layers.zip(layers).filter(|(offloaded, layers)| offloaded >= layers);
    let reason = if pipeline > 1 {
        format!("with pipeline parallelism ({pipeline} stages)")
    } else if granularity.is_some() || is_on(keys, "recompute-activations") {
        "with recomputation".to_owned()
    } else if let Some((offloaded, layers)) = offloaded {
        format!("of {offloaded} layers of a model with {layers}: the last layer stays on the device")
    } else {
        return None;
    };
    Some(format!("Megatron-LM refuses the offload of activations ({name}) {reason}."))
}

fn experts(settings: &Settings) -> Option<String> {
    let (tensor, expert) = (settings.tensor.unwrap_or(1), settings.expert.unwrap_or(1));
    let is_refused = tensor > 1 && expert > 1 && settings.sequence_parallel != Some(true);
    is_refused.then(|| {
        format!(
            "Megatron-LM refuses experts with tensor parallelism ({tensor}) and expert parallelism ({expert}) without \
             sequence-parallel. State it."
        )
    })
}

fn muon(keys: &Keys) -> Option<String> {
    let is_muon = keys.peek("optimizer").is_some_and(|name| first_word(name).to_lowercase().contains("muon"));
    let names = ["use-distributed-optimizer", "overlap-grad-reduce", "overlap-param-gather"];
    let stated: Vec<&str> = names.into_iter().filter(|name| is_on(keys, name)).collect();
    (is_muon && !stated.is_empty())
        .then(|| format!("Megatron-LM refuses the optimizer Muon with {}. Leave it out.", stated.join(" and ")))
}

fn fp8_weights(keys: &Keys) -> Option<String> {
    let has_format = ["fp8-format", "fp8", "fp8-hybrid", "fp8-e4m3"].iter().any(|name| is_on(keys, name));
    let is_refused = is_on(keys, "fp8-param-gather") && !has_format;
    is_refused.then(|| "Megatron-LM refuses fp8-param-gather without fp8-format. State both or none.".to_owned())
}

fn recomputation(keys: &Keys, settings: &Settings) -> Option<String> {
    let granularity = keys.peek("recompute-granularity").map(first_word)?;
    let has_method = keys.has("recompute-method") || keys.has("activations-checkpoint-method");
    match (granularity, has_method) {
        ("full", false) => Some(
            "Megatron-LM refuses recompute-granularity full without recompute-method. State uniform or block, and \
             recompute-num-layers."
                .to_owned(),
        ),
        ("selective", true) if settings.recompute == Some(Recompute::Selective) => Some(
            "Megatron-LM refuses recompute-granularity selective with recompute-method. Leave out the method."
                .to_owned(),
        ),
        _ => None,
    }
}

fn overlapped_weights(keys: &Keys) -> Option<String> {
    let sharded = ["use-distributed-optimizer", "use-megatron-fsdp", "use-custom-fsdp"];
    let missing = match (is_on(keys, "overlap-grad-reduce"), sharded.iter().any(|name| is_on(keys, name))) {
        (true, true) => return None,
        (false, _) => "overlap-grad-reduce",
        (true, false) => "use-distributed-optimizer",
    };
    let name = "overlap-param-gather";
    is_on(keys, name).then(|| format!("Megatron-LM refuses {name} without {missing}. State both or none."))
}

fn overlapped_collectives(keys: &Keys, settings: &Settings) -> Option<String> {
    if !is_on(keys, "tp-comm-overlap") {
        return None;
    }
    // Without tensor parallelism, Megatron-LM turns off sequence parallelism.
    let missing = match (settings.tensor.unwrap_or(1) > 1, settings.sequence_parallel == Some(true)) {
        (true, true) => return None,
        (true, false) => "sequence-parallel",
        (false, _) => "tensor parallelism",
    };
    Some(format!("Megatron-LM refuses tp-comm-overlap without {missing}."))
}

fn exchanged_heads(settings: &Settings) -> Option<String> {
    let (tensor, context) = (settings.tensor.unwrap_or(1).max(1), settings.context.unwrap_or(1).max(1));
    let module = settings.model.as_ref()?.modules.first()?;
    if context == 1 || settings.context_exchange != ContextExchange::AllToAll || module.latent.is_some() {
        return None;
    }
    let heads = [("heads", module.heads), ("key and value heads", module.kv_heads)];
    let (name, count) = heads
        .into_iter()
        .map(|(name, heads)| (name, heads / tensor))
        .find(|(_, count)| !count.is_multiple_of(context))?;
    Some(format!(
        "Transformer Engine refuses cp-comm-type a2a: {count} {name} of a tensor-parallel rank are no multiple of {context} \
         context-parallel ranks. Use p2p, or a smaller degree."
    ))
}
