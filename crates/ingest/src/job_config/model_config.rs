//! Hugging Face `config.json`: model architecture.

use planner::model::{Bias, Model, Module, ModuleRole, Moe, Norm, Patch};

use super::family::{self, Family};
use super::keys::Keys;
use super::{JobConfigError, layer_kinds, unmodelled, vision_names, without_effect};

/// Assumption of an encoder that takes images of any size.
const OPEN_IMAGE_SIZE: &str = "The size of images is not stated. They are read as 448 x 448 pixels.";

/// Sections that contain the language model of a multimodal model.
const TEXT_SECTIONS: [&str; 4] = ["text_config.", "llm_config.", "language_config.", "language_model_config."];

const LAYERS: &[&str] = &["num_hidden_layers", "n_layer", "n_layers", "num_layers"];
const HIDDEN: &[&str] = &["hidden_size", "n_embd", "n_embed", "d_model", "dim"];
const POSITIONS: &[&str] = &["max_position_embeddings", "n_positions", "max_seq_len"];
const VOCABULARY: &[&str] = &["vocab_size", "padded_vocab_size", "embedding_size"];
const HEADS: &[&str] = &["num_attention_heads", "n_head", "n_heads", "num_heads"];

/// `model_type` of bidirectional and encoder-decoder models.
const NOT_CAUSAL: [&str; 22] = [
    "albert",
    "bart",
    "bert",
    "clip",
    "deberta",
    "deberta-v2",
    "distilbert",
    "electra",
    "longformer",
    "longt5",
    "m2m_100",
    "marian",
    "mbart",
    "modernbert",
    "mt5",
    "pegasus",
    "roberta",
    "t5",
    "umt5",
    "vit",
    "whisper",
    "xlm-roberta",
];

pub(super) fn is_model(keys: &Keys) -> bool {
    let has_size = |names: &[&str]| names.iter().any(|name| keys.has(name));
    keys.has("model_type")
        || keys.has("architectures")
        || (has_size(LAYERS) && has_size(HIDDEN))
        || TEXT_SECTIONS.iter().any(|section| keys.has_section(section))
}

/// Returns the model and its maximum sequence length in tokens.
pub(super) fn read(keys: &mut Keys) -> Result<(Model, Option<u32>), JobConfigError> {
    let name = keys.text(&["_name_or_path", "model_type"], "name").unwrap_or_else(|| "model".to_owned());
    let name = name.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("model").to_owned();
    let model_type = keys.text(&["model_type"], "architecture");
    let is_two_parts = keys.flag(&["is_encoder_decoder"], "architecture").unwrap_or(false);
    if is_two_parts || model_type.as_deref().is_some_and(|name| NOT_CAUSAL.contains(&name)) {
        let model = model_type.unwrap_or_else(|| "an encoder-decoder model".to_owned());
        return Err(JobConfigError::OtherModel { model: model.chars().take(60).collect() });
    }
    let tied = keys.flag(&["tie_word_embeddings"], "shared embedding and output head");
    let section = TEXT_SECTIONS.into_iter().find(|section| keys.has_section(section)).unwrap_or_default();
    let mut text = keys.section(section);
    let text_type = text.text(&["model_type"], "architecture").or(model_type);
    let max_positions = text.count(POSITIONS, "longest sequence")?;
    let backbone = language_model(&mut text, text_type.as_deref(), (tied, !section.is_empty()), &name)?;
    unmodelled::report(&mut text);
    text.ignore(without_effect::is);
    keys.merge(section, text);
    let encoder = vision_encoder(keys, backbone.hidden)?;
    unmodelled::report(keys);
    keys.ignore(without_effect::is);
    let modules = encoder.into_iter().chain([backbone]).collect();
    Ok((Model { name, modules }, max_positions))
}

/// Reads a required dimension. `default` comes from the architecture's class and applies if the key
/// is missing.
fn size(
    keys: &mut Keys,
    names: &'static [&'static str],
    setting: &'static str,
    default: Option<u32>,
) -> Result<u32, JobConfigError> {
    if let Some(size) = keys.count(names, setting)? {
        return Ok(size);
    }
    assumed_default(keys, names[0], default).ok_or_else(|| JobConfigError::Missing { setting, keys: names.join(", ") })
}

/// Returns an architecture default and records it as assumed.
fn assumed_default(keys: &mut Keys, name: &str, default: Option<u32>) -> Option<u32> {
    let default = default?;
    keys.assume(format!("{name} is not stated. It is the default of the architecture, {default}."));
    Some(default)
}

