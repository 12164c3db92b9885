//! Tests with realistic tables and for each column.

mod columns;
mod contradictions;
mod effects;
mod names;
mod stated_defaults;

use planner::estimate::{Configuration, estimate};
use planner::model::{Bias, Mask, Moe, Norm};
use planner::training::{
    AttentionKernel, ContextExchange, Execution, Framework, GradientFormat, MasterWeights, MomentFormat, Optimizer,
    Precision, Recompute,
};
use proptest::prelude::*;

use super::{ANSWERS, COLUMNS, Column, ConfigurationsError, Summary, Table, read, write};

fn row(table: &str) -> Result<Configuration, String> {
    let rows: Vec<_> = read(table.as_bytes()).unwrap().rows().collect();
    let [row] = rows.as_slice() else { panic!("{table}: {} rows", rows.len()) };
    row.configuration.clone().map_err(|rejection| rejection.to_string())
}

fn with(columns: &[(&str, &str)]) -> Result<Configuration, String> {
    let (names, cells): (Vec<_>, Vec<_>) = columns.iter().copied().unzip();
    row(&format!("{}\n{}\n", names.join(","), cells.join(",")))
}

fn answered(table: &str) -> (String, Summary) {
    let mut out = Vec::new();
    let summary = write(&read(table.as_bytes()).unwrap(), estimate, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), summary)
}

#[test]
fn the_documentation_lists_every_column() {
    let documentation = include_str!("../../../../docs/estimate.md");
    for Column { name, holds, default } in COLUMNS {
        let line = format!("| `{name}` | {holds} | {default} |\n");
        assert!(documentation.contains(&line), "{line}");
    }
}

#[test]
fn missing_values_have_defaults() {
    let configuration = row("tp,notes\n,x\n").unwrap();
    let module = &configuration.model.modules[0];
    assert_eq!((module.layers, module.hidden, module.heads, module.kv_heads), (32, 4096, 32, 32));
    assert_eq!((module.ffn, module.vocab, module.gated, module.learned_positions), (16_384, 51_200, false, 2048));
    assert_eq!((module.norm, module.bias, module.mask), (Norm::Layer, Bias::All, Mask::Causal));
    assert!(module.tied_embeddings && !module.dropout && module.moe.is_none());
    assert_eq!(
        (configuration.cluster.name.as_str(), configuration.cluster.nodes, configuration.cluster.devices_per_node),
        ("A100-80GB", 1, 1)
    );
    assert_eq!(
        (
            configuration.layout.tensor,
            configuration.layout.pipeline,
            configuration.layout.data,
            configuration.layout.chunks
        ),
        (1, 1, 1, 1)
    );
    assert_eq!(
        (
            configuration.layout.microbatch,
            configuration.global_batch,
            configuration.sequence_length,
            configuration.items
        ),
        (1, 4, 2048, 0)
    );
    let training = &configuration.training;
    assert_eq!((training.zero_stage(), training.distributed_optimizer, training.sequence_parallel), (0, false, false));
    assert_eq!((training.recompute, training.attention), (Recompute::None, AttentionKernel::Flash));
    assert_eq!((training.precision, training.context_parallel, training.expert_parallel), (Precision::Bf16, 1, 1));
    assert!(training.data_overlap.abs() < 1e-12);
}

#[test]
fn degrees_follow_from_devices_and_devices_from_degrees() {
    let derived = |columns: &[(&str, &str)]| {
        let configuration = with(columns).unwrap();
        (
            configuration.layout.data,
            configuration.cluster.nodes,
            configuration.cluster.devices_per_node,
            configuration.global_batch,
        )
    };
    // 64 / (4 x 2) = 8 replicas, each with 4 x 2 microbatches of 3 sequences.
    assert_eq!(derived(&[("n_gpus", "64"), ("tp", "4"), ("pp", "2"), ("microbatch", "3")]), (8, 8, 8, 192));
    assert_eq!(derived(&[("tp", "4"), ("cp", "2"), ("dp", "4")]), (4, 4, 8, 16));
    assert_eq!(derived(&[("n_gpus", "6")]), (6, 1, 6, 24));
    assert_eq!(derived(&[("n_gpus", "64"), ("gpus_per_node", "16"), ("global_batch", "128")]), (64, 4, 16, 128));
    let training = with(&[("tp", "2"), ("dp", "2")]).unwrap().training;
    assert_eq!((training.zero_stage(), training.sequence_parallel), (1, true));
    assert!((training.data_overlap - 1.0).abs() < 1e-12);
}

