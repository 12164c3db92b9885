//! Arguments for Megatron-LM and Megatron-DeepSpeed, with Megatron-LM defaults.

use planner::model::{Bias, Model, Module, Norm};
use planner::training::{
    ContextExchange, Fp8Recipe, Framework, GradientFormat, MasterWeights, MomentFormat, Precision, Recompute,
    RecomputedModule,
};

use super::keys::Keys;
use super::megatron_attention;
use super::megatron_ignored;
use super::megatron_layers;
use super::megatron_parts;
use super::megatron_stages;
use super::megatron_vision;
use super::model_config::distinct_head_size;
use super::settings::{Batch, Settings, Sharding};
use super::{JobConfigError, launcher, optimizer, slime, unmodelled};

/// Megatron-LM programs for bidirectional models or models with cross-attention in the decoder.
const OTHER_PROGRAMS: [(&str, &str); 4] = [
    ("pretrain_bert.py", "BERT"),
    ("pretrain_t5.py", "T5"),
    ("pretrain_ict.py", "ICT"),
    ("pretrain_vision_classify.py", "a vision model"),
];

/// Assumption of a job in fp16 without a format of gradients.
pub(super) const SHORT_GRADIENTS: &str =
    "Gradients of fp16 training are in 16 bits unless --accumulate-allreduce-grads-in-fp32 is on.";

/// Arguments of which a Megatron-LM script has at least two.
const MARKS: [&str; 4] =
    ["num-layers", "tensor-model-parallel-size", "pipeline-model-parallel-size", "num-attention-heads"];

pub(super) fn is_megatron(keys: &Keys) -> bool {
    MARKS.iter().filter(|name| keys.has(name)).count() >= 2
}

/// Name of an argument that marks a Megatron-LM script.
pub(super) fn argument(keys: &Keys) -> Option<&'static str> {
    MARKS.into_iter().find(|name| keys.has(name))
}

/// Returns the model type if a script runs a program that does not train a causal language model.
pub(super) fn other_model(text: &str) -> Option<&'static str> {
    let mut terms = text.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(str::split_whitespace);
    let program = |word: &str| {
        let name = word.trim_matches(['"', '\'']).rsplit('/').next()?;
        OTHER_PROGRAMS.into_iter().find(|(program, _)| *program == name).map(|(_, model)| model)
    };
    terms.find_map(program)
}

/// Reads the settings of a Megatron-LM command line.
pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let name = slime::model_name(keys);
    slime::add_defaults(keys);
    if let Some(name) = name {
        return Ok(Settings { model_name: Some(("hf-checkpoint", name)), ..read_job(keys)? });
    }
    let sequence = sequence(keys)?;
    let module = module(keys, sequence)?;
    let layers = module.layers;
    let model = Model { name: module.name.clone(), modules: vec![module] };
    job(keys, Settings { sequence, ..Settings::from_model(model) }, Some(layers))
}

/// Reads the settings of a job whose model another file states.
pub(super) fn read_job(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let sequence = sequence(keys)?;
    job(keys, Settings { sequence, ..Settings::default() }, None)
}

fn sequence(keys: &mut Keys) -> Result<Option<u32>, JobConfigError> {
    let sequence = keys.count(&["decoder-seq-length", "seq-length", "encoder-seq-length"], "sequence length")?;
    keys.ignore(|key| key == "seq-length");
    Ok(sequence)
}

fn job(keys: &mut Keys, mut settings: Settings, layers: Option<u32>) -> Result<Settings, JobConfigError> {
    settings.has_layout = true;
    degrees(keys, &mut settings, layers)?;
    launcher::devices(keys, &mut settings)?;
    launcher::one_node(keys, &mut settings);
    megatron_parts::read_megablocks(keys, &mut settings);
    memory(keys, &mut settings)?;
    megatron_vision::read(keys, &mut settings)?;
    report_unmodelled(keys);
    unmodelled::report(keys);
    keys.ignore(megatron_ignored::is_without_effect);
    Ok(settings)
}

