//! Tests of cells that have no effect in their row.

use planner::estimate::estimate;

use super::super::{COLUMNS, Column, Holds, Row, read};
use super::answered;

fn table_row(columns: &[(&str, &str)]) -> Row {
    let (names, cells): (Vec<_>, Vec<_>) = columns.iter().copied().unzip();
    let table = format!("{}\n{}\n", names.join(","), cells.join(","));
    read(table.as_bytes()).unwrap().rows().next().unwrap()
}

/// Returns the reported columns without effect as text.
fn reported(columns: &[(&str, &str)]) -> String {
    let row = table_row(columns);
    row.configuration.as_ref().unwrap_or_else(|reason| panic!("{columns:?}: {reason}"));
    super::super::without_effect::describe(&row.stated)
}

#[test]
fn cells_without_effect_are_reported() {
    let h100 = ("gpu", "h100");
    for (columns, expected) in [
        (
            &[
                ("top_k", "8"),
                ("expert_ffn", "1024"),
                ("shared_expert_ffn", "64"),
                ("dense_layers", "3"),
                ("dense_ffn", "4096"),
                ("experts_every", "2"),
                ("router_skew", "2"),
                ("expert_overlap", "0.5"),
                ("dispatch_by_node", "true"),
                ("etp", "1"),
            ][..],
            "top_k, expert_ffn, shared_expert_ffn, dense_layers, dense_ffn, experts_every, router_skew, expert_overlap, \
             dispatch_by_node, etp: no experts",
        ),
        (&[("cp_balanced", "false"), ("cp_exchange", "all_to_all")], "cp_balanced, cp_exchange: CP is 1"),
        (&[("cp", "2"), ("causal", "false"), ("cp_balanced", "false")], "cp_balanced: no causal mask"),
        (&[("tensor_overlap", "1"), ("sequence_parallel", "true")], "sequence_parallel, tensor_overlap: TP is 1"),
        (&[("send_overlap", "true"), ("vpp", "1")], "vpp, send_overlap: PP is 1"),
        (&[("dp", "8"), ("network_gb_per_s", "5")], "network_gb_per_s: one node"),
        (&[("dp", "8"), ("host_memory_gib", "5")], "host_memory_gib: nothing is offloaded"),
        (
            &[("n_experts", "8"), ("recompute", "selective"), ("recompute_modules", "moe_act mla_up_proj mlp")],
            "recompute_modules: nothing of mla_up_proj and mlp is stored",
        ),
        (&[("recompute", "selective")], "recompute: fused attention stores no scores"),
        (
            &[("recompute", "selective"), ("recompute_modules", "mla_up_proj")],
            "recompute: nothing of recompute_modules is stored; recompute_modules: nothing of mla_up_proj is stored",
        ),
        (&[("recompute", "selective"), ("recompute_modules", "core_attn")], ""),
        (&[("recompute", "selective"), ("framework", "megatron")], ""),
        (&[("recompute", "selective"), ("attention", "unfused")], ""),
        (
            &[("recompute", "full"), ("pp", "4"), ("recompute_layers", "9")],
            "recompute_layers: a stage has at most 8 layers",
        ),
        (&[("recompute", "full"), ("pp", "4"), ("recompute_layers", "8")], ""),
        (&[("n_experts", "8"), ("dense_ffn", "4096")], "dense_ffn: no layers without experts"),
        (&[("window", "4096"), ("seq_len", "2048")], "window: the window is not below seq_len"),
        (&[("preset", "nemotron-h-8b"), ("window", "512")], "window: no layer has a window"),
        (&[("kv_lora_rank", "512"), ("kv_heads", "8")], "kv_heads: latent attention has keys and values of all heads"),
        (
            &[("optimizer", "adam_8bit"), ("moments", "bf16")],
            "moments: the optimizer has no moments of a chosen format",
        ),
        (
            &[("precision", "fp32"), ("master_weights", "half")],
            "master_weights: precision is fp32, which has no master weights",
        ),
        (&[("zero", "3"), ("data_overlap", "0.5")], "zero, data_overlap: one replica"),
        (&[("vocab", "0"), ("tied_embeddings", "true")], "tied_embeddings: vocab is 0"),
        (
            &[("dp", "2"), ("zero", "3"), ("parameter_offload", "true"), ("optimizer_offload", "1")],
            "optimizer_offload: parameter_offload includes the optimizer state",
        ),
        (&[h100, ("fp8_weights", "false")], "fp8_weights: precision is not fp8"),
        (&[("preset", "mixtral-8x7b"), ("ffn", "4096")], "ffn: no layers without experts"),
    ] {
        assert_eq!(reported(columns), expected, "{columns:?}");
    }
}