#[test]
fn every_column_is_heard() {
    type Heard = fn(&Configuration) -> bool;
    let plain = with(&[("dp", "8")]).unwrap();
    let differs = |columns: &[(&str, &str)]| {
        let mut all = vec![("dp", "8")];
        all.extend(columns.iter().filter(|column| column.0 != "dp"));
        if let Some(dp) = columns.iter().find(|column| column.0 == "dp") {
            all[0] = *dp;
        }
        let other = with(&all).unwrap();
        (other != plain, other)
    };
    let cases: [(&str, &str, Heard); 63] = [
        ("gpu", "h100", |c| c.cluster.name == "H100"),
        ("gpus_per_node", "4", |c| (c.cluster.nodes, c.cluster.devices_per_node) == (2, 4)),
        ("model", "llama-2-7b", |c| c.model.name == "Llama-2 7B"),
        ("preset", "Llama-2 7B", |c| c.model.modules[0].ffn == 11_008),
        ("layers", "40", |c| c.model.modules[0].layers == 40),
        ("hidden", "5120", |c| (c.model.modules[0].hidden, c.model.modules[0].heads) == (5120, 40)),
        ("heads", "64", |c| (c.model.modules[0].heads, c.model.modules[0].kv_heads) == (64, 64)),
        ("kv_heads", "8", |c| c.model.modules[0].kv_heads == 8),
        ("ffn", "11008", |c| c.model.modules[0].ffn == 11_008),
        ("vocab", "32000.0", |c| c.model.modules[0].vocab == 32_000),
        // 8/3 x 4096 = 10,922.7, the next multiple of 256 is 11,008: Llama-2 7B.
        ("gated", "Yes", |c| c.model.modules[0].ffn == 11_008 && c.model.modules[0].norm == Norm::Rms),
        ("seq_len", "4096", |c| (c.sequence_length, c.model.modules[0].learned_positions) == (4096, 4096)),
        ("causal", "0", |c| c.model.modules[0].mask == Mask::Full),
        ("n_experts", "8", |c| c.model.modules[0].moe == Some(Moe::new(8, 2))),
        ("tp", "2", |c| c.layout.tensor == 2),
        ("pp", "4", |c| c.layout.pipeline == 4 && c.global_batch == 8 * 16),
        ("dp", "16", |c| c.layout.data == 16),
        ("cp", "2", |c| c.training.context_parallel == 2),
        ("microbatch", "2", |c| c.layout.microbatch == 2),
        ("global_batch", "64", |c| c.global_batch == 64),
        ("recompute", "Selective", |c| c.training.recompute == Recompute::Selective),
        ("sequence_parallel", "true", |c| c.training.sequence_parallel),
        ("zero", "2", |c| c.training.zero_stage() == 2),
        ("shard_degree", "2", |c| c.training.shard_degree == Some(2)),
        ("chunked_loss", "true", |c| c.training.chunked_loss),
        ("in_place_loss", "true", |c| c.training.in_place_loss),
        ("grouped_experts", "true", |c| c.training.grouped_experts),
        ("microbatches_per_flush", "1", |c| c.training.microbatches_per_flush == Some(1)),
        ("unsharded_gradients", "true", |c| c.training.unsharded_gradients),
        ("precision", "FP32", |c| c.training.precision == Precision::Fp32),
        ("fsdp", "1", |c| c.training.zero_stage() == 3 && c.training.framework == Framework::Fsdp),
        ("framework", "InternEvo v0.2.1", |c| {
            c.training.framework == Framework::Internevo && c.training.gradients == GradientFormat::Bf16
        }),
        ("framework", "NeMo AutoModel", |c| c.training.framework == Framework::Fsdp),
        ("execution", "compile", |c| c.training.execution == Some(Execution::Compiled)),
        ("attention", "fa2", |c| c.training.attention == AttentionKernel::Flash2),
        ("dropout", "true", |c| c.model.modules[0].dropout),
        ("tied_embeddings", "false", |c| !c.model.modules[0].tied_embeddings),
        ("optimizer", "adamw_8bit", |c| c.training.optimizer == Optimizer::Adam8Bit),
        ("optimizer_offload", "0.5", |c| c.training.optimizer_offload > 0.49),
        ("lora_rank", "16", |c| {
            c.model.modules[0].adapters.is_some_and(|adapters| adapters.rank == 16 && adapters.mlp)
        }),
        ("master_weights", "none", |c| c.training.master_weights == MasterWeights::None),
        ("moments", "bf16", |c| c.training.moments == MomentFormat::Bf16),
        ("gradients", "bf16", |c| c.training.gradients == GradientFormat::Bf16),
        ("cp_balanced", "false", |c| !c.training.context_balanced),
        ("fused_weight_gradients", "false", |c| !c.training.fused_weight_gradients),
        ("tensor_overlap", "0.5", |c| c.training.tensor_overlap > 0.49),
        ("data_overlap", "0.5", |c| (0.49..0.51).contains(&c.training.data_overlap)),
        ("link_gb_per_s", "100", |c| (99.0..101.0).contains(&c.cluster.intra_node.gb_per_s)),
        ("network_gb_per_s", "6.25", |c| (6.0..6.5).contains(&c.cluster.inter_node.gb_per_s)),
        ("host_memory_gib", "512", |c| c.cluster.host_memory_gib == Some(512.0)),
        ("memory_reserve_gib", "2", |c| c.training.memory_reserve_gib < 2.1),
        ("head_dim", "64", |c| c.model.modules[0].head_dim() == 64),
        ("norm", "rms", |c| c.model.modules[0].norm == Norm::Rms),
        ("bias", "qkv", |c| c.model.modules[0].bias == Bias::Qkv),
        ("positions", "rotary", |c| c.model.modules[0].learned_positions == 0),
        ("sliding_window", "512", |c| c.model.modules[0].window.is_some_and(|window| window.tokens == 512)),
        ("kv_lora_rank", "512", |c| {
            c.model.modules[0].latent.is_some_and(|latent| (latent.query_rank, latent.rotary_size) == (0, 64))
        }),
        ("mtp_layers", "1", |c| c.model.modules[0].predicted_ahead == 1),
        ("cp_exchange", "all_to_all", |c| c.training.context_exchange == ContextExchange::AllToAll),
        ("activation_offload", "0.5", |c| c.training.activation_offload > 0.49),
        ("send_overlap", "true", |c| c.training.overlapped_sends),
        ("gbs", "64", |c| c.global_batch == 64),
        ("Hidden_Size", "5120", |c| c.model.modules[0].hidden == 5120),
    ];
    for (name, cell, holds) in cases {
        let (differs, configuration) = differs(&[(name, cell)]);
        assert!(differs && holds(&configuration), "{name}={cell}: {configuration:?}");
    }
    let experts = differs(&[("n_experts", "16"), ("top_k", "1"), ("ep", "8")]).1;
    assert_eq!(experts.model.modules[0].moe, Some(Moe::new(16, 1)));
    assert_eq!(experts.training.expert_parallel, 8);
    assert_eq!(differs(&[("pp", "2"), ("vpp", "4")]).1.layout.chunks, 4);
    let stated = |text: &str| differs(&[("pp", "4"), ("layers_per_stage", text)]).1.layers_per_stage;
    assert_eq!([stated("9 8*2 7"), stated("9-8-8-7"), stated("[9|8|8|7]")], [[9, 8, 8, 7]; 3]);
    assert_eq!(differs(&[("recompute", "full")]).1.training.recompute, Recompute::Full);
    assert!(differs(&[("zero", "3"), ("parameter_offload", "true")]).1.training.offloads_parameters());
    assert_eq!(differs(&[("n_gpus", "8")]).1, plain);
}

