//! Validates the kinds of layers: experts, latent and linear attention, windows, patterns, adapters.

use super::super::Ranges;
use planscope_core::model::{Module, ModuleRole, Recurrence};

const WIDTH: u32 = 131_072;

pub(super) fn check(module: &Module, at: &str, ranges: &mut Ranges<'_>) {
    experts(module, at, ranges);
    attention(module, at, ranges);
    linear(module, at, ranges);
    pattern(module, at, ranges);
    let ahead = format!("{at}/predicted_ahead");
    ranges.integer(&ahead, module.predicted_ahead, 0, 8, "");
    if module.predicted_ahead > 0 && module.predicted() == 0 {
        ranges.refuse(&ahead, "multi-token prediction needs an output head".to_owned());
    }
    if let Some(adapters) = module.adapters {
        let field = format!("{at}/adapters");
        ranges.integer(&format!("{field}/rank"), adapters.rank, 1, 4096, "");
        if let Some(bits) = adapters.base_bits
            && ![4, 8].contains(&bits)
        {
            ranges.refuse(
                &format!("{field}/base_bits"),
                format!("{bits} bits: frozen weights are quantized to 4 or 8 bits"),
            );
        }
        if module.frozen {
            ranges.refuse(
                &field,
                "a frozen module has no adapters: with adapters, its other weights are frozen".to_owned(),
            );
        }
    }
}

fn experts(module: &Module, at: &str, ranges: &mut Ranges<'_>) {
    let Some(moe) = module.moe else { return };
    let field = |name: &str| format!("{at}/moe/{name}");
    ranges.integer(&field("experts"), moe.experts, 1, 1024, "");
    ranges.integer(&field("top_k"), moe.top_k, 1, moe.experts.max(1), "");
    if let Some(width) = moe.expert_width {
        ranges.integer(&field("expert_width"), width, 16, 1_048_576, "");
    }
    ranges.integer(&field("shared_width"), moe.shared_width, 0, 1_048_576, "");
    ranges.integer(&field("dense_layers"), moe.dense_layers, 0, module.layers.saturating_sub(1), "");
    ranges.integer(&field("every"), moe.every, 1, module.layers.max(1), "");
    ranges.integer(&field("node_limit"), moe.node_limit, 0, 1024, "");
    let most = f64::from(moe.experts) / f64::from(moe.top_k.max(1));
    ranges.number(&field("skew"), moe.skew, 1.0, most.max(1.0), "");
}

fn attention(module: &Module, at: &str, ranges: &mut Ranges<'_>) {
    if let Some(latent) = module.latent {
        let field = |name: &str| format!("{at}/latent/{name}");
        ranges.integer(&field("query_rank"), latent.query_rank, 0, WIDTH, "");
        ranges.integer(&field("kv_rank"), latent.kv_rank, 1, WIDTH, "");
        for (name, size) in [("content_size", latent.content_size), ("value_size", latent.value_size)] {
            ranges.integer(&field(name), size, 1, 2048, "");
        }
        ranges.integer(&field("rotary_size"), latent.rotary_size, 0, 2048, "");
        if module.kv_heads != module.heads {
            let (kv, heads) = (module.kv_heads, module.heads);
            let detail = format!("{kv} key-value heads: latent attention has keys and values for all {heads} heads");
            ranges.refuse(&format!("{at}/kv_heads"), detail);
        }
    }
    if let Some(window) = module.window {
        ranges.integer(&format!("{at}/window/tokens"), window.tokens, 1, 16_777_216, "");
        ranges.integer(&format!("{at}/window/full_every"), window.full_every, 0, module.layers, "");
    }
}

fn linear(module: &Module, at: &str, ranges: &mut Ranges<'_>) {
    let Some(linear) = module.linear else { return };
    let field = |name: &str| format!("{at}/linear/{name}");
    for (name, heads) in [("key_heads", linear.key_heads), ("value_heads", linear.value_heads)] {
        ranges.integer(&field(name), heads, 1, 1024, "");
    }
    for (name, size) in [("key_size", linear.key_size), ("value_size", linear.value_size)] {
        ranges.integer(&field(name), size, 1, 4096, "");
    }
    ranges.integer(&field("convolution"), linear.convolution, 0, 64, "");
    ranges.integer(&field("full_every"), linear.full_every, 0, module.layers, "");
    if linear.recurrence == Recurrence::GatedDelta && !linear.value_heads.is_multiple_of(linear.key_heads.max(1)) {
        let (keys, values) = (linear.key_heads, linear.value_heads);
        ranges.refuse(&field("key_heads"), format!("{keys} key heads do not divide {values} value heads"));
    }
}

fn pattern(module: &Module, at: &str, ranges: &mut Ranges<'_>) {
    let Some(pattern) = &module.pattern else { return };
    let field = format!("{at}/pattern");
    if module.role != ModuleRole::Backbone {
        ranges.refuse(&field, "only a backbone has a pattern of layers".to_owned());
    } else if let Some(other) = pattern.chars().find(|character| !"M*-E".contains(*character)) {
        ranges.refuse(&field, format!("{other:?} is none of M, *, - and E"));
    } else if pattern.len() != module.layers as usize {
        ranges.refuse(&field, format!("{} characters for {} layers", pattern.len(), module.layers));
    } else if pattern.contains('M') && module.linear.is_none() {
        ranges.refuse(&field, "M needs the sizes of linear attention".to_owned());
    } else if pattern.contains('E') && module.moe.is_none() {
        ranges.refuse(&field, "E needs experts".to_owned());
    }
}