/// The report and the estimate agree for every column: values of a column that is reported do not change the estimate,
/// and a column that is not reported has a value that does.
#[test]
fn reports_agree_with_estimates() {
    let bases: [&[(&str, &str)]; 23] = [
        &[("gpu", "h100")],
        &[("gpu", "h100"), ("dp", "16"), ("layers", "8")],
        &[("gpu", "h100"), ("tp", "2"), ("pp", "2"), ("cp", "2"), ("dp", "2"), ("layers", "8"), ("global_batch", "64")],
        &[("gpu", "h100"), ("n_experts", "8"), ("dp", "16"), ("ep", "4"), ("dense_layers", "1"), ("layers", "8")],
        &[("gpu", "h100"), ("n_experts", "8"), ("tp", "2"), ("layers", "8"), ("precision", "fp8"), ("lora_rank", "8")],
        &[("gpu", "h100"), ("preset", "qwen3-30b-a3b"), ("ep", "8"), ("n_gpus", "16")],
        &[("gpu", "h100"), ("preset", "gemma-3-12b"), ("n_gpus", "8"), ("optimizer_offload", "0.5"), ("zero", "3")],
        &[("gpu", "h100"), ("precision", "fp8"), ("dp", "8"), ("layers", "4")],
        &[("gpu", "h100"), ("attention", "unfused"), ("cp", "2"), ("layers", "4")],
        &[("gpu", "h100"), ("lora_rank", "8"), ("base_bits", "4"), ("dp", "8"), ("layers", "4")],
        // The host memory is enough for some optimizers only.
        &[
            ("gpu", "h100"),
            ("zero", "3"),
            ("parameter_offload", "true"),
            ("dp", "16"),
            ("layers", "4"),
            ("host_memory_gib", "8"),
        ],
        &[("gpu", "h100"), ("framework", "fsdp"), ("layers", "4")],
        &[
            ("gpu", "h100"),
            ("precision", "fp8"),
            ("lora_rank", "8"),
            ("base_bits", "8"),
            ("zero", "3"),
            ("dp", "16"),
            ("layers", "4"),
        ],
        &[
            ("gpu", "b300"),
            ("precision", "fp8"),
            ("n_experts", "8"),
            ("ep", "8"),
            ("dp", "8"),
            ("layers", "4"),
            ("etp", "1"),
        ],
        &[("gpu", "a100"), ("precision", "fp32"), ("pp", "2"), ("dp", "2"), ("layers", "4"), ("attention", "unfused")],
        &[("gpu", "b200"), ("precision", "fp8"), ("lora_rank", "8"), ("layers", "4"), ("framework", "torchtitan")],
        &[("gpu", "h100"), ("optimizer", "adafactor"), ("vocab", "0"), ("dp", "2"), ("layers", "4")],
        &[("gpu", "h100"), ("preset", "llama-4-scout"), ("ep", "8"), ("n_gpus", "16"), ("seq_len", "16384")],
        &[("gpu", "a100"), ("framework", "torchtitan"), ("tp", "2"), ("dp", "4"), ("layers", "4")],
        &[("gpu", "h100"), ("preset", "qwen3-next-80b-a3b"), ("ep", "8"), ("n_gpus", "16")],
        &[
            ("gpu", "h100"),
            ("preset", "deepseek-v3"),
            ("ep", "8"),
            ("pp", "4"),
            ("n_gpus", "64"),
            ("dispatch_by_node", "true"),
        ],
        &[("gpu", "h100"), ("preset", "nemotron-h-8b"), ("n_gpus", "8"), ("recompute", "full")],
        &[("gpu", "h100"), ("kv_lora_rank", "512"), ("dp", "2"), ("attention", "unfused"), ("recompute", "selective")],
    ];
    let mut differences = Vec::new();
    for base in bases {
        let plain = estimate(&table_row(base).configuration.unwrap()).unwrap();
        for column in COLUMNS.into_iter().filter(|column| base.iter().all(|(name, _)| *name != column.name)) {
            let (mut silent, mut has_effect) = (Vec::new(), false);
            for value in values(column) {
                let mut columns = base.to_vec();
                columns.push((column.name, &value));
                let row = table_row(&columns);
                let Ok(configuration) = row.configuration else { continue };
                let stated = row.stated.iter().find(|stated| stated.column == column.name).unwrap();
                let differs = estimate(&configuration).unwrap() != plain;
                has_effect |= differs;
                match &stated.without_effect {
                    Some(reason) if differs => {
                        differences.push(format!("{base:?}: {} {value} has an effect, not: {reason}", column.name));
                    }
                    Some(_) => {}
                    None => silent.push(value),
                }
            }
            // The loss changes the memory of the last stage. Another stage may have the peak.
            let is_hidden = column.name.ends_with("_loss") && base.iter().any(|(name, _)| *name == "pp");
            if !has_effect && silent.len() > 1 && !is_hidden {
                differences.push(format!("{base:?}: {} has no effect, not reported: {silent:?}", column.name));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Returns values of a column, most of them not the default.
fn values(column: Column) -> Vec<String> {
    match column.holds {
        Holds::Integer(min, max) => [0, 1, 2, 4, 8, 64, 512, 8192]
            .into_iter()
            .filter(|value| (min..=max).contains(value))
            .map(|value| value.to_string())
            .collect(),
        Holds::Number(min, max) => [0.0, 0.5, 1.0, 2.0, 3.0, 100.0, 900.0]
            .into_iter()
            .filter(|value| (min..=max).contains(value))
            .map(|value| value.to_string())
            .collect(),
        Holds::Flag => ["true", "false"].map(str::to_owned).to_vec(),
        Holds::Word(words) => words.iter().map(|&word| word.to_owned()).collect(),
        Holds::Name(_) => Vec::new(),
    }
}

#[test]
fn a_table_counts_cells_without_effect() {
    let table = "cp,dp,cp_exchange,top_k,seq_len\n1,2,all_to_all,0,1024\n2,1,all_to_all,,1024\n1,2,ring,,1024\n";
    let (out, summary) = answered(table);
    let counts = summary.without_effect;
    assert_eq!((counts.cells, counts.rows), (3, 2));
    assert_eq!(counts.first, Some((2, "top_k: no experts; cp_exchange: CP is 1".to_owned())));
    // A column that has an effect in a row, or states defaults only, is a note.
    assert!(counts.columns.is_empty(), "{:?}", counts.columns);
    assert!(out.lines().nth(1).unwrap().ends_with(",top_k: no experts; cp_exchange: CP is 1"), "{out}");
    let (_, summary) = answered("dp,cp_exchange\n2,all_to_all\n2,ring\n");
    assert_eq!(summary.without_effect.columns, ["cp_exchange"]);
}
