//! Tests of job files of litgpt, torchtune and Levanter.

use super::*;

#[test]
fn litgpt_files_are_read() {
    let text = "checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3.1-8B\nout_dir: out\nprecision: bf16-true\nquantize: bnb.nf4\n\
                devices: 4\nnum_nodes: 1\nlora_r: 32\nlora_alpha: 16\nlora_query: true\nlora_mlp: true\ndata:\n  class_path: \
                litgpt.data.Alpaca2k\ntrain:\n  global_batch_size: 8\n  micro_batch_size: 2\n  max_seq_length: 512\n  \
                made_up: 3\neval:\n  interval: 100\noptimizer:\n  class_path: torch.optim.AdamW\n  init_args:\n    lr: 0.0002\n";
    let job = config(text);
    assert_eq!(job.format, ConfigFormat::Litgpt);
    let Scenario { model, layout, workload, training, cluster, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), cluster.devices()), ("llama3.1-8b", 4));
    assert_eq!((layout.microbatch, workload.global_batch, workload.context_length), (Some(2), 8, 512));
    assert_eq!((training.zero_stage(), training.recompute), (3, Recompute::Full));
    let adapters = model.modules[0].adapters.unwrap();
    assert_eq!((adapters.rank, adapters.mlp, adapters.base_bits), (32, true, Some(4)));
    // Pretraining.
    let pretraining = "model_name: Llama-3.2-1B\nout_dir: out\nprecision: bf16-mixed\ndata: TinyLlama\ntrain:\n  \
                       global_batch_size: 512\n  micro_batch_size: 4\n  max_seq_length: 2048\ndevices: 8\nnum_nodes: 4\n";
    let job = config(pretraining);
    let Scenario { training, cluster, workload, .. } = &job.scenario;
    assert_eq!((cluster.devices(), workload.global_batch, training.recompute), (32, 512, Recompute::None));
    assert!(training.execution.is_some() && training.shard_degree == Some(8));
    assert_eq!(job.unknown, Vec::<String>::new());
    // A model whose sizes the file states.
    let own = "model:\n  name: tiny-llama-1.1b\n  block_size: 2048\n  vocab_size: 32000\n  padded_vocab_size: 32000\n  n_layer: 22\n  \
               n_head: 32\n  n_embd: 2048\n  n_query_groups: 4\n  bias: false\n  norm_class_name: RMSNorm\n  mlp_class_name: LLaMAMLP\n  \
               intermediate_size: 5632\nout_dir: x\ntrain:\n  global_batch_size: 512\n  micro_batch_size: 4\ndevices: auto\n";
    let job = config(own);
    assert!((job.scenario.model.parameters() as f64 / 1.1e9 - 1.0).abs() < 0.01);
    assert_eq!(job.scenario.model.modules[0].kv_heads, 4);
    assert!(
        error("model_name: pythia-9b\nout_dir: x\ntrain:\n  micro_batch_size: 1\n").contains("add its config.json")
    );
}

#[test]
fn torchtune_files_are_read() {
    let text = "output_dir: /tmp/x\nmodel:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_70b\n  lora_attn_modules: ['q_proj', \
                'v_proj']\n  apply_lora_to_mlp: True\n  lora_rank: 16\n  lora_alpha: 32\ntokenizer:\n  _component_: \
                torchtune.models.llama3.llama3_tokenizer\n  path: x\n  max_seq_len: 8192\ndataset:\n  packed: True\nbatch_size: 2\n\
                gradient_accumulation_steps: 4\noptimizer:\n  _component_: bitsandbytes.optim.PagedAdamW8bit\n  lr: 2e-5\nloss:\n  \
                _component_: torchtune.modules.loss.CEWithChunkedOutputLoss\nenable_activation_checkpointing: True\n\
                compile: False\ndtype: bf16\nmade_up: secret\n";
    let job = config(text);
    assert_eq!(job.format, ConfigFormat::Torchtune);
    let Scenario { model, layout, workload, training, cluster, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), workload.context_length, layout.microbatch), ("llama3.1-70b", 8192, Some(2)));
    assert_eq!(workload.global_batch, 8 * cluster.devices());
    assert_eq!(
        (training.zero_stage(), training.recompute, training.optimizer),
        (3, Recompute::Full, Optimizer::Adam8Bit)
    );
    let adapters = model.modules[0].adapters.unwrap();
    assert_eq!((adapters.rank, adapters.mlp, adapters.base_bits), (16, true, None));
    assert_eq!(job.unknown, ["made_up"]);
    let full =
        text.replace("lora_llama3_1_70b", "llama3_1_70b") + "tensor_parallel_dim: 4\ndata_parallel_shard_dim: 8\n";
    let job = config(&full);
    assert!(job.scenario.model.modules[0].adapters.is_none());
    assert_eq!((job.scenario.layout.tensor, job.scenario.cluster.devices()), (Some(4), 32));
}

