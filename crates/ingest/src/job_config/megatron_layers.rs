//! Kinds of layers in the arguments of Megatron-LM.

use planner::model::{LatentAttention, LinearAttention, Module, Moe, Recurrence, Window};

use super::JobConfigError;
use super::keys::Keys;
use super::layer_kinds::{list, period};

/// Reads the parts of layers that differ between kinds, and adds them to `module`.
pub(super) fn read(keys: &mut Keys, module: &mut Module) -> Result<(), JobConfigError> {
    if let Some(moe) = module.moe {
        experts(keys, moe, module)?;
    }
    latent(keys, module)?;
    window(keys, module);
    hybrid(keys, module)?;
    module.predicted_ahead = keys.count(&["mtp-num-layers"], "multi-token prediction")?.unwrap_or(0);
    Ok(())
}

/// Returns the pattern of layers of a hybrid model: as stated, or from the shares of attention and MLP layers.
pub(super) fn pattern(keys: &mut Keys) -> Result<Option<String>, JobConfigError> {
    let mut share = |name: &'static str| keys.number(&[name], "layers");
    let (attention, mlp) = (share("hybrid-attention-ratio")?, share("hybrid-mlp-ratio")?);
    if let Some(pattern) = stated_pattern(keys) {
        return Ok(Some(pattern.chars().filter(|letter| KINDS.contains(*letter)).collect()));
    }
    let (attention, mlp) = (attention.unwrap_or(0.0), mlp.unwrap_or(0.0));
    if attention <= 0.0 && mlp <= 0.0 {
        return Ok(None);
    }
    let Some(layers) = keys.count(&["num-layers"], "layers")? else { return Ok(None) };
    if attention < 0.0 || mlp < 0.0 || attention + mlp > 1.0 {
        let detail = "the shares of attention and MLP layers must be 0 or more, and at most 1 together".to_owned();
        return Err(JobConfigError::Value { key: "hybrid-attention-ratio".to_owned(), detail });
    }
    Ok(Some(spread(layers, attention, mlp)))
}

/// Letters of a pattern: state space model, attention, MLP, experts.
const KINDS: &str = "M*-E";

fn stated_pattern(keys: &mut Keys) -> Option<String> {
    keys.text(&["hybrid-layer-pattern", "hybrid-override-pattern"], "layers")
}

/// Reports the layers of a pattern that are of another kind.
fn report_other_kinds(keys: &mut Keys) {
    let Some(pattern) = stated_pattern(keys) else { return };
    let others: Vec<char> =
        pattern.chars().filter(|letter| letter.is_ascii_alphabetic() && !KINDS.contains(*letter)).collect();
    let kinds: std::collections::BTreeSet<String> = others.iter().map(char::to_string).collect();
    if !others.is_empty() {
        let kinds = Vec::from_iter(kinds).join(", ");
        keys.not_modelled(format!(
            "The layers {kinds} of the pattern ({} of them) are of unknown kinds. They are left out: time and memory are lower \
             bounds.",
            others.len()
        ));
    }
}

/// Returns the pattern of Megatron-LM for shares of attention and MLP layers. The attention layers have equal distances
/// and are neither first nor last. The MLP layers replace state space layers in equal distances.
fn spread(layers: u32, attention: f64, mlp: f64) -> String {
    let count = |share: f64| (f64::from(layers) * share).round_ties_even();
    let (attention, mlp) = (count(attention), count(mlp));
    let mut pattern = vec!['M'; layers as usize];
    let mut place = |kind: char, distance: f64| {
        let mut left = distance;
        for layer in pattern.iter_mut().filter(|layer| **layer == 'M') {
            if left < 0.5 {
                *layer = kind;
                left += distance;
            } else {
                left -= 1.0;
            }
        }
    };
    let others = f64::from(layers) - attention;
    if attention > 0.0 {
        place('*', others / (attention + 1.0));
    }
    if mlp > 0.0 {
        place('-', (others - mlp) / mlp);
    }
    pattern.into_iter().collect()
}

fn experts(keys: &mut Keys, moe: Moe, module: &mut Module) -> Result<(), JobConfigError> {
    let width = keys.count(&["moe-ffn-hidden-size"], "width of an expert")?;
    let shared_width = keys.count(&["moe-shared-expert-intermediate-size"], "shared experts")?.unwrap_or(0);
    let frequency = keys.text(&["moe-layer-freq"], "layers with experts");
    let has_experts = frequency.as_deref().and_then(|text| flags(text, module.layers));
    if has_experts.is_none() && frequency.as_deref().is_some_and(|text| text.trim() != "1") {
        keys.not_modelled(
            "The layers with experts are not known, because --moe-layer-freq is no number and no list with an entry per layer. \
             All layers are read with experts.",
        );
    }
    let (dense_layers, every) = match has_experts {
        None => (moe.dense_layers, moe.every),
        Some(flags) => period(&flags).unwrap_or_else(|| {
            keys.not_modelled(
                "The dense layers of --moe-layer-freq follow no period. All layers are read with experts.",
            );
            (0, 1)
        }),
    };
    let has_dense = dense_layers > 0 || every > 1;
    let expert_width = width.filter(|&width| has_dense && width != module.ffn);
    if !has_dense {
        module.ffn = width.unwrap_or(module.ffn);
    }
    let groups = keys.count(&["moe-router-num-groups"], "limit of nodes")?.unwrap_or(1);
    let limit = keys.count(&["moe-router-group-topk"], "limit of nodes")?.filter(|_| groups > 1);
    let node_limit = limit.unwrap_or(0);
    module.moe = Some(Moe { expert_width, shared_width, dense_layers, every, node_limit, ..moe });
    Ok(())
}