#[test]
fn preset_fills_missing_columns() {
    let configuration = with(&[("model", "gpt-3-175b"), ("layers", "48"), ("seq_len", "4096")]).unwrap();
    let module = &configuration.model.modules[0];
    assert_eq!((module.layers, module.hidden, module.vocab), (48, 12_288, 51_200));
    assert_eq!(module.learned_positions, 4096);
    let two = with(&[("preset", "llama-2-7b"), ("heads", "64"), ("model", "run 17")]).unwrap();
    assert_eq!((two.model.modules[0].heads, two.model.modules[0].kv_heads), (64, 64));
    // A custom name is a label if the row describes the model.
    let custom = with(&[("model", "GPT 22B"), ("layers", "48"), ("hidden", "6144")]).unwrap();
    assert_eq!((custom.model.name.as_str(), custom.model.modules[0].heads), ("GPT 22B", 48));
}

#[test]
fn invalid_values_are_reported_by_column() {
    let cases: [(&[(&str, &str)], &str); 26] = [
        (&[("tp", "3"), ("heads", "32")], "tp: 3 does not divide 32 heads"),
        (&[("tp", "8"), ("heads", "32"), ("kv_heads", "4")], "tp: 8 does not divide 4 key-value heads"),
        (&[("microbatch", "two")], "microbatch: \"two\" is not a whole number"),
        (&[("pp", "1.5")], "pp: \"1.5\" is not a whole number"),
        (&[("pp", "0")], "pp: 0 is not in 1 to 1048576"),
        (&[("layers", "-1")], "layers: -1 is not in 1 to 1024"),
        (&[("dp", "1e300")], "dp: 1e300 is not in 1 to 1048576"),
        (&[("gated", "maybe")], "gated: \"maybe\" is neither true nor false"),
        (&[("recompute", "some")], "recompute: \"some\" is none of none, selective, operators, full"),
        (&[("precision", "int4")], "precision: \"int4\" is none of bf16, fp16, fp8, fp32"),
        (&[("precision", "fp8")], "precision: A100-80GB has no fp8"),
        (&[("gpu", "tpu-v9")], "gpu: \"tpu-v9\" is none of a100-80gb, "),
        (&[("model", "gpt-9")], "model: \"gpt-9\" is none of llama-2-7b, "),
        (&[("model", "vlm-s")], "model: \"vlm-s\" is none of "),
        (&[("preset", "gpt-9"), ("layers", "8"), ("hidden", "512")], "preset: \"gpt-9\" is none of "),
        (&[("n_gpus", "12")], "n_gpus: 12 is not a multiple of gpus_per_node 8"),
        (&[("n_gpus", "10"), ("tp", "4")], "n_gpus: 10 is not a multiple of tp 4 x pp 1 x cp 1"),
        (&[("n_gpus", "64"), ("tp", "4"), ("dp", "8")], "n_gpus: 64 is not tp 4 x pp 1 x cp 1 x dp 8"),
        (&[("tp", "1048576"), ("pp", "1048576"), ("cp", "1048576"), ("dp", "1048576")], "global_batch: by default"),
        (&[("global_batch", "10"), ("dp", "4")], "global_batch: 10 is not a multiple of dp 4 x microbatch 1"),
        (&[("hidden", "1000")], "heads: by default, 7 does not divide hidden 1000"),
        (&[("kv_heads", "5")], "kv_heads: 5 does not divide 32 heads"),
        (&[("pp", "64")], "pp: 64 exceeds 32 layers"),
        (&[("vpp", "2")], "vpp: 2 needs a pipeline, pp above 1"),
        (&[("ep", "2"), ("dp", "2")], "ep: 2 needs n_experts above 1"),
        (&[("n_experts", "8"), ("top_k", "9")], "top_k: 9 of 8 experts"),
    ];
    for (columns, says) in cases {
        let reason = with(columns).expect_err(says);
        assert!(reason.starts_with(says), "{reason}, not {says}");
    }
    for (columns, says) in [
        (&[("fsdp", "true"), ("zero", "1")][..], "zero: 1 contradicts fsdp true, which shards weights"),
        (&[("dp", "4"), ("shard_degree", "3")], "shard_degree: 3 does not divide dp x cp = 4"),
        (&[("zero", "0"), ("shard_degree", "2")], "shard_degree: contradicts zero 0, which shards nothing"),
        (&[("zero", "2"), ("parameter_offload", "true")], "parameter_offload: contradicts zero 2; needs zero 3"),
        (&[("recompute", "selective"), ("recompute_layers", "2")], "recompute_layers: needs recompute full"),
        (&[("data_overlap", "1.5")], "data_overlap: 1.5 is not in 0 to 1"),
        (&[("memory_reserve_gib", "much")], "memory_reserve_gib: \"much\" is not a number"),
        (&[("pp", "8"), ("vpp", "8")], "vpp: 8 x pp 8 exceeds 32 layers"),
        (
            &[("pp", "2"), ("layers_per_stage", "16 15")],
            "layers_per_stage: 31 layers in all; the model has 32, at least 1 a stage",
        ),
        (
            &[("pp", "2"), ("layers_per_stage", "32 0")],
            "layers_per_stage: 32 layers in all; the model has 32, at least 1 a stage",
        ),
        (&[("pp", "2"), ("layers_per_stage", "8*4000000000")], "layers_per_stage: more than pp x vpp = 2 stages"),
        (&[("pp", "4"), ("layers_per_stage", "16|16")], "layers_per_stage: 2 stages, but pp x vpp is 4"),
        (
            &[("pp", "2"), ("layers_per_stage", "15.5 16.5")],
            "layers_per_stage: \"15.5 16.5\" is not a list of whole numbers",
        ),
        (&[("cp", "3")], "cp: 3 does not divide seq_len 2048"),
        (&[("n_experts", "8"), ("ep", "3")], "ep: 3 does not divide 8 experts"),
        (&[("n_experts", "8"), ("ep", "4"), ("dp", "2")], "ep: 4 does not divide dp 2 x cp 1"),
    ] {
        assert_eq!(with(columns), Err(says.to_owned()));
    }
}