fn required(keys: &mut Keys, name: &'static str, setting: &'static str) -> Result<u32, JobConfigError> {
    keys.count(&[name], setting)?.ok_or_else(|| JobConfigError::Missing { setting, keys: format!("--{name}") })
}

fn module(keys: &mut Keys, sequence: Option<u32>) -> Result<Module, JobConfigError> {
    let layers = match megatron_layers::pattern(keys)? {
        Some(pattern) => u32::try_from(pattern.len()).unwrap_or(u32::MAX),
        None => required(keys, "num-layers", "layers")?,
    };
    let hidden = required(keys, "hidden-size", "width")?;
    let heads = required(keys, "num-attention-heads", "heads")?;
    let groups = keys.count(&["num-query-groups"], "key and value heads")?;
    let is_grouped = keys.flag(&["group-query-attention"], "key and value heads").unwrap_or(false);
    // The name of Megatron-DeepSpeed.
    let shared_heads = keys.count(&["num-key-value-heads"], "key and value heads")?;
    let gated = keys.flag(&["swiglu", "glu"], "gated MLP").unwrap_or(false);
    let width = keys.count(&["ffn-hidden-size"], "width of the MLP")?;
    // Megatron-LM: 4 h; for SwiGLU two thirds of this value, rounded down to a multiple of 64.
    let width = width.unwrap_or(if gated { hidden.saturating_mul(8) / 192 * 64 } else { hidden.saturating_mul(4) });
    let moe = megatron_parts::experts(keys)?;
    let head_size = keys.count(&["kv-channels"], "head size")?;
    let dropout = keys.number(&["hidden-dropout"], "dropout")?.unwrap_or(0.1) > 0.0;
    let rotary = keys.flag(&["use-rotary-position-embeddings"], "positions").unwrap_or(false);
    let positions = keys.text(&["position-embedding-type"], "positions");
    let max_positions = keys.count(&["max-position-embeddings"], "longest sequence")?.or(sequence).unwrap_or(0);
    if let Some(sequence) = sequence.filter(|&sequence| sequence > max_positions) {
        keys.refuse(format!(
            "A sequence has {sequence} tokens, and max-position-embeddings is {max_positions}. Set max-position-embeddings to \
             at least {sequence}."
        ));
    }
    let is_learned = !rotary && positions.is_none_or(|kind| kind == "learned_absolute");
    let norm = keys.text(&["normalization"], "normalisation").is_some_and(|name| name.eq_ignore_ascii_case("rmsnorm"));
    let has_qkv_bias = keys.flag(&["add-qkv-bias"], "bias of query, key and value").unwrap_or(false);
    let is_without_bias = keys.flag(&["disable-bias-linear"], "bias").unwrap_or(false);
    let is_untied = keys.flag(&["untie-embeddings-and-output-weights"], "output head of its own").unwrap_or(false);
    let mut module = Module {
        name: "Megatron-LM model".to_owned(),
        layers,
        hidden,
        heads,
        kv_heads: groups.filter(|_| is_grouped).or(shared_heads).unwrap_or(heads),
        head_size: distinct_head_size(hidden, heads, head_size),
        ffn: width,
        gated,
        norm: if norm { Norm::Rms } else { Norm::Layer },
        bias: match (is_without_bias, has_qkv_bias) {
            (false, _) => Bias::All,
            (true, true) => Bias::Qkv,
            (true, false) => Bias::None,
        },
        dropout,
        vocab: megatron_parts::vocabulary(keys)?,
        tied_embeddings: !is_untied,
        learned_positions: if is_learned { max_positions } else { 0 },
        moe,
        ..Module::decoder()
    };
    megatron_layers::read(keys, &mut module)?;
    Ok(module)
}

