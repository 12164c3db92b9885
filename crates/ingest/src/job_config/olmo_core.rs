//! Configurations of OLMo-core, which its runs save as JSON. Batches are counted in tokens.

use planner::model::Model;
use planner::training::{AttentionKernel, ContextExchange, Fp8Recipe, GradientFormat, Precision, Recompute};

use super::keys::Keys;
use super::settings::{Batch, Settings, Sharding, within_node};
use super::{JobConfigError, model_config, optimizer};

const MODEL: &str = "model.";

/// Keys of the model with their names in `config.json`.
const SIZES: [(&str, &str); 14] = [
    ("d_model", "hidden_size"),
    ("n_layers", "num_hidden_layers"),
    ("vocab_size", "vocab_size"),
    ("block.attention.n_heads", "num_attention_heads"),
    ("block.attention.n_kv_heads", "num_key_value_heads"),
    ("block.attention.head_dim", "head_dim"),
    ("block.feed_forward.hidden_size", "intermediate_size"),
    ("block.sequence_mixer.n_heads", "num_attention_heads"),
    ("block.sequence_mixer.n_kv_heads", "num_key_value_heads"),
    ("block.sequence_mixer.head_dim", "head_dim"),
    ("block.feed_forward_moe.num_experts", "num_experts"),
    ("block.feed_forward_moe.hidden_size", "moe_intermediate_size"),
    ("block.feed_forward_moe.router.top_k", "num_experts_per_tok"),
    ("block.feed_forward_moe.shared_mlp.hidden_size", "shared_expert_intermediate_size"),
];

pub(super) fn is_job(keys: &Keys) -> bool {
    let is_batch = keys.has("train_module.rank_microbatch_size") || keys.has("data_loader.global_batch_size");
    keys.has("model.d_model") && is_batch
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let mut settings = Settings::from_model(model(keys)?);
    settings.has_layout = true;
    let names = ["dataset.sequence_length", "train_module.max_sequence_length"];
    let sequence = keys.count(&names, "sequence length")?;
    settings.sequence = sequence;
    let length = sequence.unwrap_or(1).max(1);
    let mut sequences = |name: &str, setting: &'static str| {
        let tokens = keys.count(&[name], setting)?;
        match tokens {
            Some(tokens) if sequence.is_some() && !tokens.is_multiple_of(length) => {
                let detail = format!("{tokens} tokens are no multiple of {length} tokens of a sequence");
                Err(JobConfigError::Value { key: name.to_owned(), detail })
            }
            tokens => Ok(tokens.map(|tokens| tokens / length)),
        }
    };
    let global = sequences("data_loader.global_batch_size", "global batch")?;
    settings.microbatch = sequences("train_module.rank_microbatch_size", "sequences of a microbatch")?;
    settings.batch = global.map_or(Batch::Unknown, Batch::Global);
    settings.batch_key = Some("data_loader.global_batch_size");
    let mut degree = |name: &str, setting| keys.count(&[&format!("train_module.{name}.degree")], setting);
    settings.tensor = degree("tp_config", "tensor parallelism")?;
    settings.context = degree("cp_config", "context parallelism")?;
    settings.pipeline = degree("pp_config", "pipeline parallelism")?;
    settings.expert = degree("ep_config", "expert parallelism")?;
    if keys.has_section("train_module.cp_config.ulysses.") {
        settings.context_exchange = ContextExchange::AllToAll;
    }
    sharding(keys, &mut settings)?;
    settings.nodes = keys.count(&["launch.num_nodes"], "nodes")?;
    settings.devices_per_node = keys.count(&["launch.num_gpus"], "devices of a node")?;
    recompute(keys, &mut settings);
    settings.is_compiled = keys.flag(&["train_module.compile_model"], "torch.compile").unwrap_or(false);
    if let Some(name) = keys.text(&["train_module.optim._CLASS_", "optim._CLASS_"], "optimizer") {
        optimizer::set(&name, keys, &mut settings);
    }
    let is_fused = ["block.attention.use_flash", "block.sequence_mixer.use_flash"];
    keys.ignore(|key| is_fused.iter().any(|name| key.strip_prefix(MODEL) == Some(name)));
    settings.attention = Some(AttentionKernel::Flash);
    settings.overlapped_gradients = Some(true);
    settings.fused_weight_gradients = Some(false);
    settings.sequence_parallel = Some(true);
    keys.ignore(is_without_effect);
    Ok(settings)
}