#[test]
fn similar_names_are_suggested() {
    for (name, column) in
        [("microbach", "microbatch"), ("Hiden", "hidden"), ("vocabb", "vocab"), ("rceompute", "recompute")]
    {
        assert_eq!(super::similar(name), Some(column), "{name}");
    }
    for name in ["notes", "tq", "microbatch size", ""] {
        assert_eq!(super::similar(name), None, "{name}");
    }
}

/// Every row states the values that it does not define.
#[test]
fn defaults_are_listed() {
    let table = read(b"gpu,n_gpus,preset,framework,zero\nh100,8,llama-3-8b,torchtitan,3\n").unwrap();
    let defaults = table.rows().next().unwrap().defaults;
    for term in ["attention flash2", "precision bf16", "data_overlap 1", "link_gb_per_s 450", "microbatch 1"] {
        assert!(defaults.split("; ").any(|it| it == term), "{term}: {defaults}");
    }
    assert!(!defaults.contains("gpu ") && !defaults.contains("zero ") && !defaults.contains("layers"), "{defaults}");
}

#[test]
fn headers_are_read_as_people_write_them() {
    for table in ["\u{feff} TP ,\"Pp\"\r\n2,4\r\n", "pp\ttp\n4\t2", "Pp;tp;\n4;2;\n\n", "\n\ntp,pp\n2,4,,\n"] {
        let layout = row(table).unwrap().layout;
        assert_eq!((layout.tensor, layout.pipeline), (2, 4), "{table:?}");
    }
    let read_error = |bytes: &[u8]| read(bytes).map(drop).unwrap_err();
    assert_eq!(read_error(b""), ConfigurationsError::Empty);
    assert_eq!(read_error("\u{feff} \r\n\n".as_bytes()), ConfigurationsError::Empty);
    assert_eq!(read_error(b"tp\n\xff"), ConfigurationsError::NotText { detail: "byte 3 is not".to_owned() });
    assert_eq!(read_error(b"1,2\n3,4\n"), ConfigurationsError::NoHeader { found: "\"1,2\"".to_owned() });
    let names = ["\"tp\"", "\"TP\""].map(str::to_owned);
    assert_eq!(read_error(b"tp,pp,TP\n"), ConfigurationsError::RepeatedColumn { column: "tp", names });
    assert_eq!(
        read_error(b"TP size,Tensor parallel\n").to_string(),
        "\"TP size\" and \"Tensor parallel\" are both the column tp; remove one of them"
    );
    assert_eq!(
        read_error(b"tp,Batch Size\n").to_string(),
        "the column \"Batch Size\" is ambiguous; did you mean microbatch or global_batch?"
    );
    // Both columns are stated, so that the third is neither.
    assert!(read(b"mbs,gbs,Batch Size\n").is_ok());
    assert_eq!(read_error(&vec![b' '; super::MAX_BYTES + 1]), ConfigurationsError::TooLarge);
    assert_eq!(read_error(",".repeat(1000).as_bytes()), ConfigurationsError::TooManyColumns { columns: 1001 });
    for error in [read_error(b""), read_error(b"1,2\n"), read_error(b"tp,tp")] {
        assert_eq!(error.to_string().lines().count(), 1);
    }
}

