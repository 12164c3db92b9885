//! Kinds of layers in a Hugging Face `config.json`: experts, latent attention, windows, linear
//! attention and state space models.

use planner::model::{LatentAttention, LinearAttention, Module, Moe, Recurrence, Window};

use super::JobConfigError;
use super::keys::Keys;

const DENSE: &str = "The dense layers among layers with experts follow no period. All layers are read with experts.";
const WINDOW: &str = "The layers with a sliding window follow no period. They are read as layers with full attention, so the \
                      time is an upper bound.";
/// Layers without a window at the start of Qwen models, the default of the transformers classes.
const QWEN_FULL_LAYERS: u32 = 28;

/// Keys of the number of layers for multi-token prediction.
const AHEAD: [&str; 3] = ["num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"];

/// Reads the parts of layers that differ between kinds, and adds them to `module`.
pub(super) fn read(keys: &mut Keys, model_type: Option<&str>, module: &mut Module) -> Result<(), JobConfigError> {
    if let Some(moe) = module.moe {
        module.moe = Some(experts(keys, moe, module)?);
    }
    latent(keys, module)?;
    module.window = window(keys, model_type, module.layers)?;
    module.linear = linear(keys, module.layers)?;
    pattern(keys, module)?;
    keys.ignore(|key| key == "layer_types" || AHEAD.contains(&key));
    if AHEAD.iter().any(|name| keys.peek(name).is_some_and(|value| value != "0")) {
        keys.assume(
            "The layers for multi-token prediction are left out: the transformers library does not train them.",
        );
    }
    Ok(())
}

/// Returns (layers without experts at the start, period of layers with experts after them). `None` if
/// the layers follow no period. A period that starts with a layer with experts is read as one that
/// ends with it, if both have equally many.
pub(super) fn period(has_experts: &[bool]) -> Option<(u32, u32)> {
    let first = has_experts.iter().position(|&has| has)?;
    let every = has_experts[first + 1..].iter().position(|&has| has).map_or(1, |gap| gap + 1);
    let layers = has_experts.len();
    let is_periodic = |from: usize| {
        has_experts
            .iter()
            .enumerate()
            .all(|(layer, &has)| has == (layer >= from && (layer - from).is_multiple_of(every)))
    };
    if !is_periodic(first) {
        return None;
    }
    match (first + 1).checked_sub(every) {
        Some(dense) => Some((dense as u32, every as u32)),
        None => ((layers - first).div_ceil(every) == layers / every).then_some((0, every as u32)),
    }
}

/// Returns the numbers of a list such as `[0, 1]`.
pub(super) fn list(text: &str) -> Vec<u32> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

/// Returns the words of a list such as `["full_attention", "sliding_attention"]`.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).collect()
}

fn experts(keys: &mut Keys, moe: Moe, module: &mut Module) -> Result<Moe, JobConfigError> {
    let width = module.ffn;
    // Llama 4: experts and the shared expert have `intermediate_size`, dense layers
    // `intermediate_size_mlp`.
    let llama4 = keys.count(&["intermediate_size_mlp"], "width of the MLP")?;
    let dense_width = keys.count(&["intermediate_size"], "width of the MLP")?;
    let names = ["shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size"];
    let stated = keys.count(&names, "shared experts")?;
    let names = ["n_shared_experts", "num_shared_experts", "moe_num_shared_experts"];
    let shared = keys.integer(&names, "shared experts")?.unwrap_or(0);
    let shared_width = match (stated, llama4) {
        (Some(width), _) => width,
        (None, Some(_)) => width,
        (None, None) => shared.saturating_mul(width),
    };
    let (dense_layers, every) = dense_layers(keys, module.layers)?;
    let has_dense = dense_layers > 0 || every > 1;
    let (ffn, expert_width) = match llama4.or(dense_width).filter(|_| has_dense) {
        Some(dense) if dense != width => (dense, Some(width)),
        _ => (width, None),
    };
    module.ffn = ffn;
    keys.ignore(|key| key == "intermediate_size" || key == "intermediate_size_mlp");
    // DeepSeek-V3: a token has experts of `topk_group` of `n_group` groups, one per node.
    let groups = keys.count(&["n_group"], "limit of nodes")?.unwrap_or(1);
    let limit = keys.count(&["topk_group"], "limit of nodes")?.filter(|_| groups > 1);
    Ok(Moe { expert_width, shared_width, dense_layers, every, node_limit: limit.unwrap_or(0), ..moe })
}

