//! `MaxText` job and model files (YAML).
//!
//! A degree is the product of its part within a slice or node (`ici_`) and between them (`dcn_`); -1 takes the rest.
//! `per_device_batch_size` counts sequences of a device, over all devices.

use planner::model::Model;
use planner::scenario::PlannerKind;
use planner::training::{AttentionKernel, Fp8Recipe, Precision, Recompute};

use super::keys::Keys;
use super::settings::{Batch, NODE, Settings, Sharding};
use super::{JobConfigError, model_config, optimizer, unmodelled};

/// Sizes with their keys in `config.json`. They are multiplied by `global_parameter_scale`, which is 1 by default.
const SIZES: [(&str, &str); 9] = [
    ("base_emb_dim", "hidden_size"),
    ("base_num_query_heads", "num_attention_heads"),
    ("base_num_kv_heads", "num_key_value_heads"),
    ("base_mlp_dim", "intermediate_size"),
    ("base_moe_mlp_dim", "moe_intermediate_size"),
    ("base_num_decoder_layers", "num_hidden_layers"),
    ("logits_via_embedding", "tie_word_embeddings"),
    ("shared_experts", "n_shared_experts"),
    ("first_num_dense_layers", "first_k_dense_replace"),
];

pub(super) fn is_configuration(keys: &Keys) -> bool {
    let names = ["per_device_batch_size", "max_target_length", "remat_policy", "base_config"];
    keys.has("base_emb_dim") || (keys.has("model_name") && names.iter().any(|name| keys.has(name)))
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let mut settings = Settings::default();
    let name = keys.text(&["model_name"], "model");
    if keys.has("base_emb_dim") {
        settings.model = Some(model(keys)?);
    } else {
        settings.model_name = name.map(|name| ("model_name", name));
    }
    settings.has_layout = true;
    let is_job = ["per_device_batch_size", "max_target_length"].iter().any(|name| keys.has(name));
    let sequence = keys.count(&["max_target_length"], "sequence length")?;
    settings.sequence = sequence.or_else(|| {
        is_job.then(|| {
            keys.assume("MaxText's default sequence length is 2048 tokens.");
            2048
        })
    });
    degrees(keys, &mut settings)?;
    devices(keys, &mut settings)?;
    schedule(keys, &mut settings)?;
    batch(keys, &mut settings)?;
    memory(keys, &mut settings);
    experts(keys);
    keys.ignore(is_without_effect);
    Ok(settings)
}

fn model(keys: &mut Keys) -> Result<Model, JobConfigError> {
    if keys
        .number(&["global_parameter_scale"], "scale of the sizes")?
        .is_some_and(|scale| scale.total_cmp(&1.0).is_ne())
    {
        let detail = "sizes with a scale other than 1 are not read".to_owned();
        return Err(JobConfigError::Value { key: "global_parameter_scale".to_owned(), detail });
    }
    keys.rename(|key| SIZES.into_iter().find(|(from, _)| *from == key).map(|(_, to)| to.to_owned()));
    let activations = keys.text(&["mlp_activations"], "gated MLP").unwrap_or_default();
    let is_gated = activations.is_empty() || activations.contains(',');
    let is_latent = keys.text(&["attention_type"], "attention").is_some_and(|kind| kind == "mla");
    if !is_latent {
        keys.ignore(|key| key.ends_with("lora_rank"));
        keys.rename(|key| key.ends_with("lora_rank").then(|| format!("unused_{key}")));
    }
    let mut module = model_config::language_model(keys, Some("llama"), (None, false), "MaxText model")?;
    module.gated = is_gated;
    unmodelled::report(keys);
    Ok(Model { name: "MaxText model".to_owned(), modules: vec![module] })
}

