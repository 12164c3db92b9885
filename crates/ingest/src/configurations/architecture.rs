//! Builds the model of a row, either from a preset or from the row's columns.

use std::borrow::Cow;

use planner::model::{Adapters, Bias, Mask, Model, Module, Moe, Norm};

use super::cells::{Cells, Rejection, quoted, refuse};
use super::column::{
    CAUSAL, DENSE_LAYERS, EXPERT_FFN, FFN, GATED, HEADS, HIDDEN, KV_HEADS, LAYERS, LORA_RANK, MODEL, N_EXPERTS, PRESET,
    ROUTER_SKEW, SEQ_LEN, SHARED_EXPERT_FFN, TIED_EMBEDDINGS, TOP_K, VOCAB,
};
use super::presets::Presets;

/// Head size if the row gives only the hidden size.
const HEAD_WIDTH: u32 = 128;

/// Returns the model and the sequence length in tokens.
pub(super) fn read(cells: Cells<'_>, presets: &Presets) -> Result<(Model, u32), Rejection> {
    let length = cells.integer(SEQ_LEN)?.unwrap_or(2048);
    let (name, mut module) = match preset(cells, presets)? {
        Some(model) => (model.name.clone(), changed(cells, model.modules[0].clone(), length)?),
        None => custom_module(cells, length)?,
    };
    if let Some(causal) = cells.flag(CAUSAL)? {
        module.mask = if causal { Mask::Causal } else { Mask::Full };
    }
    if let Some(is_tied) = cells.flag(TIED_EMBEDDINGS)? {
        module.tied_embeddings = is_tied;
    }
    module.moe = moe(cells, module.moe)?;
    module.adapters = adapters(cells)?;
    check(cells, &module)?;
    Ok((Model { name, modules: vec![module] }, length))
}

/// Returns the preset that the row names. If the row describes the model, `model` is only a label.
fn preset<'p>(cells: Cells<'_>, presets: &'p Presets) -> Result<Option<Cow<'p, Model>>, Rejection> {
    let described = cells.text(LAYERS).is_some() && cells.text(HIDDEN).is_some();
    for (column, label) in [(PRESET, false), (MODEL, described)] {
        let Some(name) = cells.text(column) else { continue };
        // A label is not compared with published models, whose layers would replace the defaults of the columns.
        if label {
            return Ok(presets.model_preset(name).map(Cow::Borrowed));
        }
        return match presets.model(name) {
            Ok(model) => Ok(Some(model)),
            Err(known) => refuse(column, format!("{} is none of {known}; or give layers and hidden", quoted(name))),
        };
    }
    Ok(None)
}

/// Applies the row's values to a preset module.
fn changed(cells: Cells<'_>, preset: Module, length: u32) -> Result<Module, Rejection> {
    let heads = cells.integer(HEADS)?.unwrap_or(preset.heads);
    let kv_heads = if preset.kv_heads == preset.heads { heads } else { preset.kv_heads };
    // The position table must cover the training sequence length.
    let positions = if preset.learned_positions > 0 { preset.learned_positions.max(length) } else { 0 };
    Ok(Module {
        layers: cells.integer(LAYERS)?.unwrap_or(preset.layers),
        hidden: cells.integer(HIDDEN)?.unwrap_or(preset.hidden),
        heads,
        kv_heads: cells.integer(KV_HEADS)?.unwrap_or(kv_heads),
        ffn: cells.integer(FFN)?.unwrap_or(preset.ffn),
        gated: cells.flag(GATED)?.unwrap_or(preset.gated),
        vocab: cells.integer(VOCAB)?.unwrap_or(preset.vocab),
        learned_positions: positions,
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
        skew: cells.number(ROUTER_SKEW)?.unwrap_or(preset.skew),
        ..preset
    }))
}

/// Returns adapters of attention and MLP with the rank of the row.
fn adapters(cells: Cells<'_>) -> Result<Option<Adapters>, Rejection> {
    let rank = cells.integer(LORA_RANK)?.filter(|&rank| rank > 0);
    Ok(rank.map(|rank| Adapters { rank, mlp: true, base_bits: None }))
}

fn check(cells: Cells<'_>, module: &Module) -> Result<(), Rejection> {
    let (hidden, heads, kv_heads) = (module.hidden, module.heads, module.kv_heads);
    if !hidden.is_multiple_of(heads) {
        let whose = if cells.text(HEADS).is_none() { "by default, " } else { "" };
        return refuse(HEADS, format!("{whose}{heads} does not divide hidden {hidden}"));
    }
    if !heads.is_multiple_of(kv_heads) {
        return refuse(KV_HEADS, format!("{kv_heads} does not divide {heads} heads"));
    }
    Ok(())
}