/// Reads which layers have experts.
fn dense_layers(keys: &mut Keys, layers: u32) -> Result<(u32, u32), JobConfigError> {
    let first = keys.integer(&["first_k_dense_replace"], "dense layers")?.unwrap_or(0);
    let names = ["decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period"];
    let step = keys.integer(&names, "layers with experts")?.unwrap_or(1).max(1);
    let mut has_experts: Vec<bool> = (0..layers).map(|layer| layer >= first).collect();
    let mut is_listed = false;
    for (name, in_list) in [("mlp_only_layers", false), ("moe_layers", true)] {
        let Some(text) = keys.text(&[name], "layers with experts") else { continue };
        let listed = list(&text);
        if !listed.is_empty() {
            is_listed = true;
            for (layer, has) in has_experts.iter_mut().enumerate() {
                let is_named = listed.contains(&(layer as u32));
                *has = if in_list { is_named } else { *has && !is_named };
            }
        }
    }
    // ERNIE 4.5: layers with experts from the first to the last index, at every n-th layer.
    let start = keys.integer(&["moe_layer_start_index"], "dense layers")?;
    let end = keys.text(&["moe_layer_end_index"], "dense layers").and_then(|text| text.trim().parse::<u32>().ok());
    let interval = keys.integer(&["moe_layer_interval"], "layers with experts")?.unwrap_or(1).max(1);
    if let Some(start) = start {
        is_listed = true;
        let last = end.unwrap_or(u32::MAX);
        has_experts =
            (0..layers).map(|layer| (layer + 1).is_multiple_of(interval) && (start..=last).contains(&layer)).collect();
    }
    if let Some(text) = keys.text(&["moe_layer_freq"], "layers with experts") {
        let listed = list(&text);
        if text.trim_start().starts_with('[') {
            is_listed = true;
            has_experts = (0..layers as usize).map(|layer| listed.get(layer).is_none_or(|&flag| flag > 0)).collect();
        } else if let Some(&every) = listed.first().filter(|&&every| every > 1) {
            is_listed = true;
            has_experts = (0..layers).map(|layer| layer >= first && layer.is_multiple_of(every)).collect();
        }
    }
    if !is_listed {
        return Ok((first, step));
    }
    Ok(period(&has_experts).unwrap_or_else(|| {
        keys.not_modelled(DENSE);
        (0, 1)
    }))
}

fn latent(keys: &mut Keys, module: &mut Module) -> Result<(), JobConfigError> {
    let mut rank = |name: &str| {
        keys.text(&[name], "latent attention").and_then(|rank| rank.trim().parse::<u32>().ok()).filter(|&rank| rank > 0)
    };
    let (Some(kv_rank), query_rank) = (rank("kv_lora_rank"), rank("q_lora_rank")) else { return Ok(()) };
    let content_size = keys.count(&["qk_nope_head_dim"], "latent attention")?.unwrap_or(128);
    let rotary_size = keys.count(&["qk_rope_head_dim"], "latent attention")?.unwrap_or(64);
    let value_size = keys.count(&["v_head_dim"], "latent attention")?.unwrap_or(content_size);
    keys.ignore(|key| key == "qk_head_dim");
    module.latent =
        Some(LatentAttention { query_rank: query_rank.unwrap_or(0), kv_rank, content_size, rotary_size, value_size });
    (module.kv_heads, module.head_size) = (module.heads, None);
    Ok(())
}

/// Returns the period of full attention: every n-th layer, 0 if no layer has it, 1 if all have.
fn full_every(layers: &[bool]) -> Option<u32> {
    let Some(first) = layers.iter().position(|&is_full| is_full) else { return Some(0) };
    let every = first + 1;
    let follows = layers.iter().enumerate().all(|(layer, &is_full)| is_full == (layer + 1).is_multiple_of(every));
    follows.then_some(every as u32)
}

fn window(keys: &mut Keys, model_type: Option<&str>, layers: u32) -> Result<Option<Window>, JobConfigError> {
    let mut tokens = |names: &[&str], setting| {
        keys.text(names, setting).and_then(|text| text.trim().parse::<u32>().ok()).filter(|&tokens| tokens > 0)
    };
    let chunk = tokens(&["attention_chunk_size"], "chunked attention");
    let tokens = tokens(&["sliding_window", "window_size"], "sliding window");
    let is_qwen = model_type.is_some_and(|name| name.starts_with("qwen"));
    // The default of the classes of Qwen is off.
    let is_off = keys.flag(&["use_sliding_window"], "sliding window").map_or(is_qwen, |is_on| !is_on);
    let names = ["sliding_window_pattern", "_sliding_window_pattern"];
    // EXAONE 4 writes a letter for each layer of a period: L has a window, G has none.
    let letters = keys.peek(names[0]).and_then(|text| {
        let is_full: Option<Vec<bool>> =
            text.chars().map(|letter| matches!(letter, 'L' | 'G').then_some(letter == 'G')).collect();
        full_every(&is_full.filter(|layers| !layers.is_empty())?)
    });
    let pattern = match letters {
        Some(every) => {
            keys.text(&names, "sliding window");
            Some(every)
        }
        None => keys.integer(&names, "sliding window")?,
    };
    let types = keys.peek("layer_types").map(str::to_owned);
    let interval = keys.integer(&["no_rope_layer_interval"], "chunked attention")?;
    let first = keys.integer(&["max_window_layers"], "sliding window")?;
    let first = first.or(is_qwen.then_some(QWEN_FULL_LAYERS)).unwrap_or(0);
    let limited = |word: &str| matches!(word, "sliding_attention" | "chunked_attention");
    let types: Option<Vec<&str>> = types.as_deref().map(words);
    let (tokens, chunked) = match (tokens.filter(|_| !is_off), chunk) {
        (_, Some(chunk)) => (chunk, true),
        (Some(tokens), None) => (tokens, false),
        (None, None) => return Ok(None),
    };
    let full_every = match types {
        Some(types) if !types.iter().any(|word| limited(word)) => return Ok(None),
        Some(types) => full_every(&types.iter().map(|word| !limited(word)).collect::<Vec<_>>()),
        None if chunked => Some(interval.unwrap_or(4)),
        // Layers before the first one with a window have full attention.
        None if first >= layers => return Ok(None),
        None if first > 0 => None,
        None => Some(pattern.unwrap_or(match model_type.map(|name| name.trim_end_matches("_text")) {
            Some("gemma2" | "gpt_oss") => 2,
            Some("gemma3") => 6,
            _ => 0,
        })),
    };
    let Some(full_every) = full_every.filter(|&every| every <= layers) else {
        keys.not_modelled(WINDOW);
        return Ok(None);
    };
    Ok((full_every != 1).then_some(Window { tokens, full_every, chunked }))
}

