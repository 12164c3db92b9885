//! Builds the model of a row, either from a preset or from the row's columns.

use std::borrow::Cow;

use planner::model::{Adapters, Bias, LatentAttention, Mask, Model, Module, Moe, Norm, Window};

use super::cells::{Cells, Rejection, quoted, refuse};
use super::column::{
    BASE_BITS, BIAS, CAUSAL, CONTENT_SIZE, Column, DENSE_FFN, DENSE_LAYERS, EXPERT_FFN, EXPERTS_EVERY, FFN, FULL_EVERY,
    GATED, HEAD_SIZE, HEADS, HIDDEN, KV_HEADS, KV_RANK, LAYERS, LORA_RANK, LORA_TARGETS, MODEL, N_EXPERTS, NORM,
    POSITIONS, PREDICTED_AHEAD, PRESET, PresetParts, QUERY_RANK, ROTARY_SIZE, ROUTER_SKEW, SEQ_LEN, SHARED_EXPERT_FFN,
    TIED_EMBEDDINGS, TOP_K, VALUE_SIZE, VOCAB, WINDOW,
};
use super::presets::Presets;

/// Head size if the row gives only the hidden size.
const HEAD_WIDTH: u32 = 128;

/// Model of a row.
#[derive(Debug, Clone)]
pub(super) struct Architecture {
    pub(super) model: Model,
    /// Tokens of a sequence.
    pub(super) length: u32,
    pub(super) origin: Origin,
}

/// Where the values of the model that the row does not state come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// From the defaults of the columns. The row may name the model with a label.
    Columns,
    /// From a known model.
    Preset(PresetParts),
}

/// Returns the model of a row.
pub(super) fn read(cells: Cells<'_>, presets: &Presets) -> Result<Architecture, Rejection> {
    let length = cells.integer(SEQ_LEN)?.unwrap_or(2048);
    let (name, mut module, origin) = if let Some(model) = preset(cells, presets)? {
        let module = &model.modules[0];
        let parts = PresetParts { has_experts: module.moe.is_some(), has_window: module.window.is_some() };
        (model.name.clone(), changed(cells, module.clone(), length)?, Origin::Preset(parts))
    } else {
        let (name, module) = custom_module(cells, length)?;
        (name, module, Origin::Columns)
    };
    if let Some(causal) = cells.flag(CAUSAL)? {
        module.mask = if causal { Mask::Causal } else { Mask::Full };
    }
    if let Some(is_tied) = cells.flag(TIED_EMBEDDINGS)? {
        module.tied_embeddings = is_tied;
    }
    match cells.word(NORM)? {
        0 => {}
        1 => module.norm = Norm::Rms,
        _ => module.norm = Norm::Layer,
    }
    match cells.word(BIAS)? {
        0 => {}
        1 => module.bias = Bias::None,
        2 => module.bias = Bias::Qkv,
        _ => module.bias = Bias::All,
    }
    match cells.word(POSITIONS)? {
        0 => {}
        1 => module.learned_positions = 0,
        _ => module.learned_positions = length,
    }
    module.window = window(cells, module.window)?;
    module.latent = latent(cells, module.latent)?;
    if module.latent.is_some() {
        if cells.text(HEAD_SIZE).is_some() {
            return refuse(HEAD_SIZE, format!("contradicts {}, which replaces it", KV_RANK.name));
        }
        // Latent attention has keys and values of all heads.
        (module.head_size, module.kv_heads) = (None, module.heads);
    }
    module.predicted_ahead = cells.integer(PREDICTED_AHEAD)?.unwrap_or(module.predicted_ahead);
    module.moe = moe(cells, module.moe)?;
    dense_width(cells, &mut module, origin)?;
    module.adapters = adapters(cells)?;
    check(cells, &module)?;
    check_layers(&module)?;
    Ok(Architecture { model: Model { name, modules: vec![module] }, length, origin })
}

/// Sets the width of layers without experts. In a preset with experts, `ffn` and `dense_ffn` both are this width, unless
/// `ffn` is that of its experts. Otherwise `ffn` is that of all layers, and `dense_ffn` replaces it in layers without experts.
fn dense_width(cells: Cells<'_>, module: &mut Module, origin: Origin) -> Result<(), Rejection> {
    let (stated, Some(moe)) = (cells.integer(DENSE_FFN)?, &mut module.moe) else { return Ok(()) };
    if let (Origin::Preset(parts), Some(width), Some(ffn)) = (origin, stated, cells.integer(FFN)?)
        && parts.has_experts
        && width != ffn
        && moe.expert_width != Some(ffn)
    {
        return refuse(
            DENSE_FFN,
            format!("{width} contradicts ffn {ffn}: both are the width of layers without experts"),
        );
    }
    if let Some(width) = stated {
        moe.expert_width = moe.expert_width.or(Some(module.ffn));
        module.ffn = width;
    }
    Ok(())
}

