//! Arguments for kinds of layers: experts, latent attention, windows, state space models,
//! multi-token prediction.

use planner::model::{LinearAttention, Module, Moe, Recurrence};

/// Returns the arguments for the module's layers.
pub(super) fn arguments(module: &Module) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(moe) = module.moe {
        lines.extend(experts(moe, module.layers));
    }
    if let Some(latent) = module.latent {
        let query = if latent.query_rank > 0 { format!("--q-lora-rank {} ", latent.query_rank) } else { String::new() };
        lines.push(format!(
            "--multi-latent-attention {query}--kv-lora-rank {} --qk-head-dim {} --qk-pos-emb-head-dim {} --v-head-dim {}",
            latent.kv_rank, latent.content_size, latent.rotary_size, latent.value_size
        ));
    }
    if let Some(window) = module.window.filter(|window| !window.chunked) {
        lines.push(format!("--window-size {},0", window.tokens.saturating_sub(1)));
        if window.full_every > 0 {
            lines.push(format!("--window-attn-skip-freq {}", window.full_every));
        }
    }
    if let (Some(pattern), Some(linear)) = (&module.pattern, module.linear) {
        lines.push(format!("--hybrid-override-pattern '{pattern}'"));
        lines.push(state_space(linear));
    }
    if module.predicted_ahead > 0 {
        lines.push(format!("--mtp-num-layers {}", module.predicted_ahead));
    }
    lines
}

fn experts(moe: Moe, layers: u32) -> Vec<String> {
    let mut lines = vec![format!("--num-experts {} --moe-router-topk {}", moe.experts, moe.top_k)];
    if let Some(width) = moe.expert_width {
        lines.push(format!("--moe-ffn-hidden-size {width}"));
    }
    if moe.shared_width > 0 {
        lines.push(format!("--moe-shared-expert-intermediate-size {}", moe.shared_width));
    }
    if moe.dense_layers > 0 || moe.every > 1 {
        lines.push(format!("--moe-layer-freq '{}'", layers_with_experts(moe, layers)));
    }
    lines
}

/// Returns the Python list of `--moe-layer-freq`: 1 for a layer with experts.
fn layers_with_experts(moe: Moe, layers: u32) -> String {
    let (dense, every) = (moe.dense_layers, moe.every.max(1));
    let others = layers - dense;
    let mut terms = Vec::new();
    if dense > 0 {
        terms.push(format!("[0]*{dense}"));
    }
    let unit = if every == 1 { "[1]".to_owned() } else { format!("[{}1]", "0,".repeat(every as usize - 1)) };
    terms.push(format!("{unit}*{}", others / every));
    if !others.is_multiple_of(every) {
        terms.push(format!("[0]*{}", others % every));
    }
    format!("({})", terms.join("+"))
}

fn state_space(linear: LinearAttention) -> String {
    format!(
        "--mamba-num-heads {} --mamba-head-dim {} --mamba-num-groups {} --mamba-state-dim {}",
        linear.value_heads, linear.value_size, linear.key_heads, linear.key_size
    )
}

/// Appends the parts of the layers that no argument states.
pub(super) fn warn(module: &Module, warnings: &mut Vec<String>) {
    if module.linear.is_some_and(|linear| linear.recurrence == Recurrence::GatedDelta) {
        warnings.push("The plan has layers with linear attention; these arguments state full attention.".to_owned());
    }
    if module.window.is_some_and(|window| window.chunked) {
        warnings.push("The plan has layers with chunked attention; these arguments state full attention.".to_owned());
    }
    if let Some(limit) = module.moe.map(|moe| moe.node_limit).filter(|&limit| limit > 0) {
        warnings.push(format!(
            "The plan sends a token to at most {limit} nodes: set --moe-router-num-groups to the nodes of an expert-parallel group \
             and --moe-router-group-topk to {limit}."
        ));
    }
    if module.adapters.is_some() {
        warnings.push("The plan trains adapters (LoRA); pretrain_gpt.py trains all parameters.".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_with_experts_are_a_python_list() {
        let of =
            |dense_layers, every, layers| layers_with_experts(Moe { dense_layers, every, ..Moe::new(8, 2) }, layers);
        assert_eq!(of(3, 1, 61), "([0]*3+[1]*58)");
        assert_eq!(of(0, 2, 48), "([0,1]*24)");
        assert_eq!(of(1, 3, 9), "([0]*1+[0,0,1]*2+[0]*2)");
    }

    /// The arguments of current models are read as the same layers.
    #[test]
    fn exported_layers_are_read_again() {
        for id in ["deepseek-v3", "kimi-k2", "glm-4.5", "gpt-oss-20b", "llama-4-scout", "nemotron-h-8b", "mixtral-8x7b"]
        {
            let module = planner::model::presets::model(id).expect("a preset").modules.remove(0);
            let sizes = super::super::model(&module, 4096, 1);
            let text = format!("torchrun pretrain_gpt.py {} --bf16 --micro-batch-size 1", sizes.join(" "));
            let job = ingest::job_config::read("run.sh", text.as_bytes()).expect("arguments");
            let read = &job.scenario.model.modules[0];
            let experts = module.moe.map(|moe| Moe { node_limit: 0, ..moe });
            let expected = (experts, module.latent, module.linear, &module.pattern, module.predicted_ahead);
            assert_eq!((read.moe, read.latent, read.linear, &read.pattern, read.predicted_ahead), expected, "{id}");
            assert_eq!((read.layers, read.ffn, read.head_size), (module.layers, module.ffn, module.head_size), "{id}");
            let window = module.window.filter(|window| !window.chunked);
            assert_eq!(read.window, window, "{id}");
        }
    }
}