/// Returns which layers have experts: from a period, or from a Python list such as
/// `([0]*3+[1]*58)`.
fn flags(text: &str, layers: u32) -> Option<Vec<bool>> {
    let text: String = text.chars().filter(|c| !c.is_whitespace() && !"()\"'".contains(*c)).collect();
    if let Ok(every) = text.parse::<u32>() {
        return (every > 1).then(|| (0..layers).map(|layer| layer.is_multiple_of(every)).collect());
    }
    let mut flags = Vec::new();
    for term in text.split('+') {
        let (values, times) = term.split_once('*').unwrap_or((term, "1"));
        let (values, times) = (list(values), times.parse::<usize>().ok()?);
        if flags.len() + values.len().saturating_mul(times) > layers as usize {
            return None;
        }
        flags.extend(values.repeat(times).into_iter().map(|value| value > 0));
    }
    (flags.len() == layers as usize).then_some(flags)
}

fn latent(keys: &mut Keys, module: &mut Module) -> Result<(), JobConfigError> {
    if !keys.flag(&["multi-latent-attention"], "latent attention").unwrap_or(false) {
        return Ok(());
    }
    let mut size =
        |name: &'static str, default: u32| keys.count(&[name], "latent attention").map(|size| size.unwrap_or(default));
    // The defaults are those of Megatron-LM.
    module.latent = Some(LatentAttention {
        query_rank: size("q-lora-rank", 0)?,
        kv_rank: size("kv-lora-rank", 32)?,
        content_size: size("qk-head-dim", 128)?,
        rotary_size: size("qk-pos-emb-head-dim", 64)?,
        value_size: size("v-head-dim", 128)?,
    });
    (module.kv_heads, module.head_size) = (module.heads, None);
    Ok(())
}

/// Reads `--window-size 4095,0`: a token attends to so many tokens before itself.
fn window(keys: &mut Keys, module: &mut Module) {
    let Some(text) = keys.text(&["window-size"], "sliding window") else { return };
    let Some(&before) = list(&text).first().filter(|_| !text.contains("-1")) else { return };
    let every = keys.text(&["window-attn-skip-freq"], "sliding window");
    let full_every = every.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    module.window = Some(Window { tokens: before.saturating_add(1), full_every, chunked: false });
}

fn hybrid(keys: &mut Keys, module: &mut Module) -> Result<(), JobConfigError> {
    let Some(pattern) = pattern(keys)? else { return Ok(()) };
    report_other_kinds(keys);
    let mut size = |name: &'static str| keys.count(&[name], "state space model");
    let value_size = size("mamba-head-dim")?.unwrap_or(64);
    // Megatron-LM: heads of twice the hidden size.
    let value_heads = size("mamba-num-heads")?.unwrap_or(2 * module.hidden / value_size);
    module.linear = Some(LinearAttention {
        recurrence: Recurrence::StateSpace,
        key_heads: size("mamba-num-groups")?.unwrap_or(8),
        value_heads,
        key_size: size("mamba-state-dim")?.unwrap_or(128),
        value_size,
        convolution: 4,
        full_every: 0,
    });
    module.pattern = Some(pattern);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_layers_are_spread() {
        // Megatron-LM's example with 48 layers: 4 with attention, 24 MLPs.
        let pattern = spread(48, 0.08, 0.5);
        let positions = |kind: char| -> Vec<usize> {
            pattern.chars().enumerate().filter(|(_, layer)| *layer == kind).map(|(index, _)| index).collect()
        };
        assert_eq!(positions('*'), [9, 19, 28, 38]);
        assert_eq!((positions('-').len(), positions('M').len()), (24, 20));
        assert!(pattern.starts_with("M-M-M"), "{pattern}");
        assert_eq!(spread(4, 0.0, 0.5), "M-M-");
        assert_eq!(spread(3, 0.34, 0.0), "M*M");
    }

    #[test]
    fn layers_with_experts_are_a_period_or_a_python_list() {
        let of = |text: &str, layers| flags(text, layers).and_then(|flags| period(&flags));
        assert_eq!(of("([0]*3+[1]*58)", 61), Some((3, 1)));
        assert_eq!(of("[0, 1] * 4", 8), Some((0, 2)));
        assert_eq!(of("[0]*1+[1]*26", 27), Some((1, 1)));
        assert_eq!(of("1", 8), None);
        assert_eq!(flags("[0]*9000000000000000000+[1]", 61), None);
        assert_eq!(flags("[1]*4", 5), None);
    }
}