fn model(keys: &mut Keys) -> Result<Model, JobConfigError> {
    let mut section = keys.section(MODEL);
    let has_experts = section.has_section("block.feed_forward_moe.");
    let is_hybrid = has_experts && section.has("block.feed_forward.hidden_size");
    if is_hybrid {
        // The width of an expert is that of the layer.
        section.rename(|key| key.strip_prefix("block.feed_forward.").map(|name| format!("dense.{name}")));
        section.not_modelled("The dense MLP next to the experts of a layer is left out.");
    }
    if has_experts && !section.has("block.feed_forward_moe.router.top_k") {
        section.derive("block.feed_forward_moe.router.top_k", "1", "");
        section.assume("OLMo-core's default is one expert of a token.");
    }
    section.rename(|key| SIZES.iter().find(|(from, _)| *from == key).map(|(_, to)| (*to).to_owned()));
    section.relabel(MODEL);
    let mut module = model_config::language_model(&mut section, Some("olmo2"), (None, false), "OLMo-core model")?;
    module.tied_embeddings = false;
    section.ignore(|_| true);
    keys.replace_section(MODEL, section);
    Ok(Model { name: "OLMo-core model".to_owned(), modules: vec![module] })
}

fn sharding(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let kind = keys.text(&["train_module.dp_config.name"], "sharding").unwrap_or_default();
    if kind.is_empty() {
        keys.assume("Data parallelism is not configured. Every device holds all weights and optimizer state.");
    }
    settings.zero = Some(match kind.as_str() {
        "fsdp" | "hsdp" => 3,
        _ => 0,
    });
    let sharded = keys.count(&["train_module.dp_config.shard_degree"], "sharded data parallelism")?;
    let replicated = keys.count(&["train_module.dp_config.num_replicas"], "replicated data parallelism")?;
    settings.sharding = match (kind.as_str(), replicated, sharded) {
        ("hsdp", Some(copies), _) => Some(Sharding::Copies(copies)),
        ("hsdp", None, Some(shards)) => Some(Sharding::Shards(shards)),
        ("hsdp", None, None) => Some(within_node(keys)),
        _ => None,
    };
    settings.replicas = sharded.zip(replicated).map(|(sharded, replicated)| sharded.saturating_mul(replicated));
    let names = ["train_module.dp_config.param_dtype", "train_module.autocast_precision"];
    let format = keys.text(&names, "precision");
    settings.precision = Some(match format.as_deref() {
        Some(format) if format.contains("bfloat16") => Precision::Bf16,
        Some(_) => Precision::Fp32,
        None => {
            keys.assume("The precision is not stated. It is fp32, the default of OLMo-core.");
            Precision::Fp32
        }
    });
    let reduced = keys.text(&["train_module.dp_config.reduce_dtype"], "format of gradients");
    settings.gradients = reduced.is_some_and(|format| format.contains("bfloat16")).then_some(GradientFormat::Bf16);
    let has_config = keys.first_below("train_module.float8_config.").is_some();
    if keys.flag(&["train_module.float8_config.enabled"], "precision").unwrap_or(has_config) {
        settings.precision = Some(Precision::Fp8);
        let recipe = keys.text(&["train_module.float8_config.ao_recipe"], "recipe of fp8");
        let is_mx = keys.first_below("train_module.float8_config.ao_mx").is_some();
        settings.fp8.recipe = recipe.and_then(|name| Fp8Recipe::named(&name)).or(is_mx.then_some(Fp8Recipe::Mxfp8));
        let name = "train_module.float8_config.ao.enable_fsdp_float8_all_gather";
        settings.fp8.has_weights = keys.flag(&[name], "fp8 weights").unwrap_or(false);
    }
    Ok(())
}

fn recompute(keys: &mut Keys, settings: &mut Settings) {
    let mode = keys.text(&["train_module.ac_config.mode"], "recomputation").unwrap_or_default();
    settings.recompute = Some(match mode.as_str() {
        "full" => Recompute::Full,
        "" => Recompute::None,
        "selected_ops" => Recompute::Operators,
        _ => {
            keys.not_modelled("Recomputation of selected blocks and modules is read as recomputation of all layers.");
            Recompute::Full
        }
    });
}

/// True for data, checkpoint, log and learning rate keys.
fn is_without_effect(key: &str) -> bool {
    let starts = [
        "_CLASS_",
        "backend",
        "beaker",
        "data_loader.",
        "dataset.",
        "init_seed",
        "launch.",
        "load_",
        "optim.",
        "run_name",
        "scheduler.",
        "train_module.",
        "trainer.",
    ];
    starts.iter().any(|start| key.starts_with(start)) || key.ends_with("_CLASS_")
}