#[test]
fn results_are_appended_to_three_rows() {
    let table = "run,model,gpu,n_gpus,tp,pp,recompute,mfu\n\
                 \"=1+1, a\",llama-2-7b,h100,8,4,2,selective,0.41\n\
                 b,gpt-3-175b,a100,8,8,,, \n\
                 c,llama-2-7b,h100,8,3,,,\n";
    let (out, summary) = answered(table);
    let mut reader = csv::Reader::from_reader(out.as_bytes());
    let header = reader.headers().unwrap().clone();
    assert_eq!(header.len(), 8 + ANSWERS.len());
    assert_eq!(header.iter().skip(8).collect::<Vec<_>>(), ANSWERS);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let inputs: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().take(8).collect()).collect();
    assert_eq!(inputs[0], ["=1+1, a", "llama-2-7b", "h100", "8", "4", "2", "selective", "0.41"]);
    assert_eq!(inputs[1], ["b", "gpt-3-175b", "a100", "8", "8", "", "", " "]);
    let number = |row: usize, column: &str| -> f64 {
        let index = 8 + ANSWERS.iter().position(|name| *name == column).unwrap();
        rows[row][index].parse().unwrap()
    };
    let cell =
        |row: usize, column: &str| rows[row][8 + ANSWERS.iter().position(|name| *name == column).unwrap()].to_owned();
    assert_eq!((cell(0, "feasible").as_str(), cell(0, "reason").as_str()), ("true", ""));
    assert!(number(0, "iteration_time_low_s") < number(0, "iteration_time_s"));
    assert!(number(0, "iteration_time_high_s") > number(0, "iteration_time_s"));
    assert!((0.0..0.1).contains(&number(0, "out_of_memory_probability")));
    assert!((0.1..0.8).contains(&number(0, "mfu")), "{out}");
    assert!((number(0, "tflops_per_gpu") / 989.0 / number(0, "mfu") - 1.0).abs() < 1e-5);
    // One replica of 8 devices, by default 4 x 2 microbatches of one sequence of 2,048 tokens.
    let tokens = 8.0 * 2048.0 / 8.0 / number(0, "iteration_time_s");
    assert!((number(0, "tokens_per_s_per_gpu") / tokens - 1.0).abs() < 1e-5);
    assert_eq!(cell(1, "feasible"), "false");
    assert!(cell(1, "reason").starts_with("rank 0 needs ") && number(1, "peak_memory_gib") > 80.0, "{out}");
    assert!(ANSWERS[..10].iter().all(|column| cell(2, column).is_empty()), "{out}");
    assert_eq!(cell(2, "feasible"), "false");
    assert_eq!(cell(2, "reason"), "n_gpus: 8 is not a multiple of tp 3 x pp 1 x cp 1");
    assert_eq!((summary.rows, summary.feasible), (3, 1));
    let obstacles = summary.infeasible.iter().map(|obstacle| (obstacle.check, obstacle.rows, obstacle.first));
    assert_eq!(obstacles.collect::<Vec<_>>(), [("memory", 1, 3), ("n_gpus", 1, 4)]);
}

