//! Exports a plan as Megatron-LM arguments: layout, model and memory options.
//!
//! Megatron-LM supports 1F1B and interleaved 1F1B for a single language model. Other plans cannot
//! be exported.

mod layers;
mod warnings;

use super::full_batch::FullBatch;
use planner::model::{Bias, Module, ModuleRole, Norm};
use planner::outcome::{BatchSummary, Planned, is_even, layer_counts};
use planner::scenario::{PlannerKind, Scenario};
use planner::training::{
    AttentionKernel, ContextExchange, Experts, Fp8Recipe, GradientFormat, MasterWeights, MomentFormat, Optimizer,
    Precision, Recompute, Training,
};

/// Reason why a plan cannot be exported.
pub(crate) type Refusal = &'static str;

/// Formats the arguments as a shell array with an argument per line. Comments before the array warn
/// about differences between the plan and Megatron-LM.
pub(crate) fn arguments(
    scenario: &Scenario,
    planner: PlannerKind,
    planned: &Planned,
    batches: &[BatchSummary],
) -> Result<String, Refusal> {
    // The best plan is the plan of another planner, and free settings have the values of the plan.
    let planner = planned.source.unwrap_or(planner);
    let chosen = planned.settings.map(|settings| scenario.with_settings(&settings));
    let scenario = chosen.as_ref().unwrap_or(scenario);
    let is_interleaved = match planner {
        PlannerKind::OneFOneB => false,
        PlannerKind::Interleaved => true,
        _ => return Err("Megatron-LM has no such schedule: take the torch CSV or the execution plan"),
    };
    let [module] = scenario.model.modules.as_slice() else {
        return Err(
            "the model has more than one module; pretrain_gpt.py trains one language model without encoder or generator",
        );
    };
    if module.role != ModuleRole::Backbone {
        return Err("the model has no language model, and pretrain_gpt.py trains nothing else");
    }
    let batch = FullBatch::new(scenario, planned, batches);
    let mut lines = layout(scenario, planned, module, is_interleaved);
    lines.push(format!("--micro-batch-size {}", batch.microbatch));
    lines.push(format!("--global-batch-size {}", batch.global_batch));
    lines.extend(model(module, scenario.workload.context_length, planned.layout.tensor));
    lines.extend(training(scenario, planned, module));
    let world = scenario.cluster.devices();
    let mut text = format!(
        "# {} on {world} devices: a plan of {} by Planscope, for pretrain_gpt.py of Megatron-LM.\n# Data, tokenizer, optimizer \
         and checkpoints are your own. Planned: {:.4} s an iteration.\n",
        scenario.model.name.replace(['\n', '\r'], " "),
        planner.title_with(planned.layout.pipeline),
        planned.metrics.iteration_s
    );
    for warning in warnings::warnings(scenario, planner, planned, module, batches) {
        text.push_str("# WARNING: ");
        text.push_str(&warning);
        text.push('\n');
    }
    text.push_str("MEGATRON_ARGS=(\n");
    for line in lines {
        text.push_str("  ");
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(")\n");
    Ok(text)
}

fn layout(scenario: &Scenario, planned: &Planned, module: &Module, is_interleaved: bool) -> Vec<String> {
    let (layout, training) = (&planned.layout, &scenario.training);
    let mut lines = vec![
        format!("--tensor-model-parallel-size {}", layout.tensor),
        format!("--pipeline-model-parallel-size {}", layout.pipeline),
    ];
    let uneven = layer_counts(planned, module.layers).and_then(|counts| shell_arguments(&counts, layout.chunks));
    if is_interleaved && layout.chunks > 1 {
        let stages = layout.pipeline * layout.chunks;
        if uneven.is_none() {
            lines.push(if module.layers.is_multiple_of(stages) {
                format!("--num-layers-per-virtual-pipeline-stage {}", module.layers / stages)
            } else {
                format!("--num-virtual-stages-per-pipeline-rank {}", layout.chunks)
            });
        }
        if let Some(group) = layout.group {
            lines.push(format!("--microbatch-group-size-per-virtual-pipeline-stage {group}"));
        }
    }
    lines.extend(uneven);
    if training.context_parallel > 1 {
        let exchange = match training.context_exchange {
            ContextExchange::Ring => "p2p",
            ContextExchange::AllToAll => "a2a",
        };
        lines.push(format!("--context-parallel-size {} --cp-comm-type {exchange}", training.context_parallel));
    }
    if training.expert_parallel > 1 {
        lines.push(format!("--expert-model-parallel-size {}", training.expert_parallel));
    }
    if training.expert_tensor_parallel.is_some() {
        lines.push("--expert-tensor-parallel-size 1".to_owned());
    }
    if training.sequence_parallel && layout.tensor > 1 {
        lines.push("--sequence-parallel".to_owned());
    }
    lines
}

/// Returns the arguments for uneven stages with their values; `None` if the stages are even. Without virtual stages,
/// layers of the first and last stage are enough if all others are even; Megatron-LM has these arguments for longer.
pub(crate) fn stage_arguments(counts: &[u32], chunks: u32) -> Option<Vec<(&'static str, String)>> {
    let (&first, &last) = (counts.first()?, counts.last()?);
    if is_even(counts) {
        return None;
    }
    let middle = &counts[1..counts.len() - 1];
    if chunks > 1 || counts.contains(&0) || (!middle.is_empty() && !is_even(middle)) {
        return Some(vec![("pipeline-model-parallel-layout", stage_layout(counts))]);
    }
    // The stages without an argument have equal shares of the remaining layers.
    let others = middle.first().copied().unwrap_or(last);
    let ends = [("decoder-first-pipeline-num-layers", first), ("decoder-last-pipeline-num-layers", last)];
    let uneven = ends.into_iter().filter(|(_, layers)| *layers != others);
    Some(uneven.map(|(name, layers)| (name, layers.to_string())).collect())
}

/// Returns [`stage_arguments`] for a shell.
fn shell_arguments(counts: &[u32], chunks: u32) -> Option<String> {
    // The shell must not read the bars of a layout.
    let quoted = |value: String| if value.contains('|') { format!("'{value}'") } else { value };
    let arguments = stage_arguments(counts, chunks)?.into_iter();
    Some(arguments.map(|(name, value)| format!("--{name} {}", quoted(value))).collect::<Vec<_>>().join(" "))
}

/// Formats stages in the notation of `--pipeline-model-parallel-layout`: `E` is the embedding, `t` a layer, `L` the
/// head, and `|` separates the stages, chunk by chunk.
fn stage_layout(counts: &[u32]) -> String {
    let last = counts.len() - 1;
    let stage = |(number, &count): (usize, &u32)| {
        let layers = match count {
            0 => String::new(),
            1 => "t".to_owned(),
            _ => format!("t*{count}"),
        };
        format!("{}{layers}{}", if number == 0 { "E" } else { "" }, if number == last { "L" } else { "" })
    };
    counts.iter().enumerate().map(stage).collect::<Vec<_>>().join("|")
}

fn model(module: &Module, context: u32, tensor: u32) -> Vec<String> {
    let mut lines = vec![
        format!("--num-layers {}", module.layers),
        format!("--hidden-size {}", module.hidden),
        format!("--ffn-hidden-size {}", module.ffn),
        format!("--num-attention-heads {}", module.heads),
        format!("--seq-length {context}"),
        format!("--max-position-embeddings {}", context.max(module.learned_positions)),
    ];
    if module.kv_heads < module.heads {
        lines.push(format!("--group-query-attention --num-query-groups {}", module.kv_heads));
    }
    if let Some(size) = module.head_size {
        lines.push(format!("--kv-channels {size}"));
    }
    if module.vocab > 0 {
        // Without a value that avoids padding, 1 adds the fewest rows.
        let unit = warnings::vocabulary_unit(module.vocab, tensor).unwrap_or(1);
        lines.push(format!("--vocab-size {} --make-vocab-size-divisible-by {unit}", module.vocab));
    }
    if module.gated {
        lines.push("--swiglu".to_owned());
    }
    let norm = match module.norm {
        Norm::Rms => "RMSNorm",
        Norm::Layer => "LayerNorm",
    };
    lines.push(format!("--normalization {norm}"));
    match module.bias {
        Bias::None => lines.push("--disable-bias-linear".to_owned()),
        Bias::Qkv => lines.push("--disable-bias-linear --add-qkv-bias".to_owned()),
        Bias::All => {}
    }
    let positions = if module.learned_positions > 0 { "learned_absolute" } else { "rope" };
    lines.push(format!("--position-embedding-type {positions}"));
    if !module.tied_embeddings {
        lines.push("--untie-embeddings-and-output-weights".to_owned());
    }
    if !module.dropout {
        lines.push("--attention-dropout 0 --hidden-dropout 0".to_owned());
    }
    lines.extend(layers::arguments(module));
    lines
}

/// Arguments of fp8 products. Megatron-LM has no scale per row.
fn fp8(training: &Training) -> String {
    let recipe = match training.used_recipe() {
        None | Some(Fp8Recipe::Delayed | Fp8Recipe::Rowwise) => String::new(),
        Some(recipe) => format!(" --fp8-recipe {}", recipe.id()),
    };
    let weights = if training.fp8_weights { " --fp8-param-gather" } else { "" };
    let input = if training.fp8_activation_input { " --activation-func-fp8-input-store" } else { "" };
    format!("--bf16 --fp8-format hybrid{recipe}{weights}{input}")
}

fn training(scenario: &Scenario, planned: &Planned, module: &Module) -> Vec<String> {
    let training = &scenario.training;
    let mut lines = Vec::new();
    match training.precision {
        Precision::Bf16 => lines.push("--bf16".to_owned()),
        Precision::Fp8 => lines.push(fp8(training)),
        Precision::Fp32 => {}
    }
    match training.recompute {
        Recompute::None => {}
        Recompute::Selective if !training.recompute_modules.is_empty() => {
            let names: Vec<&str> = training.recompute_modules.iter().map(|module| module.id()).collect();
            lines.push(format!("--recompute-granularity selective --recompute-modules {}", names.join(" ")));
        }
        Recompute::Selective | Recompute::Operators => lines.push("--recompute-activations".to_owned()),
        Recompute::Full => match training.recompute_layers {
            Some(layers) if layers < module.layers => {
                lines.push(format!(
                    "--recompute-granularity full --recompute-method block --recompute-num-layers {layers}"
                ));
            }
            _ => lines
                .push("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1".to_owned()),
        },
    }
    let backend = match training.attention {
        AttentionKernel::Unfused => "unfused",
        AttentionKernel::Cudnn => "fused",
        AttentionKernel::Flash | AttentionKernel::Flash1 | AttentionKernel::Flash2 | AttentionKernel::Flash3 => "flash",
    };
    lines.push(format!("--attention-backend {backend}"));
    if training.zero_stage() >= 1 {
        lines.push("--use-distributed-optimizer".to_owned());
        let replicas = planned.layout.data.saturating_mul(training.context_parallel);
        let copies = replicas / training.shards(replicas);
        if copies > 1 {
            lines.push(format!("--num-distributed-optimizer-instances {copies}"));
        }
    }
    if training.tensor_overlap >= 1.0 && training.sequence_parallel && planned.layout.tensor > 1 {
        lines.push("--tp-comm-overlap".to_owned());
    }
    if training.data_overlap > 0.0 {
        lines.push("--overlap-grad-reduce".to_owned());
        if training.zero_stage() >= 1 && training.data_overlap >= 1.0 {
            lines.push("--overlap-param-gather".to_owned());
        }
    }
    if training.gradients == GradientFormat::Fp32 && training.precision != Precision::Fp32 {
        lines.push("--accumulate-allreduce-grads-in-fp32".to_owned());
    }
    if training.gradients == GradientFormat::Bf16 && training.precision != Precision::Fp32 {
        lines.push("--grad-reduce-in-bf16".to_owned());
    }
    if !training.fused_weight_gradients {
        lines.push("--no-gradient-accumulation-fusion".to_owned());
    }
    if module.moe.is_some() {
        // The default of Megatron-LM gathers the tokens of all ranks.
        lines.push(if training.dispatch_by_node {
            "--moe-token-dispatcher-type flex --moe-enable-deepep".to_owned()
        } else {
            "--moe-token-dispatcher-type alltoall".to_owned()
        });
        if training.profile().experts == Experts::Together {
            lines.push("--moe-grouped-gemm".to_owned());
        }
    }
    if matches!(training.optimizer, Optimizer::Sgd | Optimizer::Muon) {
        lines.push(format!("--optimizer {}", training.optimizer.id()));
    }
    lines.extend(state_formats(training));
    let share = training.offloaded_optimizer();
    if share > 0.0 {
        lines.push(format!("--optimizer-cpu-offload --optimizer-offload-fraction {share}"));
    }
    lines
}

/// Returns the arguments of the precision-aware optimizer if the plan has other formats than fp32, or an offloaded
/// optimizer, which Megatron-LM refuses without it.
fn state_formats(training: &Training) -> Option<String> {
    let moments = match training.moments {
        MomentFormat::Fp32 => None,
        format => Some(format!("--exp-avg-dtype {0} --exp-avg-sq-dtype {0}", format.id())),
    };
    let masters = (training.master_weights == MasterWeights::Half).then(|| "--main-params-dtype fp16".to_owned());
    let formats: Vec<String> = masters.into_iter().chain(moments).collect();
    let switch = "--use-precision-aware-optimizer".to_owned();
    let is_needed = !formats.is_empty() || training.offloaded_optimizer() > 0.0;
    is_needed.then(|| [switch].into_iter().chain(formats).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests;