/// Reads a degree; `None` if it is the rest of the devices.
fn degree(keys: &mut Keys, names: &[&str], default: Option<u32>) -> Result<Option<u32>, JobConfigError> {
    let mut product = 1_u32;
    let mut is_rest = false;
    let mut is_stated = false;
    for name in names {
        for side in ["ici", "dcn"] {
            let key = format!("{side}_{name}_parallelism");
            is_stated |= keys.has(&key);
            is_rest |= keys.peek(&key).is_some_and(|value| value.trim() == "-1");
            let part = keys.count(&[&key], "parallel degree")?;
            product = product.saturating_mul(part.unwrap_or(1));
        }
    }
    Ok(if is_stated { (!is_rest).then_some(product) } else { default })
}

/// Degrees of a replica within a node, which can take the rest of its devices.
const WITHIN_NODE: [&str; 7] =
    ["tensor", "tensor_transpose", "tensor_sequence", "pipeline", "context", "sequence", "expert"];

/// Replaces -1 of a degree within a node by the rest of its devices. Those of sharding and replicas follow from the number
/// of devices.
fn fill_node(keys: &mut Keys) {
    let key = |name: &str| format!("ici_{name}_parallelism");
    let value = |name: &str| keys.peek(&key(name)).and_then(|value| value.trim().parse::<i64>().ok());
    let Some(open) = WITHIN_NODE.into_iter().find(|name| value(name) == Some(-1)) else { return };
    let others = WITHIN_NODE.into_iter().chain(["fsdp", "fsdp_transpose", "data"]).filter(|name| *name != open);
    let taken: i64 = others.filter_map(value).filter(|&degree| degree > 0).product();
    let rest = (i64::from(NODE) / taken.max(1)).max(1);
    keys.assume(format!(
        "{} is -1: it takes the rest of the devices of a node or slice. With {NODE} devices it is {rest}.",
        keys.file_name(&key(open))
    ));
    keys.replace_values(|_, other, _| (other == key(open)).then(|| rest.to_string()));
}

/// Reports products of experts that differ from those of a scenario.
fn experts(keys: &mut Keys) {
    let factor = keys.number(&["capacity_factor"], "capacity of experts").ok().flatten().unwrap_or(-1.0);
    let is_sparse = keys.flag(&["sparse_matmul"], "products of experts").unwrap_or(true);
    if factor > 0.0 {
        keys.not_modelled(
            "The capacity of the experts is not applied: no token is dropped and no expert is padded. With a factor above 1, memory \
             and time of the experts are lower bounds, by that factor.",
        );
    } else if !is_sparse {
        keys.not_modelled(
            "sparse_matmul is off and capacity_factor is not stated: all experts read all tokens. Only those of a token are \
             counted, so time and memory are lower bounds.",
        );
    }
}

fn degrees(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    fill_node(keys);
    let tensor = degree(keys, &["tensor", "tensor_transpose", "tensor_sequence"], Some(1))?;
    settings.pipeline = degree(keys, &["pipeline"], Some(1))?;
    settings.context = degree(keys, &["context", "sequence"], Some(1))?;
    settings.expert = degree(keys, &["expert"], Some(1))?;
    settings.tensor = tensor;
    let is_default = !["ici_fsdp_parallelism", "dcn_fsdp_parallelism", "ici_data_parallelism", "dcn_data_parallelism"]
        .iter()
        .any(|name| keys.has(name));
    if is_default {
        keys.assume("MaxText's default shards over all devices (FSDP).");
    }
    let sharded = degree(keys, &["fsdp", "fsdp_transpose"], if is_default { None } else { Some(1) })?;
    let replicated = degree(keys, &["data"], Some(1))?;
    settings.zero = Some(if sharded == Some(1) { 0 } else { 3 });
    settings.sharding = replicated.map(Sharding::Copies).or(sharded.map(Sharding::Shards));
    // Expert parallelism has devices of its own, which are data-parallel elsewhere.
    settings.replicas = sharded
        .and_then(|sharded| Some(sharded.saturating_mul(replicated?).saturating_mul(settings.expert.unwrap_or(1))));
    Ok(())
}