#[test]
fn rows_with_wrong_width_keep_their_order() {
    let (out, summary) = answered("tp,note,pp\n1,a\n1,b,1,2\n1,\"c,1\n1,d,1\n");
    let rows: Vec<&str> = out.lines().skip(1).collect();
    assert_eq!(rows[0], "1,a,,,,,,,,,,,,false,cells: 2 where the header has 3,,");
    assert_eq!(rows[1], "1,b,1,,,,,,,,,,,false,cells: 4 where the header has 3,,");
    assert_eq!(rows[2], "1,\"\"\"c\",1,,,,,,,,,,,false,cells: a quote is not closed,,");
    assert!(rows[3].starts_with("1,d,1,"), "{out}");
    assert_eq!((summary.rows, summary.infeasible[0].rows), (4, 3));
    let table: Table<'_> = read(b"tp, Note ,pp,\n").unwrap();
    assert_eq!(table.ignored().collect::<Vec<_>>(), ["Note", ""]);
}

/// Generates a cell, mostly valid values including range limits.
fn cell(column: Column) -> impl Strategy<Value = String> {
    let (min, max) = if let super::Holds::Integer(min, max) = column.holds { (min, max) } else { (0, 3) };
    let small = (min..=max.min(64)).prop_map(|value| value.to_string());
    let powers = (0_u32..21).prop_map(move |bits| (1_u32 << bits).clamp(min, max).to_string());
    let terms = prop::sample::select(vec!["", "true", "full", "selective", "fp8", "h100", "llama-2-7b", "x"]);
    prop_oneof![60 => Just(String::new()), 4 => small, 4 => powers, 1 => terms.prop_map(str::to_owned)]
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(table) = read(&bytes) {
            table.rows().for_each(drop);
        }
    }

    #[test]
    fn arbitrary_tables_never_panic(rows in "[0-9,\";a-f\\-. \r\n]{0,200}") {
        let table = format!("tp,note,pp\n{rows}");
        let table = read(table.as_bytes()).unwrap();
        prop_assert!(table.rows().all(|row| row.cells.len() == 3));
    }

    /// Arbitrary values, including range limits, produce one output row per input row that is not empty.
    #[test]
    fn rows_in_are_rows_out(rows in prop::collection::vec(Vec::from(COLUMNS.map(cell)), 1..20)) {
        let names = COLUMNS.map(|column| column.name).join(",");
        let table = rows.iter().fold(names, |table, row| table + "\n" + &row.join(","));
        let (out, summary) = answered(&table);
        let filled = rows.iter().filter(|row| row.iter().any(|cell| !cell.trim().is_empty())).count();
        prop_assume!(filled > 0);
        prop_assert_eq!(out.lines().count(), filled + 1);
        prop_assert_eq!(summary.rows as usize, filled);
        // Column checks reject everything that the planner would reject.
        prop_assert!(summary.infeasible.iter().all(|obstacle| obstacle.check != "layout"), "{:?}", summary.infeasible);
        let rejected: u64 = summary.infeasible.iter().map(|obstacle| obstacle.rows).sum();
        prop_assert_eq!(summary.feasible + rejected, summary.rows);
    }
}