fn degrees(keys: &mut Keys, settings: &mut Settings, layers: Option<u32>) -> Result<(), JobConfigError> {
    settings.tensor = keys.count(&["tensor-model-parallel-size", "model-parallel-size"], "tensor parallelism")?;
    settings.pipeline = keys.count(&["pipeline-model-parallel-size"], "pipeline parallelism")?;
    settings.context = keys.count(&["context-parallel-size", "ds-sequence-parallel-size"], "context parallelism")?;
    settings.expert = keys.count(&["expert-model-parallel-size", "moe-expert-parallel-size"], "expert parallelism")?;
    let dispatcher = keys.text(&["moe-token-dispatcher-type"], "exchange between experts");
    let has_deepep = keys.flag(&["moe-enable-deepep"], "exchange between experts").unwrap_or(false);
    // Both backends, deepep and hybridep, send a token to a node once.
    keys.text(&["moe-flex-dispatcher-backend"], "exchange between experts");
    let is_by_node = has_deepep || dispatcher.as_deref() == Some("flex");
    settings.dispatch_by_node = Some(is_by_node);
    if !is_by_node && dispatcher.is_none_or(|kind| kind.trim() == "allgather") {
        megatron_parts::report_gathered_tokens(keys, settings.expert.unwrap_or(1));
    }
    // The default degree is that of tensor parallelism.
    let tensor = settings.tensor.unwrap_or(1);
    if let Some(degree) = keys.count(&["expert-tensor-parallel-size"], "tensor parallelism of experts")?
        && degree != tensor
    {
        settings.expert_tensor = (degree == 1).then_some(1);
        if degree > 1 {
            keys.not_modelled(format!(
                "Experts have the tensor parallelism of the model, {tensor}, instead of {degree}. A replica of all \
                 experts has EP x TP devices."
            ));
        }
    }
    if keys.flag(&["overlap-moe-expert-parallel-comm"], "exchange between experts").unwrap_or(false) {
        keys.not_modelled("Overlap of the exchange between experts is not applied.");
    }
    settings.microbatch = keys.count(&["micro-batch-size", "batch-size"], "sequences of a microbatch")?;
    if keys.peek("global-batch-size").is_some_and(|value| value.trim() == "0") {
        return Err(refused("global-batch-size", "a step has at least one sequence"));
    }
    settings.batch_key = Some("global-batch-size");
    settings.batch = match keys.count(&["global-batch-size"], "global batch")? {
        Some(batch) => Batch::Global(batch),
        None => settings.microbatch.map_or(Batch::Unknown, Batch::Replica),
    };
    if keys.has("rampup-batch-size") {
        keys.ignore(|key| key == "rampup-batch-size");
        keys.not_modelled("The ramp of the batch size is left out. The final batch is read.");
    }
    if let Some(schedule) = keys.text(&["step-batch-size-schedule"], "global batch") {
        // "0:384 200B:768": from so many tokens on, so many sequences.
        let last = schedule.split_whitespace().next_back().and_then(|step| step.rsplit(':').next()?.parse().ok());
        if let Some(last) = last.filter(|&last| last > 0) {
            settings.batch = Batch::Global(last);
        }
        keys.not_modelled("The schedule of the batch size is left out. The final batch is read.");
    }
    megatron_stages::read(keys, settings, layers)?;
    settings.sequence_parallel = Some(keys.flag(&["sequence-parallel"], "sequence parallelism").unwrap_or(false));
    let is_ulysses = !keys.has("context-parallel-size") && keys.has("ds-sequence-parallel-size");
    let exchange = keys.text(&["cp-comm-type"], "exchange of context parallelism");
    let kind = exchange.as_deref().map(str::trim);
    if is_ulysses || kind == Some("a2a") {
        settings.context_exchange = ContextExchange::AllToAll;
    } else if let Some(kind) = kind.filter(|kind| *kind != "p2p") {
        keys.not_modelled(format!("The exchange {kind:?} of context parallelism is read as a ring."));
    }
    Ok(())
}

fn refused(key: &str, detail: &str) -> JobConfigError {
    JobConfigError::Value { key: key.to_owned(), detail: detail.to_owned() }
}

/// Reads format, recipe and weights of fp8. Returns whether fp8 is on.
pub(super) fn fp8(keys: &mut Keys, settings: &mut Settings) -> Result<bool, JobConfigError> {
    let format = keys.text(&["fp8-format", "fp8", "fp8-hybrid", "fp8-e4m3"], "precision");
    let format = format.map(|format| format.trim().to_ascii_lowercase());
    let known = ["e4m3", "hybrid", "true", ""];
    if let Some(other) = format.as_deref().filter(|format| !known.contains(&first_word(format))) {
        let none = matches!(first_word(other), "false" | "none" | "0");
        if !none {
            return Err(refused("fp8-format", "the formats are e4m3 and hybrid"));
        }
    }
    let is_on = format.is_some_and(|format| known.contains(&first_word(&format)));
    fp8_options(keys, settings, is_on);
    Ok(is_on)
}

