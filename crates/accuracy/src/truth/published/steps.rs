//! Tables of step times.

use super::assumptions::{elastic_fabric, nothing, stated_overlap, tokens_of_step, torchao_recipe, torchtitan_notes};
use super::{Goal, Line, Listing, Published, Quantity};

/// Columns that group the errors of most tables.
const DEGREES: &[(&str, &str)] = &[("TP", "tp"), ("PP", "pp"), ("microbatch", "microbatch"), ("GPUs", "n_gpus")];

const GOAL: Goal = Goal { mean: 10.0, largest: None };

/// All tables of step times, in report order.
pub(super) const TABLES: &[Published] = &[
    Published {
        id: "ultrascale_h100",
        file: "ultrascale_h100",
        title: "Layouts of a 1B and an 8B model on 8 to 512 H100",
        source: "Ultra-Scale Playbook of Hugging Face's nanotron team, its table of benchmarks",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            "Steps of 256 sequences of 4,096 tokens; 1F1B; no recomputation; sequence parallelism where TP > 1; gradients in fp32.",
            "Framework nanotron. The network has the mean bandwidth that the same source measured for this number of nodes \
             (all-reduce of 256 MB), without the time of the ring steps, which the model adds itself.",
            "A stage ends with the layer at which the parameters reach its share, the output head included, as in nanotron.",
        ],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[("precision", "published_precision"), ("tied_embeddings", "tied_word_vectors")],
        words: &[],
        constant: &[],
        assume: elastic_fabric,
        excluded: ultrascale,
        facets: &[
            ("model", "model"),
            ("TP", "tp"),
            ("PP", "pp"),
            ("DP", "dp"),
            ("microbatch", "microbatch"),
            ("ZeRO", "zero"),
            ("GPUs", "n_gpus"),
        ],
        listing: Listing::Groups,
    },
    Published {
        id: "torchtitan",
        file: "torchtitan",
        title: "Llama 2 and 3, 8B to 405B, on H100, H200 and A100",
        source: "torchtitan: paper (arXiv 2410.06511), performance documents and release notes",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            "FSDP of all weights. Most H100 runs used the variant with 96 GB and 500 W.",
            "Recomputation of every second layer (\"sellayer\"): half of the layers.",
            "Context parallelism as in 2024: a ring over consecutive parts of the sequence, without balance.",
            "Asynchronous tensor parallelism (\"asyncTP\"): half of the collectives run in chunks next to their products. The share \
             follows from six pairs of rows with and without it, whose asynchronous rows do not count.",
        ],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[
            ("recompute", "activation_checkpointing"),
            ("precision", "published_precision"),
            ("execution", "compiled"),
        ],
        words: TORCHTITAN,
        constant: &[("fsdp", "true"), ("framework", "torchtitan"), ("cp_balanced", "false")],
        assume: torchtitan_notes,
        excluded: asynchronous_pairs,
        facets: &[
            ("GPU", "gpu"),
            ("model", "preset"),
            ("precision", "published_precision"),
            ("recomputation", "activation_checkpointing"),
            ("TP", "tp"),
            ("CP", "cp"),
            ("GPUs", "n_gpus"),
        ],
        listing: Listing::Rows,
    },
    Published {
        id: "llm_foundry_a100",
        file: "llm_foundry_a100",
        title: "MPT, 125M to 70B, with FSDP on A100",
        source: "llm-foundry, training benchmarks of its repository",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            "FSDP of all weights; the Triton attention kernel, at the rate of FlashAttention 1; no dropout.",
            "MPT has no biases and no position table. `planscope estimate` has no such columns: both are small and included.",
        ],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[("precision", "published_precision")],
        words: &[("amp_bf16", "bf16")],
        constant: &[("fsdp", "true"), ("attention", "flash1"), ("dropout", "false")],
        assume: nothing,
        excluded: |_| None,
        facets: &[
            ("GPU", "gpu"),
            ("hidden size", "hidden"),
            ("sequence length", "seq_len"),
            ("recomputation", "recompute"),
            ("microbatch", "microbatch"),
            ("GPUs", "n_gpus"),
        ],
        listing: Listing::Groups,
    },
    Published {
        id: "bloom_prequel_half",
        file: "bloom_prequel_half",
        title: "Layouts of GPT models of about 200B on up to 384 A100",
        source: "BigScience, chronicles of the runs before BLOOM",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            "Megatron-DeepSpeed with ZeRO 1, full recomputation, attention in separate kernels, dropout; fp16 is predicted as bf16.",
            "Nodes of Jean Zay: the model card of BLOOM names NVLink with 4 connections between devices, read as 100 GB/s per device, and 4 Omni-Path \
             links per node, 6.25 GB/s per device.",
        ],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[],
        words: &[],
        constant: &[("framework", "megatron_deepspeed"), ("link_gb_per_s", "100"), ("network_gb_per_s", "6.25")],
        assume: nothing,
        excluded: |_| None,
        facets: DEGREES,
        listing: Listing::Groups,
    },
    Published {
        id: "internevo_a100",
        file: "internevo_a100",
        title: "Scaling of InternLM 7B to 1,024 A100",
        source: "InternEvo, performance page of its documentation",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            "6.25 GB/s of network per device, as published; ZeRO 1, in 14 rows over 8 or 4 devices (hybrid sharding); gradients \
             overlapped.",
            "FlashAttention 1: InternLM published the same table, and its installation guide requires version 1.0.5.",
        ],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[
            ("precision", "published_precision"),
            ("network_gb_per_s", "network_gb_per_s_per_gpu"),
            ("shard_degree", "optimizer_shard_group"),
        ],
        words: &[],
        constant: &[("framework", "internevo"), ("attention", "flash1")],
        assume: nothing,
        excluded: |_| None,
        facets: &[("TP", "tp"), ("GPUs", "n_gpus")],
        listing: Listing::Rows,
    },
    Published {
        id: "nemo_long_sequence",
        file: "nemo_long_sequence",
        title: "Llama 2 7B with 4,096 to 1,048,576 tokens on H100",
        source: "NeMo, performance page on long sequences",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            "The page gives TFLOP/s per device and not whether all scores of the causal attention count. The time assumes \
             that all count: with half of them, attention at 1,048,576 tokens would exceed the rate of any published \
             kernel.",
            "This choice changes long sequences up to a factor of 2, so the set does not inform intervals.",
            "Recomputation is not published: none.",
        ],
        quantity: Quantity::StepTime("measured_s_if_full_attention_counted"),
        renamed: &[("precision", "published_precision"), ("preset", "model")],
        words: &[],
        constant: &[],
        assume: nothing,
        excluded: |line| line.lacks("tp").then_some("the layout is not published"),
        facets: &[("TP", "tp"), ("CP", "cp"), ("GPUs", "n_gpus")],
        listing: Listing::Rows,
    },
    Published {
        id: "mlperf_training",
        file: "mlperf_training",
        title: "Pretraining of Llama 3.1 8B and 405B in MLPerf",
        source: "MLPerf Training 4.0 to 5.1, logs of the results",
        goal: GOAL,
        peer: "none",
        assumptions: &["Recomputation is not published: none."],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[("precision", "published_precision")],
        words: MLPERF,
        constant: &[("recompute", "none")],
        assume: stated_overlap,
        excluded: mlperf,
        facets: &[("GPU", "gpu"), ("model", "preset"), ("GPUs", "n_gpus")],
        listing: Listing::Rows,
    },
    Published {
        id: "mlperf_other_devices",
        file: "mlperf_training",
        title: "Pretraining of Llama 3.1 in MLPerf on devices without timings",
        source: "MLPerf Training 4.0 to 5.1, logs of the results",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            "Recomputation is not published: none.",
            "The rates of these devices follow from their data sheets and the curves of another device.",
        ],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[("precision", "published_precision")],
        words: MLPERF,
        constant: &[("recompute", "none")],
        assume: stated_overlap,
        excluded: mlperf_other_devices,
        facets: &[("GPU", "gpu"), ("model", "preset"), ("GPUs", "n_gpus")],
        listing: Listing::Rows,
    },
    Published {
        id: "mlperf_lora",
        file: "mlperf_training",
        title: "Adapters of Llama 2 70B in MLPerf",
        source: "MLPerf Training 4.0 to 5.1, logs of the results",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            "Rank 16, as published. The adapted layers (those of attention) and base weights in fp8 are assumed.",
            "Recomputation is not published: none.",
        ],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[("precision", "published_precision")],
        words: MLPERF,
        constant: &[("recompute", "none"), ("lora_rank", "16"), ("lora_targets", "attention"), ("fp8_weights", "true")],
        assume: stated_overlap,
        excluded: mlperf_lora,
        facets: &[("GPU", "gpu"), ("TP", "tp"), ("CP", "cp"), ("GPUs", "n_gpus")],
        listing: Listing::Rows,
    },
    Published {
        id: "tpu_maxtext",
        file: "tpu_maxtext",
        title: "MaxText on 8 to 1,024 TPU v6e",
        source: "AI-Hypercomputer/tpu-recipes, logs of its Trillium recipes",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            "Sharding and recomputation are not in the table. MaxText's defaults: weights sharded over all chips, whole layers \
             recomputed. The batch follows from the tokens of a step.",
            "The rates of the TPU v6e follow from its data sheet and the generic curves.",
        ],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[("precision", "published_precision"), ("preset", "model")],
        words: &[
            ("TPU-v6e", "tpu-v6e"),
            ("GPT3-175B", "gpt-3-175b"),
            ("Gemma3-12B", "gemma-3-12b"),
            ("Llama2-70B", "llama-2-70b"),
            ("Llama3.1-8B", "llama-3-8b"),
            ("Llama3.1-70B", "llama-3-70b"),
            ("Llama3.1-405B", "llama-3-405b"),
            ("Mistral-7B", "mistral-7b"),
            ("Mixtral-8x7B", "mixtral-8x7b"),
        ],
        constant: &[("recompute", "full"), ("zero", "3"), ("framework", "MaxText"), ("dropout", "false")],
        assume: tokens_of_step,
        excluded: maxtext,
        facets: &[("model", "model"), ("GPUs", "n_gpus")],
        listing: Listing::Rows,
    },
    Published {
        id: "torchao_fp8",
        file: "torchao_fp8",
        title: "fp8 recipes of Llama 3 8B on H100",
        source: "torchao, training page of its documentation",
        goal: GOAL,
        peer: "none",
        assumptions: &["torchtitan, compiled, with recomputation by operator. The recipe of fp8 as published."],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[("precision", "recipe")],
        words: &[
            ("none (bfloat16)", "bf16"),
            ("tensorwise with float8 all-gather", "fp8"),
            ("rowwise with bfloat16 all-gather", "fp8"),
            ("selective", "operators"),
        ],
        constant: &[("framework", "torchtitan"), ("execution", "compiled")],
        assume: torchao_recipe,
        excluded: |_| None,
        facets: &[("recipe", "recipe")],
        listing: Listing::Rows,
    },
    Published {
        id: "automodel_h100",
        file: "automodel_h100",
        title: "Mixtures of experts in NeMo AutoModel on H100",
        source: "NeMo AutoModel, performance summary of its documentation",
        goal: GOAL,
        peer: "none",
        assumptions: &["A balanced router; DeepEP; FSDP of all weights; recomputation is not published: none."],
        quantity: Quantity::StepTime("measured_s"),
        renamed: &[("precision", "published_precision"), ("preset", "model")],
        words: &[("Qwen3 MoE 30B", "qwen3-30b-a3b"), ("DeepSeek V3 671B", "deepseek-v3")],
        constant: &[
            ("recompute", "none"),
            ("fsdp", "true"),
            ("attention", "cudnn"),
            ("dp", ""),
            ("head_size", ""),
            ("dispatch_by_node", "true"),
        ],
        assume: nothing,
        excluded: automodel,
        facets: &[],
        listing: Listing::Rows,
    },
];