#[test]
fn levanter_files_are_read() {
    let text = "data:\n  tokenizer: EleutherAI/gpt-neox-20b\n  cache_dir: x\nmodel:\n  type: llama\n  seq_len: 4096\n  hidden_dim: 4096\n  \
                intermediate_dim: 11008\n  num_layers: 32\n  num_heads: 32\n  num_kv_heads: 8\ntrainer:\n  mp: p=f32,c=bfloat16\n  \
                train_batch_size: 1024\n  num_train_steps: 250000\n  tensor_parallel_axes: [\"mlp\", \"heads\"]\n  fsdp_axis: \
                \"embed\"\noptimizer:\n  learning_rate: 3e-4\n";
    let on = |text: &str, devices| {
        read_on("x.yaml", text.as_bytes(), Hardware { preset: None, devices: Some(devices) }).unwrap()
    };
    let job = on(text, 64);
    assert_eq!(job.format, ConfigFormat::Levanter);
    let Scenario { model, layout, workload, training, .. } = &job.scenario;
    let module = &model.modules[0];
    assert_eq!((module.layers, module.kv_heads, module.vocab, module.ffn), (32, 8, 50_277, 11_008));
    // The batch of a device is computed at once.
    assert_eq!((layout.microbatch, workload.global_batch, workload.context_length), (Some(16), 1024, 4096));
    assert_eq!((training.precision, training.recompute, training.zero_stage()), (Precision::Bf16, Recompute::Full, 3));
    assert_eq!(job.unknown, Vec::<String>::new());
    let other = text
        .replace("  mp: p=f32,c=bfloat16\n", "  mp: p=f32,c=f32\n  per_device_parallelism: 4\n  model_axis_size: 2\n")
        .replace("  num_layers: 32\n", "  num_layers: 32\n  gradient_checkpointing: false\n");
    let job = on(&other, 64);
    assert_eq!((job.scenario.layout.microbatch, job.scenario.layout.tensor), (Some(4), Some(2)));
    assert_eq!((job.scenario.training.precision, job.scenario.training.recompute), (Precision::Fp32, Recompute::None));
}

const OLMO_CORE: &str = r#"{"_CLASS_": "ExperimentConfig", "run_name": "x", "model": {"d_model": 4096, "vocab_size": 100352, "n_layers": 32,
    "block": {"name": "reordered_norm", "attention": {"n_heads": 32, "qk_norm": {"name": "rms"}}, "feed_forward": {"hidden_size": 11008,
    "bias": false}}, "lm_head": {"bias": false}}, "dataset": {"sequence_length": 4096}, "data_loader": {"global_batch_size": 4194304},
    "train_module": {"rank_microbatch_size": 8192, "max_sequence_length": 4096, "optim": {"_CLASS_": "SkipStepAdamWConfig", "lr": 0.0003},
    "compile_model": true, "dp_config": {"name": "hsdp", "param_dtype": "bfloat16", "reduce_dtype": "float32"},
    "ac_config": {"mode": "full"}, "tp_config": {"degree": 2}}, "trainer": {"max_duration": {"value": 1}}, "init_seed": 1}"#;

#[test]
fn saved_configurations_of_olmo_core_are_read() {
    let job = config(OLMO_CORE);
    assert_eq!(job.format, ConfigFormat::OlmoCore);
    let Scenario { model, layout, workload, training, .. } = &job.scenario;
    // The published count of OLMo 2 7B is 7.30 billion.
    assert!((model.parameters() as f64 / 7.3e9 - 1.0).abs() < 0.01, "{}", model.parameters());
    assert_eq!((layout.microbatch, workload.global_batch, workload.context_length), (Some(2), 1024, 4096));
    assert_eq!((layout.tensor, training.zero_stage(), training.recompute), (Some(2), 3, Recompute::Full));
    assert_eq!(training.precision, Precision::Bf16);
    assert!(training.execution.is_some() && training.shard_degree.is_none(), "one node has one copy");
    assert_eq!(job.unknown, Vec::<String>::new());
    let odd = OLMO_CORE.replace("8192,", "8193,");
    assert!(error(&odd).starts_with("train_module.rank_microbatch_size: 8193 tokens are no multiple of 4096"));
    let experts = OLMO_CORE.replace(
        "\"feed_forward\": {",
        "\"feed_forward_moe\": {\"num_experts\": 8, \"hidden_size\": 1024, \"router\": {\"top_k\": 2}, \"shared_mlp\": \
         {\"hidden_size\": 2048}}, \"other\": {",
    );
    let experts = experts.replace(
        "\"train_module\": {",
        "\"launch\": {\"num_nodes\": 8, \"num_gpus\": 8}, \"train_module\": {\"ep_config\": {\"degree\": 8}, \
         \"cp_config\": {\"degree\": 2},",
    );
    let job = config(&experts);
    let module = &job.scenario.model.modules[0];
    let moe = module.moe.unwrap();
    assert_eq!((moe.experts, moe.top_k, module.ffn, moe.shared_width), (8, 2, 1024, 2048));
    let Scenario { cluster, training, .. } = &job.scenario;
    assert_eq!((cluster.nodes, cluster.devices_per_node, training.expert_parallel), (8, 8, 8));
    assert_eq!(
        (training.context_parallel, training.shard_degree),
        (2, Some(4)),
        "a node has four devices of each TP rank"
    );
}