/// Reads the language model. `tied` is the embedding setting in the outer configuration. A nested
/// configuration omits values equal to the class defaults.
pub(super) fn language_model(
    keys: &mut Keys,
    model_type: Option<&str>,
    (tied, is_nested): (Option<bool>, bool),
    name: &str,
) -> Result<Module, JobConfigError> {
    let known = model_type.and_then(family::find);
    let family = known.unwrap_or_else(|| {
        let suffix = model_type.map_or_else(String::new, |name| format!(" {name:?}"));
        keys.assume(format!("The architecture{suffix} is not known. It is read as a Llama model of these sizes."));
        family::llama()
    });
    let sizes = family.sizes.filter(|_| is_nested);
    let hidden = size(keys, HIDDEN, "width", sizes.map(|sizes| sizes.hidden))?;
    let heads = size(keys, HEADS, "heads", sizes.map(|sizes| sizes.heads))?;
    let kv_names = [
        "num_key_value_heads",
        "num_kv_heads",
        "multi_query_group_num",
        "n_kv_heads",
        "n_head_kv",
        "attn_config.kv_n_heads",
    ];
    let kv_heads = keys.count(&kv_names, "key and value heads")?;
    let kv_heads = kv_heads.or_else(|| assumed_default(keys, kv_names[0], sizes.map(|sizes| sizes.kv_heads)));
    let is_multi_query = keys.flag(&["multi_query"], "key and value heads").unwrap_or(false)
        || keys.peek("attn_config.attn_type") == Some("multiquery_attention");
    let is_new_falcon = keys.flag(&["new_decoder_architecture"], "key and value heads").unwrap_or(false);
    let kv_heads = if is_multi_query && !is_new_falcon { 1 } else { kv_heads.unwrap_or(heads) };
    let head_size = keys.count(&["head_dim", "kv_channels"], "head size")?;
    let head_size = head_size.or_else(|| assumed_default(keys, "head_dim", sizes.and_then(|sizes| sizes.head_size)));
    if head_size.is_none() && heads > 0 && !hidden.is_multiple_of(heads) {
        keys.assume(format!("{hidden} is no multiple of {heads} heads. The head size is read as {}.", hidden / heads));
    }
    let moe = experts(keys)?;
    let tied = keys.flag(&["tie_word_embeddings"], "shared embedding and output head").or(tied);
    let ffn = mlp_width(keys, family, (hidden, moe.is_some()), sizes.map(|sizes| sizes.ffn))?;
    let layers = size(keys, LAYERS, "layers", sizes.map(|sizes| sizes.layers))?;
    let vocab = size(keys, VOCABULARY, "vocabulary", sizes.map(|sizes| sizes.vocab))?;
    let gated = is_gated(keys, family, known.is_some());
    let bias = bias(keys, family);
    parallel(keys, family);
    let mut module = Module {
        name: name.to_owned(),
        layers,
        hidden,
        heads,
        kv_heads,
        head_size: distinct_head_size(hidden, heads, head_size),
        ffn,
        gated,
        // A layer norm without bias has the parameters of an RMS norm.
        norm: if family.name == "mpt" && bias == Bias::None { Norm::Rms } else { family.norm },
        bias,
        vocab,
        tied_embeddings: tied.unwrap_or(family.tied),
        learned_positions: positions(keys, family)?,
        moe,
        ..Module::decoder()
    };
    layer_kinds::read(keys, model_type, &mut module)?;
    Ok(module)
}

/// Returns the head size if it differs from hidden size / heads. Without a stated head size,
/// transformers rounds the quotient down.
pub(super) const fn distinct_head_size(hidden: u32, heads: u32, stated: Option<u32>) -> Option<u32> {
    match stated {
        Some(size) if size.saturating_mul(heads) == hidden => None,
        Some(size) => Some(size),
        None if heads > 0 && !hidden.is_multiple_of(heads) => Some(hidden / heads),
        None => None,
    }
}