/// Device names in a topology, with their presets, and the cores of a device. TPU v5p topologies count cores.
const TOPOLOGIES: [(&str, &str, u32); 5] = [
    ("v5p-", "tpu-v5p", 2),
    ("v6e-", "tpu-v6e", 1),
    ("a3-megagpu-", "h100", 1),
    ("a3-ultragpu-", "h200", 1),
    ("a3-highgpu-", "h100", 1),
];

/// Reads the device and the topology for ahead-of-time compilation: `v5p-512` has 256 devices.
fn devices(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let topology = keys.text(&["compile_topology"], "devices").map(|name| name.trim().to_lowercase());
    let slices = keys.count(&["compile_topology_num_slices", "num_slices"], "devices")?.unwrap_or(1);
    let hardware = keys.text(&["hardware"], "type of devices").map(|name| name.trim().to_lowercase());
    let known = topology.as_deref().and_then(|name| TOPOLOGIES.into_iter().find(|(start, ..)| name.starts_with(start)));
    if topology.as_deref() == Some("a3") {
        (settings.device, settings.nodes) = (Some("h100"), Some(slices));
    } else if let Some((start, preset, cores)) = known {
        settings.device = Some(preset);
        let count = topology.as_deref().and_then(|name| name.strip_prefix(start)?.parse::<u32>().ok());
        if let Some(count) = count.filter(|&count| count > 0) {
            settings.devices = Some((count / cores).max(1).saturating_mul(slices));
        }
    } else if hardware.as_deref() == Some("tpu") {
        keys.not_modelled("The type of the TPU is not stated. Choose the device.");
    } else if let Some(name) = topology.filter(|name| !name.is_empty()) {
        let shown: String =
            name.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').take(20).collect();
        keys.not_modelled(format!(
            "The topology {shown} has no preset. Choose a device with similar rates and memory."
        ));
    }
    Ok(())
}

/// Reads the pipeline: all forwards run before the backwards. With several repeats, a microbatch visits the stages as
/// often.
fn schedule(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let repeats = keys.count(&["num_pipeline_repeats"], "model chunks of a rank")?;
    let of_stage = keys.count(&["num_layers_per_pipeline_stage"], "layers of a model chunk")?.unwrap_or(1);
    let Some(stages) = settings.pipeline.filter(|&stages| stages > 1) else { return Ok(()) };
    let layers = settings.model.as_ref().map(Model::layers);
    let default = layers.map(|layers| (layers / stages.saturating_mul(of_stage)).max(1));
    let chunks = repeats.or(default).unwrap_or_else(|| {
        keys.assume("The repeats of the pipeline are not stated. They are read as 1.");
        1
    });
    settings.chunks = Some(chunks);
    settings.schedule = Some(if chunks > 1 { PlannerKind::LoopedBfs } else { PlannerKind::Gpipe });
    Ok(())
}

fn batch(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let Some(of_device) = keys.number(&["per_device_batch_size"], "sequences of a device")? else { return Ok(()) };
    let accumulation = keys.count(&["gradient_accumulation_steps"], "accumulation steps")?.unwrap_or(1);
    let unit = settings.devices_per_replica();
    let of_replica = of_device * f64::from(unit);
    if of_replica.fract() != 0.0 || !(1.0..=1e6).contains(&of_replica) {
        let detail = format!("{of_device} x {unit} devices of a replica is no whole number of sequences");
        return Err(JobConfigError::Value { key: "per_device_batch_size".to_owned(), detail });
    }
    let of_replica = of_replica as u32;
    // The default is a microbatch for each stage.
    let stated = keys.count(&["num_pipeline_microbatches"], "microbatches")?;
    let microbatches = stated.or(settings.pipeline).unwrap_or(1).max(1);
    settings.microbatch = Some((of_replica / microbatches).max(1));
    settings.batch = Batch::Replica(of_replica.saturating_mul(accumulation));
    Ok(())
}