/// Reads the recipe and the weights of fp8, which have no effect if fp8 is off.
fn fp8_options(keys: &mut Keys, settings: &mut Settings, is_on: bool) {
    let recipe = keys.text(&["fp8-recipe"], "recipe of fp8");
    settings.fp8.recipe = recipe.as_deref().and_then(Fp8Recipe::named);
    match &recipe {
        Some(_) if !is_on => keys.assume("The fp8 recipe has no effect: fp8 is off."),
        Some(name) if settings.fp8.recipe.is_none() => {
            keys.not_modelled(format!("The fp8 recipe {name:?} is read as delayed."));
        }
        _ => {}
    }
    let has_ends = keys.flag(&["first-last-layers-bf16"], "layers in bf16").unwrap_or(false);
    let mut layers = |end: &str| {
        keys.integer(&[&format!("num-layers-at-{end}-in-bf16")], "layers in bf16").ok().flatten().unwrap_or(1)
    };
    let ends = layers("start").saturating_add(layers("end"));
    if is_on && has_ends && ends > 0 {
        keys.not_modelled(format!(
            "{ends} layers at the ends are in bf16. They are read as fp8, so the time is a lower bound."
        ));
    }
    let names = ["activation-func-fp8-input-store"];
    settings.fp8.has_activation_input = keys.flag(&names, "fp8 inputs of activation functions").unwrap_or(false);
    settings.fp8.has_weights = keys.flag(&["fp8-param-gather", "fp8-param"], "fp8 weights").unwrap_or(false);
}