fn experts(keys: &mut Keys) -> Result<Option<Moe>, JobConfigError> {
    let names =
        ["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "ffn_config.moe_num_experts"];
    let experts = keys.count(&names, "experts")?.unwrap_or(0);
    let names = [
        "num_experts_per_tok",
        "experts_per_token",
        "moe_top_k",
        "moe_k",
        "top_k_experts",
        "num_selected_experts",
        "ffn_config.moe_top_k",
    ];
    let top_k = keys.count(&names, "experts of a token")?;
    if experts < 2 {
        return Ok(None);
    }
    if top_k.is_none() {
        keys.assume("The number of experts of a token is not stated. It is read as 2.");
    }
    Ok(Some(Moe::new(experts, top_k.unwrap_or(2))))
}

/// Returns the MLP width, or the expert width for MoE models.
fn mlp_width(
    keys: &mut Keys,
    family: Family,
    (hidden, has_experts): (u32, bool),
    default: Option<u32>,
) -> Result<u32, JobConfigError> {
    keys.ignore(|key| key == "ffn_config.model_type");
    if has_experts && let Some(width) = keys.count(&["moe_intermediate_size"], "width of an expert")? {
        return Ok(width);
    }
    let names = ["intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff", "ffn_config.ffn_hidden_size"];
    if let Some(width) = keys.count(&names, "width of the MLP")? {
        // The first Qwen counts both inputs of the gate.
        return Ok(if family.name == "qwen" { width / 2 } else { width });
    }
    if let Some(ratio) = keys.count(&["expansion_ratio", "mlp_ratio"], "width of the MLP")? {
        return Ok(hidden.saturating_mul(ratio));
    }
    if let Some(width) = assumed_default(keys, names[0], default) {
        return Ok(width);
    }
    if family.gated {
        return Err(JobConfigError::Missing { setting: "width of the MLP", keys: names.join(", ") });
    }
    keys.assume(format!("The width of the MLP is not stated. It is read as 4 x {hidden}."));
    Ok(hidden.saturating_mul(4))
}

/// Returns whether the MLP is gated. Squared ReLU has no gate, except in families that are known to
/// have both.
fn is_gated(keys: &mut Keys, family: Family, is_known: bool) -> bool {
    let names = ["hidden_act", "activation_function", "hidden_activation", "mlp_hidden_act"];
    let activation = keys.text(&names, "activation").unwrap_or_default();
    if !is_known && matches!(activation.as_str(), "relu2" | "squared_relu") {
        keys.assume("The activation is a squared ReLU. The MLP is read as one without a gate.");
        return false;
    }
    family.gated || matches!(activation.as_str(), "swiglu" | "geglu")
}

/// Reports attention and MLP in parallel.
fn parallel(keys: &mut Keys, family: Family) {
    let stated = keys.flag(&["use_parallel_residual", "parallel_attn"], "order of attention and MLP");
    if stated.unwrap_or_else(|| family.is_parallel()) {
        keys.not_modelled("Attention and MLP in parallel are read as one after the other.");
    }
}

fn bias(keys: &mut Keys, family: Family) -> Bias {
    if family.has_mlp_bias_only() {
        keys.not_modelled("The biases of the MLP are left out.");
    }
    // MPT.
    if let Some(no_bias) = keys.flag(&["no_bias"], "bias") {
        return if no_bias { Bias::None } else { Bias::All };
    }
    let all = keys.flag(&["bias", "use_bias", "add_bias_linear", "mlp_bias"], "bias");
    let qkv =
        keys.flag(&["attention_bias", "add_qkv_bias", "use_qkv_bias", "qkv_bias"], "bias of query, key and value");
    match (all, qkv) {
        (Some(true), _) => Bias::All,
        // GPT-OSS states only the attention bias, but its experts have biases too.
        (_, Some(true)) if family.bias == Bias::All => Bias::All,
        (_, Some(true)) => Bias::Qkv,
        (Some(false), _) | (_, Some(false)) => Bias::None,
        (None, None) => family.bias,
    }
}

/// Returns the number of learned positions.
fn positions(keys: &mut Keys, family: Family) -> Result<u32, JobConfigError> {
    let max_positions = keys.count(POSITIONS, "longest sequence")?;
    if !family.learned_positions {
        return Ok(0);
    }
    let alibi = keys.flag(&["attn_config.alibi", "alibi"], "positions");
    let rotary = keys.flag(&["attn_config.rope"], "positions");
    let learned = keys.flag(&["learned_pos_emb"], "positions");
    let kind = keys.text(&["position_embedding_type"], "positions").unwrap_or_default();
    // MPT has ALiBi unless the file states otherwise.
    let has_alibi = alibi.unwrap_or(family.name == "mpt");
    let is_relative = matches!(kind.as_str(), "alibi" | "rope" | "rotary");
    let has_learned = !has_alibi && rotary != Some(true) && learned != Some(false) && !is_relative;
    Ok(max_positions.filter(|_| has_learned).unwrap_or(0))
}

/// Returns the vision encoder if the file gives its dimensions.
fn vision_encoder(keys: &mut Keys, backbone_width: u32) -> Result<Option<Module>, JobConfigError> {
    const SECTION: &str = "vision_config.";
    if !keys.has_section(SECTION) {
        return Ok(None);
    }
    // Only Gemma 3 has this key.
    let is_pooled = keys.has("mm_tokens_per_image");
    let tokens = keys.count(&["mm_tokens_per_image", "image_seq_length", "image_seq_len"], "tokens of an image")?;
    let ratio = keys.number(&["downsample_ratio"], "merged patches")?;
    // Mistral 3 states the merged patches next to the section.
    let merge = keys.count(&["spatial_merge_size"], "merged patches")?;
    // The inner width of the MLP of InternVL and LLaVA is that of the backbone.
    let has_wide_mlp = !is_pooled
        && merge.is_none()
        && ["downsample_ratio", "image_seq_length", "vision_feature_layer"].iter().any(|name| keys.has(name));
    let mut vision = keys.section(SECTION);
    let mut encoder = read_encoder(&mut vision, backbone_width, merge)?;
    if let Some(patch) = encoder.as_mut().and_then(|module| module.patch.as_mut()) {
        patch.pooled = is_pooled;
        patch.inner_width = has_wide_mlp.then_some(backbone_width);
        let merged = ratio.map(|ratio| (f64::from(patch.patches_per_image) * ratio * ratio).round() as u32);
        if let Some(tokens) = tokens.or(merged).filter(|&tokens| tokens > 0) {
            patch.tokens_per_image = tokens.min(patch.patches_per_image);
        }
    }
    if encoder.is_some() {
        unmodelled::report(&mut vision);
        vision.ignore(|_| true);
    } else {
        vision.not_modelled("The vision encoder is left out: its layers, width, heads or patch size are not stated.");
    }
    keys.merge(SECTION, vision);
    Ok(encoder)
}

/// Gives the images of an encoder that takes any size the largest square size with at most `pixels` pixels. `name` is
/// the key that states them.
pub(super) fn limit_images(model: &mut Model, (name, pixels): (&str, u32), keys: &mut Keys) {
    let encoder = model.modules.iter_mut().find(|module| module.role == ModuleRole::VisionEncoder);
    let Some(patch) = encoder.and_then(|module| module.patch.as_mut()) else { return };
    // Of the known models, those with DeepStack (Qwen3-VL) take images of any size.
    if !keys.retract(OPEN_IMAGE_SIZE) && patch.deepstack == 0 {
        return;
    }
    // A token has the same number of patches in both directions.
    let merged = (patch.patches_per_image / patch.tokens_per_image.max(1)).isqrt().max(1);
    let unit = patch.patch_px.saturating_mul(merged).max(1);
    let side = (pixels.isqrt() / unit).max(1);
    patch.tokens_per_image = side.saturating_mul(side);
    patch.patches_per_image = patch.tokens_per_image.saturating_mul(merged).saturating_mul(merged);
    let px = side.saturating_mul(unit);
    keys.assume(format!("Images are read as {px} x {px} pixels, the largest square of {name} = {pixels}."));
}

/// `merge` is the number of merged patches in each direction that the model states next to the section.
fn read_encoder(keys: &mut Keys, backbone_width: u32, merge: Option<u32>) -> Result<Option<Module>, JobConfigError> {
    let layers = keys.count(&["depth", "num_hidden_layers"], "layers of the encoder")?;
    // Qwen2-VL uses `embed_dim` for the encoder width and `hidden_size` for the backbone width.
    let hidden = keys.count(&["embed_dim", "hidden_size"], "width of the encoder")?;
    let heads = keys.count(&["num_heads", "num_attention_heads", "attention_heads"], "heads of the encoder")?;
    let patch_px = keys.count(&["patch_size", "spatial_patch_size"], "patch size")?;
    let (Some(layers), Some(hidden), Some(heads), Some(patch_px)) = (layers, hidden, heads, patch_px) else {
        return Ok(None);
    };
    let ratio = keys.count(&["mlp_ratio"], "width of the encoder's MLP")?.unwrap_or(4);
    let ffn = keys.count(&["intermediate_size"], "width of the encoder's MLP")?;
    let merge = keys.count(&["spatial_merge_size"], "merged patches")?.or(merge).unwrap_or(1);
    let image = keys.count(&["image_size"], "image size")?;
    // Encoders with SiLU (Qwen2.5-VL, Pixtral, GLM-4V) have a gated MLP and RMS norms.
    let is_gated = keys.text(&["hidden_act"], "activation of the encoder").is_some_and(|name| name == "silu");
    let deepstack =
        keys.text(&["deepstack_visual_indexes"], "DeepStack").map_or(0, |list| list.matches(',').count() + 1);
    if image.is_none() {
        keys.assume(OPEN_IMAGE_SIZE);
    }
    // The side is a multiple of the patch merge size.
    let side = (image.unwrap_or(448) / patch_px / merge).max(1).saturating_mul(merge);
    let patches = side.saturating_mul(side);
    let patch = Patch {
        patch_px,
        patches_per_image: patches,
        tokens_per_image: (patches / merge.saturating_mul(merge).max(1)).max(1),
        projected_width: Some(backbone_width),
        inner_width: None,
        deepstack: u32::try_from(deepstack).unwrap_or(0),
        pooled: false,
    };
    let ffn = ffn.unwrap_or_else(|| hidden.saturating_mul(ratio));
    let norm = if is_gated { Norm::Rms } else { Norm::Layer };
    Ok(Some(Module { gated: is_gated, norm, ..vision_names::module([layers, hidden, heads, ffn], patch) }))
}