fn memory(keys: &mut Keys, settings: &mut Settings) {
    let policy = keys.text(&["remat_policy"], "recomputation").unwrap_or_else(|| {
        keys.assume("MaxText's default remat policy is full.");
        "full".to_owned()
    });
    settings.recompute = Some(match policy.as_str() {
        "full" => Recompute::Full,
        "none" => Recompute::None,
        "custom" => {
            keys.not_modelled(
                "A custom remat policy is read as full recomputation. Tensors that it stores are not counted.",
            );
            Recompute::Full
        }
        "minimal_offloaded" => {
            settings.activation_offload = 1.0;
            Recompute::Operators
        }
        // All products are stored, or those outside of the MLP.
        name if name.starts_with("minimal") || name.starts_with("save_dot") => {
            keys.not_modelled(
                "A remat policy that stores products is read as recomputation of every second product and of \
                 memory-bound operators.",
            );
            Recompute::Operators
        }
        // These store the results of a few products, or send them to the host, and repeat the others.
        _ if policy.starts_with("save_") || policy.contains("offloaded") => {
            keys.not_modelled(
                "A remat policy that stores some products is read as full recomputation. The stored products are not \
                 counted, so that more memory and less time are needed.",
            );
            Recompute::Full
        }
        _ => {
            keys.not_modelled("A remat policy between full and none is read as recomputation of the attention core.");
            Recompute::Selective
        }
    });
    if keys.text(&["weight_dtype"], "format of weights").is_some_and(|name| name == "bfloat16") {
        settings.set_pure_bf16();
    }
    let quantization = keys.text(&["quantization"], "precision").unwrap_or_default();
    settings.fp8.recipe = Fp8Recipe::named(&quantization);
    let is_fp32 = keys.text(&["dtype"], "precision").is_some_and(|name| name == "float32");
    settings.precision = Some(match (quantization.contains("fp8"), is_fp32) {
        (true, _) => Precision::Fp8,
        (false, true) => Precision::Fp32,
        (false, false) => Precision::Bf16,
    });
    if quantization.contains("int") {
        keys.not_modelled("Products in int8 or int4 are read as bf16.");
    }
    let kernel = keys.text(&["attention"], "attention kernel");
    settings.attention = kernel.filter(|name| name != "autoselected").map(|name| match name.as_str() {
        "dot_product" => AttentionKernel::Unfused,
        _ => AttentionKernel::Flash,
    });
    if let Some(name) = keys.text(&["opt_type"], "optimizer") {
        optimizer::set(&name, keys, settings);
    }
    settings.overlapped_gradients = Some(true);
    settings.fused_weight_gradients = Some(false);
    settings.sequence_parallel = Some(true);
}

/// True for data, checkpoint, log, learning rate and numerics keys.
fn is_without_effect(key: &str) -> bool {
    let starts = [
        "unused_",
        "base_config",
        "base_output",
        "run_name",
        "steps",
        "enable_",
        "async_",
        "use_iota",
        "scan_layers",
        "dataset",
        "logits_dot",
        "max_segments",
        "reuse_",
        "learning_rate",
        "monitor",
        "save_config",
        "profiler",
        "hf_",
        "tokenizer",
        "normalization",
        "rope_",
        "beta_fast",
        "mscale",
        "original_max",
        "max_position",
        "routed_",
        "decoder_block",
        "logical_axis",
        "data_",
        "log_",
        "checkpoint",
        "warmup",
        "cosine",
        "adam_",
        "gradient_clip",
        "packing",
        "eval",
        "dropout",
        "load_",
        "jax_",
        "xla",
        "use_",
        "norm_topk",
        "gcs",
        "skip_",
        "vocab_",
        "float32_",
        "megablox",
        "attn_logits",
        "final_logits",
        "compile",
        "shardy",
        "head_dim",
    ];
    starts.iter().any(|start| key.starts_with(start))
}