/// Returns the known model that the row names. If the row states layers and hidden, an unknown name in `model` is a label.
fn preset<'p>(cells: Cells<'_>, presets: &'p Presets) -> Result<Option<Cow<'p, Model>>, Rejection> {
    let is_described = cells.text(LAYERS).is_some() && cells.text(HIDDEN).is_some();
    let found = |column: Column, name: &str| match presets.model(name) {
        Ok(model) => Ok(model),
        Err(known) => refuse(column, format!("{} is {known}; or give layers and hidden", quoted(name))),
    };
    match (cells.text(PRESET), cells.text(MODEL)) {
        (None, None) => Ok(None),
        (None, Some(name)) if is_described => Ok(presets.model(name).ok()),
        (None, Some(name)) => found(MODEL, name).map(Some),
        (Some(name), label) => {
            let preset = found(PRESET, name)?;
            let other = label.filter(|&label| label != name).and_then(|label| presets.model(label).ok());
            match other.filter(|other| !is_same_shape(other, &preset)) {
                Some(other) => refuse(MODEL, format!("{} contradicts preset {}", other.name, preset.name)),
                None => Ok(Some(preset)),
            }
        }
    }
}

/// True if two models have layers of the same number and widths.
fn is_same_shape(a: &Model, b: &Model) -> bool {
    let shape = |model: &Model| {
        let module = &model.modules[0];
        (module.layers, module.hidden, module.heads, module.ffn, module.moe.map(|moe| (moe.experts, moe.expert_width)))
    };
    shape(a) == shape(b)
}

/// Applies the row's values to a preset module.
fn changed(cells: Cells<'_>, preset: Module, length: u32) -> Result<Module, Rejection> {
    let heads = cells.integer(HEADS)?.unwrap_or(preset.heads);
    let kv_heads = if preset.kv_heads == preset.heads { heads } else { preset.kv_heads };
    // The position table must cover the training sequence length.
    let positions = if preset.learned_positions > 0 { preset.learned_positions.max(length) } else { 0 };
    // A stated `ffn` changes layers without experts only. Tables also state the width of an expert as `ffn`.
    let moe = preset.moe.map(|moe| Moe { expert_width: moe.expert_width.or(Some(preset.ffn)), ..moe });
    let expert_width = moe.and_then(|moe| moe.expert_width);
    let ffn = cells.integer(FFN)?.filter(|&ffn| Some(ffn) != expert_width);
    Ok(Module {
        layers: cells.integer(LAYERS)?.unwrap_or(preset.layers),
        hidden: cells.integer(HIDDEN)?.unwrap_or(preset.hidden),
        heads,
        kv_heads: cells.integer(KV_HEADS)?.unwrap_or(kv_heads),
        head_size: cells.integer(HEAD_SIZE)?.or(preset.head_size),
        ffn: ffn.unwrap_or(preset.ffn),
        gated: cells.flag(GATED)?.unwrap_or(preset.gated),
        vocab: cells.integer(VOCAB)?.unwrap_or(preset.vocab),
        learned_positions: positions,
        moe,
        ..preset
    })
}

/// Builds a module from the row's columns: Llama style if gated, GPT-3 style otherwise.
fn custom_module(cells: Cells<'_>, length: u32) -> Result<(String, Module), Rejection> {
    let hidden = cells.integer(HIDDEN)?.unwrap_or(4096);
    let heads = cells.integer(HEADS)?.unwrap_or((hidden / HEAD_WIDTH).max(1));
    let gated = cells.flag(GATED)?.unwrap_or(false);
    let ffn = if gated { (8 * hidden).div_ceil(3).next_multiple_of(256) } else { 4 * hidden };
    let name = cells.text(MODEL).unwrap_or("model").to_owned();
    let module = Module {
        name: name.clone(),
        layers: cells.integer(LAYERS)?.unwrap_or(32),
        hidden,
        heads,
        kv_heads: cells.integer(KV_HEADS)?.unwrap_or(heads),
        head_size: cells.integer(HEAD_SIZE)?,
        ffn: cells.integer(FFN)?.unwrap_or(ffn),
        gated,
        norm: if gated { Norm::Rms } else { Norm::Layer },
        bias: if gated { Bias::None } else { Bias::All },
        vocab: cells.integer(VOCAB)?.unwrap_or(51_200),
        tied_embeddings: !gated,
        learned_positions: if gated { 0 } else { length },
        ..Module::decoder()
    };
    Ok((name, module))
}

fn moe(cells: Cells<'_>, preset: Option<Moe>) -> Result<Option<Moe>, Rejection> {
    let experts = cells.integer(N_EXPERTS)?.unwrap_or(preset.map_or(0, |moe| moe.experts));
    let top_k = cells.integer(TOP_K)?;
    if experts <= 1 {
        return Ok(None);
    }
    let top_k = top_k.unwrap_or(preset.map_or(2, |moe| moe.top_k).min(experts));
    if top_k == 0 || top_k > experts {
        return refuse(TOP_K, format!("{top_k} of {experts} experts"));
    }
    let preset = preset.unwrap_or_else(|| Moe::new(experts, top_k));
    Ok(Some(Moe {
        experts,
        top_k,
        expert_width: cells.integer(EXPERT_FFN)?.or(preset.expert_width),
        shared_width: cells.integer(SHARED_EXPERT_FFN)?.unwrap_or(preset.shared_width),
        dense_layers: cells.integer(DENSE_LAYERS)?.unwrap_or(preset.dense_layers),
        every: cells.integer(EXPERTS_EVERY)?.unwrap_or(preset.every),
        skew: cells.number(ROUTER_SKEW)?.unwrap_or(preset.skew),
        ..preset
    }))
}