fn memory(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    recompute(keys, settings)?;
    let is_distributed = keys.flag(&["use-distributed-optimizer"], "ZeRO stage").unwrap_or(false);
    let is_megatron_fsdp = keys.flag(&["use-megatron-fsdp", "use-custom-fsdp"], "ZeRO stage").unwrap_or(false);
    let is_fsdp = is_megatron_fsdp || keys.flag(&["use-torch-fsdp2"], "ZeRO stage").unwrap_or(false);
    let sharded = keys.text(&["data-parallel-sharding-strategy"], "ZeRO stage");
    let file = keys.text(&["deepspeed-config"], "");
    if file.is_some() && !keys.has_section("deepspeed.") {
        keys.assume(
            "The DeepSpeed file of deepspeed_config is not given, and its settings are not read. Add the file.",
        );
    }
    let deepspeed = keys.integer(&["zero-stage", "deepspeed.zero_optimization.stage", "$ZERO_STAGE"], "ZeRO stage")?;
    settings.zero = Some(match (deepspeed, is_fsdp, sharded.as_deref()) {
        (Some(stage), _, _) => stage,
        (_, true, Some("optim")) => 1,
        (_, true, Some("optim_grads")) => 2,
        (_, true, Some("no_shard")) => 0,
        // The default of Megatron-LM is no_shard. Other FSDP shards all states.
        (_, true, None) if is_megatron_fsdp => {
            keys.assume("--data-parallel-sharding-strategy is not stated. Its default no_shard shards nothing.");
            0
        }
        (_, true, _) => 3,
        (_, false, _) => u32::from(is_distributed),
    });
    let copies = keys.count(&["num-distributed-optimizer-instances"], "copies of the sharded state")?;
    settings.sharding = copies.map(Sharding::Copies);
    let is_deepspeed = deepspeed.is_some() || keys.flag(&["deepspeed"], "framework").unwrap_or(false);
    settings.framework = is_deepspeed.then_some(Framework::MegatronDeepspeed);
    let is_selective = settings.recompute == Some(Recompute::Selective);
    if is_selective && settings.recompute_modules.is_empty() && !is_deepspeed {
        // The default of Megatron-Core, which repeats fused attention too. Megatron-DeepSpeed does not.
        settings.recompute_modules.push(RecomputedModule::CoreAttn);
    }
    settings.overlapped_gradients = keys.flag(&["overlap-grad-reduce"], "overlap of gradient communication");
    overlapped_weights(keys, settings);
    let is_short = keys.flag(&["grad-reduce-in-bf16"], "format of gradients").unwrap_or(false);
    let main_format = keys.text(&["main-grads-dtype"], "format of gradients");
    let is_short =
        is_short || main_format.is_some_and(|format| matches!(format.trim(), "bf16" | "bfloat16" | "torch.bfloat16"));
    let is_long = keys.flag(&["accumulate-allreduce-grads-in-fp32"], "format of gradients").unwrap_or(false);
    settings.gradients = match (is_short, is_long) {
        (true, _) => Some(GradientFormat::Bf16),
        (false, true) => Some(GradientFormat::Fp32),
        (false, false) => None,
    };
    state_formats(keys, settings);
    let is_fused = keys.flag(&["gradient-accumulation-fusion"], "fused weight gradients");
    let is_off = keys.flag(&["no-gradient-accumulation-fusion"], "fused weight gradients");
    settings.fused_weight_gradients = is_off.map(|is_off| !is_off).or(is_fused);
    let bf16 = keys.flag(&["bf16"], "precision").unwrap_or(false);
    let fp16 = keys.flag(&["fp16"], "precision").unwrap_or(false);
    let fp8 = fp8(keys, settings)?;
    if bf16 && fp16 {
        return Err(refused("bf16", "fp16 is on too; a job uses one of them"));
    }
    settings.precision = Some(match (fp8, bf16 || fp16) {
        (true, _) => Precision::Fp8,
        (false, true) => Precision::Bf16,
        (false, false) => Precision::Fp32,
    });
    if !(bf16 || fp16 || fp8) {
        keys.assume("Neither bf16 nor fp16 is on. Weights, activations and products are fp32, with TF32 in products.");
    }
    if is_deepspeed && bf16 && deepspeed == Some(0) {
        keys.assume(unmodelled::BF16_OPTIMIZER);
        settings.zero = Some(1);
        settings.gradients = settings.gradients.or(Some(GradientFormat::Fp32));
    }
    if fp16 {
        keys.assume("fp16 is read as bf16: both have the same size and speed.");
        // Only bf16 accumulates gradients in fp32 by default.
        if settings.gradients.is_none() {
            settings.gradients = Some(GradientFormat::Bf16);
            keys.assume(SHORT_GRADIENTS);
        }
    }
    let is_local = megatron_attention::read(keys, settings, is_deepspeed);
    optimizer::read_offload(keys, settings)?;
    if let Some(name) = keys.text(&["optimizer"], "optimizer") {
        optimizer::set(&name, keys, settings);
    }
    settings.chunked_collectives = keys.flag(&["tp-comm-overlap", "tp-comm-overlap-ag"], "overlap");
    if is_local && settings.chunked_collectives == Some(true) {
        settings.chunked_collectives = None;
        keys.not_modelled(
            "Overlap of tensor-parallel communication is not applied, because the layers are not those of Transformer Engine.",
        );
    }
    let offloaded = keys.integer(&["cpu-offloading-num-layers"], "layers with offloaded activations")?;
    if keys.flag(&["cpu-offloading"], "offload").unwrap_or(offloaded.is_some_and(|layers| layers > 0)) {
        settings.offloaded_layers = offloaded;
        settings.activation_offload = 1.0;
    }
    Ok(())
}

/// Reports settings of products and weight gradients that a scenario does not have.
fn report_unmodelled(keys: &mut Keys) {
    if keys.text(&["fp4-format"], "precision").is_some() {
        keys.not_modelled("Products in fp4 are read in the precision without it, so the time is an upper bound.");
    }
    keys.text(&["fp4-recipe"], "recipe of fp4");
    keys.ignore(|key| key.starts_with("fp4-"));
    if keys.flag(&["delay-wgrad-compute"], "weight gradients").unwrap_or(false) {
        keys.not_modelled("Delayed weight gradients (delay-wgrad-compute) are read as immediate ones.");
    }
}