/// Words of torchtitan's recomputation and precision.
pub(super) const TORCHTITAN: &[(&str, &str)] = &[("selop", "operators"), ("sellayer", "none"), ("fp8row", "fp8")];

pub(super) fn ultrascale(line: Line<'_>) -> Option<&'static str> {
    match line.text("flag") {
        "" => None,
        "stall" => Some("below a quarter of the median rate of its group"),
        "pipeline with TP" => Some("pipeline with TP above 2, slow in nanotron"),
        _ => Some("TP across nodes"),
    }
}

/// Rows whose gain over the row without asynchronous tensor parallelism gives the overlap (docs/models.md, section 3).
fn asynchronous_pairs(line: Line<'_>) -> Option<&'static str> {
    const USED: [&str; 6] = [
        "T4 70B 2D asyncTP",
        "async 70B bf16 asyncTP",
        "async 70B fp8 asyncTP",
        "async 8B bf16 asyncTP",
        "async 8B fp8 asyncTP",
        "405B 128 H100 fp8 asyncTP",
    ];
    USED.contains(&line.text("id")).then_some("used for the overlap of asynchronous tensor parallelism")
}

/// Words of MLPerf.
const MLPERF: &[(&str, &str)] =
    &[("llama-3.1-8b", "llama-3-8b"), ("llama-3.1-405b", "llama-3-405b"), ("GB200", "gb200-nvl72"), ("null", "")];

const MEASURED: [&str; 3] = ["H100-SXM", "H200-SXM", "B200-SXM"];

fn mlperf(line: Line<'_>) -> Option<&'static str> {
    if line.text("task") != "pretrain" {
        return Some("LoRA or images");
    }
    if line.lacks("tp") || line.lacks("microbatch") {
        return Some("the layout is not published");
    }
    if !MEASURED.contains(&line.text("gpu")) {
        return Some("the device is not measured");
    }
    precision_of_mlperf(line)
}

fn mlperf_other_devices(line: Line<'_>) -> Option<&'static str> {
    match mlperf(line) {
        Some("the device is not measured") => precision_of_mlperf(line),
        Some(reason) => Some(reason),
        None => Some("the device is measured"),
    }
}

fn precision_of_mlperf(line: Line<'_>) -> Option<&'static str> {
    (line.text("published_precision") != "fp8").then_some("precision not published or not supported")
}

fn mlperf_lora(line: Line<'_>) -> Option<&'static str> {
    if !line.text("task").starts_with("lora") {
        return Some("not LoRA");
    }
    if line.lacks("tp") || line.lacks("microbatch") {
        return Some("the layout is not published");
    }
    if line.text("gpu") == "H200-NVL" {
        return Some("no preset of the device");
    }
    let count = |column: &str| line.text(column).parse::<u32>().unwrap_or(1);
    if count("n_gpus") > count("tp") * count("pp") * count("cp") * count("global_batch") {
        return Some("fewer sequences than replicas");
    }
    precision_of_mlperf(line)
}

fn maxtext(line: Line<'_>) -> Option<&'static str> {
    if line.text("published_precision") != "bf16" {
        return Some("the device has no fp8");
    }
    (line.lacks("seq_len") && line.text("model") != "GPT3-175B").then_some("the sequence length is not published")
}

fn automodel(line: Line<'_>) -> Option<&'static str> {
    match line.text("model") {
        "Qwen3 MoE 30B" | "DeepSeek V3 671B" => None,
        "Llama3 8B" | "Llama3 70B" | "Llama3 70B 2-node" => Some("LoRA; recomputation and targets are not published"),
        "GPT-OSS 120B" => Some("expert parallelism is not published"),
        _ => Some("sizes of the model are not published"),
    }
}