/// Returns the sliding window of the row, or that of the preset.
fn window(cells: Cells<'_>, preset: Option<Window>) -> Result<Option<Window>, Rejection> {
    let (tokens, full_every) = (cells.integer(WINDOW)?, cells.integer(FULL_EVERY)?);
    let stated = full_every.filter(|&every| every > 0);
    match (tokens, preset) {
        (Some(0), _) | (None, None) if stated.is_some() => refuse(FULL_EVERY, "needs window above 0"),
        (Some(0), _) | (None, None) => Ok(None),
        (Some(tokens), None) => Ok(Some(Window { tokens, full_every: full_every.unwrap_or(0), chunked: false })),
        (tokens, Some(preset)) => Ok(Some(Window {
            tokens: tokens.unwrap_or(preset.tokens),
            full_every: full_every.unwrap_or(preset.full_every),
            ..preset
        })),
    }
}

/// Returns the latent attention of the row, or that of the preset. Sizes that the row does not state are those of
/// DeepSeek-V2 and V3.
fn latent(cells: Cells<'_>, preset: Option<LatentAttention>) -> Result<Option<LatentAttention>, Rejection> {
    let rank = cells.integer(KV_RANK)?;
    let others = [QUERY_RANK, CONTENT_SIZE, ROTARY_SIZE, VALUE_SIZE];
    let Some(kv_rank) = rank.or(preset.map(|latent| latent.kv_rank)).filter(|&rank| rank > 0) else {
        let is_stated = |column: &Column| !matches!(cells.text(*column), None | Some("0" | "0.0"));
        return match others.into_iter().find(is_stated) {
            Some(column) => refuse(column, format!("needs {} above 0", KV_RANK.name)),
            None => Ok(None),
        };
    };
    let known = preset.unwrap_or(LatentAttention {
        query_rank: 0,
        kv_rank,
        content_size: 128,
        rotary_size: 64,
        value_size: 128,
    });
    Ok(Some(LatentAttention {
        query_rank: cells.integer(QUERY_RANK)?.unwrap_or(known.query_rank),
        kv_rank,
        content_size: cells.integer(CONTENT_SIZE)?.unwrap_or(known.content_size),
        rotary_size: cells.integer(ROTARY_SIZE)?.unwrap_or(known.rotary_size),
        value_size: cells.integer(VALUE_SIZE)?.unwrap_or(known.value_size),
    }))
}

/// Returns adapters with the rank of the row.
fn adapters(cells: Cells<'_>) -> Result<Option<Adapters>, Rejection> {
    let rank = cells.integer(LORA_RANK)?.filter(|&rank| rank > 0);
    let (mlp, base_bits) = (cells.word(LORA_TARGETS)? == 0, cells.integer(BASE_BITS)?);
    match (rank, base_bits) {
        (None, Some(_)) => refuse(BASE_BITS, format!("needs {} above 0", LORA_RANK.name)),
        (_, Some(bits)) if bits != 4 && bits != 8 => refuse(BASE_BITS, format!("{bits} is neither 4 nor 8")),
        (None, _) if !mlp => refuse(LORA_TARGETS, format!("needs {} above 0", LORA_RANK.name)),
        (rank, base_bits) => Ok(rank.map(|rank| Adapters { rank, mlp, base_bits })),
    }
}

fn check(cells: Cells<'_>, module: &Module) -> Result<(), Rejection> {
    let (hidden, heads, kv_heads) = (module.hidden, module.heads, module.kv_heads);
    // Latent attention and a stated head size do not follow from the hidden size.
    let is_derived = module.head_size.is_none() && module.latent.is_none();
    if is_derived && !hidden.is_multiple_of(heads) {
        let whose = if cells.text(HEADS).is_none() { "by default, " } else { "" };
        return refuse(HEADS, format!("{whose}{heads} does not divide hidden {hidden}"));
    }
    if !heads.is_multiple_of(kv_heads) {
        return refuse(KV_HEADS, format!("{kv_heads} does not divide {heads} heads"));
    }
    Ok(())
}

/// Checks that settings for some of the layers leave the others.
fn check_layers(module: &Module) -> Result<(), Rejection> {
    let layers = module.layers;
    if let Some(window) = module.window
        && window.full_every > layers
    {
        return refuse(FULL_EVERY, format!("{} exceeds {layers} layers", window.full_every));
    }
    let Some(moe) = module.moe else { return Ok(()) };
    if moe.dense_layers >= layers {
        return refuse(DENSE_LAYERS, format!("{} of {layers} layers leave no layer with experts", moe.dense_layers));
    }
    if moe.every > layers - moe.dense_layers {
        let rest = layers - moe.dense_layers;
        return refuse(EXPERTS_EVERY, format!("{} exceeds the {rest} layers after the dense ones", moe.every));
    }
    Ok(())
}