/// Reads whether the gathering of weights by a sharded optimizer overlaps with the forward. It has a switch of its own.
fn overlapped_weights(keys: &mut Keys, settings: &mut Settings) {
    let is_hidden = keys.flag(&["overlap-param-gather"], "overlap of the gathering of weights");
    let has_switch = settings.framework.is_none() && settings.zero.is_some_and(|stage| stage > 0);
    if !has_switch || keys.has("use-torch-fsdp2") {
        return;
    }
    // Megatron-LM refuses the switch without that of gradients.
    settings.overlapped_weights = Some(is_hidden == Some(true) && settings.overlapped_gradients == Some(true));
    if is_hidden.is_none() && settings.overlapped_gradients == Some(true) {
        keys.assume("overlap-param-gather is off, the default. Nothing hides the gathering of weights after a step.");
    }
}

/// Reads the formats of the precision-aware optimizer.
fn state_formats(keys: &mut Keys, settings: &mut Settings) {
    keys.flag(&["use-precision-aware-optimizer"], "format of the optimizer state");
    let mut bytes = |name: &str, setting: &'static str| match keys.text(&[name], setting) {
        Some(format) if format.contains("16") => 2,
        Some(format) if format.contains('8') => 1,
        _ => 4,
    };
    if bytes("main-params-dtype", "format of master weights") == 2 {
        settings.master_weights = MasterWeights::Half;
    }
    let moments = ["exp-avg-dtype", "exp-avg-sq-dtype"].map(|name| bytes(name, "format of the optimizer state"));
    settings.moments = match moments {
        [2, 2] => MomentFormat::Bf16,
        [1, 1] => MomentFormat::Fp8,
        [first, second] => {
            if first != second {
                keys.not_modelled("The moments have two formats. Both are read in fp32.");
            }
            MomentFormat::Fp32
        }
    };
}

fn modules_of_megatron() -> String {
    format!("the modules are {}", RecomputedModule::ALL.map(RecomputedModule::id).join(", "))
}

/// Returns the first word of a value, which the words of a script may follow.
fn first_word(value: &str) -> &str {
    value.split_whitespace().next().unwrap_or_default()
}

fn recompute(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let granularity = keys.text(&["recompute-granularity"], "recomputation");
    let method = keys.text(&["recompute-method", "activations-checkpoint-method"], "recomputation");
    let names = ["checkpoint-activations", "deepspeed-activation-checkpointing"];
    let is_full = names.iter().fold(false, |is_full, name| keys.flag(&[name], "recomputation").unwrap_or(is_full));
    let is_selective = keys.flag(&["recompute-activations"], "recomputation").unwrap_or(false);
    let names = ["recompute-num-layers", "activations-checkpoint-num-layers"];
    let layers = keys.count(&names, "layers with recomputation")?;
    if let Some(text) = keys.text(&["recompute-modules"], "recomputed modules") {
        let names = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for name in names.filter(|name| !name.is_empty() && *name != "null") {
            match RecomputedModule::from_id(name) {
                Some(module) => settings.recompute_modules.push(module),
                // Words after the argument may belong to the script.
                None if settings.recompute_modules.is_empty() => {
                    return Err(refused("recompute-modules", &modules_of_megatron()));
                }
                None => break,
            }
        }
    }
    settings.recompute = Some(match granularity.as_deref().map(first_word) {
        Some("full") => Recompute::Full,
        Some("selective") => Recompute::Selective,
        Some(other) if !matches!(other, "" | "none" | "null" | "None") => {
            return Err(refused("recompute-granularity", "the value is not full or selective"));
        }
        _ if is_full || method.is_some() => Recompute::Full,
        _ if is_selective => Recompute::Selective,
        _ => Recompute::None,
    });
    // "block" recomputes this number of layers per stage; "uniform" recomputes all layers, in
    // groups of this size.
    if settings.recompute == Some(Recompute::Full)
        && method.as_deref().is_some_and(|method| method.starts_with("block"))
    {
        settings.recompute_layers = layers;
    }
    Ok(())
}