fn linear(keys: &mut Keys, layers: u32) -> Result<Option<LinearAttention>, JobConfigError> {
    let Some(key_heads) = keys.count(&["linear_num_key_heads"], "linear attention")? else { return Ok(None) };
    let value_heads = keys.count(&["linear_num_value_heads"], "linear attention")?.unwrap_or(key_heads);
    let key_size = keys.count(&["linear_key_head_dim"], "linear attention")?.unwrap_or(128);
    let value_size = keys.count(&["linear_value_head_dim"], "linear attention")?.unwrap_or(128);
    let convolution = keys.count(&["linear_conv_kernel_dim"], "linear attention")?.unwrap_or(4);
    let interval = keys.count(&["full_attention_interval"], "linear attention")?;
    let listed = keys.peek("layer_types").map(|text| {
        let types = words(text);
        full_every(&types.iter().map(|word| *word != "linear_attention").collect::<Vec<_>>())
    });
    let full_every = match (listed, interval) {
        (Some(Some(every)), _) => every,
        (_, Some(interval)) => interval,
        (Some(None), None) => {
            keys.not_modelled("The layers with full attention follow no period. Every fourth is read as one.");
            4
        }
        (None, None) => 4,
    };
    let recurrence = Recurrence::GatedDelta;
    let linear = LinearAttention { recurrence, key_heads, value_heads, key_size, value_size, convolution, full_every };
    Ok((full_every != 1 && full_every <= layers).then_some(linear))
}

/// Reads the pattern of layers of Nemotron-H with its state space model.
fn pattern(keys: &mut Keys, module: &mut Module) -> Result<(), JobConfigError> {
    let Some(pattern) = keys.text(&["hybrid_override_pattern"], "pattern of layers") else { return Ok(()) };
    let pattern: String = pattern.chars().filter(|character| "M*-E".contains(*character)).collect();
    module.layers = pattern.len() as u32;
    let value_heads = keys.count(&["mamba_num_heads"], "state space model")?.unwrap_or(128);
    module.linear = Some(LinearAttention {
        recurrence: Recurrence::StateSpace,
        key_heads: keys.count(&["n_groups", "mamba_n_groups"], "state space model")?.unwrap_or(8),
        value_heads,
        key_size: keys.count(&["ssm_state_size", "mamba_state_dim"], "state space model")?.unwrap_or(128),
        value_size: keys.count(&["mamba_head_dim"], "state space model")?.unwrap_or(64),
        convolution: keys.count(&["conv_kernel"], "state space model")?.unwrap_or(4),
        full_every: 0,
    });
    module.pattern = Some(pattern);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_with_experts_have_a_period() {
        let of = |text: &str| period(&text.chars().map(|c| c == '1').collect::<Vec<_>>());
        assert_eq!(of("1111"), Some((0, 1)));
        assert_eq!(of("0001111"), Some((3, 1)));
        assert_eq!(of("010101"), Some((0, 2)));
        assert_eq!(of("00010101"), Some((2, 2)));
        // Megatron-LM's period of 2 starts with experts.
        assert_eq!(of("101010"), Some((0, 2)));
        assert_eq!(of("10101"), None);
        assert_eq!(of("001101"), None);
        assert_eq!(of("0000"), None);
    }

    #[test]
    fn layers_with_full_attention_have_a_period() {
        let of = |text: &str| full_every(&text.chars().map(|c| c == 'f').collect::<Vec<_>>());
        assert_eq!(of("sfsf"), Some(2));
        assert_eq!(of("sssssfss"), Some(6));
        assert_eq!(of("ssss"), Some(0));
        assert_eq!(of("ffff"), Some(1));
        assert_eq!(of("fsss"), None);
    }
}
